import json

import numpy as np
import pytest
import scipy.sparse as sp
import sklearn
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from scipy.stats import rankdata
from sklearn.base import clone
from sklearn.linear_model import Ridge
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import MinMaxScaler, StandardScaler
from sklearn.utils.estimator_checks import check_estimator

from leanrank.data import (
    GlobalMinMaxScaler,
    GlobalStandardScaler,
    QueryMinMaxScaler,
    QueryRankScaler,
    QueryStandardScaler,
    RankingData,
    make_normalizer,
    make_ranking,
    normalizer_from_dict,
)
from leanrank.data.scaling.normalizers import NORMALIZERS
from leanrank.errors import InputError

PER_QUERY = [QueryMinMaxScaler, QueryStandardScaler, QueryRankScaler]
GLOBAL = [GlobalStandardScaler, GlobalMinMaxScaler]


def slow_minmax(column):
    low, high = column.min(), column.max()
    return (column - low) / (high - low) if high > low else np.zeros_like(column)


def slow_standard(column):
    return (column - column.mean()) / column.std() if np.ptp(column) else np.zeros_like(column)


def slow_rank(column):
    n = len(column)
    return (rankdata(column) - 1) / (n - 1) if n > 1 else np.array([0.5])


SLOW = {
    QueryMinMaxScaler: slow_minmax,
    QueryStandardScaler: slow_standard,
    QueryRankScaler: slow_rank,
}


def slowly(scaler, X, qid):
    out = np.empty(X.shape)
    for query in set(qid):
        rows = np.flatnonzero(np.asarray(qid) == query)
        for j in range(X.shape[1]):
            out[rows, j] = SLOW[scaler](X[rows, j].astype(np.float64))
    return out


@pytest.mark.parametrize("scaler", PER_QUERY)
@settings(max_examples=60, deadline=None)
@given(
    X=hnp.arrays(
        np.float64,
        hnp.array_shapes(min_dims=2, max_dims=2, max_side=12),
        elements=st.integers(-3, 3).map(float) | st.floats(-1e6, 1e6, width=32),
    ),
    data=st.data(),
)
def test_queries_in_any_order_equal_the_slow_way(scaler, X, data):
    qid = data.draw(st.lists(st.sampled_from("abc"), min_size=len(X), max_size=len(X)))
    fast = scaler().fit_transform(X, qid=qid)
    np.testing.assert_allclose(fast, slowly(scaler, X, qid), atol=1e-7, rtol=1e-6)


@pytest.mark.parametrize("scaler", PER_QUERY)
def test_threads_and_storage(scaler):
    data = make_ranking(900, (1, 50), 4, dtype=np.float32)
    one = scaler().transform(data)
    assert one.X.dtype == np.float32
    np.testing.assert_array_equal(scaler(n_jobs=3).transform(data).X, one.X)
    wide = scaler().transform(data.replace(X=data.X.astype(np.float64)))
    np.testing.assert_allclose(one.X, wide.X, atol=1e-6)
    few = data.queries[:40]
    np.testing.assert_allclose(one.X[: len(few)], slowly(scaler, few.X, few.qid), atol=1e-5)


def test_minmax_of_tiny_values():
    X = np.array([[1e-300], [0.0], [2e-300]])
    np.testing.assert_allclose(QueryMinMaxScaler().fit_transform(X), [[0.5], [0], [1]])


