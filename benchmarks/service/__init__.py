"""A ranker in use: false alarms of ``check``, damage that it finds, bounds of a refit, warm refits.

Parts, one at a time with ``--only``:

- ``alarms``: a model learns from one half of the queries, and is checked on the other, 200 times.
- ``damage``: six kinds of damage to a feature, for every feature that a model reads.
- ``bound``: the bound of the gain of a refit beside the gain of the real one, on 50 problems.
- ``refit``: processor time of a warm refit beside a cold one, 1.2 million documents × 136 features.
- ``next``: documents that ``judge-next`` names beside a random choice.
- ``judges``: expected gains beside the majority vote, with made-up judges whose noise is known.
"""

from __future__ import annotations

from benchmarks.harness import Options, Table

PARTS = ["alarms", "damage", "bound", "refit", "judges", "next"]


def run(options: Options) -> list[Table]:
    from benchmarks.service import checks, judged_next, judges, refits

    parts = {
        "alarms": checks.alarms,
        "damage": checks.damage,
        "bound": refits.bound,
        "refit": refits.refit,
        "judges": judges.judges,
        "next": judged_next.judged_next,
    }
    return [parts[name](options) for name in ([options.only] if options.only else PARTS)]
