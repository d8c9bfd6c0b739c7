"""``leanrank report``: a page about a model that is there already."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_files, read_costs, read_data
from leanrank.cli.entry import command_line
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.selection.study import Study


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
    """Write a page about a model: one HTML file that opens from disk and loads nothing.

    For example: leanrank report m.json --train train.txt --vali vali.txt -o report.html

    Parameters
    ----------
    model : MODEL
        A model file, or -.
    train : FILE
        The data it was fitted to.
    vali : FILE
        Data to judge and compare models on.
    output : -o FILE
        The page to write, or -.
    test : FILE
        Held-out data for the headline.
    title : TEXT
        The heading of the page.
    costs : FILE
        What features cost: CSV by name.
    alphas : N >= 0
        Models of its path to show beside it; 0 skips them.
    subsamples : N >= 0
        Subsample refits for stability; 0 skips them.
    """
    check_files([model, train, vali, test, costs], page=output, json=json)
    options.check_measures(measures, convention)
    if subsamples == 1:
        raise InputError("--subsamples 1 cannot tell what is stable: give 2 or more, or 0")
    with screen.progress() as say:
        from leanrank.data.ranking_data import counted
        from leanrank.metrics import parse_measures
        from leanrank.model import load_model
        from leanrank.report import study_of_model, with_path, with_stability

        fitted = load_model(model)
        files = {"training": train, "validation": vali} | ({} if test is None else {"test": test})
        sets = {}
        for name, file in files.items():
            say(f"Reading {file}")
            sets[name] = read_data(file, format, read, model=fitted)
        say("Measuring")
        called = fitted.feature_names or sets["training"].feature_names
        names = [measure.name for measure in parse_measures(measures)]
        study = study_of_model(
            fitted,
            sets["training"],
            sets["validation"],
            measure=names[0],
            measures=names,
            convention=convention,
            costs=read_costs(costs, called, sets["training"].n_features),
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
        console.print(f"Report written to {output}", soft_wrap=True)


def write_page(study: Study, path: str, *, jobs: int, n_draws: int = 20, **about: Any) -> None:
    """Write the page of a study, with bands around its curves and the command that runs."""
    from leanrank.report import with_bands, write_report

    if n_draws:
        study = with_bands(study, n_draws=n_draws, n_jobs=jobs)
    write_report(study, path, command=command_line(), **about)
