import copy
import datetime
import pickle

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.data import RankingData
from leanrank.data.ranking_data import (
    group_rows,
    group_sizes_to_qid,
    informative_queries,
)
from leanrank.errors import InputError

DAY = datetime.date(2020, 1, 1)
IDS = {
    "integers": ([3, 1, 3, 2, 1], [3, 1, 2]),
    "unsigned": (np.array([3, 1, 3, 2, 1], dtype=np.uint8), [3, 1, 2]),
    "floats": ([0.5, -1.0, 0.5, 2.0, -1.0], [0.5, -1.0, 2.0]),
    "strings": (["WT04-3", "b", "WT04-3", "é", "b"], ["WT04-3", "b", "é"]),
    "bytes": ([b"3", b"1", b"3", b"2", b"1"], [b"3", b"1", b"2"]),
    "booleans": ([True, False, True, True, False], [True, False]),
    "tuples": ([("a", 1), ("b", 1), ("a", 1), ("a", 2), ("b", 1)], [("a", 1), ("b", 1), ("a", 2)]),
    "1 and '1'": ([1, "1", 1, "x", "1"], [1, "1", "x"]),
    "objects": (np.array([DAY, "x", DAY, 7, "x"], dtype=object), [DAY, "x", 7]),
    "dates": (np.array(["2020", "2019", "2020", "2021", "2019"], "M8[D]"), None),
    "a column": (np.array([[3], [1], [3], [2], [1]]), [3, 1, 2]),
}


@pytest.mark.parametrize(("qid", "expected"), IDS.values(), ids=IDS)
def test_grouping_of_any_hashable_type(qid, expected):
    grouping = group_rows(qid, 5)
    if expected is not None:
        assert grouping.query_ids.tolist() == expected
    sizes = [2, 3] if len(grouping.query_ids) == 2 else [2, 2, 1]
    if expected == [True, False]:
        sizes = [3, 2]
    assert np.diff(grouping.query_ptr).tolist() == sizes
    values = np.arange(5.0)
    np.testing.assert_array_equal(grouping.restore(grouping.take(values)), values)
    first = [grouping.take(values)[p] for p in grouping.query_ptr[:-1]]
    assert first == sorted(first)  # in order of first appearance


@settings(max_examples=200, deadline=None)
@given(st.lists(st.integers(0, 5), max_size=30))
def test_grouping_equals_the_slow_way(qid):
    grouping = group_rows(np.array(qid, dtype=np.int64))
    order, seen = [], list(dict.fromkeys(qid))
    for query in seen:
        order += [row for row, other in enumerate(qid) if other == query]
    assert grouping.query_ids.tolist() == seen
    assert np.diff(grouping.query_ptr).tolist() == [qid.count(query) for query in seen]
    assert (list(range(len(qid))) if grouping.order is None else grouping.order.tolist()) == order


def test_rows_that_are_grouped_are_not_moved():
    assert group_rows(["b", "b", "a"]).order is None
    X = np.arange(6.0).reshape(3, 2)
    assert np.shares_memory(RankingData(X, [0, 1, 2], ["b", "b", "a"]).X, X)


@pytest.mark.parametrize(
    "qid",
    [
        [1.0, float("nan")],
        ["a", None],
        np.array(["2020-01-01", "NaT"], dtype="M8[D]"),
        np.array(["a", float("nan")], dtype=object),
    ],
)
def test_missing_queries(qid):
    with pytest.raises(InputError, match="qid is missing in row 1"):
        group_rows(qid)


def test_missing_queries_of_pandas():
    pd = pytest.importorskip("pandas")
    for series in (pd.Series([1, None], dtype="Int64"), pd.Series(["a", None], dtype="category")):
        with pytest.raises(InputError, match="qid is missing in row 1"):
            group_rows(series)
    assert group_rows(pd.Series([2, 2, 1], dtype="Int64")).query_ids.tolist() == [2, 1]


def test_bad_queries():
    with pytest.raises(InputError, match="qid has 2 values but there are 3 documents"):
        group_rows([1, 2], 3)
    with pytest.raises(InputError, match="qid has 2 dimensions"):
        group_rows(np.zeros((2, 2)))
    lists = np.empty(2, dtype=object)
    lists[:] = [["a"], ["b"]]
    with pytest.raises(InputError, match="cannot be hashed"):
        group_rows(lists)


