"""Pairwise losses against brute force over pairs."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.errors import InputError
from leanrank.losses.base import Edges, Labels
from leanrank.losses.hinge import HingeLoss, SquaredHingeLoss
from leanrank.losses.pairs import PairwiseLoss

LOSSES = [HingeLoss, SquaredHingeLoss]


def brute_pairs(labels, plan, table=None):
    """List the pairs (i, j, c) that the labels or the edges imply."""
    ptr, n = labels.query_ptr, int(labels.query_ptr[-1])
    one = np.ones(n)
    mass = one if labels.sample_weight is None else labels.sample_weight
    gain = one if labels.gain_weight is None else labels.gain_weight
    query_of = np.repeat(np.arange(len(ptr) - 1), np.diff(ptr))
    pairs = []
    if labels.edges is not None:
        for i, j, times in zip(*labels.edges, strict=True):
            pairs.append((i, j, times * plan.scale[query_of[i]] * mass[i] * gain[i] * mass[j]))
        return pairs
    levels = np.unique(labels.y)
    for q in range(len(ptr) - 1):
        for i in range(ptr[q], ptr[q + 1]):
            for j in range(ptr[q], ptr[q + 1]):
                if labels.y[i] > labels.y[j]:
                    c = plan.scale[q] * mass[i] * gain[i] * mass[j]
                    if table is not None:
                        k, low = np.searchsorted(levels, (labels.y[i], labels.y[j]))
                        c *= table[q][k, low]
                    pairs.append((i, j, c))
    return pairs


def brute(loss, pairs, u):
    """Value, gradient and Hessian straight from the definition."""
    value, gradient, hessian = 0.0, np.zeros(len(u)), np.zeros((len(u), len(u)))
    for i, j, c in pairs:
        (f,), (slope,), (bend,) = loss.pair(np.array([u[i] - u[j]]))
        value += c * f
        gradient[i] += c * slope
        gradient[j] -= c * slope
        hessian[i, i] += c * bend
        hessian[j, j] += c * bend
        hessian[i, j] -= c * bend
        hessian[j, i] -= c * bend
    return value, gradient, hessian


def random_labels(rng, n_levels, *, weights=False, edges=False, most=9):
    sizes = rng.integers(0, most + 1, 7)
    sizes[0], sizes[1] = 2, most
    n = int(sizes.sum())
    y = rng.integers(0, n_levels, n) * 1.5 - 1
    y[:2] = (0.5, 2.0)
    ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    found = None
    if edges:
        query_of = np.repeat(np.arange(7), sizes)
        two = rng.integers(0, n, (400, 2))
        two = two[(two[:, 0] != two[:, 1]) & (query_of[two[:, 0]] == query_of[two[:, 1]])]
        found = Edges(two[:, 0], two[:, 1], rng.integers(0, 3, len(two)) + 0.5)
    return Labels(
        y=y,
        query_ptr=ptr,
        sample_weight=np.append([1.0, 2.0], rng.integers(0, 4, n - 2)) if weights else None,
        query_weight=rng.random(7) + 0.5 if weights else None,
        gain_weight=rng.random(n) if weights else None,
        offset=rng.normal(size=n) if weights else None,
        normalize=str(rng.choice(["query", "term", "none"])),
        edges=found,
    )


def scores(rng, n, kind):
    if kind == "ties":
        return rng.integers(-2, 3, n) * 0.5
    if kind == "satisfied":
        return rng.normal(size=n) * 100
    return rng.normal(size=n)


CASES = [
    (seed, levels, weights, form)
    for seed in range(3)
    for levels in (2, 3, 40)
    for weights in (False, True)
    for form in ("plain", "table", "ndcg", "edges")
]


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("spread", ["ties", "satisfied", "normal"])
@pytest.mark.parametrize(("seed", "levels", "weights", "form"), CASES)
def test_every_operation_agrees_with_brute_force(kind, spread, seed, levels, weights, form):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, levels, weights=weights, edges=form == "edges")
    importance, table = None, None
    if form == "table":
        n_levels = len(np.unique(labels.y))
        importance = rng.random((n_levels, n_levels))
        table = [importance] * 7
    elif form == "ndcg":
        importance, table = "ndcg", brute_swap_costs(labels)
    margin = float(rng.choice([0.0, 1.0, 2.5]))
    loss = kind(importance, margin=margin)
    plan = pickle.loads(pickle.dumps(loss.prepare(labels)))
    u = scores(rng, plan.n_rows, spread)
    pairs = brute_pairs(labels, plan, table)
    for r0, r1 in ((0, 7), (1, 4), (3, 3)):
        rows = plan.span(r0, r1)
        some = [p for p in pairs if rows.start <= p[0] < rows.stop]
        value, gradient, hessian = brute(loss, some, u)
        g = np.full(plan.n_rows, np.nan)
        assert loss.evaluate(plan, r0, r1, u, g) == pytest.approx(value, rel=1e-12, abs=1e-14)
        np.testing.assert_allclose(g[rows], gradient[rows], rtol=1e-10, atol=1e-12)
        assert np.isnan(np.delete(g, np.r_[rows])).all()
        a = rng.random()
        expected = sum(c * loss.pair_dual(np.array([u[i] - u[j]]), a)[0] for i, j, c in some)
        if weights:
            expected -= a * plan.offset @ gradient
        assert loss.dual(plan, r0, r1, u, a) == pytest.approx(expected, rel=1e-10, abs=1e-12)
        d, t = rng.normal(size=len(u)), rng.random()
        if loss.smooth:
            bend = brute(loss, some, u + t * d)[2]
            out = np.zeros(len(u))
            loss.product(plan, r0, r1, u + t * d, d, out)
            np.testing.assert_allclose(out[rows], (bend @ d)[rows], rtol=1e-10, atol=1e-11)
        if loss.offers("products"):
            D = rng.normal(size=(len(u), 3)) + 5
            out = np.full((rows.stop - rows.start, 3), np.nan)
            loss.products(plan, r0, r1, u, D[rows], out)
            np.testing.assert_allclose(out, (hessian @ D)[rows], rtol=1e-9, atol=1e-11)
            flat = np.full(len(u), np.nan)
            loss.product(plan, r0, r1, u, D[:, 0].copy(), flat)
            np.testing.assert_array_equal(flat[rows], out[:, 0])


def brute_swap_costs(labels):
    """|ΔNDCG| with mean discounts, from the ideal ranking of repeated documents."""
    levels = np.unique(labels.y)
    gain = 2.0 ** np.maximum(levels, 0) - 1
    tables = []
    for begin, end in zip(labels.query_ptr[:-1], labels.query_ptr[1:], strict=True):
        times = np.ones(end - begin, int)
        if labels.sample_weight is not None:
            times = labels.sample_weight[begin:end].astype(int)
        ideal = np.sort(np.repeat(labels.y[begin:end], times))[::-1]
        discount = 1 / np.log2(np.arange(len(ideal)) + 2)
        mean = np.array([discount[ideal == y].mean() if y in ideal else 0.0 for y in levels])
        dcg = (2.0 ** np.maximum(ideal, 0) - 1) @ discount
        cost = np.abs(np.subtract.outer(gain, gain) * np.subtract.outer(mean, mean))
        tables.append(cost / dcg if dcg > 0 else np.zeros_like(cost))
    return tables


def test_with_importance_ndcg_a_query_weighs_one_whatever_its_length():
    y = np.concatenate([np.arange(2.0), np.tile(np.arange(4.0), 10)])
    labels = Labels(y=y, query_ptr=np.array([0, 2, 42]))
    loss = SquaredHingeLoss("ndcg")
    plan = loss.prepare(labels)
    u, g = np.zeros(42), np.zeros(42)  # every pair pays 1
    both = [loss.evaluate(plan, q, q + 1, u, g) for q in (0, 1)]
    assert both == pytest.approx([0.5, 0.5])


@settings(max_examples=60, deadline=None)
@given(data=st.data(), kind=st.sampled_from(LOSSES), n=st.integers(2, 12))
def test_any_scores_and_labels(data, kind, n):
    number = st.floats(-4, 4, width=16)
    y = np.array(data.draw(st.lists(number, min_size=n, max_size=n)))
    y[:2] = (-9.0, 9.0)
    u = np.array(data.draw(st.lists(number, min_size=n, max_size=n)))
    labels = Labels(y=y, query_ptr=np.array([0, n]), normalize="none")
    loss = kind()
    plan = loss.prepare(labels)
    value, gradient, _ = brute(loss, brute_pairs(labels, plan), u)
    g = np.empty(n)
    assert loss.evaluate(plan, 0, 1, u, g) == pytest.approx(value, rel=1e-12, abs=1e-14)
    np.testing.assert_allclose(g, gradient, rtol=1e-12, atol=1e-12)


@pytest.mark.parametrize("kind", LOSSES)
def test_gradient_is_the_slope_of_the_value(kind):
    rng = np.random.default_rng(5)
    labels = random_labels(rng, 4, weights=True)
    loss = kind("ndcg")
    plan = loss.prepare(labels)
    u, g, other = rng.normal(size=plan.n_rows), np.empty(plan.n_rows), np.empty(plan.n_rows)
    loss.evaluate(plan, 0, 7, u, g)
    for _ in range(5):
        d = rng.normal(size=len(u))
        ahead = loss.evaluate(plan, 0, 7, u + 1e-6 * d, other)
        behind = loss.evaluate(plan, 0, 7, u - 1e-6 * d, other)
        assert (ahead - behind) / 2e-6 == pytest.approx(g @ d, rel=1e-5, abs=1e-8)


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("n_levels", [3, 300])
def test_large_offsets_do_not_cancel(kind, n_levels):
    rng = np.random.default_rng(0)
    y = rng.integers(0, n_levels, 300).astype(float)
    labels = Labels(y=y, query_ptr=np.array([0, 300]))
    loss = kind()
    plan = loss.prepare(labels)
    u = np.round(rng.normal(size=300) * 2**20) / 2**20
    g, shifted = np.empty(300), np.empty(300)
    value = loss.evaluate(plan, 0, 1, u, g)
    assert loss.evaluate(plan, 0, 1, u + 1e8, shifted) == pytest.approx(value, rel=1e-6)
    np.testing.assert_allclose(shifted, g, rtol=1e-6, atol=1e-12)
    # well separated but for one pair of neighbours, whose small violation must survive
    u = y * 1e8
    low, high = np.argsort(y, kind="stable")[:2]
    y[low], y[high] = -1.0, 0.0
    plan = loss.prepare(Labels(y=y, query_ptr=np.array([0, 300]), normalize="none"))
    u[low], u[high] = 1.0, 1.5
    u[y > 0] += 1e8
    others = (y == 0) & (np.arange(300) != high)
    u[others] = 1e8
    assert loss.evaluate(plan, 0, 1, u, g) == pytest.approx(loss.pair(np.array([0.5]))[0][0])


@pytest.mark.parametrize("kind", LOSSES)
def test_a_weight_of_two_is_the_document_twice(kind):
    rng = np.random.default_rng(3)
    y, u = rng.integers(0, 3, 12).astype(float), rng.normal(size=12)
    times = rng.integers(0, 3, 12)
    twice = np.repeat(np.arange(12), times)
    for normalize in ("query", "term", "none"):
        for importance in (None, "ndcg"):
            loss = kind(importance)
            weighted = loss.prepare(
                Labels(
                    y=y,
                    query_ptr=np.array([0, 12]),
                    sample_weight=times.astype(float),
                    normalize=normalize,
                )
            )
            repeated = loss.prepare(
                Labels(y=y[twice], query_ptr=np.array([0, len(twice)]), normalize=normalize)
            )
            value = loss.evaluate(weighted, 0, 1, u, np.empty(12))
            assert value == pytest.approx(
                loss.evaluate(repeated, 0, 1, u[twice], np.empty(len(twice))), rel=1e-12
            )


def test_terms_are_pairs():
    y = np.array([0.0, 1, 2, 2, 0, 0, 1.0])
    ptr = np.array([0, 4, 6, 7])
    plan = SquaredHingeLoss().prepare(Labels(y=y, query_ptr=ptr, normalize="query"))
    np.testing.assert_allclose(plan.scale, [1 / 5, 0, 0])
    edges = Edges(np.array([4, 0, 0]), np.array([5, 1, 1]), np.array([1.0, 2.0, 2.0]))
    plan = SquaredHingeLoss().prepare(Labels(y=y, query_ptr=ptr, normalize="query", edges=edges))
    np.testing.assert_allclose(plan.scale, [1 / 8, 1 / 2, 0])


def test_the_answer_does_not_depend_on_what_was_asked_before():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 200).astype(float)
    labels = Labels(y=y, query_ptr=np.array([0, 200]))
    u = rng.integers(0, 9, 200) / 7
    fresh, used, g, again = SquaredHingeLoss(), SquaredHingeLoss(), np.empty(200), np.empty(200)
    plan, seasoned = fresh.prepare(labels), used.prepare(labels)
    used.evaluate(seasoned, 0, 1, rng.normal(size=200), again)
    value = fresh.evaluate(plan, 0, 1, u, g)
    assert used.evaluate(seasoned, 0, 1, u, again) == value
    np.testing.assert_array_equal(g, again)


def test_many_levels_with_importance_are_refused():
    y = np.arange(70.0)
    labels = Labels(y=y, query_ptr=np.array([0, 70]))
    with pytest.raises(InputError, match="at most 64 levels"):
        SquaredHingeLoss("ndcg").prepare(labels)
    with pytest.raises(InputError, match="'map' is not known"):
        SquaredHingeLoss("map").prepare(Labels(y=y[:3], query_ptr=np.array([0, 3])))
    with pytest.raises(InputError, match="shape"):
        HingeLoss(np.ones((2, 2))).prepare(Labels(y=y[:3], query_ptr=np.array([0, 3])))
    with pytest.raises(InputError, match="not negative"):
        HingeLoss(-np.ones((3, 3))).prepare(Labels(y=y[:3], query_ptr=np.array([0, 3])))
    edges = Edges(np.array([0]), np.array([1]), np.array([1.0]))
    with pytest.raises(InputError, match="preferences do not have"):
        HingeLoss("ndcg").prepare(Labels(y=y[:3], query_ptr=np.array([0, 3]), edges=edges))


def test_only_smooth_losses_offer_curvature():
    assert SquaredHingeLoss.offers("products")
    assert not HingeLoss.offers("products")
    assert issubclass(HingeLoss, PairwiseLoss)


def test_an_order_that_is_remembered_changes_nothing():
    rng = np.random.default_rng(1)
    y = rng.integers(0, 3, 50).astype(float)
    labels = Labels(y=y, query_ptr=np.array([0, 50]), normalize="none")
    bare = SquaredHingeLoss().prepare(labels)
    plan = SquaredHingeLoss().workspace(bare)
    u, other, g = rng.normal(size=50), rng.normal(size=50), np.empty(50)
    losses = [SquaredHingeLoss(), SquaredHingeLoss(margin=2.0), HingeLoss()]
    fresh = {
        (at, k): loss.dual(loss.prepare(labels), 0, 1, scores, 0.7)
        for at, loss in enumerate(losses)
        for k, scores in enumerate((u, other))
    }
    for _ in range(2):
        for at, loss in enumerate(losses):
            for k, scores in enumerate((u, other)):
                loss.evaluate(plan, 0, 1, scores, g)
                assert loss.dual(plan, 0, 1, scores, 0.7) == fresh[at, k]
                assert loss.dual(plan, 0, 1, (other, u)[k], 0.7) == fresh[at, 1 - k]
    assert plan.order.tolist() == np.argsort(u).tolist()
    assert bare.order is None
    assert SquaredHingeLoss().workspace(plan).order is not plan.order


@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("n_levels", [60, 8_500])
def test_levels_in_two_tiers_are_levels(kind, n_levels):
    rng = np.random.default_rng(n_levels)
    n = 9_000
    y = rng.permutation(np.append(np.arange(n_levels), rng.integers(0, n_levels, n - n_levels)))
    weight = rng.integers(0, 3, n).astype(float)
    u = rng.normal(size=n) * 3
    labels = Labels(
        y=y.astype(float), query_ptr=np.array([0, n]), sample_weight=weight, normalize="none"
    )
    loss = kind()
    plan = loss.prepare(labels)
    g = np.empty(n)
    value = loss.evaluate(plan, 0, 1, u, g)
    total, gradient = 0.0, np.zeros(n)
    D, products = rng.normal(size=(n, 2)), np.zeros((n, 2))
    for some in np.split(np.arange(n), 18):
        c = weight[some, None] * weight * (y[some, None] > y)
        each, slope, bend = loss.pair(u[some, None] - u)
        total += (c * each).sum()
        gradient[some] += (c * slope).sum(axis=1)
        gradient -= (c * slope).sum(axis=0)
        products[some] += (c * bend).sum(axis=1)[:, None] * D[some] - (c * bend) @ D
        products += (c * bend).sum(axis=0)[:, None] * D - (c * bend).T @ D[some]
    assert value == pytest.approx(total, rel=1e-11)
    np.testing.assert_allclose(g, gradient, rtol=1e-9, atol=1e-8)
    if loss.smooth:
        out = np.empty_like(D)
        loss.products(plan, 0, 1, u, D, out)
        np.testing.assert_allclose(out, products, rtol=1e-9, atol=1e-8)
