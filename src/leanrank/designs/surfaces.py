"""Surfaces of two features beside the curves of one: columns that are never stored.

A feature with K segments has two *half ramps* of its position p among the knots, which is its rank
in units of a segment: p rises through the lower m = ⌊K/2⌋ segments, then through the upper K − m,

    h₁ = clip((p − 1)/m, 0, 1),   h₂ = clip((p − 1 − m)/(K − m), 0, 1).

The columns of a pair (f, g) are the four products of half ramps of f and of g, zero where either is
missing. Between knots they are bilinear in f and g, so a pair is a surface on the grid of knots.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.designs import _surface_kernels as kernels
from leanrank.designs.base import Design, WrittenBlock
from leanrank.designs.ramp_columns import RampColumns, sample_step
from leanrank.designs.ramps import Curves, RampBlock, SparseRampDesign, ramp_design
from leanrank.execution import Executor, add_up, cached_property, row_blocks
from leanrank.model.curves import Curve
from leanrank.model.terms import Surface

PER_PAIR = 4
"""Columns of a pair."""


class SurfaceDesign(Design):
    """Curves of a matrix, followed by four columns per pair of features.

    Parameters
    ----------
    curves : RampDesign or SparseRampDesign
        The design of the curves, whose positions are shared.
    pairs : sequence of (int, int)
        Features by column.
    """

    def __init__(self, curves: Curves, pairs: Sequence[tuple[int, int]] | IntArray) -> None:
        self.curves, self.ramps = curves, curves.ramps
        self.pairs = np.array(pairs, dtype=np.int64).reshape(-1, 2)
        self.executor, self.n_rows = curves.executor, curves.n_rows
        self.n_curved = curves.n_features
        self.n_features = self.n_curved + PER_PAIR * len(self.pairs)
        self.codes, self.at = half_codes(curves, self.pairs)
        written = isinstance(curves, SparseRampDesign)
        self.n_bytes = curves.n_bytes + written * (self.codes.X.nbytes + self.codes.bins.nbytes)

    def matvec(self, w: FloatArray) -> FloatArray:
        """Add up curves and surfaces."""
        return self._surfaces(self.curves.matvec(w[: self.n_curved]), w[self.n_curved :])

    def _surfaces(self, out: FloatArray, w: FloatArray) -> FloatArray:
        weights = w.reshape(-1, PER_PAIR)
        used = np.flatnonzero(weights.any(axis=1))
        if len(used):
            self.executor.map(
                lambda at: kernels.pair_scores(*self.codes, self.at[used], weights[used], *at, out),
                row_blocks(self.n_rows, self.curves.rows_per_block),
            )
        return out

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute Xᵀg; all columns come at once."""
        return np.append(self.curves.rmatvec(g), self._pair_sums(g, self.at))

    def squares(self, rows: tuple[int, int]) -> FloatArray | None:
        """Return what ``column_norms`` bounds the squared lengths by, over some rows."""
        if (curved := self.curves.squares(rows)) is None:
            return None
        return np.append(curved, self._pair_sums(np.ones(self.n_rows), self.at, [rows]))

    def _pair_sums(
        self, g: FloatArray, pairs: IntArray, blocks: list[tuple[int, int]] | None = None
    ) -> FloatArray:
        """Compute Xᵀg of the columns of some pairs of codes, one row per pair."""
        features, local = np.unique(pairs, return_inverse=True)  # several pairs share one
        local = local.reshape(-1, 2)

        def summed(rows: tuple[int, int]) -> FloatArray:
            scratch, sums = np.empty((len(features), 2)), np.zeros((len(pairs), PER_PAIR))
            kernels.pair_sums(*self.codes, g, features, local, *rows, scratch, sums)
            return sums

        blocks = blocks or row_blocks(self.n_rows, self.curves.rows_per_block)
        parts = self.executor.map(summed, blocks)
        return np.asarray(add_up(parts)) if parts else np.zeros((len(pairs), PER_PAIR))

    @cached_property
    def column_norms(self) -> FloatArray:
        """An upper bound of the length of each column, from its sum and its largest entry."""
        heights = np.ones(self.n_features)
        heights[: self.n_curved] = self.ramps.heights
        return np.sqrt(self.rmatvec(np.ones(self.n_rows)) * heights)

    @cached_property
    def columns(self) -> SurfaceColumns:
        """What the columns are, without the documents."""
        masses = map(self._mass, self.pairs.tolist(), self.at.tolist())
        return SurfaceColumns(self.ramps, self.pairs, tuple(masses))

    def _mass(self, pair: list[int], at: list[int]) -> FloatArray:
        """Return the share of the documents at each two knots of a pair, by hats."""
        X = self.codes.X[:: sample_step(self.n_rows), at]
        X, knots = X[~np.isnan(X).any(axis=1)], [self.ramps.knots[j] for j in pair]
        out = np.zeros([len(each) for each in knots])
        for begin, end in row_blocks(len(X)):
            first, second = map(_hats, X[begin:end].T, knots)
            out += first.T @ second
        return out / max(1.0, out.sum())

    def take(self, features: IntArray) -> SurfaceBlock:
        """Bring the columns of a working set together."""
        return SurfaceBlock(self, features)


