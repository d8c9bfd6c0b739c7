"""``leanrank train --from``: learn again what a model learned before."""

from __future__ import annotations

from leanrank.cli import screen
from leanrank.cli.datafiles import read_data, read_documents
from leanrank.cli.options import check_measures
from leanrank.cli.training.shared import (
    Request,
    described,
    finish,
    print_result,
    print_summary,
)
from leanrank.errors import InputError, check_choice


def train_again(request: Request) -> None:
    """Learn from one file, starting from a model, and write the new model."""
    assert request.start is not None
    check_choice("structure", request.structure, ("same", "again"))
    fixed = {
        "-a": request.algorithm,
        "-p": request.parameters,
        "--monotone": request.monotone,
        "--scale": None if request.scale == "auto" else request.scale,
        "--seed": request.seed,
    }
    for option, value in fixed.items():
        if value:
            raise InputError(f"--from keeps the parameters of its model: leave {option} out")
    check_measures(request.measures, request.convention)
    with screen.progress() as say:
        from leanrank import LeanRanker
        from leanrank.model import load_model
        from leanrank.service.documents import documents_for
        from leanrank.service.refit import refit

        known = load_model(request.start)
        say(f"Reading {request.files[0]}")
        given = read_documents(request.files[0], None, [known], request.format, request.read)
        say("Learning again")
        if request.structure == "same":
            fitted = refit(known, *given, n_jobs=request.jobs)
        else:
            if known.provenance.get("algorithm") != "LeanRanker" or known.normalizer is not None:
                raise InputError(
                    f"{request.start} is not a model of LeanRanker on features as they are: train "
                    "it without --from"
                )
            ranker = LeanRanker(**known.provenance["parameters"], n_jobs=request.jobs)
            fitted = ranker.fit(*given).to_model()
        training = documents_for(fitted, *given)
        sets = {"training": training}
        if request.vali is not None:
            say(f"Reading {request.vali}")
            sets["validation"] = read_data(
                request.vali, request.format, request.read, n_features=training.n_features
            )
        fitted, columns = finish(described(fitted, training), request, sets, say)
    if request.json:
        sizes = {name: screen.sizes(data) for name, data in sets.items()}
        print_result(request.model, sizes, fitted, columns)
    else:
        shown = {name: screen.data_summary(data) for name, data in sets.items()}
        print_summary(request.model, {**shown, "from": request.start}, fitted, columns)
