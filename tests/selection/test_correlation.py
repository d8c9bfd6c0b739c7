"""Correlation within queries: against NumPy's on centred columns, and the groups it makes."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

from leanrank.data import RankingData
from leanrank.execution import query_ranges
from leanrank.selection.subsampling import correlated_groups, within_query_correlation


def centred(X, qid):
    X = np.array(X, dtype=np.float64)
    for query in np.unique(qid):
        X[qid == query] -= X[qid == query].mean(axis=0)
    return X


@given(
    sizes=st.lists(st.integers(1, 7), min_size=1, max_size=12),
    seed=st.integers(0, 99),
    kind=st.sampled_from(["dense", "sparse", "single"]),
)
def test_equals_numpy_on_centred_columns(sizes, seed, kind):
    rng = np.random.default_rng(seed)
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = rng.integers(-3, 4, (len(qid), 4)) * np.array([1.0, 1e-3, 1e4, 1.0])
    X[:, 3] = qid * 1.7  # constant within queries
    if kind == "single":
        X = X.astype(np.float32)
    data = RankingData(sparse.csr_array(X) if kind == "sparse" else X, None, qid)
    expected = np.eye(4)
    Z = centred(X, qid)
    for i in range(3):
        for j in range(3):
            if i != j and Z[:, i].any() and Z[:, j].any():
                norms = np.linalg.norm(Z[:, i]) * np.linalg.norm(Z[:, j])
                if norms > 1e-9 * np.linalg.norm(X[:, i]) * np.linalg.norm(X[:, j]):
                    expected[i, j] = Z[:, i] @ Z[:, j] / norms
    assert within_query_correlation(data, np.arange(4)) == pytest.approx(expected, abs=1e-6)


def test_some_columns_many_blocks_any_number_of_threads():
    rng = np.random.default_rng(0)
    qid = np.repeat(np.arange(400), 250)
    X = rng.normal(size=(100_000, 5)) + 1e6 * qid[:, None]  # what differs between queries is large
    X[:, 4] = -X[:, 1]
    data = RankingData(X, None, qid)
    assert len(query_ranges(data.query_ptr)) > 3
    one, two = (within_query_correlation(data, np.arange(5), n_jobs=n) for n in (1, 3))
    assert np.array_equal(one, two)
    assert one == pytest.approx(np.corrcoef(centred(X, qid).T), abs=1e-9)
    assert within_query_correlation(data, np.array([4, 1])) == pytest.approx(
        np.array([[1.0, -1.0], [-1.0, 1.0]])
    )


def test_missing_values_and_no_documents():
    X = np.array([[1.0, 1], [2, 2], [3, np.nan], [np.nan, 4], [5, 5]])
    found = within_query_correlation(RankingData(X, None, [1, 1, 1, 2, 2]), np.arange(2))
    assert np.isfinite(found).all()
    assert found[0, 1] > 0.3
    nothing = RankingData(np.zeros((0, 2)))
    assert within_query_correlation(nothing, np.arange(2)).tolist() == np.eye(2).tolist()


def test_groups_hold_only_pairs_above_the_threshold():
    rng = np.random.default_rng(0)
    table = np.corrcoef(rng.normal(size=(6, 3)) @ rng.normal(size=(3, 500)))
    for threshold in (0.3, 0.7, 0.9, 1.0):
        groups = correlated_groups(table, threshold)
        assert sorted(np.concatenate(groups).tolist()) == list(range(6))
        for group in groups:
            assert np.abs(table[np.ix_(group, group)]).min() >= threshold - 1e-9
    assert [g.tolist() for g in correlated_groups(np.eye(1))] == [[0]]
    assert correlated_groups(np.zeros((0, 0))) == []
    chain = np.array([[1, 0.95, 0.5], [0.95, 1, 0.92], [0.5, 0.92, 1]])
    assert len(correlated_groups(chain, 0.9)) == 2  # a chain is not a group
