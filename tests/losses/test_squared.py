from __future__ import annotations

import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanrank._typing import require
from leanrank.errors import InputError
from leanrank.losses.base import Curvature, Labels, query_scale
from leanrank.losses.squared import SquaredLoss


def by_pairs(u, y, ptr, scale, weight):
    """The definition: all pairs of a query, a pair weighing the product of its documents."""
    value = 0.0
    for q in range(len(ptr) - 1):
        rows = range(ptr[q], ptr[q + 1])
        mass = sum(weight[i] for i in rows)
        if mass == 0:
            continue
        pairs = sum(
            weight[i] * weight[j] * ((u[i] - u[j]) - (y[i] - y[j])) ** 2
            for i in rows
            for j in rows
            if i < j
        )
        value += scale[q] * pairs / (2 * mass)
    return value


def prepared(sizes, seed=0, weighted=False, **more):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    ptr = np.concatenate(([0], np.cumsum(sizes))).astype(np.int64)
    y = rng.integers(0, 3, n).astype(np.float64)
    y[0] = y.max() + 1  # so that there is something to learn
    weight = rng.integers(0, 3, n).astype(np.float64) if weighted else None
    if weighted:
        weight[:2] = 1.0
    labels = Labels(y, ptr, sample_weight=weight, **more)
    return SquaredLoss().prepare(labels), rng


def evaluate(plan, u):
    g = np.full(plan.n_rows, np.nan)
    value = SquaredLoss().evaluate(plan, 0, len(plan.query_ptr) - 1, u, g)
    return value, g


sizes_of_queries = st.lists(st.integers(0, 6), max_size=6).map(lambda s: [4, *s])


@given(
    sizes_of_queries,
    st.integers(0, 2**32 - 1),
    st.booleans(),
    st.sampled_from(["query", "term", "none"]),
)
def test_value_is_the_sum_over_pairs(sizes, seed, weighted, normalize):
    plan, rng = prepared(sizes, seed, weighted, normalize=normalize)
    u = rng.normal(size=plan.n_rows)
    value, _ = evaluate(plan, u)
    assert value == pytest.approx(
        by_pairs(u, plan.y, plan.query_ptr, plan.scale, plan.weight), rel=1e-12, abs=1e-14
    )


@given(sizes_of_queries, st.integers(0, 2**32 - 1), st.booleans())
def test_gradient_against_finite_differences(sizes, seed, weighted):
    plan, rng = prepared(sizes, seed, weighted)
    u = rng.normal(size=plan.n_rows)
    _, g = evaluate(plan, u)
    for i in range(plan.n_rows):
        step = np.zeros(plan.n_rows)
        step[i] = 1e-4  # central differences are exact for a quadratic
        slope = (evaluate(plan, u + step)[0] - evaluate(plan, u - step)[0]) / 2e-4
        assert g[i] == pytest.approx(slope, rel=1e-7, abs=1e-9)


def test_ranges_touch_only_their_own_rows_and_add_up():
    plan, rng = prepared([4, 0, 1, 5, 3], weighted=True)
    u = rng.normal(size=plan.n_rows)
    whole, g = evaluate(plan, u)
    parts = 0.0
    for q in range(5):
        mine = np.full(plan.n_rows, np.nan)
        parts += SquaredLoss().evaluate(plan, q, q + 1, u, mine)
        rows = slice(plan.query_ptr[q], plan.query_ptr[q + 1])
        assert np.array_equal(mine[rows], g[rows])
        assert np.isnan(np.delete(mine, np.r_[rows])).all()
    assert parts == pytest.approx(whole, rel=1e-14)


def test_scores_far_from_zero_do_not_cancel():
    plan, rng = prepared([4, 50], normalize="none")
    u = np.round(rng.normal(size=plan.n_rows) * 1024) / 1024  # exact beside 1e8
    value, g = evaluate(plan, u)
    shifted = u + np.where(np.arange(plan.n_rows) < 4, 1e8, -3e8)
    far_value, far_g = evaluate(plan, shifted)
    assert far_value == pytest.approx(value, rel=1e-6)
    assert np.allclose(far_g, g, atol=1e-6)
    assert np.abs(g).max() > 0.1


