"""Users, learners, interleaving and counterfactual evaluation, beside what is known to be true.

Parts, for ``--only``: ``simulation`` (lists of ten per second, and the rounds of EM), ``learners``
(the time of a list that is served and learned from, beside plain NumPy), ``fairness`` (how often a
ranker is preferred when clicks mean nothing), ``sensitivity`` (lists until a difference of 0.01
NDCG@10 is found, interleaved and in a paired A/B test, both stopped by a confidence sequence),
``offpolicy`` (bias and coverage of estimates from a log). MQ2008 is used where it is there, else
made-up data.
"""

from __future__ import annotations

import importlib

from benchmarks.harness import Options, Table

PARTS = ("simulation", "learners", "fairness", "sensitivity", "offpolicy")


def run(options: Options) -> list[Table]:
    if options.only is not None and options.only not in PARTS:
        raise SystemExit(f"--only {options.only} is not a part of online: use {PARTS}")
    tables = []
    for part in PARTS if options.only is None else (options.only,):
        print(f"online: {part}", flush=True)
        tables += importlib.import_module(f"benchmarks.online.{part}").run(options)
    return tables
