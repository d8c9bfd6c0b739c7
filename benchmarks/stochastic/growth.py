"""A million SPD steps cost the same whatever the number of documents.

×1 has the shape of RCV1's training split: 23,149 documents, 47,236 words, 76 words a document. The
steps are timed apart from the index of levels, which is made once and reads every label.
"""

from __future__ import annotations

import time

import numpy as np

from benchmarks.domination.sparse import text_collection
from benchmarks.harness import Options, Table, Timing, show_seconds
from leanrank.data.ranking_data import RankingData
from leanrank.losses.base import Labels
from leanrank.rankers import SPD
from leanrank.solvers.sampling.pair_descent import descend, make_pair_block

DOCUMENTS, WORDS, PER_DOCUMENT = 23_149, 47_236, 76
FACTORS = (1, 4, 16)


def run(options: Options) -> list[Table]:
    n_steps = 20_000 if options.quick else 1_000_000
    shrink = 20 if options.quick else 1
    table = Table(f"{n_steps:,} SPD steps on sparse text, one topic with 2 % relevant documents")
    blocks = {}
    for factor in FACTORS:
        n = factor * DOCUMENTS // shrink
        data = text_collection(n, WORDS, n * PER_DOCUMENT)
        blocks[factor] = (data, *_prepared(data))
    ranker = SPD(alpha=1e-4)

    def steps(factor: int) -> np.ndarray:
        data, block, _ = blocks[factor]
        state = ranker._begin(block, data.n_features, 0, 1)
        descend(state, block, n_steps)
        return state.weights()

    seconds: dict[int, list[float]] = {factor: [] for factor in FACTORS}
    for at in range(1 + min(3, options.repeat)):
        for factor in FACTORS:  # in turns; the first round compiles
            start = time.process_time()
            steps(factor)
            if at:
                seconds[factor].append(time.process_time() - start)
    timings = {factor: Timing(found) for factor, found in seconds.items()}
    for factor in FACTORS:
        data, _, index_seconds = blocks[factor]
        timing = timings[factor]
        table.add(
            documents=f"×{factor}: {len(data):,}",
            **{"values": f"{data.X.nnz / 1e6:.1f} M", "steps": str(timing)},
            **{"steps/s": f"{n_steps / timing.median:,.0f}"},
            **{"time, × the smallest": timing.median / timings[1].median},
            index=show_seconds(index_seconds),
        )
    table.note = (
        "One thread, seconds of the processor. The index is made once, and reads every label; the "
        "first one includes loading compiled code."
    )
    return [table]


def _prepared(data: RankingData) -> tuple[object, float]:
    labels = Labels(y=data.y, query_ptr=data.query_ptr)
    start = time.process_time()
    block = make_pair_block(data.X, labels)
    return block, time.process_time() - start
