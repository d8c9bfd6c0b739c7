"""Streams: the same documents as loading gives, in whole queries, from any position on."""

import bz2
import gzip
import io
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.data import (
    RankingData,
    dump,
    dump_letor,
    dump_parquet,
    load_letor,
    make_ranking,
    to_frame,
)
from leanrank.data.streams import Position, open_stream
from leanrank.errors import DataWarning, FileError, InputError, ParseError


@pytest.fixture(scope="module")
def data():
    return make_ranking(40, (1, 30), 7, random_state=3)


@pytest.fixture(scope="module")
def sparse_data():
    return make_ranking(40, (1, 30), 200, density=0.05, random_state=4)


@pytest.fixture
def text(data, tmp_path):
    dump_letor(data, tmp_path / "a.txt")
    return tmp_path / "a.txt"


def write_row_groups(data, path, n_rows):
    import pyarrow.parquet as pq

    pq.write_table(to_frame(data), path, row_group_size=n_rows)


def dense(data):
    return data.X.toarray() if data.is_sparse else np.asarray(data.X)


def joined(chunks, width):
    """Put chunks together by hand: rows padded to one width, queries in turn."""
    X = np.concatenate([np.pad(dense(c), ((0, 0), (0, width - c.n_features))) for c in chunks])
    y = np.concatenate([c.y for c in chunks])
    sizes = np.concatenate([np.diff(c.query_ptr) for c in chunks])
    ids = np.concatenate([c.query_ids for c in chunks])
    return X, y, sizes, ids


def assert_same(chunks, data):
    X, y, sizes, ids = joined(chunks, data.n_features)
    np.testing.assert_array_equal(X, dense(data))
    np.testing.assert_array_equal(y, data.y)
    np.testing.assert_array_equal(sizes, np.diff(data.query_ptr))
    assert ids.tolist() == data.query_ids.tolist()


@pytest.mark.parametrize("chunk_bytes", [1, 100, 1000, 7777, 10**7])
def test_text_gives_what_loading_gives(text, data, chunk_bytes):
    chunks = list(open_stream(text, chunk_bytes=chunk_bytes))
    assert_same(chunks, load_letor(text))
    assert (len(chunks) == 1) == (chunk_bytes == 10**7)


@pytest.mark.parametrize("chunk_bytes", [1, 500, 10**7])
def test_parquet_gives_what_was_written(data, chunk_bytes, tmp_path):
    write_row_groups(data, tmp_path / "a.parquet", 70)
    assert_same(list(open_stream(tmp_path / "a.parquet", chunk_bytes=chunk_bytes)), data)


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz", "a.arrow"])
def test_tables_are_read_in_chunks_and_entered_anywhere(name, data, tmp_path):
    dump(data, tmp_path / name)
    stream = open_stream(tmp_path / name, chunk_bytes=900)
    chunks = list(stream.read())
    assert len(chunks) > 2
    assert_same([chunk for chunk, _ in chunks], data)
    place = chunks[1][1]
    assert_same([chunk for chunk, _ in stream.read(place)], data.queries[place.queries :])


def test_a_sparse_store_is_read_in_chunks(sparse_data, tmp_path):
    dump(sparse_data, tmp_path / "a.arrow")
    for chunk_bytes in (1, 500, 10**7):
        assert_same(list(open_stream(tmp_path / "a.arrow", chunk_bytes=chunk_bytes)), sparse_data)


def test_a_directory_and_several_files(data, tmp_path):
    (tmp_path / "parts").mkdir()
    dump_parquet(data.queries[:9], tmp_path / "parts" / "0.parquet")
    dump_parquet(data.queries[9:20], tmp_path / "parts" / "1.parquet")
    dump_letor(data.queries[20:], tmp_path / "rest.txt")
    stream = open_stream([tmp_path / "parts", tmp_path / "rest.txt"], chunk_bytes=900)
    assert_same(list(stream), data)
    assert [p.part for _, p in stream.read()][-1] == 2


def test_all_columns_of_a_parquet_file(tmp_path):
    data = RankingData(
        [[1.0], [2.0], [3.0]],
        [0, 1, 1],
        ["b", "a", "a"],
        doc_ids=["x", "y", "z"],
        feature_names=["bm25"],
        sample_weight=[1, 2, 3],
        query_weight=[0.5, 2],
        offset=[0, 1, 0],
    )
    dump_parquet(data, tmp_path / "a.parquet")
    first, second = open_stream(tmp_path / "a.parquet", chunk_bytes=1)
    assert first.doc_ids.tolist() == ["x"]
    assert second.offset.tolist() == [1, 0]
    assert first.sample_weight.tolist() == [1]
    assert second.query_weight.tolist() == [2]
    assert first.feature_names == ("bm25",)
    assert second.query_ids.tolist() == ["a"]


