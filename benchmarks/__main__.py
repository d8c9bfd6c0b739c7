"""``python -m benchmarks NAME [--data DIR] [--repeat N] [--quick]``."""

from __future__ import annotations

import argparse
import importlib
import os
import pkgutil
from pathlib import Path

import benchmarks
from benchmarks.harness import Options, machine, save

_TOOLS = {"__main__", "harness"}


def main() -> None:
    names = sorted(
        m.name for m in pkgutil.iter_modules(benchmarks.__path__) if m.name not in _TOOLS
    )
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=benchmarks.__doc__)
    parser.add_argument("names", nargs="+", choices=names, metavar="NAME", help=", ".join(names))
    parser.add_argument(
        "--data",
        type=Path,
        default=Path(os.environ["LEANRANK_DATA"]) if "LEANRANK_DATA" in os.environ else None,
        help="directory with public data sets (default: $LEANRANK_DATA)",
    )
    parser.add_argument("--repeat", type=int, default=5)
    parser.add_argument("--quick", action="store_true", help="small sizes, to see that it runs")
    parser.add_argument("--only", help="run one part of a benchmark")
    parser.add_argument("--budget", help="time for one search, such as 10s (tune only)")
    parser.add_argument(
        "--reports", type=Path, help="directory for reports, and for runs that are kept"
    )
    parser.add_argument("--before", type=Path, help="source tree of another version (tune, waits)")
    parser.add_argument(
        "--scratch", type=Path, help="directory for large temporary files (scale only)"
    )
    parser.add_argument(
        "--out",
        type=Path,
        default=Path("benchmarks/results"),
        help="directory for the figures; docs/figures publishes them",
    )
    args = parser.parse_args()
    if args.quick and "docs" in args.out.parts:
        parser.error("figures of --quick are not published: leave --quick or --out out")
    print(" ".join(f"{key}={value}" for key, value in machine().items()), flush=True)
    for name in args.names:
        module = importlib.import_module(f"benchmarks.{name}")
        about = (module.__doc__ or "").partition("\n\n")[0]
        for part in [args.only] if args.only else getattr(module, "PARTS", [None]):
            options = Options(
                args.data,
                args.repeat,
                args.quick,
                part,
                args.budget,
                args.reports,
                args.before,
                args.scratch,
            )
            tables = module.run(options)
            for table in tables:
                print("\n" + table.markdown(), flush=True)
            command = f"python -m benchmarks {name}" + f" --only {part}" * bool(part)
            command += " --data DIR" * (args.data is not None) + " --quick" * args.quick
            command += f" --budget {args.budget}" * (args.budget is not None)
            command += f" --repeat {args.repeat}" * (args.repeat != parser.get_default("repeat"))
            file = f"{name}-{part}" if part else name
            if tables:  # none where public sets are missing
                save(file, tables, args.out, about=about, command=command, quick=args.quick)


if __name__ == "__main__":
    main()
