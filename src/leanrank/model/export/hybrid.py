"""Hybrid searches: the weights of several retrievers; each feature is one retriever.

Written from the engines' documentation: OpenSearch ``normalization-processor`` (2.10) and
``score-ranker-processor`` with weights (3.1), Elasticsearch ``linear`` (8.18) and weighted ``rrf``
(9.2) retrievers, Qdrant formula (1.14) and weighted ``rrf`` (1.17) queries.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from leanrank.errors import InputError
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target, export_model
from leanrank.model.export.text import pretty
from leanrank.model.model import Model

RECIPROCAL_RANK, QDRANT_RANK = "query-reciprocal-rank", "query-qdrant-rank"


def hybrid_weights(
    weights: Mapping[str, float],
    target: str,
    *,
    scaler: str | None = "query-minmax",
    rank_constant: int = 60,
    name: str = "leanrank",
    top: int = 10,
) -> str:
    """Return the weights of retrievers in the format of an engine's hybrid search.

    Parameters
    ----------
    weights : mapping
        The weight of each retriever by its name, in the order of the queries.
    target : str
        ``"hybrid:opensearch"``, ``"hybrid:elasticsearch"`` or ``"hybrid:qdrant"``; the part after
        the colon is enough.
    scaler : str, optional
        The normaliser of the scores of each retriever: ``"query-minmax"``,
        ``"query-reciprocal-rank"`` (1 / (constant + rank)), ``"query-qdrant-rank"``
        (1 / (1 + rank / weight), for Qdrant only) or None.
    rank_constant : int
        The constant of reciprocal ranks, with ranks from 1.
    name : str
        The name of the pipeline.
    top : int
        Number of documents to return.

    Returns
    -------
    str
        A JSON document: the body of ``PUT _search/pipeline/…`` for OpenSearch, of a search with
        queries to fill in for Elasticsearch and Qdrant.

    Examples
    --------
    >>> import json
    >>> made = json.loads(hybrid_weights({"bm25": 3.0, "dense": 1.0}, "opensearch"))
    >>> processor = made["phase_results_processors"][0]["normalization-processor"]
    >>> processor["combination"]["parameters"]["weights"]
    [0.75, 0.25]
    """
    constant = {"constant": rank_constant} if scaler == RECIPROCAL_RANK else {}
    normalizer = None if scaler is None else {"kind": scaler, **constant}
    model = Model.from_coef(list(weights.values()), feature_names=[*weights], normalizer=normalizer)
    to = target if ":" in target else f"hybrid:{target}"
    made: str = export_model(model, to, name=name, top=top)  # type: ignore[assignment]
    return made


def write(formula: Formula, options: Options, target: Target) -> str:
    """Return a formula whose features are retrievers, in the format of an engine."""
    writers = {"opensearch": _opensearch, "elasticsearch": _elasticsearch, "qdrant": _qdrant}
    return pretty(writers[target.dialect](formula, options))


def _opensearch(formula: Formula, options: Options) -> dict[str, Any]:
    if formula.scaler is None:
        raise InputError(
            "hybrid:opensearch always normalises the scores of each query: train with --scale "
            "query-minmax, or export to hybrid:elasticsearch or hybrid:qdrant"
        )
    total = sum(term.weight for term in formula.terms)
    shares = [term.weight / total for term in formula.terms]  # OpenSearch requires a sum of 1
    combination: dict[str, Any] = {"parameters": {"weights": shares}}
    if formula.scaler == RECIPROCAL_RANK:
        constant = _rank_constant(formula)
        combination = {"technique": "rrf", "rank_constant": constant, **combination}
        processor: dict[str, Any] = {"score-ranker-processor": {"combination": combination}}
    else:
        # z_score is not used: it raises scores below the mean of the hits to .001
        processor = {
            "normalization-processor": {
                "normalization": {"technique": "min_max"},
                "combination": {"technique": "arithmetic_mean", **combination},
            }
        }
    return {
        "description": f"{options.name}, for queries in this order: {', '.join(formula.names)}",
        "phase_results_processors": [processor],
    }


def _elasticsearch(formula: Formula, options: Options) -> dict[str, Any]:
    retrievers: list[dict[str, Any]] = []
    for term in formula.terms:  # the query of a retriever is not in the model
        query = {"match": {term.name: "<query text>"}}
        retrievers.append({"retriever": {"standard": {"query": query}}, "weight": term.weight})
    window = max(100, options.top)
    if formula.scaler == RECIPROCAL_RANK:
        rrf = {"rank_constant": _rank_constant(formula), "rank_window_size": window}
        return {"retriever": {"rrf": {"retrievers": retrievers, **rrf}}, "size": options.top}
    for one in retrievers:
        one["normalizer"] = "none" if formula.scaler is None else "minmax"
    linear = {"retrievers": retrievers, "rank_window_size": window}
    return {"retriever": {"linear": linear}, "size": options.top}


def _qdrant(formula: Formula, options: Options) -> dict[str, Any]:
    prefetch = [
        {"query": f"<{name}>", "using": name, "limit": max(100, options.top)}
        for name in formula.names
    ]
    weights = [term.weight for term in formula.terms]
    if formula.scaler == RECIPROCAL_RANK:
        if len(set(weights)) > 1:
            raise InputError(
                "the weights of Qdrant's reciprocal ranks are another function, 1 / (rank / weight "
                "+ k − 1): learn them with fuse --to qdrant"
            )
        # Qdrant's ranks start at 0, so that its constant is one more.
        query: dict[str, Any] = {"rrf": {"k": _rank_constant(formula) + 1}}
    elif formula.scaler == QDRANT_RANK:
        if min(weights) < 0:
            raise InputError("hybrid:qdrant takes no negative weights for ranks")
        query = {"rrf": {"k": 2, "weights": weights}}
    else:
        scores = [f"$score[{at}]" for at in range(len(weights))]
        products = [{"mult": [w, s]} for w, s in zip(weights, scores, strict=True)]
        query = {"formula": {"sum": products}, "defaults": dict.fromkeys(scores, 0.0)}
    return {"prefetch": prefetch, "query": query, "limit": options.top}


def _rank_constant(formula: Formula) -> int:
    return int(dict(formula.scaler_options).get("constant", 60))
