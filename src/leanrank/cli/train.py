"""``leanrank train``: learn a model from a file."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from typer import Argument, Option

from leanrank.cli import options
from leanrank.cli.systems import complete_algorithm, complete_parameter
from leanrank.rankers import RANKERS

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model


def train(
    data: Annotated[
        list[str],
        Argument(
            metavar="TRAIN",
            help="Training data, or -; several files with --stream or --cluster, which also takes "
            "a pattern such as 'part-*.parquet'.",
        ),
    ],
    model: Annotated[
        str, Option("--model", "-m", metavar="FILE", help="Where to write the model, or -.")
    ],
    vali: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Validation data to measure on. They do not change the model, unless "
            "-p patience=N asks to stop after N rounds or passes without a better one and to "
            "keep the best.",
        ),
    ] = None,
    algorithm: Annotated[
        str | None,
        Option(
            "--algorithm",
            "-a",
            metavar="NAME",
            help=f"What to learn with: {', '.join(sorted(RANKERS))}. Unless told: domination, "
            "or minbatsrank with --stream. `leanrank systems` explains them.",
            autocompletion=complete_algorithm,
        ),
    ] = None,
    parameter: Annotated[
        list[str] | None,
        Option(
            "--parameter",
            "-p",
            metavar="NAME=VALUE",
            help="A parameter; may be repeated. `leanrank systems NAME` lists them.",
            autocompletion=complete_parameter,
        ),
    ] = None,
    monotone: Annotated[
        str | None,
        Option(
            metavar="NAME=up|down,…",
            help="With -p curves=…: features whose curve may only rise or only fall.",
        ),
    ] = None,
    scale: options.Scale = "auto",
    format: options.Format = None,
    read: options.Read = None,
    measures: options.Measures = options.DEFAULT_MEASURES,
    convention: options.Convention = "standard",
    report: Annotated[
        str | None, Option(metavar="FILE", help="Write a page about the model; with --vali.")
    ] = None,
    seed: Annotated[int | None, Option(help="Seed of an algorithm that draws at random.")] = None,
    jobs: options.Jobs = -1,
    stream: Annotated[
        bool,
        Option(
            "--stream", help="Read piece by piece, in the order of the files: any size will do."
        ),
    ] = False,
    checkpoint: Annotated[
        str | None,
        Option(
            metavar="FILE",
            help="Go on from this file if it exists, and keep it up to date: an interrupted run "
            "loses little. For --stream, and for what Newton's method solves.",
        ),
    ] = None,
    on_disk: Annotated[
        bool,
        Option(
            "--on-disk",
            help="For data larger than memory: make a file TRAIN.arrow beside the data, unless it "
            "is there, and map it. A .arrow file is mapped anyway.",
        ),
    ] = False,
    every: Annotated[
        int | None, Option(metavar="N", help="With --stream: queries between checkpoints.")
    ] = None,
    features: Annotated[
        str | None,
        Option(
            metavar="HOW",
            help="With --stream: grow (the default) for features that appear on the way, or "
            "hash:BITS for a table of fixed size.",
        ),
    ] = None,
    cluster: options.Cluster = None,
    allow_empty: Annotated[
        bool, Option("--allow-empty", help="Write a model even if it uses no feature.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Learn a ranking function and write it as a model file.

    For example: leanrank train train.txt --vali vali.txt -p alpha=0.01 --model m.json
    """
    from leanrank.cli.datafiles import check_folder, stdin_once
    from leanrank.errors import InputError

    stdin_once(*data, vali)
    check_folder(model, json, "model", "the model a file")
    request = Request(
        data, model, vali, algorithm, parameter or [], monotone, scale, format, read or [],
        measures, convention, seed, jobs, checkpoint, every, features, json, report, allow_empty,
        on_disk,
    )  # fmt: skip
    if report is not None:
        check_folder(report)
        if stream or vali is None:
            raise InputError("--report needs --vali, and all data at once: leave --stream out")
        check_report()
    if stream and monotone is not None:
        raise InputError("--monotone is for curves, which need all data at once: leave one out")
    if stream and on_disk:
        raise InputError("--stream reads piece by piece, --on-disk all at once: give one of them")
    if stream:
        from leanrank.cli.train_stream import train_stream

        train_stream(request)
        return
    if cluster is not None and (on_disk or checkpoint is not None):
        raise InputError("--on-disk and --checkpoint are for one machine: leave --cluster out")
    if cluster is not None:
        from leanrank.cli.train_cluster import train_on_cluster

        if report is not None:
            raise InputError("--report needs all data in memory: leave --cluster out")
        train_on_cluster(request, cluster)
        return
    for option, value in (("every", every), ("features", features)):
        if value is not None:
            raise InputError(f"--{option} is for streams: add --stream, or leave it out")
    if len(data) > 1:
        raise InputError(
            f"{len(data)} training files were given: give one, or add --stream or --cluster to "
            "read them all"
        )
    _train_in_memory(request)


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


