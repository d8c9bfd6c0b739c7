"""The command line: one command per file. Heavy imports wait inside the commands."""

from leanrank.cli.entry import main

__all__ = ["main"]