def test_group_sizes():
    assert group_sizes_to_qid([2, 0, 1], 3).tolist() == [0, 0, 2]
    data = RankingData(np.eye(3), [0, 1, 2], group=[2, 1])
    assert data.query_ptr.tolist() == [0, 2, 3]
    for wrong, words in (
        ([2, 2], "group sizes add up to 4 but there are 3 documents"),
        ([4, -1], "whole, non-negative"),
        ([1.0, 2.0], "whole, non-negative"),
        ([[1, 2]], "group has 2 dimensions"),
    ):
        with pytest.raises(InputError, match=words):
            RankingData(np.eye(3), group=wrong)
    with pytest.raises(InputError, match="both qid and group"):
        RankingData(np.eye(3), qid=[1, 1, 1], group=[3])


def shuffled(sparse=False, dtype=np.float64):
    """A set of 60 documents in 7 queries whose rows come in no order, and what it is made of."""
    rng = np.random.default_rng(0)
    X = (rng.random((60, 4)) * (rng.random((60, 4)) < 0.5)).astype(dtype)
    parts = {
        "y": rng.integers(0, 3, 60).astype(float),
        "qid": np.concatenate((np.arange(7), rng.integers(0, 7, 53))),
        "doc_ids": np.array([f"d{i}" for i in range(60)]),
        "sample_weight": rng.random(60),
        "offset": rng.normal(size=60),
    }
    data = RankingData(
        sp.csr_array(X) if sparse else X,
        feature_names=list("abcd"),
        query_weight=np.arange(7.0),
        **parts,
    )
    return data, X, parts


def dense(X):
    return X.toarray() if sp.issparse(X) else X


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_everything_is_grouped_alike_and_restored(sparse, dtype):
    data, X, parts = shuffled(sparse, dtype)
    assert data.X.dtype == dtype
    assert data.is_sparse == sparse
    assert (len(data), data.n_queries, data.n_features) == (60, 7, 4)
    assert data.query_ids.tolist() == list(range(7))
    order = np.argsort(parts["qid"], kind="stable")
    np.testing.assert_array_equal(dense(data.X), X[order])
    for name, values in parts.items():
        np.testing.assert_array_equal(getattr(data, name), values[order])
        np.testing.assert_array_equal(data.restore(getattr(data, name)), values)
    np.testing.assert_array_equal(data.restore(dense(data.X)), X)
    with pytest.raises(InputError, match="there are 3 values for 60 documents"):
        data.restore([1, 2, 3])


@pytest.mark.parametrize("sparse", [False, True])
def test_immutable(sparse):
    data, _, _ = shuffled(sparse)
    with pytest.raises(AttributeError, match="immutable"):
        data.y = 1
    arrays = [data.y, data.qid, data.query_ids, data.query_ptr, data.order, data.doc_ids]
    arrays += [data.sample_weight, data.query_weight, data.offset, data.levels, data.informative]
    arrays += [data.X.data, data.X.indices, data.X.indptr] if sparse else [data.X]
    for array in arrays:
        with pytest.raises(ValueError, match="read-only"):
            array[0] = array[0]


def test_the_callers_arrays_stay_writeable():
    X, y = np.eye(3), np.zeros(3)
    RankingData(X, y)
    X[0, 0] = y[0] = 2
    matrix = sp.csr_array(np.eye(3))
    RankingData(matrix)
    matrix.data[0] = 2


@pytest.mark.parametrize("kind", [sp.csr_array, sp.csr_matrix])
@pytest.mark.parametrize("dtype", [np.float64, np.int64])
def test_sparse_input_is_put_in_order_without_touching_it(kind, dtype):
    values, columns, ptr = np.array([1, 2, 3, 4], dtype=dtype), [2, 0, 1, 1], [0, 2, 4]
    given_matrix = kind((values, np.array(columns), np.array(ptr)), shape=(2, 3))
    data = RankingData(given_matrix)
    assert data.X.toarray().tolist() == [[2, 0, 1], [0, 7, 0]]
    assert data.X.has_canonical_format
    assert isinstance(data.X, sp.csr_array)
    assert given_matrix.data.tolist() == [1, 2, 3, 4]
    assert given_matrix.indices.tolist() == columns
    assert given_matrix.indptr.tolist() == ptr


@pytest.mark.parametrize("make", [sp.csc_array, sp.coo_array, sp.lil_array, sp.dok_array])
def test_any_sparse_format(make):
    X = np.array([[0.0, 1, 2], [3, 0, 0]])
    assert RankingData(make(X)).X.toarray().tolist() == X.tolist()


