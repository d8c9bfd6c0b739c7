"""``leanrank train``: learn a model from a file."""

from __future__ import annotations

from typing import Annotated

from typer import Argument, Option

from leanrank.cli import options
from leanrank.cli.datafiles import check_apart, check_folder, stdin_once
from leanrank.cli.systems import complete_algorithm, complete_parameter
from leanrank.errors import InputError


def train(
    data: Annotated[
        list[str],
        Argument(
            metavar="TRAIN",
            help="Training data, or -; several files with --stream or --cluster, which also takes "
            "a pattern such as 'part-*.parquet'.",
        ),
    ],
    model: options.ModelFile,
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
            help="System to fit, one of `leanrank systems`. [default: lean; domination with "
            "--on-disk or --cluster, minbatsrank with --stream]",
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
    fill: options.Fill = None,
    target: options.Target = None,
    format: options.Format = None,
    read: options.Read = None,
    measures: options.Measures = options.DEFAULT_MEASURES,
    convention: options.Convention = "standard",
    report: Annotated[
        str | None, Option(metavar="FILE", help="Write a page about the model; with --vali.")
    ] = None,
    seed: Annotated[
        int | None, Option(min=0, max=2**32 - 1, help="Seed of an algorithm that draws at random.")
    ] = None,
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
            help="With --stream: resume from this file if it exists, and keep it up to date.",
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
    start: Annotated[
        str | None,
        Option(
            "--from",
            metavar="MODEL",
            help="Learn again from TRAIN what LeanRanker learned before: the same terms and "
            "strength, from its weights.",
        ),
    ] = None,
    structure: Annotated[
        str, Option(metavar="HOW", help="With --from: same, or again to choose terms again.")
    ] = "same",
    without_summary: Annotated[
        bool,
        Option(
            "--without-summary",
            help="Keep no summary of the features in the model, which `leanrank check` needs.",
        ),
    ] = False,
    allow_empty: Annotated[
        bool, Option("--allow-empty", help="Write a model even if it uses no feature.")
    ] = False,
    json: options.Json = False,
) -> None:
    """Learn a ranking function and write it as a model file.

    For example: leanrank train train.txt --vali vali.txt -p max_features=10 --model m.json
    """
    from leanrank.cli.training.shared import Request

    stdin_once(*data, vali)
    check_folder(model, json, "model", "the model a file")
    check_apart([model, report], [*data, vali, start])
    request = Request(
        data, model, vali, algorithm, parameter or [], monotone, scale, format, read or [],
        measures, convention, seed, jobs, checkpoint, every, features, json, report, allow_empty,
        on_disk, fill, start, structure, without_summary, target,
    )  # fmt: skip
    if report is not None:
        check_folder(report)
        if vali is None:
            raise InputError("--report needs --vali FILE to measure on: add it")
        if stream:
            raise InputError("--report needs all data at once: leave --stream out")
        options.check_report()
    if start is not None and (stream or cluster is not None or on_disk or report is not None):
        raise InputError(
            "--from needs all data in memory and writes no report: leave --stream, --cluster, "
            "--on-disk and --report out"
        )
    if start is None and structure != "same":
        raise InputError("--structure is for learning again: add --from MODEL, or leave it out")
    if stream and monotone is not None:
        raise InputError("--monotone is for curves, which need all data at once: leave one out")
    if target is not None and (stream or cluster is not None):
        raise InputError("--target needs all data at once: leave --stream and --cluster out")
    if fill and (stream or on_disk or cluster is not None):
        raise InputError(
            "--fill needs all data in memory: leave --stream, --on-disk, --cluster out"
        )
    if stream and on_disk:
        raise InputError("--stream reads piece by piece, --on-disk all at once: give one of them")
    if stream:
        from leanrank.cli.training.stream import train_stream

        train_stream(request)
        return
    for option, value in (("checkpoint", checkpoint), ("every", every), ("features", features)):
        if value is not None:
            raise InputError(f"--{option} is for streams: add --stream, or leave it out")
    if cluster is not None and on_disk:
        raise InputError("--on-disk is for one machine: leave --cluster out")
    if cluster is not None:
        from leanrank.cli.training.cluster import train_on_cluster

        if report is not None:
            raise InputError("--report needs all data in memory: leave --cluster out")
        train_on_cluster(request, cluster)
        return
    if len(data) > 1:
        raise InputError(
            f"{len(data)} training files were given: give one, or add --stream or --cluster to "
            "read them all"
        )
    if start is not None:
        from leanrank.cli.training.again import train_again

        train_again(request)
        return
    from leanrank.cli.training.memory import train_in_memory

    train_in_memory(request)
