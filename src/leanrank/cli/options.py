"""Options that several commands share, and how docstrings declare options.

Parameters
----------
format : -f NAME
    Format of the data. [default: from the name]
read : NAME=VALUE
    How to read the data; may be repeated. For text: zero_based, storage, dtype. For tables: the
    columns label, qid, doc_id, weight, query_weight, offset, features; label=none if the data have
    no labels.
model : -m FILE
    Where to write the model, or -.
measures : LIST
    Measures, separated by commas.
convention : NAME
    Convention of the measures: standard, letor3, letor4, mslr, trec or lightgbm.
scale : KIND
    Normaliser of the features: standard, minmax, query-minmax, query-standard, query-rank or none;
    auto takes standard if spreads differ more than 100 times, else none. Curves need none. The
    model stores the normaliser.
fill : VALUE
    Value for missing features: median or a number; NAME=VALUE for one feature. May be repeated. The
    model stores the values.
target : --to TARGET
    Engine that will run the model: only models that it can run are tried and written.
jobs : -j N
    Number of threads, -1 for all cores; the result does not depend on it.
json :
    Print one JSON object instead of text.
name : NAME
    Name of the model, view or function in the target.
names : FILE
    Names of features in the target: CSV with the columns feature and name, and optionally shift and
    type.
table : NAME
    Table of documents, for SQL.
qid : NAME
    Column of queries in that table, for SQL and Polars.
featureset : NAME
    Existing feature set (Solr: feature store) that has the model's features.
max_error : ERROR >= 0
    Largest error of a score when curves are written as trees.
"""

from __future__ import annotations

import inspect
import json
import math
import re
from collections.abc import Callable, Mapping, Sequence
from functools import wraps
from typing import TYPE_CHECKING, Annotated, Any, get_type_hints

from typer import Argument, Option

from leanrank.errors import InputError, suggest

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model

DEFAULT_MEASURES = "ndcg@10,map"

_PARAMETERS = "\n\nParameters\n----------\n"
_ENTRY = re.compile(
    r"(?m)^(\w+) :((?: -\S+)*)(?: ([^\s>-].*?))?(?: >= (\d+))?\n((?:    .*(?:\n|\Z))+)"
)
_WHOLE = re.compile(r"[+-]?[0-9]{1,4000}")  # Python refuses to read more digits
_REAL = re.compile(r"[+-]?([0-9]+\.?[0-9]*|\.[0-9]+)([eE][+-]?[0-9]+)?|[+-]?inf")
_WORDS = {"true": True, "True": True, "false": False, "False": False, "None": None, "null": None}


def explained(command: Callable[..., Any]) -> Callable[..., Any]:
    """Return a command whose options have the names, limits and help of its docstring.

    The section "Parameters" has an entry ``name : -x --long METAVAR >= MIN`` per option with the
    help below it; all but the name is optional. Options that the docstring of this module lists
    need no entry. Positional-only parameters of the function are arguments.
    """
    text, entries = _entries(command.__doc__)
    entries = _entries(__doc__)[1] | entries
    hints, arguments, parameters = get_type_hints(command), [], []
    for one in inspect.signature(command).parameters.values():
        flags, metavar, least, words = entries[one.name]
        how: dict[str, Any] = {"help": " ".join(words.split()), "metavar": metavar or None}
        if least:
            how["min"] = int(least)
        if one.kind is one.POSITIONAL_ONLY:
            arguments.append(one.name)
            kind: Any = Argument(show_default=False, **how)
        else:
            dashed = () if "--" in flags else (f"--{one.name.replace('_', '-')}",)
            kind = Option(*dashed, *flags.split(), **how)
        hint = hints[one.name]
        parameters.append(one.replace(annotation=Annotated[hint, kind], kind=one.KEYWORD_ONLY))

    @wraps(command)
    def run(**given: Any) -> Any:
        return command(*[given.pop(name) for name in arguments], **given)

    # all are keyword-only, so that parameters without a default may follow others
    run.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    run.__annotations__ = {}
    run.__doc__ = text
    return run


def _entries(docstring: str | None) -> tuple[str, dict[str, list[str]]]:
    text, _, section = inspect.cleandoc(docstring or "").partition(_PARAMETERS)
    return text, {name: entry for name, *entry in _ENTRY.findall(section)}


def check_measures(measures: str, convention: str) -> None:
    """Reject an unknown measure or convention before the work."""
    from leanrank.metrics import evaluate

    evaluate([1, 0], [1, 0], doc_ids=["a", "b"], measures=measures, convention=convention)


def parse_systems(given: str, *, peers: bool = True) -> list[str]:
    """Return the names in a list of systems; ``peers`` allows those that can only be compared."""
    from leanrank.selection.systems import PEERS, check_systems

    names = [name.strip() for name in given.split(",")]
    check_systems(names)
    if not peers and (other := set(names) & set(PEERS)):
        raise InputError(f"--systems {min(other)}: only leanrank compare runs this: leave it out")
    return names


