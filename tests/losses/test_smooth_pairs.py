"""The exponential and logistic losses against brute force over pairs."""

import pickle
from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.losses.exponential import ExponentialLoss
from leanrank.losses.logistic import LogisticLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.newton.solver import Newton
from tests.losses.test_pairs import brute, brute_pairs, brute_swap_costs, random_labels

LOSSES = [ExponentialLoss, LogisticLoss]
FORMS = ["plain", "table", "ndcg", "edges"]


def conjugate_value(loss, z, a):
    """Give −φ*(a φ′(z)) by maximising ⟨v, x⟩ − φ(x) over a fine grid around the maximum."""
    v = a * loss.pair(np.array([z]))[1][0]
    x = np.linspace(-30, 30, 60_001)
    return -np.max(v * x - loss.pair(x)[0])


@pytest.mark.parametrize("kind", LOSSES)
def test_a_pair_is_what_it_says(kind):
    loss, z, h = kind(), np.linspace(-3, 4, 29), 1e-5
    value, slope, bend = loss.pair(z)
    known = np.exp(-z) if kind is ExponentialLoss else np.log(1 + np.exp(-z))
    np.testing.assert_allclose(value, known, rtol=1e-13)
    np.testing.assert_allclose(
        slope, (loss.pair(z + h)[0] - loss.pair(z - h)[0]) / (2 * h), rtol=1e-7
    )
    np.testing.assert_allclose(
        bend, (loss.pair(z + h)[1] - loss.pair(z - h)[1]) / (2 * h), rtol=1e-7
    )
    for a in (0.3, 1.0):
        expected = [conjugate_value(loss, one, a) for one in z]
        np.testing.assert_allclose(loss.pair_dual(z, a), expected, rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("form", FORMS)
@settings(max_examples=40)
@given(
    st.integers(0, 2**32 - 1), st.sampled_from([2, 3, 40]), st.booleans(), st.sampled_from([1, 8])
)
def test_every_operation_agrees_with_brute_force(kind, form, seed, levels, weights, spread):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, levels, weights=weights, edges=form == "edges")
    importance, table = None, None
    if form == "table":
        n_levels = len(np.unique(labels.y))
        importance = rng.random((n_levels, n_levels)) * rng.integers(0, 2, (n_levels, n_levels))
        table = [importance] * 7
    elif form == "ndcg":
        importance, table = "ndcg", brute_swap_costs(labels)
    loss = kind(importance)
    plan = pickle.loads(pickle.dumps(loss.prepare(labels)))
    u = rng.normal(size=plan.n_rows) * spread
    pairs = brute_pairs(labels, plan, table)
    for r0, r1 in ((0, 7), (1, 4), (3, 3)):
        rows = plan.span(r0, r1)
        inside = [p for p in pairs if rows.start <= p[0] < rows.stop]
        value, gradient, hessian = brute(loss, inside, u)
        g = np.full(plan.n_rows, np.nan)
        assert loss.evaluate(plan, r0, r1, u, g) == pytest.approx(value, rel=1e-11, abs=1e-14)
        scale = np.abs(gradient).max(initial=0.0) + 1e-300
        np.testing.assert_allclose(g[rows], gradient[rows], rtol=1e-9, atol=1e-13 * scale)
        assert np.isnan(np.delete(g, np.arange(rows.start, rows.stop))).all()
        D = rng.normal(size=(rows.stop - rows.start, 3))
        out = np.empty_like(D)
        loss.products(plan, r0, r1, u, D, out)
        expected = hessian[rows, rows] @ D
        size = np.abs(expected).max(initial=0.0) + 1e-300
        np.testing.assert_allclose(out, expected, rtol=1e-8, atol=1e-12 * size)
        a = rng.random()
        s = 0.0 if plan.offset is None else plan.offset @ gradient
        dual = sum(c * loss.pair_dual(np.array([u[i] - u[j]]), a)[0] for i, j, c in inside) - a * s
        assert loss.dual(plan, r0, r1, u, a) == pytest.approx(
            dual, rel=1e-9, abs=1e-12 * (1 + abs(value))
        )
        assert loss.dual(plan, r0, r1, u, 0.0) == 0.0
    d, t = rng.normal(size=plan.n_rows), rng.random()
    value, _, hessian = brute(loss, pairs, u + t * d)
    out = np.zeros(plan.n_rows)
    loss.product(plan, 0, 7, u + t * d, d, out)
    np.testing.assert_allclose(out, hessian @ d, rtol=1e-9, atol=1e-11 * abs(value))


