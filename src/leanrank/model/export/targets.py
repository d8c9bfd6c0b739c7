"""The targets of exports and their capabilities, and the function that writes all of them."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
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
    """Options of an export.

    Parameters
    ----------
    name : str
        The name of the model, view, profile or function in the target.
    names : mapping
        Names of features in the target, by their names in the model. In a model without names they
        are ``f1``, ``f2`` and so on.
    shifts : mapping
        Constants that the engine adds to features, by their names in the target: the
        learning-to-rank plugins reject negative feature values.
    table, qid : str
        The table of documents, such as ``shop.documents``, and its column of queries, for SQL and
        Polars.
    top : int
        Number of documents of a request or a top-k query.
    featureset : str or None
        An existing feature set (Solr: feature store) that has the features by their names. Without
        it, a learning-to-rank export includes a feature set of stored fields.
    max_error : float or None
        Largest error of a score in targets that write ramps and surfaces as steps.
    types : mapping
        Kinds of the columns of a table, by their names in the target: ``"boolean"`` or others.
        PostgreSQL needs them; they are taken from ``data`` if that is a table.
    expression_only : bool
        Write only the SQL expression of one row, for a generated column or an index.
    bounds, offset, documents
        Taken from ``data`` by ``export_model``: the ranges of features by name, a constant that is
        added to scores, and a few documents of a few queries.
    """

    name: str = "leanrank"
    names: Mapping[str, str] = field(default_factory=dict)
    shifts: Mapping[str, float] = field(default_factory=dict)
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
    """A target of exports.

    Attributes
    ----------
    name : str
        The name for ``--to``.
    summary : str
        A few words on what is written.
    module : str
        The module here whose ``write(formula, options, target)`` returns the export.
    curves : bool
        Whether it has conditions, and so can express curves, surfaces and values for missing
        features; ensembles of trees express them as steps.
    levels, texts : bool
        Whether it can look up levels of categories, and levels that are texts.
    missing : bool
        Whether it represents missing features; otherwise a number stands for them.
    scalers : tuple of str
        The per-query scalers that it can compute.
    constant : bool
        Whether the constant of the formula is written, which does not change the order.
    single : bool
        Whether it computes in float32.
    negative : bool
        Whether it takes negative weights.
    most_terms : int
        Largest number of terms.
    special : str
        A pattern of names that it would interpret even in quotes.
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
    single: bool = False
    negative: bool = True
    most_terms: int = 100_000
    special: str = ""

    @property
    def dialect(self) -> str:
        """The part of the name after a colon, or the name."""
        return self.name.rpartition(":")[2]


_plugin = partial(
    Target, module="ltr", constant=False, single=True, texts=False, missing=False, special=r"\{\{"
)
_ensemble = partial(Target, module="ensembles")
_script = partial(Target, module="scripts", most_terms=900)
_numeric = partial(_script, levels=False, texts=False)
_table = partial(Target, module="sql", scalers=QUERY_SCALERS, most_terms=900)
_code = partial(Target, module="code")
_hybrid = partial(
    Target, module="hybrid", curves=False, levels=False, texts=False, constant=False, single=True
)
_RANKS = "query-reciprocal-rank"
_FUSED: dict[str, Any] = {"negative": False, "scalers": ("query-minmax", _RANKS)}
_REQUESTS = "feature set, model and rescore query"
_PROVED = "folder of requests with a script that proves them"
_VIEW = "view and top-k query"

TARGETS: dict[str, Target] = {
    target.name: target
    for target in (
        _plugin("opensearch-ltr", _REQUESTS),
        _plugin("elasticsearch-ltr", f"{_REQUESTS} (o19s plugin)"),
        _plugin("solr", "feature store, model store and request"),
        _ensemble(
            "elasticsearch-inference",
            "trained model and rescore query, as eland writes them",
            single=True,
            texts=False,
        ),
        _ensemble("lightgbm", "LightGBM model text"),
        _ensemble("xgboost", "XGBoost model JSON", single=True),
        _numeric("vespa", "rank profile"),
        _script("painless", "script of Elasticsearch and OpenSearch"),
        _script(
            "elasticsearch-rescore", "rescore query with a script, without a plugin", single=True
        ),
        _numeric("lucene-expression", "expression over document fields"),
        Target("onnx", "graph with one input per feature", "graphs"),
        Target("pmml", "PMML 4.4 regression model", "graphs", levels=False, texts=False),
        _table("sql:sqlite", f"{_VIEW} for SQLite", scalers=("query-minmax", "query-rank")),
        _table("sql:duckdb", f"{_VIEW} for DuckDB"),
        _table("sql:postgres", f"{_VIEW} for PostgreSQL"),
        _table("sql:mysql", f"{_VIEW} for MySQL and MariaDB"),
        _table("sql:spark", f"{_VIEW} for Spark SQL"),
        _table("sql:clickhouse", f"{_VIEW} for ClickHouse"),
        _table("sql:ansi", f"{_VIEW} in standard SQL"),
        _table(
            "polars", "Python function that returns a Polars expression", special=r"^(\*|\^.*\$)$"
        ),
        _code("c", "C function with a test vector"),
        _code("java", "Java class with a test vector", most_terms=2000),
        _code("javascript", "JavaScript function with a test vector"),
        _code("python", "Python function with a test vector"),
        _code("rust", "Rust function with a test vector"),
        _code("go", "Go function with a test vector"),
        _hybrid(
            "hybrid:opensearch", "search pipeline with the weights of a hybrid query", **_FUSED
        ),
        _hybrid("hybrid:elasticsearch", "linear or rrf retriever with weights", **_FUSED),
        _hybrid(
            "hybrid:qdrant",
            "formula or rrf query over prefetches",
            scalers=(_RANKS, "query-qdrant-rank"),
        ),
        _plugin("deploy:opensearch", _PROVED),
        _plugin("deploy:elasticsearch", _PROVED),
        _plugin("deploy:solr", _PROVED),
        _numeric("deploy:vespa", "application package"),
        Target("markdown", "model card", "markdown", scalers=(*QUERY_SCALERS, _RANKS)),
    )
}
"""Every target by its name."""


