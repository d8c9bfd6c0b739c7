"""``leanrank diff``: what would change with a new model."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_apart, check_folder, read_documents, stdin_once
from leanrank.cli.entry import FAILED, say

SHOWN_TERMS, SHOWN_QUERIES, SHOWN_DOCUMENTS = 12, 3, 5


def diff(
    old: Annotated[str, Argument(metavar="OLD", help="The model in use, or -.")],
    new: Annotated[str, Argument(metavar="NEW", help="The model to take its place.")],
    data: Annotated[
        str | None,
        Argument(metavar="DATA", help="Documents, or -; labels are optional.", show_default=False),
    ] = None,
    clicks: Annotated[
        str | None,
        Option(
            metavar="LOG",
            help="A table of served lists, as for `leanrank evaluate`: expected clicks instead of "
            "measures. DATA has the features of all documents; without it they are in the log.",
        ),
    ] = None,
    measures: options.Measures = options.DEFAULT_MEASURES,
    convention: options.Convention = "standard",
    top: Annotated[int, Option(metavar="K", min=1, help="Documents at the top that count.")] = 10,
    fail_if: Annotated[
        list[str] | None,
        Option(
            metavar="GATE",
            help="End with exit code 1 if this holds, such as 'ndcg@10 < -0.005', 'changed@10 > "
            "30%', 'overlap < 0.7' or 'clicks < 0'; may be repeated.",
        ),
    ] = None,
    output: Annotated[
        str | None, Option("--output", "-o", metavar="FILE", help="Write a page about it.")
    ] = None,
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
) -> None:
    """Show what would change if a new model took the place of an old one.

    For example: leanrank diff old.json new.json test.txt --fail-if 'ndcg@10 < -0.005'
    """
    stdin_once(old, new, data, clicks)
    if output is not None:
        check_folder(output, json, "page", "the page -o FILE")
        check_apart([output], [old, new, data, clicks])
        options.check_report()
    with screen.progress() as report:
        from leanrank.model import load_model
        from leanrank.service.diff import diff as compare
        from leanrank.service.diff import parse_gate

        options.check_measures(measures, convention)
        gates = [parse_gate(gate)[0] for gate in fail_if or []]
        wanted = [name for name in gates if name.partition("@")[0] not in _OTHERS]
        models = load_model(old), load_model(new)
        report(f"Reading {clicks or data}")
        documents = read_documents(data, clicks, models, format, read)
        report("Comparing")
        found = compare(
            *models, *documents, k=top, convention=convention,
            measures=list(dict.fromkeys([*_names(measures), *wanted])),
        )  # fmt: skip
        if output is not None:
            found.write(output)
    failed = found.failures(fail_if or [])
    if json:
        screen.print_json({"old": old, "new": new, "failed": failed, **found.to_dict()})
    else:
        _print(found, error=output == "-")
    for gate in failed:
        say(f"failed: {gate}")
    if failed:
        raise typer.Exit(FAILED)


_OTHERS = ("changed", "replaced", "overlap", "clicks")


def _names(measures: str) -> list[str]:
    from leanrank.metrics import parse_measures

    return [measure.name for measure in parse_measures(measures)]


def _print(found: Any, *, error: bool) -> None:
    from leanrank.service.diff import largest_terms

    console = screen.screen(error=error)
    console.print(found.verdict)
    compared = {**found.measures, **found.clicks}
    if compared:
        console.print()
        table = screen.plain_table("measure", "old", "new", "difference", "95% interval", "p")
        for name, one in compared.items():
            low, high = one.interval
            figures = [screen.number(one.mean_a), screen.number(one.mean_b)]
            figures += [f"{one.difference:+.4f}", f"{low:+.4f} to {high:+.4f}"]
            table.add_row(name, *figures, f"{one.p_randomization:.2g}")
        console.print(table)
    console.print(
        f"replaced@{found.k} {found.replaced():.1%}, rank-biased overlap "
        f"{found.value('overlap'):.3f}",
        style="dim",
    )
    console.print()
    table = screen.plain_table("term", "old", "new", "share, old", "share, new", "of the change")
    for term in found.terms[:SHOWN_TERMS]:
        sizes = ["–" if size is None else f"{size:+.3g}" for size in (term.old, term.new)]
        shares = [f"{share:.1%}" for share in (term.old_share, term.new_share, term.change_share)]
        table.add_row(term.name, *sizes, *shares)
    console.print(table)
    if len(found.terms) > SHOWN_TERMS:
        console.print(f"and {len(found.terms) - SHOWN_TERMS:,} more terms", style="dim")
    for query in found.queries[:SHOWN_QUERIES]:
        console.print(f"\nquery {query.query}: overlap {query.overlap:.2f}")
        table = screen.plain_table("document", "old", "new", "label", "moved by")
        moved = sorted(query.documents, key=lambda each: -abs(each["old"] - each["new"]))
        for each in moved[:SHOWN_DOCUMENTS]:
            label = "–" if each["label"] is None else f"{each['label']:g}"
            by = largest_terms(each["terms"])
            table.add_row(each["document"], str(each["old"]), str(each["new"]), label, by)
        console.print(table)
