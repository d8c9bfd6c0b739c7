import functools
import hashlib
import http.server
import io
import os
import re
import tarfile
import threading
import zipfile
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from leanrank.data import load_letor
from leanrank.errors import FileError, InputError
from papers.download import download, unpack, verify
from papers.public_sets import SETS, data_directory, fetch, find_set

REAL = os.environ.get("LEANRANK_DATA")


def line(n):
    return f"1 qid:{n} 1:0.5 #docid = d{n}\n0 qid:{n} 2:0.25\n"


def folds(folder, names=("train.txt", "vali.txt", "test.txt"), n_folds=5):
    for fold in range(1, n_folds + 1):
        for at, name in enumerate(names):
            file = Path(folder, f"Fold{fold}", name)
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(line(10 * fold + at))


@pytest.fixture
def server(tmp_path):
    """A file server on this machine, and the folder that it serves."""
    folder = tmp_path / "served"
    folder.mkdir()
    handler = functools.partial(QuietHandler, directory=str(folder))
    httpd = http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=httpd.serve_forever, daemon=True)
    thread.start()
    yield f"http://127.0.0.1:{httpd.server_address[1]}", folder
    httpd.shutdown()
    httpd.server_close()


class QuietHandler(http.server.SimpleHTTPRequestHandler):
    def log_message(self, *args):
        pass

    def do_GET(self):
        if self.path.endswith("/cut"):
            self.send_response(200)
            self.send_header("Content-Length", "1000")
            self.end_headers()
            self.wfile.write(b"only this")
            return
        super().do_GET()


@pytest.fixture
def data_dir(tmp_path):
    folder = tmp_path / "data"
    folder.mkdir()
    return folder


@pytest.fixture(autouse=True)
def no_settings(monkeypatch):
    monkeypatch.delenv("LEANRANK_DATA", raising=False)
    monkeypatch.delenv("LEANRANK_DATA_URL", raising=False)


def known_as(monkeypatch, name, **changes):
    monkeypatch.setitem(SETS, name, replace(SETS[name], **changes))


def zipped(target, members):
    with zipfile.ZipFile(target, "w") as archive:
        for name, text in members.items():
            archive.writestr(name, text)
    return hashlib.sha256(target.read_bytes()).hexdigest()


def tarred(target, members):
    with tarfile.open(target, "w:gz") as archive:
        for name, text in members.items():
            info = tarfile.TarInfo(name)
            info.size = len(text)
            archive.addfile(info, io.BytesIO(text.encode()))
    return hashlib.sha256(target.read_bytes()).hexdigest()


def mslr_members():
    return {
        f"Fold{k}/{part}.txt": line(10 * k + at)
        for k in range(1, 6)
        for at, part in enumerate(("train", "vali", "test"))
    }


def test_files_in_the_directory(data_dir):
    folds(data_dir / "MQ2008")
    found = fetch("mq2008", data_dir=data_dir)
    assert found.n_folds == 5
    train, vali, test = found.fold(3)
    assert [part.query_ids.tolist() for part in (train, vali, test)] == [[30], [31], [32]]
    assert train.X.shape == (2, 46)
    assert found.fold(1, dtype=np.float32)[0].X.dtype == np.float32
    assert len(list(found.folds())) == 5
    assert "MQ2008: 5 folds" in repr(found)
    for wrong in (0, 6, True, "1"):
        with pytest.raises(InputError, match="folds 1 to 5"):
            found.fold(wrong)


@pytest.mark.parametrize(
    ("name", "folder"),
    [
        ("TD2003", "TD2003"),
        ("TD2004", "Gov/QueryLevelNorm/2004_td_dataset"),
        ("HP2003", "Gov/QueryLevelNorm/2003_hp_dataset"),
        ("NP2004", "QueryLevelNorm/2004_np_dataset"),
        ("OHSUMED", "OHSUMED/QueryLevelNorm"),
        ("MSLR-WEB30K", "MSLR-WEB30K"),
    ],
)
def test_layouts_and_old_file_names(data_dir, name, folder):
    folds(data_dir / folder, ("trainingset.txt", "validationset.txt", "testset.txt"))
    found = fetch(name, data_dir=data_dir)
    assert found.folder == data_dir / folder
    assert found.fold(2)[2].query_ids.tolist() == [22]


def test_one_split_and_packed_files(data_dir):
    import gzip

    place = data_dir / "Istella-S" / "sample"
    place.mkdir(parents=True)
    for part in ("train", "vali", "test"):
        (place / f"{part}.txt.gz").write_bytes(gzip.compress(line(7).encode()))
    found = fetch("istella", data_dir=data_dir)
    assert found.n_folds == 1
    assert "one split" in repr(found)
    assert found.fold()[1].n_features == 220


