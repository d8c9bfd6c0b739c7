"""``leanrank export``: a model for the system that computes rankings."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from leanrank._files import atomic_write
from leanrank.cli import options
from leanrank.cli.datafiles import check_apart, check_folder, read_data
from leanrank.errors import InputError, ParseError


def export(
    model: Annotated[str | None, Argument(metavar="MODEL", help="A model file, or -.")] = None,
    to: Annotated[
        str | None, Option("--to", "-t", metavar="TARGET", help="Where to; see --list.")
    ] = None,
    output: Annotated[
        str, Option("--output", "-o", metavar="FILE", help="Where to write it, or -.")
    ] = "-",
    name: options.ExportName = "leanrank",
    names: options.Names = None,
    normalizers: options.Normalizers = False,
    table: options.TableName = "documents",
    qid: options.QueryColumn = "qid",
    top: Annotated[int, Option(metavar="K", min=1, help="Documents a request asks for.")] = 10,
    featureset: options.Featureset = None,
    max_error: options.MaxError = None,
    data: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Typical documents: the range of straight lines in trees, and a constant that "
            "makes scores positive in the plugins.",
        ),
    ] = None,
    list_targets: Annotated[
        bool, Option("--list", help="List the targets and what each can express.")
    ] = False,
) -> None:
    """Write a model for a search engine, a database or a program.

    For example: leanrank export m.json --to sql:duckdb -o score.sql
    """
    if list_targets:
        _print_targets()
        return
    from leanrank.model import load_model
    from leanrank.model.export import export_model

    if model is None or to is None:
        raise InputError(
            "give a model and a target, such as m.json --to sql:duckdb; --list shows the targets"
        )
    check_folder(output)
    check_apart([output], [model])
    ranker = load_model(model)
    content = export_model(
        ranker,
        to,
        name=name,
        normalizers=normalizers,
        table=table,
        qid=qid,
        top=top,
        featureset=featureset,
        max_error=max_error,
        data=None if data is None else read_data(data, None, None, model=ranker),
        **read_names(names),
    )
    with atomic_write(output, "wb" if isinstance(content, bytes) else "w") as stream:
        stream.write(content)


def read_names(path: str | None) -> dict[str, Any]:
    """Read what features are called in the target, and constants added to them there.

    A CSV file with a header: ``feature``, ``name`` and, if wanted, ``shift``.
    """
    if path is None:
        return {}
    import csv

    from leanrank.data.sources import parse_number, text_lines

    names: dict[str, str] = {}
    shifts: dict[str, float] = {}
    reader = csv.DictReader((text for _, text in text_lines(path)), strict=True)
    try:
        if not {"feature", "name"} <= set(reader.fieldnames or ()):
            raise ParseError("the header must have feature and name", path=path, line=1)
        for row in reader:
            feature, name, line = row["feature"], row["name"], reader.line_num
            if not feature or not name:
                raise ParseError("a feature or a name is empty", path=path, line=line)
            if feature in names:
                raise ParseError(f"{feature!r} is named twice", path=path, line=line)
            names[feature] = name
            shift = parse_number(row.get("shift") or "0", "shift", path, line)
            if shift != 0:
                shifts[name] = shift
    except csv.Error as error:
        raise ParseError(f"this is no CSV text ({error})", path=path) from error
    return {"names": names, "shifts": shifts}


def _print_targets() -> None:
    from leanrank.model.export import TARGETS

    for target in TARGETS.values():
        can = ["linear"] + ["curves"] * target.curves + list(target.scalers)
        typer.echo(f"{target.name:<22} {target.summary} ({', '.join(can)})")
