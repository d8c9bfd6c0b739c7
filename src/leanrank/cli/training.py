"""Training a model in memory, again, from a stream or on a cluster: from options to a summary."""

from __future__ import annotations

from collections.abc import Callable
from types import SimpleNamespace as Request
from typing import TYPE_CHECKING, Any, NamedTuple

import typer

from leanrank.cli import screen
from leanrank.cli.datafiles import connect, find_files, read_data, read_documents, read_options
from leanrank.cli.entry import FAILED, command_line
from leanrank.cli.entry import say as print_line
from leanrank.cli.options import (
    check_exportable,
    check_measures,
    check_target,
    parse_fill,
    parse_parameters,
)
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model

Say = Callable[[str], None]


class Fitted(NamedTuple):
    """What a way of training gives: the model, the data to measure it on, and facts to print."""

    model: Model
    sets: dict[str, Any]
    facts: dict[str, str]


def train_model(request: Request, fit: Callable[[Request, Say], Fitted]) -> None:
    """Fit, measure, write and describe a model."""
    from leanrank.data.scaling.spread import check_scale
    from leanrank.metrics import evaluate

    with screen.progress() as say:
        check_measures(request.measures, request.convention)
        check_scale(request.scale)
        check_target(request.target, request.scale)
        model, sets, facts = fit(request, say)
        if model.n_nonzero == 0 and not request.allow_empty:
            path = request.model
            print_line(f"error: {path} was not written: add --allow-empty to write an empty model")
            raise typer.Exit(FAILED)
        if "training" in sets:
            check_exportable(request.target, model, sets["training"])
        if request.without_summary:
            model = model.replace(summary=None)
        say("Measuring")
        how: dict[str, Any] = {"measures": request.measures, "convention": request.convention}
        columns = {name: evaluate(data, model.predict(data), **how) for name, data in sets.items()}
        if columns:
            means = {name: each.means for name, each in columns.items()}
            model = with_notes(model, measures=means)
        model.save(request.model)
        if request.report is not None:
            say("Writing the report")
            _write_report(model, sets, request)
    made = model.provenance
    if request.json:
        sizes = {"training": made["data"]} | {k: screen.sizes(data) for k, data in sets.items()}
        found = {"model": request.model, "algorithm": made["algorithm"]}
        found |= {"parameters": made["parameters"], "normalizer": model.normalizer, "data": sizes}
        found |= {"n_features": model.n_features, "n_nonzero": model.n_nonzero}
        found |= {"weights": model.weights}
        found |= {"measures": {name: each.to_dict() for name, each in columns.items()}}
        screen.print_json(found)
        return
    # A model on standard output leaves standard error for people.
    console = screen.screen(error=request.model == "-")
    facts |= {"algorithm": f"{made['algorithm']} ({screen.listed(made['parameters'])})"}
    facts |= {"normaliser": "" if model.normalizer is None else str(model.normalizer["kind"])}
    console.print(screen.facts(facts))
    console.print()
    screen.print_model(console, model, columns)
    console.print()
    screen.print_written(console, {"Model": request.model, "Report": request.report})


def fit_in_memory(request: Request, say: Say) -> Fitted:
    """Learn from one file, in memory or mapped into it."""
    from leanrank.data.scaling.spread import scale_wanted
    from leanrank.model.model import fill_gaps
    from leanrank.model.writing import as_model, fill_values

    file = request.data[0]
    ranker = _ranker(request, "domination" if file.endswith(".arrow") else "lean")
    patience = getattr(ranker, "patience", None)
    if patience is not None and not (request.vali or getattr(ranker, "stops_by_training", False)):
        raise InputError(
            f"-p patience={patience} waits for a better measure on validation data: add --vali "
            "FILE, or leave it out"
        )
    say(f"Reading {file}")
    training = _read(request, file)
    sets = {"training": training, **_validation(request, say, training.n_features)}
    say(f"Fitting {type(ranker).__name__} on {len(training):,} documents")
    _show_progress(ranker, say)
    choice = scale_wanted(training, request.scale, curves=_has_curves(ranker))
    normalizer, fill = choice.make(), parse_fill(request.fill)
    gaps = {} if fill is None else fill_values(training, fill)
    judge = None if patience is None else sets.get("validation")
    given = [part for part in (training, judge) if part is not None]
    if gaps:
        given = [part.with_fields(X=fill_gaps(part.X, gaps)) for part in given]
    if normalizer is not None:
        normalizer.fit(given[0])
        given = [normalizer.transform(part) for part in given]
    ranker.fit(given[0], **({} if judge is None else {"validation": given[1]}))
    model = described(as_model(ranker, normalizer).replace(fill=gaps), training)
    facts = {name: screen.data_summary(data) for name, data in sets.items()}
    facts |= {"kept": _kept(ranker, judge), "scaled": choice.reason}
    return Fitted(model, sets, facts)


