"""Options that several commands share."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated

from typer import Option

from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model

Format = Annotated[
    str | None,
    Option(
        "--format",
        "-f",
        metavar="NAME",
        help="Format of the data; found from the name if left out.",
    ),
]
Read = Annotated[
    list[str] | None,
    Option(
        "--read",
        metavar="NAME=VALUE",
        help="How to read the data; may be repeated. Text: zero_based, storage, dtype. Tables: the "
        "columns label, qid, doc_id, weight, query_weight, offset, features; header=false for CSV "
        "without names. label=none: there are no labels.",
    ),
]
ModelFile = Annotated[
    str, Option("--model", "-m", metavar="FILE", help="Where to write the model, or -.")
]
Measures = Annotated[
    str, Option("--measures", metavar="LIST", help="Measures, separated by commas.")
]
Convention = Annotated[
    str,
    Option(
        "--convention", metavar="NAME", help="standard, letor3, letor4, mslr, trec or lightgbm."
    ),
]
Scale = Annotated[
    str | None,
    Option(
        "--scale",
        metavar="KIND",
        help="Normalise features: standard, minmax, query-minmax, query-standard, query-rank or "
        "none; auto is standard if spreads differ more than 100 times, else none (curves never "
        "need it). The model keeps the normaliser.",
    ),
]
Fill = Annotated[
    list[str] | None,
    Option(
        "--fill",
        metavar="VALUE",
        help="Replace missing features by median or a number, also NAME=VALUE for one feature; may "
        "be repeated. The model keeps the values.",
    ),
]
Target = Annotated[
    str | None,
    Option(
        "--target",
        metavar="TARGET",
        help="Where the model will be exported to: what that cannot run is not tried or written.",
    ),
]
Jobs = Annotated[int, Option("--jobs", "-j", help="Threads; the result does not depend on it.")]
Json = Annotated[bool, Option("--json", help="Print one JSON object instead of text.")]
ExportName = Annotated[
    str, Option("--name", metavar="NAME", help="Of the model, view or function in the target.")
]
Names = Annotated[
    str | None,
    Option(
        "--names",
        metavar="FILE",
        help="What features are called in the target: CSV with feature, name and perhaps shift.",
    ),
]
TableName = Annotated[
    str, Option("--table", metavar="NAME", help="The table of documents, for SQL.")
]
QueryColumn = Annotated[
    str, Option("--qid", metavar="NAME", help="Its column of queries, for SQL and Polars.")
]
Featureset = Annotated[
    str | None,
    Option(
        metavar="NAME",
        help="A feature set (in Solr a store) that exists and has the model's features.",
    ),
]
MaxError = Annotated[
    float | None,
    Option(metavar="ERROR", min=0, help="Largest error of a score where curves become trees."),
]
Normalizers = Annotated[
    bool,
    Option(
        "--normalizers",
        help="Write the engine's normalisers instead of folding a scaler into the weights.",
    ),
]
DEFAULT_MEASURES = "ndcg@10,map"
Cluster = Annotated[
    str | None,
    Option(
        metavar="WHERE",
        help="Fit on Dask, a file being a partition: local, local:N for N processes, or the "
        "address of a scheduler such as tcp://host:8786, whose workers see the same files.",
    ),
]


def check_measures(measures: str, convention: str) -> None:
    """Find a misspelt measure or convention before the work, not after it."""
    from leanrank.metrics import evaluate

    evaluate([1, 0], [1, 0], doc_ids=["a", "b"], measures=measures, convention=convention)


def check_report() -> None:
    """Find a package that a report lacks before the work."""
    from leanrank.report.page import chart_library

    chart_library()


def parse_fill(given: list[str] | None) -> str | dict[str, str] | None:
    """Return one value for all features, or values by name."""
    if not given:
        return None
    named = dict(word.rpartition("=")[::2] for word in given)
    if "" not in named:
        return named
    if len(given) > 1:
        raise InputError(
            "--fill gives a value for all features and another: give one, or NAME=VALUE"
        )
    return given[0]


def check_target(target: str | None, scale: str | None) -> None:
    """Reject what a target of ``export`` cannot run before the work."""
    from leanrank.model.export.targets import find_target

    if target is None:
        return
    to = find_target(target)
    if not to.curves:
        raise InputError(f"the weights of {target} are learned from runs: use leanrank fuse")
    if scale is not None and scale.startswith("query-") and scale not in to.scalers:
        able = ", ".join(["none, standard, minmax", *to.scalers])
        raise InputError(f"{target} cannot compute --scale {scale}: choose from {able}")


def check_exportable(target: str | None, model: Model, data: RankingData) -> None:
    """Reject a model that its target cannot run, with the reason that ``export`` would give."""
    if target is not None:
        from leanrank.model.export import export_model

        export_model(model, target, data=data)
