"""The quadratic problem without its matrix, against the one with it."""

import numpy as np
import pytest

import leanrank.problem.memory as problem_module
from leanrank import DominationRanker, make_ranking
from leanrank.problem.gram_model import minimise_quadratic
from leanrank.solvers.newton.matrix_free import minimise_by_products


@pytest.mark.parametrize("kind", ["ridge", "lasso", "both", "signs", "excluded"])
@pytest.mark.parametrize("seed", range(4))
def test_both_forms_find_the_same_step(seed, kind):
    rng = np.random.default_rng(seed)
    n = 12
    A = rng.normal(size=(20, n))
    hessian = A.T @ A / 20
    c, w = rng.normal(size=n), rng.normal(size=n) * (rng.random(n) < 0.5)
    lasso = np.full(n, 0.0 if kind == "ridge" else 0.3)
    above, below = lasso.copy(), lasso.copy()
    ridge = np.full(n, 0.0 if kind == "lasso" else 0.2)
    if kind == "signs":
        below[:] = np.inf
        w = np.abs(w)
    if kind == "excluded":
        above[:3] = below[:3] = np.inf
        w[:3] = 0.0
    exact = minimise_quadratic(hessian, c, w, above, below, ridge, accuracy=1e-12)
    found = minimise_by_products(lambda v: hessian @ v, c, w, above, below, ridge, accuracy=1e-9)
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_a_hessian_of_nothing_is_no_trouble():
    step = minimise_by_products(
        lambda v: np.zeros_like(v), np.zeros(3), np.zeros(3), np.ones(3), np.ones(3), np.zeros(3)
    )
    assert np.all(step == 0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_working_sets_too_large_for_a_matrix_reach_the_same_optimum(monkeypatch, l1_ratio, sparse):
    data = make_ranking(20, 60, 80, n_informative=10, density=0.1, sparse=sparse, random_state=3)
    ranker = DominationRanker(alpha=0.01, l1_ratio=l1_ratio, tol=1e-8)
    with_matrix = ranker.fit(data).coef_
    monkeypatch.setattr(problem_module, "FEWEST_GRAM", 5)
    monkeypatch.setattr(problem_module, "GRAM_COPIES", 10**9)
    without = ranker.fit(data)
    assert without.dual_gap_ <= 1e-8
    np.testing.assert_allclose(without.coef_, with_matrix, atol=1e-3 * np.abs(with_matrix).max())
