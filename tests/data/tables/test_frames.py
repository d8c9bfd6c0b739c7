import numpy as np
import pytest

pa = pytest.importorskip("pyarrow")
pytest.importorskip("narwhals")
pd = pytest.importorskip("pandas")
pl = pytest.importorskip("polars")

from leanrank.data import (  # noqa: E402
    RankingData,
    dump,
    from_frame,
    load,
    make_ranking,
    to_frame,
)
from leanrank.data.tables.arrow import fill_rows  # noqa: E402
from leanrank.errors import InputError  # noqa: E402

BACKENDS = ["pyarrow", "pandas", "polars"]
COLUMNS = {
    "grade": [2, 0, 1, 0],
    "query": ["b", "a", "b", "a"],
    "bm25": [1.5, 2.5, 3.5, 4.5],
    "clicks": [1, 2, 3, 4],
    "fresh": [True, False, True, True],
}
MAKERS = {
    "pandas": pd.DataFrame,
    "polars": pl.DataFrame,
    "pyarrow": pa.table,
    "reader": lambda columns: pa.table(columns).to_reader(max_chunksize=3),
    "batch": lambda columns: pa.RecordBatch.from_pydict(columns),
    "capsule": lambda columns: OnlyCapsule(pa.table(columns)),
}


class OnlyCapsule:
    """A table of a library nobody has heard of."""

    def __init__(self, table):
        self._table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self._table.__arrow_c_stream__(requested_schema)


def full(dtype=np.float64, sparse=False, names=True):
    data = make_ranking(30, (1, 20), 40, dtype=dtype, density=0.1 if sparse else 1.0)
    return RankingData(
        data.X,
        data.y,
        [f"WT04-{q}" for q in data.qid],
        doc_ids=[f"d{i}" for i in range(len(data))],
        sample_weight=np.arange(len(data)) / 7,
        query_weight=np.arange(30),
        offset=-data.y,
        feature_names=[f"n{j}" for j in range(40)] if names else None,
    )


def same(a, b):
    assert a.is_sparse == b.is_sparse
    assert a.X.dtype == b.X.dtype
    X, Z = (d.X.toarray() if d.is_sparse else d.X for d in (a, b))
    np.testing.assert_array_equal(X, Z)
    for field in ("y", "qid", "query_ptr", "doc_ids", "sample_weight", "query_weight", "offset"):
        np.testing.assert_array_equal(getattr(a, field), getattr(b, field), err_msg=field)
    assert a.feature_names == b.feature_names


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_any_library_gives_the_same(maker):
    data = from_frame(maker(COLUMNS), label="grade", qid="query")
    assert data.feature_names == ("bm25", "clicks", "fresh")
    assert data.X.dtype == np.float64
    assert data.query_ids.tolist() == ["b", "a"]
    np.testing.assert_array_equal(data.X, [[1.5, 1, 1], [3.5, 3, 1], [2.5, 2, 0], [4.5, 4, 1]])
    np.testing.assert_array_equal(data.restore(data.y), COLUMNS["grade"])


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_there_and_back(backend, dtype):
    data = full(dtype)
    frame = to_frame(data, backend)
    assert type(frame).__module__.split(".")[0] == backend
    same(from_frame(frame), data)


def test_arrow_remembers_what_is_what():
    for data in (full(), full(names=False), make_ranking(3)):
        same(from_frame(to_frame(data)), data)


def test_sparse_data_are_no_table():
    with pytest.raises(InputError, match="cannot hold sparse data"):
        to_frame(full(sparse=True))


def test_threads_change_nothing():
    frame = to_frame(make_ranking(900, 50, 3), "polars")
    same(from_frame(frame, n_jobs=3), from_frame(frame))


