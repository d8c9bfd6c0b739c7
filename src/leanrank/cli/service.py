"""``leanrank explain``, ``diff``, ``check`` and ``judge-next``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import typer

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_files, read_documents
from leanrank.cli.entry import FAILED, say
from leanrank.errors import InputError

SHOWN_ROWS, SHOWN_QUERIES = 12, 3


def explain(
    model: str,
    data: str,
    /,
    query: str,
    why: str | None = None,
    top: int = 10,
    terms: int = 5,
    format: str | None = None,
    read: list[str] | None = None,
    json: bool = False,
) -> None:
    """Show what each term adds to the scores of a query's documents, and the feature values.

    For example: leanrank explain m.json test.txt --query 18219 --why 1,2

    Parameters
    ----------
    model : MODEL
        A model file, or -.
    data : DATA
        Documents, or -.
    query : QUERY
        Query to explain.
    why : A,B
        Compare two documents, by id or by rank, such as 1,4.
    top : N >= 1
        Number of documents to show.
    terms : N >= 1
        Number of terms to show.
    """
    from leanrank.model import load_model
    from leanrank.service.explain import explain_query

    check_files([model, data])
    ranker = load_model(model)
    found = explain_query(ranker, query, *read_documents(data, None, [ranker], format, read))
    pair = [] if why is None else [found.find(word.strip()) for word in why.split(",")]
    if len(pair) not in (0, 2):
        raise InputError(f"--why {why}: give two documents, such as 1,4")
    if json:
        screen.print_json({**found.to_dict(), **({"why": found.why(*pair)} if pair else {})})
    elif pair:
        _print_pair(found, pair, max(terms, top))
    else:
        _print_ranking(found, top, terms)


def _print_ranking(found: Any, top: int, n_terms: int) -> None:
    shown, explained = found.terms[:n_terms], found.explanation
    heads = ["document", "rank", "label", "score", *(str(explained.features[at]) for at in shown)]
    rows = []
    for rank, row in enumerate(found.order[:top].tolist(), 1):
        added = explained.contributions[row].tolist()
        parts = [f"{added[at]:+.3f}\n{found.value(row, at)}" for at in shown]
        label, score = _label(found.labels[row]), f"{explained.scores[row]:.4f}"
        rows.append([found.documents[row], str(rank), label, score, *parts])
    console = screen.screen()
    console.print(screen.plain_table(*heads, rows=rows))
    hidden = len(found.terms) - len(shown)
    more = f"; {hidden} more terms with --terms" if hidden > 0 else ""
    console.print(f"What each term adds, and its value below{more}", style="dim")


def _print_pair(found: Any, pair: list[int], most: int) -> None:
    console = screen.screen()
    first, second = (found.explanation.scores[row] for row in pair)
    names = [found.documents[row] for row in pair]
    verb = "above" if first > second else "not above"
    console.print(f"{names[0]} stands {verb} {names[1]} (score {first:.4f} against {second:.4f})\n")
    all_terms = [each for each in found.why(*pair) if each["difference"]]
    rows = [
        [
            each["term"],
            *each["values"],
            *(f"{value:+.4f}" for value in (*each["adds"], each["difference"])),
        ]
        for each in all_terms[:most]
    ]
    heads = ("term", "value, first", "second", "adds, first", "second", "gap")
    console.print(screen.plain_table(*heads, rows=rows))
    rest = sum(each["difference"] for each in all_terms[most:])
    if rest:
        console.print(f"and {len(all_terms) - most} more terms: {rest:+.4f}", style="dim")


def _label(label: float | None) -> str:
    return "–" if label is None or label != label else f"{label:g}"


def diff(
    old: str,
    new: str,
    data: str | None = None,
    /,
    clicks: str | None = None,
    measures: str = options.DEFAULT_MEASURES,
    convention: str = "standard",
    top: int = 10,
    fail_if: list[str] | None = None,
    output: str | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    json: bool = False,
) -> None:
    """Show what would change if a new model replaced an old one.

    For example: leanrank diff old.json new.json test.txt --fail-if 'ndcg@10 < -0.005'

    Parameters
    ----------
    old : OLD
        The model in use, or -.
    new : NEW
        The new model, or -.
    data : DATA
        Documents, or -; labels are optional.
    clicks : LOG
        A table of served lists, as for `leanrank evaluate`: compare expected clicks instead of
        measures. DATA has the features of all documents; without it, the other columns of the log
        are the features.
    top : K >= 1
        Number of top documents that count.
    fail_if : GATE
        Return exit code 1 if this holds, such as 'ndcg@10 < -0.005', 'changed@10 > 30%',
        'overlap < 0.7' or 'clicks < 0'. May be repeated.
    output : -o FILE
        Write the result as an HTML page.
    """
    check_files([old, new, data, clicks], page=output, json=json)
    with screen.progress() as report:
        from leanrank.metrics import parse_measures
        from leanrank.model import load_model
        from leanrank.service.diff import OTHER_GATES, parse_gate
        from leanrank.service.diff import diff as compare
        from leanrank.service.pages import diff_sections

        options.check_measures(measures, convention)
        gates = [parse_gate(gate)[0] for gate in fail_if or []]
        wanted = [measure.name for measure in parse_measures(measures)]
        wanted += [name for name in gates if name.partition("@")[0] not in OTHER_GATES]
        models = load_model(old), load_model(new)
        report(f"Reading {clicks or data}")
        documents = read_documents(data, clicks, models, format, read)
        report("Comparing")
        how: dict[str, Any] = {"k": top, "convention": convention}
        found = compare(*models, *documents, measures=list(dict.fromkeys(wanted)), **how)
        if output is not None:
            found.write(output)
    failed = found.failures(fail_if or [])
    if json:
        screen.print_json({"old": old, "new": new, "failed": failed, **found.to_dict()})
    else:
        shown = diff_sections(replace(found, queries=found.queries[:SHOWN_QUERIES]))
        _print_sections(shown, error=output == "-")
    for gate in failed:
        say(f"failed: {gate}")
    if failed:
        raise typer.Exit(FAILED)


def check(
    model: str,
    data: str | None = None,
    /,
    clicks: str | None = None,
    measures: str = options.DEFAULT_MEASURES,
    output: str | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    jobs: int = -1,
    json: bool = False,
) -> None:
    """Check whether a model is still right for today's documents; if not, return exit code 1.

    For example: leanrank check m.json today.parquet -o check.html

    Parameters
    ----------
    model : MODEL
        The model in use, or -.
    data : DATA
        Today's documents, or -; labels are optional.
    clicks : LOG
        A table of served lists, as for `leanrank evaluate`: estimate clicks, and take them as
        labels.
    output : -o FILE
        Write the result as an HTML page.
    """
    check_files([model, data, clicks], page=output, json=json)
    with screen.progress() as report:
        from leanrank.model import load_model
        from leanrank.service.check import check as compare
        from leanrank.service.pages import check_sections

        options.check_measures(measures, "standard")
        known = load_model(model)
        report(f"Reading {clicks or data}")
        documents = read_documents(data, clicks, [known], format, read)
        report("Checking")
        found = compare(known, *documents, measures=measures, n_jobs=jobs)
        if output is not None:
            found.write(output)
    if json:
        screen.print_json({"model": model, **found.to_dict()})
    else:
        _print_sections(check_sections(found), error=output == "-")
    if found.alarms:
        raise typer.Exit(FAILED)


def _print_sections(sections: list[Any], *, error: bool) -> None:
    """Print the sections of a page, shortened."""
    console = screen.screen(error=error)
    for at, one in enumerate(sections):
        if not (one.text or one.items or one.rows):
            continue
        if at:
            console.print(f"\n{one.title}", style="bold")
        if one.text:
            console.print(one.text, soft_wrap=True)
        for text in one.items[:SHOWN_ROWS]:
            console.print(f"- {text}", soft_wrap=True)
        if one.rows:
            console.print(screen.plain_table(*one.heads, rows=one.rows[:SHOWN_ROWS]))
        hidden = max(len(one.items), len(one.rows)) - SHOWN_ROWS
        if hidden > 0:
            console.print(f"and {hidden:,} more", style="dim")
        if one.note:
            console.print(one.note, style="dim")


def judge_next(
    model: str,
    pool: str,
    /,
    number: int = 40,
    against: str | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    json: bool = False,
) -> None:
    """Choose the documents whose judgment would change a model, or a difference, most.

    For example: leanrank judge-next m.json pool.parquet -n 40

    Parameters
    ----------
    model : MODEL
        The model in use, or -.
    pool : POOL
        Documents, or -; the choice is among those without a label.
    number : -n N >= 1
        Number of documents to choose.
    against : MODEL
        Second model: choose the documents that decide between the two.
    """
    from leanrank.model import load_model
    from leanrank.service.explain import names_of
    from leanrank.service.judgments import judge_next as choose

    check_files([model, pool, against])
    models = [load_model(path) for path in (model, against) if path is not None]
    other = models[1] if against is not None else None
    documents = read_documents(pool, None, models, format, read)
    rows, worth, data = choose(models[0], *documents, n=number, against=other)
    scores = models[0].predict(data)[rows].tolist()
    queries, names = map(str, data.qid[rows].tolist()), names_of(data, rows.tolist())
    found = list(zip(queries, names, worth.tolist(), scores, strict=True))
    heads = ("query", "document", "worth", "score")
    if json:
        screen.print_json({"judge": [dict(zip(heads, row, strict=True)) for row in found]})
        return
    cells = [[query, name, f"{value:.3g}", f"{score:.3f}"] for query, name, value, score in found]
    console = screen.screen()
    console.print(screen.plain_table(*heads, rows=cells))
    what = "variance of the difference" if other else "expected change of the loss"
    console.print(f"worth: {what}", style="dim")
