"""Where people wait: first fits, searches, requests, curves, and how costs grow.

Each part (``--only``) is a piece of work in processes of its own. With ``--before TREE``, a clone
of another version takes turns with this one. Seconds are the least of the processor's, with one
thread. Those of the clock count for ``tune`` and ``cold``, on a quiet machine. Average precision of
topics is ``pairwise --only topics``.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, show_seconds

HERE = Path(__file__).parents[2]
ROUNDS = 2

SIZES: dict[str, tuple[str, tuple[int, ...], str]] = {
    "cold": ("first fit", (0,), "≤ 5 s on the machine where the first version took 8.7"),
    "tune": ("n_jobs", (1, 2), "two threads ≥ 1.6 × one by the clock"),
    "requests": ("documents", (10,), "NumPy ≤ 100 µs, pandas ≤ 250 µs, the model ≤ 40 µs"),
    "curves": ("documents", (1_200_000,), "curves ≤ 3 × lines, peak ≤ 1.4 × X"),
    "levels": ("levels (0: all differ)", (2, 5, 20, 200, 0), "all different ≤ 2 × two levels"),
    "rankrls": ("features", (300, 600, 1_200, 2_400, 4_800), "exponent ≤ 1.2"),
    "curve_features": ("features", (60, 120, 240, 480, 960), "exponent ≤ 1.1"),
    "ranknet": ("features", (100, 200, 400, 800, 1_600), "exponent ≤ 1.2"),
    "ranknet_list": ("documents", (2_500, 5_000, 10_000, 20_000, 40_000), "≤ 1 s"),
    "minbatsrank": ("documents", (50_000, 100_000, 200_000, 400_000, 800_000), "exponent ≤ 1.05"),
    "spd": ("documents", (50_000, 100_000, 200_000, 400_000, 800_000), "steps flat"),
    "greedy": ("documents", (25_000, 50_000, 100_000, 200_000, 400_000), "exponent ≤ 1.05"),
    "parquet": ("documents", (500_000,), "≤ 1.2 × polars to NumPy, peak not above"),
    "dask": ("documents", (240_000,), "a later fit ≤ 1.2 × in memory"),
    "rankboost": ("documents", (1_600_000,), "less than sorting the columns"),
}
"""What is varied in each part, its values, and the aim."""

PARTS = tuple(SIZES)

SMALL_FIT = """
import numpy as np
from leanrank.rankers import {ranker} as Ranker
rng = np.random.default_rng(0)
X = rng.normal(size=(600, 8))
Ranker().fit(X, np.clip(np.round(X[:, 0] + 1), 0, 3), np.repeat(np.arange(30), 20))
"""


def run(options: Options) -> list[Table]:
    name = options.only or "cold"
    what, sizes, aim = SIZES[name]
    trees = {"now": HERE}
    if options.before is not None:
        trees = {"before": options.before.resolve()} | trees
    if options.quick and len(sizes) > 1 and sizes[0] > 2:
        sizes = sizes[:2]
    elif options.quick:
        sizes = tuple(size // 50 or size for size in sizes)
    found: dict[tuple[str, int, str], dict[str, float]] = {}
    for _ in range(1 if options.quick else ROUNDS):
        for size in sizes:
            for tree, root in trees.items():
                done = _cold(root) if name == "cold" else _work(root, name, size)
                for piece, figures in done.items():
                    _keep_least(found.setdefault((piece, size, tree), {}), figures)
    table = Table(f"{name.replace('_', ' ')}: aim {aim}")
    for piece in dict.fromkeys(piece for piece, _, _ in found):
        for size in sizes:
            row: dict[str, Any] = {"work": piece, what: f"{size:,}"}
            for tree in trees:
                for key, value in found.get((piece, size, tree), {}).items():
                    shown = show_seconds(value) if key in ("processor", "clock") else f"{value:.3g}"
                    row[f"{key}, {tree}"] = shown
            pair = [found.get((piece, size, tree), {}).get("processor") for tree in trees]
            if len(pair) == 2 and all(pair):
                row["before / now"] = f"{pair[0] / pair[1]:.2f}"
            table.add(**row)
        if len(sizes) > 2 and 0 not in sizes:
            spent = {
                tree: [found[piece, size, tree]["processor"] for size in sizes] for tree in trees
            }
            table.note += f"{piece}, exponents over all sizes and over the last two: " + "; ".join(
                f"{tree} {_exponent(sizes, each):.2f}, {_exponent(sizes[-2:], each[-2:]):.2f}"
                for tree, each in spent.items()
            )
            table.note += ". "
    table.note += "Seconds of the processor, the least of several, in turns."
    return [table]


def _exponent(sizes: tuple[int, ...], seconds: list[float]) -> float:
    return float(np.polyfit(np.log(sizes), np.log(np.maximum(seconds, 1e-9)), 1)[0])


def _keep_least(known: dict[str, float], figures: dict[str, float]) -> None:
    for key, value in figures.items():
        known[key] = min(value, known.get(key, value))


def _work(root: Path, name: str, size: int) -> dict[str, dict[str, float]]:
    """Do one piece of work with the package of a tree."""
    threads = {} if name == "tune" else {"OPENBLAS_NUM_THREADS": "1", "POLARS_MAX_THREADS": "1"}
    script = str(Path(__file__).with_name("work.py"))
    done = _child(root, ["-W", "ignore", script, name, str(size)], threads)
    found: dict[str, dict[str, float]] = json.loads(done.splitlines()[-1])
    return found


def _cold(root: Path) -> dict[str, dict[str, float]]:
    """Import and fit a small ranker in a process without compiled code."""
    found = {}
    for ranker in ("DominationRanker", "LeanRanker"):
        with tempfile.TemporaryDirectory() as empty:
            start = _children()
            try:
                _child(root, ["-c", SMALL_FIT.format(ranker=ranker)], {"NUMBA_CACHE_DIR": empty})
            except ImportError:  # the tree has no such ranker
                continue
            found[f"import and fit {ranker}"] = {"processor": _children() - start}
    return found


def _children() -> float:
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _child(root: Path, words: list[str], env: dict[str, str]) -> str:
    done = subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(root / "src"), **env},
        check=False,
    )
    if "ImportError: cannot import name" in done.stderr:
        raise ImportError(done.stderr)
    if done.returncode != 0:
        raise RuntimeError(f"{' '.join(words[-3:])} failed in {root}:\n{done.stderr}")
    return done.stdout
