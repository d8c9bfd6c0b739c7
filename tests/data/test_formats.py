import gzip
import io
import sys

import numpy as np
import pytest

pytest.importorskip("pyarrow")

from leanrank.data import RankingData, dump, load, make_ranking, read_clicks, write_store
from leanrank.data.formats import FORMATS
from leanrank.errors import DataWarning, FileError, InputError, MissingDependencyError
from tests.data.tables.test_frames import full, same

NAMES = ["a.txt", "a.letor", "a.svm", "a.dat.gz", "a.txt.xz", "a.svmlight.bz2"]
TABLES = ["a.parquet", "a.csv", "a.csv.gz", "a.arrow", "a.feather", "A.CSV"]


@pytest.mark.parametrize("name", NAMES + TABLES)
def test_every_suffix_there_and_back(tmp_path, name):
    data = make_ranking(20, (1, 9), 7)
    dump(data, tmp_path / name)
    again = load(tmp_path / name)
    assert list(tmp_path.iterdir()) == [tmp_path / name]
    if "csv" in name.lower():  # a table of text has no notes: its columns are all named
        again = again.replace(feature_names=None)
    same(again, data)


@pytest.mark.parametrize("name", ["a.parquet", "a.arrow", "a.csv"])
def test_tables_keep_everything(tmp_path, name):
    data = full()
    dump(data, tmp_path / name)
    same(load(tmp_path / name), data)


@pytest.mark.parametrize("name", ["a.txt.gz", "a.arrow"])
def test_sparse_stays_sparse(tmp_path, name):
    data = make_ranking(20, (5, 9), 300, density=0.05, dtype=np.float32)
    options = {"n_features": 300, "dtype": np.float32} if "txt" in name else {}
    dump(data, tmp_path / name)
    same(load(tmp_path / name, **options), data)


def test_a_directory_is_parquet(tmp_path):
    dump(make_ranking(3), tmp_path / "1.parquet")
    assert load(tmp_path).n_queries == 3


def test_the_format_can_be_said(tmp_path):
    data = make_ranking(3)
    for kind in FORMATS:
        dump(data, tmp_path / "a.bin", format=kind)
        np.testing.assert_array_equal(load(tmp_path / "a.bin", format=kind).X, data.X)


def test_standard_streams(monkeypatch, capfdbinary):
    monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(b"1 qid:7 1:0.5\n")))
    data = load("-")
    assert data.query_ids.tolist() == [7]
    dump(data, "-")
    sys.stdout.flush()
    assert capfdbinary.readouterr().out.startswith(b"1 qid:7 1:0.5")


