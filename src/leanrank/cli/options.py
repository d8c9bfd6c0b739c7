"""Options: how a docstring declares them, and those that several commands share.

Parameters
----------
format : -f NAME
    Format of the data. [default: from the name]
read : NAME=VALUE
    How to read the data; may be repeated. Text: zero_based, storage, dtype. Tables: the columns
    label, qid, doc_id, weight, query_weight, offset, features.
    label=none: the data have no labels.
model : -m FILE
    Where to write the model, or -.
measures : LIST
    Measures, separated by commas.
convention : NAME
    standard, letor3, letor4, mslr, trec or lightgbm.
scale : KIND
    Normalise features: standard, minmax, query-minmax, query-standard, query-rank or none; auto is
    standard if spreads differ more than 100 times, else none (curves never need it). The model
    keeps the normaliser.
fill : VALUE
    Replace missing features by median or a number, also NAME=VALUE for one feature; may be
    repeated. The model keeps the values.
target : --to TARGET
    Engine that the model is for: nothing is tried or written that it cannot run.
jobs : -j N
    Threads; the result does not depend on it.
json :
    Print one JSON object instead of text.
name : NAME
    Name of the model, view or function in the target.
names : FILE
    Names of features in the target: CSV with the columns feature, name and optionally shift, type.
table : NAME
    Table of documents, for SQL.
qid : NAME
    Column of queries in that table, for SQL and Polars.
featureset : NAME
    Existing feature set (in Solr, store) with the model's features.
max_error : ERROR >= 0
    Largest error of a score where curves become trees.
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
    """Return a command whose options have the names, limits and help that its docstring gives.

    Its section "Parameters" has an entry ``name : -x --long METAVAR >= MIN`` per option, of which
    all but the name may be missing, with the help below it. Options that this module explains need
    no entry. Parameters that stand before a slash in the signature are arguments.
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

    # without defaults first: keyword-only parameters may stand in any order
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
    """Return the names of systems in a list; ``peers`` are those that can only be compared."""
    from leanrank.selection.systems import PEERS, check_systems

    names = [name.strip() for name in given.split(",")]
    check_systems(names)
    if not peers and (other := set(names) & set(PEERS)):
        raise InputError(f"--systems {min(other)}: this is for leanrank compare only: leave it out")
    return names


def parse_fill(given: list[str] | None) -> str | dict[str, str] | None:
    """Return one value for all features, or values by name."""
    named = dict(word.rpartition("=")[::2] for word in given or ())
    if "" in named and len(named) > 1:
        raise InputError(
            "--fill gives a value for all features and another: give one, or NAME=VALUE"
        )
    return named.get("", named) or None


def check_target(target: str | None, scale: str | None) -> float:
    """Reject what a target of ``export`` cannot run; return how many features it takes."""
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
    """Reject a model that its target cannot run, with the reason that ``export`` would give."""
    if target is not None:
        from leanrank.model.export import export_model

        export_model(model, target, data=data)


def make_ranker(algorithm: str, given: list[str], *, jobs: int) -> Any:
    """Return an unfitted ranker with the parameters that were typed."""
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
    """Read ``name=value`` words, such as the parameters of an estimator.

    Parameters
    ----------
    given : sequence of str
        As typed.
    defaults : mapping
        The parameters there are and their default values.
    of : str
        Whose they are, for messages.
    option : str
        The option that takes them, for messages.

    Examples
    --------
    >>> parse_parameters(["alpha=2", "normalize=none"], {"alpha": 1.0, "normalize": "query"}, "R")
    {'alpha': 2, 'normalize': 'none'}
    """
    parsed: dict[str, Any] = {}
    for word in given:
        name, equals, text = map(str.strip, word.partition("="))
        if not equals or not name:
            example = f"{option} {next(iter(defaults))}=…"
            raise InputError(f"{option} {word}: write NAME=VALUE, such as {example}")
        if name not in defaults:
            kind = "parameter" if option == "-p" else "option"
            raise InputError(f"{of} has no {kind} {name!r}: {suggest(name, defaults)}")
        if name in parsed:
            raise InputError(f"{option} {name}=… is given twice: give it once")
        parsed[name] = parse_value(text, defaults[name])
        if isinstance(defaults[name], bool) and not isinstance(parsed[name], bool):
            raise InputError(f"{option} {word}: write true or false")
    return parsed


def parse_numbers(given: Sequence[str], option: str) -> dict[str, float]:
    """Read words such as ``map=0.4``.

    >>> parse_numbers(["map=0.4", "bm25 = 3"], "--option")
    {'map': 0.4, 'bm25': 3.0}
    """
    found: dict[str, float] = {}
    for word in given:
        name, _, value = (part.strip() for part in word.partition("="))
        if not name or not _REAL.fullmatch(value):
            raise InputError(f"{option} {word}: write a name and a number, such as map=0.4")
        if name in found:
            raise InputError(f"{option} {word}: {name} is given twice: give it once")
        found[name] = float(value)
    return found


def parse_value(text: str, default: Any = None) -> Any:
    """Return the number, truth value, None, list or JSON object that a text spells, or the text.

    The word ``none`` stays text where the default is text, as for ``normalize``.

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
