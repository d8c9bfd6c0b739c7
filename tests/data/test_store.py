"""Stores: written in bounded memory from any input, mapped, and the same as what is loaded."""

import errno
import os

import numpy as np
import pytest
from scipy.sparse import csr_array

pytest.importorskip("pyarrow")

import pyarrow as pa
from pyarrow import feather

from leanrank._mapped import is_mapped, scratch
from leanrank.data import RankingData, dump, load, make_ranking, store, write_store
from leanrank.errors import DataWarning, FileError, InputError
from tests.data.tables.test_frames import full, same
from tests.memory import in_child


def scattered(n_rows=300, n_features=4, n_queries=17, dtype=np.float64, sparse=False, seed=0):
    """Rows of queries that are not together, with everything that rows can have."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_rows, n_features)).astype(dtype)
    qid = rng.integers(0, n_queries, n_rows)
    return RankingData(
        csr_array(X * (rng.random(X.shape) < 0.3)) if sparse else X,
        rng.integers(0, 3, n_rows),
        qid,
        doc_ids=[f"döc{i}" * (i % 3) for i in range(n_rows)],
        sample_weight=rng.random(n_rows),
        query_weight={q: 1.0 + q for q in range(n_queries)},
        offset=rng.normal(size=n_rows),
    )


def in_given_order(data, rows_per_chunk=40):
    """Return chunks of the rows as they were given, each with its runs as queries."""
    back = np.argsort(data.order)
    qid = data.qid[back]
    weight = np.repeat(data.query_weight, np.diff(data.query_ptr))[back]
    for low in range(0, len(data), rows_per_chunk):
        rows = back[low : low + rows_per_chunk]
        ids = qid[low : low + rows_per_chunk]
        starts = np.concatenate(([0], np.flatnonzero(ids[1:] != ids[:-1]) + 1))
        yield RankingData.of_fields(
            X=data.X[rows],
            y=data.y[rows],
            query_ids=ids[starts],
            query_ptr=np.append(starts, len(rows)),
            doc_ids=data.doc_ids[rows],
            sample_weight=data.sample_weight[rows],
            query_weight=weight[low : low + rows_per_chunk][starts],
            offset=data.offset[rows],
        )


def same_rows(store, data):
    """Compare what does not depend on the order in which rows were given."""
    same(store, data.with_fields(order=None))


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_and_back(tmp_path, sparse, dtype):
    data = scattered(dtype=dtype, sparse=sparse).queries[:]
    dump(data, tmp_path / "a.arrow")
    store = RankingData.open(tmp_path / "a.arrow")
    assert is_mapped(store.X)
    assert not store.y.flags.writeable
    assert store.X.dtype == dtype
    same_rows(store, data)
    same_rows(store.queries[3:9], data.queries[3:9])
    assert os.listdir(tmp_path) == ["a.arrow"]


@pytest.mark.parametrize("sparse", [False, True])
def test_queries_may_go_on_from_chunk_to_chunk(tmp_path, sparse):
    data = scattered(sparse=sparse)
    data = data.with_fields(order=np.arange(len(data)))
    told = write_store(in_given_order(data), tmp_path / "a.arrow")
    assert told == {"queries": 17, "documents": 300, "features": 4}
    same_rows(RankingData.open(tmp_path / "a.arrow"), data)


def test_rows_of_a_query_must_be_together(tmp_path):
    data = scattered()
    with pytest.raises(InputError, match=r"query \d+ .*DuckDB .*polars"):
        write_store(in_given_order(data), tmp_path / "a.arrow")
    assert os.listdir(tmp_path) == []
    dump(data.replace(sample_weight=None, query_weight=None, offset=None), tmp_path / "a.txt")
    with pytest.raises(InputError, match="occurs again"):
        write_store(tmp_path / "a.txt", tmp_path / "a.arrow")
    with pytest.warns(DataWarning, match="another order"):  # what the message proposes
        dump(load(tmp_path / "a.txt"), tmp_path / "a.arrow")
    np.testing.assert_array_equal(load(tmp_path / "a.arrow").X, data.X)


@pytest.mark.parametrize("name", ["a.txt", "a.txt.gz", "a.parquet", "a.csv", "a.feather"])
def test_from_every_format(tmp_path, name):
    data = make_ranking(30, (1, 40), 6, random_state=1)
    if name.endswith("feather"):  # a plain table, as other programs write it
        from leanrank.data import to_frame

        feather.write_feather(to_frame(data), tmp_path / name, chunksize=50)
    elif "txt" in name:
        dump(data, tmp_path / name)
    else:
        dump_rows(data, tmp_path / name)
    wanted = load(tmp_path / name)
    write_store(tmp_path / name, tmp_path / "a.arrow", chunk_bytes=2_000)
    store = load(tmp_path / "a.arrow")
    assert is_mapped(store.X)
    same_rows(store, wanted)


def dump_rows(data, path):
    """Write rows as they were given."""
    table = pa.table(
        {
            "label": data.restore(data.y),
            "qid": data.restore(data.qid),
            **{f"f{j + 1}": column for j, column in enumerate(data.restore(data.X).T)},
        }
    )
    if str(path).endswith(".csv"):
        from pyarrow import csv

        csv.write_csv(table, path)
    else:
        from pyarrow import parquet

        parquet.write_table(table, path, row_group_size=64)


def test_text_becomes_dense_or_sparse_as_when_it_is_loaded(tmp_path):
    lines = ["1 qid:1 3:1", "0 qid:1 1:2 2:1 3:4 #docid = d", "2 qid:x 3:1", "1 qid:x", "0 qid:07"]
    (tmp_path / "a.txt").write_text("\n".join(lines) + "\n")
    for options in ({}, {"storage": "sparse"}, {"storage": "dense"}, {"n_features": 50}):
        wanted = load(tmp_path / "a.txt", **options)
        write_store(tmp_path / "a.txt", tmp_path / "a.arrow", chunk_bytes=15, **options)
        same_rows(load(tmp_path / "a.arrow"), wanted)


def test_directories_and_patterns(tmp_path):
    data = make_ranking(20, 5, 3, random_state=0)
    (tmp_path / "parts").mkdir()
    for at in range(4):
        part = data.queries[5 * at : 5 * at + 5]
        dump(part, tmp_path / "parts" / f"{at}.parquet")
    for source in (tmp_path / "parts", tmp_path / "parts" / "*.parquet"):
        write_store(source, tmp_path / "a.arrow")
        same_rows(load(tmp_path / "a.arrow"), data)
        same(load(source), data)
    with pytest.raises(FileError, match=r"x\*\.parquet"):
        write_store(tmp_path / "parts" / "x*.parquet", tmp_path / "b.arrow")


def test_sizes_beside_the_file(tmp_path):
    (tmp_path / "a.txt").write_text("1 1:1\n0 1:2\n2 1:3\n0 1:4\n1 1:5\n")
    (tmp_path / "a.txt.query").write_text("2\n3\n")
    write_store(tmp_path / "a.txt", tmp_path / "a.arrow", chunk_bytes=7)
    assert load(tmp_path / "a.arrow").query_ptr.tolist() == [0, 2, 5]
    (tmp_path / "a.txt.query").write_text("2\n2\n")
    with pytest.raises(InputError, match=r"add up to 4 but there are 5"):
        write_store(tmp_path / "a.txt", tmp_path / "b.arrow")
    assert not (tmp_path / "b.arrow").exists()


def test_parts_that_differ(tmp_path):
    one, other = make_ranking(3, 4, 5), make_ranking(3, 4, 6)
    with pytest.raises(InputError, match="chunks of the data differ"):
        write_store([one, other], tmp_path / "a.arrow")
    with pytest.raises(InputError, match="no data to write"):
        write_store([], tmp_path / "a.arrow")
    assert os.listdir(tmp_path) == []


def test_names_of_queries_and_features(tmp_path):
    data = full()
    dump(data, tmp_path / "a.arrow", format="arrow")
    same(RankingData.open(tmp_path / "a.arrow"), data.with_fields(order=None))


def test_a_store_that_others_wrote_again_is_loaded(tmp_path):
    data = make_ranking(9, 5, 3, random_state=0)
    dump(data, tmp_path / "a.arrow")
    table = feather.read_table(tmp_path / "a.arrow")
    for packed, rows in (("lz4", None), ("uncompressed", 7)):
        feather.write_feather(table, tmp_path / "b.arrow", compression=packed, chunksize=rows)
        again = load(tmp_path / "b.arrow")
        same(again, data)
        assert not is_mapped(again.X)
        with pytest.raises(InputError, match=r"not in a layout that can be mapped: .* convert"):
            RankingData.open(tmp_path / "b.arrow")
    with pytest.raises(FileError, match=r"c\.arrow"):
        RankingData.open(tmp_path / "c.arrow")


def changed(path, column, change):
    """Write a store again with one column changed, as one uncompressed batch."""
    table = feather.read_table(path)
    at = table.schema.get_field_index(column)
    array = change(table.column(column).combine_chunks())
    field = pa.field(column, array.type, False)
    table = table.set_column(at, field, array)
    with pa.ipc.new_file(path, table.schema) as writer:
        writer.write_batch(table.combine_chunks().to_batches()[0])


@pytest.mark.parametrize(
    "change",
    [
        lambda a: with_entry(a, 5, 99),
        lambda a: with_entry(a, 5, -1),
        lambda a: pa.ListArray.from_arrays(a.offsets, pa.array(a.values.to_numpy()[::-1].copy())),
    ],
    ids=["too large", "negative", "descending"],
)
def test_untrusted_places_of_sparse_values(tmp_path, change):
    file = tmp_path / "a.arrow"
    dump(scattered(sparse=True).queries[:], file)
    changed(file, "indices", change)
    with pytest.raises(InputError, match=r"a\.arrow: .*indices"):
        load(file)


def with_entry(lists, at, value):
    values = lists.values.to_numpy().copy()
    values[at] = value
    return pa.ListArray.from_arrays(lists.offsets, pa.array(values))


def test_bad_side_columns(tmp_path):
    file = tmp_path / "a.arrow"
    dump(scattered().queries[:], file)
    changed(file, "label", lambda a: pa.array(np.r_[np.inf, a.to_numpy()[1:]]))
    with pytest.raises(InputError, match="y is inf in row 0"):
        load(file)
    dump(scattered().queries[:], file)
    changed(file, "weight", lambda a: pa.array(-a.to_numpy()))
    with pytest.raises(InputError, match=r"weight is -.* not negative"):
        load(file)
    content = file.read_bytes()
    for cut in (0, 7, 300, len(content) // 2, len(content) - 9):
        file.write_bytes(content[:cut])
        with pytest.raises(InputError, match=r"a\.arrow: this is no Arrow file"):
            load(file)


def test_rows_that_are_not_grouped_are_loaded(tmp_path):
    file = tmp_path / "a.arrow"
    dump(make_ranking(4, 3, 2), file)
    changed(file, "qid", lambda a: pa.array(np.arange(len(a)) % 4))
    data = load(file)
    assert not is_mapped(data.X)
    assert data.order is not None


def test_document_ids_are_made_when_asked_for(tmp_path):
    data = scattered().queries[:]
    dump(data, tmp_path / "a.arrow")
    ids = load(tmp_path / "a.arrow").doc_ids
    wanted = data.doc_ids
    assert len(ids) == 300
    assert ids[3] == wanted[3]
    assert ids[-1] == wanted[-1]
    assert ids[5:9].tolist() == wanted[5:9].tolist()
    assert ids[[4, 2]].tolist() == wanted[[4, 2]].tolist()
    np.testing.assert_array_equal(np.asarray(ids), wanted)


@pytest.mark.skipif(not os.path.exists("/proc/self/status"), reason="needs Linux")
def test_memory_of_writing_and_opening(tmp_path):
    """The matrix has 128 MB; chunks of 3 MB of it are in memory at a time."""
    code = """
        import sys
        import numpy as np
        from leanrank.data import RankingData, make_ranking
        from leanrank.data import write_store
        from tests.memory import Peak
        def write(chunks, name):
            write_store(chunks, f"{sys.argv[1]}/{name}")
            return RankingData.open(f"{sys.argv[1]}/{name}")
        def chunks(n):
            rng = np.random.default_rng(0)
            for at in range(n):
                X, qid = rng.random((2_000, 200)), np.arange(2_000) // 100 + 20 * at
                runs = np.arange(2_001)
                yield RankingData.of_fields(X=X, y=X[:, 0], query_ids=qid, query_ptr=runs)
        write(chunks(1), "warm.arrow")
        with Peak() as peak:
            data = write(chunks(40), "a.arrow")
        assert data.X.nbytes == 128_000_000
        print(peak.bytes)
    """
    assert in_child(code, tmp_path) < 48e6


def test_more_values_than_32_bits_count(tmp_path):
    """Documents × features may exceed 2³¹; nulls take no room, so this does not either."""
    many = pa.nulls(2**31 + 5)
    store._write(pa.RecordBatch.from_arrays([many], ["x"]), tmp_path / "many.arrow")
    with pa.memory_map(str(tmp_path / "many.arrow")) as file:
        assert pa.ipc.open_file(file).get_batch(0).num_rows == len(many)


def test_a_temporary_file_takes_its_room_at_once(monkeypatch, tmp_path):
    """A mapped file without disk space ends the process by SIGBUS when it is filled."""
    asked = []

    def no_room(handle, start, n_bytes):
        asked.append(n_bytes)
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(os, "posix_fallocate", no_room)
    with pytest.raises(FileError, match=r"cannot be written \(No space left on device\)"):
        scratch((6, 100), np.float64, str(tmp_path))
    assert asked == [4800]
    assert not list(tmp_path.iterdir())