class SurfaceBlock(WrittenBlock):
    """Some columns of curves and surfaces; ``columns`` ascend, so those of curves come first.

    A surface is similar to the curves of both of its features, so it has no ``feature`` to itself.
    """

    def __init__(self, design: SurfaceDesign, columns: IntArray) -> None:
        self.design, self.n_features = design, len(columns)
        curved = columns[columns < design.n_curved]
        self.curves: RampBlock = design.curves.take(curved)
        self.n_bytes = self.curves.n_bytes
        self.own = columns[len(curved) :] - design.n_curved

    def matvec(self, v: FloatArray) -> FloatArray:
        """Add up curves and surfaces."""
        n_curved = self.curves.n_features
        w = np.zeros(PER_PAIR * len(self.design.pairs))
        w[self.own] = v[n_curved:]
        return self.design._surfaces(self.curves.matvec(v[:n_curved]), w)

    def rmatvec(self, g: FloatArray) -> FloatArray:
        """Compute X_Wᵀ g from sums by knot and by pair."""
        design = self.design
        which = np.unique(self.own // PER_PAIR)
        sums = design._pair_sums(g, design.at[which])
        local = np.searchsorted(which, self.own // PER_PAIR)
        return np.concatenate((self.curves.rmatvec(g), sums[local, self.own % PER_PAIR]))

    def written(self, rows: tuple[int, int], dtype: Any, columns: slice = slice(None)) -> AnyArray:
        """Write out some rows of some columns."""
        begin, end, _ = columns.indices(self.n_features)
        n_curved = self.curves.n_features
        curved = self.curves.written(rows, dtype, slice(min(begin, n_curved), min(end, n_curved)))
        own = self.own[max(begin - n_curved, 0) : max(end - n_curved, 0)]
        out = np.empty((rows[1] - rows[0], len(own)), dtype=dtype)
        design = self.design
        kernels.pair_columns(*design.codes, design.at, own, *rows, out)
        return np.concatenate((curved, out), axis=1)


class HalfCodes(NamedTuple):
    """Documents as kernels read them.

    Attributes
    ----------
    X, bins : array
    first : array of int64
        Where the bins of each feature begin in the table.
    table : array of shape (n_bins, 5)
        Where a bin begins, and there base and slope of both half ramps.
    """

    X: AnyArray
    bins: AnyArray
    first: IntArray
    table: FloatArray


def half_codes(curves: Curves, pairs: IntArray) -> tuple[HalfCodes, IntArray]:
    """Return the half ramps of each feature by its bins, and where in them each pair reads.

    Of a dense matrix, nothing as large as X is made; of a sparse one, the features of the pairs are
    written out.
    """
    X, bins, ramps = curves.X, curves.bins, curves.ramps
    if isinstance(curves, SparseRampDesign):
        features, local = np.unique(pairs, return_inverse=True)
        (X, bins), pairs = curves.dense(features), local.reshape(-1, 2)
        ramps = ramps.restrict(features)
    low, rate = ramps.bins
    table = np.zeros((len(low), 5))
    table[:, 0] = low
    for j in np.flatnonzero((ramps.sizes > 0) & ~ramps.is_category).tolist():
        begin, end = ramps.knot_starts[j] + 1, ramps.knot_starts[j] + 1 + ramps.sizes[j]
        at = half_ramps(ramps.sizes[j] + 1)
        table[begin : end + 1, 1::2] = at
        table[begin:end, 2::2] = np.diff(at, axis=0) * rate[begin:end, None]
    return HalfCodes(X, bins, ramps.knot_starts, table), pairs


def _hats(x: AnyArray, knots: FloatArray) -> FloatArray:
    """Return the share of each knot in a piecewise linear function at x."""
    at = np.arange(len(knots))
    return np.maximum(1.0 - np.abs(np.interp(x, knots, at)[:, None] - at), 0.0)


def half_ramps(n_knots: int) -> FloatArray:
    """Return both half ramps of a feature at its knots; one segment has no upper half.

    >>> half_ramps(4)
    array([[0. , 0. ],
           [1. , 0. ],
           [1. , 0.5],
           [1. , 1. ]])
    """
    lower = max((n_knots - 1) // 2, 1)
    upper = max(n_knots - 1 - lower, 1)
    at = np.arange(float(n_knots))
    halves = np.stack((at * (1.0 / lower), (at - lower) * (1.0 / upper)), axis=1)
    return np.clip(halves, 0.0, 1.0)


@dataclass(frozen=True)
class SurfaceColumns:
    """Which columns curves and surfaces have: those of the curves, then four per pair.

    Attributes
    ----------
    ramps : RampColumns
    pairs : array of shape (n_pairs, 2)
    masses : tuple of arrays
        The share of the documents at each two knots of a pair.
    of_query : array of bool, or False
        Which features have one value per query.
    """

    ramps: RampColumns
    pairs: IntArray
    masses: tuple[FloatArray, ...]
    of_query: Any = False

    @property
    def knots(self) -> tuple[FloatArray, ...]:
        """The knots of each feature."""
        return self.ramps.knots

    @cached_property
    def feature(self) -> IntArray:
        """The feature of each column; pairs count on from the features."""
        own = len(self.knots) + np.repeat(np.arange(len(self.pairs)), PER_PAIR)
        return np.concatenate((self.ramps.feature, own))

    @property
    def is_gap(self) -> BoolArray:
        """Which columns are for missing values."""
        return np.append(self.ramps.is_gap, np.zeros(PER_PAIR * len(self.pairs), dtype=bool))

    def used(self, w: FloatArray) -> IntArray:
        """Return the features that curves and surfaces with a weight read."""
        owners, n_features = np.unique(self.feature[np.flatnonzero(w)]), len(self.knots)
        paired = self.pairs[owners[owners >= n_features] - n_features]
        return np.union1d(owners[owners < n_features], paired)

    def grid(self, pair: int, weights: FloatArray) -> FloatArray:
        """Return a pair's surface at the knots of its two features."""
        first, second = (half_ramps(len(self.knots[j])) for j in self.pairs[pair].tolist())
        return first @ weights.reshape(2, 2) @ second.T

    def terms(self, w: FloatArray) -> tuple[dict[int, Curve], dict[tuple[int, int], Surface]]:
        """Return the curves and surfaces of some weights."""
        curved, grids = self.split(w)
        surfaces = {
            (f, g): Surface(
                tuple(self.knots[f].tolist()),
                tuple(self.knots[g].tolist()),
                tuple(map(tuple, grid.tolist())),
            )
            for (f, g), grid in zip(self.pairs.tolist(), grids, strict=True)
            if grid.any()
        }
        return self.ramps.curves(curved), surfaces

    def split(self, w: FloatArray) -> tuple[FloatArray, list[FloatArray]]:
        """Return weights of the curves, and surfaces at their knots, of the same function.

        What a surface adds by one of its features alone, on average over the documents, goes to the
        curve of that feature: a curve then says what its feature does, and a surface only what two
        features do together. A surface is zero where its other feature is missing, a curve is not.
        So the part of a feature whose partner has gaps stays. What a feature ``of_query`` adds
        alone is the same for all documents of a query, and left out.
        """
        ramps, n_curved = self.ramps, self.ramps.n_columns
        curved, grids = w[:n_curved].copy(), []
        for k, own in enumerate(w[n_curved:].reshape(-1, PER_PAIR)):
            grid = self.grid(k, own)
            (m, n), (f, g) = grid.shape, self.pairs[k].tolist()
            by_first = np.kron(np.eye(m)[:, 1:], np.ones((n, 1)))
            by_second = np.kron(np.ones((m, 1)), np.eye(n)[:, 1:])
            columns = np.hstack(
                (np.ones((m * n, 1)), by_first * (not ramps.gap[g]), by_second * (not ramps.gap[f]))
            )
            weight = np.sqrt(self.masses[k].ravel() + 1e-6)
            part = np.linalg.lstsq(columns * weight[:, None], grid.ravel() * weight)[0]
            if ramps.gap[f] or ramps.gap[g]:
                part[0] = 0.0  # all other documents would lose it
            rest = grid - (columns @ part).reshape(m, n)
            grids.append(np.where(np.abs(rest) > 1e-12 * np.abs(grid).max(initial=0.0), rest, 0.0))
            for j, heights in ((f, part[1:m]), (g, part[m:])):
                if not np.broadcast_to(self.of_query, len(ramps.sizes))[j]:
                    begin = ramps.starts[j]
                    curved[begin : begin + ramps.sizes[j]] += np.diff(heights, prepend=0.0)
        return curved, grids


def columns_design(
    X: Matrix, columns: RampColumns | SurfaceColumns, executor: Executor
) -> Curves | SurfaceDesign:
    """Make the design of curves, and of surfaces if there are any, with given knots."""
    if isinstance(columns, RampColumns):
        return ramp_design(X, columns, executor)
    return SurfaceDesign(ramp_design(X, columns.ramps, executor), columns.pairs)


def screening_sums(
    design: Curves,
    pairs: IntArray,
    g: FloatArray,
    weight: FloatArray,
    query_ptr: IntArray,
    executor: Executor,
) -> tuple[FloatArray, FloatArray]:
    """Return gradient and Hessian of the columns of each pair and its features' half ramps.

    Parameters
    ----------
    design : RampDesign or SparseRampDesign
    pairs : array of shape (n_pairs, 2)
    g : array
        The gradient of the loss in the scores.
    weight : array
        The diagonal of its Hessian, whose queries' columns are centred by the same weights.
    query_ptr : array
    executor : Executor
    """
    (codes, pairs), ptr = half_codes(design, pairs), np.asarray(query_ptr)
    gradient, hessian = np.zeros((len(pairs), 8)), np.zeros((len(pairs), 8, 8))

    def add(block: tuple[int, int]) -> None:
        at = slice(*block)
        kernels.pair_steps(*codes, pairs[at], g, weight, ptr, gradient[at], hessian[at])

    executor.map(add, row_blocks(len(pairs), 8))
    return gradient, hessian


def screening_gains(gradient: FloatArray, hessian: FloatArray) -> FloatArray:
    """Return how much each pair could lower the loss, by one Newton step from given scores.

    The step is in the four columns of the pair next to the half ramps of its two features, whose
    own part is taken out: bᵀS⁻¹b, with b the gradient and S the Schur complement of the Hessian.
    """
    diagonal = np.einsum("kii->ki", hessian)
    ridge = 1e-3 * diagonal.mean(axis=1) + 1e-12 * max(float(diagonal.max(initial=0.0)), 1e-300)
    hessian = hessian + ridge[:, None, None] * np.eye(8)
    own, cross, rest = hessian[:, :4, :4], hessian[:, :4, 4:], hessian[:, 4:, 4:]
    moved = np.linalg.solve(rest, np.concatenate((cross.mT, gradient[:, 4:, None]), axis=2))
    own = own - cross @ moved[:, :, :4] + ridge[:, None, None] * np.eye(4)
    b = gradient[:, :4, None] - cross @ moved[:, :, 4:]
    gain: FloatArray = (b.mT @ np.linalg.solve(own, b))[:, 0, 0]
    return gain
