"""What the models of every kind share: finding features, ranking, reading and writing."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import fields, replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar, NoReturn

import numpy as np

from leanrank._typing import FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.errors import InputError, LeanrankError, ModelError
from leanrank.model.columns import Table
from leanrank.model.fields import Field, is_utf8, shorten
from leanrank.model.parts import read_names, read_provenance
from leanrank.model.provenance import to_json_values
from leanrank.model.scoring import rank_within_queries

if TYPE_CHECKING:
    from typing import Self

    from leanrank.model.explain import Explanation

MAX_FEATURES = 2**31 - 1


class Model:
    """A fitted ranker reduced to what is needed to score documents: immutable, small, plain data.

    A kind of model is a frozen dataclass with the fields below and its own. It defines what it
    writes (``_own_parts``), how it is read (``_read_own``), how it scores (``_scores``) and what
    each feature adds to a score (``_contributions``).

    Attributes
    ----------
    n_features : int
        How many features a document has.
    indices : array of int64
        The features that a score depends on, ascending, zero-based.
    feature_names : tuple of str or None
        One distinct name per feature. With names on both sides, data are aligned by name.
    normalizer : dict or None
        What a normaliser of :mod:`leanrank.data.normalize` gives as ``to_dict()``; it is applied to
        the features first.
    provenance : dict
        How the model was made; see :func:`leanrank.model.make_provenance`.
    """

    kind: ClassVar[str]
    own_keys: ClassVar[tuple[str, ...]]
    n_features: int
    indices: IntArray
    feature_names: tuple[str, ...] | None
    normalizer: Mapping[str, Any] | None
    provenance: Mapping[str, Any]

    @property
    def weights(self) -> dict[str, float]:
        """The weight of each feature by its name, largest magnitude first."""
        raise NotImplementedError

    @property
    def n_nonzero(self) -> int:
        """How many features the score depends on."""
        return len(self.indices)

    @property
    def sparsity(self) -> float:
        """Share of the features that the score depends on."""
        return self.n_nonzero / self.n_features if self.n_features else 0.0

    @property
    def needs_qid(self) -> bool:
        """Whether a score depends on the other documents of its query."""
        return self._normalizer is not None and bool(self._normalizer.per_query)

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
            One query identifier per document; a model that normalises per query needs it. A
            RankingData brings its own.

        Returns
        -------
        array of float64
            One score per document, in the order of X's rows (for a RankingData: of ``data.X``).
        """
        matrix, columns, _ = self._prepared(X, qid)
        return self._finite_scores(matrix, columns)

    def explain(self, X: Any, qid: Any = None) -> Explanation:
        """Split the scores of documents into what each feature adds.

        Parameters
        ----------
        X, qid
            As for :meth:`predict`; usually the documents of one query.

        Returns
        -------
        Explanation
            ``contributions``, one column per feature that the model uses, and ``why(a, b)``.
        """
        from leanrank.model.explain import Explanation

        matrix, columns, qid = self._prepared(X, qid)
        return Explanation.of(
            self._finite_scores(matrix, columns),
            self._contributions(matrix, columns),
            [feature_name(at, self.feature_names) for at in self.indices.tolist()],
            qid,
            X.doc_ids if isinstance(X, RankingData) else None,
        )

    def rank(self, X: Any, qid: Any = None) -> IntArray:
        """Rank documents within their query: 1 is the best, ties keep the order of the rows."""
        scores = self.predict(X, qid)
        return rank_within_queries(scores, X.qid if isinstance(X, RankingData) else qid)

    def to_dict(self) -> dict[str, Any]:
        """Return the document that :meth:`save` writes."""
        names = self.feature_names
        return {
            "format": "leanrank-model",
            "schema_version": 1,
            "kind": self.kind,
            "n_features": self.n_features,
            "feature_names": None if names is None else list(names),
            "normalizer": None if self.normalizer is None else _copied(self.normalizer),
            **self._own_parts(),
            "provenance": _copied(self.provenance),
        }

    @classmethod
    def from_dict(cls, document: Mapping[str, Any], source: str = "the model") -> Self:
        """Read what :meth:`to_dict` gives; anything else is a :class:`~leanrank.errors.ModelError`.

        ``source`` is what messages call the document: usually a file.
        """
        from leanrank.model.reading import check_header

        return cls.from_field(check_header(Field(dict(document), source), kinds=(cls.kind,)))

    @classmethod
    def from_field(cls, root: Field) -> Self:
        """Read a document whose header has been checked."""
        root.object(
            ("format", "schema_version", "kind", "n_features", *cls.own_keys),
            ("feature_names", "normalizer", "provenance"),
        )
        n_features = root["n_features"].integer(0, MAX_FEATURES)
        names = read_names(root, n_features)
        given = root.value.get("normalizer")
        model = cls(
            n_features=n_features,
            feature_names=names,
            normalizer=None if given is None else root["normalizer"].object().json(),
            provenance=(read_provenance(root["provenance"]) if "provenance" in root.value else {}),
            **cls._read_own(root, n_features, names),
        )  # type: ignore[call-arg]
        if given is not None:
            try:  # built now, so that a wrong one fails when it is read
                width = getattr(model._normalizer, "n_features_in_", n_features)
            except InputError as error:
                root["normalizer"].fail(f"cannot be used: {error}")
            if width != n_features:
                root["normalizer"].fail(f"is for {width} features but n_features is {n_features}")
        return model

    def replace(self, **changes: Any) -> Self:
        """Return a copy in which some fields differ."""
        changed: Self = replace(self, **changes)  # type: ignore[type-var]
        return changed

    def save(self, path: str | Path) -> None:
        """Write the model file; ``"-"`` is standard output. It is never half-written."""
        from leanrank.model.writing import write_document

        write_document(self.to_dict(), path)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.kind, self.n_features, self.indices.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        given = (getattr(self, f.name) for f in fields(self) if f.init)  # type: ignore[arg-type]
        return type(self), tuple(given)

    def __repr__(self) -> str:
        shown = list(self.weights.items())[:10]
        width = max((len(str(name)) for name, _ in shown), default=0)
        lines = [f"  {name!s:<{width}}  {value: .6g}" for name, value in shown]
        if self.n_nonzero > len(shown):
            lines.append(f"  … and {self.n_nonzero - len(shown):,} more")
        return "\n".join([self._headline(), *lines])

    def _repr_html_(self) -> str:
        from leanrank.model.display import weights_html

        return weights_html(self)

    def _headline(self) -> str:
        head = f"{type(self).__name__}: {self.n_nonzero:,} of {self.n_features:,} features"
        if self.normalizer is not None:
            head += f", after {self.normalizer.get('kind', 'a')} normalisation"
        return head

    def _own_parts(self) -> dict[str, Any]:
        """Return the part of the document that only this kind of model has."""
        raise NotImplementedError

    @classmethod
    def _read_own(
        cls, root: Field, n_features: int, names: tuple[str, ...] | None
    ) -> dict[str, Any]:
        """Read that part into arguments of the constructor."""
        raise NotImplementedError

    def _scores(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        """Score rows of a matrix in which ``columns`` are ``indices``; None: as they are."""
        raise NotImplementedError

    def _contributions(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        """Return what each of ``indices`` adds to the score of each row."""
        raise NotImplementedError

    def _prepared(self, X: Any, qid: Any) -> tuple[Matrix, IntArray | None, Any]:
        """Find the features, normalised if the model does so, and the queries of the rows."""
        if isinstance(X, RankingData):
            if qid is not None:
                raise InputError("qid was given beside a RankingData, which has its own queries")
            qid = X.qid
        elif qid is None and self.needs_qid:
            raise ModelError(
                f"the model scales features within each query ({self._normalizer.kind}): give qid, "
                "one per row; for one query, a list of equal values"
            )
        table = Table.of(X)
        if self._normalizer is None:
            return *table.take(self, self.indices), qid
        matrix, columns = table.take(self, np.arange(self.n_features, dtype=np.int64))
        ordered = matrix if columns is None else matrix[:, columns]
        return self._normalized(ordered, qid), self.indices, qid

    def _finite_scores(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        scores = self._scores(matrix, columns)
        if not np.isfinite(scores).all():
            self._refuse(int(np.flatnonzero(~np.isfinite(scores))[0]), matrix, columns)
        return scores

    def _check_shared(self) -> None:
        """Check the fields that all kinds have, and keep copies of what the caller may change."""
        names = self.feature_names
        object.__setattr__(self, "n_features", int(self.n_features))
        object.__setattr__(self, "feature_names", None if names is None else tuple(names))
        _check_names(self.feature_names, self.n_features)
        kind = type(self).__name__
        made = Field(to_json_values(self.provenance), kind, "provenance")
        object.__setattr__(self, "provenance", read_provenance(made))
        if self.normalizer is not None:
            spec = Field(dict(self.normalizer), kind, "normalizer").json()
            object.__setattr__(self, "normalizer", spec)

    def _by_weight(self, values: FloatArray) -> dict[str, float]:
        """Pair the names of ``indices`` with one value each, largest magnitude first."""
        largest = np.argsort(-np.abs(values), kind="stable")
        names = [feature_name(at, self.feature_names) for at in self.indices[largest].tolist()]
        return dict(zip(names, values[largest].tolist(), strict=True))

    def _refuse(self, row: int, matrix: Matrix, columns: IntArray | None) -> NoReturn:
        """Name the feature that made the score of a row unusable."""
        features = matrix[[row]] if columns is None else matrix[[row]][:, columns]
        values = (features if isinstance(features, np.ndarray) else features.toarray())[0]
        for at, value in zip(self.indices.tolist(), values.tolist(), strict=True):
            if not np.isfinite(value):
                name = feature_name(at, self.feature_names)
                raise InputError(f"feature {name!r} is {value} in row {row}: it must be finite")
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
