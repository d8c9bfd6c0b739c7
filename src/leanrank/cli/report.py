"""``leanrank report``: a page about a model that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument, Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_apart, check_folder, read_data, stdin_once
from leanrank.cli.screen import number
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model
    from leanrank.selection import Costs, Study


def report(
    model: Annotated[str, Argument(metavar="MODEL", help="A model file, or -.")],
    train: Annotated[str, Option(metavar="FILE", help="The data it was fitted to.")],
    vali: Annotated[str, Option(metavar="FILE", help="Data to judge and compare models on.")],
    output: Annotated[
        str, Option("--output", "-o", metavar="FILE", help="The page to write, or -.")
    ],
    test: Annotated[
        str | None, Option(metavar="FILE", help="Held-out data for the headline.")
    ] = None,
    title: Annotated[str | None, Option(metavar="TEXT", help="The heading of the page.")] = None,
    costs: Annotated[
        str | None, Option(metavar="FILE", help="What features cost: CSV or JSON by name.")
    ] = None,
    alphas: Annotated[
        int, Option(metavar="N", help="Models of its path to show beside it, or 0.")
    ] = 30,
    subsamples: Annotated[
        int, Option(metavar="N", help="Subsample refits for stability; 0 skips them.")
    ] = 20,
    measures: options.Measures = options.DEFAULT_MEASURES,
    convention: options.Convention = "standard",
    format: options.Format = None,
    read: options.Read = None,
    jobs: Annotated[
        int, Option("--jobs", "-j", help="Threads; the page does not depend on it.")
    ] = -1,
    json: options.Json = False,
) -> None:
    """Write a page about a model: one HTML file that opens from disk and loads nothing.

    For example: leanrank report m.json --train train.txt --vali vali.txt -o report.html
    """
    stdin_once(model, train, vali, test)
    check_folder(output, json, "page", "the page -o FILE")
    check_apart([output], [model, train, vali, test, costs])
    options.check_measures(measures, convention)
    _check_counts(alphas, subsamples)
    with screen.progress() as say:
        from leanrank.metrics import parse_measures
        from leanrank.model import load_model
        from leanrank.report import (
            study_of_model,
            with_bands,
            with_path,
            with_stability,
            write_report,
        )

        fitted = load_model(model)
        options.check_report()
        sets = {}
        for name, file in {"training": train, "validation": vali, "test": test}.items():
            if file is not None:
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
            costs=_costs(costs, fitted, sets["training"]),
        )
        if alphas:
            say("Following its path")
            study = with_path(study, n_alphas=alphas)
        if subsamples:
            say("Fitting subsamples")
            study = with_stability(study, n_subsamples=subsamples, n_jobs=jobs)
            study = with_bands(study, n_draws=subsamples, n_jobs=jobs)
        say("Writing the page")
        write_report(study, output, test=sets.get("test"), title=title)
    result = _result(study, model, output)
    if json:
        screen.print_json(result)
    elif output != "-":
        console = screen.screen()
        console.print(f"{study.chosen.name}: {_figures(result)}", soft_wrap=True)
        console.print(f"Report written to {output}", soft_wrap=True)


def _check_counts(alphas: int, subsamples: int) -> None:
    if alphas < 0:
        raise InputError(f"--alphas {alphas} is less than none: give 0 to leave the path out")
    if subsamples < 0 or subsamples == 1:
        raise InputError(
            f"--subsamples {subsamples} cannot tell what is stable: give 2 or more, or 0 to leave "
            "it out"
        )


def _costs(path: str | None, model: Model, data: RankingData) -> Costs | None:
    if path is None:
        return None
    from leanrank.selection import Costs

    names = model.feature_names or data.feature_names
    return Costs.read(path, names, n_features=data.n_features)


def _result(study: Study, model: str, output: str) -> dict[str, Any]:
    return {
        "report": output,
        "model": model,
        "name": study.chosen.name,
        "n_features": study.chosen.n_features,
        "cost": study.chosen.cost,
        "models_shown": len(study.front),
        "validation": study.chosen.means,
    }


def _figures(result: dict[str, Any]) -> str:
    means = (f"{name} {number(value)}" for name, value in result["validation"].items())
    many = result["n_features"]
    return f"{many:,} feature{'s' * (many != 1)}, {', '.join(means)} on the validation data"
