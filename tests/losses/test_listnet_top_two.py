"""ListNet's top-two loss against a sum over all ordered pairs of copies of documents."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.losses.listnet_top_two import ListNetTopTwoLoss
from leanrank.problem.memory import MemoryProblem
from tests.losses.line import along
from tests.losses.test_listnet import prepared, softmax


def log_sum(v):
    return v.max() + np.log(np.sum(np.exp(v - v.max())))


def top_two(plan, labels, u, target="label"):
    """Value, gradient, Hessian and terms from log-sums over explicit copies (whole weights)."""
    n = len(u)
    value, gradient, hessian, terms = 0.0, np.zeros(n), np.zeros((n, n)), []
    weight = np.ones(n) if labels.sample_weight is None else labels.sample_weight
    t = labels.y if target == "label" else 2.0**labels.y - 1
    for q in np.flatnonzero(plan.scale):
        rows = np.arange(plan.query_ptr[q], plan.query_ptr[q + 1])
        copies = np.repeat(rows, weight[rows].astype(int))
        draws = [(plan.scale[q], copies)]
        for at, chance in enumerate(softmax(t[copies])):
            draws.append((plan.scale[q] * chance, np.delete(copies, at)))
        for factor, left in draws:
            wanted, p = softmax(t[left]), softmax(u[left])
            value += factor * np.sum(wanted * (log_sum(u[left]) - u[left]))
            np.add.at(gradient, left, factor * (p - wanted))
            np.add.at(hessian, np.ix_(left, left), factor * (np.diag(p) - np.outer(p, p)))
            terms.append((factor, wanted, p, left))
    return value, gradient, hessian, terms


def whole(loss, rng, weights, **more):
    """Labels whose weights are whole numbers, so that copies can be listed."""
    labels, plan = prepared(loss, rng, **more)
    if not weights:
        return labels, plan
    n = len(labels.y)
    labels = Labels(
        y=labels.y,
        query_ptr=labels.query_ptr,
        sample_weight=rng.integers(1, 4, n).astype(float),
        query_weight=rng.random(len(labels.query_ptr) - 1) + 0.5,
        offset=rng.normal(size=n),
    )
    return labels, loss.prepare(labels)


@settings(max_examples=60)
@given(
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from([2, 4, 0]),
    st.sampled_from(["label", "gain"]),
)
def test_every_operation_agrees_with_the_definition(seed, weights, n_levels, target):
    rng = np.random.default_rng(seed)
    loss = ListNetTopTwoLoss(target)
    labels, plan = whole(loss, rng, weights, n_levels=n_levels)
    n = len(labels.y)
    problem = MemoryProblem(np.ones((n, 1)), loss, plan)
    u = rng.normal(size=n) * rng.choice([0.1, 1, 5, 40])
    value, gradient, hessian, terms = top_two(plan, labels, u, target)
    got, g = problem.evaluate(u)
    assert got == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(g, gradient, rtol=1e-8, atol=1e-13)
    d, t, out = rng.normal(size=n), rng.random(), np.empty(n)
    loss.product(plan, 0, len(plan.query_ptr) - 1, u, d, out)
    np.testing.assert_allclose(out, hessian @ d, rtol=1e-8, atol=1e-12)
    rows = slice(int(plan.query_ptr[2]), int(plan.query_ptr[7]))
    D = np.asfortranarray(rng.normal(size=(rows.stop - rows.start, 3)))
    block = np.empty_like(D)
    loss.products(plan, 2, 7, u, D, block)
    np.testing.assert_allclose(block, hessian[rows, rows] @ D, rtol=1e-8, atol=1e-12)
    value_t, gradient_t, hessian_t, _ = top_two(plan, labels, u + t * d, target)
    np.testing.assert_allclose(
        along(problem, u, d, t), [value_t, gradient_t @ d, d @ hessian_t @ d], rtol=1e-8, atol=1e-12
    )
    for a in (rng.random(), 1.0):
        expected = 0.0 if labels.offset is None else -a * labels.offset @ gradient
        for factor, wanted, p, _ in terms:
            mixed = a * p + (1 - a) * wanted
            mixed = mixed[mixed > 0]
            expected -= factor * np.sum(mixed * np.log(mixed))
        assert problem.dual_at(u, a) == pytest.approx(expected, rel=1e-9, abs=1e-12)


def test_it_is_the_sum_over_ordered_pairs():
    """−Σ_{i≠j} P_ij log p_ij, the very formula of the paper for lists cut after two."""
    y, u = np.array([2.0, 0, 1, 0]), np.array([0.3, -1, 2, 0.1])

    def pair(s, i, j):
        return softmax(s)[i] * np.exp(s[j]) / np.sum(np.exp(np.delete(s, i)))

    expected = -sum(
        pair(y, i, j) * np.log(pair(u, i, j)) for i in range(4) for j in range(4) if i != j
    )
    loss = ListNetTopTwoLoss()
    plan = loss.prepare(Labels(y=y, query_ptr=np.array([0, 4])))
    assert loss.evaluate(plan, 0, 1, u, np.empty(4)) == pytest.approx(expected, rel=1e-13)


def test_weights_between_whole_numbers_keep_the_cost_positive_and_the_gradient_right():
    rng = np.random.default_rng(4)
    loss = ListNetTopTwoLoss()
    for _ in range(20):
        weight = rng.choice([0.01, 0.3, 1, 1.001, 2.5, 0], 8)
        weight[:2] = 1.2, 0.2
        y = rng.integers(0, 3, 8) * 4.0
        y[:2] = 0, 9
        plan = loss.prepare(Labels(y=y, query_ptr=np.array([0, 8]), sample_weight=weight))
        problem = MemoryProblem(np.ones((8, 1)), loss, plan)
        u, d = rng.normal(size=(2, 8))
        slope = (problem.evaluate(u + 1e-6 * d)[0] - problem.evaluate(u - 1e-6 * d)[0]) / 2e-6
        value, g = problem.evaluate(u)
        assert g @ d == pytest.approx(slope, rel=1e-6, abs=1e-9)
        assert value > 0
        assert problem.dual_at(u, 0.5) <= problem.evaluate(np.zeros(8))[0] + 1e-12


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_extreme_scores_stay_finite_and_exact(size):
    rng = np.random.default_rng(0)
    loss = ListNetTopTwoLoss()
    labels, plan = prepared(loss, rng, sizes=[6, 7, 3, 9, 2])
    u = rng.choice([-1.0, 0.0, 1.0], len(labels.y)) * size + rng.normal(size=len(labels.y))
    problem = MemoryProblem(np.ones((len(u), 1)), loss, plan)
    value, gradient, _, _ = top_two(plan, labels, u)
    got, g = problem.evaluate(u)
    assert got == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g, gradient, atol=1e-9)
    assert np.isfinite(along(problem, u, u, 0.5)).all()
    assert np.isfinite(problem.dual_at(u, 0.7))


def test_gain_weights_are_refused():
    with pytest.raises(InputError, match="gain_weight"):
        ListNetTopTwoLoss().prepare(
            Labels(y=np.array([0.0, 1]), query_ptr=np.array([0, 2]), gain_weight=np.ones(2))
        )


def test_very_long_queries_are_refused():
    y = np.zeros(50_001)
    y[0] = 1
    with pytest.raises(InputError, match="a query has 50001: use top=1"):
        ListNetTopTwoLoss().prepare(Labels(y=y, query_ptr=np.array([0, len(y)])))
