"""The targets of an export, what each can express, and the one function that writes them."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from importlib import import_module
from typing import Any

import numpy as np

from leanrank.data.ranking_data import feature_name
from leanrank.errors import InputError, ModelError, first_repeated, suggest
from leanrank.model.alignment import used_features
from leanrank.model.export.formula import Formula, formula_of
from leanrank.model.export.text import IDENTIFIER, check_plain
from leanrank.model.model import Model
from leanrank.model.writing import as_model

QUERY_SCALERS = ("query-minmax", "query-standard", "query-rank")


@dataclass(frozen=True)
class Options:
    """What a user may say about an export.

    Parameters
    ----------
    name : str
        The name of the model, view, profile or function in the target.
    names : mapping
        What features are called in the target, by their names in the model. A model without names
        calls them ``f1``, ``f2`` and so on.
    shifts : mapping
        Constants that the engine adds to features, by their names in the target: the
        learning-to-rank plugins refuse negative feature values.
    normalizers : bool
        Write the engine's normalisers instead of folding a global scaler into the weights.
    table, qid : str
        The table of documents, such as ``shop.documents``, and its column of queries, for SQL and
        Polars.
    top : int
        How many documents a request or a top-k query asks for.
    featureset : str or None
        A feature set (in Solr, a feature store) that exists and has the features by their names.
        Without it, a learning-to-rank module gets one of stored fields.
    max_error : float or None
        Where ramps and surfaces have to be steps, the largest difference to a score.
    types : mapping
        What columns of a table hold, by their names in the target: ``"boolean"`` or anything else.
        PostgreSQL needs it, and reads it from ``data`` where that is a table.
    expression_only : bool
        Write the SQL expression of one row only, as for a generated column or an index.
    bounds, offset, documents
        What ``export_model`` reads from ``data``: the ranges of features by name, a constant that
        is added to scores, and a few documents of a few queries.
    """

    name: str = "leanrank"
    names: Mapping[str, str] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)
    normalizers: bool = False
    table: str = "documents"
    qid: str = "qid"
    top: int = 10
    featureset: str | None = None
    max_error: float | None = None
    bounds: Mapping[str, tuple[float, float]] = field(default_factory=dict)
    offset: float = 0.0
    types: Mapping[str, str] = field(default_factory=dict)
    expression_only: bool = False
    documents: Sequence[Any] = ()


@dataclass(frozen=True)
class Target:
    """Where a model can be exported to.

    Attributes
    ----------
    name : str
        As given to ``--to``.
    summary : str
        What is written, in a few words.
    module : str
        The module here whose ``write(formula, options, target)`` writes it.
    curves : bool
        Whether it has conditions, and so can express curves, surfaces and values for missing
        features; ensembles of trees do so as steps.
    levels, texts : bool
        Whether it can look up the levels of categories, and those that are texts.
    missing : bool
        Whether it knows that a feature is missing; otherwise a number stands for it.
    scalers : tuple of str
        The per-query scalers that it can compute.
    constant : bool
        Whether the constant of the formula is written; it changes no order.
    normalizers : bool
        Whether it has normalisers of its own.
    single : bool
        Whether it computes in float32.
    negative : bool
        Whether it takes negative weights.
    most_terms, most_numbers : int
        The largest number of features, and of weights, thresholds and levels, that it takes.
    """

    name: str
    summary: str
    module: str
    curves: bool = True
    levels: bool = True
    texts: bool = True
    missing: bool = True
    scalers: tuple[str, ...] = ()
    constant: bool = True
    normalizers: bool = False
    single: bool = False
    negative: bool = True
    most_terms: int = 100_000
    most_numbers: int = 1_000_000

    @property
    def dialect(self) -> str:
        """The part of the name after a colon, or the name."""
        return self.name.rpartition(":")[2]


_SINGLE = {"constant": False, "single": True}
_LTR = {**_SINGLE, "texts": False, "missing": False, "normalizers": True}
_EXPRESSION = {"most_terms": 900}
_NUMBERS = {"levels": False, "texts": False}
_SQL = {"scalers": QUERY_SCALERS, **_EXPRESSION}
_HYBRID: dict[str, Any] = {**_SINGLE, **_NUMBERS, "curves": False, "negative": False}
_RANKS = "query-reciprocal-rank"

_TARGETS: list[tuple[str, str, str, Mapping[str, Any]]] = [
    ("opensearch-ltr", "feature set, model and rescore query", "ltr", _LTR),
    ("elasticsearch-ltr", "feature set, model and rescore query (o19s plugin)", "ltr", _LTR),
    ("solr", "feature store, model store and request", "ltr", _LTR),
    (
        "elasticsearch-inference",
        "trained model and rescore query, as eland writes them",
        "ensembles",
        {"single": True, "texts": False},
    ),
    ("lightgbm", "LightGBM model text", "ensembles", {}),
    ("xgboost", "XGBoost model JSON", "ensembles", {"single": True}),
    ("vespa", "rank profile", "scripts", _NUMBERS | _EXPRESSION),
    ("painless", "script of Elasticsearch and OpenSearch", "scripts", _EXPRESSION),
    (
        "elasticsearch-rescore",
        "rescore query with a script, without a plugin",
        "scripts",
        {"single": True, **_EXPRESSION},
    ),
    ("lucene-expression", "expression over document fields", "scripts", _NUMBERS | _EXPRESSION),
    ("onnx", "graph with one input per feature", "graphs", {}),
    ("pmml", "PMML 4.4 regression model", "graphs", _NUMBERS),
    *(
        (f"sql:{dialect}", f"view and top-k query {where}", "sql", _SQL | more)
        for dialect, where, more in (
            ("sqlite", "for SQLite", {"scalers": ("query-minmax", "query-rank")}),
            ("duckdb", "for DuckDB", {}),
            ("postgres", "for PostgreSQL", {}),
            ("mysql", "for MySQL and MariaDB", {}),
            ("spark", "for Spark SQL", {}),
            ("clickhouse", "for ClickHouse", {}),
            ("ansi", "in standard SQL", {}),
        )
    ),
    ("polars", "Python function that returns a Polars expression", "sql", _SQL),
    ("c", "C function with a test vector", "code", {}),
    ("java", "Java class with a test vector", "code", {"most_terms": 2000, "most_numbers": 4000}),
    ("javascript", "JavaScript function with a test vector", "code", {}),
    ("python", "Python function with a test vector", "code", {}),
    ("rust", "Rust function with a test vector", "code", {}),
    ("go", "Go function with a test vector", "code", {}),
    (
        "hybrid:opensearch",
        "search pipeline with the weights of a hybrid query",
        "hybrid",
        _HYBRID | {"scalers": ("query-minmax", _RANKS)},
    ),
    (
        "hybrid:elasticsearch",
        "linear or rrf retriever with weights",
        "hybrid",
        _HYBRID | {"scalers": ("query-minmax", _RANKS)},
    ),
    (
        "hybrid:qdrant",
        "formula or rrf query over prefetches",
        "hybrid",
        _HYBRID | {"negative": True, "scalers": (_RANKS, "query-qdrant-rank")},
    ),
    *(
        (f"deploy:{engine}", "folder of requests with a script that proves them", "deploy", _LTR)
        for engine in ("opensearch", "elasticsearch", "solr")
    ),
    ("deploy:vespa", "application package", "scripts", _NUMBERS | _EXPRESSION),
    ("markdown", "model card", "markdown", {"scalers": (*QUERY_SCALERS, _RANKS)}),
]

TARGETS: dict[str, Target] = {
    name: Target(name, summary, module, **more) for name, summary, module, more in _TARGETS
}
"""Every target by its name."""


def export_model(
    model: Any,
    target: str,
    *,
    data: Any = None,
    **options: Any,
) -> str | bytes | dict[str, str]:
    """Write a model for the system that computes rankings with it.

    Parameters
    ----------
    model : Model or fitted ranker
        What to export.
    target : str
        One of ``TARGETS``, such as ``"sql:duckdb"``.
    data : RankingData, data frame or Arrow table, optional
        Typical documents. Trees keep straight lines between their values, the learning-to-rank
        plugins add a constant such that their scores are positive, and SQL reads types of columns.
    **options
        The fields of ``leanrank.model.export.Options``.

    Returns
    -------
    str, bytes or dict
        The text of the export; bytes for ``onnx``, and the files of a folder by name for
        ``deploy:…``.

    Raises
    ------
    InputError
        The target cannot express the model; the message names all that can.

    Examples
    --------
    >>> from leanrank.model import Model
    >>> model = Model.from_coef([0.5, -2.0], feature_names=["bm25", "spam"])
    >>> print(export_model(model, "lucene-expression"), end="")
    0.5 * doc['bm25'].value + -2.0 * doc['spam'].value
    """
    made, to, given = as_model(model), find_target(target), Options(**options)
    if data is not None:
        given = learned_from(made, data, given)
    return written(prepared(made, to, given), to, given)


def learned_from(model: Model, data: Any, options: Options) -> Options:
    """Return the options with what typical documents tell."""
    from leanrank.model.export.deploy import examples
    from leanrank.model.export.sql import column_types

    lowest = 0.0 if model.needs_qid else float(np.min(model.predict(data), initial=0.0))
    known = {options.names.get(name, name): kind for name, kind in column_types(data).items()}
    return replace(
        options,
        bounds=ranges(model, data, options.names),
        offset=-1.01 * lowest,
        types=known | dict(options.types),
        documents=examples(model, data, options.names),
    )


def ranges(model: Model, data: Any, names: Mapping[str, str]) -> dict[str, tuple[float, float]]:
    """Return the least and the greatest value of each feature, by its name in the target."""
    found = {}
    for feature, x in zip(model.indices.tolist(), used_features(model, data).T, strict=True):
        known = x[np.isfinite(x)]
        name = feature_name(feature, model.feature_names)
        if len(known):
            found[names.get(name, name)] = (float(known.min()), float(known.max()))
    return found


def find_target(name: str) -> Target:
    """Return the target of a name, or say which there are."""
    if name in TARGETS:
        return TARGETS[name]
    raise InputError(f"there is no export target {name!r}: {suggest(name, TARGETS)}")


def prepared(model: Any, target: Target, options: Options) -> Formula:
    """Describe a model in the target's terms, or refuse with a sentence."""
    formula = formula_of(model, fold=not options.normalizers)
    unknown = [key for key in options.names if key not in set(_all_names(model, formula))]
    if unknown:
        raise InputError(
            f"the model has no feature {unknown[0]!r} to give another name: its features are "
            f"{_few(_all_names(model, formula))}"
        )
    formula = formula.renamed(options.names)
    twice = first_repeated(formula.names)
    if twice is not None:
        raise InputError(f"two features are called {twice!r} in the target: give each its own")
    check_plain(formula.names, target.name)
    words = [one for term in formula.categories.values() if term.is_text for one in term.levels]
    check_plain(filter(None, map(str, words)), target.name, "level")
    if not IDENTIFIER.fullmatch(options.name):
        raise InputError(
            f"the name {options.name!r} cannot be used: take letters, digits and underscores only"
        )
    return checked(formula, target, normalizers=options.normalizers)


