"""Domination Rank: against its paper's algorithm, at scale, in threads, and in quality.

Parts, for ``--only``: ``paper`` (Newton against bound coordinate descent), ``sparse`` (RCV1's size,
in passes over X), ``dense`` (MSLR-WEB10K's size, against LightGBM), ``growth`` (time by size),
``threads``, ``quality`` (test measures on public sets, beside LightGBM and XGBoost), ``peers``
(sparse models of a text collection, beside skglm and celer).
"""

from __future__ import annotations

import importlib

from benchmarks.harness import Options, Table

PARTS = ("paper", "sparse", "dense", "growth", "threads", "quality", "peers")
NEED_DATA = {"paper", "quality"}


def run(options: Options) -> list[Table]:
    if options.only is not None and options.only not in PARTS:
        raise SystemExit(f"--only {options.only} is not a part of domination: use {PARTS}")
    tables = []
    for part in PARTS if options.only is None else (options.only,):
        if part in NEED_DATA and options.data is None:
            print(f"{part} needs public data sets: give --data; left out")
            continue
        print(f"domination: {part}", flush=True)
        module = importlib.import_module(f"benchmarks.domination.{part}")
        tables += module.run(options)
    return tables
