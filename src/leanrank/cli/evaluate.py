"""``leanrank predict``, ``evaluate`` and ``compare``: scores, how well they rank, many systems."""

from __future__ import annotations

from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

from leanrank._files import atomic_write
from leanrank.cli import options, screen
from leanrank.cli.datafiles import (
    check_files,
    read_data,
    read_documents,
    read_options,
    read_scores,
    write_scores,
)
from leanrank.errors import FileError, InputError

if TYPE_CHECKING:
    from leanrank.metrics import Evaluation
    from leanrank.selection.compare import ComparedSet, SetParts


def predict(
    model: str,
    data: str,
    /,
    output: str = "-",
    format: str | None = None,
    read: list[str] | None = None,
    json: bool = False,
) -> None:
    """Score documents: one number per line, in the file's order. Labels are not needed.

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
    assume: str = "cascade",
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
        from leanrank.metrics import compare_values
        from leanrank.metrics import evaluate as measure

        options.check_measures(**how)
        say(f"Reading {data}")
        judged = read_data(data, request.format, request.read)

        def measured(path: str) -> Evaluation:
            values = read_scores(path, len(judged), "<stdin>" if data == "-" else data)
            if judged.order is not None:  # the file's order to that of the grouped queries
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
        console.print(screen.compared_table("baseline", "scores", tests))
    else:
        console.print(screen.measures_table({"mean": result}))
    n_queries = len(result.query_ids)
    counts = f"{n_queries:,} quer{'y' if n_queries == 1 else 'ies'}, {len(judged):,} documents"
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
        choices = {name: getattr(request, name) for name in ("depth", "assume", "discount")}
        value = evaluate_policy(log, model.predict(log.data), **choices)
    if request.json:
        screen.print_json({"clicks": clicks, "policy": policy, "data": data, **value.to_dict()})
        return
    console = screen.screen()
    kind = "clicks per list" if value.discount == "none" else "discounted clicks per list"
    estimates = {"logged": value.logged, **value.estimates}
    console.print(screen.clicks_table(kind, estimates))
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


SETS = "MQ2008,OHSUMED"
PARTS = ("train", "vali", "test")
WHOLE = 112
"""Columns that a table of all figures takes."""

CONVENTIONS = {
    "letor4": ("MQ2007", "MQ2008"),
    "letor3": ("OHSUMED", "TD200", "HP200", "NP200"),
    "mslr": ("MSLR",),
}
"""How the measures of public sets are computed in publications, by the first letters of the set."""


def compare(
    files: list[str] | None = None,
    /,
    data: str | None = None,
    sets: str = SETS,
    folds: str | None = None,
    systems: str | None = None,
    choose_by: str = "map",
    convention: str | None = None,
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
    files : [TRAIN VALI TEST]
        Data in three files; without them, the sets of --data.
    data : DIR
        Folder of sets. [default: $LEANRANK_DATA]
    sets : LIST
        Folders of --data, with train, vali and test or folds.
    folds : LIST
        Folds of the sets. [default: all]
    systems : LIST
        Systems to compare. [default: all]
    choose_by : MEASURE
        Measure used to choose parameters.
    convention : NAME
        Convention of the measures. [default: that of a public set, standard for your files]
    markdown : FILE
        Write the tables, or -.
    """
    from leanrank.data.scaling.spread import check_scale

    check_files(files or [], markdown, json=json)
    with screen.progress() as say:
        from leanrank.execution import count_workers
        from leanrank.selection import compare as comparison

        options.check_measures(choose_by, convention or "standard")
        check_scale(scale)
        chosen, left_out = _systems(systems)
        if files:
            if data is not None or folds is not None or sets != SETS:
                raise InputError("--data, --sets and --folds are for folders: leave them out")
            given = _own_files(files, convention or "standard", scale, format, read)
        else:
            given = _folders(data, sets, folds, convention, scale)
        compared = comparison.compare_systems(
            given, chosen, choose_by=choose_by, n_jobs=count_workers(jobs), say=say
        )
    from leanrank.selection import tables

    if markdown is not None:
        with atomic_write(markdown) as stream:
            stream.write(tables.markdown(compared))
    if json:
        screen.print_json({**tables.to_dict(compared), "left_out": left_out})
        return
    console = screen.screen(error=markdown == "-")
    for one in compared:
        _print_set(console, one)
    for sentence in left_out:
        console.print(sentence, style="dim")