def checked(formula: Formula, target: Target, *, normalizers: bool = False) -> Formula:
    """Return a formula that the target can express, or refuse with a sentence."""
    if not formula.terms:
        raise ModelError("the model uses no feature, so that there is nothing to export")
    what = obstacle(formula, target)
    if what is not None:
        able = _families(able_targets(formula))
        hint = "train with weights of at least 0, or " if "negative" in what else ""
        instead = f"{hint}export to {_few(able, len(able), 'or')} instead" if able else "none can"
        raise InputError(f"{target.name} cannot {what}: {instead}")
    if normalizers and not target.normalizers:
        those = _few([t.name for t in TARGETS.values() if t.normalizers])
        raise InputError(
            f"{target.name} has no normalisers of its own: leave --normalizers out, and the scaler "
            f"is folded into the weights ({those} have them)"
        )
    if not formula.is_weighted and any(term.scale is not None for term in formula.terms):
        raise InputError(
            "an engine's normalisers are for straight lines: leave --normalizers out, and the "
            "scaler is folded into the curves"
        )
    if target.single:
        _check_single(formula, target)
    return formula


def obstacle(formula: Formula, target: Target) -> str | None:
    """Return what a target would have to do for a formula and cannot, or None."""
    texts = any(one.is_text for one in formula.categories.values())
    asked = {
        f"scale features per query ({formula.scaler})": formula.scaler is not None
        and formula.scaler not in target.scalers,
        "look up the levels of categories": bool(formula.categories) and not target.levels,
        "look up texts": texts and not target.texts,
        "express curves or missing values": not formula.is_linear and not target.curves,
        "take negative weights": formula.least_weight < 0 and not target.negative,
        f"take more than {target.most_terms:,} features": len(formula.terms) > target.most_terms,
        f"take more than {target.most_numbers:,} weights and thresholds": formula.n_numbers
        > target.most_numbers,
    }
    return next((what for what, cannot in asked.items() if cannot), None)


