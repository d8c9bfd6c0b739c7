"""Learning to rank in OpenSearch, Elasticsearch and Solr: a linear model or trees.

All compute in float32 and take no per-query scaler. The plugins of OpenSearch and Elasticsearch
refuse negative feature values. A missing feature is 0 before any normaliser, which is why global
scalers are folded into the weights, and why stored fields that are missing get a number of their
own where a model tells them from 0.

Solr rejects integer weights, needs a weight for every feature it lists, and cannot overwrite a
model. So weights are written as ``1.0``, only features with a weight are listed, and the name ends
in a version. Its trees go left up to a threshold plus 1e-6, which is subtracted here.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import count
from typing import Any

import numpy as np

from leanrank.errors import InputError
from leanrank.model.export.formula import Formula, Scale
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import pretty, quoted, rescored
from leanrank.model.export.trees import Split, above, engine_forest, fills

_CONSTANT = "leanrank_constant"
_SLACK = np.float32(1e-6)


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the requests: store, feature set unless there is one, model and search."""
    return pretty((_solr if target.dialect == "solr" else _plugin)(formula, options, target))


def _plugin(formula: Formula, options: Options, target: Target) -> dict[str, Any]:
    for name in formula.names:
        if "{{" in name:
            raise InputError(
                f"the feature name {name!r} would be read as a template by {target.name}: give it "
                "another in a file for --names"
            )
    name = f"{options.name}_{formula.version}"  # an existing model cannot be overwritten
    features_of = options.featureset or name
    model, notes = _definition(formula, options, target)
    requests: dict[str, Any] = {"notes": notes}
    if options.featureset is None:
        notes.insert(0, stored_fields(formula.names))
        known = fills(formula, options)
        features = [
            {
                "name": one,
                "params": [],
                "template": field_value(
                    one, options.shifts.get(one, 0.0), {"match_all": {}}, known.get(one, 0)
                ),
            }
            for one in formula.names
        ]
        if formula.is_weighted and options.offset:
            every = {"name": _CONSTANT, "params": [], "template": {"match_all": {}}}
            features.append(every)
        body = {"featureset": {"name": name, "features": features}}
        requests["store"] = {"request": "PUT _ltr"}
        requests["featureset"] = {"request": f"POST _ltr/_featureset/{name}", "body": body}
    else:
        notes.insert(0, f"for the feature set {options.featureset}, whose features the model reads")
        notes.append("give the parameters of the feature set in params of the search")
    requests["model"] = {
        "request": f"POST _ltr/_featureset/{features_of}/_createmodel",
        "body": {"model": {"name": name, "model": model}},
    }
    requests["search"] = {
        "request": "POST <index>/_search",
        "body": rescored({"sltr": {"params": {}, "model": name}}, options.top),
    }
    return requests


def stored_fields(names: list[str]) -> str:
    """Return the sentence about features that are taken for stored fields."""
    if "_score" in names:
        raise InputError(
            "the score of the query (_score) is no stored field: log it as a feature of a set and "
            "export with --featureset, or export to painless or lucene-expression"
        )
    return (
        f"takes these features for stored fields of the documents: {', '.join(names)}. If they are "
        "queries of a feature set, export with --featureset NAME"
    )


def _definition(
    formula: Formula, options: Options, target: Target
) -> tuple[dict[str, Any], list[str]]:
    """Return the model, and what is to be said about it."""
    if not formula.is_weighted:
        made = engine_forest(formula, options, target)
        trees = [_nested(tree, made.names, count()) for tree in made.trees]
        text = json.dumps(trees, ensure_ascii=False, separators=(",", ":"))
        return {"type": "model/xgboost+json", "definition": text}, [made.note, _window(options)]
    weights = {t.name: t.weight for t in formula.terms}
    if options.offset and options.featureset is None:
        weights[_CONSTANT] = options.offset
    model: dict[str, Any] = {
        "type": "model/linear",
        "definition": json.dumps(weights, ensure_ascii=False),
    }
    scales = {
        t.name: {"standard": {"mean": t.scale.shift, "standard_deviation": t.scale.divisor}}
        for t in formula.terms
        if t.scale is not None
    }
    if scales:
        model["feature_normalizers"] = scales
    return model, [_window(options)]


