"""Learning by steps: speed and quality beside other learners, growth with the data, memory.

Parts, for ``--only``: ``speed`` (SPD and MinBatSRank against scikit-learn's SGDClassifier and
Vowpal Wabbit on pairs that were built before: steps a second, and the time to 99 % of the batch
optimum's validation MAP), ``growth`` (a million SPD steps on ever more documents), ``memory``
(10 GB of text, and as much from a generator, each in a process of its own).
"""

from __future__ import annotations

import importlib

from benchmarks.harness import Options, Table

PARTS = ("speed", "growth", "memory")


def run(options: Options) -> list[Table]:
    if options.only is not None and options.only not in PARTS:
        raise SystemExit(f"--only {options.only} is not a part of stochastic: use {PARTS}")
    tables = []
    for part in PARTS if options.only is None else (options.only,):
        print(f"stochastic: {part}", flush=True)
        tables += importlib.import_module(f"benchmarks.stochastic.{part}").run(options)
    return tables
