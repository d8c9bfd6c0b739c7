"""``leanrank train``: fit a model in memory, refit one, or learn from a stream."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as Request
from typing import TYPE_CHECKING, Any

import typer

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_files, read_data, read_documents, read_options
from leanrank.cli.entry import FAILED
from leanrank.cli.entry import say as print_line
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.metrics import Evaluation
    from leanrank.model import Model

Say = Callable[[str], None]
Fitted = tuple["Model", dict[str, Any], dict[str, str]]
"""The model, the data to measure it on, and facts to print."""

NEEDS_ALL = {"target": "--to", "start": "--from"}


def train(
    data: list[str],
    /,
    model: str,
    vali: str | None = None,
    algorithm: str | None = None,
    parameter: list[str] | None = None,
    scale: str | None = "auto",
    fill: list[str] | None = None,
    target: str | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    measures: str = options.DEFAULT_MEASURES,
    convention: str = "standard",
    jobs: int = -1,
    stream: bool = False,
    checkpoint: str | None = None,
    every: int | None = None,
    start: str | None = None,
    without_summary: bool = False,
    json: bool = False,
) -> None:
    """Learn a ranking function and write it as a model file.

    For example: leanrank train train.txt --vali vali.txt -p max_features=10 --model m.json

    Parameters
    ----------
    data : TRAIN
        Training data, or -; several files with --stream. A .arrow file is mapped: it may be larger
        than memory.
    algorithm : -a NAME
        System to fit, one of `leanrank systems`. [default: lean; domination for .arrow files,
        minbatsrank with --stream]
    parameter : -p NAME=VALUE
        Parameter of the system, such as random_state=1; may be repeated. `leanrank systems NAME`
        lists them.
    vali : FILE
        Validation data to measure on. They change the model only with -p patience=N: training then
        stops after N rounds or passes without improvement and returns the best model.
    stream :
        Read the files piece by piece, in their order, for data of any size.
    checkpoint : FILE
        With --stream: resume from this file if it exists, and update it.
    every : N
        With --stream: number of queries between checkpoints.
    start : --from MODEL
        Refit this model of LeanRanker to TRAIN: the same terms and strength, starting from its
        weights.
    without_summary :
        Do not store the summary of the features, which `leanrank check` needs, in the model.
    """
    request = Request(**locals())
    request.parameter, request.read = parameter or [], read or []
    check_files([*data, vali, start], model, checkpoint, json=json)
    fit = _way_to_fit(request)
    with screen.progress() as say:
        from leanrank.data.scaling.spread import check_scale

        options.check_measures(measures, convention)
        check_scale(scale)
        options.check_target(target, scale)
        fitted, sets, facts = fit(request, say)
        if fitted.n_nonzero == 0:
            print_line(f"error: {model} was not written: the model uses no feature")
            raise typer.Exit(FAILED)
        if "training" in sets:
            options.check_exportable(target, fitted, sets["training"])
        if without_summary:
            fitted = fitted.replace(summary=None)
        say("Measuring")
        fitted, columns = measured(fitted, sets, measures=measures, convention=convention)
        fitted.save(model)
    made = fitted.provenance
    if json:
        sizes = {"training": made["data"]} | {k: screen.sizes(part) for k, part in sets.items()}
        found = {"model": model, "algorithm": made["algorithm"], "parameters": made["parameters"]}
        found |= {"normalizer": fitted.normalizer, "data": sizes}
        found |= {"n_features": fitted.n_features, "n_nonzero": fitted.n_nonzero}
        found |= {"weights": fitted.weights}
        found |= {"measures": {name: each.to_dict() for name, each in columns.items()}}
        screen.print_json(found)
        return
    console = screen.screen(error=model == "-")
    parameters = ", ".join(f"{name}={value}" for name, value in made["parameters"].items())
    facts |= {"algorithm": f"{made['algorithm']} ({parameters})"}
    facts |= {"normaliser": "" if fitted.normalizer is None else str(fitted.normalizer["kind"])}
    console.print(screen.facts(facts))
    console.print()
    screen.print_model(console, fitted, columns)
    console.print()
    screen.print_written(console, {"Model": model})


def _way_to_fit(request: Request) -> Callable[[Request, Say], Fitted]:
    """Return the function that fits; reject options without effect."""
    if request.stream:
        for name, option in NEEDS_ALL.items():
            if getattr(request, name):
                raise InputError(f"{option} needs all data in memory: leave --stream out")
        return fit_stream
    for option in ("checkpoint", "every"):
        if getattr(request, option) is not None:
            raise InputError(f"--{option} is for streams: add --stream, or leave it out")
    if len(request.data) > 1:
        raise InputError(
            f"{len(request.data)} training files were given: give one, or add --stream"
        )
    return fit_in_memory if request.start is None else fit_again


def fit_in_memory(request: Request, say: Say) -> Fitted:
    """Fit a ranker to one file, which is read or mapped."""
    from leanrank.data.scaling.spread import scale_wanted
    from leanrank.model.writing import as_model, fill_values, with_fill

    file = request.data[0]
    ranker = _ranker(request, "domination" if file.endswith(".arrow") else "lean")
    patience = getattr(ranker, "patience", None)
    say(f"Reading {file}")
    training = _read(request, file)
    sets = {"training": training, **_validation(request, say, training.n_features)}
    say(f"Fitting {type(ranker).__name__} on {len(training):,} documents")
    _show_progress(ranker, say)
    choice = scale_wanted(
        training, request.scale, curves=getattr(ranker, "curves", None) is not None
    )
    normalizer = choice.make()
    gaps = fill_values(training, options.parse_fill(request.fill) or {})
    judge = None if patience is None else sets.get("validation")
    given = [part for part in (training, judge) if part is not None]
    given = [with_fill(part, gaps) for part in given]
    if normalizer is not None:
        normalizer.fit(given[0])
        given = [normalizer.transform(part) for part in given]
    ranker.fit(given[0], **({} if judge is None else {"validation": given[1]}))
    model = described(as_model(ranker, normalizer).replace(fill=gaps), training)
    facts = {name: screen.data_summary(data) for name, data in sets.items()}
    facts |= {"chosen": _best_round(ranker, judge), "scaled": choice.reason}
    return model, sets, facts


def fit_again(request: Request, say: Say) -> Fitted:
    """Refit a model, starting from its weights."""
    from leanrank.model import load_model
    from leanrank.service.explain import documents_for
    from leanrank.service.refit import refit

    scale = None if request.scale == "auto" else request.scale
    fixed = {"-a": request.algorithm, "-p": request.parameter}
    for option, value in (fixed | {"--scale": scale, "--fill": request.fill}).items():
        if value:
            raise InputError(f"--from takes the parameters of its model: leave {option} out")
    known = load_model(request.start)
    say(f"Reading {request.data[0]}")
    given = read_documents(request.data[0], None, [known], request.format, request.read)
    say("Refitting")
    model = refit(known, *given, n_jobs=request.jobs)
    training = documents_for(model, *given)
    sets = {"training": training, **_validation(request, say, training.n_features)}
    facts = {name: screen.data_summary(data) for name, data in sets.items()}
    return described(model, training), sets, {**facts, "from": request.start}


def fit_stream(request: Request, say: Say) -> Fitted:
    """Fit a ranker to files of any size; resume after an interruption."""
    from leanrank.cli.options import parse_fill
    from leanrank.data import RankingData
    from leanrank.data.streams import CHUNK_BYTES, open_stream, resized
    from leanrank.model.writing import as_model, fill_values, with_fill
    from leanrank.rankers.streaming import fit_stream as fit

    if request.checkpoint == "-":
        raise InputError("--checkpoint - cannot be read by a later run: give the name of a file")
    ranker, epochs = _stream_ranker(request)
    normalizer, fill = _query_normalizer(request.scale), parse_fill(request.fill)
    if fill and "median" in (fill if isinstance(fill, str) else fill.values()):
        raise InputError("--fill median needs all data in memory: give numbers, or no --stream")

    def filled(data: RankingData) -> RankingData:
        return with_fill(data, fill_values(data, fill or {}))

    first, format = request.data[0], request.format
    options = read_options(first, format, request.read, chunk_bytes=CHUNK_BYTES)
    stream = open_stream(request.data, format=format, n_jobs=request.jobs, **options)
    if fill is not None:
        stream = stream.map(filled, f"fill {fill}")
    if normalizer is not None:
        stream = stream.map(normalizer.transform, str(request.scale))
    request.read = [word for word in request.read if word.partition("=")[0] != "chunk_bytes"]
    held_out = _validation(request, say).get("validation")
    scaled = None if held_out is None else filled(held_out)
    if normalizer is not None and scaled is not None:
        scaled = normalizer.transform(scaled)

    def show(report: dict[str, Any]) -> None:
        say(
            f"{report['documents']:,} documents, {report['documents_per_second']:,.0f}/s, "
            f"{report['support']:,} features ({100 * report['sparsity']:.3g} %)"
        )

    say(f"Reading {first}")
    how: dict[str, Any] = {"checkpoint": request.checkpoint, "every": request.every}
    fit(ranker, stream, validation=scaled, progress=show, epochs=epochs, **how)
    model, last = as_model(ranker, normalizer), ranker.history_[-1]
    empty = RankingData([[0.0] * model.n_features], [0.0], feature_names=model.feature_names)
    model = model.replace(fill=fill_values(empty, fill or {}))
    sizes = {"queries": last["queries"], "documents": last["documents"]}
    model = with_notes(model, data=sizes | {"features": model.n_features})
    # validation data may have fewer or more features than the stream had
    sets = {} if held_out is None else {"validation": resized(held_out, model.n_features)}
    counts = [f"{count:,} {name}" for name, count in model.provenance["data"].items()]
    n_files = f"{len(request.data)} file{'s' * (len(request.data) != 1)}"
    facts = {"stream": ", ".join([n_files, *counts]), "checkpoint": request.checkpoint or ""}
    return model, sets, facts


def described(model: Model, training: RankingData) -> Model:
    """Return a model with the sizes of its training data and a summary of their features."""
    from leanrank.model import make_provenance
    from leanrank.model.summary import with_summary

    model = with_notes(model, **make_provenance(data=training))
    return model if model.summary else with_summary(model, training)


def measured(model: Model, sets: dict[str, Any], **how: Any) -> tuple[Model, dict[str, Evaluation]]:
    """Return a model with its measures on some data, and the evaluations."""
    from leanrank.metrics import evaluate

    columns = {name: evaluate(part, model.predict(part), **how) for name, part in sets.items()}
    means = {name: each.means for name, each in columns.items()}
    return with_notes(model, measures=means) if means else model, columns


def with_notes(model: Model, **notes: Any) -> Model:
    """Return a model with entries added to its provenance."""
    return model.replace(provenance={**model.provenance, **notes})


def _ranker(request: Request, default: str) -> Any:
    name = request.algorithm or default
    return options.make_ranker(name, request.parameter, jobs=request.jobs)


def _read(request: Request, file: str, n_features: int | None = None) -> RankingData:
    return read_data(file, request.format, request.read, n_features=n_features)


def _validation(request: Request, say: Say, n_features: int | None = None) -> dict[str, Any]:
    if request.vali is None:
        return {}
    say(f"Reading {request.vali}")
    return {"validation": _read(request, request.vali, n_features)}


def _best_round(ranker: Any, validation: RankingData | None) -> str:
    """Describe which round of a run gave the model; empty without validation data."""
    if validation is None:
        return ""
    best = getattr(ranker, "best_epoch_", ranker.n_iter_)
    unit = "round" if hasattr(ranker, "n_rounds") else "pass"
    run = len(ranker.history_)
    return f"{unit} {best:,} of {run:,}, the best by {ranker.measure} on the validation data"


def _show_progress(ranker: Any, say: Say) -> None:
    """Show the progress of a ranker that is solved to a duality gap."""
    if getattr(ranker, "callback", 0) is not None:  # no such parameter, or the user set it
        return

    def show(entry: dict[str, Any]) -> None:
        if {"iteration", "objective", "gap"} <= set(entry):
            at, objective, gap = (entry[name] for name in ("iteration", "objective", "gap"))
            say(f"Iteration {at}: objective {objective:.6g}, gap {gap:.1e}")

    ranker.set_params(callback=show)


def _stream_ranker(request: Request) -> tuple[Any, int]:
    """Return the ranker of a stream, and the number of passes."""
    from leanrank.registry import SYSTEMS, ranker_names

    ranker, name = _ranker(request, "minbatsrank"), request.algorithm or "minbatsrank"
    if not SYSTEMS[name].streams:
        able = ", ".join(sorted(each for each in ranker_names() if SYSTEMS[each].streams))
        raise InputError(
            f"{name} needs all data at once: leave --stream out, or choose from {able}"
        )
    given = {word.partition("=")[0].strip() for word in request.parameter}
    if "l1" not in given and "l1" in ranker.get_params():
        # A strength for the whole run needs the length of the run, which is unknown in a stream.
        ranker.set_params(l1="per_step")
    if "shuffle" in given and ranker.get_params().get("shuffle"):
        raise InputError(
            "-p shuffle=true cannot be used with --stream, which reads in order: leave it out"
        )
    epochs = ranker.epochs if "epochs" in given else 1
    in_force, known = {"epochs": epochs, "shuffle": False}, ranker.get_params()
    return ranker.set_params(**{k: v for k, v in in_force.items() if k in known}), epochs


def _query_normalizer(scale: str | None) -> Any:
    """Return a normaliser per query, or None; "auto" is None, since it needs all data."""
    from leanrank.data.scaling.normalizers import make_normalizer

    if scale in (None, "auto", "none"):
        return None
    if not scale.startswith("query-"):
        raise InputError(
            f"--scale {scale} needs all data at once: in a stream use query-minmax, query-standard "
            "or query-rank"
        )
    return make_normalizer(scale)
