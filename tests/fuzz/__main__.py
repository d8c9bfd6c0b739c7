"""``python -m tests.fuzz``: try random inputs for some seconds, and report what does not hold."""

from __future__ import annotations

import argparse
import sys
import time
from concurrent.futures import ProcessPoolExecutor, as_completed
from multiprocessing import get_context

from tests.fuzz import commands, rankers, readers, states  # noqa: F401  (they register targets)
from tests.fuzz.harness import TARGETS, Outcome, explore


def main() -> int:
    """Run the targets, each in processes of its own."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--case", type=int, help="only this input, to repeat a finding")
    parser.add_argument("--inputs", type=int, default=10**12, help="at most so many per target")
    parser.add_argument("--jobs", type=int, default=1, help="targets at a time")
    given = parser.parse_args()
    names = list(given.target or TARGETS)
    share = given.jobs * given.seconds / sum(TARGETS[name].share for name in names)
    began, total, findings = time.monotonic(), 0, 0
    pool = ProcessPoolExecutor(given.jobs, mp_context=get_context("fork"))
    running = {pool.submit(_explore, name, share, given): TARGETS[name] for name in names}
    for done in as_completed(running):
        one, result = running[done], done.result()
        total, findings = total + result.inputs, findings + len(result.findings)
        print(
            f"{one.name:22} {result.inputs:>9,} inputs {result.inputs / result.seconds:>9,.0f}/s "
            f"{result.accepted:>9,} accepted {result.refused:>9,} refused "
            f"{len(result.findings):>3} findings",
            flush=True,
        )
        for each in result.findings:
            print(f"  {each['what']}\n{each.get('trace', '')}", file=sys.stderr)
            print(f"  again: make fuzz SEED={given.seed} TARGET={one.name} CASE={each['case']}")
    seconds = time.monotonic() - began
    print(f"{total:,} inputs in {seconds:.0f} s ({total / seconds:,.0f}/s), {findings} findings")
    return 1 if findings else 0


def _explore(name: str, share: float, given: argparse.Namespace) -> Outcome:
    one = TARGETS[name]
    seconds = min(given.seconds, share * one.share)
    first, inputs = (0, given.inputs) if given.case is None else (given.case, 1)
    return explore(one, seed=given.seed, seconds=seconds, first=first, inputs=inputs)


if __name__ == "__main__":
    sys.exit(main())
