"""``leanrank verify``: does an engine compute the scores of a model?"""

from __future__ import annotations

from typing import Annotated

import typer
from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import stdin_once
from leanrank.errors import InputError


def verify(
    model: Annotated[str, Argument(metavar="MODEL", help="A model file, or -.")],
    data: Annotated[str, Argument(metavar="DATA", help="Documents to score, or -.")],
    target: Annotated[
        str | None, Option("--to", "--target", "-t", metavar="TARGET", help="The export to run.")
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
    normalizers: options.Normalizers = False,
    featureset: options.Featureset = None,
    max_error: options.MaxError = None,
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
) -> None:
    """Run an export where its engine is at hand, or compare scores that your engine logged.

    The exit code is 1 if an order changes beyond the tolerance.

    For example: leanrank verify m.json test.txt --to sql:duckdb
    """
    from leanrank.cli.export import read_names, read_typed
    from leanrank.model import load_model
    from leanrank.model.export import formula_of
    from leanrank.model.verify import read_logged, verify_export, verify_logged

    if target is None and logged is None:
        raise InputError("say what to compare: --to with an export, or --logged with scores")
    stdin_once(model, data)
    given = {"name": name, "table": table, "qid": qid, "normalizers": normalizers}
    given |= {"featureset": featureset, "max_error": max_error, **read_names(names)}
    unmatched = 0
    with screen.progress() as say:
        ranker = load_model(model)
        say(f"Reading {data}")
        texts = any(one.is_text for one in formula_of(ranker).categories.values())
        tables = texts or (target or "").startswith(("sql:", "polars"))
        documents = read_typed(data, ranker, format, read, typed=logged is None and tables)
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
                    f"({found.beyond:,} beyond a difference of {found.tolerance:g})",
                }
            )
        )
    if not found.agrees:
        raise typer.Exit(1)
