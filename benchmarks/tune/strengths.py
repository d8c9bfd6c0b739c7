"""What is lost by choosing the strength of a penalty on held-out queries, by loss or measure.

Queries are divided at random: 40% to learn from, 20% to choose by, 40% to judge by. ``--repeat N``
divides N times.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from benchmarks.harness import Options, Table
from leanrank import LinearRanker, RankingData, load_letor
from leanrank.data import load_sample
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.rankers import DominationRanker, RankNet, RankSVM
from leanrank.rankers.path import measure_models
from leanrank.selection.engine import joined_sets

CHOOSERS = ("loss", "ndcg@10", "map")
JUDGES = ("ndcg@10", "map")
RANKERS = {
    "Domination Rank": DominationRanker(tol=1e-5),
    "RankNet ℓ1": RankNet(l1_ratio=1.0, tol=1e-5),
    "RankSVM ℓ1": RankSVM(l1_ratio=1.0, tol=1e-5),
    "softmax, curves": LinearRanker("softmax", curves="auto", tol=1e-4),
}
SETS = ("MQ2008", "OHSUMED", "YANDEX")


def run(options: Options) -> list[Table]:
    n_divisions = 2 if options.quick else 3 * options.repeat
    sets = {"sample": joined_sets(*load_sample())}
    if options.data is not None:
        sets = {name: _whole(options.data / name) for name in SETS if options.only in (None, name)}
    table = Table(f"Regret of the strength, {n_divisions} random divisions")
    for name, data in sets.items():
        for title, ranker in RANKERS.items():
            regrets = np.array([_regrets(data, ranker, seed) for seed in range(n_divisions)])
            means, errors = regrets.mean(axis=0), regrets.std(axis=0) / np.sqrt(n_divisions)
            table.add(
                set=name,
                ranker=title,
                **{
                    f"{judge} by {chooser}": f"{means[c, j]:.4f} ± {errors[c, j]:.4f}"
                    for j, judge in enumerate(JUDGES)
                    for c, chooser in enumerate(CHOOSERS)
                },
            )
    table.note = (
        "Regret: the best of 30 strengths on the queries that judge, with hindsight, less the one "
        "that held-out queries prefer by loss, NDCG@10 or MAP; ± standard error over divisions."
    )
    return [table]


def _whole(folder: Path) -> RankingData:
    """Read the training part, or all three parts of the first of several folds."""
    if not (folder / "Fold1").is_dir():
        return load_letor(folder / "train.txt")
    train = load_letor(folder / "Fold1" / "train.txt")
    others = ("vali.txt", "test.txt")
    files = [load_letor(folder / "Fold1" / f, n_features=train.n_features) for f in others]
    return joined_sets(train, *files)


def _regrets(data: RankingData, ranker: LinearRanker, seed: int) -> list[list[float]]:
    """Return the regret of each chooser in each measure, for one division."""
    share = np.random.default_rng(seed).permutation(data.n_queries) / data.n_queries
    parts = [(0.0, 0.4), (0.4, 0.6), (0.6, 1.0)]
    train, held_out, test = (data.queries[(share >= a) & (share < b)] for a, b in parts)
    scaler = make_normalizer("standard").fit(train)
    train, held_out, test = map(scaler.transform, (train, held_out, test))
    how = {"n_alphas": 30, "alpha_min_ratio": 3e-3}
    path = ranker.path(train, validation=held_out, measures=CHOOSERS, **how)
    truth = measure_models(path.coefs, test, JUDGES, "standard", path.ramps)
    at = [path.best(chooser) for chooser in CHOOSERS]
    return [[float(np.nanmax(truth[j]) - truth[j][k]) for j in JUDGES] for k in at]
