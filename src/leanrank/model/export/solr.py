"""Solr's learning to rank: ``LinearModel`` or ``MultipleAdditiveTreesModel``, in float32.

Solr rejects integer weights, needs a weight for every feature it lists, and cannot overwrite a
model. So weights are written as ``1.0``, only features with a weight are listed, and the name ends
in a version. Trees go left up to a threshold plus 1e-6, which is subtracted here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from leanrank.model.export.formula import Formula, Scale
from leanrank.model.export.ltr import stored_fields
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import pretty, quoted
from leanrank.model.export.trees import Split, engine_forest, fills

_SLACK = np.float32(1e-6)


def write(formula: Formula, options: Options, target: Target) -> str:
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
        trees = [{"weight": "1", "root": _tree(one, made.names)} for one in made.trees]
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
        _feature(one, store, options.shifts.get(one, 0.0), known.get(one, 0.0))
        for one in formula.names
    ]
    request = {"request": "PUT /solr/<collection>/schema/feature-store", "body": features}
    ltr = f"{{!ltr model={name} reRankDocs={max(100, options.top)}}}"
    return pretty(
        {
            "notes": notes,
            **({} if options.featureset else {"features": request}),
            "model": {"request": "PUT /solr/<collection>/schema/model-store", "body": model},
            "search": {
                "request": "GET /solr/<collection>/query",
                "params": {"q": "*:*", "rq": ltr, "fl": "id,score", "rows": options.top},
            },
        }
    )


def _tree(tree: Any, names: list[str]) -> dict[str, Any]:
    if not isinstance(tree, Split):
        return {"value": repr(tree)}
    return {
        "feature": names[tree.feature],
        "threshold": repr(written_threshold(tree.threshold or 0.0)),
        "left": _tree(tree.left, names),
        "right": _tree(tree.right, names),
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


def _feature(name: str, store: str, shift: float, missing: float) -> dict[str, Any]:
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
