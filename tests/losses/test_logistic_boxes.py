"""The logistic loss of long lists, summed without the pairs, against all pairs."""

import numpy as np
import pytest

from leanrank.losses import _logistic_boxes as boxes
from leanrank.losses.base import Labels
from leanrank.losses.logistic import LogisticLoss


def brute(loss, plan, y, u, D, a):
    """Return value, gradient, Hessian times D and dual value from the matrix of pairs."""
    z = u[:, None] - u
    weight = (y[:, None] > y) * np.outer(plan.win, plan.lose)
    if len(plan.table):
        level = y.astype(int)
        n_levels = level.max() + 1
        weight = weight * plan.table.reshape(n_levels, n_levels)[np.ix_(level, level)]
    value, slope, bend = loss.pair(z)
    flow, bend = weight * slope, weight * bend
    products = (bend.sum(axis=1) + bend.sum(axis=0))[:, None] * D - bend @ D - bend.T @ D
    entropy = loss.pair_dual(z, a)
    return (
        (weight * value).sum(),
        flow.sum(axis=1) - flow.sum(axis=0),
        products,
        (weight * entropy).sum(),
    )


@pytest.mark.parametrize("n_levels", [2, 3, 5, 700])
@pytest.mark.parametrize("spread", [1e-6, 1.0, 8.0, 40.0, 300.0])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("importance", [False, True])
def test_long_lists_agree_with_all_pairs(n_levels, spread, weighted, importance):
    if importance and n_levels > 64:
        pytest.skip("importance takes 64 levels")
    rng = np.random.default_rng(int(7 * spread) + n_levels)
    n = 700
    y = rng.integers(0, n_levels, n).astype(float)
    options = {}
    if weighted:
        options = {
            "sample_weight": rng.integers(0, 3, n).astype(float),
            "gain_weight": rng.random(n),
        }
    loss = LogisticLoss(rng.random((n_levels, n_levels)) if importance else None)
    plan = loss.prepare(Labels(y, np.array([0, n]), **options))
    u = spread * rng.normal(size=n) + 1e3
    u[rng.integers(0, n, 50)] = u[0]
    D, a = rng.normal(size=(n, 2)), float(rng.random())
    value, gradient, products, dual = brute(loss, plan, y, u, D, a)
    g, out = np.empty(n), np.empty_like(D)
    assert loss.evaluate(plan, 0, 1, u, g) == pytest.approx(value, rel=1e-13)
    np.testing.assert_allclose(g, gradient, rtol=1e-9, atol=1e-13 * np.abs(gradient).max())
    loss.products(plan, 0, 1, u, D, out)
    np.testing.assert_allclose(out, products, rtol=1e-9, atol=1e-12 * np.abs(products).max())
    for share, expected in ((a, dual), (1.0, brute(loss, plan, y, u, D, 1.0)[3])):
        assert loss.dual(plan, 0, 1, u, share) == pytest.approx(expected, rel=1e-12)
    assert loss.dual(plan, 0, 1, u, 0.0) == 0.0


def test_boxes_are_used_where_they_cost_less():
    rng = np.random.default_rng(0)
    v = rng.normal(size=4_000)
    assert boxes.count_boxes(v, 0, 2_000, 2_000, 4_000) == (int(np.ptp(v)) + 1, v.min())
    assert boxes.count_boxes(v, 0, 3, 3, 4_000)[0] == 0
    assert boxes.count_boxes(v, 0, 40, 40, 80)[0] == 0
    assert boxes.count_boxes(1e3 * v, 0, 2_000, 2_000, 4_000)[0] == 0
    for far in (np.inf, -np.inf, np.nan):
        v[7] = far
        assert boxes.count_boxes(v, 0, 2_000, 2_000, 4_000)[0] == 0


@pytest.mark.parametrize("kind", [boxes.VALUE, boxes.WRONG, boxes.ENTROPY, boxes.BEND])
@pytest.mark.parametrize("a", [0.25, 1.0])
def test_a_series_is_exact_between_boxes_near_and_far(kind, a):
    loss, n = LogisticLoss(), 40
    coefficients = boxes._coefficients(n, kind, a)
    t = np.linspace(-1, 1, 23)
    basis = np.polynomial.chebyshev.chebvander(t, boxes.TERMS - 1)
    for distance in (-39, -5, -1, 0, 1, 2, 39):
        z = distance + 0.5 * (t[:, None] - t)
        value, slope, bend = loss.pair(z)
        if kind == boxes.ENTROPY:
            s = -a * slope
            if a == 1.0:  # symmetric: the smaller share keeps its digits
                s = np.minimum(s, loss.pair(-z)[1] * -1.0)
            expected = -s * np.log(s) - (1.0 - s) * np.log1p(-s)
        else:
            expected = {boxes.VALUE: value, boxes.WRONG: -slope, boxes.BEND: bend}[kind]
        got = basis @ coefficients[distance + n - 1] @ basis.T
        np.testing.assert_allclose(got, expected, rtol=1e-12)
