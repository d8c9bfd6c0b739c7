import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pq = pytest.importorskip("pyarrow.parquet")

from leanrank.data import dump_parquet, load, make_ranking, stream_ranking  # noqa: E402
from leanrank.errors import FileError, InputError  # noqa: E402

from .test_frames import full, same  # noqa: E402


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("names", [False, True])
def test_there_and_back(tmp_path, dtype, names):
    data = full(dtype, names=names)
    dump_parquet(data, tmp_path / "a.parquet")
    same(load(tmp_path / "a.parquet"), data)


def test_several_row_groups_in_threads(tmp_path, monkeypatch):
    monkeypatch.setattr("leanrank.data.tables.frames._CELLS_PER_GROUP", 1)
    data = make_ranking(100, (20, 60), 8)
    dump_parquet(data, tmp_path / "a.parquet")  # then 1024 rows a group
    assert pq.read_metadata(tmp_path / "a.parquet").num_row_groups > 3
    for n_jobs in (1, 2, -1):
        same(load(tmp_path / "a.parquet", n_jobs=n_jobs), data)


def test_a_long_row_group_by_some_columns_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr("leanrank.data.tables.arrow._CELLS_PER_READ", 1)  # then 16 columns
    path, data = tmp_path / "a.parquet", make_ranking(20, (1, 9), 40)
    dump_parquet(data, path)
    for n_jobs in (1, 2):
        same(load(path, n_jobs=n_jobs), data)
    table = pq.read_table(path)
    for name, row in (("f21", 5), ("f38", 2)):
        values = table.column(name).to_numpy().copy()
        values[row] = -np.inf
        table = table.set_column(table.column_names.index(name), name, pa.array(values))
    pq.write_table(table, path)
    for n_jobs in (1, 2):
        with pytest.raises(InputError, match=r"column .f38. of .* is -inf in row 2"):
            load(path, n_jobs=n_jobs)


def test_a_directory_of_parts(tmp_path):
    data = make_ranking(50, (3, 9), 6)
    for at, name in enumerate(["part-00", "part-01", "part-10"]):
        dump_parquet(data.queries[at * 15 : [15, 30, 50][at]], tmp_path / f"{name}.parquet")
    (tmp_path / "_SUCCESS").touch()
    (tmp_path / "_metadata.parquet").touch()
    (tmp_path / ".part-00.parquet.crc").touch()
    (tmp_path / ".hidden.parquet").touch()
    same(load(tmp_path), data)


def test_parts_written_one_after_the_other(tmp_path):
    settings = {"docs_per_query": (3, 9), "n_features": 6}
    for at, part in enumerate(stream_ranking(50, queries_per_chunk=8, **settings)):
        dump_parquet(part, tmp_path / f"{at}.parquet")
    same(load(tmp_path), make_ranking(50, **settings))


def test_a_query_over_two_parts_is_gathered(tmp_path):
    table = {"label": [0, 1], "qid": ["a", "b"], "x": [1.0, 2.0]}
    for name in ("1", "2"):
        pq.write_table(pa.table(table), tmp_path / f"{name}.parquet")
    data = load(tmp_path)
    assert data.query_ids.tolist() == ["a", "b"]
    assert data.X.ravel().tolist() == [1.0, 1.0, 2.0, 2.0]
    assert data.restore(data.y).tolist() == [0, 1, 0, 1]


def test_parts_may_differ_in_number_type(tmp_path):
    for name, kind in (("1", pa.float32()), ("2", pa.float64())):
        table = pa.table({"label": [0], "qid": [name], "x": pa.array([0.1], kind)})
        pq.write_table(table, tmp_path / f"{name}.parquet")
    data = load(tmp_path)
    assert data.X.dtype == np.float64
    assert data.X.ravel().tolist() == [float(np.float32(0.1)), 0.1]


def test_files_of_others(tmp_path):
    table = pa.table(
        {"rank": [1, 0], "query": ["a", "a"], "url": ["u", "v"], "w": [1, 2], "x": [1, 2]}
    )
    pq.write_table(table, tmp_path / "a.parquet")
    data = load(tmp_path / "a.parquet", label="rank", qid="query", doc_id="url", weight="w")
    assert data.feature_names == ("x",)
    assert data.doc_ids.tolist() == ["u", "v"]
    assert data.sample_weight.tolist() == [1, 2]


def test_empty_set(tmp_path):
    empty = full().queries[[]]
    dump_parquet(empty, tmp_path / "a.parquet")
    assert load(tmp_path / "a.parquet").X.shape == (0, 40)


def test_infinity_names_the_row_in_the_whole(tmp_path):
    pq.write_table(
        pa.table({"label": [0] * 5, "qid": [1] * 5, "x": [1.0, 1, None, float("inf"), 1]}),
        tmp_path / "a.parquet",
        row_group_size=2,
    )
    with pytest.raises(InputError, match=r"column 'x' .*a.parquet is inf in row 3"):
        load(tmp_path / "a.parquet")


def test_errors(tmp_path):
    with pytest.raises(FileError, match=r"no\.parquet"):
        load(tmp_path / "no.parquet")
    with pytest.raises(FileError, match=r"no \.parquet files"):
        load(tmp_path)
    bad = tmp_path / "bad.parquet"
    bad.write_bytes(b"PAR1 this is not one PAR1")
    with pytest.raises(InputError, match=r"bad.parquet"):
        load(bad)
    dump_parquet(make_ranking(3, n_features=4), tmp_path / "a.parquet")
    bad.unlink()
    dump_parquet(make_ranking(3, n_features=5), tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"b\.parquet.*'f5' is in one of them only"):
        load(tmp_path)


def test_truncated_files_are_refused(tmp_path):
    path = tmp_path / "a.parquet"
    dump_parquet(make_ranking(50), path)
    whole = path.read_bytes()
    for cut in (0, 3, 100, len(whole) // 2, len(whole) - 1):
        path.write_bytes(whole[:cut])
        with pytest.raises((InputError, FileError), match=r"a\.parquet"):
            load(path)


def test_nothing_is_left_of_a_failed_write(tmp_path):
    with pytest.raises(InputError, match="cannot hold sparse data"):
        dump_parquet(make_ranking(3, density=0.1), tmp_path / "a.parquet")
    assert list(tmp_path.iterdir()) == []
