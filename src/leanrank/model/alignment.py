"""Aligning the caller's data with the features of a model: selecting, filling and scaling."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import as_matrix
from leanrank.data.ranking_data import RankingData, column_values
from leanrank.errors import InputError, LeanrankError, ModelError, first_repeated
from leanrank.model.curves import Curve
from leanrank.model.scoring import dense
from leanrank.model.terms import Levels

if TYPE_CHECKING:
    from leanrank.model.model import Model


@dataclass(frozen=True)
class Table:
    """Documents × features, with the names of the columns if there are any.

    For a data frame, an Arrow table or an array of objects, ``column`` returns one column, so that
    only the columns in use are converted. Otherwise ``matrix`` is an array or CSR matrix, and
    ``categories`` has the known levels of columns whose numbers encode categories.
    """

    names: tuple[str, ...] | None
    shape: tuple[int, int]
    matrix: Matrix = None
    column: Callable[[int], Any] | None = None
    categories: Mapping[int, tuple[str, ...]] = field(default_factory=dict)

    @classmethod
    def of(cls, X: Any) -> Table:
        """Return the table of the caller's data."""
        if isinstance(X, RankingData):
            known = getattr(X, "categories", None) or {}
            return cls(X.feature_names, X.X.shape, X.X, categories=known)
        if hasattr(X, "collect") and not hasattr(X, "shape"):
            raise ModelError(f"{type(X).__name__} holds no data yet: collect it first")
        columns = getattr(X, "column_names", getattr(X, "columns", None))
        if columns is not None:
            labels = tuple(columns)
            if (twice := first_repeated(labels)) is not None:
                raise ModelError(f"the column {twice!r} occurs twice: names must be distinct")
            names = labels if all(isinstance(name, str) for name in labels) else None
            return cls(names, X.shape, column=lambda at: X[labels[at]])
        if not hasattr(X, "tocsr") and (cells := _objects(X)) is not None:
            return cls(None, cells.shape, column=lambda at: cells[:, at])
        matrix = as_matrix(X)
        return cls(None, matrix.shape, matrix)

    def take(self, model: Model, wanted: IntArray) -> tuple[Matrix, IntArray | None]:
        """Return a matrix and the columns in it of the features ``wanted``, in their order.

        None means all columns in their order. A feature without a weight that the data lack becomes
        a column of zeros, since no score depends on it.
        """
        positions = self._positions(model, wanted)
        if self.column is None and not self.categories:
            if np.array_equal(positions, np.arange(self.shape[1])):
                return self.matrix, None
            if (positions >= 0).all():
                return self.matrix, positions
            return _with_zeros(self.matrix, positions), None
        out = np.zeros((self.shape[0], len(positions)))
        for to, (feature, at) in enumerate(zip(wanted.tolist(), positions.tolist(), strict=True)):
            if at >= 0:
                out[:, to] = self._numbers(model.curves.get(feature), at)
        return out, None

    def _positions(self, model: Model, wanted: IntArray) -> IntArray:
        """Return the column of each feature; -1 for one without a weight that is absent."""
        if model.feature_names is None or self.names is None:
            if self.shape[1] != model.n_features:
                raise ModelError(
                    f"the model has {model.n_features} features but the data have {self.shape[1]}: "
                    "give the same features in the same order, or name them on both sides"
                )
            return wanted
        here = {name: at for at, name in enumerate(self.names)}
        names = model.feature_names
        missing = [names[at] for at in model.indices.tolist() if names[at] not in here]
        if missing:
            raise ModelError(f"the data lack {_listed(missing)}, which the model needs")
        return np.array([here.get(names[at], -1) for at in wanted.tolist()], dtype=np.int64)

    def _numbers(self, term: Curve | None, at: int) -> FloatArray:
        """Return a column as numbers; texts become the positions of their levels in the model."""
        if self.column is None:
            values, levels = column_values(self.matrix, at), self.categories.get(at)
            if not isinstance(term, Levels) or not term.is_text or levels is None:
                return values
            found = np.append(term.encoded(levels), np.nan)
            return found[np.where(np.isnan(values), len(levels), values).astype(np.int64)]
        column = self.column(at)
        try:
            if isinstance(term, Levels):
                return term.encoded(column)
            return np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            name = at if self.names is None else repr(self.names[at])
            raise ModelError(
                f"the column {name} holds something that is not a number ({error})"
            ) from error