@pytest.mark.parametrize("size", [1e3, 1e6])
def test_the_logistic_loss_of_extreme_scores_is_exact(size):
    rng = np.random.default_rng(0)
    labels = random_labels(rng, 4)
    loss = LogisticLoss()
    plan = loss.prepare(labels)
    u = rng.choice([-1.0, 0.0, 1.0], plan.n_rows) * size + rng.normal(size=plan.n_rows)
    g = np.empty(plan.n_rows)
    value, gradient, _ = brute(loss, brute_pairs(labels, plan), u)
    assert loss.evaluate(plan, 0, 7, u, g) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g, gradient, rtol=1e-9, atol=1e-12)
    assert np.isfinite(loss.dual(plan, 0, 7, u, 0.7))


def test_the_exponential_loss_overflows_only_where_a_pair_does():
    labels = Labels(y=np.array([1.0, 1, 0, 0]), query_ptr=np.array([0, 2, 4]), normalize="none")
    with pytest.raises(InputError, match="two levels"):
        ExponentialLoss().prepare(labels)
    labels = Labels(y=np.array([1.0, 1, 0]), query_ptr=np.array([0, 3]), normalize="none")
    loss, g = ExponentialLoss(), np.empty(3)
    plan = loss.prepare(labels)
    # one shift for a query could not hold both pairs: e^{−10⁶} and e^{−1}
    assert loss.evaluate(plan, 0, 1, np.array([1e6, 0.0, -1.0]), g) == pytest.approx(np.exp(-1))
    np.testing.assert_allclose(g, [0.0, -np.exp(-1), np.exp(-1)], rtol=1e-14)
    assert loss.evaluate(plan, 0, 1, np.array([1e6, 1e6 + 1, 1e6]), g) == pytest.approx(
        1 + np.exp(-1)
    )
    assert loss.evaluate(plan, 0, 1, np.array([0.0, 0.0, 1e6]), g) == np.inf


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("importance", [None, "ndcg"])
@pytest.mark.parametrize("n_levels", [3, 60])
@pytest.mark.parametrize("spread", [1.0, 60.0])
def test_long_queries_among_short_ones(kind, importance, n_levels, spread):
    """Long queries go by blocks, and far losers by other sums: neither shows."""
    rng = np.random.default_rng(6)
    ptr = np.cumsum([0, 3, 100, 0, 5, 64, 63, 2])
    n = int(ptr[-1])
    y = rng.integers(0, n_levels, n).astype(float)
    y[:2] = 0, 1
    labels = Labels(y=y, query_ptr=ptr, gain_weight=rng.random(n), normalize="none")
    loss = kind(importance)
    plan = loss.prepare(labels)
    table = None if importance is None else brute_swap_costs(labels)
    pairs = brute_pairs(labels, plan, table)
    u = rng.normal(size=n) * spread
    if kind is ExponentialLoss:
        u = np.clip(u, -20, 20)
    elif spread > 1:
        u = np.clip(u, -95, 95)  # e^190 a pair, and many pairs: products have to be put away
    value, gradient, hessian = brute(loss, pairs, u)
    g, D = np.empty(n), rng.normal(size=(n, 4))
    assert loss.evaluate(plan, 0, 7, u, g) == pytest.approx(value, rel=1e-11)
    np.testing.assert_allclose(g, gradient, rtol=1e-8, atol=1e-12 * np.abs(gradient).max())
    for r0, r1 in ((0, 7), (1, 5), (5, 7)):
        rows = plan.span(r0, r1)
        out = np.full_like(D[rows], np.nan)
        loss.products(plan, r0, r1, u, D[rows], out)
        expected = hessian[rows, rows] @ D[rows]
        np.testing.assert_allclose(out, expected, rtol=1e-8, atol=1e-11 * np.abs(expected).max())
    for a in (0.3, 1.0):
        dual = sum(c * loss.pair_dual(np.array([u[i] - u[j]]), a)[0] for i, j, c in pairs)
        assert loss.dual(plan, 0, 7, u, a) == pytest.approx(dual, rel=1e-9, abs=1e-12 * value)


