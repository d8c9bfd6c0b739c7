"""``leanrank export``: a model for the system that computes rankings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer
from typer import Argument, Option

from leanrank._files import atomic_write
from leanrank.cli import options
from leanrank.cli.datafiles import check_apart, check_folder, read_data, read_table
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
    expression_only: Annotated[
        bool,
        Option(
            "--expression-only",
            help="The SQL expression of one row only, as for a generated column or an index.",
        ),
    ] = False,
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
    folder = to.startswith("deploy:")
    if folder and (output == "-" or Path(output).exists()):
        raise InputError(f"{to} writes a folder: name one that does not exist yet with -o FOLDER")
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
        expression_only=expression_only,
        data=None if data is None else read_typed(data, ranker, typed=to.startswith("sql:")),
        **read_names(names),
    )
    if isinstance(content, dict):
        for file, text in content.items():
            path = Path(output, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return
    with atomic_write(output, "wb" if isinstance(content, bytes) else "w") as stream:
        stream.write(content)


def read_names(path: str | None) -> dict[str, Any]:
    """Read what features are called in the target, constants added there, and types of columns.

    A CSV file with a header: ``feature``, ``name`` and, if wanted, ``shift`` and ``type``.
    """
    if path is None:
        return {}
    import csv

    from leanrank.data.sources import parse_number, text_lines

    names: dict[str, str] = {}
    shifts: dict[str, float] = {}
    types: dict[str, str] = {}
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
            if row.get("type"):
                types[name] = row["type"]
    except csv.Error as error:
        raise ParseError(f"this is no CSV text ({error})", path=path) from error
    return {"names": names, "shifts": shifts, "types": types}


def read_typed(
    path: str, model: Any, format: str | None = None, read: Any = None, typed: bool = True
) -> Any:
    """Read documents; a table with named columns keeps their types, if ``typed``."""
    from leanrank.model.terms import Levels

    named = model.feature_names is not None and format is None and not read
    if not (typed and named and path.endswith((".parquet", ".csv"))):
        return read_data(path, format, read, model=model, optional=["label"])
    texts = {at for at, one in model.curves.items() if isinstance(one, Levels) and one.is_text}
    return read_table(path, {model.feature_names[at] for at in texts})


def _print_targets() -> None:
    from leanrank.model.export import TARGETS

    for target in TARGETS.values():
        can = ["linear"] + ["curves"] * target.curves + list(target.scalers)
        typer.echo(f"{target.name:<22} {target.summary} ({', '.join(can)})")