def test_chunks_of_columns_need_not_agree():
    rng = np.random.default_rng(0)
    n = 40_000
    values = rng.normal(size=(n, 3))
    table = pa.table(
        {
            "label": pa.chunked_array([np.zeros(n)]),
            "qid": pa.chunked_array([np.zeros(10, int), np.ones(n - 10, int)]),
            "a": pa.chunked_array(np.array_split(values[:, 0], 7)),
            "b": pa.chunked_array(np.array_split(values[:, 1], 90)),
            "c": pa.chunked_array([values[:, 2]]),
        }
    )
    np.testing.assert_array_equal(from_frame(table).X, values)


def test_float32_only_if_all_are():
    single = pa.array([1.0, 2.0], pa.float32())
    base = {"label": [0, 1], "qid": [1, 1], "a": single}
    assert from_frame(pa.table(base)).X.dtype == np.float32
    assert from_frame(pa.table({**base, "b": [1.0, 2.0]})).X.dtype == np.float64
    assert from_frame(pa.table({**base, "b": [1, 2]})).X.dtype == np.float64


@pytest.mark.parametrize(
    ("ids", "expected"),
    [
        (pa.array(["x", "y", "x"]).dictionary_encode(), ["x", "y"]),
        (pa.array(["x", "y", "x"], pa.large_string()), ["x", "y"]),
        (pa.array(["x", "y", "x"], pa.string_view()), ["x", "y"]),
        (pa.array([7, 8, 7], pa.uint8()), [7, 8]),
        (pa.array([1.5, 2.5, 1.5]), [1.5, 2.5]),
        (pa.chunked_array([["x"], ["y", "x"]]).dictionary_encode(), ["x", "y"]),
    ],
)
def test_queries_of_any_type(ids, expected):
    data = from_frame(pa.table({"label": [0, 1, 2], "qid": ids, "a": [1.0, 2.0, 3.0]}))
    assert data.query_ids.tolist() == expected
    assert data.X.ravel().tolist() == [1.0, 3.0, 2.0]


def test_dates_as_queries():
    days = pa.array([0, 1, 0], pa.date32())
    data = from_frame(pa.table({"label": [0, 1, 2], "qid": days, "a": [1.0, 2.0, 3.0]}))
    assert [str(day) for day in data.query_ids] == ["1970-01-01", "1970-01-02"]


def test_pandas_categories_and_row_labels():
    frame = pd.DataFrame(
        {"label": [0, 1, 2], "qid": pd.Categorical(["b", "a", "b"]), "x": [1.0, 2.0, 3.0]}
    )
    kept = frame[frame.x > 1]
    assert from_frame(kept).feature_names == ("x",)
    assert from_frame(kept).query_ids.tolist() == ["a", "b"]
    by_document = frame.set_index(pd.Index(["d1", "d2", "d3"], name="doc"))
    assert from_frame(by_document).feature_names == ("x",)
    assert from_frame(by_document, doc_id="doc").doc_ids.tolist() == ["d1", "d3", "d2"]


def test_features_can_be_chosen():
    data = from_frame(pa.table(COLUMNS), label="grade", qid=None, features=["clicks", "bm25"])
    assert data.feature_names == ("clicks", "bm25")
    assert data.n_queries == 1


def test_no_label_and_missing_labels():
    columns = {"qid": [1, 1], "a": [1.0, 2.0]}
    assert np.isnan(from_frame(pa.table(columns), label=None).y).all()
    y = from_frame(pa.table({**columns, "label": pa.array([None, 1], pa.int64())})).y
    np.testing.assert_array_equal(y, [np.nan, 1])


def test_text_column_named_doc_id_is_taken():
    table = pa.table({"label": [0], "qid": [1], "doc_id": ["d"], "a": [1.0]})
    assert from_frame(table).doc_ids.tolist() == ["d"]
    assert from_frame(table).feature_names == ("a",)


def test_empty_tables():
    data = full()
    empty = from_frame(to_frame(data).slice(0, 0))
    assert (len(empty), empty.n_queries, empty.n_features) == (0, 0, 40)