def export_model(
    model: Any, target: str, *, data: Any = None, **options: Any
) -> str | bytes | dict[str, str]:
    """Return a model as code or data for the system that computes rankings.

    Parameters
    ----------
    model : Model or fitted ranker
        What to export.
    target : str
        One of ``TARGETS``, such as ``"sql:duckdb"``.
    data : RankingData, data frame or Arrow table, optional
        Typical documents. Trees take the range of straight lines from them, the learning-to-rank
        plugins a constant that makes scores positive, and SQL the types of columns.
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
        The target cannot express the model; the message names targets that can.

    Examples
    --------
    >>> from leanrank.model import Model
    >>> model = Model.from_coef([0.5, -2.0], feature_names=["bm25", "spam"])
    >>> print(export_model(model, "lucene-expression"), end="")
    0.5 * doc['bm25'].value + -2.0 * doc['spam'].value
    """
    made, to, given = as_model(model), find_target(target), Options(**options)
    if data is not None:
        lowest = 0.0 if made.needs_qid else float(np.min(made.predict(data), initial=0.0))
        given = replace(learned_from(made, data, given), offset=-1.01 * lowest)
    return written(prepared(made, to, given), to, given)


def learned_from(model: Model, data: Any, options: Options) -> Options:
    """Return the options with ranges, types and examples from typical documents."""
    from leanrank.model.export.ltr import examples
    from leanrank.model.export.sql import column_types

    bounds = {}
    for feature, x in zip(model.indices.tolist(), used_features(model, data).T, strict=True):
        known = x[np.isfinite(x)]
        name = feature_name(feature, model.feature_names)
        if len(known):
            bounds[options.names.get(name, name)] = (float(known.min()), float(known.max()))
    types = {options.names.get(name, name): kind for name, kind in column_types(data).items()}
    types |= options.types
    return replace(options, bounds=bounds, types=types, documents=examples(model, data))


def find_target(name: str) -> Target:
    """Return the target of a name."""
    if name in TARGETS:
        return TARGETS[name]
    raise InputError(f"there is no export target {name!r}: {suggest(name, TARGETS)}")


def prepared(model: Any, target: Target, options: Options) -> Formula:
    """Return the formula of a model for a target; raise an error if it cannot be written."""
    formula = formula_of(model)
    names = formula.names if model.feature_names is None else model.feature_names
    for name in options.names:
        if name not in names:
            raise InputError(
                f"the model has no feature {name!r} to rename: {suggest(name, formula.names)}"
            )
    formula = formula.renamed(options.names)
    if (twice := first_repeated(formula.names)) is not None:
        raise InputError(f"two features are named {twice!r} in the target: give distinct names")
    check_plain(formula.names, target.name)
    for name in formula.names:
        if target.special and re.search(target.special, name):
            raise InputError(
                f"the feature name {name!r} would be read as a pattern or template by "
                f"{target.name}: give it another in a file for --names"
            )
    words = [one for term in formula.texts.values() for one in term.levels]
    check_plain(filter(None, map(str, words)), target.name, "level")
    if not IDENTIFIER.fullmatch(options.name):
        raise InputError(
            f"the name {options.name!r} cannot be used: take letters, digits and underscores only"
        )
    return checked(formula, target)


def checked(formula: Formula, target: Target) -> Formula:
    """Return the formula if the target can express it, else raise an error."""
    if not formula.terms:
        raise ModelError("the model uses no feature: there is nothing to export")
    if (what := obstacle(formula, target)) is not None:
        able = _families(able_targets(formula))
        hint = "train with weights of at least 0, or " if "negative" in what else ""
        listed = ", ".join(able[:-1]) + " or " * (len(able) > 1) + able[-1] if able else ""
        instead = f"{hint}export to {listed} instead" if able else "none can"
        raise InputError(f"{target.name} cannot {what}: {instead}")
    return formula


def obstacle(formula: Formula, target: Target) -> str | None:
    """Return an operation of a formula that a target cannot do, or None."""
    lacking = {
        f"scale features per query ({formula.scaler})": formula.scaler is not None
        and formula.scaler not in target.scalers,
        "look up the levels of categories": bool(formula.categories) and not target.levels,
        "look up texts": bool(formula.texts) and not target.texts,
        "express curves, surfaces or missing values": not formula.is_linear and not target.curves,
        "take negative weights": any(line.weight < 0 for line in formula.lines)
        and not target.negative,
        f"take more than {target.most_terms:,} features": len(formula.terms) > target.most_terms,
    }
    return next((what for what, cannot in lacking.items() if cannot), None)


def written(formula: Formula, target: Target, options: Options) -> Any:
    """Return the export of a formula that the target can express."""
    module = import_module(f"leanrank.model.export.{target.module}")
    return module.write(formula, options, target)


def able_targets(formula: Formula) -> list[str]:
    """Return the targets that can express a formula without typical documents."""
    bounded = bool(formula.lines) and not formula.is_weighted
    return [
        target.name
        for target in TARGETS.values()
        if obstacle(formula, target) is None
        and not (target.module == "ensembles" and formula.lines)
        and not (bounded and not target.missing)
        and not target.name.startswith(("markdown", "deploy:"))
    ]


def _families(names: list[str]) -> list[str]:
    """Return names with the members of each family joined, and ``*`` for all of them.

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
