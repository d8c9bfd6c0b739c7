"""``leanrank train``: learn a model from a file."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Annotated

from typer import Option

from leanrank.cli import options
from leanrank.cli.datafiles import check_apart, check_folder, stdin_once
from leanrank.cli.systems import complete_algorithm, complete_parameter
from leanrank.errors import InputError

Algorithm = Annotated[
    str | None,
    Option(
        "--algorithm",
        "-a",
        metavar="NAME",
        help="System to fit, one of `leanrank systems`. [default: lean; domination with --on-disk "
        "or --cluster, minbatsrank with --stream]",
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
Seed = Annotated[
    int | None, Option(min=0, max=2**32 - 1, help="Seed of an algorithm that draws at random.")
]


Start = Annotated[
    str | None,
    Option(
        "--from",
        metavar="MODEL",
        help="Learn again from TRAIN what LeanRanker learned before: the same terms and strength, "
        "from its weights.",
    ),
]


def train(
    data: list[str],
    /,
    model: options.ModelFile,
    vali: str | None = None,
    algorithm: Algorithm = None,
    parameter: Parameter = None,
    monotone: str | None = None,
    scale: options.Scale = "auto",
    fill: options.Fill = None,
    target: options.Target = None,
    format: options.Format = None,
    read: options.Read = None,
    measures: options.Measures = options.DEFAULT_MEASURES,
    convention: options.Convention = "standard",
    report: str | None = None,
    seed: Seed = None,
    jobs: options.Jobs = -1,
    on_disk: bool = False,
    stream: bool = False,
    checkpoint: str | None = None,
    every: int | None = None,
    features: str | None = None,
    cluster: str | None = None,
    start: Start = None,
    structure: str = "same",
    without_summary: bool = False,
    allow_empty: bool = False,
    json: options.Json = False,
) -> None:
    """Learn a ranking function and write it as a model file.

    For example: leanrank train train.txt --vali vali.txt -p max_features=10 --model m.json

    Parameters
    ----------
    data : TRAIN
        Training data, or -; several files with --stream or --cluster, which also takes a pattern
        such as 'part-*.parquet'.
    vali : FILE
        Validation data to measure on. They do not change the model, unless -p patience=N asks to
        stop after N rounds or passes without a better one and to keep the best.
    monotone : NAME=up|down,…
        With -p curves=…: features whose curve may only rise or only fall.
    report : FILE
        Write a page about the model; with --vali.
    on_disk :
        For data larger than memory: make a file TRAIN.arrow beside the data, unless it is there,
        and map it. A .arrow file is mapped anyway.
    stream :
        Read piece by piece, in the order of the files, for data of any size.
    checkpoint : FILE
        With --stream: resume from this file if it exists, and keep it up to date.
    every : N
        With --stream: queries between checkpoints.
    features : HOW
        With --stream: grow for features that appear on the way, or hash:BITS for a table of fixed
        size. [default: grow]
    cluster : WHERE
        Fit on Dask, a file being a partition: local, local:N for N processes, or the address of a
        scheduler such as tcp://host:8786, whose workers see the same files.
    structure : HOW
        With --from: same, or again to choose terms again.
    without_summary :
        Keep no summary of the features in the model, which `leanrank check` needs.
    allow_empty :
        Write a model even if it uses no feature.
    """
    request = SimpleNamespace(**locals())
    request.parameter, request.read = parameter or [], read or []
    stdin_once(*data, vali)
    check_folder(model, json, "model", "the model a file")
    check_apart([model, report], [*data, vali, start])
    if report is not None:
        check_folder(report)
        options.check_report()
    problem = _conflict(request)
    if problem is not None:
        raise InputError(problem)
    from leanrank.cli import training

    if stream:
        training.train_model(request, training.fit_stream)
    elif cluster is not None:
        training.train_model(request, training.fit_on_cluster)
    else:
        fit = training.fit_in_memory if start is None else training.fit_again
        training.train_model(request, fit)


def _conflict(request: SimpleNamespace) -> str | None:
    """Return what is wrong with a combination of options, and the remedy."""
    stream, cluster = request.stream, request.cluster is not None
    for option in ("checkpoint", "every", "features"):
        if getattr(request, option) is not None and not stream:
            return f"--{option} is for streams: add --stream, or leave it out"
    if request.report is not None and request.vali is None:
        return "--report needs --vali FILE to measure on: add it"
    if request.report is not None and (stream or cluster):
        return f"--report needs all data in memory: leave --{'stream' if stream else 'cluster'} out"
    if stream and request.monotone is not None:
        return "--monotone is for curves, which need all data at once: leave one out"
    if request.on_disk and (stream or cluster):
        return "--on-disk maps one file on one machine: leave --stream and --cluster out"
    elsewhere = stream or cluster or request.on_disk
    if request.start is not None and (elsewhere or request.report is not None):
        return (
            "--from needs all data in memory and writes no report: leave --stream, --cluster, "
            "--on-disk and --report out"
        )
    if request.start is None and request.structure != "same":
        return "--structure is for learning again: add --from MODEL, or leave it out"
    if request.target is not None and (stream or cluster):
        return "--to needs all data at once: leave --stream and --cluster out"
    if request.fill and elsewhere:
        return "--fill needs all data in memory: leave --stream, --on-disk, --cluster out"
    if len(request.data) > 1 and not (stream or cluster):
        n_files = len(request.data)
        return f"{n_files} training files were given: give one, or add --stream or --cluster"
    return None
