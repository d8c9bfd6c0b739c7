"""The application: its commands and their summaries.

Building a command takes milliseconds (its options are read from its signature), so only the command
that runs is built. The others are listed by name and summary.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from importlib import import_module
from typing import Annotated, Any

import typer
from typer import Option

from leanrank._version import __version__
from leanrank.cli.options import explained

COMMANDS = {
    "demo": "Learn on the sample set and compare with simple rules.",
    "train": "Learn a ranking function and write it as a model file.",
    "predict": "Score documents with a model, one number per line.",
    "evaluate": "Measure how well scores rank judged documents.",
    "tune": "Search for the best model within your limits.",
    "compare": "Compare all systems on the same data.",
    "systems": "List available systems, or the parameters of one.",
    "report": "Write a page about a model and its data.",
    "explain": "Show what the scores of a query's documents are made of.",
    "diff": "Show what a new model would change.",
    "check": "Check whether a model is still right for today's documents.",
    "judge-next": "Choose the documents whose judgment would help most.",
    "join": "Join an engine's feature log with judgments.",
    "fuse": "Learn the weights of a hybrid search.",
    "export": "Write a model for an engine, a database or a program.",
    "verify": "Check that an engine computes the scores of a model.",
    "convert": "Write data in another format.",
    "warmup": "Compile in advance what a first run would compile.",
}
"""The commands. Each is the function of its name in the module of that name or of ``MODULES``."""

MODULES = {
    **dict.fromkeys(("explain", "diff", "check", "judge-next"), "service"),
    **dict.fromkeys(("predict", "compare"), "evaluate"),
    **dict.fromkeys(("warmup", "demo"), "systems"),
    **{"join": "convert", "report": "tune", "verify": "export"},
}


def make_app(arguments: Sequence[str]) -> typer.Typer:
    """Return the application for these arguments."""
    # Plain help: rendering it with rich would double the time of `leanrank --help`.
    app = typer.Typer(
        name="leanrank",
        rich_markup_mode=None,
        pretty_exceptions_enable=False,
        context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
    )
    app.callback(invoke_without_command=True)(leanrank)
    chosen = next((word for word in arguments if not word.startswith("-")), None)
    completing = "_LEANRANK_COMPLETE" in os.environ
    for name, summary in COMMANDS.items():
        function = _load(name) if completing or name == chosen else _not_built
        app.command(name, short_help=summary)(function)
    return app


def _show_version(requested: bool) -> None:
    if requested:
        typer.echo(f"leanrank {__version__}")
        raise typer.Exit


def leanrank(
    context: typer.Context,
    version: Annotated[
        bool,
        Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, Option("--debug", help="Show tracebacks of errors; as LEANRANK_DEBUG=1.")
    ] = False,
) -> None:
    """Learn small, fast, readable ranking functions, and put them to work.

    Commands read and write files; - is standard input or output.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


def _load(name: str) -> Callable[..., Any]:
    module = import_module(f"leanrank.cli.{MODULES.get(name, name)}")
    return explained(getattr(module, name.replace("-", "_")))


def _not_built() -> None:
    raise AssertionError("a command that was not built cannot be run")
