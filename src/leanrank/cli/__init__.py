"""The command line: one command per file. Heavy imports wait inside the commands."""

from __future__ import annotations

import sys

TYPE_CHECKING = False  # typing's own would import it, before an interrupt can be caught
if TYPE_CHECKING:
    from collections.abc import Sequence

__all__ = ["main"]


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code; an interrupted import is no traceback."""
    try:
        from leanrank.cli.entry import main as run

        return run(argv)
    except KeyboardInterrupt:  # as entry.main says it, which may not be there yet
        print("leanrank: interrupted", file=sys.stderr, flush=True)
        return 130