def test_sparse_that_would_fill_up_is_refused():
    X = sp.csr_array([[0.0, 1.0], [0.0, -1.0], [0.0, 0.0]])
    for scaler in (*PER_QUERY, GlobalMinMaxScaler):
        with pytest.raises(InputError, match=r"would make a sparse X dense.*toarray"):
            scaler().fit(X)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_sparse_is_scaled_but_not_centred(dtype):
    rng = np.random.default_rng(1)
    dense = (rng.normal(3, 5, (60, 4)) * (rng.random((60, 4)) < 0.4)).astype(dtype)
    dense[:, 3] = 0.0
    X = sp.csr_array(dense)
    scaler = GlobalStandardScaler().fit(X)
    np.testing.assert_allclose(scaler.scale_, StandardScaler().fit(dense).scale_, rtol=1e-6)
    assert not scaler.mean_.any()
    scaled = scaler.transform(X)
    assert sp.issparse(scaled)
    assert scaled.dtype == dtype
    np.testing.assert_array_equal(scaled.toarray(), scaler.transform(dense))
    centred = GlobalStandardScaler().fit(dense)
    np.testing.assert_array_equal(centred.transform(X), centred.transform(dense))


def test_a_ranker_sees_no_difference_between_sparse_and_dense():
    from leanrank.data import RankingData, make_ranking
    from leanrank.rankers import DominationRanker

    data = make_ranking(30, 12, 8, density=0.3, random_state=2)
    data = data.replace(X=sp.csr_array(data.X))
    full = RankingData(data.X.toarray() + 0.0, data.y, data.qid)
    coefs = []
    for one in (data, full):
        scaled = GlobalStandardScaler().fit(one).transform(one)
        assert scaled.is_sparse == one.is_sparse
        coefs.append(DominationRanker(alpha=0.01, tol=1e-10).fit(scaled).coef_)
    np.testing.assert_allclose(*coefs, atol=1e-6)


def test_global_ones_agree_with_scikit_learn():
    rng = np.random.default_rng(0)
    X, Z = rng.normal(3, 5, (50, 4)), rng.normal(size=(9, 4))
    X[:, 2] = 0.1
    for ours, theirs in (
        (GlobalStandardScaler, StandardScaler),
        (GlobalMinMaxScaler, MinMaxScaler),
    ):
        np.testing.assert_allclose(ours().fit(X).transform(Z), theirs().fit(X).transform(Z))


@pytest.mark.parametrize("scaler", PER_QUERY + GLOBAL)
def test_there_and_back_through_json(scaler):
    data = make_ranking(5)
    fitted = scaler().fit(data)
    again = normalizer_from_dict(json.loads(json.dumps(fitted.to_dict())))
    assert type(again) is scaler
    assert again.to_dict() == fitted.to_dict()
    qid = data.qid[::-1]
    np.testing.assert_array_equal(
        again.transform(data.X, qid=qid),
        fitted.transform(data.replace(feature_names=None).X, qid=qid),
    )
    assert scaler.kind in NORMALIZERS
    assert type(make_normalizer(scaler.kind)) is scaler


@pytest.mark.parametrize("scaler", PER_QUERY + GLOBAL)
def test_ranking_data_in_ranking_data_out(scaler):
    data = make_ranking(5, n_features=2)
    data = RankingData(data.X, data.y, data.qid[::-1], feature_names=["x", "y"])
    fitted = scaler().fit(data)
    assert fitted.get_feature_names_out().tolist() == ["x", "y"]
    out = fitted.transform(data)
    assert out.feature_names == ("x", "y")
    np.testing.assert_array_equal(out.y, data.y)
    np.testing.assert_array_equal(out.X, scaler().fit_transform(data.X, qid=data.qid))
    with pytest.raises(InputError, match="leave qid out"):
        fitted.transform(data, qid=data.qid)
    with pytest.raises(InputError, match="have 20 features but"):
        fitted.transform(make_ranking(3))


def test_names_of_a_data_frame():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0], "b": [2.0, 3.0]})
    for scaler in PER_QUERY + GLOBAL:
        fitted = scaler().set_output(transform="pandas").fit(frame)
        assert fitted.feature_names_in_.tolist() == ["a", "b"]
        assert fitted.transform(frame).columns.tolist() == ["a", "b"]


