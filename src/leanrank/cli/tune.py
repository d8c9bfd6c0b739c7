"""``leanrank tune`` and ``leanrank report``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import typer

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_files, read_data
from leanrank.cli.entry import INTERRUPTED, command_line
from leanrank.cli.train import described, measured
from leanrank.errors import InputError

if TYPE_CHECKING:
    from rich.console import Console

    from leanrank.model import Model
    from leanrank.selection.search import Progress
    from leanrank.selection.study import Study


def tune(
    data: str,
    /,
    model: str,
    vali: str | None = None,
    test: str | None = None,
    max_features: int | None = None,
    min_measure: list[str] | None = None,
    costs: str | None = None,
    max_cost: float | None = None,
    rule: str = "best",
    budget: str | None = None,
    trials: int | None = None,
    systems: str | None = None,
    choose_by: str | None = None,
    measure: str = "ndcg@10",
    convention: str = "standard",
    journal: str | None = None,
    refit: str = "train",
    report: str | None = None,
    scale: str | None = "auto",
    fill: list[str] | None = None,
    target: str | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    jobs: int = -1,
    json: bool = False,
) -> None:
    """Search rankers and parameters for the best model within your limits.

    For example: leanrank tune train.txt --vali vali.txt --max-features 10 --budget 60s -m m.json

    Parameters
    ----------
    data : TRAIN
        Training data, or -.
    vali : FILE
        Validation data. [default: cross-validation]
    test : FILE
        Test data: measured once, after the choice.
    max_features : N >= 1
        Maximum number of features.
    min_measure : NAME=VALUE
        Least value of a measure, such as ndcg@10=0.45; may be repeated.
    costs : FILE
        Cost of each feature: CSV with lines such as bm25,0.2.
    max_cost : COST >= 0
        Maximum total feature cost, in the unit of --costs.
    rule : RULE
        best, or 1se: the sparsest model within one standard error of the best.
    budget : TIME
        Time limit of the search, such as 60s or 5min. [default: 60s]
    trials : N >= 1
        Number of trials instead of a time limit (reproducible).
    systems : LIST
        Systems to try, in this order, separated by commas.
    choose_by : NAME
        Measure to choose by, or loss. [default: --measure]
    measure : NAME
        Measure to report.
    journal : FILE
        Log trials here; resume if the file exists.
    refit : PART
        train, or both: fit the chosen features to training and validation data.
    report : FILE
        Write an HTML page about all models.
    """
    given = {**locals()}
    from leanrank.data.scaling.spread import check_scale
    from leanrank.selection.costs import read_costs, read_seconds

    check_files([data, vali, test, costs], model, journal, page=report, json=json)
    if max_cost is not None and costs is None:
        raise InputError("--max-cost needs the cost of each feature: give --costs FILE")
    wanted = options.parse_numbers(min_measure or [], "--min-measure")
    seconds = None if budget is None else read_seconds(budget, "--budget")
    measures = tuple(dict.fromkeys([measure, *wanted, *options.DEFAULT_MEASURES.split(",")]))
    options.check_measures(",".join([*measures, choose_by or measure]), convention)
    check_scale(scale)
    most = options.check_target(target, scale)
    names = None if systems is None else options.parse_systems(systems, peers=False)
    with screen.progress() as say:
        from leanrank.metrics.judge import Judge
        from leanrank.model.writing import fill_values, with_fill
        from leanrank.selection.tuning import tune as search

        say("Reading data")
        raw = {"training": read_data(data, format, read)}
        n_features = raw["training"].n_features
        for name, file in (("validation", vali), ("test", test)):
            if file is not None:
                raw[name] = read_data(file, format, read, n_features=n_features)
        if n_features > most:
            max_features = int(min(max_features or most, most))
        gaps = fill_values(raw["training"], options.parse_fill(fill) or {})
        parts = {name: with_fill(part, gaps) for name, part in raw.items()}
        study = search(
            parts["training"],
            parts.get("validation"),
            max_features=max_features,
            measures=measures,
            min_measure=wanted,
            costs=None if costs is None else read_costs(costs),
            systems=names,
            budget=seconds,
            n_jobs=jobs,
            progress=lambda at: say(_doing(at)),
            **{name: given[name] for name in _PASSED_ON},
        )
        say("Measuring")
        judged = raw if refit != "both" else {k: v for k, v in raw.items() if k != "validation"}
        final = described(study.model.replace(fill=gaps), raw["training"])
        how = {"measures": study.measures, "convention": Judge(measure, convention).rules}
        final, columns = measured(final, judged, **how)
        options.check_exportable(target, final, raw["training"])
        final.save(model)
        if report is not None:
            say("Writing the report")
            files = {"training": data, "validation": vali or "", "test": test or ""}
            write_page(study, report, jobs=jobs, test=parts.get("test"), files=files)
    if json:
        _print_json(study, final, columns, model, raw)
    else:
        console = screen.screen(error=model == "-")
        _print_study(console, study, raw)
        screen.print_model(console, final, columns)
        written = {"Model": model, "Journal": journal, "Report": report}
        screen.print_written(console, written)
    if study.interrupted:
        raise typer.Exit(INTERRUPTED)


_PASSED_ON = (
    *("measure", "convention", "choose_by", "scale"),
    *("rule", "refit", "trials", "journal", "max_cost"),
)
"""Options of the command that are passed on to ``leanrank.tune`` unchanged."""


def _doing(at: Progress) -> str:
    best = "" if at.best is None else f", {at.best.n_features} features"
    return f"trial {at.trials + 1}: {at.doing[:40]}{best}, {at.share:.0%} done"


def _print_json(
    study: Study, final: Model, columns: dict[str, Any], path: str, raw: dict[str, Any]
) -> None:
    """Print the chosen model and the front as JSON."""
    screen.print_json(
        {
            "model": path,
            "measure": study.measure,
            "chosen": _row(study, study.chosen),
            "front": [_row(study, one) for one in study.front],
            "candidates": len(study.candidates),
            "scale": None if study.normalizer is None else study.normalizer.kind,
            "not_tried": list(study.not_tried),
            "skipped": list(study.skipped),
            "problems": dict(study.problems),
            "interrupted": study.interrupted,
            "weights": final.weights,
            "data": {name: screen.sizes(part) for name, part in raw.items()},
            "measures": {name: column.to_dict() for name, column in columns.items()},
        }
    )


def _row(study: Study, one: Any) -> dict[str, Any]:
    from leanrank.selection.candidate import bootstrap_interval

    return {
        "name": one.name,
        "algorithm": one.algorithm,
        "parameters": dict(one.parameters),
        "n_features": one.n_features,
        "cost": one.cost,
        "score": one.score(study.measure),
        "interval": list(bootstrap_interval(one.judged(study.measure))),
        "means": one.means,
    }


def _print_study(console: Console, study: Study, raw: dict[str, Any]) -> None:
    """Print the data, the search and the front."""
    from leanrank.plots.parts import front_rows

    kind = "" if study.normalizer is None else f"{study.normalizer.kind}, because "
    facts = {
        **{name: screen.data_summary(part) for name, part in raw.items()},
        "models": f"{len(study.candidates):,} judged, {len(study.front)} on the front",
        "scaled": f"{kind}{study.scale_reason}" if study.scale_reason else "",
        "not tried": ", ".join(study.not_tried),
        "do not take gaps": ", ".join(study.skipped),
        **{f"{name} failed": problem for name, problem in study.problems.items()},
        "chosen": study.chosen.name,
    }
    console.print(screen.facts(facts))
    console.print()
    rows, _, chosen, _ = front_rows(study)
    front = [row for row in rows if row["model"] >= 0]
    step, table = max(1, -(-len(front) // SHOWN_MODELS)), []
    for at, row in enumerate(front):
        if at % step == 0 or at == chosen:
            cost = [] if study.costs is None else [f"{row['cost']:g}"]
            figures = [f"{row['value']:.4f}", f"{row['low']:.3f}–{row['high']:.3f}"]
            name = row["name"] + " ← chosen" * (at == chosen)
            table.append([str(row["features"]), *cost, *figures, name])
    heads = ["features", study.measure, "interval", "model"]
    if study.costs is not None:
        heads.insert(1, "cost")
    console.print(screen.plain_table(*heads, rows=table, justify="left"))
    console.print(f"95% intervals over queries. {study.judged_on}", style="dim")
    console.print()


SHOWN_MODELS = 20
"""Largest number of models of the front that are printed: evenly spaced ones and the chosen."""


def report(
    model: str,
    /,
    train: str,
    vali: str,
    output: str,
    test: str | None = None,
    title: str | None = None,
    costs: str | None = None,
    alphas: int = 30,
    subsamples: int = 20,
    measures: str = options.DEFAULT_MEASURES,
    convention: str = "standard",
    format: str | None = None,
    read: list[str] | None = None,
    jobs: int = -1,
    json: bool = False,
) -> None:
    """Write a page about a model and its data: one HTML file that loads nothing from a network.

    For example: leanrank report m.json --train train.txt --vali vali.txt -o report.html

    Parameters
    ----------
    model : MODEL
        A model file, or -.
    train : FILE
        Data that the model was fitted to.
    vali : FILE
        Data to measure and compare models on.
    output : -o FILE
        Where to write the page, or -.
    test : FILE
        Test data for the figures at the top.
    title : TEXT
        Heading of the page.
    costs : FILE
        Cost of each feature: CSV with lines such as bm25,0.2.
    alphas : N >= 0
        Number of models along the regularisation path to show; 0 skips them.
    subsamples : N >= 0
        Subsample refits for stability; 0 skips them.
    """
    check_files([model, train, vali, test, costs], page=output, json=json)
    options.check_measures(measures, convention)
    if subsamples == 1:
        raise InputError("--subsamples 1 does not show stability: give 2 or more, or 0")
    with screen.progress() as say:
        from leanrank.data.ranking_data import counted
        from leanrank.metrics import parse_measures
        from leanrank.model import load_model
        from leanrank.report import study_of_model, with_path, with_stability
        from leanrank.selection.costs import read_costs

        fitted = load_model(model)
        files = {"training": train, "validation": vali} | ({} if test is None else {"test": test})
        sets = {}
        for name, file in files.items():
            say(f"Reading {file}")
            sets[name] = read_data(file, format, read, model=fitted)
        say("Measuring")
        names = [measure.name for measure in parse_measures(measures)]
        study = study_of_model(
            fitted,
            sets["training"],
            sets["validation"],
            measure=names[0],
            measures=names,
            convention=convention,
            costs=None if costs is None else read_costs(costs),
        )
        if alphas:
            say("Following its path")
            study = with_path(study, n_alphas=alphas)
        if subsamples:
            say("Fitting subsamples")
            study = with_stability(study, n_subsamples=subsamples, n_jobs=jobs)
        say("Writing the page")
        about: dict[str, Any] = {"title": title, "files": files, "test": sets.get("test")}
        write_page(study, output, n_draws=subsamples, jobs=jobs, **about)
    one = study.chosen
    if json:
        found = {"report": output, "model": model, "name": one.name, "n_features": one.n_features}
        found |= {"cost": one.cost, "models_shown": len(study.front), "validation": one.means}
        screen.print_json(found)
    elif output != "-":
        console = screen.screen()
        means = ", ".join(f"{name} {screen.number(mean)}" for name, mean in one.means.items())
        size = counted(one.n_features, "feature")
        console.print(f"{one.name}: {size}, {means} on the validation data", soft_wrap=True)
        screen.print_written(console, {"Report": output})


def write_page(study: Study, path: str, *, jobs: int, n_draws: int = 20, **about: Any) -> None:
    """Write the page of a study, with bands around its curves and the command line."""
    from leanrank.report import with_bands, write_report

    if n_draws:
        study = with_bands(study, n_draws=n_draws, n_jobs=jobs)
    write_report(study, path, command=command_line(), **about)