def _window(options: Options) -> str:
    return (
        "replace match_all by your query. Documents beyond window_size score 0: keep size at or "
        "below it (and it at or below 10,000), since rescored scores may be negative"
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


def field_value(name: str, shift: float, query: Any, missing: float | None = None) -> Any:
    """Return a query whose score is the value of a field, plus a constant."""
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


def _solr(formula: Formula, options: Options, target: Target) -> dict[str, Any]:
    """Write the bodies for the feature store and the model store, and the request."""
    name = f"{options.name}_{formula.version}"
    store = options.featureset or name
    notes = [] if options.featureset else [stored_fields(formula.names)]
    if formula.is_weighted:
        kind = "LinearModel"
        params: dict[str, Any] = {"weights": {t.name: float(t.weight) for t in formula.terms}}
    else:
        made = engine_forest(formula, options, target)
        kind, notes = "MultipleAdditiveTreesModel", [*notes, made.note]
        trees = [{"weight": "1", "root": _solr_tree(one, made.names)} for one in made.trees]
        params = {"trees": trees}
    scales = {t.name: t.scale for t in formula.terms}
    model = {
        "store": store,
        "name": name,
        "class": f"org.apache.solr.ltr.model.{kind}",
        "features": [
            {"name": one} | ({} if (s := scales.get(one)) is None else {"norm": normalizer(s)})
            for one in formula.names
        ],
        "params": params,
    }
    known = fills(formula, options)
    features = [
        _solr_feature(one, store, options.shifts.get(one, 0.0), known.get(one, 0.0))
        for one in formula.names
    ]
    request = {"request": "PUT /solr/<collection>/schema/feature-store", "body": features}
    ltr = f"{{!ltr model={name} reRankDocs={max(100, options.top)}}}"
    return {
        "notes": notes,
        **({} if options.featureset else {"features": request}),
        "model": {"request": "PUT /solr/<collection>/schema/model-store", "body": model},
        "search": {
            "request": "GET /solr/<collection>/query",
            "params": {"q": "*:*", "rq": ltr, "fl": "id,score", "rows": options.top},
        },
    }


def _solr_tree(tree: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(tree, Split):
        return {"value": repr(tree)}
    return {
        "feature": names[tree.feature],
        "threshold": repr(written_threshold(tree.threshold or 0.0)),
        "left": _solr_tree(tree.left, names),
        "right": _solr_tree(tree.right, names),
    }


def written_threshold(threshold: float) -> float:
    """Return the largest float32 that with Solr's 1e-6 is at most a threshold.

    >>> float(np.float32(written_threshold(0.5)) + np.float32(1e-6))
    0.5
    """
    target = np.float32(threshold)
    low = np.float32(target - _SLACK)
    while low + _SLACK > target:
        low = np.nextafter(low, np.float32(-np.inf))
    while (after := np.nextafter(low, np.float32(np.inf))) + _SLACK <= target:
        low = after
    return float(low)


def _solr_feature(name: str, store: str, shift: float, missing: float) -> dict[str, Any]:
    """Return a feature that is a field's value; replace it by a ``SolrFeature`` where it is one."""
    if shift == 0 and missing == 0:
        kind, params = "FieldValueFeature", {"field": name}
    else:
        field, added = quoted(name, '"'), "" if shift == 0 else f",{shift!r}"
        value = f"def(field({field}),{missing!r})"
        kind, params = (
            "SolrFeature",
            {"q": "{!func}" + (f"sum({value}{added})" if added else value)},
        )
    feature = {"store": store, "name": name}
    return {**feature, "class": f"org.apache.solr.ltr.feature.{kind}", "params": params}


def normalizer(scale: Scale) -> dict[str, Any]:
    """Return Solr's normaliser of one feature, whose numbers are texts."""
    return {
        "class": "org.apache.solr.ltr.norm.StandardNormalizer",
        "params": {"avg": repr(scale.shift), "std": repr(scale.divisor)},
    }
