"""The quadratic problem without its matrix, against the one with it."""

import numpy as np
import pytest

from leanrank import make_ranking
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.losses.logistic import LogisticLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.quadratic_models import GramModel, ProductModel
from leanrank.solvers.newton.solver import Newton


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
    penalty = ElasticNet(above, below, ridge)
    exact = GramModel(hessian, accuracy=1e-12).minimise(penalty, c, w)
    found = ProductModel(lambda v: hessian @ v, accuracy=1e-9).minimise(penalty, c, w)
    np.testing.assert_allclose(found, exact, atol=1e-5)


def test_a_hessian_of_nothing_is_no_trouble():
    penalty = ElasticNet.build(1.0, 1.0, 3)
    step = ProductModel(np.zeros_like).minimise(penalty, np.zeros(3), np.zeros(3))
    assert np.all(step == 0)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
def test_working_sets_too_large_for_a_matrix_reach_the_same_optimum(l1_ratio, sparse):
    data = make_ranking(20, 60, 80, n_informative=10, density=0.1, random_state=3)
    data = data if sparse else data.replace(X=data.X.toarray())
    loss = DominationLoss()
    plan = loss.prepare(Labels(data.y, data.query_ptr))
    penalty = ElasticNet.build(0.01, l1_ratio, data.n_features)
    with_matrix = Newton(tol=1e-8).solve(MemoryProblem(data.X, loss, plan), penalty).w
    limits = Limits(fewest_gram=5, gram_copies=10**9)
    without = Newton(tol=1e-8).solve(MemoryProblem(data.X, loss, plan, None, limits), penalty)
    assert without.gap <= 1e-8
    np.testing.assert_allclose(without.w, with_matrix, atol=1e-3 * np.abs(with_matrix).max())


@pytest.mark.parametrize("alpha", [0.1, 1e-4, 0.0])
def test_smooth_steps_are_the_same_by_conjugate_gradients_and_by_a_matrix(alpha):
    data = make_ranking(20, 60, 80, n_informative=10, random_state=3)
    X = data.X * np.exp(np.random.default_rng(0).normal(size=80))  # in many units
    loss = LogisticLoss()
    plan = loss.prepare(Labels(data.y, data.query_ptr))
    penalty = ElasticNet.build(alpha, 0.0, data.n_features)
    never, always = Limits(), Limits(fewest_iterated=1, columns_per_product=1)
    formed = Newton(tol=1e-8).solve(MemoryProblem(X, loss, plan, None, never), penalty)
    problem = MemoryProblem(X, loss, plan, None, always)
    iterated = Newton(tol=1e-8).solve(problem, penalty)
    assert isinstance(problem.quadratic(penalty), ProductModel)
    assert iterated.objective == pytest.approx(formed.objective, rel=2e-8, abs=1e-8)
    if alpha:
        assert iterated.gap <= 1e-8


def test_conjugate_gradients_that_take_too_long_give_way_to_a_matrix():
    data = make_ranking(20, 60, 80, n_informative=10, random_state=3)
    loss = LogisticLoss()
    plan = loss.prepare(Labels(data.y, data.query_ptr))
    penalty = ElasticNet.build(1e-4, 0.0, data.n_features)
    problem = MemoryProblem(
        data.X, loss, plan, None, Limits(fewest_iterated=1, columns_per_product=40)
    )
    for damping in (None, np.full(80, 1e-3)):
        problem._by_products = True
        problem.at(np.zeros(80))
        model = problem.quadratic(penalty)
        assert isinstance(model, ProductModel)
        exact = problem.focused_hessian() + np.diag(np.full(80, 1e-4))
        if damping is not None:
            model, exact = model.damped(damping), exact + np.diag(damping)
        c = problem.focused_gradient()
        step = model.minimise(penalty, c, np.zeros(80))
        np.testing.assert_allclose(step, np.linalg.solve(exact, -c), rtol=1e-3, atol=1e-5)
        assert isinstance(problem.quadratic(penalty), GramModel)
