"""All systems on the five folds of public sets, in the conventions of their own tools.

The guide to choosing a system is written from these figures.
"""

from __future__ import annotations

from benchmarks.harness import Options, Table
from leanrank.selection.compare import cells, compare_systems, head
from leanrank.selection.systems import installed, system_names
from papers.public_sets import fetch, find_set

SETS = ("MQ2008", "OHSUMED")


def run(options: Options) -> list[Table]:
    folds = (1,) if options.quick else (1, 2, 3, 4, 5)
    names = ["domination", "rankrls"] if options.quick else list(filter(installed, system_names()))
    tables = []
    for name in SETS:
        there = fetch(name, data_dir=options.data, download=False)
        how = {"convention": find_set(name).convention, "scale": "auto"}
        compared = compare_systems(name, map(there.fold, folds), names, **how)
        table = Table(compared.name, note=" ".join(compared.problems))
        heads = [*map(head, compared.measures), "used"]
        for row in compared.rows:
            figures = dict(zip(heads, cells(row, compared.measures), strict=False))
            table.add(name=row.system, system=row.title, **figures)
        tables.append(table)
    return tables
