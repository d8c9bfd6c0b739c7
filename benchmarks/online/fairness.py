"""How often one of two rankers is preferred when it should not be."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Options, Table
from benchmarks.online.traffic import METHODS, Pair
from leanrank.data import RankingData
from leanrank.online import ClickModel

N = 20  # documents, of which ten are shown
BASE = np.arange(N)
PAIRS = {
    "identical": BASE,
    "first moved to the end": np.roll(BASE, -1),
    "last moved to the top": np.roll(BASE, 1),
    "reversed": BASE[::-1],
    "fourth moved to the top": np.array([3, 0, 1, 2, *range(4, N)]),
}


def run(options: Options) -> list[Table]:
    n = 10_000 if options.quick else 200_000
    note = (
        "Users click each document with probability 0.3, and stop after a click with 0.2. "
        "* marks what differs from 0 by more than four standard errors."
    )
    often = Table(f"Random clicks: lists that prefer a less those that prefer b, % of {n:,}")
    credit = Table("Random clicks: mean credit of a less that of b, per click, in %", note=note)
    user = ClickModel.cascade([0.3], [0.2])
    data = RankingData(np.zeros((N, 1)), np.zeros(N), qid=[0] * N)
    for name, order in PAIRS.items():
        scores = np.empty(N)
        scores[order] = -np.arange(float(N))
        pair = Pair.of(data, -np.arange(float(N)), scores)
        values = {m: pair.credits(m, user, n, seed=1) for m in METHODS}
        often.add(**{"ranker b": name}, **{m: _marked(np.sign(v)) for m, v in values.items()})
        credit.add(**{"ranker b": name}, **{m: _marked(v) for m, v in values.items()})
    return [often, credit]


def _marked(values: np.ndarray) -> str:
    mean, error = 100 * values.mean(), 100 * values.std() / np.sqrt(len(values))
    return f"{mean:+.2f}{'*' if abs(mean) > 4 * error + 1e-12 else ''}"