def _systems(given: str | None) -> tuple[list[str], list[str]]:
    """Return the systems to run, and a sentence for each that is left out."""
    from leanrank.selection.systems import check_systems, installed, system_names, title

    names = system_names() if given is None else [name.strip() for name in given.split(",")]
    check_systems(names)
    missing = [name for name in names if not installed(name)]
    sentences = [
        f"{title(name)} is left out because it is not installed: pip install {name}"
        for name in missing
    ]
    return [name for name in names if name not in missing], sentences


def _own_files(
    files: list[str], convention: str, scale: str | None, format: str | None, read: list[str] | None
) -> dict[str, tuple[str, list[SetParts]]]:
    from pathlib import Path

    from leanrank.data.formats import check_exists
    from leanrank.selection.compare import SetParts

    if len(files) != 3:
        raise InputError(
            f"{len(files)} file{'s were' if len(files) > 1 else ' was'} given: give three, for "
            "training, validation and test"
        )
    for file in files:
        if file == "-":
            raise InputError("data are read more than once, so not from standard input: give files")
        check_exists(file)
    how = read_options(files[0], format, read)
    if format is not None:
        how["format"] = format
    train, vali, test = map(Path, files)
    parts = SetParts(train, vali, test, scale=scale, options=tuple(sorted(how.items())))
    return {test.name: (convention, [parts])}


def _folders(
    data: str | None, sets: str, folds: str | None, convention: str | None, scale: str | None
) -> dict[str, tuple[str, list[SetParts]]]:
    """Return the splits of sets in folders, which hold Fold1, Fold2, … or one split."""
    import os
    import re
    from pathlib import Path

    from leanrank.selection.compare import SetParts

    given = data or os.environ.get("LEANRANK_DATA")
    if not given:
        raise InputError("give three files, or the folder of sets with --data")
    if folds is not None and not re.fullmatch(r"\d+(,\d+)*", folds):
        raise InputError(f"--folds {folds}: write numbers, such as 1,2")
    found = {}
    for name in (word.strip() for word in sets.split(",")):
        folder = Path(given, name)
        parts = [folder / f"Fold{n}" for n in folds.split(",")] if folds else []
        splits = []
        for place in parts or sorted(folder.glob("Fold[0-9]*")) or [folder]:
            files = [next(iter(sorted(place.glob(f"{part}*"))), place) for part in PARTS]
            if place in files:
                raise FileError(f"{place}: holds no {PARTS[files.index(place)]} file")
            train, vali, test = files
            splits.append(SetParts(train, vali, test, scale=scale))
        own = next((each for each, names in CONVENTIONS.items() if name.startswith(names)), None)
        found[name] = (convention or own or "standard", splits)
    return found


def _print_set(console: Any, one: ComparedSet) -> None:
    """Print what was measured on a set: one table, or two where that is too wide."""
    from leanrank.selection import tables

    measured = [outcome for outcome in one.outcomes if outcome.per_query]  # some may have failed
    first = [next(iter(o.per_query.values())) for o in measured if o.system == measured[0].system]
    console.print(f"\n{one.name}: {sum(map(len, first)):,} test queries", style="bold")
    heads = [tables.head(m).replace("NDCG@", "N@") for m in one.measures] + list(tables.OTHERS)
    rows = []
    for row in one.rows:
        texts = tables.cells(row, one.measures)
        best = [one.best(measure) == row.system for measure in one.measures]
        starred = [text + "*" * star for text, star in zip(texts, best, strict=False)]
        rows.append([*starred, *texts[len(best) :]])
    n = len(one.measures)
    for part in [slice(None)] if console.width >= WHOLE else [slice(n), slice(n, None)]:
        cells = [[row.title, *texts[part]] for row, texts in zip(one.rows, rows, strict=True)]
        console.print(screen.plain_table("", *heads[part], rows=cells))
    console.print(f"*: the best. {tables.legend(one)}", style="dim")
    for problem in one.problems:
        console.print(problem, style="red")