def fit_again(request: Request, say: Say) -> Fitted:
    """Learn again what a model learned before, from its weights."""
    from leanrank.model import load_model
    from leanrank.service.explain import documents_for
    from leanrank.service.refit import refit

    scale = None if request.scale == "auto" else request.scale
    fixed = {"-a": request.algorithm, "-p": request.parameter, "--scale": scale}
    for option, value in (fixed | {"--seed": request.seed, "--fill": request.fill}).items():
        if value:
            raise InputError(f"--from keeps the parameters of its model: leave {option} out")
    known = load_model(request.start)
    say(f"Reading {request.data[0]}")
    given = read_documents(request.data[0], None, [known], request.format, request.read)
    say("Learning again")
    model = refit(known, *given, n_jobs=request.jobs)
    training = documents_for(model, *given)
    sets = {"training": training, **_validation(request, say, training.n_features)}
    facts = {name: screen.data_summary(data) for name, data in sets.items()}
    return Fitted(described(model, training), sets, {**facts, "from": request.start})


def fit_stream(request: Request, say: Say) -> Fitted:
    """Learn from files of any size, and resume after an interruption."""
    from leanrank.data.streams import CHUNK_BYTES, open_stream, resized
    from leanrank.model.writing import as_model
    from leanrank.rankers.streaming import fit_stream as fit

    if request.checkpoint == "-":
        raise InputError("--checkpoint - is not a file that a later run could read: give a name")
    ranker, epochs = _stream_ranker(request)
    normalizer = _query_normalizer(request.scale)
    first, format = request.data[0], request.format
    options = read_options(first, format, request.read, chunk_bytes=CHUNK_BYTES)
    stream = open_stream(request.data, format=format, n_jobs=request.jobs, **options)
    if normalizer is not None:
        stream = stream.map(normalizer.transform, str(request.scale))
    request.read = [word for word in request.read if word.partition("=")[0] != "chunk_bytes"]
    held_out = scaled = _validation(request, say).get("validation")
    if normalizer is not None and held_out is not None:
        scaled = normalizer.transform(held_out)

    def show(report: dict[str, Any]) -> None:
        say(
            f"{report['documents']:,} documents, {report['documents_per_second']:,.0f}/s, "
            f"{report['support']:,} features ({100 * report['sparsity']:.3g} %)"
        )

    say(f"Reading {first}")
    how: dict[str, Any] = {"checkpoint": request.checkpoint, "every": request.every}
    fit(ranker, stream, validation=scaled, progress=show, epochs=epochs, **how)
    model, last = as_model(ranker, normalizer), ranker.history_[-1]
    sizes = {"queries": last["queries"], "documents": last["documents"]}
    model = with_notes(model, data=sizes | {"features": model.n_features})
    # validation data may have fewer or more features than the stream had
    sets = {} if held_out is None else {"validation": resized(held_out, model.n_features)}
    facts = {"stream": _counts(model, len(request.data)), "checkpoint": request.checkpoint or ""}
    return Fitted(model, sets, facts)


def fit_on_cluster(request: Request, say: Say) -> Fitted:
    """Fit files on a Dask cluster."""
    import dask

    from leanrank.data.scaling.spread import scale_wanted
    from leanrank.model.writing import as_model
    from leanrank.rankers.dask import data_on_cluster
    from leanrank.rankers.inputs import warn_of_units

    where, files = request.cluster, find_files(request.data)
    check_able(
        request.algorithm or "domination", "cluster", "all data in memory: leave --cluster out"
    )
    ranker = _ranker(request, "domination")
    with connect(where, say) as client:
        say(f"Reading {len(files)} file{'s' * (len(files) != 1)} on {where}")
        parts = [dask.delayed(read_data)(file, request.format, request.read) for file in files]
        data = data_on_cluster(ranker, parts, any_units=True)
        curves = _has_curves(ranker)
        choice = scale_wanted(data, request.scale, curves=curves)
        normalizer = choice.make()
        if normalizer is not None:
            say(f"Scaling {len(data):,} documents")
            data = data.scaled(normalizer)
        elif request.scale != "auto" and not curves:
            warn_of_units(data, slow=ranker.slow_unscaled)
        _show_progress(ranker, say)
        ranker.fit(data)
        model = with_notes(as_model(ranker, normalizer), data=screen.sizes(data))
        workers, threads = len(client.nthreads()), sum(client.nthreads().values())
        facts = {
            "training": _counts(model, len(files)),
            "cluster": f"{where}, {workers} workers, {threads} threads",
            "partitions": data.how,
            "scaled": choice.reason,
        }
    return Fitted(model, _validation(request, say, model.n_features), facts)


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


