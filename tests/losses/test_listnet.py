"""ListNet's losses against the definition: probabilities of draws, written out copy by copy."""

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanrank.errors import InputError
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.losses.listnet import ListNetLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.newton.solver import Newton
from tests.losses.line import along


def softmax(scores):
    e = np.exp(scores - scores.max())
    return e / e.sum()


def top_one(plan, labels, u, target="label"):
    """Value, gradient, Hessian and the terms (factor, target, p, rows), query by query."""
    n = len(u)
    value, gradient, hessian, terms = 0.0, np.zeros(n), np.zeros((n, n)), []
    weight = np.ones(n) if labels.sample_weight is None else labels.sample_weight
    gain = np.ones(n) if labels.gain_weight is None else labels.gain_weight
    t = labels.y if target == "label" else 2.0**labels.y - 1
    for q in range(len(plan.query_ptr) - 1):
        rows = np.arange(plan.query_ptr[q], plan.query_ptr[q + 1])
        rows = rows[weight[rows] > 0]
        if len(np.unique(labels.y[rows])) < 2:
            continue
        m = weight[rows] / min(1.0, weight[rows].min())
        wanted = softmax(t[rows] + np.log(m)) * gain[rows]
        p = softmax(u[rows] + np.log(m))
        top = u[rows].max()
        log_sum = top + np.log(np.sum(m * np.exp(u[rows] - top)))
        value += plan.scale[q] * np.sum(wanted * (log_sum - u[rows]))
        gradient[rows] += plan.scale[q] * (wanted.sum() * p - wanted)
        covariance = np.diag(p) - np.outer(p, p)
        hessian[np.ix_(rows, rows)] += plan.scale[q] * wanted.sum() * covariance
        terms.append((plan.scale[q] * wanted.sum(), wanted / wanted.sum(), p, rows, m))
    return value, gradient, hessian, terms


def random_labels(rng, *, weights=False, n_levels=3, sizes=None):
    sizes = np.append(rng.integers(0, 8, 6), [5, 1, 0]) if sizes is None else np.asarray(sizes)
    n = int(sizes.sum())
    y = rng.integers(0, n_levels, n) * 1.5 - 1 if n_levels else rng.normal(size=n)
    y[-3:] = y[-4] + 1.5  # the query of five has two levels
    return Labels(
        y=y,
        query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        sample_weight=rng.choice([0, 0.25, 1, 2, 3], n) if weights else None,
        query_weight=rng.random(len(sizes)) + 0.5 if weights else None,
        gain_weight=rng.random(n) + 0.1 if weights else None,
        offset=rng.normal(size=n) if weights else None,
        normalize=str(rng.choice(["query", "term", "none"])),
    )


def prepared(loss, rng, **more):
    """Random labels with something to learn in them, and the plan."""
    while True:
        labels = random_labels(rng, **more)
        try:
            return labels, loss.prepare(labels)
        except InputError:  # weights of zero left one level everywhere
            continue


@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from([2, 4, 0]),
    st.sampled_from(["label", "gain"]),
)
def test_every_operation_agrees_with_the_definition(seed, weights, n_levels, target):
    rng = np.random.default_rng(seed)
    loss = ListNetLoss(target)
    labels, plan = prepared(loss, rng, weights=weights, n_levels=n_levels)
    X = rng.normal(size=(len(labels.y), 3))
    problem = MemoryProblem(X, loss, plan)
    u = problem.scores(rng.normal(size=3) * rng.choice([0.1, 1, 5]))
    value, gradient, hessian, terms = top_one(plan, labels, u, target)
    got, g = problem.evaluate(u)
    assert got == pytest.approx(value, rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(g, gradient, rtol=1e-10, atol=1e-13)
    block = problem.design.take(np.arange(3))
    np.testing.assert_allclose(problem.hessian(block, u), X.T @ hessian @ X, rtol=1e-8, atol=1e-11)
    v = rng.normal(size=3)
    np.testing.assert_allclose(
        problem.hessians.product(block, u, v), X.T @ hessian @ X @ v, rtol=1e-8, atol=1e-11
    )
    d, t = rng.normal(size=len(u)), rng.random()
    value_t, gradient_t, hessian_t, _ = top_one(plan, labels, u + t * d, target)
    np.testing.assert_allclose(
        along(problem, u, d, t), [value_t, gradient_t @ d, d @ hessian_t @ d], rtol=1e-9, atol=1e-12
    )
    a = rng.random()
    expected = 0.0
    for factor, wanted, p, rows, m in terms:
        mixed = a * p + (1 - a) * wanted
        expected -= factor * np.sum(mixed * np.log(mixed / m))
        if labels.offset is not None:
            expected -= a * factor * labels.offset[rows] @ (p - wanted)
    assert problem.dual_at(u, a) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    s = 0.0 if labels.offset is None else labels.offset
    assert problem.dual_at(u, 1.0) + gradient @ (u + s) == pytest.approx(value, rel=1e-9, abs=1e-11)


def test_the_gradient_is_the_slope_of_the_value():
    rng = np.random.default_rng(5)
    loss = ListNetLoss()
    labels, plan = prepared(loss, rng, weights=True)
    problem = MemoryProblem(np.ones((len(labels.y), 1)), loss, plan)
    u, d = rng.normal(size=(2, len(labels.y)))
    slope = (problem.evaluate(u + 1e-6 * d)[0] - problem.evaluate(u - 1e-6 * d)[0]) / 2e-6
    assert problem.evaluate(u)[1] @ d == pytest.approx(slope, rel=1e-7)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_extreme_scores_and_labels_stay_finite_and_exact(size):
    rng = np.random.default_rng(0)
    loss = ListNetLoss()
    labels, plan = prepared(loss, rng, sizes=[6, 7, 3, 9])
    u = rng.choice([-1.0, 0.0, 1.0], len(labels.y)) * size + rng.normal(size=len(labels.y))
    problem = MemoryProblem(np.ones((len(u), 1)), loss, plan)
    value, gradient, _, _ = top_one(plan, labels, u)
    got, g = problem.evaluate(u)
    assert got == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g, gradient, atol=1e-9)
    assert np.isfinite(along(problem, u, u, 0.5)).all()
    assert np.isfinite(problem.dual_at(u, 0.7))
    far = loss.prepare(Labels(y=labels.y * size, query_ptr=labels.query_ptr))
    assert np.isfinite(loss.evaluate(far, 0, 4, u, g))
    assert np.isfinite(g).all()


