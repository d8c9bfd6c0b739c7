"""``python -m tests.fuzz``: try random inputs for some seconds, and report what does not hold."""

from __future__ import annotations

import argparse
import sys
import time

from tests.fuzz import rankers, readers, states  # noqa: F401  (they register their targets)
from tests.fuzz.harness import TARGETS, explore


def main() -> int:
    """Run the targets one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("--seconds", type=float, default=60.0, help="for all targets together")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--target", action="append", choices=sorted(TARGETS))
    parser.add_argument("--case", type=int, help="only this input, to repeat a finding")
    parser.add_argument("--inputs", type=int, default=10**12, help="at most so many per target")
    given = parser.parse_args()
    chosen = [TARGETS[name] for name in given.target or TARGETS]
    shares = sum(one.share for one in chosen)
    began, total, findings = time.monotonic(), 0, 0
    for one in chosen:
        seconds = given.seconds * one.share / shares
        first, inputs = (0, given.inputs) if given.case is None else (given.case, 1)
        result = explore(one, seed=given.seed, seconds=seconds, first=first, inputs=inputs)
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


if __name__ == "__main__":
    sys.exit(main())
