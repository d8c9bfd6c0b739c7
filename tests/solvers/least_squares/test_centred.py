from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.solvers.least_squares.centred import Centred
from tests.solvers.reference_rankrls import centre, random_problem


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_rows_features_and_products_against_the_definition(seed, sparse, dtype):
    rng = np.random.default_rng(seed)
    X, plan = random_problem(rng, weights=seed % 2 == 1, offset=seed > 2, normalize="query")
    X = X.astype(dtype)
    A, b = centre(X.astype(np.float64), plan)
    centred = Centred.from_plan(csr_array(X) if sparse else X, plan)
    n_queries = len(plan.query_ptr) - 1
    assert np.allclose(centred.target, b, atol=1e-14)
    assert np.allclose(centred.rows(0, n_queries), A, atol=1e-14)
    assert np.allclose(centred.features(np.array([5, 0, 2])).T, A[:, [5, 0, 2]], atol=1e-14)
    assert np.allclose(centred.block(np.array([5, 0, 2])), A[:, [5, 0, 2]], atol=1e-14)
    assert np.allclose(centred.products(), X.astype(np.float64) @ A.T, atol=1e-13)
    for r0, r1 in [(0, 2), (2, 3), (n_queries, n_queries)]:
        rows = slice(plan.query_ptr[r0], plan.query_ptr[r1])
        assert np.allclose(centred.rows(r0, r1), A[rows], atol=1e-14)
    values = rng.normal(size=(len(X), 3))
    twice = centred.project(centred.project(values))
    assert np.allclose(twice, centred.project(values))
    assert np.allclose(centred.project(A), A, atol=1e-14)
    assert np.allclose(centred.project(values[:, 1]), centred.project(values)[:, 1])


@pytest.mark.parametrize("sparse", [False, True])
def test_a_constant_column_comes_out_as_zeros(sparse):
    X, plan = random_problem(np.random.default_rng(0), weights=True)
    X[:, 1] = 0.1
    X[:, 2] = 1e8 + np.repeat(np.arange(len(plan.query_ptr) - 1), np.diff(plan.query_ptr)) / 3
    centred = Centred.from_plan(csr_array(X) if sparse else X, plan)
    assert not centred.features(np.array([1, 2])).any()
    assert not centred.rows(0, len(plan.query_ptr) - 1)[:, 1:3].any()


def test_a_large_constant_costs_no_digits():
    X, plan = random_problem(np.random.default_rng(1))
    X = np.round(X * 1024) / 1024
    plain = Centred.from_plan(X, plan).features(np.arange(7))
    moved = Centred.from_plan(X + 1e9, plan).features(np.arange(7))
    assert np.allclose(plain, moved, atol=1e-12)


def test_the_only_query():
    X, plan = random_problem(np.random.default_rng(2), sizes=[1, 5, 0, 1])
    assert Centred.from_plan(X, plan).only_query == 1
    X, plan = random_problem(np.random.default_rng(2), sizes=[1, 5, 3])
    assert Centred.from_plan(X, plan).only_query == -1