def test_errors(tmp_path):
    with pytest.raises(InputError, match=r"a\.xls: the suffix names no known format.*\.parquet"):
        load(tmp_path / "a.xls")
    with pytest.raises(InputError, match="the suffix names no known format"):
        dump(make_ranking(2), tmp_path / "a")
    with pytest.raises(InputError, match="choose from arrow, csv, letor, parquet"):
        load(tmp_path / "a.txt", format="excel")
    for name in NAMES + TABLES:
        with pytest.raises(FileError, match="there is no such file"):
            load(tmp_path / name)
    for name in ("a.csv", "a.parquet"):
        with pytest.raises(InputError, match="cannot hold sparse data"):
            dump(make_ranking(2, density=0.1), tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_damaged_tables(tmp_path):
    (tmp_path / "a.arrow").write_bytes(b"nothing of the kind")
    with pytest.raises(InputError, match=r"a\.arrow: this is no Arrow file"):
        load(tmp_path / "a.arrow")
    (tmp_path / "a.csv").write_text("label,qid,x\n0,1\n")
    with pytest.raises(InputError, match=r"a\.csv: .*Expected 3 columns, got 2"):
        load(tmp_path / "a.csv")
    (tmp_path / "a.csv").write_text("\nlabel,qid,x\n0,1,2\n\n0,1\n")
    with pytest.raises(InputError, match=r"a\.csv: .*Expected 3 columns, got 2"):
        load(tmp_path / "a.csv")
    (tmp_path / "b.csv").write_text("label,qid,x\n0,1,3\n0,1,-inf\n")
    with pytest.raises(InputError, match=r"column 'x' of .*b\.csv is -inf in row 1"):
        load(tmp_path / "b.csv")
    (tmp_path / "c.csv").write_text("label,qid,x\n0,1,high\n")
    with pytest.raises(InputError, match=r"column 'x' of .*c\.csv holds string, not numbers"):
        load(tmp_path / "c.csv")


@pytest.mark.parametrize("name", ["a.parquet", "a.csv", "a.arrow"])
def test_without_arrow_the_extra_is_named(tmp_path, monkeypatch, name):
    dump(make_ranking(3), tmp_path / name)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    for module in [name for name in sys.modules if name.startswith("leanrank.data.")]:
        if any(part in module for part in ("tables", "store")):
            monkeypatch.delitem(sys.modules, module)
    with pytest.raises(MissingDependencyError, match=r"pip install 'leanrank\[frames\]'"):
        load(tmp_path / name)
    with pytest.raises(MissingDependencyError):
        dump(make_ranking(3), tmp_path / name)


def test_compressed_csv_is_the_same_every_time(tmp_path):
    for name in ("a.csv.gz", "b.csv.gz"):
        dump(make_ranking(3), tmp_path / name)
    one, other = ((tmp_path / name).read_bytes() for name in ("a.csv.gz", "b.csv.gz"))
    assert gzip.decompress(one) == gzip.decompress(other)


def test_missing_values_in_tables(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,x,y\n0,1,,1\n1,1,nan,NULL\n1,1,2,\n")
    data = load(tmp_path / "a.csv")
    wanted = [[np.nan, 1.0], [np.nan, np.nan], [2.0, np.nan]]
    np.testing.assert_array_equal(data.X, wanted)
    for name in ("b.parquet", "b.arrow"):
        dump(data, tmp_path / name)
        np.testing.assert_array_equal(load(tmp_path / name).X, wanted)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2"])
def test_compressed_csv(tmp_path, suffix):
    data = make_ranking(3)
    dump(data, tmp_path / f"a.csv{suffix}")
    np.testing.assert_array_equal(load(tmp_path / f"a.csv{suffix}").X, data.X)


def test_csv_without_names(tmp_path):
    (tmp_path / "a.csv").write_text("0,7,1.5,2\n1,7,2.5,3\n")
    with pytest.raises(
        InputError, match=r"the first line holds numbers: put a line with the names"
    ):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("separator", [";", "\t"])
def test_csv_with_other_separators(tmp_path, separator):
    (tmp_path / "a.csv").write_text("label,qid,x\n0,1,2\n".replace(",", separator))
    words = f"a.csv: the first line is separated by {separator!r}: write the file with commas"
    with pytest.raises(InputError) as error:
        load(tmp_path / "a.csv", optional=("label", "qid"))
    assert words in str(error.value)
    dump(make_ranking(3), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet: this is no CSV file"):
        load(tmp_path / "b.parquet", format="csv")


def test_an_option_that_tables_do_not_have(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,x\n0,1,2\n")
    with pytest.raises(InputError, match="not read with 'lable': did you mean 'label'"):
        load(tmp_path / "a.csv", lable="label")


@pytest.mark.parametrize("name", ["a.csv", "a.parquet", "a.arrow"])
def test_tables_that_may_lack_columns(tmp_path, name):
    import pyarrow as pa
    from pyarrow import csv, feather, parquet

    write = {"csv": csv.write_csv, "parquet": parquet.write_table, "arrow": feather.write_feather}
    table = pa.table({"x": [1.0, 2.0], "z": [3, 4]})
    write[name[2:]](table, tmp_path / name)
    with pytest.raises(InputError, match=r"no column 'label' for label"):
        load(tmp_path / name)
    data = load(tmp_path / name, optional=("label", "qid"))
    assert data.X.tolist() == [[1.0, 3.0], [2.0, 4.0]]
    assert np.isnan(data.y).all()
    assert data.n_queries == 1
    write[name[2:]](table.append_column("label", pa.array([1, 0])), tmp_path / name)
    assert load(tmp_path / name, optional=("label", "qid")).y.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("suffix", ["query", "group"])
def test_query_sizes_beside_a_file(tmp_path, suffix):
    (tmp_path / "a.txt").write_text("1 1:1\n0 1:2\n0 1:3\n")
    (tmp_path / "a.csv").write_text("label,x\n1,1\n0,2\n0,3\n")
    for name in ("a.txt", "a.csv"):
        sizes = tmp_path / f"{name}.{suffix}"
        sizes.write_text("2\n1\n")
        data = load(tmp_path / name)
        assert data.query_ptr.tolist() == [0, 2, 3]
        assert data.query_ids.tolist() == [0, 1]
        assert data.X.ravel().tolist() == [1.0, 2.0, 3.0]
        sizes.write_text("2\n2\n")
        with pytest.raises(InputError, match="sizes add up to 4 but there are 3 documents"):
            load(tmp_path / name)
        for wrong in ("2\n1.5\n", "x\n", "-1\n", "１\n"):
            sizes.write_text(wrong)
            with pytest.raises(InputError, match=rf"{name}\.{suffix}: .* size"):
                load(tmp_path / name)
    (tmp_path / "b.txt").write_text("1 qid:7 1:1\n0 qid:7 1:2\n0 qid:8 1:3\n")
    (tmp_path / f"b.txt.{suffix}").write_text("2\n1\n")
    assert load(tmp_path / "b.txt").query_ids.tolist() == [7, 8]
    (tmp_path / f"b.txt.{suffix}").write_text("1\n2\n")
    with pytest.raises(InputError, match="not those of the data's own qid"):
        load(tmp_path / "b.txt")


@pytest.mark.parametrize("read", ["load", "store", "clicks"])
@pytest.mark.parametrize(
    ("names", "wanted"),
    [
        (["01", "1", "001"], ["01", "1", "001"]),
        (["9223372036854775808", "9223372036854775809"], None),
        (["1e3", "1000", "1000.0"], None),
        (["true", "True"], None),
        (["7", "-10", "0"], [7, -10, 0]),
        (["7", "a"], None),
    ],
)
def test_queries_of_csv_stay_apart(tmp_path, read, names, wanted):
    path = tmp_path / "a.csv"
    path.write_text("label,qid,doc_id,x\n" + "".join(f"1,{n},{n},2\n" for n in names))
    if read == "load":
        data = load(path)
    elif read == "store":
        write_store(path, tmp_path / "a.arrow")
        data = load(tmp_path / "a.arrow")
    else:
        log = path.with_name("log.csv")
        rows = "".join(f"{n},{n},{n},1,1\n" for n in names)
        log.write_text("session,qid,doc_id,position,clicked\n" + rows)
        clicks = read_clicks(log, path, query="qid", document="doc_id")
        assert clicks.n_lists == len(names)
        data = clicks.data
    assert data.query_ids.tolist() == (wanted or names)
    assert data.doc_ids.tolist() == names


def test_a_csv_row_without_a_query(tmp_path):
    (tmp_path / "a.csv").write_text("label,qid,x\n1,7,2\n1,,2\n")
    with pytest.raises(InputError, match=r"'qid'.*row 1"):
        load(tmp_path / "a.csv")


@pytest.mark.parametrize("name", ["a.txt", "a.parquet", "a.csv"])
def test_rows_are_written_in_the_order_in_which_they_were_read(tmp_path, name):
    data = RankingData([[1.0], [2.0], [3.0]], [1, 0, 2], ["b", "a", "b"], doc_ids=list("xyz"))
    dump(data, tmp_path / name)
    again = load(tmp_path / name)
    assert again.restore(again.X).ravel().tolist() == [1.0, 2.0, 3.0]
    assert again.restore(again.doc_ids).tolist() == list("xyz")


def test_a_store_says_if_rows_change_their_order(tmp_path):
    data = RankingData([[1.0], [2.0], [3.0]], [1, 0, 2], ["b", "a", "b"])
    with pytest.warns(DataWarning, match="another order"):
        dump(data, tmp_path / "a.arrow")


@pytest.mark.parametrize("part", ["sample_weight", "query_weight", "offset"])
def test_text_says_what_it_leaves_out(tmp_path, part):
    data = RankingData([[1.0], [2.0]], [0, 1]).replace(**{part: [1.0] * (1 + (part[0] != "q"))})
    with pytest.warns(DataWarning, match=part):
        dump(data, tmp_path / "a.txt")