@pytest.mark.parametrize("kind", ["text", "gz", "parquet", "list", "generator"])
def test_reading_goes_on_from_every_position(kind, data, tmp_path):
    if kind in ("text", "gz"):
        path = tmp_path / ("a.txt.gz" if kind == "gz" else "a.txt")
        dump_letor(data, path)
    else:
        path = tmp_path / "a.parquet"
        write_row_groups(data, path, 300)

    def opened():
        chunks = [data.queries[at : at + 7] for at in range(0, 40, 7)]
        if kind == "list":
            return open_stream(chunks)
        if kind == "generator":
            return open_stream(iter(chunks))
        return open_stream(path, chunk_bytes=3000)

    whole = list(opened().read())
    assert len(whole) > 3
    for at, (_, position) in enumerate(whole):
        again = Position(**vars(position))
        rest = list(opened().read(again))
        assert [p for _, p in rest] == [p for _, p in whole[at + 1 :]]
        for (a, _), (b, _) in zip(rest, whole[at + 1 :], strict=True):
            assert a.X.tobytes() == b.X.tobytes()
            assert a.y.tobytes() == b.y.tobytes()
    assert whole[-1][1].queries == 40
    assert whole[-1][1].documents == len(data)


def test_a_query_larger_than_many_chunks(tmp_path):
    lines = [f"{at % 3} qid:big 1:{at}\n" for at in range(500)]
    lines += [f"1 qid:{at} 1:1\n" for at in range(3000)]
    (tmp_path / "a.txt").write_text("".join(lines))
    chunks = list(open_stream(tmp_path / "a.txt", chunk_bytes=16))
    assert chunks[0].query_ptr[1] == 500
    assert len(chunks) > 100
    assert sum(c.n_queries for c in chunks) == 3001


def test_compression_standard_input_and_line_ends(text, data, tmp_path, monkeypatch):
    plain = text.read_bytes()
    (tmp_path / "b.txt.bz2").write_bytes(bz2.compress(plain))
    assert_same(list(open_stream(tmp_path / "b.txt.bz2", chunk_bytes=999)), data)
    for packed in (plain, gzip.compress(plain), b"\xef\xbb\xbf" + plain.replace(b"\n", b"\r\n")):
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(packed)))
        stream = open_stream("-", chunk_bytes=999)
        assert not stream.rewinds
        assert_same(list(stream), data)


def test_comments_blank_lines_and_no_last_line_break(tmp_path):
    text = "# head\n\n1 qid:a 1:1 #x\n   \n# qid:b in a comment\n0 qid:a#c\n\n# tail\n1 qid:b 2:5"
    (tmp_path / "a.txt").write_text(text)
    for chunk_bytes in range(1, len(text) + 2):
        chunks = list(open_stream(tmp_path / "a.txt", chunk_bytes=chunk_bytes))
        X, y, sizes, ids = joined(chunks, 2)
        assert X.tolist() == [[1, 0], [0, 0], [0, 5]]
        assert y.tolist() == [1, 0, 1]
        assert sizes.tolist() == [2, 1]
        assert ids.tolist() == ["a", "b"]


@settings(max_examples=60, deadline=None)
@given(
    rows=st.lists(st.tuples(st.integers(0, 2), st.sampled_from("abc"), st.integers(0, 3))),
    chunk_bytes=st.integers(1, 120),
)
def test_runs_are_queries_whatever_the_chunks(rows, chunk_bytes, tmp_path_factory):
    folder = tmp_path_factory.mktemp("fuzz")
    path = folder / "a.txt"
    path.write_text("".join(f"{y} qid:{q} 1:{x}\n" for y, q, x in rows))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        chunks = list(open_stream(path, chunk_bytes=chunk_bytes))
    runs = []
    for y, q, x in rows:
        if not runs or runs[-1][0] != q:
            runs.append((q, []))
        runs[-1][1].append((float(y), float(x)))
    read = []
    for c in chunks:
        for r, name in enumerate(c.query_ids):
            at = slice(c.query_ptr[r], c.query_ptr[r + 1])
            column = dense(c)[at, 0] if c.n_features else np.zeros(at.stop - at.start)
            read.append((name, list(zip(c.y[at].tolist(), column.tolist(), strict=True))))
    assert read == runs


@pytest.mark.parametrize("chunk_bytes", [1, 30, 10**6])
def test_errors_name_the_line_of_the_file(tmp_path, chunk_bytes):
    lines = [f"1 qid:{at // 3} 1:{at}\n" for at in range(20)]
    lines[13] = "1 qid:4 1:x\n"
    (tmp_path / "a.txt").write_text("".join(lines))
    with pytest.raises(ParseError, match=r"a\.txt, line 14, column 11: the value 'x'"):
        list(open_stream(tmp_path / "a.txt", chunk_bytes=chunk_bytes))


def test_the_line_is_right_after_resuming(tmp_path):
    lines = [f"1 qid:{at // 3} 1:{at}\n" for at in range(20)]
    lines[13] = "1 4 1:x\n"
    (tmp_path / "a.txt").write_text("".join(lines))
    stream = open_stream(tmp_path / "a.txt", chunk_bytes=40)
    _, position = next(stream.read())
    with pytest.raises(ParseError, match=r"a\.txt, line 14"):
        list(stream.read(position))


