"""``leanrank judge-next``: the documents whose judgment would help most."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import read_documents, stdin_once


def judge_next(
    model: Annotated[str, Argument(metavar="MODEL", help="The model in use, or -.")],
    pool: Annotated[
        str, Argument(metavar="POOL", help="Documents, or -; those without a label are chosen.")
    ],
    number: Annotated[int, Option("-n", metavar="N", min=1, help="Documents to choose.")] = 40,
    against: Annotated[
        str | None,
        Option(
            metavar="MODEL",
            help="Choose what decides between two models, instead of what moves one.",
        ),
    ] = None,
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
) -> None:
    """Choose the documents whose judgment would move a model, or a difference, most.

    For example: leanrank judge-next m.json pool.parquet -n 40
    """
    from leanrank.model import load_model
    from leanrank.service.documents import names_of
    from leanrank.service.judge_next import judge_next as choose

    stdin_once(model, pool, against)
    known = load_model(model)
    other = None if against is None else load_model(against)
    models = [known] if other is None else [known, other]
    rows, worth, data = choose(
        known, *read_documents(pool, None, models, format, read), n=number, against=other
    )
    queries = [str(query) for query in data.qid[rows].tolist()]
    names = names_of(data, rows.tolist())
    scores = known.predict(data)[rows]
    if json:
        found = zip(queries, names, worth.tolist(), scores.tolist(), strict=True)
        keys = ("query", "document", "worth", "score")
        screen.print_json({"judge": [dict(zip(keys, one, strict=True)) for one in found]})
        return
    table = screen.plain_table("query", "document", "worth", "score")
    for query, name, value, score in zip(queries, names, worth, scores, strict=True):
        table.add_row(query, name, f"{value:.3g}", f"{score:.3f}")
    console = screen.screen()
    console.print(table)
    what = "variance of the difference" if other else "expected change of the loss"
    console.print(f"worth: {what}", style="dim")
