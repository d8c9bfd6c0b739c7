"""The commands, put together."""

from __future__ import annotations

from typing import Annotated

import typer

from leanrank._version import __version__
from leanrank.cli.convert import convert
from leanrank.cli.demo import demo
from leanrank.cli.evaluate import evaluate
from leanrank.cli.predict import predict
from leanrank.cli.train import train

# Plain help: rendering it with rich would double the time of `leanrank --help`.
app = typer.Typer(
    name="leanrank",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)


def _show_version(wanted: bool) -> None:
    if wanted:
        typer.echo(f"leanrank {__version__}")
        raise typer.Exit


@app.callback(invoke_without_command=True)
def leanrank(
    context: typer.Context,
    version: Annotated[
        bool,
        typer.Option(
            "--version", callback=_show_version, is_eager=True, help="Show the version and exit."
        ),
    ] = False,
    debug: Annotated[
        bool, typer.Option("--debug", help="Show tracebacks; also LEANRANK_DEBUG=1.")
    ] = False,
) -> None:
    """Learn small, fast, linear ranking functions, and put them to work.

    Files in, files out, - for standard streams.
    """
    if context.invoked_subcommand is None:
        typer.echo(context.get_help(), err=True)
        raise typer.Exit(2)


for _command in (demo, train, predict, evaluate, convert):
    app.command()(_command)
