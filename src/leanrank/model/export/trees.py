"""A formula as regression trees, one per term, from which all tree formats are written.

Trees of steps and look-up tables of numbers are exact. Ramps, surfaces and, between bounds, lines
become steps with at most a stated error of the score.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from itertools import pairwise
from math import ceil, inf
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.model.curves import Line, Ramps, Steps, Writer
from leanrank.model.export.formula import Formula, Term
from leanrank.model.export.targets import Options, Target
from leanrank.model.terms import Levels, Surface

DEFAULT_LEAVES, MOST_LEAVES = 3_000, 200_000
ABSENT = 3e38  # a float32 that stands for a missing feature
SOLR_SLACK = np.float32(1e-6)  # its trees go left up to a threshold plus this


class Split(NamedTuple):
    """A node: left where the feature is at most the threshold.

    A threshold of None separates documents without the feature: left where it is missing.
    """

    feature: int
    threshold: float | None
    left: Any
    right: Any


Node = Split | float


@dataclass(frozen=True)
class Forest:
    """A sum of trees.

    Attributes
    ----------
    trees : tuple of Node
        One per term; a leaf is a number, and a split has the position in ``formula.names``.
    error : float
        The largest error of a score; 0 if the trees are exact.
    """

    trees: tuple[Node, ...]
    error: float = 0.0

    @property
    def note(self) -> str:
        """A note on the error of the trees."""
        if self.error == 0:
            return "the trees are exact"
        return f"ramps and surfaces are written as steps: scores are off by at most {self.error:g}"

    def scores(self, X: AnyArray, kind: Any = np.float64) -> FloatArray:
        """Return the sums of the leaves, added in order in a floating-point type."""
        X = np.asarray(X, dtype=kind)
        total = np.zeros(len(X), dtype=kind)

        def add(node: Node, rows: IntArray) -> None:
            if not isinstance(node, Split):
                total[rows] += kind(node)
                return
            x = X[rows, node.feature]
            left = np.isnan(x) if node.threshold is None else x <= node.threshold
            add(node.left, rows[left])
            add(node.right, rows[~left])

        for tree in self.trees:
            add(tree, np.arange(len(X)))
        return total.astype(np.float64)


def _rebuilt(node: Node, change: Callable[[Split], Node]) -> Node:
    """Return a tree with every split changed, bottom up."""
    if not isinstance(node, Split):
        return node
    left, right = (_rebuilt(side, change) for side in (node.left, node.right))
    return change(node._replace(left=left, right=right))


def fills(formula: Formula, options: Options) -> dict[str, float]:
    """Return the numbers other than 0 that replace missing features in learning-to-rank modules.

    For a line it is the number at which the line has its value for missing features; for trees a
    number above all others. Missing features of an existing set are 0.
    """
    if options.featureset is not None:
        return {}
    known: list[Any] = [term for term in formula.terms if term.curve.missing is not None]
    if not formula.is_weighted:
        return {name: ABSENT for term in known for name in term.names}
    return {t.name: formula.fill.get(t.name, t.curve.missing / t.weight) for t in known}


def flattened(tree: Node) -> list[Split | float]:
    """Return the nodes of a tree, root first; children of splits are positions in the list."""
    nodes: list[Any] = [tree]
    for at, node in enumerate(nodes):
        if isinstance(node, Split):
            nodes[at] = node._replace(left=len(nodes), right=len(nodes) + 1)
            nodes += [node.left, node.right]
    return nodes


def above(threshold: float) -> float:
    """Return the float32 after a threshold, for engines that go left where a feature is below."""
    return float(np.nextafter(np.float32(threshold), np.float32(inf)))


def solr_threshold(threshold: float) -> float:
    """Return the largest float32 that with Solr's 1e-6 is at most a threshold.

    >>> float(np.float32(solr_threshold(0.5)) + SOLR_SLACK)
    0.5
    """
    target = np.float32(threshold)
    low = np.float32(target - SOLR_SLACK)
    while low + SOLR_SLACK > target:
        low = np.nextafter(low, np.float32(-np.inf))
    while (after := np.nextafter(low, np.float32(np.inf))) + SOLR_SLACK <= target:
        low = after
    return float(low)


def forest(formula: Formula, options: Options, target: Target) -> Forest:
    """Return a formula without a per-query scaler as trees.

    Thresholds are rounded as the engine does. Where the engine does not represent missing features,
    a number above every threshold stands for them, or 0. A constant is a tree of one leaf.

    Examples
    --------
    >>> from leanrank.model import Model
    >>> from leanrank.model.export import TARGETS, formula_of
    >>> formula = formula_of(Model(1, {0: Ramps((0.0, 1.0), (1.0,))}))
    >>> made = forest(formula, Options(max_error=0.125), TARGETS["lightgbm"])
    >>> made.error, made.scores([[0.1], [0.2], [0.9]]).tolist()
    (0.125, [0.0, 0.25, 1.0])
    """
    names, terms, total = formula.names, formula.terms, options.max_error
    lines = [_polyline(term, options.bounds) for term in terms]
    moves = [
        float(np.abs(np.diff(line.heights)).sum()) if line else term.curve.size * term.is_pair
        for term, line in zip(terms, lines, strict=True)
    ]
    errors = _errors([(m, term.is_pair) for m, term in zip(moves, terms, strict=True)], total)
    known, kind = fills(formula, options), np.float32 if target.single else np.float64
    shifts = [kind(options.shifts.get(name, 0.0) if target.single else 0.0) for name in names]
    writer = _Writer(kind, shifts)

    def rounded(node: Split) -> Node:  # rounding is monotone: values at a threshold stay there
        if node.threshold is None:
            return node
        return node._replace(threshold=float(kind(node.threshold) + shifts[node.feature]))

    def changed(node: Split) -> Node:
        if node.threshold is None and not target.missing:
            above_all = known.get(names[node.feature])
            if above_all is None:
                return node.right
            node = Split(node.feature, above_all / 2, node.right, node.left)
        if node.threshold is None or target.dialect != "solr":
            return node
        reached = np.float32(solr_threshold(node.threshold)) + SOLR_SLACK
        return node._replace(threshold=float(reached))

    trees: list[Node] = []
    for term, line, error in zip(terms, lines, errors, strict=True):
        x = [names.index(name) for name in term.names]
        if isinstance(term.curve, Surface):
            fill = [formula.fill.get(name) for name in term.names]
            tree = _surface(term.curve, x, fill, error)
        else:
            tree = (_stepped(line, error) if line else term.curve).written(writer, x[0])
        if not isinstance(term.curve, Levels):
            tree = _rebuilt(tree, rounded)
        trees.append(_rebuilt(tree, changed))
    constant = options.offset + (formula.constant if target.constant else 0.0)
    trees += [constant] if constant else []
    return Forest(tuple(trees), total if total and any(moves) else sum(errors))


class _Polyline(NamedTuple):
    """A continuous curve: heights at knots, and the value of a missing feature."""

    knots: tuple[float, ...]
    heights: tuple[float, ...]
    missing: float


def _polyline(term: Term, bounds: Mapping[str, tuple[float, float]]) -> _Polyline | None:
    curve = term.curve
    if isinstance(curve, Ramps):
        return _Polyline(curve.knots, tuple(curve.heights), curve.absent)
    if not isinstance(curve, Line):
        return None
    low, high = bounds.get(term.name, (0.0, 0.0))
    if not low < high:
        raise InputError(
            f"trees need the range of {term.name!r}, which is a straight line in the model: give "
            "typical documents with `data` (--data FILE)"
        )
    heights = (curve.weight * low, curve.weight * high)
    return _Polyline((low, high), heights, curve.absent)


def _errors(moves: list[tuple[float, bool]], total: float | None) -> list[float]:
    """Distribute an error over terms such that there are few leaves.

    A curve that moves by m takes m / 2e leaves and a surface of the order (m / 2e)²: at the optimum
    one leaf less costs each of them the same.
    """

    def shared(price: float) -> list[float]:
        return [(m**2 / price) ** (1 / 3) if pair else (m / price) ** 0.5 for m, pair in moves]

    def leaves(errors: list[float]) -> float:
        given = zip(moves, errors, strict=True)
        return sum((m / 2 / e) ** (1 + pair) for (m, pair), e in given if m)

    low, high = 1e-300, 1e300
    for _ in range(100):
        price = low**0.5 * high**0.5
        errors = shared(price)
        small = leaves(errors) > DEFAULT_LEAVES if total is None else sum(errors) < total
        low, high = (low, price) if small else (price, high)
    errors = shared(low)
    if leaves(errors) > MOST_LEAVES:
        raise InputError(
            f"an error of {total:g} needs about {leaves(errors):,.0f} leaves: allow a larger one "
            "with `max_error` (--max-error)"
        )
    return errors


def _stepped(line: _Polyline, error: float) -> Steps:
    """Return steps whose distance from a polyline is at most an error."""
    cuts: list[float] = []
    levels = [line.heights[0]]
    for (x0, x1), (y0, y1) in zip(pairwise(line.knots), pairwise(line.heights), strict=True):
        n = ceil(abs(y1 - y0) / (2 * error) - 1e-9) if y1 != y0 else 0
        for step in range(n):
            cut = x0 + (x1 - x0) * ((step + 0.5) / n)
            if cuts and cut <= cuts[-1]:  # no number lies between the two steps
                levels.pop()
            else:
                cuts.append(cut)
            levels.append(y0 + (y1 - y0) * ((step + 1) / n))
    return Steps(tuple(cuts), tuple(levels), line.missing)


class _Writer(Writer[Any]):
    """Nodes, written as every other target is; features are positions."""

    def __init__(self, kind: Any, shifts: list[Any]) -> None:
        self.kind, self.shifts = kind, shifts

    def number(self, value: float) -> Node:
        return value

    def apply(self, operation: str, *operands: Any) -> Any:
        if operation != "choice":
            return operands
        (x, *threshold), then, otherwise = operands
        if threshold:
            return Split(x, threshold[0], otherwise, then)
        return Split(x, None, then, otherwise)

    def lookup(self, x: int, table: list[tuple[Any, float]], otherwise: float) -> Node:
        """Return steps that have a level's value between the level and the number before it."""
        values: dict[float, float] = {}  # above each threshold
        found = {
            self.kind(at if isinstance(level, str) else level) + self.shifts[x]: value
            for at, (level, value) in enumerate(table)
        }
        if len(found) < len(table):
            raise InputError(
                "two levels of a category are one number in float32: give each a number of its own"
            )
        for level in sorted(found):
            # over the threshold of the level before, if that is the number before
            values[float(np.nextafter(level, self.kind(-inf)))] = found[level]
            values[float(level)] = otherwise
        return Steps(tuple(values), (otherwise, *values.values()), otherwise).written(self, x)


