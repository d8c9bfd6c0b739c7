"""``leanrank train --stream``: learn from files of any size, and go on after an interruption."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.data.streams import RankingStream
    from leanrank.metrics import Evaluation
    from leanrank.model import Model


@dataclass(frozen=True)
class Request:
    """What was asked for on the command line."""

    files: list[str]
    model: str
    vali: str | None
    algorithm: str | None
    parameters: list[str]
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


def train_stream(request: Request) -> None:
    """Learn from a stream and write the model."""
    from leanrank.cli.datafiles import check_folder, read_data
    from leanrank.cli.screen import progress
    from leanrank.cli.train import check_measures, with_measures
    from leanrank.model.writing import as_model
    from leanrank.rankers.streaming import fit_stream

    if request.checkpoint is not None:
        check_folder(request.checkpoint)
    with progress() as say:
        ranker, epochs = _make_ranker(request)
        check_measures(request.measures, request.convention)
        normalizer = _normalizer(request.scale)
        stream = _open(request, normalizer)
        held_out = scaled = None
        if request.vali is not None:
            say(f"Reading {request.vali}")
            how = [word for word in request.read if word.partition("=")[0] != "chunk_bytes"]
            held_out = scaled = read_data(request.vali, request.format, how)
            if normalizer is not None:
                scaled = normalizer.transform(held_out)

        def show(report: dict[str, Any]) -> None:
            say(
                f"{report['documents']:,} documents, {report['documents_per_second']:,.0f}/s, "
                f"{report['support']:,} features ({100 * report['sparsity']:.3g} %)"
            )

        say(f"Reading {request.files[0]}")
        fit_stream(
            ranker,
            stream,
            checkpoint=request.checkpoint,
            every=request.every,
            validation=scaled,
            epochs=epochs,
            features=request.features or "grow",
            progress=show,
        )
        fitted = _described(as_model(ranker, normalizer), ranker, request)
        columns = {}
        if held_out is not None:
            say("Measuring")
            columns["validation"] = _measured(fitted, held_out, request)
            fitted = with_measures(fitted, {"validation": columns["validation"].means})
        fitted.save(request.model)
    if request.json:
        _print_json(request, fitted, columns)
    else:
        _print_summary(request, fitted, columns)


def _make_ranker(request: Request) -> tuple[Any, int]:
    """Make the ranker, and say how many passes are asked for."""
    from leanrank.cli.train import make_ranker
    from leanrank.errors import InputError
    from leanrank.rankers import RANKERS, get_ranker
    from leanrank.rankers.streaming import can_stream

    name = request.algorithm or "minbatsrank"
    if not can_stream(get_ranker(name)):
        able = sorted(known for known in RANKERS if can_stream(get_ranker(known)))
        raise InputError(
            f"{name} needs all data at once: leave --stream out, or choose from {', '.join(able)}"
        )
    ranker = make_ranker(name, request.parameters, seed=request.seed, jobs=request.jobs)
    given = {word.partition("=")[0].strip() for word in request.parameters}
    if "l1" not in given and "l1" in ranker.get_params():
        # A strength for the whole run needs its length, which a stream does not know.
        ranker.set_params(l1="per_step")
    epochs = ranker.epochs if "epochs" in given else 1
    in_force = {"epochs": epochs, "shuffle": False}
    known = ranker.get_params()
    return ranker.set_params(**{k: v for k, v in in_force.items() if k in known}), epochs


def _normalizer(scale: str | None) -> Any:
    if scale is None:
        return None
    from leanrank.data.normalize import make_normalizer
    from leanrank.errors import InputError

    normalizer = make_normalizer(scale)
    if not scale.startswith("query-"):
        raise InputError(
            f"--scale {scale} needs all data at once: in a stream use query-minmax, query-standard "
            "or query-rank"
        )
    return normalizer


def _open(request: Request, normalizer: Any) -> RankingStream:
    from leanrank.cli.datafiles import COLUMNS, TEXT_OPTIONS, _is_text
    from leanrank.cli.parameters import parse_parameters
    from leanrank.data.streams import CHUNK_BYTES, open_stream

    if all(_is_text(path, request.format) for path in request.files):
        known: dict[str, Any] = TEXT_OPTIONS
        kind = "text"
    else:
        known, kind = dict.fromkeys(COLUMNS, ""), "a table"
    known = {**known, "chunk_bytes": CHUNK_BYTES}
    options = parse_parameters(request.read, known, kind, "--read")
    stream = open_stream(request.files, format=request.format, n_jobs=request.jobs, **options)
    if normalizer is not None:
        stream = stream.map(normalizer.transform, str(request.scale))
    return stream


def _described(model: Model, ranker: Any, request: Request) -> Model:
    """Add what was read to how the model was made."""
    last = ranker.history_[-1]
    data = {
        "queries": last["queries"],
        "documents": last["documents"],
        "features": model.n_features,
    }
    return model.replace(provenance={**model.provenance, "data": data})


def _measured(model: Model, held_out: RankingData, request: Request) -> Evaluation:
    """Measure on the held-out data, whose features may be fewer or more than those met."""
    from leanrank.data.streams import resized
    from leanrank.metrics import evaluate

    same = resized(held_out, model.n_features)
    return evaluate(
        same, model.predict(same), measures=request.measures, convention=request.convention
    )


def _print_json(request: Request, model: Model, columns: dict[str, Evaluation]) -> None:
    from leanrank.cli.screen import print_json

    print_json(
        {
            "model": request.model,
            "algorithm": model.provenance["algorithm"],
            "parameters": model.provenance["parameters"],
            "normalizer": model.normalizer,
            "data": {"training": dict(model.provenance["data"])},
            "n_features": model.n_features,
            "n_nonzero": model.n_nonzero,
            "weights": model.weights,
            "measures": {name: column.to_dict() for name, column in columns.items()},
        }
    )


def _print_summary(request: Request, model: Model, columns: dict[str, Evaluation]) -> None:
    from leanrank.cli import screen

    console = screen.screen(error=request.model == "-")
    data = model.provenance["data"]
    console.print(
        screen.facts(
            {
                "stream": f"{len(request.files)} file{'s' * (len(request.files) != 1)}, "
                f"{data['queries']:,} queries, {data['documents']:,} documents, "
                f"{data['features']:,} features",
                "algorithm": f"{model.provenance['algorithm']} "
                f"({screen.listed(model.provenance['parameters'])})",
                "normaliser": "" if model.normalizer is None else str(model.normalizer["kind"]),
                "checkpoint": request.checkpoint or "",
            }
        )
    )
    console.print()
    if model.n_nonzero:
        console.print(screen.weights_table(model, console))
    console.print(screen.weights_caption(model), style="dim")
    if columns:
        console.print()
        console.print(screen.measures_table(columns))
        console.print(screen.measures_note(columns["validation"]), style="dim")
    if request.model != "-":
        console.print(f"\nModel written to {request.model}", soft_wrap=True)
