"""Approximate Hessians that give way to exact ones where they are far off."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.losses.base import Labels
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.losses.logistic import LogisticLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem import quadratic_models
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.quadratic_models import CheckedModel, GramModel
from leanrank.solvers.newton.solver import Newton


def few_values(loss, n_levels=2):
    """Two features with few values: most documents share a score, and groups mix it with others."""
    rng = np.random.default_rng(34)
    X = rng.normal(size=(2_500, 2)) * (rng.random((2_500, 2)) < 0.02)
    score = X @ rng.normal(size=2)
    edges = np.linspace(0.7, 2.5, n_levels - 1)
    y = np.digitize(score / score.std() + 0.5 * rng.normal(size=2_500), edges).astype(float)
    return MemoryProblem(csr_array(X), loss, loss.prepare(Labels(y, np.array([0, 2_500]))))


@pytest.mark.parametrize("kind", [SquaredHingeLoss, LogisticLoss])
@pytest.mark.parametrize("n_levels", [2, 5])
def test_newton_takes_as_few_steps_as_with_the_exact_hessian(kind, n_levels, monkeypatch):
    penalty = ElasticNet.build(1e-6, 1.0, 2)
    found = Newton(tol=1e-9).solve(few_values(kind(), n_levels), penalty)
    assert found.converged
    with monkeypatch.context() as patch:
        patch.setattr(kind, "grouped", lambda self, plan: None)
        exact = Newton(tol=1e-9).solve(few_values(kind(), n_levels), penalty)
    assert found.n_iter <= exact.n_iter + 3
    assert found.objective == pytest.approx(exact.objective, rel=2e-9)
    monkeypatch.setattr(quadratic_models, "MOST_OFF", np.inf)
    unchecked = Newton(tol=1e-9).solve(few_values(kind(), n_levels), penalty)
    assert unchecked.n_iter > 2 * found.n_iter  # what the check is for


def test_a_model_is_replaced_if_its_curvature_is_far_off_along_the_first_step():
    penalty, c, w = ElasticNet.build(0.0, 1.0, 2), np.array([1.0, -2.0]), np.zeros(2)
    true = np.array([[2.0, 0.3], [0.3, 1.0]])
    for factor, kept in ((1.0, True), (1.9, True), (0.6, True), (2.1, False), (0.4, False)):
        asked = []
        model = CheckedModel(
            GramModel(factor * true, sampled=True, exact_diagonal=False),
            lambda step, asked=asked: asked.append(step) or float(step @ true @ step),
            lambda: GramModel(true),
        )
        assert (model.sampled, model.exact_diagonal) == (True, False)
        expected = np.linalg.solve(factor * true if kept else true, -c)
        for _ in range(2):
            np.testing.assert_allclose(model.minimise(penalty, c, w), expected, rtol=1e-3)
        assert (model.sampled, model.exact_diagonal) == (kept, not kept)
        assert len(asked) == 1


def test_after_one_that_was_far_off_models_are_exact_until_a_new_start(monkeypatch):
    monkeypatch.setattr(quadratic_models, "MOST_OFF", 1.0)
    problem = few_values(SquaredHingeLoss())
    penalty = ElasticNet.build(1e-6, 1.0, 2)
    w = np.array([-3.0, 3.0])
    problem.at(w)
    model = problem.quadratic(penalty)
    assert isinstance(model, CheckedModel)
    model.minimise(penalty, problem.focused_gradient(), w)
    assert isinstance(problem.quadratic(penalty), GramModel)
    problem.at(np.zeros(2))
    assert isinstance(problem.quadratic(penalty), CheckedModel)
