"""Running an export in its engine, and comparing scores that an engine logged."""

from __future__ import annotations

import importlib.util
import shutil
from collections.abc import Callable
from dataclasses import dataclass, replace
from importlib import import_module
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data import RankingData
from leanrank.errors import InputError
from leanrank.model.alignment import Table
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import (
    QUERY_SCALERS,
    TARGETS,
    Options,
    Target,
    find_target,
    prepared,
    written,
)
from leanrank.model.model import Model
from leanrank.model.verify.agreement import Agreement, compare_scores
from leanrank.model.verify.emulator import float32_scores
from leanrank.model.writing import as_model


@dataclass(frozen=True)
class Job:
    """An export and the documents to run it on.

    Attributes
    ----------
    content : str or bytes
        The export.
    names : list of str
        The names of the features in it.
    X : array
        Documents × those features; NaN is missing.
    query : array of int
        The query of each document.
    options : Options
        What the export was written with.
    n_null : int
        In so many documents, from the first, a missing feature is NULL; in the others it is NaN.
    """

    content: str | bytes
    names: list[str]
    X: FloatArray
    query: IntArray
    options: Options
    n_null: int = 0

    @property
    def is_null(self) -> BoolArray:
        """Documents × features: what an engine is given as NULL."""
        rows = np.arange(len(self.X)) < self.n_null
        null: BoolArray = np.isnan(self.X) & rows[:, None]
        return null


@dataclass(frozen=True)
class Engine:
    """What runs an export: the function of a module here, the packages and programs it needs.

    With ``nulls`` the engine knows NULL beside NaN.
    """

    module: str
    function: str
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()
    heavy: bool = False
    nulls: bool = False

    def lacks(self) -> str | None:
        """Return what is missing, if anything."""
        absent = [name for name in self.packages if importlib.util.find_spec(name) is None]
        if absent:
            return f"{' and '.join(absent)}: pip install {' '.join(absent)}"
        for program in self.programs:
            if shutil.which(program) is None:
                return f"the program {program}: install it and put it on the path"
        return None

    def run(self, job: Job) -> tuple[str, FloatArray]:
        """Run the export; return the engine with its version, and the scores."""
        module = import_module(f"leanrank.model.verify.{self.module}")
        function: Callable[[Job], tuple[str, FloatArray]] = getattr(module, self.function)
        try:
            version, scores = function(job)
        except Exception as error:  # whatever an engine raises about what it was given
            raise InputError(f"the engine refused the export or the documents: {error}") from error
        return version, np.asarray(scores, dtype=np.float64)

    def run_both(self, job: Job) -> tuple[str, list[FloatArray]]:
        """Run the export with NULL and with NaN for what is missing, where the engine knows both.

        The documents are there twice then, in queries of their own, so that the engine starts once.
        """
        if not (self.nulls and np.isnan(job.X).any()):
            version, scores = self.run(job)
            return version, [scores]
        n = len(job.X)
        query = np.concatenate([job.query, job.query + job.query.max() + 1])
        both = replace(job, X=np.concatenate([job.X, job.X]), query=query, n_null=n)
        version, scores = self.run(both)
        return version, [scores[:n], scores[n:]]


ENGINES: dict[str, Engine] = {
    "sql:sqlite": Engine("databases", "sqlite"),
    "sql:duckdb": Engine("databases", "duckdb", ("duckdb", "pyarrow"), nulls=True),
    "sql:ansi": Engine("databases", "duckdb", ("duckdb", "pyarrow"), nulls=True),
    "sql:postgres": Engine("databases", "postgres", ("pgserver",), nulls=True),
    "sql:clickhouse": Engine(
        "databases", "clickhouse", ("chdb", "pyarrow"), heavy=True, nulls=True
    ),
    "sql:spark": Engine(
        "databases", "spark", ("pyspark", "pyarrow"), ("java",), heavy=True, nulls=True
    ),
    "polars": Engine("databases", "polars", ("polars",), nulls=True),
    "onnx": Engine("graphs", "onnx", ("onnx", "onnxruntime")),
    "pmml": Engine("graphs", "pmml", ("jpmml_evaluator", "pandas"), ("java",), heavy=True),
    "c": Engine("programs", "c", (), ("cc",)),
    "java": Engine("programs", "java", (), ("javac", "java"), heavy=True),
    "javascript": Engine("programs", "javascript", (), ("node",)),
    "python": Engine("programs", "python"),
    "rust": Engine("programs", "rust", (), ("rustc",), heavy=True),
    "go": Engine("programs", "go", (), ("go",), heavy=True),
}
"""What runs each target; those that are large or slow to start are ``heavy``."""

EMULATED = ("opensearch-ltr", "elasticsearch-ltr", "solr")


