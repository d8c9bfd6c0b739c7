"""Running an export in its engine, and comparing scores that an engine logged."""

from __future__ import annotations

from dataclasses import asdict, dataclass, replace
from itertools import pairwise
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data import RankingData
from leanrank.data.grouping import group_rows
from leanrank.errors import InputError
from leanrank.model.alignment import used_features
from leanrank.model.export import targets
from leanrank.model.export.formula import Formula
from leanrank.model.export.scripts import mapped_scores, score_unit
from leanrank.model.export.targets import QUERY_SCALERS, TARGETS, Options, Target, find_target
from leanrank.model.export.text import unused
from leanrank.model.export.trees import fills, forest
from leanrank.model.model import Model
from leanrank.model.verify import runners
from leanrank.model.verify.runners import Engine, Job
from leanrank.model.writing import as_model

ENGINES: dict[str, Engine] = {
    "sql:sqlite": Engine(runners.sqlite),
    "sql:duckdb": Engine(runners.duckdb, ("duckdb", "pyarrow")),
    "sql:ansi": Engine(runners.duckdb, ("duckdb", "pyarrow")),
    "sql:postgres": Engine(runners.postgres, () if runners.postgres_programs() else ("pgserver",)),
    "sql:mysql": Engine(runners.mysql, (), ("mariadb-install-db",)),
    "polars": Engine(runners.polars, ("polars", "pyarrow")),
    "lightgbm": Engine(runners.lightgbm, ("lightgbm",)),
    "xgboost": Engine(runners.xgboost, ("xgboost",)),
    "hybrid:qdrant": Engine(runners.qdrant, ("qdrant_client",)),
    "onnx": Engine(runners.onnx, ("onnx", "onnxruntime")),
    "python": Engine(runners.python),
}
"""The engine of each target."""

EMULATED = ("opensearch-ltr", "elasticsearch-ltr", "solr")


@dataclass(frozen=True)
class Agreement:
    """The agreement of an engine's scores with the expected ones.

    Attributes
    ----------
    engine : str
        The engine that computed the scores.
    documents, queries : int
        Numbers of those that were compared.
    bit_equal : int
        Documents whose score has exactly the bits that are expected of the engine.
    difference : float
        The largest difference to the score expected of the engine.
    model_difference : float
        The largest difference to the model's own score, apart from a dropped constant.
    orders_changed : int
        Queries in which two documents of different model scores are not in the model's order.
    beyond : int
        Queries in which these scores differ by more than ``tolerance``.
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
    """Compare the scores of an engine with those it should compute and with the model's.

    Parameters
    ----------
    found, expected, model : array
        One score per document; ``model`` includes any constant of ``found``.
    query_ptr : array
        The first document of each query, and the number of documents.
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
    gaps = disorder(model, found, query_ptr)
    counted = (found == expected, gaps > 0, gaps > tolerance)
    equal, changed, beyond = (int(np.count_nonzero(one)) for one in counted)
    far, off = (float(np.abs(found - one).max(initial=0.0)) for one in (expected, model))
    sizes = len(found), len(query_ptr) - 1
    return Agreement(engine, *sizes, equal, far, off, changed, beyond, tolerance)