def test_dense_input_of_any_kind():
    for X in (
        [[1, 2], [3, 4]],
        np.array([[1, 2], [3, 4]], dtype=">f8"),
        np.asfortranarray([[1.0, 2], [3, 4]]),
    ):
        data = RankingData(X)
        assert data.X.dtype == np.float64
        assert data.X.dtype.isnative
        assert data.X.flags.c_contiguous
        assert data.X.tolist() == [[1, 2], [3, 4]]
    assert RankingData(np.ones((2, 2), dtype=np.float16)).X.dtype == np.float64
    assert RankingData(np.ones((2, 2), dtype=bool)).X.dtype == np.float64


SELECTIONS = {
    "one": 3,
    "last": -1,
    "numpy integer": np.int64(2),
    "slice": slice(2, 5),
    "backwards": slice(None, None, -1),
    "steps": slice(0, None, 3),
    "beyond": slice(5, 100),
    "list": [4, 0, 2],
    "negative": [-1, -7],
    "twice": [1, 1],
    "mask": [True, False, True, False, False, True, False],
    "nothing": [],
    "empty slice": slice(3, 3),
    "empty mask": [False] * 7,
}


@pytest.mark.parametrize("key", SELECTIONS.values(), ids=SELECTIONS)
@pytest.mark.parametrize("sparse", [False, True])
def test_selecting_queries(key, sparse):
    data, _, _ = shuffled(sparse)
    chosen = np.atleast_1d(np.arange(7)[key])
    part = data.queries[key]
    rows = np.concatenate(
        [np.arange(*data.query_ptr[q : q + 2]) for q in chosen] or [np.empty(0, int)]
    ).astype(int)
    assert part.query_ids.tolist() == data.query_ids[chosen].tolist()
    assert part.X.shape == (len(rows), 4)
    np.testing.assert_array_equal(dense(part.X), dense(data.X)[rows])
    for name in ("y", "qid", "doc_ids", "sample_weight", "offset"):
        np.testing.assert_array_equal(getattr(part, name), getattr(data, name)[rows])
    np.testing.assert_array_equal(part.query_weight, data.query_weight[chosen])
    np.testing.assert_array_equal(np.diff(part.query_ptr), np.diff(data.query_ptr)[chosen])
    assert part.feature_names == data.feature_names
    assert part.order is None
    again = part.replace(y=part.y + 1)  # a query taken twice stays two queries
    np.testing.assert_array_equal(again.query_ptr, part.query_ptr)
    np.testing.assert_array_equal(again.query_ids, part.query_ids)


def test_consecutive_queries_share_memory():
    data, _, _ = shuffled()
    assert np.shares_memory(data.queries[2:5].X, data.X)
    assert len(data.queries) == 7


@pytest.mark.parametrize("key", [7, -8, [0, 7], [True], [0.5], "a", True, [[0, 1]], (0, 1), None])
def test_bad_selections(key):
    with pytest.raises(IndexError):
        shuffled()[0].queries[key]


def test_replace():
    data, _, _ = shuffled()
    other = data.replace(X=data.X[:, :2], feature_names=["a", "b"], sample_weight=None)
    assert other.n_features == 2
    assert other.sample_weight is None
    np.testing.assert_array_equal(other.order, data.order)
    np.testing.assert_array_equal(other.qid, data.qid)
    weights = {query: 2.0 * query for query in range(7)}
    assert data.replace(query_weight=weights).query_weight.tolist() == list(weights.values())
    for fields, words in (
        ({"qid": 1}, r"cannot replace \['qid'\]"),
        ({"X": np.ones((3, 4))}, "X has 3 rows but there are 60 documents"),
        ({"X": np.ones((60, 2))}, "4 feature names were given for 2 features"),
        ({"y": [1]}, "y has 1 values but there are 60 documents"),
    ):
        with pytest.raises(InputError, match=words):
            data.replace(**fields)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("how", [lambda d: pickle.loads(pickle.dumps(d)), copy.copy, copy.deepcopy])
def test_pickling_and_copying(sparse, how):
    data, _, _ = shuffled(sparse)
    again = how(data)
    np.testing.assert_array_equal(dense(again.X), dense(data.X))
    for name in ("y", "qid", "order", "query_ptr", "doc_ids", "query_weight", "offset"):
        np.testing.assert_array_equal(getattr(again, name), getattr(data, name))
        assert not getattr(again, name).flags.writeable
    assert again.feature_names == data.feature_names
    assert repr(again) == repr(data)


