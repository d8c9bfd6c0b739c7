"""The domination loss against brute force over documents and the sets they dominate."""

import numpy as np
import pytest

from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.problem.memory import MemoryProblem
from tests.losses.line import along


def brute(plan, y, u):
    """Value, gradient, Hessian and entropy of every term, straight from the definition."""
    value, gradient, hessian = 0.0, np.zeros(len(u)), np.zeros((len(u), len(u)))
    terms = []
    for q in range(len(plan.query_ptr) - 1):
        rows = np.arange(plan.query_ptr[q], plan.query_ptr[q + 1])
        for i in rows:
            below = rows[(y[rows] < y[i]) & (plan.mass[rows] > 0)]
            if plan.gain[i] == 0 or len(below) == 0:
                continue
            support = np.append(below, i)
            logits = u[support].copy()
            logits[:-1] += np.log(plan.mass[below])
            top = logits.max()
            log_sum = top + np.log(np.exp(logits - top).sum())
            p = np.exp(logits - log_sum)
            value += plan.gain[i] * (log_sum - u[i])
            gradient[support] += plan.gain[i] * p
            gradient[i] -= plan.gain[i]
            hessian[np.ix_(support, support)] += plan.gain[i] * (np.diag(p) - np.outer(p, p))
            terms.append((i, support, p, plan.gain[i]))
    return value, gradient, hessian, terms


def random_problem(rng, n_queries=7, most=9, n_levels=3, n_features=4, weights=False):
    sizes = rng.integers(1, most + 1, n_queries)
    n = int(sizes.sum())
    y = rng.integers(0, n_levels, n).astype(float) * 1.5 - 1
    labels = Labels(
        y=y,
        query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
        sample_weight=rng.integers(0, 4, n).astype(float) if weights else None,
        query_weight=rng.random(n_queries) + 0.5 if weights else None,
        gain_weight=rng.random(n) if weights else None,
        offset=rng.normal(size=n) if weights else None,
        normalize=str(rng.choice(["query", "term", "none"])),
    )
    X = rng.normal(size=(n, n_features))
    return X, labels


CASES = [
    (seed, levels, weights)
    for seed in range(6)
    for levels in (2, 3, 6)
    for weights in (False, True)
]


@pytest.mark.parametrize(("seed", "levels", "weights"), CASES)
def test_value_gradient_hessian_and_line_agree_with_brute_force(seed, levels, weights):
    rng = np.random.default_rng(seed)
    X, labels = random_problem(rng, n_levels=levels, weights=weights)
    loss = DominationLoss()
    plan = loss.prepare(labels)
    problem = MemoryProblem(X, loss, plan)
    w = rng.normal(size=X.shape[1]) * rng.choice([0.1, 1, 5])
    u = problem.scores(w)
    value, gradient, hessian, _ = brute(plan, labels.y, u)
    got, g = problem.evaluate(u)
    assert got == pytest.approx(value, rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(g, gradient, rtol=1e-10, atol=1e-13)
    block = problem.design.take(np.arange(X.shape[1]))
    np.testing.assert_allclose(problem.hessian(block, u), X.T @ hessian @ X, rtol=1e-9, atol=1e-11)
    v = rng.normal(size=X.shape[1])
    np.testing.assert_allclose(
        problem.hessians.product(block, u, v), X.T @ (hessian @ (X @ v)), rtol=1e-9, atol=1e-11
    )
    d, t = rng.normal(size=len(u)), rng.random()
    value_t, gradient_t, hessian_t, _ = brute(plan, labels.y, u + t * d)
    np.testing.assert_allclose(
        along(problem, u, d, t),
        [value_t, gradient_t @ d, d @ hessian_t @ d],
        rtol=1e-10,
        atol=1e-12,
    )


@pytest.mark.parametrize(("seed", "levels", "weights"), CASES)
def test_dual_value_is_the_entropy_of_the_scaled_point(seed, levels, weights):
    rng = np.random.default_rng(100 + seed)
    X, labels = random_problem(rng, n_levels=levels, weights=weights)
    loss = DominationLoss()
    plan = loss.prepare(labels)
    problem = MemoryProblem(X, loss, plan)
    u = problem.scores(rng.normal(size=X.shape[1]))
    a = rng.random()
    value, gradient, _, terms = brute(plan, labels.y, u)
    expected = 0.0
    for _i, support, p, gain in terms:
        q = a * p
        q[-1] += 1 - a
        weight = np.append(plan.mass[support[:-1]], 1.0)
        keep = q > 0
        expected += gain * np.sum(-q[keep] * np.log(q[keep] / weight[keep]))
    if plan.offset is not None:
        expected -= a * plan.offset @ gradient
    assert problem.dual_at(u, a) == pytest.approx(expected, rel=1e-10, abs=1e-12)
    # Fenchel: the dual at a = 1 plus the inner product with the scores is the value itself
    s = 0.0 if plan.offset is None else plan.offset
    assert problem.dual_at(u, 1.0) + gradient @ (u + s) == pytest.approx(value, rel=1e-9, abs=1e-11)


def test_the_counter_example_to_one_shift_a_query():
    loss = DominationLoss()
    plan = loss.prepare(
        Labels(y=np.array([1.0, 1, 0]), query_ptr=np.array([0, 3]), normalize="none")
    )
    g = np.zeros(3)
    value = loss.evaluate(plan, 0, 1, np.array([1e6, 0.0, -1.0]), g)
    assert value == pytest.approx(0.31326168751822286, rel=1e-14)


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_extreme_scores_stay_finite_and_exact(size):
    rng = np.random.default_rng(0)
    _, labels = random_problem(rng, n_queries=30, n_levels=4)
    loss = DominationLoss()
    plan = loss.prepare(labels)
    u = rng.choice([-1.0, 0.0, 1.0], len(labels.y)) * size + rng.normal(size=len(labels.y))
    problem = MemoryProblem(np.ones((len(u), 1)), loss, plan)
    value, gradient, _, _ = brute(plan, labels.y, u)
    got, g = problem.evaluate(u)
    assert got == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g, gradient, atol=1e-9)
    assert np.isfinite(along(problem, u, u, 0.5)).all()
    assert np.isfinite(problem.dual_at(u, 0.7))


def test_one_document_and_one_level_queries_take_no_part():
    loss = DominationLoss()
    ptr = np.array([0, 1, 4, 7])
    plan = loss.prepare(Labels(y=np.array([2.0, 1, 1, 1, 0, 1, 1]), query_ptr=ptr))
    assert np.count_nonzero(plan.scale) == 1
    g = np.ones(7)
    value = loss.evaluate(plan, 0, 3, np.zeros(7), g)
    assert value == pytest.approx(np.log(2))  # mean of two equal terms of one query
    assert np.all(g[:4] == 0)


def test_a_document_of_weight_two_is_two_documents():
    rng = np.random.default_rng(3)
    y = np.array([2.0, 1, 0, 0, 1])
    u = rng.normal(size=5)
    weight = np.array([1.0, 2, 3, 1, 0])
    loss = DominationLoss()
    for normalize in ("query", "term", "none"):
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


def test_many_levels_cost_no_table():
    y = np.arange(100.0)
    labels = Labels(y=y, query_ptr=np.array([0, 100]))
    plan = DominationLoss().prepare(labels)
    u = np.random.default_rng(0).normal(size=100)
    g = np.zeros(100)
    value, gradient, _, _ = brute(plan, y, u)
    assert DominationLoss().evaluate(plan, 0, 1, u, g) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g, gradient, atol=1e-14)
