from __future__ import annotations

import numpy as np
import pytest

from leanrank.errors import InputError
from leanrank.execution import Executor, make_executor
from leanrank.solvers.least_squares.ridge import solve_ridge_dual
from leanrank.solvers.least_squares.spectrum import factorise, leave_query_out_scores
from tests.solvers.reference_rankrls import centre, centred_of, random_problem, ridge

ALPHAS = np.array([1e-12, 1e-6, 1e-2, 1.0, 1e3, 1e12])


@pytest.mark.parametrize("n", [1, 3, 8, 70])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weights", [False, True])
def test_training_again_without_each_query(n, sparse, weights):
    rng = np.random.default_rng(n)
    X, plan = random_problem(rng, n=n, weights=weights, offset=weights)
    A, b = centre(X, plan)
    centred = centred_of(X, plan, sparse)
    spectrum = factorise(centred)
    assert (spectrum.outer is not None) == (n > len(X))
    scores = leave_query_out_scores(spectrum, ALPHAS, Executor())
    for alpha, row in zip(ALPHAS, scores, strict=True):
        w = ridge(A, b, alpha)
        assert np.allclose(spectrum.weights(alpha), w, atol=1e-7 * np.abs(w).max())
        for q in np.unique(centred.query_of):
            mine = centred.query_of == q
            w = ridge(A[~mine], b[~mine], alpha)
            assert np.allclose(row[mine], X[mine] @ w, atol=2e-7 * np.abs(X @ w).max() + 1e-300)


def test_a_query_of_most_documents_and_collinear_features():
    rng = np.random.default_rng(1)
    X, plan = random_problem(rng, n=6, sizes=[90, 3, 4, 5])
    X[:, 3] = X[:, 0]
    X[:, 4] = X[:, 1] - X[:, 2]
    X[:, 5] = 7.0
    A, b = centre(X, plan)
    centred = centred_of(X, plan)
    for alpha in (1e-8, 1e-3, 10.0):
        scores = leave_query_out_scores(factorise(centred), np.array([alpha]), Executor())[0]
        for q in range(4):
            mine = centred.query_of == q
            w = ridge(A[~mine], b[~mine], alpha)
            assert np.allclose(scores[mine], X[mine] @ w, atol=1e-7 * np.abs(X @ w).max())


def test_the_same_bits_on_any_number_of_threads():
    X, plan = random_problem(np.random.default_rng(2), sizes=[7] * 30)
    spectrum = factorise(centred_of(X, plan))
    one, four = (
        leave_query_out_scores(spectrum, ALPHAS, make_executor(n), numbers=64) for n in (1, 4)
    )
    assert np.array_equal(one, four)


def test_without_the_only_query_the_model_is_empty():
    X, plan = random_problem(np.random.default_rng(3), sizes=[9, 1])
    scores = leave_query_out_scores(factorise(centred_of(X, plan)), ALPHAS, Executor())
    assert not scores[:, :9].any()


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("alpha", [0.0, 1e-9, 1.0, 1e6])
def test_the_dual_solution_for_one_alpha(sparse, alpha):
    X, plan = random_problem(np.random.default_rng(4), n=90)
    A, b = centre(X, plan)
    U, s, Vt = np.linalg.svd(A, full_matrices=False)
    real = s > 1e-9
    expected = Vt[real].T @ (s[real] / (s[real] ** 2 + alpha) * (U[:, real].T @ b))
    w = solve_ridge_dual(centred_of(X, plan, sparse), alpha)
    assert np.allclose(w, expected, atol=1e-6 * np.abs(expected).max())
    if alpha == 0:
        assert np.allclose(factorise(centred_of(X, plan, sparse)).weights(0.0), expected, atol=1e-8)


def test_too_large_a_factorisation_says_so():
    X, plan = random_problem(np.random.default_rng(5))
    with pytest.raises(InputError, match="too many to factorise"):
        factorise(centred_of(X, plan), largest=5)
