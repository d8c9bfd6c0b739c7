"""``leanrank explain``: why documents stand where they stand."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import read_documents, stdin_once
from leanrank.errors import InputError


def explain(
    model: Annotated[str, Argument(metavar="MODEL", help="A model file, or -.")],
    data: Annotated[str, Argument(metavar="DATA", help="Documents, or -.")],
    query: Annotated[str, Option(metavar="QUERY", help="The query to look at.")],
    why: Annotated[
        str | None,
        Option(metavar="A,B", help="Compare two documents, by id or by rank, such as 1,4."),
    ] = None,
    top: Annotated[int, Option(metavar="N", min=1, help="Documents to show.")] = 10,
    terms: Annotated[int, Option(metavar="N", min=1, help="Terms to show.")] = 5,
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
) -> None:
    """Show what the scores of a query's documents are made of, and the feature values behind it.

    For example: leanrank explain m.json test.txt --query 18219 --why 1,2
    """
    from leanrank.model import load_model
    from leanrank.service.explain import explain_query

    stdin_once(model, data)
    ranker = load_model(model)
    found = explain_query(ranker, query, *read_documents(data, None, [ranker], format, read))
    pair = None
    if why is not None:
        words = [word.strip() for word in why.split(",")]
        if len(words) != 2:
            raise InputError(f"--why {why}: give two documents, such as 1,4")
        pair = [found.find(word) for word in words]
    if json:
        compared = {} if pair is None else {"why": found.why(*pair)}
        screen.print_json({**found.to_dict(), **compared})
        return
    console = screen.screen()
    if pair is None:
        table = screen.plain_table("document", "rank", "label", "score")
        shown = found.terms[:terms]
        for at in shown:
            table.add_column(str(found.told.features[at]), justify="right", overflow="fold")
        for rank, row in enumerate(found.order[:top].tolist(), 1):
            label = found.labels[row]
            cells = [str(rank), "–" if label != label else f"{label:g}"]
            cells.append(f"{found.told.scores[row]:.4f}")
            for at in shown:
                added = found.told.contributions[row, at]
                cells.append(f"{added:+.3f}\n{found.value(row, at)}")
            table.add_row(found.documents[row], *cells)
        console.print(table)
        hidden = len(found.terms) - len(shown)
        more = f"; {hidden} more terms with --terms" if hidden > 0 else ""
        console.print(f"What each term adds, and its value below{more}", style="dim")
        return
    above, below = pair
    scores = [f"{found.told.scores[row]:.4f}" for row in pair]
    names = [found.documents[row] for row in pair]
    verb = "above" if found.told.scores[above] > found.told.scores[below] else "not above"
    console.print(f"{names[0]} stands {verb} {names[1]} (score {scores[0]} against {scores[1]})\n")
    table = screen.plain_table("term", "value, first", "second", "adds, first", "second", "gap")
    rows = [each for each in found.why(above, below) if each["difference"]]
    for each in rows[: max(terms, top)]:
        adds = [f"{value:+.4f}" for value in each["adds"]]
        table.add_row(each["term"], *each["values"], *adds, f"{each['difference']:+.4f}")
    console.print(table)
    rest = sum(each["difference"] for each in rows[max(terms, top) :])
    if rest:
        console.print(f"and {len(rows) - max(terms, top)} more terms: {rest:+.4f}", style="dim")
