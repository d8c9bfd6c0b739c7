"""The learning-to-rank plugins of OpenSearch and Elasticsearch: ``model/linear``.

Both refuse negative feature values, take no per-query scaler, and compute in float32. A missing
feature is 0 before any normaliser, which is why global scalers are folded into the weights.
"""

from __future__ import annotations

import json
from typing import Any

from leanrank.errors import InputError
from leanrank.model.export.formula import Formula, Term
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import pretty, quoted, rescored
from leanrank.model.scale import Scale


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the bodies of three requests: feature set, model and search."""
    for name in formula.names:
        if "{{" in name:
            raise InputError(
                f"the feature name {name!r} would be read as a template by {target.name}: give it "
                "another in a file for --names"
            )
    name = f"{options.name}_{formula.version}"  # an existing model cannot be overwritten
    features = [_feature(term, options.shifts.get(term.name, 0.0)) for term in formula.terms]
    model: dict[str, Any] = {
        "type": "model/linear",
        "definition": json.dumps({t.name: t.weight for t in formula.terms}, ensure_ascii=False),
    }
    scales = {t.name: normalizer(t.scale) for t in formula.terms if t.scale is not None}
    if scales:
        model["feature_normalizers"] = scales
    return pretty(
        {
            "featureset": {
                "request": f"POST _ltr/_featureset/{name}",
                "body": {"featureset": {"name": name, "features": features}},
            },
            "model": {
                "request": f"POST _ltr/_featureset/{name}/_createmodel",
                "body": {"model": {"name": name, "model": model}},
            },
            "search": {
                "request": "POST <index>/_search",
                "body": rescored({"sltr": {"params": {}, "model": name}}, options.top),
            },
        }
    )


def normalizer(scale: Scale) -> dict[str, Any]:
    """Return the plugin's normaliser of one feature."""
    return {"standard": {"mean": scale.shift, "standard_deviation": scale.divisor}}


def _feature(term: Term, shift: float) -> dict[str, Any]:
    """Return a feature that is a field's value; replace it by a query where it is one."""
    if shift == 0:
        function: dict[str, Any] = {"field_value_factor": {"field": term.name, "missing": 0}}
    else:
        doc = f"doc[{quoted(term.name, chr(39))}]"
        source = f"({doc}.size() == 0 ? 0.0 : {doc}.value) + params.shift"
        function = {"script_score": {"script": {"source": source, "params": {"shift": shift}}}}
    query = {"query": {"match_all": {}}, "functions": [function], "boost_mode": "replace"}
    return {"name": term.name, "params": [], "template": {"function_score": query}}
