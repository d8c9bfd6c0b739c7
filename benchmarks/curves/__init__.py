"""Curves beside straight lines and ensembles of trees.

Parts, for ``--only``:

- ``quality``: MQ2008 and OHSUMED, five folds, own conventions. Every contestant chooses its
  parameters on the validation part by the measure that is reported, and is measured once on the
  test part. Trees get the twelve settings of ``leanrank compare``.
- ``growth``: a made-up set with known curves, from a thousand documents to a million. A picture
  shows the curves that were learned over those that are true (``--reports DIR``).
- ``speed``: 1.2 million documents × 136 features, 8 segments, to a relative gap of 1e-6, beside
  LightGBM with 100 trees; the pass for the gradient beside that of a linear model; memory.
"""

from __future__ import annotations

from benchmarks.curves.growth import growth
from benchmarks.curves.quality import quality
from benchmarks.curves.speed import speed
from benchmarks.harness import Options, Table

PARTS = {"quality": quality, "growth": growth, "speed": speed}


def run(options: Options) -> list[Table]:
    if options.only is not None and options.only not in PARTS:
        raise SystemExit(f"--only {options.only} is not a part of curves: use {list(PARTS)}")
    chosen = PARTS if options.only is None else [options.only]
    return [table for part in chosen for table in PARTS[part](options)]