def prepared(model: Model, X: Any, qid: Any = None) -> tuple[Matrix, IntArray | None, Any]:
    """Return the inputs of a model's terms as a matrix, the columns in use, and the queries."""
    if isinstance(X, RankingData):
        if qid is not None:
            raise InputError("a RankingData includes its queries: leave qid out")
        qid = X.qid
    elif qid is None and model.needs_qid:
        raise ModelError(
            f"the model scales features within each query ({model.scaler.kind}): give qid, "
            "one per row; for one query, a list of equal values"
        )
    unscaled = model.scaler is None
    wanted = model.indices if unscaled else np.arange(model.n_features, dtype=np.int64)
    matrix, columns = Table.of(X).take(model, wanted)
    if not unscaled or model.fill:
        matrix, columns = matrix if columns is None else matrix[:, columns], None
    if model.fill:
        gaps = {at: model.fill[f] for at, f in enumerate(wanted.tolist()) if f in model.fill}
        matrix = fill_gaps(matrix, gaps)
    return (matrix, columns, qid) if unscaled else (_scaled(model, matrix, qid), model.indices, qid)


def _scaled(model: Model, matrix: Matrix, qid: Any) -> Matrix:
    """Return scaled features; categories are not scaled."""
    categories = [at for at, one in model.curves.items() if isinstance(one, Levels)]
    if categories:
        matrix = dense(matrix).copy()
        levels = matrix[:, categories]
        matrix[:, categories] = 0.0
    try:
        scaled = model.scaler.transform(matrix, qid=qid)
    except LeanrankError:
        raise
    except ValueError as error:  # scikit-learn's own checks
        raise InputError(f"the features cannot be normalised: {error}") from error
    if categories:
        scaled[:, categories] = levels
    return scaled


def fill_gaps(X: Matrix, fill: Mapping[int, float]) -> Matrix:
    """Return a copy of a matrix with numbers instead of missing values, by column."""
    known = np.full(X.shape[1], np.nan)
    known[list(fill)] = list(fill.values())
    if isinstance(X, np.ndarray):
        return np.where(np.isnan(X), known, X)
    filled = X.copy()
    filled.data = np.where(np.isnan(filled.data), known[filled.indices], filled.data)
    return filled


def used_features(model: Model, data: Any) -> FloatArray:
    """Return documents × the features that a model reads: a dense copy, unscaled."""
    matrix, columns = Table.of(data).take(model, model.indices)
    return np.array(dense(matrix, columns), np.float64)


def _objects(X: Any) -> AnyArray | None:
    """Return a two-dimensional array of objects or texts, if the caller gives one."""
    if not isinstance(X, (np.ndarray, list, tuple)):
        return None
    try:
        cells = np.asarray(X)
    except ValueError:  # rows of different lengths: as_matrix raises the error
        return None
    return np.array(X, dtype=object) if cells.ndim == 2 and cells.dtype.kind in "OUT" else None


def _with_zeros(matrix: Matrix, positions: IntArray) -> Matrix:
    """Return columns by their positions; -1 is a column of zeros."""
    if isinstance(matrix, np.ndarray):
        return np.pad(matrix, ((0, 0), (0, 1)))[:, positions]
    from scipy.sparse import csr_array, hstack

    zeros = csr_array((matrix.shape[0], 1), dtype=matrix.dtype)
    return hstack([matrix, zeros], format="csr")[:, positions].sorted_indices()


def _listed(names: list[str], most: int = 5) -> str:
    word = "the feature" if len(names) == 1 else f"{len(names)} features:"
    shown = ", ".join(map(repr, names[:most]))
    return f"{word} {shown}" + (", …" if len(names) > most else "")
