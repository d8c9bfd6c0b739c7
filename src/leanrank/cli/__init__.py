"""The command line. Heavy modules are imported inside the commands."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # importing typing takes time in which Ctrl-C is not caught
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; Ctrl-C shows no traceback, also in imports."""
    try:
        from leanrank.cli.entry import main as run

        return run(argv)
    except KeyboardInterrupt:  # while entry is imported, which handles it from then on
        print("leanrank: interrupted", file=sys.stderr, flush=True)
        return 130
