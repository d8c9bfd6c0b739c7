"""``LeanRanker`` as it comes beside ensembles of trees that are tuned.

Parts, for ``--only``:

- ``quality``: five folds by query of YANDEX, the published folds of MQ2008 and OHSUMED, and made-up
  worlds, one of them with pairs. NDCG@10 and MAP, standard convention, of queries that nothing was
  chosen or fitted on. ``quality:YANDEX`` is one set, ``--repeat 2`` takes two folds, and
  ``--reports DIR`` keeps each result, so that a run goes on where the one before ended.
- ``choosing``: what is lost by choosing the strength on held-out queries by loss, NDCG@10 or MAP.
- ``time``: a whole fit on YANDEX, and on 1.2 million documents × 136 features beside LightGBM with
  100 trees, with peak memory. ``time:YANDEX`` and ``time:large`` are one of them.
"""

from __future__ import annotations

from dataclasses import replace

from benchmarks.flagship.choosing import choosing
from benchmarks.flagship.quality import quality
from benchmarks.flagship.speed import speed
from benchmarks.harness import Options, Table

PARTS = {"quality": quality, "choosing": choosing, "time": speed}


def run(options: Options) -> list[Table]:
    wanted, _, rest = (options.only or "").partition(":")
    if wanted not in ("", *PARTS):
        raise SystemExit(f"--only {options.only} is not a part of flagship: use {list(PARTS)}")
    some = replace(options, only=rest or None)
    parts = (wanted,) if wanted else tuple(PARTS)
    return [table for part in parts for table in PARTS[part](some)]
