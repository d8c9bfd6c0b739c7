"""Columns of pairs against the same columns written out."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.designs.surfaces import (
    SurfaceDesign,
    half_ramps,
    screening_gains,
    screening_sums,
)
from leanrank.execution import Executor, make_executor
from leanrank.losses.base import Curvature
from leanrank.model import Surface


def half(X, ramps):
    """Return the two half ramps of each feature, written out from the ranks among the knots."""
    out = np.zeros((*X.shape, 2))
    for j, knots in enumerate(ramps.knots):
        n_segments = len(knots) - 1
        if n_segments < 1:
            continue
        rank = np.interp(X[:, j], knots, np.arange(len(knots)))
        lower = max(n_segments // 2, 1)
        out[:, j, 0] = np.clip(rank / lower, 0, 1)
        if n_segments > lower:
            out[:, j, 1] = np.clip((rank - lower) / (n_segments - lower), 0, 1)
        out[np.isnan(X[:, j]), j] = 0.0
    return out


def explicit(X, ramps, pairs):
    h = half(X, ramps)
    return np.array([h[:, f, a] * h[:, g, b] for f, g in pairs for a in (0, 1) for b in (0, 1)]).T


def made(dtype=np.float64, n=400, seed=0, storage=np.asarray):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 6)).astype(dtype)
    if storage is not np.asarray:
        X[rng.random((n, 6)) < 0.4] = 0.0
    X[:, 1] = rng.integers(0, 2, n)  # one segment
    X[:, 2] = 3.0  # constant
    X[:, 3] = rng.integers(0, 4, n)
    X[rng.random((n, 6)) < 0.1] = np.nan
    ramps = RampColumns.at_quantiles(X, 5).with_lines(X, 0.3)
    if storage is not np.asarray:
        return X, ramp_design(storage(X), ramps, Executor(), entries_per_block=128)
    return X, ramp_design(X, ramps, Executor(), rows_per_block=128)


PAIRS = [(0, 1), (0, 4), (1, 3), (2, 4), (3, 5), (4, 5)]


@pytest.mark.parametrize("storage", [np.asarray, csr_array])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_are_those_of_written_columns(dtype, storage):
    X, curves = made(dtype, storage=storage)
    design = SurfaceDesign(curves, PAIRS)
    Z = explicit(X.astype(np.float64), curves.ramps, PAIRS)
    base = curves.take(np.arange(curves.n_features)).columns((0, len(X)), 0, curves.n_features)
    whole = np.hstack((base, Z))
    rng = np.random.default_rng(1)
    w, g = rng.normal(size=design.n_features), rng.normal(size=len(X))
    close = {"rtol": 1e-9, "atol": 1e-9} if dtype == np.float64 else {"rtol": 1e-4, "atol": 2e-4}
    np.testing.assert_allclose(design.matvec(w), whole @ w, **close)
    np.testing.assert_allclose(design.rmatvec(g), whole.T @ g, **close)
    assert np.all(design.column_norms >= np.linalg.norm(whole, axis=0) * (1 - 1e-5))
    features = np.sort(rng.choice(design.n_features, 20, replace=False))
    block = design.take(features)
    np.testing.assert_allclose(block.matvec(w[features]), whole[:, features] @ w[features], **close)
    np.testing.assert_allclose(block.rmatvec(g), whole[:, features].T @ g, **close)
    np.testing.assert_allclose(
        block.columns((10, 90), 3, 17), whole[10:90, features[3:17]], **close
    )


def test_a_hessian_adds_up_rows_of_both_kinds():
    X, curves = made()
    design = SurfaceDesign(curves, PAIRS)
    block = design.take(np.arange(design.n_features))
    Z = block.columns((0, len(X)), 0, design.n_features)
    weight = np.random.default_rng(2).random(len(X))
    curvature = Curvature(
        weight, np.zeros((len(X), 1)), np.zeros((1, 0)), np.zeros(len(X), np.int64), True
    )
    gram = np.zeros((design.n_features, design.n_features))
    block.add_rows(curvature, (0, len(X)), 0, gram, np.zeros((1, 1, design.n_features)))
    np.testing.assert_allclose(gram, Z.T @ (Z * weight[:, None]), atol=1e-9)


def test_the_same_bits_on_any_number_of_threads():
    X, curves = made(n=2_000)
    w = np.random.default_rng(3).normal(size=curves.n_features + 4 * len(PAIRS))
    found = []
    for n_jobs in (1, 2):
        design = SurfaceDesign(
            ramp_design(X, curves.ramps, make_executor(n_jobs), rows_per_block=128), PAIRS
        )
        found.append((design.matvec(w), design.rmatvec(X[:, 0].copy() * 0 + 1.0)))
    np.testing.assert_array_equal(found[0][0], found[1][0])


def test_a_surface_has_its_values_on_the_grid():
    _, curves = made()
    design = SurfaceDesign(curves, [(0, 4)])
    w = np.zeros(design.n_features)
    w[-4:] = [1.0, -2.0, 0.5, 3.0]
    knots = curves.ramps.knots
    grid = design.columns.grid(0, w[-4:])
    rows = np.full((len(knots[0]) * len(knots[4]), 6), 0.0)
    rows[:, 0], rows[:, 4] = (a.ravel() for a in np.meshgrid(knots[0], knots[4], indexing="ij"))
    at_knots = SurfaceDesign(ramp_design(rows, curves.ramps, Executor()), [(0, 4)])
    np.testing.assert_allclose(at_knots.matvec(w), grid.ravel(), atol=1e-12)


def test_screening_is_a_newton_step_of_the_pair_beside_its_features():
    X, curves = made()
    rng = np.random.default_rng(4)
    ptr = np.array([0, 1, 60, 200, 200, 400])
    g, weight = rng.normal(size=400), rng.random(400)
    weight[60:70], g[60:70] = 0.0, 0.0
    query = np.repeat(np.arange(5), np.diff(ptr))
    pairs = np.array(PAIRS)
    sums = screening_sums(curves, pairs, g, weight, ptr, Executor())
    for some in np.split(np.arange(400), [200]):  # sums over whole queries add up
        own = np.isin(np.arange(400), some)
        parts = screening_sums(curves, pairs, g * own, weight * own, ptr, Executor())
        sums = tuple(a - b for a, b in zip(sums, parts, strict=True))
    for left in sums:
        np.testing.assert_allclose(left, 0.0, atol=1e-9)
    found = screening_gains(*screening_sums(curves, pairs, g, weight, ptr, Executor()))
    h = half(X, curves.ramps)
    expected = []
    for f, k in PAIRS:
        C = np.hstack((explicit(X, curves.ramps, [(f, k)]), h[:, f], h[:, k]))
        A = np.zeros((8, 8))
        for q in range(5):
            rows = query == q
            s, Z = weight[rows], C[rows]
            if s.sum() > 0:
                Z = Z - (s @ Z) / s.sum()
            A += Z.T @ (Z * s[:, None])
        expected.append((C.T @ g, A))
    diagonal = np.array([np.diag(A) for _, A in expected])
    for gain, (b, A), d in zip(found, expected, diagonal, strict=True):
        ridge = 1e-3 * d.mean() + 1e-12 * diagonal.max()
        A = A + ridge * np.eye(8)
        inner = np.linalg.inv(A[4:, 4:])
        own = A[:4, :4] - A[:4, 4:] @ inner @ A[4:, :4] + ridge * np.eye(4)
        left = b[:4] - A[:4, 4:] @ inner @ b[4:]
        assert gain == pytest.approx(left @ np.linalg.solve(own, left), rel=1e-6)
    assert half_ramps(2).tolist() == [[0.0, 0.0], [1.0, 0.0]]


@pytest.mark.parametrize("gaps", [(), (0,), (4,), (0, 4)])
def test_what_one_feature_adds_alone_goes_to_its_curve(gaps):
    rng = np.random.default_rng(5)
    X = rng.normal(size=(800, 6))
    X[:, 4] += 0.7 * X[:, 0]
    for j in gaps:
        X[rng.random(800) < 0.2, j] = np.nan
    ramps = RampColumns.at_quantiles(X, 6).with_lines(X, 0.3)
    design = SurfaceDesign(ramp_design(X, ramps, Executor()), [(0, 4), (1, 2)])
    w = rng.normal(size=design.n_features)
    curved, grids = design.columns.split(w)
    surfaces = [
        Surface(*(tuple(design.ramps.knots[j]) for j in pair), tuple(map(tuple, grid)))
        for pair, grid in zip(design.pairs, grids, strict=True)
    ]
    added = [one(X[:, f], X[:, g]) for one, (f, g) in zip(surfaces, design.pairs, strict=True)]
    less = design.matvec(w) - design.curves.matvec(curved) - sum(added)
    np.testing.assert_allclose(less, less[0], atol=1e-10)  # a constant changes no order
    rank = np.interp(X[:, 0], ramps.knots[0], np.arange(7))
    if 4 not in gaps:  # nothing of the surface is left that is linear in the first feature alone
        there = ~np.isnan(rank)
        assert abs(np.corrcoef(rank[there], added[0][there])[0, 1]) < 0.1
