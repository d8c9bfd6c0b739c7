"""Finding a model's features in the caller's data, by name or by position."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np

from leanrank._typing import IntArray, Matrix
from leanrank.data import RankingData
from leanrank.errors import ModelError, first_repeated


class Named(Protocol):
    """The part of a model that is needed here."""

    @property
    def n_features(self) -> int: ...

    @property
    def feature_names(self) -> tuple[str, ...] | None: ...

    @property
    def indices(self) -> IntArray: ...


@dataclass(frozen=True)
class Table:
    """Documents × features with the names of the columns, if they have any.

    ``frame`` is a data frame or Arrow table, of which only the columns asked for are converted;
    otherwise ``matrix`` is an array or CSR matrix.
    """

    names: tuple[str, ...] | None
    width: int
    matrix: Matrix = None
    frame: Any = None

    @classmethod
    def of(cls, X: Any) -> Table:
        """Wrap the caller's data."""
        if isinstance(X, RankingData):
            return cls(X.feature_names, X.n_features, matrix=X.X)
        if hasattr(X, "collect") and not hasattr(X, "shape"):
            raise ModelError(f"{type(X).__name__} holds no data yet: collect it first")
        columns = getattr(X, "column_names", None)
        if columns is None and hasattr(X, "columns"):
            columns = X.columns
        if columns is not None:
            names = tuple(columns)
            if len(set(names)) != len(names):
                twice = first_repeated(names)
                raise ModelError(f"the column {twice!r} occurs twice: names must be distinct")
            named = all(isinstance(name, str) for name in names)
            return cls(names if named else None, len(names), frame=X)
        data = RankingData(X)  # turns lists, integers and any sparse format into a float matrix
        return cls(None, data.n_features, matrix=data.X)

    def take(self, model: Named, wanted: IntArray) -> tuple[Matrix, IntArray | None]:
        """Return a matrix and the columns in it that are the model's features ``wanted``, in order.

        None stands for all columns as they are. A feature that the data lack but that has no weight
        is a column of zeros: nothing depends on it.
        """
        places = self._places(model, wanted)
        if self.frame is not None:
            return self._take_from_frame(places), None
        if np.array_equal(places, np.arange(self.width)):
            return self.matrix, None
        if (places >= 0).all():
            return self.matrix, places
        return _with_zeros(self.matrix, places), None

    def _places(self, model: Named, wanted: IntArray) -> IntArray:
        """Where each wanted feature is here; -1 for one that is absent and has no weight."""
        if model.feature_names is None or self.names is None:
            if self.width != model.n_features:
                raise ModelError(
                    f"the model has {model.n_features} features but the data have {self.width}: "
                    "give the same features in the same order, or name them on both sides"
                )
            return wanted
        here = {name: at for at, name in enumerate(self.names)}
        names = model.feature_names
        missing = [names[at] for at in model.indices.tolist() if names[at] not in here]
        if missing:
            raise ModelError(f"the data lack {_listed(missing)}, which the model needs")
        return np.array([here.get(names[at], -1) for at in wanted.tolist()], dtype=np.int64)

    def _take_from_frame(self, places: IntArray) -> Matrix:
        labels: Sequence[Any] = list(
            getattr(self.frame, "column_names", None) or self.frame.columns
        )
        n_rows = self.frame.shape[0]
        out = np.zeros((n_rows, len(places)))
        for to, at in enumerate(places.tolist()):
            if at >= 0:
                try:
                    out[:, to] = np.asarray(self.frame[labels[at]], dtype=np.float64)
                except (TypeError, ValueError) as error:
                    raise ModelError(
                        f"the column {labels[at]!r} holds something that is not a number ({error})"
                    ) from error
        return out


def _with_zeros(matrix: Matrix, places: IntArray) -> Matrix:
    present = np.flatnonzero(places >= 0)
    if isinstance(matrix, np.ndarray):
        out = np.zeros((matrix.shape[0], len(places)), dtype=matrix.dtype)
        out[:, present] = matrix[:, places[present]]
        return out
    from scipy.sparse import csr_array

    taken = csr_array(matrix[:, places[present]])
    out = csr_array(
        (taken.data, present[taken.indices], taken.indptr), shape=(matrix.shape[0], len(places))
    )
    out.sort_indices()
    return out


def _listed(names: list[str], most: int = 5) -> str:
    word = "the feature" if len(names) == 1 else f"{len(names)} features:"
    shown = ", ".join(map(repr, names[:most]))
    return f"{word} {shown}" + (", …" if len(names) > most else "")
