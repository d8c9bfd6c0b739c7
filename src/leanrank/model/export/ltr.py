"""Learning to rank in OpenSearch, Elasticsearch and Solr: a linear model or trees.

All compute in float32 and take no per-query scaler. The plugins of OpenSearch and Elasticsearch
reject negative feature values. A missing feature is 0; if the model distinguishes missing values
from 0, stored fields that are missing get another number.

Solr rejects integer weights, needs a weight for every feature it lists, and its trees go left up to
a threshold plus 1e-6, which is subtracted here. No engine overwrites a model or a feature set, so
their names end in a digest of their contents.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np

from leanrank.data import RankingData
from leanrank.errors import InputError
from leanrank.model.alignment import used_features
from leanrank.model.export import deploy_script
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import filled, pretty, quoted, rescored, versioned
from leanrank.model.export.trees import Split, above, fills, forest, solr_threshold
from leanrank.model.model import Model

_CONSTANT = "leanrank_constant"
_QUERIES, _DOCUMENTS = 3, 10
_WINDOW = (
    "replace match_all by your query. Documents beyond window_size score 0: keep size at or below "
    "it (and it at or below 10,000), since rescored scores may be negative"
)


def write(formula: Formula, options: Options, target: Target) -> str | dict[str, str]:
    """Return the requests: store, feature set unless one exists, model and search.

    For ``deploy:…``, return the files of a folder by their names: the requests, a script that sends
    them, and the expected scores.
    """
    notes: list[str] = []
    if options.featureset is None:
        notes.append(stored_fields(formula.names))
    else:
        absent = np.where(np.eye(len(formula.names)), np.nan, 0.0)
        differs = formula.scores(absent) != formula.scores(0.0 * np.nan_to_num(absent))
        if differs.any():
            named = ", ".join(np.array(formula.names)[differs])
            notes.append(f"where these are missing in the set, they count as 0: {named}")
    write_requests = _solr if target.dialect == "solr" else _plugin
    name, requests = write_requests(formula, options, target, notes)
    if not target.name.startswith("deploy:"):
        return pretty({"notes": notes, **requests})
    search = requests.pop("search")
    steps = {f"{at:02d}-{key}.json": one for at, (key, one) in enumerate(requests.items(), 1)}
    readme = {
        "engine": target.dialect,
        "port": "8983" if target.dialect == "solr" else "9200",
        "steps": "\n".join(f"{at}. `{file}`" for at, file in enumerate(steps, 1)),
        "notes": "".join(f"- {note}\n" for note in notes),
    }
    expected = {
        "engine": target.dialect,
        "featureset": options.featureset or name,
        "queries": _expected(formula, options, target),
    }
    files = {**steps, "search.json": search, "expected.json": expected}
    return {
        "README.md": filled("deploy.md", readme),
        **{file: pretty(content) for file, content in files.items()},
        "deploy.py": Path(deploy_script.__file__).read_text(encoding="utf-8"),
    }


def examples(model: Model, data: Any) -> list[Any]:
    """Return a few documents of a few queries: the text of a query, ids and features in use."""
    if not isinstance(data, RankingData) or data.doc_ids is None:
        return []
    X, found = used_features(model, data), []
    for q in range(min(_QUERIES, data.n_queries)):
        rows = np.arange(data.query_ptr[q], data.query_ptr[q + 1])[:_DOCUMENTS]
        found.append((str(data.query_ids[q]), [str(data.doc_ids[row]) for row in rows], X[rows]))
    return found


def _expected(formula: Formula, options: Options, target: Target) -> list[dict[str, Any]]:
    """Return the expected scores and feature values of documents."""
    from leanrank.model.verify.engines import emulated_scores, engine_values

    queries = []
    for text, ids, X in options.documents:
        scores = emulated_scores(formula, X, options, target).tolist()
        values = engine_values(formula, X, options).tolist()
        documents = [
            {"id": id, "score": score, "features": dict(zip(formula.names, x, strict=True))}
            for id, score, x in zip(ids, scores, values, strict=True)
        ]
        queries.append({"text": text, "documents": documents})
    return queries


def _plugin(
    formula: Formula, options: Options, target: Target, notes: list[str]
) -> tuple[str, dict[str, Any]]:
    """Return the name of the model and the requests, and add notes about them."""
    known, features = fills(formula, options), []
    for one in formula.names if options.featureset is None else ():
        value = field_value(one, options, {"match_all": {}}, known.get(one, 0))
        features.append({"name": one, "params": [], "template": value})
    definition: Any
    if formula.is_weighted:
        kind, definition = "model/linear", {term.name: term.weight for term in formula.terms}
        if features and options.offset:
            features.append({"name": _CONSTANT, "params": [], "template": {"match_all": {}}})
            definition[_CONSTANT] = options.offset
    else:
        made = forest(formula, options, target)
        kind = "model/xgboost+json"
        definition = [_nested(tree, formula.names, count()) for tree in made.trees]
        notes.append(made.note)
    notes.append(_WINDOW)
    text = json.dumps(definition, ensure_ascii=False, separators=(",", ":"))
    name = versioned(options.name, options.featureset, features, text)
    requests: dict[str, Any] = {}
    if features:
        requests["store"] = {"request": "PUT _ltr"}
        body: Any = {"featureset": {"name": name, "features": features}}
        requests["featureset"] = {"request": f"POST _ltr/_featureset/{name}", "body": body}
    else:
        notes.insert(0, f"for the feature set {options.featureset}, whose features the model reads")
        notes.append("give the parameters of the feature set in params of the search")
    body = {"model": {"name": name, "model": {"type": kind, "definition": text}}}
    to = f"POST _ltr/_featureset/{options.featureset or name}/_createmodel"
    requests["model"] = {"request": to, "body": body}
    body = rescored(options.top, query={"sltr": {"params": {}, "model": name}})
    requests["search"] = {"request": "POST <index>/_search", "body": body}
    return name, requests


def stored_fields(names: list[str]) -> str:
    """Return the note on features that are read as stored fields."""
    if "_score" in names:
        raise InputError(
            "the score of the query (_score) is not a stored field: log it as a feature of a set, "
            "export with --featureset, or export to painless or lucene-expression"
        )
    return (
        f"takes these features for stored fields of the documents: {', '.join(names)}. If they are "
        "queries of a feature set, export with --featureset NAME"
    )


def _nested(tree: Any, names: list[str], ids: Iterator[int], depth: int = 0) -> dict[str, Any]:
    """Return a tree as XGBoost dumps it; left is where a feature is below a condition."""
    at = next(ids)
    if not isinstance(tree, Split):
        return {"nodeid": at, "leaf": tree}
    assert tree.threshold is not None
    children = [_nested(side, names, ids, depth + 1) for side in (tree.left, tree.right)]
    yes, no = (child["nodeid"] for child in children)
    return {
        "nodeid": at,
        "depth": depth,
        "split": names[tree.feature],
        "split_condition": above(tree.threshold),
        "yes": yes,
        "no": no,
        "missing": yes,
        "children": children,
    }


def field_value(name: str, options: Options, query: Any, missing: float | None = None) -> Any:
    """Return a query whose score is the value of a field, plus its shift."""
    shift = options.shifts.get(name, 0.0)
    if missing is not None and missing + shift < 0:
        raise InputError(
            f"a missing {name!r} counts as {missing:g}, and feature values may not be negative: "
            "give a shift in a file for --names"
        )
    if shift == 0:
        given = {} if missing is None else {"missing": missing}
        function: dict[str, Any] = {"field_value_factor": {"field": name, **given}}
    else:
        doc = f"doc[{quoted(name, chr(39))}]"
        absent = "" if missing is None else f"{doc}.size() == 0 ? {float(missing)} : "
        source = f"({absent}{doc}.value) + params.shift"
        function = {"script_score": {"script": {"source": source, "params": {"shift": shift}}}}
    return {"function_score": {"query": query, "functions": [function], "boost_mode": "replace"}}


def _solr(
    formula: Formula, options: Options, target: Target, notes: list[str]
) -> tuple[str, dict[str, Any]]:
    """Return the same for the feature store and the model store of Solr."""
    known, features = fills(formula, options), []
    for one in formula.names if options.featureset is None else ():
        shift, missing = options.shifts.get(one, 0.0), known.get(one, 0.0)
        features.append({"name": one, **_solr_feature(one, shift, missing)})
    params: dict[str, Any]
    if formula.is_weighted:
        kind, params = "LinearModel", {"weights": {t.name: t.weight for t in formula.terms}}
    else:
        made = forest(formula, options, target)
        trees = [{"weight": "1", "root": _solr_tree(one, formula.names)} for one in made.trees]
        kind, params = "MultipleAdditiveTreesModel", {"trees": trees}
        notes.append(made.note)
    name = versioned(options.name, options.featureset, features, params)
    store = options.featureset or name
    model = {
        "store": store,
        "name": name,
        "class": f"org.apache.solr.ltr.model.{kind}",
        "features": [{"name": one} for one in formula.names],
        "params": params,
    }
    search = {
        "q": "*:*",
        "rq": f"{{!ltr model={name} reRankDocs={max(100, options.top)}}}",
        "fl": "id,score",
        "rows": options.top,
    }
    schema = "PUT /solr/<collection>/schema"
    requests: dict[str, Any] = {}
    if features:
        body = [{"store": store, **one} for one in features]
        requests["features"] = {"request": f"{schema}/feature-store", "body": body}
    requests["model"] = {"request": f"{schema}/model-store", "body": model}
    requests["search"] = {"request": "GET /solr/<collection>/query", "params": search}
    return name, requests


def _solr_tree(tree: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(tree, Split):
        return {"value": repr(tree)}
    return {
        "feature": names[tree.feature],
        "threshold": repr(solr_threshold(tree.threshold or 0.0)),
        "left": _solr_tree(tree.left, names),
        "right": _solr_tree(tree.right, names),
    }


def _solr_feature(name: str, shift: float, missing: float) -> dict[str, Any]:
    """Return a feature that is the value of a field, shifted or replaced if it is missing."""
    if shift == 0 and missing == 0:
        kind, params = "FieldValueFeature", {"field": name}
    else:
        value = f"def(field({quoted(name, chr(34))}),{missing!r})"
        value = value if shift == 0 else f"sum({value},{shift!r})"
        kind, params = "SolrFeature", {"q": "{!func}" + value}
    return {"class": f"org.apache.solr.ltr.feature.{kind}", "params": params}
