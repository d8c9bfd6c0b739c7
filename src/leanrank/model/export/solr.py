"""Solr's learning to rank: ``LinearModel``, computed in float32.

Solr rejects integer weights, needs a weight for every feature it lists, and cannot overwrite a
model. So weights are written as ``1.0``, only features with a weight are listed, and the name ends
in a version.
"""

from __future__ import annotations

from typing import Any

from leanrank.model.export.formula import Formula, Term
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import pretty, quoted
from leanrank.model.scale import Scale


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the bodies for the feature store and the model store, and the request."""
    name = f"{options.name}_{formula.version}"
    features = [_feature(term, name, options.shifts.get(term.name, 0.0)) for term in formula.terms]
    model = {
        "store": name,
        "name": name,
        "class": "org.apache.solr.ltr.model.LinearModel",
        "features": [
            {"name": t.name} | ({} if t.scale is None else {"norm": normalizer(t.scale)})
            for t in formula.terms
        ],
        "params": {"weights": {term.name: float(term.weight) for term in formula.terms}},
    }
    ltr = f"{{!ltr model={name} reRankDocs={max(100, options.top)}}}"
    return pretty(
        {
            "features": {
                "request": "PUT /solr/<collection>/schema/feature-store",
                "body": features,
            },
            "model": {"request": "PUT /solr/<collection>/schema/model-store", "body": model},
            "search": {
                "request": "GET /solr/<collection>/query",
                "params": {"q": "*:*", "rq": ltr, "fl": "id,score", "rows": options.top},
            },
        }
    )


def _feature(term: Term, store: str, shift: float) -> dict[str, Any]:
    """Return a feature that is a field's value; replace it by a ``SolrFeature`` where it is one."""
    feature = {"store": store, "name": term.name}
    if shift == 0:
        kind, params = "FieldValueFeature", {"field": term.name}
    else:
        field = quoted(term.name, '"')
        kind, params = "SolrFeature", {"q": f"{{!func}}sum(def(field({field}),0.0),{shift!r})"}
    return {**feature, "class": f"org.apache.solr.ltr.feature.{kind}", "params": params}


def normalizer(scale: Scale) -> dict[str, Any]:
    """Return Solr's normaliser of one feature, whose numbers are texts."""
    return {
        "class": "org.apache.solr.ltr.norm.StandardNormalizer",
        "params": {"avg": repr(scale.shift), "std": repr(scale.divisor)},
    }