def test_an_incomplete_set(data_dir):
    folds(data_dir / "MQ2008")
    (data_dir / "MQ2008" / "Fold2" / "vali.txt").unlink()
    with pytest.raises(FileError, match=r"Fold2: there is no vali\.txt"):
        fetch("MQ2008", data_dir=data_dir).fold(2)


def test_where_the_directory_is(monkeypatch, tmp_path):
    assert data_directory("x") == Path("x")
    monkeypatch.setenv("LEANRANK_DATA", "y")
    assert data_directory() == Path("y")
    monkeypatch.delenv("LEANRANK_DATA")
    monkeypatch.setattr("sys.platform", "linux")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert data_directory() == tmp_path / "leanrank"
    monkeypatch.delenv("XDG_CACHE_HOME")
    assert data_directory() == Path.home() / ".cache" / "leanrank"


def test_names():
    assert find_set("mslr web10k").name == "MSLR-WEB10K"
    assert find_set("Reuters").name == "Reuters-21578"
    with pytest.raises(InputError, match="no public set 'MQ2009': did you mean 'MQ2008'"):
        find_set("MQ2009")
    for wrong in ("", None, 7):
        with pytest.raises(InputError, match="choose from HP2003, HP2004"):
            fetch(wrong)


def test_the_registry_is_sound():
    for name, known in SETS.items():
        assert known.name == name
        assert known.page.startswith("http")
        assert known.licence
        assert known.sha256 is None or re.fullmatch("[0-9a-f]{64}", known.sha256)
        assert known.url is None or known.url.endswith(known.archive)


def test_the_security_page_names_the_sets_with_a_checksum():
    page = (Path(__file__).parents[2] / "SECURITY.md").read_text(encoding="utf-8")
    row = next(line for line in page.splitlines() if line.startswith("| **Downloads**"))
    assert {name for name in SETS if name in row} == {
        name for name, known in SETS.items() if known.sha256 is not None
    }


@pytest.mark.parametrize("name", ["MQ2007", "TD2004", "OHSUMED", "MSLR-WEB10K"])
def test_an_agreement_is_asked_for(tmp_path, monkeypatch, name):
    monkeypatch.chdir(tmp_path)
    with pytest.raises(FileError) as caught:
        fetch(name, data_dir="sets")  # a message with a long path is cut in the middle
    message = str(caught.value)
    assert SETS[name].page in message
    assert SETS[name].archive in message
    assert "sets" in message


def test_an_archive_put_there_by_hand_is_unpacked(data_dir, monkeypatch):
    digest = zipped(data_dir / "MSLR-WEB10K.zip", mslr_members())
    with pytest.raises(FileError, match="not the file that was published"):
        fetch("MSLR-WEB10K", data_dir=data_dir)
    known_as(monkeypatch, "MSLR-WEB10K", sha256=digest)
    found = fetch("MSLR-WEB10K", data_dir=data_dir, download=False)
    assert found.fold(4)[0].query_ids.tolist() == [40]
    assert sorted(file.name for file in data_dir.iterdir()) == ["MSLR-WEB10K", "MSLR-WEB10K.zip"]


def test_download_from_the_owner(data_dir, server, monkeypatch):
    url, served = server
    members = {f"sample/{part}.txt": line(5) for part in ("train", "vali", "test")}
    digest = tarred(served / "istella-s-letor.tar.gz", members)
    known_as(monkeypatch, "Istella-S", url=f"{url}/istella-s-letor.tar.gz", sha256=digest)
    with pytest.raises(FileError, match="allow download=True"):
        fetch("Istella-S", data_dir=data_dir, download=False)
    assert fetch("Istella-S", data_dir=data_dir).fold()[0].query_ids.tolist() == [5]
    (served / "istella-s-letor.tar.gz").unlink()
    assert fetch("Istella-S", data_dir=data_dir).fold()[2].query_ids.tolist() == [5]


def test_download_from_a_mirror(tmp_path, server, monkeypatch):
    url, served = server
    digest = zipped(served / "MSLR-WEB30K.zip", mslr_members())
    known_as(monkeypatch, "MSLR-WEB30K", sha256=digest)
    monkeypatch.setenv("LEANRANK_DATA_URL", url + "/")
    monkeypatch.setenv("LEANRANK_DATA", str(tmp_path / "not" / "there" / "yet"))
    assert fetch("MSLR-WEB30K").fold(1)[1].query_ids.tolist() == [11]


def test_an_archive_of_something_else(data_dir, monkeypatch):
    zipped(data_dir / "OHSUMED.zip", {"README": "?"})
    with pytest.raises(FileError, match="does not hold the files of OHSUMED"):
        fetch("OHSUMED", data_dir=data_dir)
    with pytest.raises(FileError, match="exists but is not complete: remove it"):
        fetch("OHSUMED", data_dir=data_dir)