@pytest.mark.parametrize("scaler", PER_QUERY)
def test_qid_goes_through_a_pipeline(scaler):
    data = make_ranking(10, (2, 9), 5)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = make_pipeline(scaler(), Ridge())
        pipeline.fit(data.X, data.y, qid=data.qid)
        got = pipeline.predict(data.X, qid=data.qid)
        assert clone(pipeline)
    scaled = scaler().fit_transform(data.X, qid=data.qid)
    np.testing.assert_allclose(got, Ridge().fit(scaled, data.y).predict(scaled))


@pytest.mark.parametrize("scaler", PER_QUERY + GLOBAL)
def test_check_estimator(scaler):
    whole = "a query is scaled as a whole, and without qid all rows are one query"
    expected = {"check_methods_subset_invariance": whole} if scaler in PER_QUERY else {}
    check_estimator(scaler(), expected_failed_checks=expected, on_skip=None)


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        (None, "an object with a 'kind'"),
        ([], "an object with a 'kind'"),
        ({}, "an object with a 'kind'"),
        ({"kind": "zscore"}, "scale='zscore' is not known: choose from"),
        ({"kind": ["minmax"]}, "is not known"),
        ({"kind": "query-rank", "min": [0]}, "query-rank"),
        ({"kind": "minmax", "min": [0]}, "minmax"),
        ({"kind": "minmax", "min": [0], "max": [1], "x": 1}, "minmax"),
        ({"kind": "minmax", "min": [0], "max": [1, 2]}, "minmax"),
        ({"kind": "minmax", "min": [], "max": []}, "minmax"),
        ({"kind": "minmax", "min": [2], "max": [1]}, "minmax"),
        ({"kind": "minmax", "min": 0, "max": [1]}, "minmax"),
        ({"kind": "minmax", "min": [float("nan")], "max": [1]}, "minmax"),
        ({"kind": "minmax", "min": [10**400], "max": [1]}, "minmax"),
        ({"kind": "standard", "mean": [0], "scale": [0]}, "standard"),
        ({"kind": "standard", "mean": [0], "scale": [float("inf")]}, "standard"),
    ],
)
def test_bad_specifications(spec, words):
    with pytest.raises(InputError, match=words):
        normalizer_from_dict(spec)


def test_wrong_qid():
    with pytest.raises(InputError, match="qid has 1 values"):
        QueryMinMaxScaler().fit([[1.0], [2.0]], qid=[1])
    with pytest.raises(InputError, match="qid has 1 values"):
        QueryMinMaxScaler().transform([[1.0], [2.0]], qid=[1])


@pytest.mark.parametrize("sparse", [False, True])
def test_standard_scaler_leaves_missing_values_missing(sparse):
    from scipy.sparse import csr_array

    X = np.array(
        [[1.0, 0.0, np.nan], [np.nan, 5.0, np.nan], [3.0, 0.0, np.nan], [8.0, 7.0, np.nan]]
    )
    scaler = GlobalStandardScaler().fit(csr_array(X) if sparse else X)
    assert np.allclose(scaler.scale_, [np.std([1, 3, 8]), np.std([0, 5, 0, 7]), 1.0])
    assert np.allclose(scaler.mean_, 0.0 if sparse else [4.0, 3.0, 0.0])
    again = normalizer_from_dict(scaler.to_dict())
    assert np.array_equal(np.isnan(again.transform(X)), np.isnan(X))


def test_minmax_scaler_leaves_missing_values_missing():
    X = np.array([[1.0, np.nan], [np.nan, np.nan], [5.0, np.nan]])
    scaler = GlobalMinMaxScaler().fit(X)
    assert np.array_equal(scaler.transform(X)[:, 0], [0.0, np.nan, 1.0], equal_nan=True)
    assert normalizer_from_dict(scaler.to_dict()).max_.tolist() == [5.0, 0.0]


@pytest.mark.parametrize("scaler", [QueryMinMaxScaler(), QueryStandardScaler(), QueryRankScaler()])
def test_scaling_within_queries_refuses_missing_values(scaler):
    with pytest.raises(InputError, match=r"X contains NaN, and 'query-.*' cannot scale missing"):
        scaler.fit_transform([[1.0], [np.nan]])
