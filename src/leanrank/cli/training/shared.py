"""The steps that all ways of training share, from what was typed to what is printed."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import typer

from leanrank.cli import screen
from leanrank.cli.entry import FAILED, say
from leanrank.cli.parameters import parse_directions, parse_parameters
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    files: list[str]
    model: str
    vali: str | None
    algorithm: str | None
    parameters: list[str]
    monotone: str | None
    scale: str | None
    format: str | None
    read: list[str]
    measures: str
    convention: str
    seed: int | None
    jobs: int
    checkpoint: str | None
    every: int | None
    features: str | None
    json: bool
    report: str | None
    allow_empty: bool
    on_disk: bool = False
    fill: list[str] | None = None
    start: str | None = None
    structure: str = "same"
    without_summary: bool = False
    target: str | None = None


def check_able(name: str, what: str, needs: str) -> None:
    """Reject a system that lacks what its entry in the registry calls ``what``."""
    from leanrank.registry import SYSTEMS, ranker_names

    if name in SYSTEMS and not getattr(SYSTEMS[name], what):
        able = sorted(each for each in ranker_names() if getattr(SYSTEMS[each], what))
        raise InputError(f"{name} needs {needs}, or choose from {', '.join(able)}")


def make_ranker(algorithm: str, given: list[str], *, seed: int | None, jobs: int) -> Any:
    """Make an unfitted ranker from what was typed."""
    from leanrank.registry import get_system

    system = get_system(algorithm)
    chosen = system.load()
    defaults = chosen().get_params()
    parameters = parse_parameters(given, defaults, chosen.__name__)
    for name, option, value in (("random_state", "--seed", seed), ("n_jobs", "--jobs", jobs)):
        if name in parameters and (name != "n_jobs" or jobs != -1) and value is not None:
            raise InputError(f"{option} and -p {name} say the same thing: give one")
        if name in defaults and value is not None:
            parameters.setdefault(name, value)
    return chosen(**(system.own_parameters | parameters))


def set_monotone(ranker: Any, text: str | None) -> None:
    """Apply ``--monotone``."""
    if text is None:
        return
    if getattr(ranker, "curves", None) is None:
        raise InputError("--monotone is for curves: add -p curves=auto, or leave it out")
    if ranker.monotone is not None:
        raise InputError("--monotone and -p monotone say the same thing: give one")
    ranker.set_params(monotone=parse_directions(text))


def fit_model(
    ranker: Any,
    training: RankingData,
    normalizer: Any = None,
    validation: RankingData | None = None,
    fill: Any = None,
) -> Model:
    """Fit a ranker, on normalised features if asked, and return one model of both.

    Validation data are for rankers that stop by them. ``fill`` is for missing features.
    """
    from leanrank.model.model import fill_gaps
    from leanrank.model.writing import as_model, fill_values

    values = {} if fill is None else fill_values(training, fill)
    scaled, judge = (
        None if part is None else part.with_fields(X=fill_gaps(part.X, values)) if values else part
        for part in (training, validation)
    )
    if normalizer is not None:
        scaled = normalizer.fit_transform(scaled)
        judge = None if judge is None else normalizer.transform(judge)
    ranker.fit(scaled, **({} if judge is None else {"validation": judge}))
    return described(as_model(ranker, normalizer).replace(fill=values), training)


def finish(
    model: Model, request: Request, sets: dict[str, Any], say: Callable[[str], None]
) -> tuple[Model, dict[str, Any]]:
    """Measure a model on data sets and write it, unless it is empty; return it and the measures."""
    from leanrank.metrics import evaluate

    refuse_empty(model, request)
    if request.without_summary:
        model = model.replace(summary=None)
    say("Measuring")
    how: dict[str, Any] = {"measures": request.measures, "convention": request.convention}
    columns = {name: evaluate(data, model.predict(data), **how) for name, data in sets.items()}
    if columns:
        model = with_measures(model, {name: column.means for name, column in columns.items()})
    model.save(request.model)
    return model, columns


def refuse_empty(model: Model, request: Request) -> None:
    """End with exit code 1 if a model uses no feature, unless that was allowed."""
    if model.n_nonzero == 0 and not request.allow_empty:
        say(f"error: {request.model} was not written: add --allow-empty to write an empty model")
        raise typer.Exit(FAILED)


def described(model: Model, training: RankingData) -> Model:
    """Add the training data to how the model was made, and a summary of them."""
    from leanrank.model import make_provenance
    from leanrank.model.summary import with_summary

    model = model.replace(provenance={**model.provenance, **make_provenance(data=training)})
    return model if model.summary else with_summary(model, training)


def with_measures(model: Model, means: dict[str, dict[str, float]]) -> Model:
    """Add what was measured to how the model was made."""
    return model.replace(provenance={**model.provenance, "measures": means})


def print_result(
    path: str, data: dict[str, dict[str, int]], model: Model, columns: dict[str, Any]
) -> None:
    """Print what was learned, and from what, as JSON."""
    screen.print_json(
        {
            "model": path,
            "algorithm": model.provenance["algorithm"],
            "parameters": model.provenance["parameters"],
            "normalizer": model.normalizer,
            "data": data,
            "n_features": model.n_features,
            "n_nonzero": model.n_nonzero,
            "weights": model.weights,
            "measures": {name: column.to_dict() for name, column in columns.items()},
        }
    )


def print_summary(path: str, data: dict[str, str], model: Model, columns: dict[str, Any]) -> None:
    """Print what was learned, and from what, for people."""
    # A model on standard output leaves standard error for people.
    console = screen.screen(error=path == "-")
    parameters = screen.listed(model.provenance["parameters"])
    facts = {
        **data,
        "algorithm": f"{model.provenance['algorithm']} ({parameters})",
        "normaliser": "" if model.normalizer is None else str(model.normalizer["kind"]),
    }
    console.print(screen.facts(facts))
    console.print()
    if model.n_nonzero:
        console.print(screen.weights_table(model, console))
    console.print(screen.weights_caption(model), style="dim")
    if columns:
        console.print()
        console.print(screen.measures_table(columns))
        console.print(screen.measures_note(list(columns.values())[-1]), style="dim")
    if path != "-":
        console.print(f"\nModel written to {path}", soft_wrap=True)
