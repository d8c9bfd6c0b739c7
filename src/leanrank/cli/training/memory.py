"""``leanrank train``: learn from data in memory, or mapped into it."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

from leanrank.cli import screen
from leanrank.cli.datafiles import read_data
from leanrank.cli.options import check_exportable, check_measures, check_target, parse_fill
from leanrank.cli.training.on_disk import store_beside
from leanrank.cli.training.shared import (
    Request,
    finish,
    fit_model,
    make_ranker,
    print_result,
    print_summary,
    set_monotone,
)
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model


def train_in_memory(request: Request) -> None:
    """Learn from one file and write the model."""
    file, vali, model = request.files[0], request.vali, request.model
    with screen.progress() as say:
        from leanrank.data.scaling.spread import check_scale, scale_wanted

        algorithm = request.algorithm or _default_system(request)
        ranker = make_ranker(algorithm, request.parameters, seed=request.seed, jobs=request.jobs)
        set_monotone(ranker, request.monotone)
        check_measures(request.measures, request.convention)
        check_scale(request.scale)
        check_target(request.target, request.scale)
        _check_patience(ranker, vali)
        say(f"Reading {file}")
        training, note = _training_data(request, say)
        sets = {"training": training}
        if vali is not None:
            say(f"Reading {vali}")
            sets["validation"] = read_data(
                vali, request.format, request.read, n_features=training.n_features
            )
        say(f"Fitting {type(ranker).__name__} on {len(training):,} documents")
        _show_progress(ranker, say)
        judge = _stopping_data(ranker, sets.get("validation"))
        curves = getattr(ranker, "curves", None) is not None
        choice = scale_wanted(training, request.scale, curves=curves)
        fitted = fit_model(ranker, training, choice.make(), judge, parse_fill(request.fill))
        check_exportable(request.target, fitted, training)
        fitted, columns = finish(fitted, request, sets, say)
        if request.report is not None:
            say("Writing the report")
            _write_report(fitted, sets, request)
    if request.json:
        sizes = {name: screen.sizes(d) for name, d in sets.items()}
        print_result(model, sizes, fitted, columns)
    else:
        shown = {name: screen.data_summary(d) for name, d in sets.items()}
        shown |= {"kept": _kept(ranker, judge), "scaled": choice.reason, "on disk": note}
        print_summary(model, shown, fitted, columns)
        if request.report is not None:
            console = screen.screen(error=model == "-")
            console.print(f"Report written to {request.report}", soft_wrap=True)


def _default_system(request: Request) -> str:
    """Return what to fit unless told: the default ranker, which needs all documents in memory.

    A page of a model cannot show surfaces of two features yet.
    """
    if request.on_disk or request.files[0].endswith(".arrow"):
        return "domination"
    given = {text.partition("=")[0] for text in request.parameters}
    if request.report is not None and "max_pairs" not in given:
        request.parameters.append("max_pairs=0")
    return "lean"


def _training_data(request: Request, say: Callable[[str], None]) -> tuple[RankingData, str]:
    """Read the training data, or map a file of them; also return a note on that."""
    file = request.files[0]
    if request.on_disk:
        return store_beside(file, request.format, request.read, say)
    return read_data(file, request.format, request.read), ""


def _check_patience(ranker: Any, vali: str | None) -> None:
    """Reject ``patience`` when there are no validation data to stop by."""
    patience = getattr(ranker, "patience", None)
    if patience is not None and vali is None and not getattr(ranker, "stops_by_training", False):
        raise InputError(
            f"-p patience={patience} waits for a better measure on validation data: add --vali "
            "FILE, or leave it out"
        )


def _stopping_data(ranker: Any, validation: RankingData | None) -> RankingData | None:
    """Return the validation data for a ranker that was told to stop by them."""
    return None if getattr(ranker, "patience", None) is None else validation


def _kept(ranker: Any, validation: RankingData | None) -> str:
    """Describe which part of a run became the model; empty without validation data."""
    if validation is None:
        return ""
    best = getattr(ranker, "best_epoch_", ranker.n_iter_)
    unit = "round" if hasattr(ranker, "n_rounds") else "pass"
    run = len(ranker.history_)
    return f"{unit} {best:,} of {run:,}, the best by {ranker.measure} on the validation data"


def _show_progress(ranker: Any, say: Callable[[str], None]) -> None:
    """Show the progress of a ranker that is solved to a gap."""
    if getattr(ranker, "callback", 0) is not None:  # it has none, or the user's
        return

    def show(entry: dict[str, Any]) -> None:
        if {"iteration", "objective", "gap"} <= set(entry):
            say(
                f"Iteration {entry['iteration']}: objective {entry['objective']:.6g}, "
                f"gap {entry['gap']:.1e}"
            )

    ranker.set_params(callback=show)


def _write_report(model: Model, sets: dict[str, RankingData], request: Request) -> None:
    from leanrank.metrics import parse_measures
    from leanrank.report import study_of_model, with_bands, write_report

    assert request.report is not None
    measures = [measure.name for measure in parse_measures(request.measures)]
    study = study_of_model(
        model,
        sets["training"],
        sets["validation"],
        measure=measures[0],
        measures=measures,
        convention=request.convention,
    )
    write_report(with_bands(study, n_jobs=request.jobs), request.report)