@pytest.mark.parametrize("weighted", [False, True])
def test_curvature_folds_into_the_weighted_centring(weighted):
    plan, rng = prepared([4, 0, 1, 5], weighted=weighted)
    loss = SquaredLoss()
    n, n_queries = plan.n_rows, 4
    X = rng.normal(size=(n, 3))
    found = Curvature.empty(loss, plan)
    for r0, r1 in ((0, 2), (2, 4)):
        loss.curvature(plan, r0, r1, np.zeros(n), found)
    sums = np.zeros((n_queries, 1, 3))
    np.add.at(sums, plan.cell, found.atoms[:, :, None] * X[:, None, :])
    left, right = loss.fold(plan, 0, n_queries, found.aux, sums)
    hessian = X.T @ (found.diag[:, None] * X) - left.T @ right - right.T @ left
    expected = np.zeros((3, 3))
    for q in range(n_queries):
        rows = slice(plan.query_ptr[q], plan.query_ptr[q + 1])
        m = plan.weight[rows]
        if m.sum() > 0:
            L = np.diag(m) - np.outer(m, m) / m.sum()
            expected += plan.scale[q] * X[rows].T @ L @ X[rows]
    assert np.allclose(hessian, expected, atol=1e-13)


def test_scales_of_each_normalisation():
    ptr = np.array([0, 2, 2, 3, 7])
    y = np.array([0.0, 1, 5, 0, 0, 0, 0])
    omega = np.array([2.0, 3, 4, 1])

    def scale(normalize, weight=None):
        return SquaredLoss().prepare(Labels(y, ptr, normalize=normalize, query_weight=weight)).scale

    # A query of one level takes part: it asks for equal scores. Empty and lone ones do not.
    assert scale("none").tolist() == [1, 0, 0, 1]
    assert scale("query").tolist() == [1 / 4, 0, 0, 1 / 8]
    assert np.allclose(scale("term"), [1 / 6, 0, 0, 1 / 6])
    assert scale("none", omega).tolist() == [2, 0, 0, 1]
    assert np.allclose(scale("query", omega), [2 / 2 / 3, 0, 0, 1 / 4 / 3])
    assert np.allclose(scale("term", omega), [2 / 8, 0, 0, 1 / 8])


def test_a_document_of_weight_two_counts_twice():
    ptr = np.array([0, 3, 4])
    y = np.array([0.0, 1.0, 2.0, 1.0])
    weight = np.array([1.0, 2.0, 0.0, 2.0])
    once = SquaredLoss().prepare(Labels(y, ptr, sample_weight=weight))
    twice = SquaredLoss().prepare(Labels(np.array([0.0, 1, 1, 1, 1]), np.array([0, 3, 5])))
    assert np.allclose(once.scale, twice.scale)
    u = np.array([0.3, -0.2, 9.0, 4.0])
    value, g = evaluate(once, u)
    assert value == pytest.approx(evaluate(twice, u[[0, 1, 1, 3, 3]])[0])
    assert g[2] == 0.0


@pytest.mark.parametrize("label", [0.0, 0.1, 1 / 3, -7.7e-5, 1e300])
def test_constant_labels_are_refused_whatever_their_rounding(label):
    # The mean of equal labels need not equal them in floating point.
    with pytest.raises(InputError, match="nothing to learn"):
        SquaredLoss().prepare(Labels(np.full(7, label), np.array([0, 3, 7])))


def test_levels_of_documents_without_weight_do_not_count():
    labels = Labels(np.array([0.0, 0, 1]), np.array([0, 3]), sample_weight=np.array([1.0, 1, 0]))
    with pytest.raises(InputError, match="nothing to learn"):
        SquaredLoss().prepare(labels)


def test_refusals_are_sentences():
    y, ptr = np.array([0.0, 1.0]), np.array([0, 2])
    with pytest.raises(InputError, match=r"gain_weight .* use sample_weight or query_weight"):
        SquaredLoss().prepare(Labels(y, ptr, gain_weight=np.ones(2)))
    with pytest.raises(InputError, match="normalize='mean' is not known"):
        SquaredLoss().prepare(Labels(y, ptr, normalize="mean"))
    with pytest.raises(InputError, match="nothing to learn"):
        query_scale(np.array([2.0, 3.0]), np.zeros(2), "query")


def test_require_names_both_sides():
    require(SquaredLoss(), "ridge", "curvature", "fold")
    with pytest.raises(InputError, match="solver 'newton' needs dual of the loss 'squared'"):
        require(SquaredLoss(), "newton", "evaluate", "dual")


def test_plans_travel():
    plan, rng = prepared([4, 3], weighted=True)
    u = rng.normal(size=plan.n_rows)
    assert evaluate(pickle.loads(pickle.dumps(plan)), u)[0] == evaluate(plan, u)[0]
