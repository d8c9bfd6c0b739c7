"""Learning to rank in OpenSearch, Elasticsearch and Solr: a linear model or trees.

All compute in float32 and take no per-query scaler. The plugins of OpenSearch and Elasticsearch
refuse negative feature values. A missing feature is 0, which is why stored fields that are missing
get a number of their own where a model tells them from 0.

Solr rejects integer weights, needs a weight for every feature it lists, and cannot overwrite a
model. So weights are written as ``1.0``, only features with a weight are listed, and the name ends
in a version. Its trees go left up to a threshold plus 1e-6, which is subtracted here.
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
from leanrank.model.export.text import pretty, quoted, rescored
from leanrank.model.export.trees import Split, above, engine_forest, fills, solr_threshold
from leanrank.model.model import Model

_CONSTANT = "leanrank_constant"
_QUERIES, _DOCUMENTS = 3, 10


def write(formula: Formula, options: Options, target: Target) -> str | dict[str, str]:
    """Write the requests: store, feature set unless there is one, model and search.

    For ``deploy:…``, return the files of a folder by their names: the requests, a script that sends
    them, and scores to expect.
    """
    requests = (_solr if target.dialect == "solr" else _plugin)(formula, options, target)
    if not target.name.startswith("deploy:"):
        return pretty(requests)
    notes, search = requests.pop("notes"), requests.pop("search")
    steps = {f"{at:02d}-{key}.json": one for at, (key, one) in enumerate(requests.items(), 1)}
    readme = _README.format(
        engine=target.dialect,
        port="8983" if target.dialect == "solr" else "9200",
        steps="\n".join(f"{at}. `{file}`" for at, file in enumerate(steps, 1)),
        notes="".join(f"- {note}\n" for note in notes),
    )
    files = {**steps, "search.json": search, "expected.json": _expected(formula, options, target)}
    return {
        "README.md": readme,
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


def _expected(formula: Formula, options: Options, target: Target) -> dict[str, Any]:
    """Return the scores of documents, with their features as the engine should find them."""
    from leanrank.model.verify.engines import emulated_scores, engine_values

    queries = []
    for text, ids, X in options.documents:
        scores = emulated_scores(formula, X, options, target)
        listed = zip(ids, scores.tolist(), engine_values(formula, X, options).tolist(), strict=True)
        documents = [
            {"id": id, "score": score, "features": dict(zip(formula.names, x, strict=True))}
            for id, score, x in listed
        ]
        queries.append({"text": text, "documents": documents})
    name = f"{options.name}_{formula.version}"
    store = options.featureset or name
    return {"engine": target.dialect, "model": name, "featureset": store, "queries": queries}


def _plugin(formula: Formula, options: Options, target: Target) -> dict[str, Any]:
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
        "body": rescored(options.top, query={"sltr": {"params": {}, "model": name}}),
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
    text = json.dumps(weights, ensure_ascii=False)
    return {"type": "model/linear", "definition": text}, [_window(options)]


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
    model = {
        "store": store,
        "name": name,
        "class": f"org.apache.solr.ltr.model.{kind}",
        "features": [{"name": one} for one in formula.names],
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
        "threshold": repr(solr_threshold(tree.threshold or 0.0)),
        "left": _solr_tree(tree.left, names),
        "right": _solr_tree(tree.right, names),
    }


def _solr_feature(name: str, store: str, shift: float, missing: float) -> dict[str, Any]:
    """Return a feature that is a field's value; replace it by a ``SolrFeature`` where it is one."""
    if shift == 0 and missing == 0:
        kind, params = "FieldValueFeature", {"field": name}
    else:
        field = quoted(name, '"')
        value = f"def(field({field}),{missing!r})"
        value = value if shift == 0 else f"sum({value},{shift!r})"
        kind, params = "SolrFeature", {"q": "{!func}" + value}
    feature = {"store": store, "name": name}
    return {**feature, "class": f"org.apache.solr.ltr.feature.{kind}", "params": params}


_README = """\
# Deploy to {engine}

```
python deploy.py http://localhost:{port} INDEX --param keywords
```

sends these requests in order, then asks for the scores of the documents in `expected.json` and \
compares them. `--param` is what your features call the text of a query; leave it out if they take \
none. The last line says *deployed and proved*, or the first difference with its likely cause.

{steps}

`search.json` is the search to use: put your query in the place of `match_all` (`q`).

{notes}"""
