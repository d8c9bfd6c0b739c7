"""Two lists of scores side by side: differences, bits, and orders that change."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray


@dataclass(frozen=True)
class Agreement:
    """How scores found elsewhere agree with those that were expected.

    Attributes
    ----------
    engine : str
        What computed the scores.
    documents, queries : int
        How many were compared.
    bit_equal : int
        Documents whose score is exactly the one expected of the engine.
    difference : float
        The largest difference to the score expected of the engine.
    model_difference : float
        The largest difference to the model's own score, a dropped constant aside.
    orders_changed : int
        Queries in which two documents that the model tells apart are not in its order.
    beyond : int
        Queries in which that happens to documents whose scores differ by more than ``tolerance``.
    tolerance : float
    """

    engine: str
    documents: int
    queries: int
    bit_equal: int
    difference: float
    model_difference: float
    orders_changed: int
    beyond: int
    tolerance: float

    @property
    def agrees(self) -> bool:
        """Whether no order changes beyond the tolerance."""
        return self.beyond == 0

    def to_dict(self) -> dict[str, Any]:
        """Return the fields as plain data."""
        return asdict(self)


def compare_scores(
    found: FloatArray,
    expected: FloatArray,
    model: FloatArray,
    query_ptr: IntArray,
    *,
    tolerance: float = 1e-6,
    engine: str = "",
) -> Agreement:
    """Compare scores found in an engine with what it should compute and with the model's.

    Parameters
    ----------
    found, expected, model : array
        One score per document; a constant between ``found`` and ``model`` has been taken out.
    query_ptr : array
        Where the documents of each query begin, and the number of documents.
    tolerance : float
        Differences between two documents of a query up to which their order does not matter.
    engine : str
        What computed the scores.

    Examples
    --------
    >>> import numpy as np
    >>> model = np.array([3.0, 2.0, 1.0])
    >>> compare_scores(model[[1, 0, 2]], model, model, np.array([0, 3])).orders_changed
    1
    """
    gap = np.abs(found - expected)
    model_gap = np.abs(found - model)
    gaps = disorder(model, found, query_ptr)
    return Agreement(
        engine,
        len(found),
        len(query_ptr) - 1,
        int(np.count_nonzero(found == expected)),
        float(gap.max(initial=0.0)),
        float(model_gap.max(initial=0.0)),
        int(np.count_nonzero(gaps > 0)),
        int(np.count_nonzero(gaps > tolerance)),
        tolerance,
    )


def disorder(model: FloatArray, found: FloatArray, query_ptr: IntArray) -> FloatArray:
    """Return per query the largest model difference of two documents that lost their order.

    A pair loses its order if the document that the model prefers has no higher score elsewhere. 0
    is a query whose order is kept.

    >>> import numpy as np
    >>> disorder(np.array([3.0, 1.0, 2.0]), np.array([1.0, 5.0, 4.0]), np.array([0, 3])).tolist()
    [2.0]
    """
    worst = np.zeros(len(query_ptr) - 1)
    for q, (start, stop) in enumerate(pairwise(query_ptr.tolist())):
        s, f = model[start:stop], found[start:stop]
        if not (np.isfinite(f).all() and np.isfinite(s).all()):
            worst[q] = np.inf
            continue
        # Best first elsewhere, and among equals what the model likes least: then a pair lost its
        # order exactly if a document with a higher model score comes later.
        order = np.lexsort((s, -f))
        later_best = np.maximum.accumulate(s[order][::-1])[::-1]
        worst[q] = np.max(later_best - s[order], initial=0.0)
    return worst
