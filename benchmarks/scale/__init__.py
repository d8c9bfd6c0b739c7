"""Exact fits of data that are larger than memory, or on several machines.

Each module of this folder is a part, for ``--only``.
"""

from __future__ import annotations

import importlib
import pkgutil

from benchmarks.harness import Options, Table

PARTS = tuple(sorted(module.name for module in pkgutil.iter_modules(__path__)))


def run(options: Options) -> list[Table]:
    if options.only is not None and options.only not in PARTS:
        raise SystemExit(f"--only {options.only} is not a part of scale: use {PARTS}")
    tables = []
    for part in PARTS if options.only is None else (options.only,):
        print(f"scale: {part}", flush=True)
        tables += importlib.import_module(f"benchmarks.scale.{part}").run(options)
    return tables