def test_a_constant_added_to_the_scores_or_labels_of_a_query_changes_nothing():
    rng = np.random.default_rng(2)
    loss = ListNetLoss()
    labels, plan = prepared(loss, rng)
    sizes = np.diff(plan.query_ptr)
    shift = np.repeat(100 * rng.normal(size=len(sizes)), sizes)
    problem = MemoryProblem(np.ones((len(shift), 1)), loss, plan)
    u = rng.normal(size=len(shift))
    value, g = problem.evaluate(u)
    moved, h = problem.evaluate(u + shift)
    assert moved == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(h, g, atol=1e-12)
    raised = loss.prepare(
        Labels(y=labels.y + shift, query_ptr=plan.query_ptr, normalize=labels.normalize)
    )
    np.testing.assert_allclose(raised.target, plan.target, atol=1e-12)


@pytest.mark.parametrize("normalize", ["query", "term", "none"])
def test_a_document_of_weight_two_is_two_documents(normalize):
    y, weight = np.array([2.0, 1, 0, 0, 1]), np.array([1.0, 2, 3, 1, 0])
    u = np.random.default_rng(3).normal(size=5)
    loss = ListNetLoss()
    weighted = loss.prepare(
        Labels(y=y, query_ptr=np.array([0, 5]), sample_weight=weight, normalize=normalize)
    )
    copies = np.repeat(np.arange(5), weight.astype(int))
    plain = loss.prepare(
        Labels(y=y[copies], query_ptr=np.array([0, len(copies)]), normalize=normalize)
    )
    a, b = np.zeros(5), np.zeros(len(copies))
    assert loss.evaluate(weighted, 0, 1, u, a) == pytest.approx(
        loss.evaluate(plain, 0, 1, u[copies], b), rel=1e-13
    )
    np.testing.assert_allclose(a, np.bincount(copies, b, minlength=5), atol=1e-14)


def test_queries_of_one_document_or_one_level_take_no_part():
    loss = ListNetLoss()
    plan = loss.prepare(
        Labels(y=np.array([2.0, 1, 1, 1, 0, 1, 1]), query_ptr=np.array([0, 1, 1, 4, 7]))
    )
    assert np.count_nonzero(plan.scale) == 1
    g = np.ones(7)
    loss.evaluate(plan, 0, 4, np.arange(7.0), g)
    assert np.all(g[:4] == 0)
    assert np.all(g[4:] != 0)


def test_plans_can_be_pickled_and_bad_targets_are_refused():
    labels = Labels(y=np.array([0.0, 1]), query_ptr=np.array([0, 2]))
    plan = get_loss("listnet", target="gain").prepare(labels)
    assert np.array_equal(pickle.loads(pickle.dumps(plan)).target, plan.target)
    with pytest.raises(InputError, match="target='gainz' is not known"):
        ListNetLoss("gainz").prepare(labels)
    with pytest.raises(InputError, match="2 to the label 2000"):
        ListNetLoss("gain").prepare(Labels(y=np.array([0.0, 2000]), query_ptr=np.array([0, 2])))


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("weights", [False, True])
def test_newton_reaches_a_certified_optimum(l1_ratio, weights):
    rng = np.random.default_rng(7)
    loss = ListNetLoss("gain")
    labels, plan = prepared(loss, rng, weights=weights, sizes=[8] * 12)
    X = rng.normal(size=(len(labels.y), 5))
    penalty = ElasticNet.build(0.03, l1_ratio, 5)
    solution = Newton(tol=1e-9).solve(MemoryProblem(X, loss, plan), penalty)
    assert solution.gap <= 1e-9
    s = 0.0 if labels.offset is None else labels.offset
    value, gradient, _, _ = top_one(plan, labels, X @ solution.w - s, "gain")
    assert solution.objective == pytest.approx(value + penalty.value(solution.w), rel=1e-10)
    assert penalty.residual(solution.w, X.T @ gradient).max() <= 1e-5
