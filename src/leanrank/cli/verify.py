"""``leanrank verify``: does an engine compute the scores of a model?"""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import read_data, stdin_once
from leanrank.errors import FileError, InputError, MissingDependencyError


def verify(
    model: Annotated[str, Argument(metavar="MODEL", help="A model file, or -.")],
    data: Annotated[str, Argument(metavar="DATA", help="Documents to score, or -.")],
    target: Annotated[
        str | None, Option("--target", "-t", metavar="TARGET", help="The export to run.")
    ] = None,
    logged: Annotated[
        str | None, Option(metavar="FILE", help="Scores of your engine: CSV or JSON lines.")
    ] = None,
    tolerance: Annotated[
        float,
        Option(
            metavar="GAP",
            min=0,
            help="Difference of two documents up to which their order does not matter.",
        ),
    ] = 1e-6,
    name: options.ExportName = "leanrank",
    names: options.Names = None,
    table: options.TableName = "documents",
    qid: options.QueryColumn = "qid",
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
) -> None:
    """Run an export where its engine is at hand, or compare scores that your engine logged.

    The exit code is 1 if an order changes beyond the tolerance.

    For example: leanrank verify m.json test.txt --target sql:duckdb
    """
    from leanrank.cli.export import read_names
    from leanrank.model import load_model
    from leanrank.model.export import formula_of
    from leanrank.model.verify import read_logged, verify_export, verify_logged

    if target is None and logged is None:
        raise InputError("say what to compare: --target with an export, or --logged with scores")
    stdin_once(model, data)
    given = {"name": name, "table": table, "qid": qid, **read_names(names)}
    unmatched = 0
    with screen.progress() as say:
        ranker = load_model(model)
        say(f"Reading {data}")
        categories = formula_of(ranker).categories
        texts = {name for name, one in categories.items() if one.is_text}
        if texts and logged is None and data.endswith((".parquet", ".csv")):
            documents = _table(data, texts)
        else:
            documents = read_data(data, format, read, model=ranker)
        if logged is not None:
            scores, unmatched = read_logged(logged, documents)
            found = verify_logged(
                ranker, scores, documents, target=target, tolerance=tolerance, **given
            )
        else:
            assert target is not None
            say(f"Running {target}")
            found = verify_export(ranker, target, documents, tolerance=tolerance, **given)
    absent = len(documents) - found.documents
    if json:
        extra = {"target": target, "not_logged": absent, "unmatched": unmatched}
        screen.print_json({**extra, **found.to_dict()})
    else:
        plural = "y" if found.queries == 1 else "ies"
        screen.screen().print(
            screen.facts(
                {
                    "engine": found.engine if target is None else f"{found.engine} ({target})",
                    "documents": f"{found.documents:,} in {found.queries:,} quer{plural}"
                    + (f"; {absent:,} more have no logged score" if absent else "")
                    + (f"; {unmatched:,} scores match no document" if unmatched else ""),
                    "bit-equal": f"{found.bit_equal:,}",
                    "largest difference": f"{found.difference:.3g} to what the engine should "
                    f"compute, {found.model_difference:.3g} to the model",
                    "orders changed": f"{found.orders_changed:,} "
                    f"({found.beyond:,} beyond a difference of {tolerance:g})",
                }
            )
        )
    if not found.agrees:
        raise typer.Exit(1)


def _table(path: str, texts: set[str]) -> Any:
    """Read a table with categories; CSV may take texts for numbers."""
    try:
        from pyarrow import csv, parquet, string
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "frames", "a table with categories") from error
    try:
        if path.endswith(".parquet"):
            return parquet.read_table(path)
        kinds = csv.ConvertOptions(
            column_types=dict.fromkeys(texts, string()), strings_can_be_null=True
        )
        return csv.read_csv(path, convert_options=kinds)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read as a table ({error})") from error
