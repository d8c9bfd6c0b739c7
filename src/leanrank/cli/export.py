"""``leanrank export`` and ``leanrank verify``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import typer

from leanrank._files import atomic_write
from leanrank.cli import screen
from leanrank.cli.datafiles import check_files, read_documents
from leanrank.cli.entry import FAILED
from leanrank.errors import InputError, ParseError


def export(
    model: str | None = None,
    /,
    to: str | None = None,
    output: str = "-",
    name: str = "leanrank",
    names: str | None = None,
    table: str = "documents",
    qid: str = "qid",
    top: int = 10,
    featureset: str | None = None,
    max_error: float | None = None,
    data: str | None = None,
    expression_only: bool = False,
    list_targets: bool = False,
) -> None:
    """Write a model for a search engine, a database or a program.

    For example: leanrank export m.json --to sql:duckdb -o score.sql

    Parameters
    ----------
    model : MODEL
        A model file, or -.
    to : -t TARGET
        Target to write for; see --list.
    output : -o FILE
        Where to write the export, or -.
    top : K >= 1
        Number of documents that a request returns.
    data : FILE
        Typical documents: trees take the range of straight lines from them, plugins a constant that
        makes scores positive, and sql:postgres which columns are boolean.
    expression_only :
        Write only the SQL expression of one row, for a generated column or an index.
    list_targets : --list
        List the targets and what each can express.
    """
    given = dict(locals())
    if list_targets:
        _print_targets()
        return
    from leanrank.model import load_model
    from leanrank.model.export import export_model

    if model is None or to is None:
        raise InputError(
            "give a model and a target, such as m.json --to sql:duckdb; --list shows the targets"
        )
    if to.startswith("deploy:") and (output == "-" or Path(output).exists()):
        raise InputError(f"{to} writes a folder: name one that does not exist yet with -o FOLDER")
    check_files([model], output)
    ranker = load_model(model)
    options = {key: given[key] for key in (*_SHARED, "top", "expression_only")}
    if data is not None:
        typed = to.startswith("sql:") and ranker.feature_names is not None
        options["data"] = read_documents(data, None, [ranker], None, None, typed=typed)[0]
    content = export_model(ranker, to, **options, **read_names(names))
    if isinstance(content, dict):
        for file, text in content.items():
            path = Path(output, file)
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text, encoding="utf-8")
        return
    with atomic_write(output, "wb" if isinstance(content, bytes) else "w") as stream:
        stream.write(content)


_SHARED = ("name", "table", "qid", "featureset", "max_error")


def verify(
    model: str,
    data: str,
    /,
    target: str | None = None,
    logged: str | None = None,
    tolerance: float = 1e-6,
    name: str = "leanrank",
    names: str | None = None,
    table: str = "documents",
    qid: str = "qid",
    featureset: str | None = None,
    max_error: float | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    json: bool = False,
) -> None:
    """Compare the scores of an engine with those of the model.

    The engine runs here if it is installed; or it is yours, and has logged its scores. The exit
    code is 1 if an order changes beyond the tolerance.

    For example: leanrank verify m.json test.txt --to sql:duckdb

    Parameters
    ----------
    model : MODEL
        A model file, or -.
    data : DATA
        Documents to score, or -.
    target : --to -t TARGET
        The export to run.
    logged : FILE
        Scores of your engine: CSV or JSON lines.
    tolerance : GAP >= 0
        Difference between two scores up to which their order does not matter.
    """
    given = dict(locals())
    from leanrank.model import load_model
    from leanrank.model.export import formula_of
    from leanrank.model.verify import read_logged, verify_export, verify_logged

    check_files([model, data])
    how = {key: given[key] for key in (*_SHARED, "tolerance")} | read_names(names)
    unmatched = 0
    with screen.progress() as say:
        ranker = load_model(model)
        say(f"Reading {data}")
        tables = bool(formula_of(ranker).texts) or (target or "").startswith(("sql:", "polars"))
        typed = tables and logged is None and ranker.feature_names is not None
        documents = read_documents(data, None, [ranker], format, read, typed=typed)[0]
        if logged is not None:
            scores, unmatched = read_logged(logged, documents)
            found = verify_logged(ranker, scores, documents, target=target, **how)
        elif target is not None:
            say(f"Running {target}")
            found = verify_export(ranker, target, documents, **how)
        else:
            raise InputError("give what to compare: --to TARGET to run, or --logged FILE of scores")
    absent = len(documents) - found.documents
    if json:
        extra = {"target": target, "not_logged": absent, "unmatched": unmatched}
        screen.print_json({**extra, **found.to_dict()})
    else:
        counts = [
            f"{found.documents:,} in {found.queries:,} quer{'y' if found.queries == 1 else 'ies'}",
            f"{absent:,} more have no logged score" * bool(absent),
            f"{unmatched:,} scores match no document" * bool(unmatched),
        ]
        facts = {
            "engine": found.engine if target is None else f"{found.engine} ({target})",
            "documents": "; ".join(filter(None, counts)),
            "bit-equal": f"{found.bit_equal:,}",
            "largest difference": f"{found.difference:.3g} to what the engine should compute, "
            f"{found.model_difference:.3g} to the model",
            "orders changed": f"{found.orders_changed:,} "
            f"({found.beyond:,} beyond a difference of {found.tolerance:g})",
        }
        screen.screen().print(screen.facts(facts))
    if not found.agrees:
        raise typer.Exit(FAILED)


def read_names(path: str | None) -> dict[str, Any]:
    """Return names of features in the target, constants added there, and types of columns.

    The file is CSV with the columns ``feature`` and ``name``, and optionally ``shift`` and
    ``type``.
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
        rows = [(reader.line_num, row) for row in reader]
    except csv.Error as error:
        raise ParseError(f"this is not CSV ({error})", path=path) from error
    if not {"feature", "name"} <= set(reader.fieldnames or ()):
        raise ParseError("the header needs the columns feature and name", path=path, line=1)
    for line, row in rows:
        feature, name = row["feature"], row["name"]
        if not feature or not name or feature in names:
            problem = f"feature {feature!r} needs one name: write it in one line"
            raise ParseError(problem, path=path, line=line)
        names[feature] = name
        shift = parse_number(row.get("shift") or "0", "shift", path, line)
        if shift != 0:
            shifts[name] = shift
        if row.get("type"):
            types[name] = row["type"]
    return {"names": names, "shifts": shifts, "types": types}


def _print_targets() -> None:
    from leanrank.model.export import TARGETS

    for target in TARGETS.values():
        can = ["linear"] + ["curves"] * target.curves + list(target.scalers)
        typer.echo(f"{target.name:<22} {target.summary} ({', '.join(can)})")
