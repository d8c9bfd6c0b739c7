"""Types of queries, from columns that say something of a query: weights may depend on them."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.trec import RunPool
from leanrank.errors import InputError

LEAST = 10
"""Queries below which a type has the weights of all."""

FEW_VALUES = 5
"""Distinct numbers up to which each is a level; beyond, three ranges of about equal size are."""


@dataclass(frozen=True)
class QueryTypes:
    """How queries are typed.

    Attributes
    ----------
    cuts : dict of str to tuple of float
        The columns; where ranges of a number begin, empty for levels as they are.
    names : tuple of str
        The types with enough queries, such as ``"kind=navigational"``.
    """

    cuts: dict[str, tuple[float, ...]] = field(default_factory=dict)
    names: tuple[str, ...] = ()

    @classmethod
    def find(cls, table: Any, query_ids: Any) -> QueryTypes:
        """Find the types of some queries.

        >>> table = {"qid": range(40), "length": [1, 2] * 20}
        >>> QueryTypes.find(table, range(40)).names
        ('length=1', 'length=2')
        """
        columns = _columns(table)
        cuts = {}
        for name, values in columns.items():
            if name != "qid":
                numeric = values.dtype.kind in "iuf" and len(np.unique(values)) > FEW_VALUES
                ends = np.nanquantile(values, [1 / 3, 2 / 3]) if numeric else np.zeros(0)
                cuts[name] = tuple(np.unique(ends).tolist())
        of = cls(cuts, ()).of(table)
        counts = Counter(of.get(str(query), "") for query in query_ids)
        names = sorted(name for name, n in counts.items() if name and n >= LEAST)
        return cls(cuts, tuple(names))

    def of(self, table: Any) -> dict[str, str]:
        """Return the type of each query of a table."""
        columns = _columns(table)
        missing = [name for name in self.cuts if name not in columns]
        if missing:
            raise InputError(f"query_features has no column {missing[0]!r}")
        labels = [self._labels(name, columns[name]) for name in self.cuts]
        queries = map(str, columns["qid"].tolist())
        return {q: ", ".join(own) for q, *own in zip(queries, *labels, strict=True)}

    def _labels(self, name: str, values: Any) -> list[str]:
        ends = self.cuts[name]
        if not ends:
            return [f"{name}={value}" for value in values.tolist()]
        words = [f"{name} up to {ends[0]:g}"]
        words += [f"{name} up to {end:g}" for end in ends[1:]] + [f"{name} above {ends[-1]:g}"]
        return [words[at] for at in np.searchsorted(ends, values).tolist()]

    def widened(self, X: FloatArray, pool: RunPool, of: Mapping[str, str]) -> FloatArray:
        """Return inputs, and beside them the same for each type: what it adds to the weights."""
        own = np.array([of.get(str(query), "") for query in pool.data.query_ids.tolist()])
        rows = np.repeat(own, np.diff(pool.data.query_ptr))
        return np.hstack([X, *(X * (rows == name)[:, None] for name in self.names)])

    def weights(self, w: FloatArray) -> dict[str, FloatArray]:
        """Return the weights of each type from those of widened inputs."""
        shared, *own = w.reshape(1 + len(self.names), -1)
        return {name: shared + more for name, more in zip(self.names, own, strict=True)}


def _columns(table: Any) -> dict[str, Any]:
    """Return the columns of a mapping, a data frame or an Arrow table."""
    if isinstance(table, Mapping):
        names = list(table)
    else:
        names = list(getattr(table, "column_names", None) or table.columns)
    if "qid" not in names or len(names) < 2:
        raise InputError("query_features needs the column 'qid' and at least one more")
    return {str(name): np.asarray(table[name]) for name in names}