def disorder(model: FloatArray, found: FloatArray, query_ptr: IntArray) -> FloatArray:
    """Return per query the largest difference of model scores in a pair that lost its order.

    A pair loses its order if the document with the higher model score has no higher score in the
    engine. Queries without such a pair have 0.

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
        # In the engine's order, ties by ascending model score, a pair lost its order exactly if the
        # document with the higher model score comes later.
        order = np.lexsort((s, -f))
        later_best = np.maximum.accumulate(s[order][::-1])[::-1]
        worst[q] = np.max(later_best - s[order], initial=0.0)
    return worst


def verify_export(
    model: Any, target: str, data: Any, *, tolerance: float = 1e-6, **options: Any
) -> Agreement:
    """Export a model, run the export on documents, and compare the scores with the model's.

    Parameters
    ----------
    model : Model or fitted ranker
        What to export.
    target : str
        A target with an installed engine, or one of the learning-to-rank modules, for which a
        float32 emulator runs.
    data : RankingData, data frame or Arrow table
        Documents to score; a frame has their queries in the column ``qid`` of the options. Where
        features are missing, every other gap is NULL for a database and Polars, and the rest NaN.
    tolerance : float
        Differences between two documents of a query up to which their order does not matter.
    **options
        As ``leanrank.model.export.export_model`` takes them.

    Examples
    --------
    >>> from leanrank.data import load_sample
    >>> from leanrank.model import Model
    >>> train, _, _ = load_sample()
    >>> model = Model.from_coef(np.linspace(-1, 1, train.n_features))
    >>> found = verify_export(model, "sql:sqlite", train)
    >>> found.bit_equal == found.documents, found.orders_changed
    (True, 0)
    """
    to = find_target(target)
    formula, given, X, query, expected, own, error = _case(model, to, data, options)
    content = targets.written(formula, to, given)
    if to.module == "ltr":
        engine, found = "float32 emulator", emulated_scores(formula, X, given, to)
    else:
        runner = ENGINES.get(to.name)
        if runner is None:
            raise InputError(
                f"{to.name} cannot be run here: log the scores of your engine and compare them "
                "with --logged (verify_logged)"
            )
        if (lack := runner.lacks()) is not None:
            raise InputError(f"running {to.name} needs {lack}")
        engine, found = runner.run(job_of(formula, content, X, query, given))
    if found.shape != (len(X),):
        raise InputError(f"{engine} gave {found.size} scores for {len(X)} documents")
    ptr, tolerance = _query_ptr(query), tolerance + 2 * error
    return compare_scores(found, expected, own, ptr, tolerance=tolerance, engine=engine)


def verify_logged(
    model: Any,
    scores: FloatArray,
    data: RankingData,
    *,
    target: str | None = None,
    tolerance: float = 1e-6,
    **options: Any,
) -> Agreement:
    """Compare scores that a user's own engine logged with the model's.

    Parameters
    ----------
    model, data, tolerance, **options
        As for ``verify_export``.
    scores : array
        One score per document of ``data``, in its order; NaN if it was not logged.
    target : str, optional
        The export that the engine runs. For the learning-to-rank modules, the expected scores are
        then float32 sums, without the constant that these modules leave out.
    """
    plain = replace(TARGETS["python"], scalers=QUERY_SCALERS)
    to = plain if target is None else find_target(target)
    formula, given, X, query, expected, own, error = _case(model, to, data, options)
    if to.module == "ltr":
        expected = emulated_scores(formula, X, given, to)
    elif to.name == "elasticsearch-rescore":
        unit = score_unit(formula)
        expected, own = (mapped_scores(each, unit) for each in (expected, own))
    if to.single:
        expected, scores = (
            each.astype(np.float32).astype(np.float64) for each in (expected, scores)
        )
    logged = ~np.isnan(scores)
    if not logged.any():
        raise InputError("none of the logged scores belongs to a document of the data")
    if target is None and formula.constant:  # engines may leave the constant out
        known = scores[logged] - own[logged]
        if abs(np.median(known) + formula.constant) < abs(np.median(known)):
            expected, own = expected - formula.constant, own - formula.constant
    found = scores[logged], expected[logged], own[logged], _query_ptr(query[logged])
    return compare_scores(*found, tolerance=tolerance + 2 * error, engine="logged scores")


def _case(
    model: Any, target: Target, data: Any, options: dict[str, Any]
) -> tuple[Formula, Options, FloatArray, IntArray, FloatArray, FloatArray, float]:
    """Return everything to compare for a target.

    That is formula and options, features and queries, the scores of the export and of the model,
    and the error of the export. Bounds of lines are those of the documents, as with ``data``.
    """
    ranker = as_model(model)
    given = targets.learned_from(ranker, data, Options(**options))
    formula = targets.prepared(ranker, target, given)
    X, query, own = _documents(ranker, data, given)
    expected, added, error = _expected(formula, target, X, query, given)
    return formula, given, X, query, expected, own + added, error


def _query_ptr(query: IntArray) -> IntArray:
    """Return where each query begins, of documents query by query."""
    return np.concatenate(([0], np.cumsum(np.unique(query, return_counts=True)[1])))


def job_of(
    formula: Formula, content: str | bytes, X: FloatArray, query: IntArray, options: Options
) -> Job:
    """Return an export with documents, in which all unknown texts are one other text."""
    X, words = X.copy(), {}
    for name, term in formula.texts.items():
        at, levels = formula.names.index(name), tuple(map(str, term.levels))
        words[at] = (*levels, unused("other", levels))
        known = np.isin(X[:, at], np.arange(len(levels)))
        X[:, at] = np.where(known | np.isnan(X[:, at]), X[:, at], len(levels))
    kinds = {at: options.types.get(name, "number") for at, name in enumerate(formula.names)}
    kinds = {at: kind for at, kind in kinds.items() if kind != "number" and at not in words}
    return Job(content, formula.names, X, query, options, words=words, kinds=kinds)


def _documents(
    model: Model, data: Any, options: Options
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Return features, queries counted from 0 and the model's scores, query by query.

    Documents that the model cannot score raise an error here, before an engine is started.
    """
    dense = used_features(model, data)
    if isinstance(data, RankingData):
        grouping, qid = group_rows(data.qid, len(data)), None
    else:
        named = options.qid in getattr(data, "column_names", data.columns)
        qid = np.asarray(data[options.qid]) if named else np.zeros(len(dense))
        grouping = group_rows(qid, len(dense))
    query = np.repeat(np.arange(len(grouping.query_ptr) - 1), np.diff(grouping.query_ptr))
    scores = model.predict(data, qid)
    return grouping.take(dense), query, grouping.take(scores)