BASE = {"label": [0, 1], "qid": [1, 1], "a": [1.0, 2.0]}


@pytest.mark.parametrize("maker", MAKERS.values(), ids=MAKERS)
def test_missing_values_are_nan(maker):
    data = from_frame(maker({**BASE, "b": [1.0, None]}))
    np.testing.assert_array_equal(data.X, [[1.0, 1.0], [2.0, np.nan]])


@pytest.mark.parametrize(
    ("columns", "options", "words"),
    [
        (BASE, {"label": "grade"}, "no column 'grade' for label.*columns: 'label', 'qid', 'a'"),
        (BASE, {"qid": "query"}, "no column 'query' for qid"),
        (BASE, {"weight": "w"}, "no column 'w' for weight: name the right one with `weight=…`"),
        (BASE, {"features": ["z"]}, "no column 'z' for a feature"),
        (BASE, {"features": ["a", "label"]}, "'label' is the label: leave it out of `features=…`"),
        (BASE, {"features": ["a", "a"]}, "the feature name 'a' occurs twice"),
        (BASE, {"features": "a"}, "list of column names"),
        ({**BASE, "url": ["x", "y"]}, {}, "column 'url' .* holds string.*`features=…`"),
        ({**BASE, "when": [[1], [2]]}, {}, "'when' .* holds list"),
        ({**BASE, "qid": [1, None]}, {}, "'qid' .* no value in row 1"),
        (
            {**BASE, "label": ["x", "y"]},
            {},
            "column 'label' .* holds string.*`label=…`",
        ),
        ({**BASE, "w": [1.0, -1.0]}, {"weight": "w"}, "sample_weight is -1.0 in row 1"),
        ({**BASE, "w": [1.0, 2.0]}, {"query_weight": "w"}, "query_weight differs"),
        ({**BASE, "b": [1.0, np.inf]}, {}, "'b' of the table is inf in row 1"),
    ],
)
def test_errors_name_the_column(columns, options, words):
    with pytest.raises(InputError, match=words):
        from_frame(pa.table(columns), **options)


@pytest.mark.parametrize("notes", ['{"version": 2}', "{}", "[1]", "{"])
def test_damaged_notes(notes):
    table = pa.table({"label": [0], "qid": [1], "x": [1.0]})
    with pytest.raises(InputError, match="notes under 'leanrank' that are damaged"):
        from_frame(table.replace_schema_metadata({"leanrank": notes}))


def test_two_columns_of_one_name():
    table = pa.Table.from_arrays([pa.array([1.0])] * 2, names=["a", "a"])
    with pytest.raises(InputError, match="two columns named 'a'"):
        from_frame(table, label=None, qid=None)


def test_not_a_table():
    with pytest.raises(InputError, match="list is not a table"):
        from_frame([COLUMNS])
    with pytest.raises(InputError, match="collect it first"):
        from_frame(pl.DataFrame(COLUMNS).lazy())


def test_notes_of_a_newer_version_are_refused():
    table = to_frame(full()).replace_schema_metadata({"leanrank": '{"version": 99}'})
    with pytest.raises(InputError, match="another version"):
        from_frame(table)
    with pytest.raises(InputError, match="damaged"):
        from_frame(table.replace_schema_metadata({"leanrank": "?"}))


def test_feature_named_like_another_column():
    data = make_ranking(2, n_features=2).replace(feature_names=["label", "x"])
    with pytest.raises(InputError, match="a feature is named 'label'"):
        to_frame(data)


def test_unknown_backend():
    with pytest.raises(InputError, match="choose 'pyarrow', 'pandas' or 'polars'"):
        to_frame(make_ranking(2), "excel")


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(1, 1), (15, 3), (2049, 40), (5000, 7)])
def test_columns_are_written_into_rows(dtype, shape):
    X = np.random.default_rng(0).normal(size=shape).astype(dtype)
    columns = [column.copy() for column in X.T]
    for other in (np.float32, np.float64):
        inside = np.zeros((shape[0] + 2, shape[1]), dtype=other)
        fill_rows(inside[1:-1], columns)
        np.testing.assert_array_equal(inside[1:-1], X.astype(other))
        assert not inside[0].any()
        assert not inside[-1].any()