def verify_export(
    model: Any, target: str, data: RankingData, *, tolerance: float = 1e-6, **options: Any
) -> Agreement:
    """Export a model, run the export on documents, and compare the scores with the model's.

    Parameters
    ----------
    model : Model or fitted ranker
        What to export.
    target : str
        A target with an installed engine, or one of the learning-to-rank modules, which a float32
        emulator replaces.
    data : RankingData
        Documents to score. Where features are missing (NaN), a database and Polars are given
        each document twice, with NULL and with NaN, and the score that is further off counts.
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
    to, given = find_target(target), Options(**options)
    ranker = as_model(model)
    formula = prepared(ranker, to, given)
    X = used_features(ranker, data)
    query = query_codes(data)
    own = ranker.predict(data)  # before an engine is started: a document may have no score
    content = written(formula, to, given)
    if to.name in EMULATED:
        engine, found = "float32 emulator", [float32_scores(formula, X, given.shifts)]
    else:
        runner = ENGINES.get(to.name)
        if runner is None:
            raise InputError(
                f"{to.name} cannot be run here: log the scores of your engine and compare them "
                "with --logged"
            )
        lack = runner.lacks()
        if lack is not None:
            raise InputError(f"running {to.name} needs {lack}")
        engine, found = runner.run_both(Job(content, formula.names, X, query, given))
    for scores in found:
        if scores.shape != (len(data),):
            raise InputError(f"{engine} gave {scores.size} scores for {len(data)} documents")
    expected, added = _expected(formula, to, X, query, given)
    return compare_scores(
        _furthest(found, expected),
        expected,
        own + added,
        data.query_ptr,
        tolerance=tolerance,
        engine=engine,
    )


def verify_logged(
    model: Any,
    scores: FloatArray,
    data: RankingData,
    *,
    target: str | None = None,
    tolerance: float = 1e-6,
    **options: Any,
) -> Agreement:
    """Compare scores that your own engine logged with the model's.

    Parameters
    ----------
    model, data, tolerance, **options
        As for ``verify_export``.
    scores : array
        One score per document of ``data``, in its order; NaN is a document that was not logged.
    target : str, optional
        The export that the engine runs. For the learning-to-rank modules the bits are then
        compared with their float32 sums, and a constant that they leave out is allowed for.
    """
    ranker, given = as_model(model), Options(**options)
    to = TARGETS["python"] if target is None else find_target(target)
    if target is None:
        to = replace(to, scalers=QUERY_SCALERS)
    formula = prepared(ranker, to, given)
    X, query = used_features(ranker, data), query_codes(data)
    expected, added = _expected(formula, to, X, query, given)
    if to.name in EMULATED:
        expected = float32_scores(formula, X, given.shifts)
        scores = np.asarray(scores, dtype=np.float64).astype(np.float32).astype(np.float64)
    logged = ~np.isnan(scores)
    if not logged.any():
        raise InputError("none of the logged scores belongs to a document of the data")
    sizes = np.bincount(query[logged], minlength=data.n_queries)
    return compare_scores(
        scores[logged],
        expected[logged],
        (ranker.predict(data) + added)[logged],
        np.concatenate(([0], np.cumsum(sizes[sizes > 0]))),
        tolerance=tolerance,
        engine="logged scores",
    )


def _furthest(found: list[FloatArray], expected: FloatArray) -> FloatArray:
    """Return for each document the score that is furthest from the expected one, NaN if any is."""
    gaps = np.abs(np.array(found) - expected)
    at = np.argmax(np.where(np.isnan(gaps), np.inf, gaps), axis=0)
    furthest: FloatArray = np.array(found)[at, np.arange(len(expected))]
    return furthest


def used_features(model: Model, data: RankingData) -> FloatArray:
    """Return the columns that a model uses, by name or place, in float64."""
    matrix, columns = Table.of(data).take(model, model.indices)
    taken = matrix if columns is None else matrix[:, columns]
    dense = taken if isinstance(taken, np.ndarray) else taken.toarray()
    return dense.astype(np.float64)


def query_codes(data: RankingData) -> IntArray:
    """Return the number of each document's query, from 0."""
    return np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))


def _expected(
    formula: Formula, target: Target, X: FloatArray, query: IntArray, options: Options
) -> tuple[FloatArray, float]:
    """Return the float64 scores of an export, and what must be added to the model's for them."""
    kept = formula if target.constant else replace(formula, constant=0.0)
    added = kept.constant - formula.constant
    if target.name in EMULATED:
        for term in formula.terms:
            added += term.weight * options.shifts.get(term.name, 0.0)
    constant = kept.constant if target.constant else added + formula.constant
    return replace(kept, constant=constant).scores(X, query), added
