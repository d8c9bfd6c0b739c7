"""Surfaces of two features beside curves, lines and trees.

Parts, for ``--only``:

- ``public``: YANDEX, MQ2008 and OHSUMED, five folds by query: lines, curves, at most 5, 10 and 30
  pairs, and LightGBM with 2, 3, 4 and 15 leaves. ``public:NAME`` is one set; needs ``--data``.
- ``worlds``: made-up sets whose pairs are known. ``worlds:NAME`` is one of them, and
  ``--reports DIR`` keeps each draw, so that a run goes on where the one before ended.
- ``types``: weights of runs that depend on the type of the query, made up and of MQ2007-agg.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.harness import Options, Table
from benchmarks.pairs.public import public
from benchmarks.pairs.types import types
from benchmarks.pairs.worlds import worlds

PARTS = {"public": public, "worlds": worlds, "types": types}


def run(options: Options) -> list[Table]:
    wanted, _, rest = (options.only or "").partition(":")
    if wanted not in ("", *PARTS):
        raise SystemExit(f"--only {options.only} is not a part of pairs: use {list(PARTS)}")
    some = replace(options, only=rest or None)
    parts = (wanted,) if wanted else tuple(PARTS) if options.data else ("worlds", "types")
    return [table for part in parts for table in PARTS[part](some)]