def check_able(name: str, what: str, needs: str) -> None:
    """Reject a system that lacks what its entry in the registry calls ``what``."""
    from leanrank.registry import SYSTEMS, ranker_names

    if name in SYSTEMS and not getattr(SYSTEMS[name], what):
        able = sorted(each for each in ranker_names() if getattr(SYSTEMS[each], what))
        raise InputError(f"{name} needs {needs}, or choose from {', '.join(able)}")


def described(model: Model, training: RankingData) -> Model:
    """Add the training data to how the model was made, and a summary of them."""
    from leanrank.model import make_provenance
    from leanrank.model.summary import with_summary

    model = with_notes(model, **make_provenance(data=training))
    return model if model.summary else with_summary(model, training)


def with_notes(model: Model, **notes: Any) -> Model:
    """Add entries, such as what was measured, to how the model was made."""
    return model.replace(provenance={**model.provenance, **notes})


def _counts(model: Model, n_files: int) -> str:
    data = model.provenance["data"]
    counts = (f"{data[name]:,} {name}" for name in ("queries", "documents", "features"))
    return ", ".join([f"{n_files} file{'s' * (n_files != 1)}", *counts])


def _ranker(request: Request, default: str) -> Any:
    name = request.algorithm or default
    return make_ranker(name, request.parameter, seed=request.seed, jobs=request.jobs)


def _has_curves(ranker: Any) -> bool:
    return getattr(ranker, "curves", None) is not None


def _read(request: Request, file: str, n_features: int | None = None) -> RankingData:
    return read_data(file, request.format, request.read, n_features=n_features)


def _validation(request: Request, say: Say, n_features: int | None = None) -> dict[str, Any]:
    if request.vali is None:
        return {}
    say(f"Reading {request.vali}")
    return {"validation": _read(request, request.vali, n_features)}


def _kept(ranker: Any, validation: RankingData | None) -> str:
    """Describe which part of a run became the model; empty without validation data."""
    if validation is None:
        return ""
    best = getattr(ranker, "best_epoch_", ranker.n_iter_)
    unit = "round" if hasattr(ranker, "n_rounds") else "pass"
    run = len(ranker.history_)
    return f"{unit} {best:,} of {run:,}, the best by {ranker.measure} on the validation data"


def _show_progress(ranker: Any, say: Say) -> None:
    """Show the progress of a ranker that is solved to a gap."""
    if getattr(ranker, "callback", 0) is not None:  # it has none, or the user's
        return

    def show(entry: dict[str, Any]) -> None:
        if {"iteration", "objective", "gap"} <= set(entry):
            at, objective, gap = (entry[name] for name in ("iteration", "objective", "gap"))
            say(f"Iteration {at}: objective {objective:.6g}, gap {gap:.1e}")

    ranker.set_params(callback=show)


def _write_report(model: Model, sets: dict[str, RankingData], request: Request) -> None:
    from leanrank.metrics import parse_measures
    from leanrank.report import study_of_model, with_bands, write_report

    names = [measure.name for measure in parse_measures(request.measures)]
    how: dict[str, Any] = {"measures": names, "convention": request.convention}
    study = study_of_model(model, sets["training"], sets["validation"], measure=names[0], **how)
    files = {"training": request.data[0], "validation": request.vali}
    study = with_bands(study, n_jobs=request.jobs)
    write_report(study, request.report, command=command_line(), files=files)


def _stream_ranker(request: Request) -> tuple[Any, int]:
    """Return the ranker of a stream, and how many passes are asked for."""
    check_able(
        request.algorithm or "minbatsrank", "streams", "all data at once: leave --stream out"
    )
    ranker = _ranker(request, "minbatsrank")
    given = {word.partition("=")[0].strip() for word in request.parameter}
    if "l1" not in given and "l1" in ranker.get_params():
        # A strength for the whole run needs its length, which a stream does not know.
        ranker.set_params(l1="per_step")
    if "shuffle" in given and ranker.get_params().get("shuffle"):
        raise InputError("-p shuffle=true is not for streams, which are read in their order")
    epochs = ranker.epochs if "epochs" in given else 1
    in_force, known = {"epochs": epochs, "shuffle": False}, ranker.get_params()
    return ranker.set_params(**{k: v for k, v in in_force.items() if k in known}), epochs


def _query_normalizer(scale: str | None) -> Any:
    """Return a normaliser that needs no other query; "auto" would need all data."""
    from leanrank.data.scaling.normalizers import make_normalizer

    if scale in (None, "auto", "none"):
        return None
    if not scale.startswith("query-"):
        raise InputError(
            f"--scale {scale} needs all data at once: in a stream use query-minmax, query-standard "
            "or query-rank"
        )
    return make_normalizer(scale)