@pytest.mark.parametrize("kind", LOSSES)
def test_as_many_levels_as_documents_and_shifts_within_queries(kind):
    rng = np.random.default_rng(1)
    y = rng.normal(size=80)
    labels = Labels(y=y, query_ptr=np.array([0, 80]))
    loss = kind()
    plan = loss.prepare(labels)
    u, g, h = rng.normal(size=80), np.empty(80), np.empty(80)
    value, gradient, _ = brute(loss, brute_pairs(labels, plan), u)
    assert loss.evaluate(plan, 0, 1, u, g) == pytest.approx(value, rel=1e-12)
    np.testing.assert_allclose(g, gradient, rtol=1e-9, atol=1e-13)
    assert loss.evaluate(plan, 0, 1, u + 1e5, h) == pytest.approx(value, rel=1e-9)
    np.testing.assert_allclose(h, g, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("kind", LOSSES)
def test_a_document_of_weight_two_is_two_documents(kind):
    y, weight = np.array([2.0, 1, 0, 0, 1]), np.array([1.0, 2, 3, 1, 0])
    u = np.random.default_rng(3).normal(size=5)
    copies = np.repeat(np.arange(5), weight.astype(int))
    loss = kind()
    for normalize in ("query", "term", "none"):
        one = loss.prepare(
            Labels(y=y, query_ptr=np.array([0, 5]), sample_weight=weight, normalize=normalize)
        )
        other = loss.prepare(
            Labels(y=y[copies], query_ptr=np.array([0, len(copies)]), normalize=normalize)
        )
        a, b = np.zeros(5), np.zeros(len(copies))
        assert loss.evaluate(one, 0, 1, u, a) == pytest.approx(
            loss.evaluate(other, 0, 1, u[copies], b), rel=1e-13
        )
        np.testing.assert_allclose(a, np.bincount(copies, b, minlength=5), atol=1e-14)


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("form", ["plain", "edges", "ndcg"])
@pytest.mark.parametrize("kind", LOSSES)
def test_newton_reaches_a_certified_optimum(kind, form, l1_ratio):
    rng = np.random.default_rng(11)
    labels = random_labels(rng, 4, weights=True, edges=form == "edges", most=20)
    labels = replace(labels, normalize="query")
    loss = kind("ndcg" if form == "ndcg" else None)
    plan = loss.prepare(labels)
    X = rng.normal(size=(plan.n_rows, 5))
    penalty = ElasticNet.build(0.02, l1_ratio, 5)
    solution = Newton(tol=1e-10).solve(MemoryProblem(X, loss, plan), penalty)
    assert solution.gap <= 1e-10
    assert solution.w.any()
    table = brute_swap_costs(labels) if form == "ndcg" else None
    pairs = brute_pairs(labels, plan, table)
    value, gradient, _ = brute(loss, pairs, X @ solution.w - plan.offset)
    assert solution.objective == pytest.approx(value + penalty.value(solution.w), rel=1e-9)
    assert penalty.residual(solution.w, X.T @ gradient).max() <= 1e-5
