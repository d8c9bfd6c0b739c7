"""``Model``: a fitted ranker as plain data that scores documents."""

from __future__ import annotations

from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field, fields, replace
from functools import partial
from importlib import import_module
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn, Self

import numpy as np

from leanrank._display import printable
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.grouping import group_rows
from leanrank.data.ranking_data import RankingData, counted, feature_name
from leanrank.errors import InputError, ModelError, first_repeated
from leanrank.execution import cached_property
from leanrank.model.alignment import prepared
from leanrank.model.curves import Curve, Line
from leanrank.model.provenance import plain_json, to_json_values
from leanrank.model.scoring import TermSum, dense, rank_within_queries
from leanrank.model.terms import Levels, Surface, Term, check_terms, term_name

if TYPE_CHECKING:
    from leanrank.model.explain import Explanation
    from leanrank.model.verify import Agreement


@dataclass(frozen=True, eq=False, repr=False)
class Model:
    """A sum of terms, with the normaliser and fill values of its features.

    A term is a curve of one feature, a look-up table of one category, or a surface of two features.

    Immutable, small, plain data. Usually the result of an estimator's ``to_model()`` or of
    ``leanrank.load_model``; ``from_coef`` makes a linear one by hand.

    Parameters
    ----------
    n_features : int
        Number of features of a document.
    curves : mapping
        The contribution of each single feature, by its zero-based index: a ``leanrank.model.Line``,
        ``leanrank.model.Ramps``, ``leanrank.model.Steps`` or, for a
        category, ``leanrank.model.Levels``.
    feature_names : tuple of str, optional
        One distinct name per feature. With names on both sides, data are aligned by name.
    normalizer : dict, optional
        ``to_dict()`` of a normaliser of ``leanrank.data``; it is applied to the features before the
        curves.
    provenance : dict, optional
        How the model was made; see ``leanrank.model.make_provenance``.
    surfaces : mapping, optional
        The joint contribution of two features, a ``leanrank.model.Surface`` by their ascending
        indices.
    fill : mapping, optional
        The number that replaces a missing feature, by its zero-based index, before the normaliser
        and the terms; see ``leanrank.model.fill_values``.
    summary : list of dict, optional
        The distribution of the features in the training data; see ``leanrank.model.summary``.

    Examples
    --------
    >>> model = Model.from_coef([0.5, 0.0, -2.0], feature_names=["bm25", "length", "spam"])
    >>> model
    Model: 2 of 3 features
      spam  -2
      bm25   0.5
    >>> model.predict([[1.0, 7.0, 0.0], [4.0, 7.0, 1.0]]).tolist()
    [0.5, 0.0]
    >>> model.rank([[1.0, 7.0, 0.0], [4.0, 7.0, 1.0]]).tolist()
    [1, 2]
    >>> model.to_dict()["curves"]
    [{'feature': 'bm25', 'weight': 0.5}, {'feature': 'spam', 'weight': -2.0}]

    A feature that helps up to a point, and may be missing:

    >>> from leanrank.model import Line, Ramps
    >>> bent = Model(2, {0: Ramps((0.0, 10.0), (1.0,), missing=0.25), 1: Line(-2.0)})
    >>> bent.predict([[5.0, 0.0], [99.0, 0.0], [float("nan"), 0.0]]).tolist()
    [0.5, 1.0, 0.25]

    A category, and a pair:

    >>> from leanrank.model import Levels, Surface
    >>> corner = Surface((0.0, 1.0), (0.0, 1.0), ((0.0, 0.0), (0.0, 4.0)))
    >>> names = ("lang", "bm25", "age")
    >>> terms = Model(3, {0: Levels(("de", "en"), (1.0, 2.0))}, names, surfaces={(1, 2): corner})
    >>> terms
    Model: 3 of 3 features, 4 knots
      bm25 × age   4
      lang         2
    >>> terms.predict(np.array([["en", 1.0, 0.5], ["fr", 1.0, 1.0]], dtype=object)).tolist()
    [4.0, 4.0]
    """

    n_features: int
    curves: Mapping[int, Curve]
    feature_names: tuple[str, ...] | None = None
    normalizer: Mapping[str, Any] | None = None
    provenance: Mapping[str, Any] = field(default_factory=dict)
    surfaces: Mapping[tuple[int, int], Surface] = field(default_factory=dict)
    fill: Mapping[int, float] = field(default_factory=dict)
    summary: list[dict[str, Any]] | None = None

    def __post_init__(self) -> None:
        names = self.feature_names
        set_field = partial(object.__setattr__, self)
        set_field("n_features", int(self.n_features))
        if names is not None:
            names = tuple(plain_json(list(names), "a feature name"))
            set_field("feature_names", names)
            if len(names) != self.n_features:
                raise ModelError(f"{len(names)} names were given for {self.n_features} features")
            if (twice := first_repeated(names)) is not None:
                raise ModelError(f"the feature name {twice!r} occurs twice: names must be distinct")
        ordered = {int(at): self.curves[at] for at in sorted(self.curves)}
        set_field("curves", MappingProxyType(ordered))
        pairs = {(int(a), int(b)): self.surfaces[a, b] for a, b in sorted(self.surfaces)}
        set_field("surfaces", MappingProxyType(pairs))
        check_terms(self.terms, self.n_features)
        set_field("fill", MappingProxyType(_used_fill(self)))
        made = plain_json(to_json_values(self.provenance), "the provenance")
        set_field("provenance", dict(sorted(made.items())))
        if self.normalizer is not None:
            set_field("normalizer", plain_json(dict(self.normalizer), "the normalizer"))
        set_field("summary", plain_json(to_json_values(self.summary), "the summary"))

    @classmethod
    def from_coef(cls, coef: Any, **more: Any) -> Model:
        """Return a linear model of one weight per feature; zeros are left out.

        ``more`` are the other parameters of a model.

        >>> Model.from_coef([0.0, 1.5]).weights
        {'f2': 1.5}
        """
        dense = np.asarray(coef, dtype=np.float64)
        if dense.ndim != 1:
            raise ModelError(f"coef has {dense.ndim} dimensions: give one weight per feature")
        lines = {at: Line(weight) for at, weight in enumerate(dense.tolist()) if weight != 0}
        return cls(len(dense), lines, **more)

    @property
    def terms(self) -> dict[tuple[int, ...], Term]:
        """The terms by their features: curves, then surfaces. A score is their sum."""
        found: dict[tuple[int, ...], Term] = {(at,): curve for at, curve in self.curves.items()}
        return found | {pair: surface for pair, surface in self.surfaces.items()}  # noqa: C416

    @cached_property
    def indices(self) -> IntArray:
        """The features that a score depends on, ascending, zero-based."""
        return _frozen(sorted({at for features in self.terms for at in features}), np.int64)

    @cached_property
    def values(self) -> FloatArray:
        """The weight of each of ``indices``: the height of a curve, 0 if there is none."""
        curves = (self.curves.get(at) for at in self.indices.tolist())
        return _frozen([0.0 if one is None else one.size for one in curves], np.float64)

    @property
    def is_linear(self) -> bool:
        """Whether every curve is a straight line."""
        return all(isinstance(term, Line) for term in self.terms.values())

    @property
    def coef(self) -> FloatArray:
        """One weight per feature of a linear model, zeros included."""
        if not self.is_linear:
            raise ModelError("the model has terms that are not lines, and so no coef: use terms")
        dense = np.zeros(self.n_features)
        dense[self.indices] = self.values
        return dense

    @property
    def weights(self) -> dict[str, float]:
        """The weights of lines and heights of other terms by name, largest magnitude first.

        The name of a pair has both features, such as ``bm25 × age``.
        """
        sizes = {name: t.size for name, t in zip(self.term_names, self.terms.values(), strict=True)}
        return dict(sorted(sizes.items(), key=lambda item: -abs(item[1])))

    @property
    def term_names(self) -> list[str]:
        """The names of the terms."""
        names = self.feature_names
        return [term_name(feature_name(at, names) for at in features) for features in self.terms]

    @property
    def n_nonzero(self) -> int:
        """Number of features that the score depends on."""
        return len(self.indices)

    @property
    def sparsity(self) -> float:
        """Share of the features that the score depends on."""
        return self.n_nonzero / self.n_features if self.n_features else 0.0

    @property
    def needs_qid(self) -> bool:
        """Whether a score depends on the other documents of its query."""
        return self.scaler is not None and bool(self.scaler.per_query)

    def predict(self, X: Any, qid: Any = None) -> FloatArray:
        """Score documents; within a query, higher is better.

        A document's score depends on its own features only (and, with a per-query normaliser, on
        its query): not on the rows beside it, the order of named columns or the number of threads.

        Parameters
        ----------
        X : array, SciPy sparse matrix, data frame, Arrow table or RankingData
            If both the model and X name the features, columns are selected by name, in any order,
            and only those with a weight are needed; otherwise they are selected by position.
        qid : array-like, optional
            One query identifier per document; a model that normalises per query needs it. A
            RankingData includes its queries.

        Returns
        -------
        array of float64
            One score per document, in the order of X's rows (for a RankingData: of ``data.X``).
        """
        matrix, columns, _ = self.prepared(X, qid)
        return self._finite_scores(matrix, columns)

    def explain(self, X: Any, qid: Any = None) -> Explanation:
        """Return the contribution of each feature to the scores of documents.

        Parameters
        ----------
        X, qid
            As for ``predict``; usually the documents of one query.

        Returns
        -------
        Explanation
            ``contributions``, one column per term, and ``why(a, b)``.
        """
        from leanrank.model.explain import Explanation

        matrix, columns, qid = self.prepared(X, qid)
        scores = self._finite_scores(matrix, columns)
        parts, names = self.term_sum.contributions(matrix, columns), tuple(self.term_names)
        groups = group_rows(qid, len(scores))
        rows = np.arange(len(scores)) if groups.order is None else groups.order
        ids = X.doc_ids if isinstance(X, RankingData) else None
        return Explanation(scores, parts, names, groups.query_ptr, rows, groups.query_ids, ids)

    def rank(self, X: Any, qid: Any = None) -> IntArray:
        """Rank documents within their query: 1 is the best, ties keep the order of the rows."""
        scores = self.predict(X, qid)
        return rank_within_queries(scores, X.qid if isinstance(X, RankingData) else qid)

    def plot(self, data: RankingData | None = None, **options: Any) -> Any:
        """Return a chart of the model as of ``leanrank.plot``: each curve, or weights of lines.

        Parameters
        ----------
        data : RankingData, optional
            The documents to draw it on; a linear model needs them.
        **options
            For the chart; see ``leanrank.plots``.
        """
        # by name: charts know models, not the other way round
        return import_module("leanrank.plots").plot(self, data, **options)

    def export(self, target: str, **options: Any) -> str | bytes | dict[str, str]:
        """Return the model as code of a target: ``leanrank.model.export.export_model``.

        >>> print(Model.from_coef([0.5, 0.0], feature_names=["bm25", "age"]).export("sql:duckdb"))
        CREATE OR REPLACE VIEW "leanrank" AS
        ...
        """
        from leanrank.model.export import export_model

        return export_model(self, target, **options)

    def verify(self, target: str, data: Any, **options: Any) -> Agreement:
        """Run the export and compare scores: ``leanrank.model.verify.verify_export``."""
        from leanrank.model.verify import verify_export

        return verify_export(self, target, data, **options)

    def to_dict(self) -> dict[str, Any]:
        """Return the JSON document that ``save`` writes."""
        names = self.feature_names
        named: Any = range(self.n_features) if names is None else names
        curves, pairs = self.curves.items(), self.surfaces.items()
        parts = {
            "format": "leanrank-model",
            "schema_version": 1,
            "n_features": self.n_features,
            "feature_names": None if names is None else list(names),
            "normalizer": deepcopy(self.normalizer),
            "fill": [{"feature": named[at], "value": x} for at, x in self.fill.items()] or None,
            "curves": [{"feature": named[at], **curve.to_dict()} for at, curve in curves],
            "surfaces": [{"features": [named[a], named[b]], **s.to_dict()} for (a, b), s in pairs]
            or None,
            "provenance": deepcopy(self.provenance),
            "summary": deepcopy(self.summary),
        }
        return {key: value for key, value in parts.items() if value is not None}

    @staticmethod
    def from_dict(document: Any, source: str = "the model") -> Model:
        """Return the model of a result of ``to_dict``; raise a ModelError for anything else.

        ``source`` is the name of the document in messages.
        """
        from leanrank.model.reading import read_document

        try:
            return read_document(document)
        except ModelError as error:
            raise ModelError(f"{source}: {error}") from error

    def replace(self, **changes: Any) -> Self:
        """Return a copy with other values of some fields."""
        return replace(self, **changes)

    def save(self, path: str | Path) -> None:
        """Write the model file, atomically; ``"-"`` is standard output."""
        from leanrank._files import atomic_write
        from leanrank.model.writing import layout

        with atomic_write(path) as stream:
            stream.write(layout(self.to_dict()))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, type(self)) and self.to_dict() == other.to_dict()

    def __hash__(self) -> int:
        return hash((self.n_features, self.indices.tobytes()))

    def __reduce__(self) -> tuple[Any, ...]:
        given = (getattr(self, one.name) for one in fields(self))
        return type(self), tuple(dict(x) if isinstance(x, MappingProxyType) else x for x in given)

    def __repr__(self) -> str:
        shown = [(printable(name), value) for name, value in list(self.weights.items())[:10]]
        width = max((len(name) for name, _ in shown), default=0)
        lines = [f"  {name:<{width}}  {value: .6g}" for name, value in shown]
        if len(self.terms) > len(shown):
            lines.append(f"  … and {len(self.terms) - len(shown):,} more")
        head = f"Model: {self.n_nonzero:,} of {self.n_features:,} features"
        if n_cuts := sum(len(term.cuts) for term in self.terms.values()):
            head += f", {counted(n_cuts, 'knot')}"
        if self.normalizer is not None:
            head += f", after {printable(self.normalizer.get('kind', 'a'))} normalisation"
        return "\n".join([head, *lines])

    def _repr_html_(self) -> str:
        from leanrank.model.explain import weights_html

        return weights_html(self)

    @cached_property
    def term_sum(self) -> TermSum:
        """The terms, by the positions of their features in ``indices``."""
        position = {at: k for k, at in enumerate(self.indices.tolist())}
        terms = self.terms.items()
        return TermSum([(tuple(position[at] for at in features), term) for features, term in terms])

    def prepared(self, X: Any, qid: Any = None) -> tuple[Matrix, IntArray | None, Any]:
        """Return the inputs of the terms as a matrix, the columns in use, and the queries."""
        return prepared(self, X, qid)

    def _finite_scores(self, matrix: Matrix, columns: IntArray | None) -> FloatArray:
        scores = self.term_sum.scores(matrix, columns)
        if not np.isfinite(scores).all():
            self._refuse(int(np.flatnonzero(~np.isfinite(scores))[0]), matrix, columns)
        return scores

    def _refuse(self, row: int, matrix: Matrix, columns: IntArray | None) -> NoReturn:
        """Raise an error that names the feature because of which a score is not finite."""
        values = dense(matrix[[row]], columns)[0]
        for at, value in zip(self.indices.tolist(), values.tolist(), strict=True):
            curve = self.curves.get(at)
            absent = np.isnan(value) and (curve is None or curve.missing is not None)
            if not (np.isfinite(value) or absent or isinstance(curve, Levels)):
                name = feature_name(at, self.feature_names)
                remedy = "train with a fill value" if np.isnan(value) else "correct it"
                raise InputError(f"feature {name!r} is {value} in row {row} (from 0): {remedy}")
        raise InputError(f"the score of row {row} is too large for a number")

    @cached_property
    def scaler(self) -> Any:
        """The normaliser as an object; None without one."""
        if self.normalizer is None:
            return None
        from leanrank.data.scaling.normalizers import normalizer_from_dict

        made = normalizer_from_dict(self.normalizer)
        width = getattr(made, "n_features_in_", self.n_features)
        if width != self.n_features:
            raise ModelError(
                f"the normalizer is for {width} features but n_features is {self.n_features}"
            )
        return made


def _used_fill(model: Model) -> dict[int, float]:
    """Return the fill values of features that a score depends on, in their order."""
    for at, value in model.fill.items():
        name = feature_name(at, model.feature_names)
        if not 0 <= at < model.n_features or not np.isfinite(value):
            raise ModelError(f"the fill value {value} of feature {name!r} cannot be used")
        if isinstance(model.curves.get(at), Levels):
            raise ModelError(f"{name!r} is a category, whose `missing` says what a gap adds")
    # a scaler per query needs every feature
    used = model.indices.tolist() if model.normalizer is None else range(model.n_features)
    return {at: float(model.fill[at]) for at in used if at in model.fill}


def _frozen(values: list[Any], kind: Any) -> AnyArray:
    array = np.array(values, dtype=kind)
    array.flags.writeable = False
    return array