def _given(tree: Node, feature: int, value: float) -> Node:
    """Return a tree in which a feature is a number."""

    def taken(node: Split) -> Any:
        if node.feature != feature:
            return node
        below = node.threshold is not None and value <= node.threshold
        return node.left if below else node.right

    return _rebuilt(tree, taken)


def _surface(surface: Surface, at: list[int], fill: list[float | None], error: float) -> Node:
    """Return a tree that halves boxes until the values of each are within an error of a number.

    A missing feature is replaced by its fill value, if there is one.
    """
    knots = (np.array(surface.first), np.array(surface.second))

    def box(*ends: tuple[float, float]) -> Node:
        points = [
            np.concatenate(([low], side[(side > low) & (side < high)], [high]))
            for side, (low, high) in zip(knots, ends, strict=True)
        ]
        values = surface(*np.meshgrid(*points, indexing="ij"))
        if np.ptp(values) <= 2 * error:
            return float((values.max() + values.min()) / 2)
        axis = int(np.ptp(values, axis=0).max() < np.ptp(values, axis=1).max())
        if len(points[axis]) == 2 < len(points[1 - axis]):
            axis = 1 - axis  # split at knots first
        low, *inside, high = points[axis].tolist()
        middle = inside[len(inside) // 2] if inside else low + (high - low) / 2
        left, right = (
            box(*(part if side == axis else ends[side] for side in (0, 1)))
            for part in ((low, middle), (middle, high))
        )
        return Split(at[axis], middle, left, right)

    def with_gap(side: int, tree: Node, value: Node) -> Node:
        known = fill[side]
        value = value if known is None else _given(tree, at[side], known)
        return Split(at[side], None, value, tree)

    no_x, no_y, neither = surface.missing
    tree = with_gap(1, box(*((float(side[0]), float(side[-1])) for side in knots)), no_y)
    return with_gap(0, tree, no_x if fill[1] is not None else Split(at[1], None, neither, no_x))
