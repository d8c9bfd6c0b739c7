"""``leanrank predict``, ``evaluate`` and ``compare``."""

from __future__ import annotations

from pathlib import Path
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from leanrank._files import atomic_write
from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_files, read_data, read_documents, read_scores, write_scores
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.metrics import Evaluation
    from leanrank.selection.compare import ComparedSet


def predict(
    model: str,
    data: str,
    /,
    output: str = "-",
    format: str | None = None,
    read: list[str] | None = None,
    json: bool = False,
) -> None:
    """Write the score of each document, one number per line, in the order of the data.

    Labels are not needed.

    For example: leanrank predict m.json test.txt -o scores.txt

    Parameters
    ----------
    model : MODEL
        A model file, or -.
    data : DATA
        Documents to score, or -.
    output : -o FILE
        Where to write the scores, or -.
    """
    check_files([model, data], output, json=json)
    with screen.progress() as say:
        from leanrank.model import load_model

        ranker = load_model(model)
        say(f"Reading {data}")
        per_query = (ranker.normalizer or {}).get("kind", "").startswith("query-")
        optional = ("label",) if per_query else ("label", "qid")
        documents = read_data(data, format, read, model=ranker, optional=optional)
        say(f"Scoring {len(documents):,} documents")
        write_scores(documents.restore(ranker.predict(documents)), output)
    if json:
        sizes = {"queries": documents.n_queries, "documents": len(documents)}
        screen.print_json({"scores": output, "model": model, **sizes})


def evaluate(
    data: str | None = None,
    scores: str | None = None,
    /,
    measures: str = options.DEFAULT_MEASURES,
    convention: str = "standard",
    per_query: str | None = None,
    baseline: str | None = None,
    clicks: str | None = None,
    policy: str | None = None,
    depth: int = 10,
    discount: str = "none",
    format: str | None = None,
    read: list[str] | None = None,
    json: bool = False,
) -> None:
    """Measure how well scores rank judged documents, or estimate a model's clicks from a log.

    For example: leanrank evaluate test.txt scores.txt --convention letor4 --measures ndcg@10,map

    leanrank evaluate --clicks log.parquet --policy m.json

    Parameters
    ----------
    data : DATA
        Judged documents, or -.
    scores : SCORES
        One score per line, in DATA's order, or -.
    per_query : FILE
        Write the values of each query as CSV.
    baseline : SCORES
        Other scores for DATA, to test whether SCORES are better.
    clicks : LOG
        Instead of SCORES: a table of served lists with the columns session, query, document,
        position, clicked and propensity. DATA has the features of all documents; without it, the
        other columns of the log are the features.
    policy : MODEL
        Model whose clicks are estimated, with --clicks.
    depth : N >= 1
        Number of ranks to count, with --clicks.
    discount : KIND
        Weight of a click, with --clicks. none: 1; log: 1/log2(1 + rank).
    """
    if clicks is None and policy is None:
        if (depth, discount) != (10, "none"):
            raise InputError("--depth and --discount need --clicks LOG: leave them out")
        if data is None or scores is None:
            raise InputError("give DATA and SCORES, or --clicks LOG and --policy MODEL")
        _judge(SimpleNamespace(**locals()))
    elif clicks is None or policy is None or (scores or per_query or baseline) is not None:
        raise InputError(
            "--clicks LOG and --policy MODEL go together, without SCORES, --per-query or --baseline"
        )
    else:
        _estimate(SimpleNamespace(**locals()))


def _judge(request: SimpleNamespace) -> None:
    data, scores, baseline = request.data, request.scores, request.baseline
    how = {"measures": request.measures, "convention": request.convention}
    check_files([data, scores, baseline], request.per_query, json=request.json)
    with screen.progress() as say:
        from leanrank.data.ranking_data import counted
        from leanrank.metrics import compare_values
        from leanrank.metrics import evaluate as measure

        options.check_measures(**how)
        say(f"Reading {data}")
        judged = read_data(data, request.format, request.read)

        def measured(path: str) -> Evaluation:
            values = read_scores(path, len(judged), "<stdin>" if data == "-" else data)
            if judged.order is not None:  # from the order of the file to that of the queries
                values = values[judged.order]
            return measure(judged, values, **how)

        say("Measuring")
        result = measured(scores)
        other = {} if baseline is None else measured(baseline).per_query
        tests = {
            name: compare_values(values, result.per_query[name], measure=name)
            for name, values in other.items()
        }
        if request.per_query is not None:
            _write_per_query(result, request.per_query)
    if request.json:
        found = {"data": data, "scores": scores, "documents": len(judged), **result.to_dict()}
        if baseline is not None:
            compared = [test.to_dict() for test in tests.values()]
            found |= {"baseline": baseline, "comparisons": compared}
        screen.print_json(found)
        return
    console = screen.screen(error=request.per_query == "-")
    if tests:
        heads = ("measure", "baseline", "scores", "difference", "95% interval", "p")
        rows = [
            [name, screen.number(one.mean_a), screen.number(one.mean_b), *screen.difference(one),
             f"{one.p_randomization:.2g}"]
            for name, one in tests.items()
        ]  # fmt: skip
        console.print(screen.plain_table(*heads, rows=rows))
    else:
        console.print(screen.measures_table({"mean": result}))
    queries = counted(len(result.query_ids), "query", "queries")
    counts = f"{queries}, {counted(len(judged), 'document')}"
    console.print(f"{counts}, {screen.measures_note(result)}", style="dim")


