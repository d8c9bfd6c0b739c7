"""Curves beside straight lines and ensembles of trees.

Parts, for ``--only``:

- ``quality``: MQ2008 and OHSUMED, five folds, own conventions. Every contestant chooses its
  parameters on the validation part by the measure that is reported, and is measured once on the
  test part. Trees get the twelve settings of ``leanrank compare``. ``--reports DIR`` keeps each
  result, so that a run goes on where the one before ended; ``quality:MQ2008`` is one set, and
  ``--repeat 4`` takes four folds.
- ``growth``: a made-up set with known curves, from a thousand documents to a million. A picture
  shows the curves that were learned over those that are true (``--reports DIR``).
- ``speed``: 1.2 million documents × 136 features, 8 segments, to a relative gap of 1e-6, beside
  LightGBM with 100 trees.
- ``passes``: the pass over the same documents for the gradient, beside a linear model's, and of 45
  pairs beside it; memory.
- ``scoring``: a thousand documents, by ten lines, ten curves, ten pairs beside them, and LightGBM.
- ``brute``: gradients, Hessians and optima beside explicit columns and another solver.
"""

from __future__ import annotations

from benchmarks.curves.brute import brute
from benchmarks.curves.growth import growth
from benchmarks.curves.quality import quality
from benchmarks.curves.scoring import scoring
from benchmarks.curves.speed import passes, speed
from benchmarks.harness import Options, Table

PARTS = {
    "quality": quality,
    "growth": growth,
    "speed": speed,
    "passes": passes,
    "scoring": scoring,
    "brute": brute,
}


def run(options: Options) -> list[Table]:
    wanted, _, rest = (options.only or "").partition(":")
    if wanted not in ("", *PARTS) or (rest and wanted != "quality"):
        raise SystemExit(f"--only {options.only} is not a part of curves: use {list(PARTS)}")
    tables = []
    for part in (wanted,) if wanted else PARTS:
        tables += quality(options, rest) if rest else PARTS[part](options)
    return tables