RESERVED = {
    "label": [1, 0],
    "qid": [1, 1],
    "doc_id": [11, 12],
    "weight": [1.0, 2.0],
    "query_weight": [3, 3],
    "offset": [0.5, 0],
    "bm25": [1.5, 2.5],
}


@pytest.mark.parametrize("backend", ["pandas", "polars", "pyarrow", "parquet", "arrow", "csv"])
def test_reserved_names_are_roles_whatever_their_type(tmp_path, backend):
    if backend in MAKERS:
        read, source = from_frame, MAKERS[backend](RESERVED)
    else:
        read, source = load, tmp_path / f"a.{backend}"
        frame = pl.DataFrame(RESERVED)
        writers = {"parquet": frame.write_parquet, "arrow": frame.write_ipc}
        writers.get(backend, frame.write_csv)(source)
    data = read(source)
    assert data.feature_names == ("bm25",)
    assert data.doc_ids.tolist() == ["11", "12"]
    assert data.sample_weight.tolist() == [1.0, 2.0]
    assert data.query_weight.tolist() == [3.0]
    assert data.offset.tolist() == [0.5, 0.0]
    as_feature = read(source, features=["weight", "bm25"])
    assert as_feature.feature_names == ("weight", "bm25")
    assert as_feature.sample_weight is None
    without = read(source, label=None, weight="bm25", features=["offset"])
    assert without.feature_names == ("offset",)
    assert np.isnan(without.y).all()
    assert without.sample_weight.tolist() == [1.5, 2.5]
    assert read(source, label=None, qid=None).feature_names == ("bm25",)


def test_files_that_leanrank_wrote_may_have_features_of_reserved_names(tmp_path):
    data = RankingData([[1.0, 2.0]], [1], feature_names=["weight", "bm25"])
    for name in ("a.parquet", "a.arrow"):
        dump(data, tmp_path / name)
        assert load(tmp_path / name).feature_names == ("weight", "bm25")
    with pytest.raises(InputError, match="'weight'"):
        dump(data, tmp_path / "a.csv")


@pytest.mark.parametrize("kind", [pl.Categorical, pl.Enum(["a", "b"])])
def test_categories_of_polars(kind):
    frame = pl.DataFrame({"label": [1, 0], "qid": ["a", "b"], "doc_id": ["b", "a"], "x": [1, 2]})
    data = from_frame(frame.with_columns(pl.col("qid", "doc_id").cast(kind)))
    assert (data.qid.tolist(), data.doc_ids.tolist()) == (["a", "b"], ["b", "a"])
    with pytest.raises(InputError, match="'x'"):
        from_frame(frame.with_columns(x=pl.Series(["a", "b"]).cast(kind)))


def test_a_column_of_several_types():
    with pytest.raises(InputError, match="each of one type"):
        from_frame(pd.DataFrame({"label": [1, 0], "qid": [1, "a"], "x": [1.0, 2.0]}))


def test_columns_in_a_mapping_are_a_table():
    same(
        from_frame({"qid": ["a", "b"], "label": [1, 0], "x": [1.0, 2.0]}),
        from_frame(pa.table({"qid": ["a", "b"], "label": [1, 0], "x": [1.0, 2.0]})),
    )


def test_empty_names_in_a_part_of_a_table():
    pa = pytest.importorskip("pyarrow")
    from leanrank.data.tables.files import whole_numbers

    part = whole_numbers(pa.table({"a": ["x", "7", "", "9"]}).slice(1), ["a"])
    part.validate(full=True)
    assert part.column("a").to_pylist() == [7, None, 9]
