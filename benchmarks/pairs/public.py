"""Lines, curves and a few pairs beside trees of two to fifteen leaves, on public sets."""

from __future__ import annotations

import tempfile
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from scipy.special import logsumexp

from benchmarks.flagship.quality import MEASURES, PUBLIC, folds
from benchmarks.flagship.trees import tuned_leaves
from benchmarks.harness import Kept, Options, Table
from leanrank import LeanRanker
from leanrank.data.ranking_data import RankingData
from leanrank.metrics import evaluate

OURS = {
    "lines": {"curves": None},
    "curves": {"max_pairs": 0},
    **{f"curves, at most {n} pairs": {"max_pairs": n} for n in (5, 10, 30)},
}
LEAVES = (2, 3, 4, 15)
BASE = "curves"
"""The row that others are compared with."""

Judged = dict[str, Any]
"""Measures and loss by query, features and pairs of a model."""


def public(options: Options) -> list[Table]:
    """Judge each contestant on queries that nothing was chosen or fitted on."""
    if options.data is None:
        raise SystemExit(
            "benchmarks pairs --only public needs YANDEX, MQ2008, OHSUMED: give --data"
        )
    names = [name for name in PUBLIC if options.only in (None, name)]
    tables = []
    with tempfile.TemporaryDirectory() as scratch:
        kept = Kept((options.reports or Path(scratch)) / "pairs-public.jsonl")
        for name in names:
            divisions = list(folds(name, options))
            found: dict[str, list[Judged]] = {}
            for who in (*OURS, *(f"LightGBM, {n} leaves" for n in LEAVES)):
                found[who] = [
                    kept.get((name, number, who), partial(_judged, who, train, test))
                    for number, (train, test) in enumerate(divisions)
                ]
            tables.append(_table(name, found))
    return tables


def _judged(who: str, train: RankingData, test: RankingData) -> Judged:
    if who in OURS:
        model: Any = LeanRanker(**OURS[who]).fit(train)  # type: ignore[arg-type]
        pairs = len(model.model_.surfaces)
    else:
        model, pairs = tuned_leaves(int(who.split()[1]), train), 0
    u = np.asarray(model.predict(test))
    values = evaluate(test, u, measures=list(MEASURES)).per_query
    judged: Judged = {measure: values[measure].tolist() for measure in MEASURES}
    if who in OURS:  # the scale of trees is not that of this loss
        judged["loss"] = _losses(test, u)
    print(f"{who}: ndcg@10 {np.nanmean(judged['ndcg@10']):.4f}, {pairs} pairs", flush=True)
    return judged | {"features": model.n_features_, "pairs": pairs}


def _losses(data: RankingData, u: Any) -> list[float]:
    """Return softmax cross-entropy with gains as targets by query, NaN where none is positive."""
    losses = []
    for begin, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        gains, scores = np.exp2(data.y[begin:end]) - 1.0, u[begin:end]
        total = gains.sum()
        losses.append(logsumexp(scores) - gains @ scores / total if total else float("nan"))
    return losses


def _table(name: str, found: dict[str, list[Judged]]) -> Table:
    table = Table(f"{name}: lines, curves and pairs beside trees")

    def values(who: str, key: str) -> Any:
        return np.concatenate([fold[key] for fold in found[who]])

    for who, judged in found.items():
        row: dict[str, Any] = {"contestant": who}
        for key in (*MEASURES, "loss"):
            if key not in judged[0]:
                row |= {key: "", f"{key} − curves": ""}
                continue
            less = values(who, key) - values(BASE, key)
            error = np.nanstd(less) / np.sqrt(np.count_nonzero(~np.isnan(less)))
            row[key] = f"{np.nanmean(values(who, key)):.4f}"
            row[f"{key} − curves"] = "" if who == BASE else f"{np.nanmean(less):+.4f} ± {error:.4f}"
        for key in ("features", "pairs"):
            row[key] = f"{np.mean([fold[key] for fold in judged]):.1f}"
        table.add(**row)
    table.note = (
        "Five folds by query, judged once; standard convention. Differences ± standard error over "
        "queries. Loss: softmax cross-entropy with gains as targets, of our rows only. LightGBM: "
        "the best of twelve settings by NDCG@10 on a fifth of the queries to learn from, with "
        "early stopping, fitted again to all of them."
    )
    return table
