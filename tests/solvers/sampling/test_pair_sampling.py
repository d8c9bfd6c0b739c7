"""Drawn pairs follow the law that listing all pairs would give."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from scipy.sparse import csr_array
from scipy.stats import chisquare

from leanrank.errors import InputError
from leanrank.solvers.sampling.pair_sampling import (
    document_keys,
    draw_pairs,
    fill_uniform,
    index_all_pairs,
    index_pairs,
    new_state,
    sort_within_queries,
)

# three levels, one document, empty, one level, two levels with many ties, not-a-number labels
Y = np.array([2.0, 0, 1, 1, 1, 5, 3, 3, 1, 0, 0, 1, 0, 0, np.nan, 7, 7])
PTR = np.array([0, 5, 6, 6, 8, 14, 17])
WEIGHT = np.array([1.0, 2, 0.5, 1, 3, 1, 1, 1, 0.25, 1, 2, 4, 0, 1, 1, 1, 1])
QUERY_WEIGHT = np.array([3.0, 1, 1, 1, 0.5, 1])


def exact(over, sample_weight=None, query_weight=None):
    """The law by brute force: (higher, lower) -> probability."""
    w = np.ones(len(Y)) if sample_weight is None else sample_weight
    omega = np.ones(len(PTR) - 1) if query_weight is None else query_weight
    law = {}
    for q in range(len(PTR) - 1):
        rows = range(PTR[q], PTR[q + 1])
        mine = {(i, j): w[i] * w[j] for i in rows for j in rows if Y[i] > Y[j] and w[i] * w[j] > 0}
        total = sum(mine.values()) if over == "queries" else 1.0
        law |= {pair: omega[q] * value / total for pair, value in mine.items()}
    whole = sum(law.values())
    return {pair: value / whole for pair, value in law.items()}


def chi_square(law, higher, lower):
    counts = Counter(zip(higher.tolist(), lower.tolist(), strict=True))
    assert set(counts) <= set(law)
    observed = [counts[pair] for pair in law]
    return chisquare(observed, np.array(list(law.values())) * len(higher)).pvalue


@pytest.mark.parametrize("keyed", [False, True])
@pytest.mark.parametrize("weights", [None, WEIGHT])
@pytest.mark.parametrize("query_weight", [None, QUERY_WEIGHT])
@pytest.mark.parametrize("over", ["pairs", "queries"])
def test_frequencies_are_those_of_the_exact_law(over, weights, query_weight, keyed):
    keys = np.random.default_rng(0).normal(size=len(Y)) if keyed else None
    index = index_pairs(
        Y, PTR, over=over, sample_weight=weights, query_weight=query_weight, keys=keys
    )
    law = exact(over, weights, query_weight)
    assert chi_square(law, *draw_pairs(index, 100_000, seed=1)) > 1e-3
    # the test can tell: the other law is refused
    other = exact("queries" if over != "queries" else "pairs", weights, query_weight)
    assert chi_square(other, *draw_pairs(index, 100_000, seed=1)) < 1e-6


def test_every_two_documents():
    among = np.ones(len(Y), dtype=bool)
    among[[0, 9]] = False
    index = index_all_pairs(PTR, among=among)
    higher, lower = draw_pairs(index, 50_000, seed=3)
    law = {
        (j, i): 1.0
        for q in range(len(PTR) - 1)
        for i in range(PTR[q], PTR[q + 1])
        for j in range(i + 1, PTR[q + 1])
        if among[i] and among[j]
    }
    law = {pair: 1 / len(law) for pair in law}
    assert chi_square(law, higher, lower) > 1e-3
    assert index_all_pairs(PTR, among=np.arange(len(Y)) < 1) is None


def test_uniform_numbers_are_uniform_and_fixed():
    out = np.empty(200_000)
    fill_uniform(new_state(5), out)
    assert chisquare(np.histogram(out, 100, (0, 1))[0]).pvalue > 1e-3
    assert abs(np.corrcoef(out[:-1], out[1:])[0, 1]) < 0.01
    again = np.empty(3)
    fill_uniform(new_state(5), again)
    assert np.array_equal(again, out[:3])
    fill_uniform(new_state(5, stream=1), again)
    assert not np.any(again == out[:3])


def test_the_generator_is_the_published_one():
    """SplitMix64 from state 0: the first outputs, as unit numbers of 53 bits."""
    out = np.empty(3)
    fill_uniform(np.zeros(1, dtype=np.uint64), out)
    published = [0xE220A8397B1DCDAF, 0x6E789E6AA1B965F4, 0x06C45D188009454F]
    assert out.tolist() == [(value >> 11) * 2.0**-53 for value in published]


def contents(index, X, y, n=500):
    """What was drawn, as values instead of rows."""
    higher, lower = draw_pairs(index, n, seed=2)
    return np.hstack([X[higher], X[lower], y[higher, None], y[lower, None]])


@pytest.mark.parametrize("over", ["pairs", "queries"])
def test_draws_do_not_depend_on_the_order_of_rows_and_queries(over):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(len(Y), 4))
    y = np.nan_to_num(Y)
    shuffled, ptr = [], [0]
    for q in rng.permutation(len(PTR) - 1):
        shuffled += rng.permutation(np.arange(PTR[q], PTR[q + 1])).tolist()
        ptr.append(len(shuffled))
    plain = index_pairs(y, PTR, over=over, keys=document_keys(X))
    Xs, ys = X[shuffled], y[shuffled]
    mixed = index_pairs(ys, np.array(ptr), over=over, keys=document_keys(Xs))
    assert np.array_equal(contents(plain, X, y), contents(mixed, Xs, ys))


def test_a_weight_is_a_repetition():
    rng = np.random.default_rng(5)
    X = rng.normal(size=(len(Y), 4))
    y, weight = np.nan_to_num(Y), rng.integers(0, 4, len(Y))
    weighted = index_pairs(y, PTR, sample_weight=weight.astype(float), keys=document_keys(X))
    query_of = np.repeat(np.repeat(np.arange(len(PTR) - 1), np.diff(PTR)), weight)
    ptr = np.searchsorted(query_of, np.arange(len(PTR)))
    Xr, yr = np.repeat(X, weight, axis=0), np.repeat(y, weight)
    repeated = index_pairs(yr, ptr, keys=document_keys(Xr))
    assert np.array_equal(contents(weighted, X, y), contents(repeated, Xr, yr))


def test_keys_are_the_same_for_sparse_and_dense():
    rng = np.random.default_rng(6)
    X = rng.normal(size=(30, 9)) * (rng.random((30, 9)) < 0.4)
    X[7] = 0
    assert np.array_equal(document_keys(X), document_keys(csr_array(X)))
    single = document_keys(X.astype(np.float32))
    assert np.allclose(single, document_keys(X), atol=1e-5)


def test_extreme_weights():
    """A pair of weight 1e-12 beside others is still well-defined, and is all but never drawn."""
    y, ptr = np.array([0.0, 1, 1, 0, 1]), np.array([0, 3, 5])
    weight = np.array([1.0, 1e-12, 1.0, 1e-6, 1e-6])
    higher, lower = draw_pairs(index_pairs(y, ptr, sample_weight=weight), 10_000, seed=0)
    assert set(zip(higher.tolist(), lower.tolist(), strict=True)) == {(2, 0)}


def test_nothing_to_draw():
    with pytest.raises(InputError, match="nothing to learn"):
        index_pairs(np.ones(4), np.array([0, 2, 4]))
    with pytest.raises(InputError, match="nothing to learn"):
        index_pairs(np.empty(0), np.array([0]))


@pytest.mark.parametrize("keyed", [False, True])
def test_documents_are_sorted_as_by_one_sort_of_all(keyed):
    rng = np.random.default_rng(0)
    ptr = np.array([0, 0, 1, 60, 300, 301, 800])
    labels, keys = rng.integers(0, 4, 800).astype(float), rng.integers(0, 9, 800).astype(float)
    queries = np.repeat(np.arange(6), np.diff(ptr))
    expected = np.lexsort((keys, labels, queries) if keyed else (labels, queries))
    assert np.array_equal(sort_within_queries(ptr, labels, keys if keyed else None), expected)