def test_weights_of_queries():
    X, qid = np.eye(3), ["b", "a", "b"]
    assert RankingData(X, qid=qid, query_weight=[2, 1]).query_weight.tolist() == [2, 1]
    by_name = RankingData(X, qid=qid, query_weight={"a": 1, "b": 2, "c": 9})
    assert by_name.query_weight.tolist() == [2, 1]


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"X": [1.0, 2.0]}, "X has 1 dimension: give a table"),
        ({"X": np.zeros((1, 2, 3))}, "X has 3 dimensions"),
        ({"X": [["a", "b"]]}, "X holds something that is not a number"),
        ({"X": [[1.0], [2.0, 3.0]]}, "X holds something that is not a number"),
        ({"X": [[1j]]}, "^X holds .*complex"),
        ({"X": sp.csr_array([[1j]])}, "^X holds .*complex"),
        ({"y": [0, 1]}, "y has 2 values but there are 3 documents"),
        ({"y": ["low", "high", "low"]}, "y holds something that is not a number"),
        ({"y": [0, np.inf, 1]}, "y is inf in row 1"),
        ({"y": [0, 1j, 1]}, "y holds .*complex numbers"),
        ({"y": np.zeros((3, 2))}, "y has 2 dimensions"),
        ({"qid": [1, 2]}, "qid has 2 values"),
        ({"doc_ids": ["a"]}, "doc_ids has 1 values"),
        ({"feature_names": ["a", "b"]}, "2 feature names were given for 3 features"),
        ({"feature_names": ["a", "b", "a"]}, "'a' occurs twice"),
        ({"sample_weight": [1, -1, 1]}, "sample_weight is -1.0 in row 1: .* not negative"),
        ({"sample_weight": [1, np.nan, 1]}, "sample_weight is nan in row 1"),
        ({"offset": [0, 0, np.inf]}, "offset is inf in row 2: it must be finite"),
        ({"query_weight": [1, 2]}, "query_weight has shape .2,. but there are 1 queries"),
        ({"query_weight": [-1]}, "query_weight must be finite and not negative"),
        ({"query_weight": {}}, "query_weight has no weight for query 0"),
    ],
)
def test_errors(settings, words):
    with pytest.raises(InputError, match=words):
        RankingData(**{"X": np.eye(3), **settings})


def test_labels_levels_and_information():
    data = RankingData(np.eye(6), [1, 1, np.nan, 0, 2, 2], qid=[1, 1, 2, 2, 3, 4])
    assert data.levels.tolist() == [0, 1, 2]
    assert data.informative.tolist() == [False] * 4
    data = RankingData(np.eye(6), [1, 0, np.nan, 0, 2, -1], qid=[1, 1, 2, 2, 3, 3])
    assert data.informative.tolist() == [True, False, True]
    assert np.isnan(RankingData(np.eye(2)).y).all()
    ptr = np.array([0, 0, 2, 2, 3, 3])
    assert informative_queries(np.array([0.0, 1, 1]), ptr).tolist() == [False, True] + [False] * 3


def test_density():
    assert RankingData([[0.0, 1.0], [0.0, 2.0]]).density == 0.5
    stored_zero = sp.csr_array((np.array([0.0, 1.0]), ([0, 1], [0, 1])), shape=(2, 2))
    assert RankingData(stored_zero).density == 0.25
    assert RankingData(np.empty((0, 3))).density == 0.0


def test_empty_sets():
    for empty in (RankingData(np.empty((0, 3))), RankingData(np.empty((0, 3)), [], [])):
        assert (len(empty), empty.n_queries, empty.n_features) == (0, 0, 3)
        assert empty.replace(y=[]).n_queries == 0
        assert empty.queries[:].n_queries == 0
        assert "0 queries, 0 documents, 3 features" in repr(empty)
    assert RankingData(np.empty((2, 0)), [0, 1]).density == 0.0


def test_repr_says_what_matters():
    data, _, _ = shuffled(sparse=True)
    text = " ".join(repr(data).split())
    assert text.startswith("RankingData: 7 queries, 60 documents, 4 features (sparse float64, ")
    assert "% non-zero), levels {0, 1, 2}" in text
    assert text.endswith("with doc_ids, sample_weight, query_weight, offset")
    assert max(map(len, repr(data).splitlines())) <= 88
    one = RankingData([[1.0]], [np.nan])
    assert "1 query, 1 document, 1 feature (dense float64), no labels, 1 unlabelled" in repr(one)
    assert "1 query with one label (ignored)" in " ".join(repr(one).split())
    many = RankingData(np.ones((1500, 1)), np.arange(1500) / 2, np.arange(1500))
    assert "1,500 queries, 1,500 documents" in repr(many)
    assert "1,500 levels from 0 to 749.5" in " ".join(repr(many).split())
