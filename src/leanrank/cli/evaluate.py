"""``leanrank evaluate``: measure how well scores rank judged documents."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leanrank._files import atomic_write
from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_apart, check_folder, read_data, shown, stdin_once
from leanrank.cli.screen import print_json, progress
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.metrics import Comparison, Evaluation


def evaluate(
    data: str | None = None,
    scores: str | None = None,
    /,
    measures: options.Measures = options.DEFAULT_MEASURES,
    convention: options.Convention = "standard",
    per_query: str | None = None,
    baseline: str | None = None,
    clicks: str | None = None,
    policy: str | None = None,
    depth: int = 10,
    assume: str = "cascade",
    discount: str = "none",
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
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
        Write every query's values as CSV.
    baseline : SCORES
        Other scores of DATA: test whether SCORES are better.
    clicks : LOG
        Instead of SCORES: a table of served lists with the columns session, query, document,
        position, clicked and propensity. DATA has the features of all documents; without it they
        are the log's other columns.
    policy : MODEL
        The model whose clicks are estimated from --clicks.
    depth : N >= 1
        Ranks that count, with --clicks.
    assume : KIND
        What a click depends on, with --clicks. cascade: the documents down to it; position: the
        document and its rank.
    discount : KIND
        none: clicks; log: clicks by 1/log2(1 + rank).
    """
    if clicks is None and policy is None:
        if data is None or scores is None:
            raise InputError("give DATA and SCORES, or --clicks LOG and --policy MODEL")
        _judge(data, scores, measures, convention, per_query, baseline, format, read, json)
    elif clicks is None or policy is None or (scores or per_query or baseline) is not None:
        raise InputError(
            "--clicks LOG and --policy MODEL go together, without SCORES, --per-query or --baseline"
        )
    else:
        choices = {"depth": depth, "assume": assume, "discount": discount}
        _estimate(data, clicks, policy, choices, format, read, json)


def _judge(
    data: str,
    scores: str,
    measures: str,
    convention: str,
    per_query: str | None,
    baseline: str | None,
    format: str | None,
    read: list[str] | None,
    json: bool,
) -> None:
    from leanrank.cli.scores import read_scores

    stdin_once(data, scores, baseline)
    if per_query is not None:
        check_folder(per_query)
        check_apart([per_query], [data, scores, baseline])
        if per_query == "-" and json:
            raise InputError("--json and --per-query - both go to standard output: give a file")
    with progress() as say:
        from leanrank.metrics import compare_values
        from leanrank.metrics import evaluate as measure

        options.check_measures(measures, convention)
        say(f"Reading {data}")
        judged = read_data(data, format, read)

        def measured(path: str) -> Evaluation:
            values = read_scores(path, len(judged), shown(data))
            if judged.order is not None:  # the file's order to that of the grouped queries
                values = values[judged.order]
            return measure(judged, values, measures=measures, convention=convention)

        say("Measuring")
        result = measured(scores)
        other = None if baseline is None else measured(baseline).per_query
        tests = [
            compare_values(other[name], values, measure=name)
            for name, values in result.per_query.items()
            if other is not None
        ]
        if per_query is not None:
            _write_per_query(result, per_query)
    if json:
        found = {"data": data, "scores": scores, "documents": len(judged), **result.to_dict()}
        if baseline is not None:
            found |= {"baseline": baseline, "comparisons": [test.to_dict() for test in tests]}
        print_json(found)
    else:
        _print(result, len(judged), tests, to_error=per_query == "-")


def _estimate(
    data: str | None,
    clicks: str,
    policy: str,
    choices: dict[str, Any],
    format: str | None,
    read: list[str] | None,
    json: bool,
) -> None:
    stdin_once(data, clicks, policy)
    with screen.progress() as say:
        from leanrank.data import read_clicks
        from leanrank.data.formats import format_name
        from leanrank.model import load_model
        from leanrank.online import evaluate_policy

        model = load_model(policy)
        say(f"Reading {clicks}")
        features: Any = data
        if data is not None and format_name(data, format) == "letor":
            features = read_data(
                data, format, read, n_features=model.n_features, optional=["label"]
            )
        elif format is not None or read:
            raise InputError(
                "with --clicks a table of features has the columns query and document, and its "
                "suffix says what it is: leave --format and --read out"
            )
        log = read_clicks(clicks, features, propensity="propensity", keep_unshown=True)
        say("Estimating")
        value = evaluate_policy(log, model.predict(log.data), **choices)
    if json:
        screen.print_json({"clicks": clicks, "policy": policy, "data": data, **value.to_dict()})
        return
    console, table = screen.screen(), screen.empty_table()
    kind = "clicks per list" if value.discount == "none" else "discounted clicks per list"
    for column in (kind, "value", f"{100 * value.confidence:g}% interval"):
        table.add_column(column, no_wrap=True)
    for name, one in [("logged", value.logged), *value.estimates.items()]:
        table.add_row(name, f"{one.value:.4f}", f"{one.low:.4f} to {one.high:.4f}")
    console.print(table)
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


def _print(
    result: Evaluation, n_documents: int, tests: list[Comparison], *, to_error: bool
) -> None:
    console = screen.screen(error=to_error)
    if tests:
        table = screen.empty_table()
        for column in ("measure", "baseline", "scores", "difference", "95% interval", "p"):
            table.add_column(
                column, no_wrap=True, justify="left" if column == "measure" else "right"
            )
        for test in tests:
            low, high = test.interval
            figures = (f"{test.mean_a:.4f}", f"{test.mean_b:.4f}", f"{test.difference:+.4f}")
            interval = f"{low:+.4f} to {high:+.4f}"
            table.add_row(test.measure, *figures, interval, f"{test.p_randomization:.4f}")
        console.print(table)
    else:
        console.print(screen.measures_table({"mean": result}))
    n_queries = len(result.query_ids)
    console.print(
        f"{n_queries:,} quer{'y' if n_queries == 1 else 'ies'}, {n_documents:,} documents, "
        + screen.measures_note(result),
        style="dim",
    )
