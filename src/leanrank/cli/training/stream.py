"""``leanrank train --stream``: learn from files of any size, and go on after an interruption."""

from __future__ import annotations

import os
from typing import TYPE_CHECKING, Any

from leanrank.cli.datafiles import check_folder, read_data, read_options
from leanrank.cli.options import check_measures
from leanrank.cli.screen import progress
from leanrank.cli.training.shared import (
    Request,
    check_able,
    finish,
    make_ranker,
    print_result,
    print_summary,
)
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data.streams import RankingStream
    from leanrank.model import Model


def train_stream(request: Request) -> None:
    """Learn from a stream and write the model."""
    from leanrank.data.streams import resized
    from leanrank.model.writing import as_model
    from leanrank.rankers.sampling.streaming import fit_stream

    if request.checkpoint is not None:
        _check_checkpoint(request.checkpoint, request.model)
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
        fitted = _described(as_model(ranker, normalizer), ranker)
        sets = {}
        if held_out is not None:  # whose features may be fewer or more than those met
            sets["validation"] = resized(held_out, fitted.n_features)
        fitted, columns = finish(fitted, request, sets, say)
    if request.json:
        print_result(request.model, {"training": dict(fitted.provenance["data"])}, fitted, columns)
    else:
        print_summary(request.model, _shown(request, fitted), fitted, columns)


def _check_checkpoint(file: str, model: str) -> None:
    """Check that a checkpoint can be written, and is not the model."""
    if file == "-":
        raise InputError("--checkpoint - is no file that a later run could read: give a name")
    check_folder(file)
    if os.path.realpath(file) == os.path.realpath(model):
        raise InputError(f"{model} cannot be both model and checkpoint: give them two names")


def _make_ranker(request: Request) -> tuple[Any, int]:
    """Return the ranker, and how many passes are asked for."""
    name = request.algorithm or "minbatsrank"
    check_able(name, "streams", "all data at once: leave --stream out")
    ranker = make_ranker(name, request.parameters, seed=request.seed, jobs=request.jobs)
    given = {word.partition("=")[0].strip() for word in request.parameters}
    if "l1" not in given and "l1" in ranker.get_params():
        # A strength for the whole run needs its length, which a stream does not know.
        ranker.set_params(l1="per_step")
    if "shuffle" in given and ranker.get_params().get("shuffle"):
        raise InputError("-p shuffle=true is not for streams, which are read in their order")
    epochs = ranker.epochs if "epochs" in given else 1
    in_force = {"epochs": epochs, "shuffle": False}
    known = ranker.get_params()
    return ranker.set_params(**{k: v for k, v in in_force.items() if k in known}), epochs


def _normalizer(scale: str | None) -> Any:
    """Return a normaliser that needs no other query; "auto" would need all data."""
    from leanrank.data.scaling.normalizers import make_normalizer
    from leanrank.data.scaling.spread import check_scale

    check_scale(scale)
    if scale in (None, "auto", "none"):
        return None
    normalizer = make_normalizer(scale)
    if not scale.startswith("query-"):
        raise InputError(
            f"--scale {scale} needs all data at once: in a stream use query-minmax, query-standard "
            "or query-rank"
        )
    return normalizer


def _open(request: Request, normalizer: Any) -> RankingStream:
    from leanrank.data.streams import CHUNK_BYTES, open_stream

    options = read_options(request.files[0], request.format, request.read, chunk_bytes=CHUNK_BYTES)
    stream = open_stream(request.files, format=request.format, n_jobs=request.jobs, **options)
    if normalizer is not None:
        stream = stream.map(normalizer.transform, str(request.scale))
    return stream


def _described(model: Model, ranker: Any) -> Model:
    """Add the size of the data to the provenance."""
    last = ranker.history_[-1]
    data = {
        "queries": last["queries"],
        "documents": last["documents"],
        "features": model.n_features,
    }
    return model.replace(provenance={**model.provenance, "data": data})


def _shown(request: Request, model: Model) -> dict[str, str]:
    """Describe what was read."""
    data, n_files = model.provenance["data"], len(request.files)
    counts = (f"{data[name]:,} {name}" for name in ("queries", "documents", "features"))
    return {
        "stream": ", ".join([f"{n_files} file{'s' * (n_files != 1)}", *counts]),
        "checkpoint": request.checkpoint or "",
    }
