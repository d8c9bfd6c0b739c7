"""Options: what several commands share, and what the docstring of a command says of its own."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Context, Option
from typer.models import ParameterInfo

from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model

_PARAMETERS = "\n\nParameters\n----------\n"
_ENTRY = re.compile(r"(?m)^(\w+) :(?: (-\w))?(?: ([^\s>].*?))?(?: >= (\d+))?\n((?:    .*\n?)+)")


def explained(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose options have the names, limits and help that its docstring gives.

    Its section "Parameters" has an entry ``name : -x METAVAR >= MIN`` per option, of which the
    short name, the metavariable and the limit may be missing, with the help below it. Parameters
    that stand before a slash in the signature are arguments; annotations with an ``Option`` stay.
    """
    text, _, section = inspect.cleandoc(command.__doc__ or "").partition(_PARAMETERS)
    entries = {name: entry for name, *entry in _ENTRY.findall(section + "\n")}
    hints = get_type_hints(command, include_extras=True)
    parameters = []
    for one in inspect.signature(command).parameters.values():
        hint = hints[one.name]
        own = any(isinstance(each, ParameterInfo) for each in getattr(hint, "__metadata__", ()))
        if not own and hint is not Context:
            short, metavar, least, words = entries[one.name]
            how: dict[str, Any] = {"help": " ".join(words.split()), "metavar": metavar or None}
            if least:
                how["min"] = int(least)
            if one.kind is one.POSITIONAL_ONLY:
                hint = Annotated[hint, Argument(show_default=False, **how)]
            else:
                dashed = f"--{one.name.replace('_', '-')}"
                names = (dashed, short) if short else (dashed,)
                hint = Annotated[hint, Option(*names, **how)]
        parameters.append(one.replace(annotation=hint, kind=one.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> Any:
        signature = inspect.signature(command)
        bound = signature.bind_partial()
        bound.arguments.update(given)
        return command(*bound.args, **bound.kwargs)

    # without defaults first: keyword-only parameters may stand in any order
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    run.__doc__ = text
    return run


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
    # --target: the old spelling, for one release
    Option(
        "--to",
        "--target",
        metavar="TARGET",
        help="Where the model will be exported to: what that cannot run is not tried or written.",
    ),
]
Jobs = Annotated[
    int, Option("--jobs", "-j", metavar="N", help="Threads; the result does not depend on it.")
]
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
