"""``leanrank evaluate``: measure how well scores rank judged documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Argument, Option

from leanrank.cli import options

if TYPE_CHECKING:
    from leanrank.metrics import Evaluation


def evaluate(
    data: Annotated[str, Argument(metavar="DATA", help="Judged documents, or -.")],
    scores: Annotated[
        str, Argument(metavar="SCORES", help="One score per line, in DATA's order, or -.")
    ],
    measures: options.Measures = options.DEFAULT_MEASURES,
    convention: options.Convention = "standard",
    per_query: Annotated[
        str | None, Option(metavar="FILE", help="Write every query's values as CSV.")
    ] = None,
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
) -> None:
    """Measure how well scores rank judged documents.

    For example: leanrank evaluate test.txt scores.txt --convention letor4 --measures ndcg@10,map
    """
    from leanrank.cli.datafiles import check_folder, read_data, shown, stdin_once
    from leanrank.cli.scores import read_scores
    from leanrank.cli.screen import print_json, progress
    from leanrank.cli.train import check_measures
    from leanrank.errors import InputError

    stdin_once(data, scores)
    if per_query is not None:
        check_folder(per_query)
        if per_query == "-" and json:
            raise InputError("--json and --per-query - both go to standard output: give a file")
    with progress() as say:
        from leanrank.metrics import evaluate as measure

        check_measures(measures, convention)
        say(f"Reading {data}")
        judged = read_data(data, format, read)
        values = read_scores(scores, len(judged), shown(data))
        if judged.order is not None:  # the file's order to the order in which queries are grouped
            values = values[judged.order]
        say("Measuring")
        result = measure(judged, values, measures=measures, convention=convention)
        if per_query is not None:
            _write_per_query(result, per_query)
    if json:
        print_json({"data": data, "scores": scores, "documents": len(judged), **result.to_dict()})
    else:
        _print(result, len(judged), to_error=per_query == "-")


def _write_per_query(result: Evaluation, path: str) -> None:
    import csv

    from leanrank._files import atomic_write

    columns = [values.tolist() for values in result.per_query.values()]
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["query", *result.per_query])
        for query, *values in zip(result.query_ids.tolist(), *columns, strict=True):
            writer.writerow([query, *("" if value != value else repr(value) for value in values)])


def _print(result: Evaluation, n_documents: int, *, to_error: bool) -> None:
    from leanrank.cli import screen

    console = screen.screen(error=to_error)
    console.print(screen.measures_table({"mean": result}))
    n_queries = len(result.query_ids)
    console.print(
        f"{n_queries:,} quer{'y' if n_queries == 1 else 'ies'}, {n_documents:,} documents, "
        + screen.measures_note(result),
        style="dim",
    )