def _expected(
    formula: Formula, target: Target, X: FloatArray, query: IntArray, options: Options
) -> tuple[FloatArray, float, float]:
    """Return the scores of an export, their constant difference to the model's, and their error.

    The error is that of trees; all other exports are exact in float64.
    """
    added = options.offset - (0.0 if target.constant else formula.constant)
    if target.module == "ltr" and formula.is_weighted:
        added += sum(term.weight * options.shifts.get(term.name, 0.0) for term in formula.terms)
        X = engine_values(formula, X, options, np.float64)
        return replace(formula, constant=options.offset).scores(X), added, 0.0
    if target.module in ("ltr", "ensembles"):
        made = forest(formula, options, target)
        if target.module == "ltr":
            X = engine_values(formula, X, options)
        kind = np.float32 if target.name == "xgboost" else np.float64
        return made.scores(X.astype(np.float32) if target.single else X, kind), added, made.error
    return replace(formula, constant=formula.constant + added).scores(X, query), added, 0.0


def engine_values(
    formula: Formula, X: AnyArray, options: Options, kind: Any = np.float32
) -> AnyArray:
    """Return the feature values in a learning-to-rank module, in float32."""
    known = fills(formula, options)
    fill = [known.get(name, 0.0) for name in formula.names]
    shifts = [options.shifts.get(name, 0.0) for name in formula.names]
    return np.where(np.isnan(X), fill, X).astype(kind) + np.array(shifts, dtype=kind)


def emulated_scores(
    formula: Formula, X: AnyArray, options: Options | None = None, target: Target | None = None
) -> FloatArray:
    """Return the scores of a formula as the learning-to-rank modules compute them.

    Weights and features are rounded to float32, and so is every product and every sum in the order
    of features; trees compare and add in float32. The constant of the formula is left out. Recorded
    answers of the engines are equal bit for bit.

    Parameters
    ----------
    formula : Formula
        A formula that the target can express.
    X : array
        Documents × the features of the terms; NaN is a missing feature.
    options : Options, optional
        What the export was written with.
    target : Target, optional
        ``opensearch-ltr`` by default.

    Examples
    --------
    >>> from leanrank.model.export import formula_of
    >>> formula = formula_of(Model.from_coef([0.1, 1.0]))
    >>> emulated_scores(formula, np.array([[1.0, 2.0]])).tolist()
    [2.0999999046325684]
    """
    given, to = options or Options(), target or TARGETS["opensearch-ltr"]
    columns = engine_values(formula, X, given)
    if not formula.is_weighted:
        return forest(formula, given, to).scores(columns, np.float32)
    total: AnyArray = np.zeros(len(columns), dtype=np.float32)
    for term, x in zip(formula.terms, columns.T, strict=True):
        total = total + np.float32(term.weight) * x
    if given.offset and given.featureset is None and to.dialect != "solr":
        total = total + np.float32(given.offset)
    return total.astype(np.float64)
