"""Published experiments run again: the tables of ``python -m papers PAPER --data DIR``.

``--only`` picks a paper, or with ``-online`` after its name the experiment with clicks that it
leaves open; that one keeps its runs in ``--reports`` and goes on from there.
"""

from __future__ import annotations

from benchmarks.harness import Options, Table
from papers import PAPERS, get_paper
from papers.report import ComparedTable

ONLINE = "tsivtsivadze2012-online"
PARTS = (*PAPERS, ONLINE)


def run(options: Options) -> list[Table]:
    if options.only not in PARTS:
        raise SystemExit(f"--only {options.only} is not a paper: use {', '.join(PARTS)}")
    module = get_paper(options.only.removesuffix("-online"), online=options.only == ONLINE)
    kept = options.reports if options.only == ONLINE else None
    report = module.run(options.data, kept, say=print, n_jobs=-1)
    notes = " ".join(report.notes).replace(str(options.data), "DIR")
    summary = Table(report.title, note=notes)
    summary.add(paper=options.only, result=report.summary)
    return [summary, *map(_figures, report.tables)]


def _figures(compared: ComparedTable) -> Table:
    """Return a table with what was printed beside what came out."""
    table = Table(compared.title)
    for label, cells in compared.rows:
        row = {"": label}
        for at, (name, cell) in enumerate(zip(compared.columns, cells, strict=True)):
            published, ours = cell.texts()
            if compared.has_published(at):
                row[f"{name}, published"] = published
            if compared.has_ours(at):
                row[f"{name}, ours" if compared.has_published(at) else name] = ours
        table.add(**row)
    return table