def parse_fill(given: list[str] | None) -> str | dict[str, str] | None:
    """Return one value for all features, or values by name; None without any."""
    if given is None:
        return None
    return given[0] if len(given) == 1 and "=" not in given[0] else _named_texts(given, "--fill")


def check_target(target: str | None, scale: str | None) -> float:
    """Return how many features a target of ``export`` takes; reject a scaler it cannot compute."""
    from leanrank.model.export.targets import find_target

    if target is None:
        return math.inf
    to = find_target(target)
    if not to.curves:
        raise InputError(f"the weights of {target} are learned from runs: use leanrank fuse")
    if scale is not None and scale.startswith("query-") and scale not in to.scalers:
        able = ", ".join(["none, standard, minmax", *to.scalers])
        raise InputError(f"{target} cannot compute --scale {scale}: choose from {able}")
    return to.most_terms


def check_exportable(target: str | None, model: Model, data: RankingData) -> None:
    """Reject a model that the target cannot run, with the message of ``export``."""
    if target is not None:
        from leanrank.model.export import export_model

        export_model(model, target, data=data)


def make_ranker(algorithm: str, given: list[str], *, jobs: int) -> Any:
    """Return an unfitted ranker with the parameters of the command line."""
    from leanrank.registry import get_system

    system = get_system(algorithm)
    chosen = system.load()
    defaults = chosen().get_params()
    parameters = parse_parameters(given, defaults, chosen.__name__)
    own = {"n_jobs": jobs} if "n_jobs" in defaults else {}
    return chosen(**(own | system.own_parameters | parameters))


def parse_parameters(
    given: Sequence[str], defaults: Mapping[str, Any], of: str, option: str = "-p"
) -> dict[str, Any]:
    """Return the values of ``NAME=VALUE`` words, by name.

    Parameters
    ----------
    given : sequence of str
    defaults : mapping
        The known names and their default values.
    of : str
        What has these parameters, for messages.
    option : str
        The option that takes the words, for messages.

    Examples
    --------
    >>> parse_parameters(["alpha=2", "normalize=none"], {"alpha": 1.0, "normalize": "query"}, "R")
    {'alpha': 2, 'normalize': 'none'}
    """
    parsed: dict[str, Any] = {}
    for name, text in _named_texts(given, option).items():
        if name not in defaults:
            kind = "parameter" if option == "-p" else "option"
            raise InputError(f"{of} has no {kind} {name!r}: {suggest(name, defaults)}")
        parsed[name] = parse_value(text, defaults[name])
        if isinstance(defaults[name], bool) and not isinstance(parsed[name], bool):
            raise InputError(f"{option} {name}={text}: write true or false")
    return parsed


def parse_numbers(given: Sequence[str], option: str) -> dict[str, float]:
    """Return the numbers of words such as ``map=0.4``, by name.

    >>> parse_numbers(["map=0.4", "bm25 = 3"], "--option")
    {'map': 0.4, 'bm25': 3.0}
    """
    texts = _named_texts(given, option)
    for name, text in texts.items():
        if not _REAL.fullmatch(text):
            raise InputError(f"{option} {name}={text}: write a number, such as {name}=0.4")
    return {name: float(text) for name, text in texts.items()}


def _named_texts(given: Sequence[str], option: str) -> dict[str, str]:
    """Return the texts of ``NAME=TEXT`` words, by name."""
    texts: dict[str, str] = {}
    for word in given:
        name, equals, text = map(str.strip, word.partition("="))
        if not equals or not name:
            raise InputError(f"{option} {word}: write NAME=VALUE")
        if name in texts:
            raise InputError(f"{option} {name}=… is given twice: give it once")
        texts[name] = text
    return texts


def parse_value(text: str, default: Any = None) -> Any:
    """Return the number, truth value, None, list or JSON object that a text spells, else the text.

    The word ``none`` stays a text if the default is a text, as for ``normalize``.

    >>> [parse_value(t) for t in ("3", "1e-3", "true", "none", "map", "1,2.5,", "'3'")]
    [3, 0.001, True, None, 'map', [1, 2.5], '3']
    >>> parse_value("none", default="query")
    'none'
    >>> parse_value('{"age": [0, 7, 365]}')
    {'age': [0, 7, 365]}
    """
    if len(text) >= 2 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    if text.startswith("{"):
        try:
            return json.loads(text)
        except (ValueError, RecursionError):
            raise InputError(
                f'{text[:40]} is not a JSON object: write {{"NAME": VALUE, …}}'
            ) from None
    if "," in text:
        return [parse_value(part.strip()) for part in text.removesuffix(",").split(",")]
    if text in _WORDS:
        return _WORDS[text]
    if text == "none" and not isinstance(default, str):
        return None
    if _WHOLE.fullmatch(text):
        return int(text)
    return float(text) if _REAL.fullmatch(text) else text
