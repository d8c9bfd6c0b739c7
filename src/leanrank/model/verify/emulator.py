"""What the learning-to-rank modules of OpenSearch, Elasticsearch and Solr compute, in float32."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from leanrank._typing import AnyArray, FloatArray
from leanrank.model.export.formula import Formula


def float32_scores(
    formula: Formula, X: AnyArray, shifts: Mapping[str, float] | None = None
) -> FloatArray:
    """Return the scores of a linear formula as those engines compute them.

    Weights and features are rounded to float32, and so is every product and every sum in the order
    of features. The constant of the formula is left out. Recorded answers of the engines are equal
    bit for bit.

    Parameters
    ----------
    formula : Formula
        A sum of weighted features.
    X : array
        Documents × the features of the terms; NaN is a missing feature, which counts as 0.
    shifts : mapping, optional
        Constants that the engine adds to features, by name.

    Examples
    --------
    >>> from leanrank.model import Model
    >>> from leanrank.model.export import formula_of
    >>> formula = formula_of(Model.from_coef([0.1, 1.0]))
    >>> float32_scores(formula, np.array([[1.0, 2.0]])).tolist()
    [2.0999999046325684]
    """
    added = shifts or {}
    columns = np.nan_to_num(np.asarray(X, dtype=np.float64), nan=0.0).astype(np.float32)
    total = np.zeros(len(columns), dtype=np.float32)
    for at, term in enumerate(formula.terms):
        x = columns[:, at] + np.float32(added.get(term.name, 0.0))
        total = total + np.float32(term.weight) * x
    return total.astype(np.float64)