def test_a_damaged_archive(text, tmp_path):
    packed = gzip.compress(text.read_bytes())
    (tmp_path / "b.txt.gz").write_bytes(packed[: len(packed) // 2])
    with pytest.raises(ParseError, match=r"b\.txt\.gz: the gz data are damaged or cut short"):
        list(open_stream(tmp_path / "b.txt.gz", chunk_bytes=500))


def test_wrong_features_and_infinity_in_parquet(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"label": [1, 0, 1], "qid": [1, 2, 2], "f": [0.5, 1.0, float("inf")]})
    pq.write_table(table, tmp_path / "a.parquet")
    with pytest.raises(InputError, match=r"column 'f' of .*a\.parquet is inf in row 2 \(counted"):
        list(open_stream(tmp_path / "a.parquet", chunk_bytes=1))
    nameless = table.set_column(1, "qid", pa.array([1, 2, None]))
    pq.write_table(nameless, tmp_path / "b.parquet")
    with pytest.raises(InputError, match=r"column 'qid' of .*b\.parquet has no value in row"):
        list(open_stream(tmp_path / "b.parquet", chunk_bytes=1))
    (tmp_path / "d").mkdir()
    pq.write_table(table.drop_columns(["f"]), tmp_path / "d" / "0.parquet")
    pq.write_table(table, tmp_path / "d" / "1.parquet")
    with pytest.raises(InputError, match=r"1\.parquet: its columns are not those of"):
        open_stream(tmp_path / "d")


def test_a_query_that_comes_back_is_another_with_one_warning(tmp_path):
    lines = [f"1 qid:{query} 1:1\n" for query in ("a", "a", "b", "a", "b", "c")]
    (tmp_path / "a.txt").write_text("".join(lines))
    for chunk_bytes in (1, 10**6):
        with pytest.warns(DataWarning, match=r"a\.txt: query a occurs again") as seen:
            chunks = list(open_stream(tmp_path / "a.txt", chunk_bytes=chunk_bytes))
        assert len(seen) == 1
        assert joined(chunks, 1)[2].tolist() == [2, 1, 1, 1, 1]


def test_a_parquet_query_that_comes_back(tmp_path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    table = pa.table({"label": [1, 0, 1, 1], "qid": [5, 5, 2, 5], "f": [1.0, 2.0, 3.0, 4.0]})
    pq.write_table(table, tmp_path / "a.parquet")
    for chunk_bytes in (1, 10**6):
        with pytest.warns(DataWarning, match="query 5 occurs again"):
            chunks = list(open_stream(tmp_path / "a.parquet", chunk_bytes=chunk_bytes))
        X, _, sizes, ids = joined(chunks, 1)
        assert X.ravel().tolist() == [1, 2, 3, 4]
        assert sizes.tolist() == [2, 1, 1]
        assert ids.tolist() == [5, 2, 5]


def test_files_may_use_the_same_query_names(text, data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        chunks = list(open_stream([text, text]))
    assert sum(c.n_queries for c in chunks) == 80


@pytest.mark.parametrize("kind", ["txt", "parquet"])
def test_reading_again_is_no_return_of_queries(kind, data, tmp_path):
    path = tmp_path / f"a.{kind}"
    (dump_letor if kind == "txt" else dump_parquet)(data, path)
    stream = open_stream(path, chunk_bytes=3000)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        positions = [position for _, position in stream.read()]
        for position in (None, *positions):
            list(stream.read(position))


def test_tuples():
    X = np.arange(4.0)[:, None]
    a, b = open_stream([(X, [1, 0, 1, 0], [1, 1, 2, 2]), (X, [1, 0, 1, 0])])
    assert a.query_ids.tolist() == [1, 2]
    assert b.n_queries == 1


def test_what_cannot_be_a_stream(tmp_path, data):
    with pytest.raises(FileError, match=r"none\.txt: there is no such file"):
        open_stream(tmp_path / "none.txt")
    with pytest.raises(InputError, match="already in memory"):
        open_stream(data)
    with pytest.raises(InputError, match="chunk 0 of the stream is int"):
        list(open_stream([3]))
    with pytest.raises(InputError, match="chunk 1 of the stream: "):
        list(open_stream([([[1.0]], [1], [1]), ([[1.0]], [1, 2], [1])]))
    with pytest.raises(InputError, match="dtype is about files"):
        open_stream([data], dtype="float32")
    (tmp_path / "a.txt").write_text("1 qid:1 1:1\n")
    with pytest.raises(InputError, match="zero_based='auto'"):
        open_stream(tmp_path / "a.txt", zero_based="auto")


def test_another_file_has_another_identity(text, tmp_path):
    same = open_stream(text).identity()
    assert open_stream(str(text)).identity() == same
    text.write_bytes(text.read_bytes()[:-1] + b" \n")
    assert open_stream(text).identity() != same
    content = text.read_bytes()
    text.write_bytes(b"2" + content[1:])
    assert open_stream(text).identity() != same