def _estimate(request: SimpleNamespace) -> None:
    clicks, policy, data = request.clicks, request.policy, request.data
    check_files([data, clicks, policy])
    with screen.progress() as say:
        from leanrank.model import load_model
        from leanrank.online import evaluate_policy

        model = load_model(policy)
        say(f"Reading {clicks}")
        (log,) = read_documents(data, clicks, [model], request.format, request.read)
        say("Estimating")
        choices = {name: getattr(request, name) for name in ("depth", "discount")}
        value = evaluate_policy(log, model.predict(log.data), **choices)
    if request.json:
        screen.print_json({"clicks": clicks, "policy": policy, "data": data, **value.to_dict()})
        return
    console = screen.screen()
    kind = "clicks per list" if value.discount == "none" else "discounted clicks per list"
    rows = [
        [name, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}"]
        for name, one in {"logged": value.logged, **value.estimates}.items()
    ]
    console.print(screen.plain_table(kind, "value", "95% interval", rows=rows))
    console.print(
        f"{value.n_lists:,} lists, {value.effective_lists:,.0f} effective, ranks 1 to "
        f"{value.depth}, mean weight at the last {value.mean_weight[-1]:.2f}",
        style="dim",
    )


def _write_per_query(result: Evaluation, path: str) -> None:
    import csv

    columns = [values.tolist() for values in result.per_query.values()]
    with atomic_write(path) as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(["query", *result.per_query])
        for query, *values in zip(result.query_ids.tolist(), *columns, strict=True):
            writer.writerow([query, *("" if value != value else repr(value) for value in values)])


WIDE = 112
"""Width of a terminal that shows a table of all figures."""


def compare(
    train: str,
    vali: str,
    test: str,
    /,
    systems: str | None = None,
    choose_by: str = "map",
    convention: str = "standard",
    scale: str | None = "auto",
    markdown: str | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    jobs: int = -1,
    json: bool = False,
) -> None:
    """Compare all systems, each with its parameters chosen on validation data.

    For example: leanrank compare train.txt vali.txt test.txt --systems domination,ranksvm

    Parameters
    ----------
    train : TRAIN
        Training data.
    vali : VALI
        Validation data, on which parameters are chosen.
    test : TEST
        Test data, on which the systems are measured.
    systems : LIST
        Systems to compare. [default: all]
    choose_by : MEASURE
        Measure used to choose parameters.
    markdown : FILE
        Write the tables as Markdown, or -.
    """
    from leanrank.data.scaling.spread import check_scale

    check_files([train, vali, test], markdown, json=json)
    with screen.progress() as say:
        from leanrank.execution import count_workers
        from leanrank.selection import compare as comparison

        options.check_measures(choose_by, convention)
        check_scale(scale)
        chosen, left_out = _systems(systems)
        first = read_data(train, format, read)
        second, third = (
            read_data(file, format, read, n_features=first.n_features) for file in (vali, test)
        )
        how: dict[str, Any] = {"convention": convention, "choose_by": choose_by}
        how |= {"scale": scale, "n_jobs": count_workers(jobs), "say": say}
        splits = [(first, second, third)]
        compared = comparison.compare_systems(Path(test).name, splits, chosen, **how)
    if markdown is not None:
        with atomic_write(markdown) as stream:
            stream.write(comparison.markdown(compared))
    if json:
        screen.print_json({"sets": [comparison.to_dict(compared)], "left_out": left_out})
        return
    console = screen.screen(error=markdown == "-")
    _print_set(console, compared)
    for sentence in left_out:
        console.print(sentence, style="dim")


def _systems(given: str | None) -> tuple[list[str], list[str]]:
    """Return the systems to run, and a sentence for each that is left out."""
    from leanrank.selection.systems import installed, system_names, title

    names = system_names() if given is None else options.parse_systems(given)
    sentences = [
        f"{title(name)} is left out because it is not installed: pip install {name}"
        for name in names
        if not installed(name)
    ]
    return [name for name in names if installed(name)], sentences


def _print_set(console: Any, one: ComparedSet) -> None:
    """Print what was measured on a set as one table, or as two on a narrow terminal."""
    from leanrank.selection.compare import legend

    measured = [outcome for outcome in one.outcomes if outcome.per_query]  # some may have failed
    first = [next(iter(o.per_query.values())) for o in measured if o.system == measured[0].system]
    console.print(f"\n{one.name}: {sum(map(len, first)):,} test queries", style="bold")
    heads, *rows = one.table("{}*")
    heads = [text.replace("NDCG@", "N@") for text in heads]
    n = 1 + len(one.measures)
    for part in [slice(1, None)] if console.width >= WIDE else [slice(1, n), slice(n, None)]:
        shown = [[row[0], *row[part]] for row in rows]
        console.print(screen.plain_table("", *heads[part], rows=shown))
    console.print(f"*: the best. {legend(one)}", style="dim")
    for problem in one.problems:
        console.print(problem, style="red")
