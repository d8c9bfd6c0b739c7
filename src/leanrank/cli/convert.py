"""``leanrank convert``: the same data in another format."""

from __future__ import annotations

from typing import Annotated

import typer

from leanrank.cli import options


def convert(
    source: Annotated[str, typer.Argument(metavar="IN", help="Data to read, or -.")],
    target: Annotated[str, typer.Argument(metavar="OUT", help="File to write, or -.")],
    format: options.Format = None,
    read: options.Read = None,
    to: Annotated[
        str | None,
        typer.Option(
            "--to", "-t", metavar="NAME", help="Format to write; found from OUT if left out."
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Write data in the format that OUT's name says.

    For example: leanrank convert train.txt.gz train.parquet
    """
    from leanrank.cli import screen
    from leanrank.cli.datafiles import check_folder, read_data
    from leanrank.errors import InputError

    check_folder(target)
    if json and target == "-":
        raise InputError("--json and the data both go to standard output: give the data a file")
    with screen.progress() as say:
        from leanrank.data import dump

        say(f"Reading {source}")
        data = read_data(source, format, read)
        say(f"Writing {target}")
        dump(data, target, format=to)
    if json:
        screen.print_json(
            {
                "source": source,
                "target": target,
                "queries": data.n_queries,
                "documents": len(data),
                "features": data.n_features,
            }
        )
    elif target != "-":
        console = screen.screen()
        console.print(screen.facts({"data": screen.data_summary(data)}))
        console.print(f"Written to {target}", soft_wrap=True)
