"""A fitted sum of threshold rankers, reduced to what is needed to score documents with it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import counted
from leanrank.errors import ModelError
from leanrank.execution import row_blocks
from leanrank.model.base import Model
from leanrank.model.fields import Field
from leanrank.model.parts import feature_reader

MISSING = (0, 1)


@dataclass(frozen=True, eq=False, repr=False)
class BoostedModel(Model):
    """A sum of weak rankers, each a weight for the documents whose feature is above a threshold.

    The score of a document is the sum of the values of the weak rankers that are true of it. One is
    true when the feature is above the threshold; of a document without the feature (NaN) it is true
    if ``missing`` is 1. Usually made by ``RankBoost.to_model()`` or :func:`leanrank.load_model`.

    Parameters
    ----------
    n_features : int
        How many features a document has.
    features : array of int64
        The feature of each weak ranker, zero-based.
    thresholds : array of float64
        Its threshold; −inf is true of every document that has the feature.
    missing : array of 0 and 1
        Whether it is true of a document without the feature.
    values : array of float64
        Its weight. Weak rankers that differ in their value only are added up, and kept in the
        order of features, thresholds and ``missing``.
    feature_names : tuple of str, optional
    normalizer : dict, optional
    provenance : dict, optional

    Examples
    --------
    >>> model = BoostedModel(2, [0, 1, 0], [0.5, 3.0, 0.5], [0, 1, 0], [1.0, -0.25, 1.0])
    >>> model
    BoostedModel: 2 of 2 features, 2 weak rankers
      f1   2
      f2   0.25
    >>> model.predict([[1.0, 2.0], [0.0, 4.0], [float("nan"), float("nan")]]).tolist()
    [2.0, -0.25, -0.25]
    """

    n_features: int
    features: IntArray
    thresholds: FloatArray
    missing: IntArray
    values: FloatArray
    feature_names: tuple[str, ...] | None = None
    normalizer: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    indices: IntArray = field(init=False)

    kind: ClassVar[str] = "boosted"
    own_keys: ClassVar[tuple[str, ...]] = ("weak_rankers",)

    def __post_init__(self) -> None:
        merged = _merged(
            *_checked(self.features, self.thresholds, self.missing, self.values, self.n_features)
        )
        for name, array in zip(
            ("features", "thresholds", "missing", "values"), merged, strict=True
        ):
            object.__setattr__(self, name, _frozen(array))
        object.__setattr__(self, "indices", _frozen(np.unique(self.features)))
        self._check_shared()

    @property
    def n_weak_rankers(self) -> int:
        """How many different weak rankers the score adds up."""
        return len(self.values)

    @property
    def importances(self) -> FloatArray:
        """One number per feature: the sum of its weak rankers' absolute values."""
        sums = np.bincount(self.features, np.abs(self.values), self.n_features)
        return sums.astype(np.float64, copy=False)

    @property
    def weights(self) -> dict[str, float]:
        """The importance of each feature used by its name, largest first."""
        return self._by_weight(self.importances[self.indices])

    def _headline(self) -> str:
        return f"{super()._headline()}, {counted(self.n_weak_rankers, 'weak ranker')}"

    def _scores(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        scores = np.zeros(matrix.shape[0])
        for rows, _, added in self._steps(matrix, columns):
            scores[rows] += added
        return scores

    def _contributions(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        parts = np.zeros((matrix.shape[0], len(self.indices)))
        for rows, feature, added in self._steps(matrix, columns):
            parts[rows, feature] = added
        return parts

    def _steps(
        self, matrix: Matrix, columns: IntArray | None
    ) -> Iterator[tuple[slice, int, FloatArray]]:
        """Return, for blocks of rows, what each used feature adds to their scores."""
        places = np.arange(len(self.indices)) if columns is None else columns
        steps = [_Steps.of(self, feature) for feature in self.indices.tolist()]
        for r0, r1 in row_blocks(matrix.shape[0]):
            block = matrix[r0:r1]
            if not isinstance(block, np.ndarray):
                block = block[:, places].toarray()  # a block at a time: never large
                inside = range(len(places))
            else:
                inside = places.tolist()
            for used, (at, step) in enumerate(zip(inside, steps, strict=True)):
                yield slice(r0, r1), used, step(block[:, at])

    def _own_parts(self) -> dict[str, Any]:
        names = self.feature_names
        return {
            "weak_rankers": [
                {
                    "feature": at if names is None else names[at],
                    "missing": missing,
                    "threshold": None if threshold == -np.inf else threshold,
                    "value": value,
                }
                for at, threshold, missing, value in zip(
                    self.features.tolist(),
                    self.thresholds.tolist(),
                    self.missing.tolist(),
                    self.values.tolist(),
                    strict=True,
                )
            ]
        }

    @classmethod
    def _read_own(
        cls, root: Field, n_features: int, names: tuple[str, ...] | None
    ) -> dict[str, Any]:
        read_feature = feature_reader(n_features, names)
        rows: dict[tuple[int, float, int], float] = {}
        for item in root["weak_rankers"].array():
            item.object(("feature", "missing", "threshold", "value"), ())
            at = read_feature(item["feature"])
            missing = item["missing"].integer(*MISSING)
            threshold = item["threshold"]
            cut = -np.inf if threshold.value is None else threshold.number() + 0.0
            value = item["value"].number()
            if value == 0:
                item["value"].fail("is zero: leave weak rankers without weight out")
            if (at, cut, missing) in rows:
                item.fail("repeats the feature, threshold and missing of one before: add them up")
            rows[at, cut, missing] = value
        keys = list(rows)
        return {
            "features": np.array([key[0] for key in keys], dtype=np.int64),
            "thresholds": np.array([key[1] for key in keys], dtype=np.float64),
            "missing": np.array([key[2] for key in keys], dtype=np.int64),
            "values": np.array(list(rows.values()), dtype=np.float64),
        }


@dataclass(frozen=True)
class _Steps:
    """What one feature adds to a score: a constant between any two thresholds."""

    thresholds: FloatArray
    sums: FloatArray  # by the number of thresholds below the feature
    missing: float

    @classmethod
    def of(cls, model: BoostedModel, feature: int) -> _Steps:
        r0, r1 = np.searchsorted(model.features, [feature, feature + 1])
        values = model.values[r0:r1]
        return cls(
            model.thresholds[r0:r1],
            np.concatenate(([0.0], np.cumsum(values))),
            float(values[model.missing[r0:r1] == 1].sum()),
        )

    def __call__(self, column: AnyArray) -> FloatArray:
        column = column.astype(np.float64)
        out: FloatArray = self.sums[np.searchsorted(self.thresholds, column, side="left")]
        absent = np.isnan(column)
        out[absent] = self.missing
        out[np.isinf(column)] = np.nan  # rejected by the caller
        return out


def _checked(
    features: Any, thresholds: Any, missing: Any, values: Any, n_features: int
) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    at = np.array(features, dtype=np.int64)
    cut = np.array(thresholds, dtype=np.float64) + 0.0  # −0 and 0 are one threshold
    absent = np.array(missing, dtype=np.int64)
    value = np.array(values, dtype=np.float64)
    if at.ndim != 1 or not at.shape == cut.shape == absent.shape == value.shape:
        raise ModelError(
            f"features, thresholds, missing and values have shapes {at.shape}, {cut.shape}, "
            f"{absent.shape} and {value.shape}: give one of each per weak ranker"
        )
    if len(at) and (at.min() < 0 or at.max() >= n_features):
        raise ModelError(f"a feature is not from 0 to {n_features - 1}")
    if np.isnan(cut).any() or (cut == np.inf).any():
        raise ModelError(
            "a threshold is NaN or infinite: only −inf, any value there is, is allowed"
        )
    if not np.isin(absent, MISSING).all():
        raise ModelError("missing must be 0 or 1 for every weak ranker")
    if not np.isfinite(value).all():
        raise ModelError("a value is not finite: the model cannot be used")
    return at, cut, absent, value


def _merged(
    features: IntArray, thresholds: FloatArray, missing: IntArray, values: FloatArray
) -> tuple[IntArray, FloatArray, IntArray, FloatArray]:
    """Add up what differs in its value only, in the order given; sums of zero are left out."""
    order = np.lexsort((missing, thresholds, features))
    keys = features[order], thresholds[order], missing[order]
    new = np.ones(len(order), dtype=bool)
    new[1:] = np.logical_or.reduce([key[1:] != key[:-1] for key in keys])
    sums = np.bincount(np.cumsum(new) - 1, values[order], int(new.sum())).astype(np.float64)
    kept = sums != 0
    at, cut, absent = (key[new][kept] for key in keys)
    return at, cut, absent, sums[kept]


def _frozen(array: AnyArray) -> AnyArray:
    array.flags.writeable = False
    return array
