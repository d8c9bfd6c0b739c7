"""``leanrank tune``: search for the best model within some limits."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

import typer
from typer import Argument, Option

from leanrank.cli import options
from leanrank.cli.datafiles import (
    check_apart,
    check_folder,
    read_data,
    read_options,
    stdin_once,
)
from leanrank.cli.entry import INTERRUPTED
from leanrank.errors import InputError, LeanrankError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.metrics import Evaluation
    from leanrank.model import Model
    from leanrank.selection.costs import Costs
    from leanrank.selection.study import Study


def tune(
    data: Annotated[str, Argument(metavar="TRAIN", help="Training data, or -.")],
    model: options.ModelFile,
    vali: Annotated[
        str | None, Option(metavar="FILE", help="Validation data; without, cross-validation.")
    ] = None,
    test: Annotated[
        str | None, Option(metavar="FILE", help="Test data: read once, after the choice.")
    ] = None,
    max_features: Annotated[
        int | None, Option(min=1, metavar="N", help="At most N features.")
    ] = None,
    min_ndcg: Annotated[float | None, Option(metavar="VALUE", help="Reach this NDCG@10.")] = None,
    min_measure: Annotated[
        list[str] | None, Option(metavar="NAME=VALUE", help="Reach this measure; may be repeated.")
    ] = None,
    costs: Annotated[
        str | None,
        Option(metavar="FILE", help="What features cost: CSV or JSON, as in bm25,0.2ms."),
    ] = None,
    max_cost: Annotated[
        str | None, Option(metavar="COST", help="Maximum total feature cost, e.g. 3ms.")
    ] = None,
    rule: Annotated[
        str, Option(metavar="RULE", help="best, or 1se: the sparsest within one standard error.")
    ] = "best",
    budget: Annotated[
        str | None, Option(metavar="TIME", help="How long to search. [default: 60s]")
    ] = None,
    trials: Annotated[
        int | None,
        Option(min=1, metavar="N", help="Number of trials instead of a time limit (reproducible)."),
    ] = None,
    systems: Annotated[
        str | None, Option(metavar="LIST", help="Systems to try, in this order.")
    ] = None,
    choose_by: Annotated[
        str | None,
        Option(metavar="NAME", help="Measure to choose by, or loss. [default: --measure]"),
    ] = None,
    measure: Annotated[str, Option(metavar="NAME", help="Measure to report.")] = "ndcg@10",
    convention: options.Convention = "standard",
    journal: Annotated[
        str | None,
        Option(metavar="FILE", help="Log trials here; resume if the file exists."),
    ] = None,
    refit: Annotated[
        str,
        Option(
            metavar="PART",
            help="train, or both: fit the chosen features to training and validation data.",
        ),
    ] = "train",
    report: Annotated[
        str | None, Option(metavar="FILE", help="Write a page to look at all models.")
    ] = None,
    scale: options.Scale = "auto",
    target: options.Target = None,
    format: options.Format = None,
    read: options.Read = None,
    jobs: Annotated[int, Option("--jobs", "-j", help="Threads; trials do not depend on it.")] = -1,
    json: options.Json = False,
) -> None:
    """Search rankers and parameters for the best model within your limits.

    For example: leanrank tune train.txt --vali vali.txt --max-features 10 --budget 60s -m m.json
    """
    from leanrank.cli.tune_screen import print_result, print_summary, progress_bar
    from leanrank.data.formats import check_exists
    from leanrank.data.scaling.spread import check_scale

    stdin_once(data, vali, test)
    check_folder(model, json, "model", "the model a file")
    check_apart([model, report, journal], [data, vali, test, costs])
    for path in (journal, report):
        if path is not None:
            check_folder(path)
    if report is not None:
        options.check_report()
    if max_cost is not None and costs is None:
        raise InputError("--max-cost needs to know what features cost: give --costs FILE")
    wanted = _wanted(min_ndcg, min_measure or [])
    seconds = _seconds(budget, trials)
    measures = tuple(dict.fromkeys([measure, *wanted, *options.DEFAULT_MEASURES.split(",")]))
    options.check_measures(",".join([*measures, choose_by or measure]), convention)
    check_scale(scale)
    options.check_target(target, scale)
    names = _systems(systems)
    if test is not None:  # it is read when the search is over
        check_exists(test)
        read_options(test, format, read)
    with progress_bar(seconds, trials) as tell:
        from leanrank.selection.tuning import tune as search

        tell("Reading data")
        raw = {"training": read_data(data, format, read)}
        n_features = raw["training"].n_features
        if vali is not None:
            raw["validation"] = read_data(vali, format, read, n_features=n_features)
        table = _costs(costs, raw["training"])
        study = search(
            raw["training"],
            raw.get("validation"),
            scale=scale,
            choose_by=choose_by,
            measure=measure,
            convention=convention,
            measures=measures,
            max_features=max_features,
            max_cost=None if max_cost is None or table is None else table.amount(max_cost),
            min_measure=wanted,
            rule=rule,
            costs=table,
            systems=names,
            budget=seconds,
            trials=trials,
            journal=journal,
            refit=refit,
            n_jobs=jobs,
            progress=tell,
        )
        tell("Measuring")
        if test is not None:
            try:
                raw["test"] = read_data(test, format, read, n_features=n_features)
            except LeanrankError as error:  # the search is not to be lost
                _finished(study, raw, refit)[0].save(model)
                raise InputError(f"{error} (the chosen model is in {model})") from error
        final, columns = _finished(study, raw, refit)
        options.check_exportable(target, final, raw["training"])
        final.save(model)
        if report is not None:
            from leanrank.report import with_bands, write_report

            tell("Writing the report")
            study = with_bands(study, n_jobs=jobs)
            write_report(study, report, test=raw.get("test"))
    if json:
        print_result(study, final, columns, model, raw)
    else:
        print_summary(study, final, columns, model, journal, report, raw)
    if study.interrupted:
        raise typer.Exit(INTERRUPTED)


def _wanted(min_ndcg: float | None, given: list[str]) -> dict[str, float]:
    wanted = {} if min_ndcg is None else {"ndcg@10": min_ndcg}
    for word in given:
        name, _, value = word.partition("=")
        try:
            number = float(value)
        except ValueError:
            raise InputError(
                f"--min-measure {word}: write a measure and a number, such as map=0.4"
            ) from None
        if name.strip() in wanted:
            raise InputError(f"--min-measure {word}: {name.strip()} has a bound already")
        wanted[name.strip()] = number
    return wanted


def _seconds(budget: str | None, trials: int | None) -> float | None:
    from leanrank.selection.costs import read_seconds

    if budget is not None and trials is not None:
        raise InputError("--budget and --trials both say when to stop: give one")
    return None if budget is None else read_seconds(budget, "--budget")


def _systems(given: str | None) -> list[str] | None:
    if given is None:
        return None
    from leanrank.selection.systems import PEERS, check_systems

    names = [name.strip() for name in given.split(",")]
    check_systems(names)
    for name in names:
        if name in PEERS:
            raise InputError(f"--systems {name}: this is for leanrank compare only: leave it out")
    return names


def _costs(path: str | None, training: RankingData) -> Costs | None:
    if path is None:
        return None
    from leanrank.selection.costs import Costs

    return Costs.read(path, training.feature_names, n_features=training.n_features)


def _finished(
    study: Study, raw: dict[str, RankingData], refit: str
) -> tuple[Model, dict[str, Evaluation]]:
    """Return the chosen model with its origin, and measure it as the report does."""
    from leanrank.cli.training.shared import described, with_measures
    from leanrank.metrics import evaluate
    from leanrank.metrics.judge import Judge

    final = described(study.model, raw["training"])
    rules = Judge(study.measure, study.convention).rules
    columns = {
        name: evaluate(part, final.predict(part), measures=study.measures, convention=rules)
        for name, part in raw.items()
        if name != "validation" or refit != "both"  # the model was fitted to it
    }
    return with_measures(final, {name: c.means for name, c in columns.items()}), columns