def written(formula: Formula, target: Target, options: Options) -> Any:
    """Write a formula that the target can express."""
    module = import_module(f"leanrank.model.export.{target.module}")
    write: Callable[[Formula, Options, Target], Any] = module.write
    return write(formula, options, target)


def able_targets(formula: Formula) -> list[str]:
    """Return the targets that compute the scores of a formula, without documents for bounds."""
    bounded = formula.has_lines and not formula.is_weighted
    return [
        target.name
        for target in TARGETS.values()
        if obstacle(formula, target) is None
        and not (target.module == "ensembles" and formula.has_lines)
        and not (bounded and not target.missing)
        and not target.name.startswith(("markdown", "deploy:"))
    ]


def _families(names: list[str]) -> list[str]:
    """Return names with each family once, and ``*`` for all of its members.

    >>> _families(["sql:duckdb", "c", "sql:ansi"])
    ['sql:duckdb|ansi', 'c']
    """
    found: dict[str, list[str]] = {}
    for name in names:
        family, _, member = name.rpartition(":")
        found.setdefault(family or name, []).extend([member] if family else [])
    known = [name.partition(":")[0] for name in TARGETS]
    return [
        f"{one}:{'*' if len(of) == known.count(one) else '|'.join(of)}" if of else one
        for one, of in found.items()
    ]


def _check_single(formula: Formula, target: Target) -> None:
    for term in formula.terms:
        with np.errstate(over="ignore", under="ignore"):
            single = np.float32(term.curve.size)
        if not np.isfinite(single) or (single == 0 and formula.is_linear):
            raise InputError(
                f"the weight {term.curve.size!r} of {term.name!r} is out of the range of float32, "
                f"in which {target.name} computes: multiply all weights of the model by a "
                "constant, which changes no order"
            )


def _all_names(model: Any, formula: Formula) -> list[str]:
    return formula.names if model.feature_names is None else list(model.feature_names)


def _few(names: list[str], most: int = 5, joint: str = "and") -> str:
    shown = names[:most]
    if len(names) > most and joint == "and":
        return ", ".join(shown) + ", …"
    return shown[0] if len(shown) == 1 else f"{', '.join(shown[:-1])} {joint} {shown[-1]}"
