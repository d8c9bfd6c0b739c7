"""A fitted linear ranker, reduced to what is needed to score documents with it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NoReturn

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data import RankingData
from leanrank.errors import InputError, LeanrankError, ModelError
from leanrank.model.columns import Table
from leanrank.model.fields import Field, is_utf8, shorten
from leanrank.model.parts import read_names, read_provenance, read_weights
from leanrank.model.provenance import to_json_values
from leanrank.model.scoring import rank_within_queries, weighted_sums

MAX_FEATURES = 2**31 - 1


@dataclass(frozen=True, eq=False, repr=False)
class LinearModel:
    """Weights of features, with what is needed to apply them: immutable, small, plain data.

    Usually made by an estimator's ``to_model()`` or by :func:`leanrank.load_model`; by hand with
    :meth:`from_coef`.

    Parameters
    ----------
    n_features : int
        How many features a document has.
    indices : array of int64
        The features with a weight, ascending, zero-based.
    values : array of float64
        Their weights; finite and not zero.
    feature_names : tuple of str, optional
        One distinct name a feature. With names on both sides, data are aligned by name.
    normalizer : dict, optional
        What a normaliser of :mod:`leanrank.data.normalize` gives as ``to_dict()``; it is applied to
        the features before the weights.
    provenance : dict, optional
        How the model was made; see :func:`leanrank.model.make_provenance`.

    Examples
    --------
    >>> model = LinearModel.from_coef([0.5, 0.0, -2.0], feature_names=["bm25", "length", "spam"])
    >>> model
    LinearModel: 2 of 3 features
      spam  -2
      bm25   0.5
    >>> model.predict([[1.0, 7.0, 0.0], [4.0, 7.0, 1.0]]).tolist()
    [0.5, 0.0]
    """

    n_features: int
    indices: IntArray
    values: FloatArray
    feature_names: tuple[str, ...] | None = None
    normalizer: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)

    kind = "linear"

    def __post_init__(self) -> None:
        names = self.feature_names
        indices, values = _checked_weights(self.indices, self.values, self.n_features)
        object.__setattr__(self, "n_features", int(self.n_features))
        object.__setattr__(self, "indices", indices)
        object.__setattr__(self, "values", values)
        object.__setattr__(self, "feature_names", None if names is None else tuple(names))
        _check_names(self.feature_names, self.n_features)
        made = Field(to_json_values(self.provenance), "LinearModel", "provenance")
        provenance = read_provenance(made)
        object.__setattr__(self, "provenance", provenance)
        if self.normalizer is not None:
            spec = Field(dict(self.normalizer), "LinearModel", "normalizer").json()
            object.__setattr__(self, "normalizer", spec)

    @classmethod
    def from_coef(
        cls,
        coef: Any,
        *,
        feature_names: Sequence[str] | None = None,
        normalizer: Mapping[str, Any] | None = None,
        provenance: Mapping[str, Any] | None = None,
    ) -> LinearModel:
        """Make a model from one weight a feature; zeros are left out.

        >>> LinearModel.from_coef([0.0, 1.5]).weights
        {1: 1.5}
        """
        dense = np.asarray(coef, dtype=np.float64)
        if dense.ndim != 1:
            raise ModelError(f"coef has {dense.ndim} dimensions: give one weight a feature")
        indices = np.flatnonzero(dense)
        return cls(
            n_features=len(dense),
            indices=indices,
            values=dense[indices],
            feature_names=None if feature_names is None else tuple(map(str, feature_names)),
            normalizer=normalizer,
            provenance={} if provenance is None else provenance,
        )

    @property
    def coef(self) -> FloatArray:
        """One weight a feature, zeros included."""
        dense = np.zeros(self.n_features)
        dense[self.indices] = self.values
        return dense

    @property
    def weights(self) -> dict[str, float] | dict[int, float]:
        """The weights by feature name (or index), largest magnitude first."""
        largest = np.argsort(-np.abs(self.values), kind="stable")
        values = self.values[largest].tolist()
        if self.feature_names is None:
            return dict(zip(self.indices[largest].tolist(), values, strict=True))
        names = [self.feature_names[at] for at in self.indices[largest].tolist()]
        return dict(zip(names, values, strict=True))

    @property
    def n_nonzero(self) -> int:
        """How many features have a weight."""
        return len(self.indices)

    @property
    def sparsity(self) -> float:
        """Share of the features that have a weight, ‖w‖₀ / n."""
        return self.n_nonzero / self.n_features if self.n_features else 0.0

    def predict(self, X: Any, qid: Any = None) -> FloatArray:
        """Score documents; within a query, higher is better.

        A document's score depends on its own features only (and, with a per-query normaliser, on
        its query): not on the rows beside it, the order of named columns or the number of threads.

        Parameters
        ----------
        X : array, SciPy sparse matrix, data frame, Arrow table or RankingData
            If both the model and X name the features, columns are found by name, in any order, and
            only those with a weight are needed; otherwise they are taken by position.
        qid : array-like, optional
            One query identifier a document, for a model that normalises per query; None means one
            query. A RankingData brings its own.

        Returns
        -------
        array of float64
            One score a document, in the order of X's rows (for a RankingData: of ``data.X``).
        """
        if isinstance(X, RankingData):
            if qid is not None:
                raise InputError("qid was given beside a RankingData, which has its own queries")
            qid = X.qid
        table = Table.of(X)
        matrix: Matrix
        if self._normalizer is None:
            matrix, columns = table.take(self, self.indices)
        else:
            matrix, columns = table.take(self, np.arange(self.n_features, dtype=np.int64))
            ordered = matrix if columns is None else matrix[:, columns]
            matrix, columns = self._normalized(ordered, qid), self.indices
        scores = weighted_sums(matrix, self.values, columns)
        if not np.isfinite(scores).all():
            self._refuse(int(np.flatnonzero(~np.isfinite(scores))[0]), matrix, columns)
        return scores

    def rank(self, X: Any, qid: Any = None) -> IntArray:
        """Rank documents within their query: 1 is the best, ties keep the order of the rows.

        >>> LinearModel.from_coef([1.0]).rank([[0.1], [0.7], [0.4]]).tolist()
        [3, 1, 2]
        """
        scores = self.predict(X, qid)
        return rank_within_queries(scores, X.qid if isinstance(X, RankingData) else qid)

    def to_dict(self) -> dict[str, Any]:
        """Give the document that :meth:`save` writes.

        >>> LinearModel.from_coef([0.0, 1.5]).to_dict()["weights"]
        [{'feature': 1, 'value': 1.5}]
        """
        names = self.feature_names
        positions, values = self.indices.tolist(), self.values.tolist()
        return {
            "format": "leanrank-model",
            "schema_version": 1,
            "kind": self.kind,
            "n_features": self.n_features,
            "feature_names": None if names is None else list(names),
            "normalizer": None if self.normalizer is None else _copied(self.normalizer),
            "weights": [
                {"feature": at if names is None else names[at], "value": value}
                for at, value in zip(positions, values, strict=True)
            ],
            "provenance": _copied(self.provenance),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str = "the model") -> LinearModel:
        """Read what :meth:`to_dict` gives; anything else is a :class:`~leanrank.errors.ModelError`.

        ``source`` is what messages call the document: usually a file.
        """
        from leanrank.model.reading import check_header

        return cls.from_field(check_header(Field(dict(document), source), kinds=(cls.kind,)))

    @classmethod
    def from_field(cls, root: Field) -> LinearModel:
        """Read a document whose header has been checked."""
        root.object(
            ("format", "schema_version", "kind", "n_features", "weights"),
            ("feature_names", "normalizer", "provenance"),
        )
        n_features = root["n_features"].integer(0, MAX_FEATURES)
        names = read_names(root, n_features)
        indices, values = read_weights(root["weights"], n_features, names)
        given = root.value.get("normalizer")
        model = cls(
            n_features=n_features,
            indices=indices,
            values=values,
            feature_names=names,
            normalizer=None if given is None else root["normalizer"].object().json(),
            provenance=(read_provenance(root["provenance"]) if "provenance" in root.value else {}),
        )
        if given is not None:
            try:  # built now, so that a wrong one fails when it is read
                width = getattr(model._normalizer, "n_features_in_", n_features)
            except InputError as error:
                root["normalizer"].fail(f"cannot be used: {error}")
            if width != n_features:
                root["normalizer"].fail(f"is for {width} features but n_features is {n_features}")
        return model

    def save(self, path: str | Path) -> None:
        """Write the model file; ``"-"`` is standard output. Nobody ever sees half of it."""
        from leanrank.model.writing import write_document

        write_document(self.to_dict(), path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, LinearModel) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.n_features, self.indices.tobytes(), self.values.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        return (
            LinearModel,
            (
                self.n_features,
                self.indices,
                self.values,
                self.feature_names,
                self.normalizer,
                self.provenance,
            ),
        )

    def __repr__(self) -> str:
        shown = list(self.weights.items())[:10]
        width = max((len(str(name)) for name, _ in shown), default=0)
        head = f"LinearModel: {self.n_nonzero:,} of {self.n_features:,} features"
        if self.normalizer is not None:
            head += f", after {self.normalizer.get('kind', 'a')} normalisation"
        lines = [f"  {name!s:<{width}}  {value: .6g}" for name, value in shown]
        if self.n_nonzero > len(shown):
            lines.append(f"  … and {self.n_nonzero - len(shown):,} more")
        return "\n".join([head, *lines])

    def _refuse(self, row: int, matrix: Matrix, columns: IntArray | None) -> NoReturn:
        """Say which feature made the score of a row unusable."""
        features = matrix[[row]] if columns is None else matrix[[row]][:, columns]
        values = (features if isinstance(features, np.ndarray) else features.toarray())[0]
        for at, value in zip(self.indices.tolist(), values.tolist(), strict=True):
            if not np.isfinite(value):
                name = at if self.feature_names is None else repr(self.feature_names[at])
                raise InputError(f"feature {name} is {value} in row {row}: it must be finite")
        raise InputError(f"the score of row {row} is too large for a number")

    def _normalized(self, X: Matrix, qid: Any) -> Matrix:
        try:
            return self._normalizer.transform(X, qid=qid)
        except LeanrankError:
            raise
        except ValueError as error:  # scikit-learn's own checks
            raise InputError(f"the features cannot be normalised: {error}") from error

    @cached_property
    def _normalizer(self) -> Any:
        if self.normalizer is None:
            return None
        from leanrank.data.normalize import normalizer_from_dict

        return normalizer_from_dict(self.normalizer)


def _checked_weights(indices: Any, values: Any, n_features: int) -> tuple[IntArray, FloatArray]:
    at = np.array(indices, dtype=np.int64)
    weight = np.array(values, dtype=np.float64)
    if at.ndim != 1 or at.shape != weight.shape:
        raise ModelError(f"{at.shape} indices and {weight.shape} values do not belong together")
    if len(at) and (at[0] < 0 or at[-1] >= n_features or (np.diff(at) <= 0).any()):
        raise ModelError(f"indices must ascend without repeats from 0 to at most {n_features - 1}")
    if not np.isfinite(weight).all():
        bad = int(at[np.flatnonzero(~np.isfinite(weight))[0]])
        raise ModelError(f"the weight of feature {bad} is not finite: the model cannot be used")
    if (weight == 0).any():
        raise ModelError("a weight is zero: only features with a weight belong in a model")
    at.flags.writeable = False
    weight.flags.writeable = False
    return at, weight


def _check_names(names: tuple[str, ...] | None, n_features: int) -> None:
    if names is None:
        return
    if len(names) != n_features:
        raise ModelError(f"{len(names)} feature names were given for {n_features} features")
    if len(set(names)) != len(names):
        twice = _first_repeated(names)
        raise ModelError(f"the feature name {shorten(twice)} occurs twice: names must be distinct")
    for name in names:
        if not is_utf8(name):
            raise ModelError(f"the feature name {shorten(name)} cannot be written as UTF-8")


def _first_repeated(names: Sequence[str]) -> str:
    seen: set[str] = set()
    for name in names:
        if name in seen:
            break
        seen.add(name)
    return name


def _copied(value: Any) -> Any:
    if isinstance(value, Mapping):
        return {key: _copied(item) for key, item in value.items()}
    if isinstance(value, list):
        return [_copied(item) for item in value]
    return value
