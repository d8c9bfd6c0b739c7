"""``leanrank tune``: beside tree ensembles, and beside the best single system.

Parts, for ``--only``: ``trees`` (at most ten features against LightGBM and XGBoost), ``regret``
(what the search loses against the best system chosen with hindsight), ``strengths`` (what a
single ranker loses by choosing its strength on held-out queries) and ``threads`` (two threads
beside one). ``--only trees:MQ2008``, ``trees:MQ2008:1`` and ``regret:linear`` run one set or one
fold.
"""

from __future__ import annotations

import importlib
from dataclasses import replace

from benchmarks.harness import Options, Table

PARTS = ("trees", "regret", "strengths", "threads")


def run(options: Options) -> list[Table]:
    wanted, _, rest = (options.only or "").partition(":")
    if wanted not in ("", *PARTS):
        raise SystemExit(f"--only {options.only} is not a part of tune: use {PARTS}")
    tables = []
    for part in (wanted,) if wanted else PARTS:
        module = importlib.import_module(f"benchmarks.tune.{part}")
        tables += module.run(replace(options, only=rest or None))
    return tables