def _train_in_memory(request: Request) -> None:
    from leanrank.cli import screen
    from leanrank.cli.datafiles import read_data
    from leanrank.cli.early_stopping import check_patience, kept, stopping_data

    file, vali, model = request.files[0], request.vali, request.model
    how: dict[str, Any] = {"measures": request.measures, "convention": request.convention}
    with screen.progress() as say:
        from leanrank.data.scaling.spread import check_scale, scale_wanted
        from leanrank.metrics import evaluate

        algorithm = request.algorithm or "domination"
        ranker = make_ranker(algorithm, request.parameters, seed=request.seed, jobs=request.jobs)
        set_monotone(ranker, request.monotone)
        check_measures(request.measures, request.convention)
        check_scale(request.scale)
        check_patience(ranker, vali)
        if request.checkpoint is not None:
            check_checkpoint(request.checkpoint, model)
        say(f"Reading {file}")
        training, note = _training_data(request, say)
        sets = {"training": training}
        if vali is not None:
            say(f"Reading {vali}")
            sets["validation"] = read_data(
                vali, request.format, request.read, n_features=training.n_features
            )
        say(f"Fitting {type(ranker).__name__} on {len(training):,} documents")
        show_progress(ranker, say)
        judge = stopping_data(ranker, sets.get("validation"))
        curves = getattr(ranker, "curves", None) is not None
        choice = scale_wanted(training, request.scale, curves=curves)
        fitted = fit_model(ranker, training, choice.make(), judge, request.checkpoint)
        refuse_empty(fitted, request)
        say("Measuring")
        columns = {name: evaluate(d, fitted.predict(d), **how) for name, d in sets.items()}
        fitted = with_measures(fitted, {name: column.means for name, column in columns.items()})
        fitted.save(model)
        if request.report is not None:
            say("Writing the report")
            _write_report(fitted, sets, request)
    if request.json:
        sizes = {name: screen.sizes(d) for name, d in sets.items()}
        print_result(model, sizes, fitted, columns)
    else:
        shown = {name: screen.data_summary(d) for name, d in sets.items()}
        shown |= {"kept": kept(ranker, judge), "scaled": choice.reason, "on disk": note}
        shown["checkpoint"] = request.checkpoint or ""
        print_summary(model, shown, fitted, columns)
        if request.report is not None:
            console = screen.screen(error=model == "-")
            console.print(f"Report written to {request.report}", soft_wrap=True)


def _training_data(request: Request, say: Callable[[str], None]) -> tuple[RankingData, str]:
    """Read the training data, or map a file of them; also return what to say of that."""
    from leanrank.cli.datafiles import read_data

    file = request.files[0]
    if not request.on_disk:
        return read_data(file, request.format, request.read), ""
    from leanrank.cli.on_disk import store_beside

    return store_beside(file, request.format, request.read, say)


def check_checkpoint(file: str, model: str) -> None:
    """Check that a checkpoint can be written, and is not the model."""
    import os

    from leanrank.cli.datafiles import check_folder
    from leanrank.errors import InputError

    if file == "-":
        raise InputError("--checkpoint - is no file that a later run could read: give a name")
    check_folder(file)
    if os.path.realpath(file) == os.path.realpath(model):
        raise InputError(f"{model} cannot be both model and checkpoint: give them two names")


