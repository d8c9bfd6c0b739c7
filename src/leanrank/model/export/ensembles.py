"""Files of tree ensembles: LightGBM, XGBoost, and Elasticsearch's own inference.

A missing feature is NaN, or absent. It goes left at splits whose threshold is below all numbers. A
category of texts is the position of its level.
"""

from __future__ import annotations

import json
import re
from itertools import count
from typing import Any

import numpy as np

from leanrank.model.export.formula import Formula
from leanrank.model.export.ltr import field_value, stored_fields
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import filled, pretty, rescored, template, versioned
from leanrank.model.export.trees import Forest, Split, above, flattened, forest

_LEAST = {False: -float(np.finfo(np.float64).max), True: -float(np.finfo(np.float32).max)}


def write(formula: Formula, options: Options, target: Target) -> str:
    """Return the ensemble; a constant is a tree of one leaf."""
    made = forest(formula, options, target)
    writers = {"lightgbm": _lightgbm, "xgboost": _xgboost, "elasticsearch-inference": _elastic}
    return writers[target.name](made, formula, options)


def _plain(names: list[str]) -> list[str]:
    """Return names of word characters, which both libraries take; features go by position."""
    plain = [re.sub(r"\W", "_", name) for name in names]
    return [name if plain.count(name) == 1 else f"{name}_{at}" for at, name in enumerate(plain)]


def _lightgbm(made: Forest, formula: Formula, options: Options) -> str:
    blocks = []
    for at, tree in enumerate(made.trees):
        nodes = flattened(tree)
        splits = [node for node in nodes if isinstance(node, Split)]
        leaves = [node for node in nodes if not isinstance(node, Split)]
        numbers = count(), count(-1, -1)  # of splits and of leaves
        places = [next(numbers[not isinstance(node, Split)]) for node in nodes]
        rows: dict[str, list[Any]] = {
            "split_feature": [node.feature for node in splits],
            "split_gain": [1] * len(splits),
            "threshold": [_LEAST[False] if s.threshold is None else s.threshold for s in splits],
            "decision_type": [10 if node.threshold is None else 8 for node in splits],
            "left_child": [places[node.left] for node in splits],
            "right_child": [places[node.right] for node in splits],
            "leaf_value": leaves,
            "leaf_count": [1] * len(leaves),
            "internal_count": [1] * len(splits),
        }
        if not splits:
            rows = {"leaf_value": leaves}
        lines = [f"{key}={' '.join(map(repr, row))}" for key, row in rows.items()]
        head = [f"Tree={at}", f"num_leaves={len(leaves)}", "num_cat=0"]
        blocks.append("\n".join([*head, *lines, "is_linear=0", "shrinkage=1", "", ""]))
    names = _plain(formula.names)
    fields = {
        "last": str(len(names) - 1),
        "names": " ".join(names),
        "ranges": " ".join(["[-inf:inf]"] * len(names)),
        "sizes": " ".join(str(len(block.encode()) + 1) for block in blocks),
        "trees": "\n".join(blocks),
    }
    return filled("lightgbm.txt", fields)


def _xgboost(made: Forest, formula: Formula, options: Options) -> str:
    flat, width = map(flattened, made.trees), len(formula.names)
    trees = [_xgboost_tree(at, nodes, width) for at, nodes in enumerate(flat)]
    model = json.loads(template("xgboost.json"))
    learner = model["learner"]
    learner["learner_model_param"]["num_feature"] = str(width)
    learner |= {"feature_names": _plain(formula.names), "feature_types": ["float"] * width}
    learner["gradient_booster"]["model"] = {
        "gbtree_model_param": {"num_parallel_tree": "1", "num_trees": str(len(trees))},
        "iteration_indptr": list(range(len(trees) + 1)),
        "tree_info": [0] * len(trees),
        "trees": trees,
    }
    return json.dumps(model, ensure_ascii=False, sort_keys=True) + "\n"


def _xgboost_tree(at: int, nodes: list[Any], width: int) -> dict[str, Any]:
    parents, conditions = [2**31 - 1] * len(nodes), []
    for place, node in enumerate(nodes):
        if isinstance(node, Split):
            parents[node.left] = parents[node.right] = place
            below = node.threshold
            conditions.append(_LEAST[True] if below is None else above(below))
        else:
            conditions.append(node)
    inner = [node if isinstance(node, Split) else None for node in nodes]
    size = len(nodes)
    return {
        **dict.fromkeys(("base_weights", "loss_changes"), [0.0] * size),
        **{f"categories{part}": [] for part in ("", "_nodes", "_segments", "_sizes")},
        "default_left": [int(n is not None and n.threshold is None) for n in inner],
        "id": at,
        "left_children": [-1 if n is None else n.left for n in inner],
        "parents": parents,
        "right_children": [-1 if n is None else n.right for n in inner],
        "split_conditions": conditions,
        "split_indices": [0 if n is None else n.feature for n in inner],
        "split_type": [0] * size,
        "sum_hessian": [1.0] * size,
        "tree_param": {
            "num_deleted": "0",
            "num_feature": str(width),
            "num_nodes": str(size),
            "size_leaf_vector": "1",
        },
    }


def _elastic(made: Forest, formula: Formula, options: Options) -> str:
    """Return the request in the form of eland, with one feature per stored field."""
    trees = []
    for tree in made.trees:
        nodes = [_elastic_node(at, node) for at, node in enumerate(flattened(tree))]
        trees.append({"tree": {"feature_names": formula.names, "tree_structure": nodes}})
    ensemble = {
        "feature_names": formula.names,
        "trained_models": trees,
        "aggregate_output": {"weighted_sum": {"weights": [1.0] * len(trees)}},
        "target_type": "regression",
    }
    extractors = []
    for one in formula.names:
        query = field_value(one, options, {"exists": {"field": one}})
        extractors.append({"query_extractor": {"feature_name": one, "query": query}})
    body = {
        "description": made.note,
        "input": {"field_names": formula.names},
        "inference_config": {"learning_to_rank": {"feature_extractors": extractors}},
        "definition": {"preprocessors": [], "trained_model": {"ensemble": ensemble}},
    }
    name = versioned(options.name, body)
    search = rescored(options.top, learning_to_rank={"model_id": name, "params": {}})
    return pretty(
        {
            "notes": [made.note, stored_fields(formula.names)],
            "model": {"request": f"PUT _ml/trained_models/{name}", "body": body},
            "search": {"request": "POST <index>/_search", "body": search},
        }
    )


def _elastic_node(at: int, node: Any) -> dict[str, Any]:
    if not isinstance(node, Split):
        return {"node_index": at, "leaf_value": node}
    missing = node.threshold is None
    return {
        "node_index": at,
        "split_feature": node.feature,
        "threshold": _LEAST[False] if missing else node.threshold,
        "decision_type": "lte",
        "left_child": node.left,
        "right_child": node.right,
        "default_left": missing,
    }
