"""What is lost by choosing the strength of the penalty on held-out queries, by loss or measure."""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from leanrank import LinearRanker, load_letor
from leanrank.data.ranking_data import RankingData
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.metrics import evaluate
from leanrank.rankers.lean import EMPHASIS

MEASURES = ("ndcg@10", "map")
N_DIVISIONS, N_STRENGTHS = 20, 14


def choosing(options: Options) -> list[Table]:
    if options.data is None:
        print("choosing needs YANDEX: give --data; left out")
        return []
    data = load_letor(options.data / "YANDEX" / "train.txt")
    n_divisions = 3 if options.quick else N_DIVISIONS
    return [regrets(data, n_divisions, "YANDEX")]


def regrets(data: RankingData, n_divisions: int, name: str) -> Table:
    """Divide at random: 40% to learn from, 20% to choose by, 40% to judge by."""
    loss = get_loss("softmax", emphasis=EMPHASIS)
    found: dict[str, list[list[float]]] = {chooser: [] for chooser in ("loss", *MEASURES)}
    for seed in range(n_divisions):
        share = np.random.default_rng(seed).permutation(data.n_queries) / data.n_queries
        train, held_out, test = (
            data.queries[(share >= low) & (share < high)]
            for low, high in ((0.0, 0.4), (0.4, 0.6), (0.6, 1.0))
        )
        ranker = LinearRanker(loss, curves="auto", tol=1e-4)
        path = ranker.path(train, n_alphas=N_STRENGTHS, alpha_min_ratio=0.003)
        models = [path.model(at) for at in range(len(path))]
        by_loss = [-_loss(loss, held_out, model.predict(held_out)) for model in models]
        worth = {"loss": by_loss, **_measured(held_out, models)}
        truth = _measured(test, models)
        for chooser, values in worth.items():
            at = int(np.argmax(values))
            found[chooser].append([max(truth[m]) - truth[m][at] for m in MEASURES])
    table = Table(f"{name}: regret of the strength, {n_divisions} random divisions")
    for chooser, each in found.items():
        means, errors = np.mean(each, axis=0), np.std(each, axis=0) / np.sqrt(n_divisions)
        shown = [f"{mean:.4f} ± {error:.4f}" for mean, error in zip(means, errors, strict=True)]
        table.add(**{"chosen by held-out": chooser}, **dict(zip(MEASURES, shown, strict=True)))
    table.note = (
        f"Curves, softmax loss, {N_STRENGTHS} strengths. Regret: the best strength on the queries "
        "that judge, with hindsight, less the chosen one; ± standard error over divisions."
    )
    return table


def _measured(data: RankingData, models: list[Any]) -> dict[str, list[float]]:
    found = [evaluate(data, model.predict(data), measures=list(MEASURES)).means for model in models]
    return {measure: [float(each[measure]) for each in found] for measure in MEASURES}


def _loss(loss: Any, data: RankingData, scores: Any) -> float:
    plan = loss.prepare(Labels(data.y, data.query_ptr))
    return float(loss.evaluate(plan, 0, data.n_queries, scores, np.zeros(len(data))))
