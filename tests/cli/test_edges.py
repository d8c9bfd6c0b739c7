"""At the edges: full disks, places that cannot be written, closed pipes, narrow terminals."""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

from leanrank import dump_letor, make_ranking
from leanrank.model import Model, load_model
from leanrank.rankers import DominationRanker


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    dump_letor(make_ranking(300, 8, 5, random_state=0), tmp_path / "a.txt")
    Model.from_coef([1.0, 0.0, -2.0, 0.0, 0.5]).save(tmp_path / "in.json")
    return tmp_path


def leanrank(folder: Path, *words: str, **options: object) -> subprocess.CompletedProcess[bytes]:
    command = [sys.executable, "-m", "leanrank", *words]
    given: dict[str, object] = {"cwd": folder, "capture_output": True, "timeout": 300, **options}
    return subprocess.run(command, check=False, **given)  # type: ignore[call-overload,no-any-return]


def sentence(ran: subprocess.CompletedProcess[bytes]) -> str:
    """Return what a command said when it failed: one line, but for the notice of a full cache."""
    assert ran.returncode in (1, 2), ran
    notice = "leanrank: warning: compiled code cannot be saved"
    (line,) = (said for said in ran.stderr.decode().splitlines() if not said.startswith(notice))
    assert line.startswith("leanrank: error: ")
    assert "unexpected" not in line
    return line


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


TUNE = ("tune", "a.txt", "--trials", "1", "--systems", "rankrls")
STREAM = ("train", "--stream", "a.txt", "-m", "out.json", "--every", "50", "--checkpoint", "c.k")


@pytest.mark.parametrize(
    "words",
    [
        ("convert", "a.txt", "out.parquet"),
        ("convert", "a.txt", "out.txt.gz"),
        ("predict", "in.json", "a.txt", "-o", "out.txt"),
        ("train", "a.txt", "-m", "out.json"),
        ("train", "a.txt", "-m", "in.json"),
        STREAM,
        ("convert", "a.txt", "out.arrow"),
        ("convert", "a.txt", "out.csv"),
        ("evaluate", "a.txt", "a.scores", "--per-query", "out.csv"),
        ("export", "in.json", "--to", "java", "-o", "out.java"),
        (*TUNE, "--journal", "out.j", "-m", "out.json"),
    ],
    ids=lambda words: " ".join(words[:5]),
)
def test_a_full_disk_is_one_sentence_and_leaves_nothing(folder, words):
    """A limit on the size of files fails like a full disk: while writing."""
    (folder / "a.scores").write_bytes(b"1\n" * 2400)
    before = contents(folder)

    def limit():
        resource.setrlimit(resource.RLIMIT_FSIZE, (200, 200))

    ran = leanrank(folder, *words, preexec_fn=limit)
    said = sentence(ran)
    assert ran.returncode == 2
    named = {word for word in words if word in said}
    assert named & {word for word in words if word.startswith(("out.", "in.", "c"))}, said
    assert "cannot be written (File too large): free space, or choose another disk" in said
    after = contents(folder)
    after.pop("out.j", None)  # a journal keeps the trials that it has
    assert after == before


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="there is no /dev/full")
@pytest.mark.parametrize("words", [("predict", "in.json", "a.txt"), ("convert", "a.txt", "-")])
def test_standard_output_on_a_full_disk(folder, words):
    with open("/dev/full", "wb") as full:
        ran = leanrank(folder, *words, capture_output=False, stdout=full, stderr=subprocess.PIPE)
    expected = "error: standard output: cannot be written (No space left on device): free space"
    assert expected in sentence(ran)


def contents(folder):
    return {path.name: path.read_bytes() for path in folder.iterdir()}


@pytest.mark.skipif(not os.path.isdir("/proc/self"), reason="there is no place like /proc")
@pytest.mark.parametrize("words", [("convert", "a.txt"), ("predict", "in.json", "a.txt", "-o")])
def test_a_place_that_cannot_be_written(folder, words):
    assert "/proc/out.txt" in sentence(leanrank(folder, *words, "/proc/out.txt"))


def test_a_link_stays_a_link_and_its_file_is_replaced(folder):
    (folder / "real").mkdir()
    (folder / "link.json").symlink_to(folder / "real" / "m.json")
    for _ in range(2):
        assert leanrank(folder, "train", "a.txt", "-m", "link.json").returncode == 0
        assert (folder / "link.json").is_symlink()
        assert names(folder / "real") == {"m.json"}
    load_model(folder / "link.json")


def test_a_reader_that_leaves_early(folder):
    command = f"{sys.executable} -m leanrank predict in.json a.txt | head -1"
    ran = subprocess.run(command, shell=True, cwd=folder, capture_output=True, check=False)
    assert len(ran.stdout.splitlines()) == 1
    assert ran.stderr == b""


def test_a_narrow_terminal(folder):
    narrow = {**os.environ, "COLUMNS": "40"}
    ran = leanrank(folder, "train", "a.txt", "-m", "m.json", env=narrow)
    assert ran.returncode == 0
    assert max(map(len, ran.stdout.decode().splitlines())) <= 40
    assert leanrank(folder, "--help", env=narrow).returncode == 0


def test_a_locale_without_letters(folder):
    plain = {**os.environ, "LANG": "C", "LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONIOENCODING": ""}
    (folder / "a.txt").rename(folder / "déjà.txt")
    ran = leanrank(folder, "train", "déjà.txt", "-m", "modèle.json", env=plain)
    assert ran.returncode == 0, ran.stderr
    load_model(folder / "modèle.json")
    ran = leanrank(folder, "predict", "où.json", "a.txt", env=plain)
    assert "there is no such file" in sentence(ran)


def fitted(data):
    return DominationRanker(alpha=0.01, n_jobs=2).fit(data).coef_


def test_a_fork_after_a_fit():
    data = make_ranking(40, 8, 5, random_state=1)
    expected = fitted(data)
    child = os.fork()
    if child == 0:
        os._exit(0 if np.array_equal(fitted(data), expected) else 1)
    assert os.waitpid(child, 0)[1] == 0


def test_fits_in_two_threads_at_once():
    sets = [make_ranking(40, 8, 5, random_state=seed) for seed in range(2)]
    expected = [fitted(data) for data in sets]
    found: list = [None, None]

    def work(at):
        found[at] = fitted(sets[at])

    threads = [threading.Thread(target=work, args=(at,)) for at in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(one, other)