def test_failed_downloads_leave_nothing(data_dir, server):
    url, served = server
    (served / "a").write_text("something")
    target = data_dir / "a"
    with pytest.raises(FileError, match="ended after 9 of 1,000 bytes"):
        download(f"{url}/cut", target, None)
    with pytest.raises(FileError, match=r"answers 404 .*put it at"):
        download(f"{url}/no", target, None)
    with pytest.raises(FileError, match="not the file that was published"):
        download(f"{url}/a", target, "0" * 64)
    with pytest.raises(FileError, match=r"cannot be reached .* download it by hand"):
        download("http://127.0.0.1:9/a", target, None)
    assert list(data_dir.iterdir()) == []
    download(f"{url}/a", target, hashlib.sha256(b"something").hexdigest())
    assert target.read_text() == "something"
    verify(target, hashlib.sha256(b"something").hexdigest())


@pytest.mark.parametrize(
    "name", ["../evil.txt", "/evil.txt", "a/../../evil.txt", "..\\evil.txt", "C:\\evil.txt"]
)
@pytest.mark.parametrize("pack", [zipped, tarred])
def test_archives_cannot_reach_out(tmp_path, name, pack):
    archive = tmp_path / "bad.archive"
    pack(archive, {"good.txt": "x", name: "x"})
    with pytest.raises(FileError, match="points outside of the archive"):
        unpack(archive, tmp_path / "out" / "set")
    assert list((tmp_path / "out").iterdir()) == []
    assert not (tmp_path / "evil.txt").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.FIFOTYPE])
def test_archives_hold_plain_files_only(tmp_path, kind):
    with tarfile.open(tmp_path / "bad.tar", "w") as archive:
        info = tarfile.TarInfo("link")
        info.type = kind
        info.linkname = "/etc/passwd"
        archive.addfile(info)
    with pytest.raises(FileError, match="is a link"):
        unpack(tmp_path / "bad.tar", tmp_path / "set")


def test_symbolic_links_in_zip(tmp_path):
    with zipfile.ZipFile(tmp_path / "bad.zip", "w") as archive:
        info = zipfile.ZipInfo("link")
        info.external_attr = 0o120777 << 16
        archive.writestr(info, "/etc/passwd")
    with pytest.raises(FileError, match="is a link"):
        unpack(tmp_path / "bad.zip", tmp_path / "set")


def test_damaged_archives(tmp_path):
    whole = tmp_path / "a.tar.gz"
    tarred(whole, {"a": "x" * 100_000, "b": "y" * 1000})
    for content in (b"", b"nonsense", whole.read_bytes()[:60]):
        (tmp_path / "b").write_bytes(content)
        with pytest.raises(FileError, match="damaged"):
            unpack(tmp_path / "b", tmp_path / "set")
    assert sorted(file.name for file in tmp_path.iterdir()) == ["a.tar.gz", "b"]


def test_no_place_for_data(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(FileError, match=r"cannot be created .*LEANRANK_DATA"):
        download("http://127.0.0.1:9/a", tmp_path / "file" / "below" / "a", None)


def test_rcv1_goes_through_scikit_learn(data_dir, monkeypatch):
    import scipy.sparse as sp
    from sklearn.utils import Bunch

    asked = {}

    def fetch_rcv1(**settings):
        asked.update(settings)
        return Bunch(
            data=sp.csr_matrix(np.eye(3)),
            target=sp.csr_matrix([[1, 0], [0, 1], [1, 1]], dtype=np.uint8),
            target_names=np.array(["C11", "ECAT"], dtype=object),
            sample_id=np.array([2286, 2287, 2288]),
        )

    monkeypatch.setattr("sklearn.datasets.fetch_rcv1", fetch_rcv1)
    collection = fetch("RCV1", data_dir=data_dir, download=False)
    assert asked == {"data_home": data_dir, "download_if_missing": False}
    assert collection.topics == ("C11", "ECAT")
    assert collection.topic("C11").y.tolist() == [1, 0, 1]
    assert collection.topic("C11").doc_ids.tolist() == ["2286", "2287", "2288"]


def test_rcv1_that_is_not_there(data_dir):
    with pytest.raises(FileError, match=r"RCV1 is not in .* cannot be downloaded"):
        fetch("RCV1", data_dir=data_dir, download=False)


@pytest.mark.realdata
@pytest.mark.skipif(
    not REAL or not Path(REAL, "MQ2008").exists(), reason="LEANRANK_DATA holds no MQ2008"
)
def test_the_real_mq2008():
    parts = fetch("MQ2008", data_dir=REAL).fold(1)
    assert sum(part.n_queries for part in parts) == 784
    assert sum(len(part) for part in parts) == 15_211
    direct = load_letor(Path(REAL, "MQ2008", "Fold1", "test.txt"))
    np.testing.assert_array_equal(parts[2].X, direct.X)
