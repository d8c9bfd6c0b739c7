"""``leanrank train``: learn a model from a file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated

from typer import Option

from leanrank.cli.datafiles import check_files
from leanrank.cli.options import DEFAULT_MEASURES
from leanrank.cli.systems import complete_algorithm, complete_parameter
from leanrank.errors import InputError

Algorithm = Annotated[
    str | None,
    Option(
        "--algorithm",
        "-a",
        metavar="NAME",
        help="System to fit, one of `leanrank systems`. [default: lean; domination for .arrow "
        "files or with --cluster, minbatsrank with --stream]",
        autocompletion=complete_algorithm,
    ),
]
Parameter = Annotated[
    list[str] | None,
    Option(
        "--parameter",
        "-p",
        metavar="NAME=VALUE",
        help="A parameter; may be repeated. `leanrank systems NAME` lists them.",
        autocompletion=complete_parameter,
    ),
]
NEEDS_ALL = {
    "report": "--report needs all data in memory",
    "target": "--to needs all data at once",
    "fill": "--fill needs all data in memory",
    "start": "--from needs all data in memory",
}


def train(
    data: list[str],
    /,
    model: str,
    vali: str | None = None,
    algorithm: Algorithm = None,
    parameter: Parameter = None,
    scale: str | None = "auto",
    fill: list[str] | None = None,
    target: str | None = None,
    format: str | None = None,
    read: list[str] | None = None,
    measures: str = DEFAULT_MEASURES,
    convention: str = "standard",
    report: str | None = None,
    seed: int | None = None,
    jobs: int = -1,
    stream: bool = False,
    checkpoint: str | None = None,
    every: int | None = None,
    cluster: str | None = None,
    start: str | None = None,
    without_summary: bool = False,
    allow_empty: bool = False,
    json: bool = False,
) -> None:
    """Learn a ranking function and write it as a model file.

    For example: leanrank train train.txt --vali vali.txt -p max_features=10 --model m.json

    Parameters
    ----------
    data : TRAIN
        Training data, or -; several files with --stream or --cluster, which also takes a pattern
        such as 'part-*.parquet'. A .arrow file is mapped: it may be larger than memory.
    vali : FILE
        Validation data to measure on. They do not change the model, unless -p patience=N asks to
        stop after N rounds or passes without a better one and to keep the best.
    report : FILE
        Write a page about the model; with --vali.
    seed : N >= 0
        Seed of an algorithm that draws at random.
    stream :
        Read piece by piece, in the order of the files, for data of any size.
    checkpoint : FILE
        With --stream: resume from this file if it exists, and keep it up to date.
    every : N
        With --stream: queries between checkpoints.
    cluster : WHERE
        Fit on Dask, a file being a partition: local, local:N for N processes, or the address of a
        scheduler such as tcp://host:8786, whose workers see the same files.
    start : --from MODEL
        Learn again from TRAIN what LeanRanker learned before: the same terms and strength, from
        its weights.
    without_summary :
        Keep no summary of the features in the model, which `leanrank check` needs.
    allow_empty :
        Write a model even if it uses no feature.
    """
    request = SimpleNamespace(**locals())
    request.parameter, request.read = parameter or [], read or []
    check_files([*data, vali, start], model, checkpoint, page=report, json=json)
    _check_combination(request)
    from leanrank.cli import training

    if stream:
        training.train_model(request, training.fit_stream)
    elif cluster is not None:
        training.train_model(request, training.fit_on_cluster)
    else:
        fit = training.fit_in_memory if start is None else training.fit_again
        training.train_model(request, fit)


def _check_combination(request: SimpleNamespace) -> None:
    """Reject options that have no effect together."""
    elsewhere = "--stream" * request.stream or "--cluster" * (request.cluster is not None)
    for option in ("checkpoint", "every"):
        if getattr(request, option) is not None and not request.stream:
            raise InputError(f"--{option} is for streams: add --stream, or leave it out")
    for option, problem in NEEDS_ALL.items():
        if getattr(request, option) and elsewhere:
            raise InputError(f"{problem}: leave {elsewhere} out")
    if request.report is not None and request.vali is None:
        raise InputError("--report needs --vali FILE to measure on: add it")
    if len(request.data) > 1 and not elsewhere:
        n_files = len(request.data)
        raise InputError(
            f"{n_files} training files were given: give one, or add --stream or --cluster"
        )