def show_progress(ranker: Any, say: Callable[[str], None]) -> None:
    """Have a ranker that is solved to a gap say how far it is."""
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


def make_ranker(algorithm: str, given: list[str], *, seed: int | None, jobs: int) -> Any:
    """Make an unfitted ranker from what was typed."""
    from leanrank.cli.parameters import parse_parameters
    from leanrank.errors import InputError
    from leanrank.rankers import get_ranker

    chosen = get_ranker(algorithm)
    defaults = chosen().get_params()
    parameters = parse_parameters(given, defaults, chosen.__name__)
    for name, option, value in (("random_state", "--seed", seed), ("n_jobs", "--jobs", jobs)):
        if name in parameters and (name != "n_jobs" or jobs != -1) and value is not None:
            raise InputError(f"{option} and -p {name} say the same thing: give one")
        if name in defaults and value is not None:
            parameters.setdefault(name, value)
    return chosen(**parameters)


def set_monotone(ranker: Any, text: str | None) -> None:
    """Set what ``--monotone`` says."""
    from leanrank.cli.parameters import parse_directions
    from leanrank.errors import InputError

    if text is None:
        return
    if getattr(ranker, "curves", None) is None:
        raise InputError("--monotone is for curves: add -p curves=auto, or leave it out")
    if ranker.monotone is not None:
        raise InputError("--monotone and -p monotone say the same thing: give one")
    ranker.set_params(monotone=parse_directions(text))


def check_measures(measures: str, convention: str) -> None:
    """Find a misspelt measure or convention before the work, not after it."""
    from leanrank.metrics import evaluate

    evaluate([1, 0], [1, 0], doc_ids=["a", "b"], measures=measures, convention=convention)


def check_report() -> None:
    """Find a package that a report lacks before the work."""
    from importlib.util import find_spec

    from leanrank.errors import MissingDependencyError

    for package, module in (("altair", "altair"), ("vl-convert-python", "vl_convert")):
        if find_spec(module) is None:
            raise MissingDependencyError(package, "report", "a report")


def fit_model(
    ranker: Any,
    training: RankingData,
    normalizer: Any = None,
    validation: RankingData | None = None,
    checkpoint: str | None = None,
) -> Model:
    """Fit a ranker, on normalised features if asked, and return one model of both.

    Validation data are for rankers that stop by them, a checkpoint for those that Newton's method
    solves.
    """
    from leanrank.model.writing import as_model

    scaled, judge = training, validation
    if normalizer is not None:
        scaled = normalizer.fit_transform(training)
        judge = None if validation is None else normalizer.transform(validation)
    if checkpoint is None:
        ranker.fit(scaled, **({} if judge is None else {"validation": judge}))
    else:
        from leanrank.rankers.newton.resumable import fit_resumable

        fit_resumable(ranker, scaled, checkpoint)
    return described(as_model(ranker, normalizer), training)


def refuse_empty(model: Model, request: Request) -> None:
    """End with exit code 1 if a model uses no feature, unless that was allowed."""
    if model.n_nonzero == 0 and not request.allow_empty:
        from leanrank.cli.entry import FAILED, say

        say(f"error: {request.model} was not written: add --allow-empty to write an empty model")
        raise typer.Exit(FAILED)


def described(model: Model, training: RankingData) -> Model:
    """Add the training data to how the model was made."""
    from leanrank.model import make_provenance

    return model.replace(provenance={**model.provenance, **make_provenance(data=training)})


def with_measures(model: Model, means: dict[str, dict[str, float]]) -> Model:
    """Add what was measured to how the model was made."""
    return model.replace(provenance={**model.provenance, "measures": means})


def print_result(
    path: str, data: dict[str, dict[str, int]], model: Model, columns: dict[str, Any]
) -> None:
    """Print what was learned, and from what, as JSON."""
    from leanrank.cli.screen import print_json

    print_json(
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
    from leanrank.cli import screen

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
