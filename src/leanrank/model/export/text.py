"""Formulas as text: a table of templates per language, and quoting."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterable, Mapping
from pathlib import Path
from typing import Any

from leanrank._display import UNSAFE
from leanrank.errors import InputError
from leanrank.model.curves import Writer

MOST_RESCORED = 10_000
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


class Syntax(Writer[str]):
    """The syntax of a language: numbers, texts, and a template per operation.

    A template has its operands as ``{x}``, ``{1}`` and ``{2}``. Look-up tables have ``equal``, a
    ``row``, and the ``table`` around the rows; ``text_equal`` and so on where texts differ.

    >>> Syntax(choice="if({x}, {1}, {2})").if_missing("x", "1.0", "2.0")
    'if(x != x, 1.0, 2.0)'
    """

    def __init__(
        self,
        literal: Callable[[float], str] = repr,
        text: Callable[[str], str] = json.dumps,
        **templates: str,
    ) -> None:
        self.literal, self.text = literal, text
        self.templates = _TEMPLATES | templates

    def number(self, value: float) -> str:
        """Return a number as text that reads back to the same bits."""
        return self.literal(value)

    def apply(self, operation: str, *operands: str) -> str:
        """Return the filled template of an operation."""
        return self.templates[operation].format(*operands, x=operands[0])

    def filled(self, x: str, value: float) -> str:
        """Return a feature with a number where it is missing."""
        known = "filled" in self.templates
        return self.apply("filled", x, self.number(value)) if known else super().filled(x, value)

    def fraction(self, x: str, start: str, rate: str) -> str:
        """Return (x − start) × rate."""
        return self.apply("fraction", x, start, rate)

    def lookup(self, x: str, table: list[tuple[Any, float]], otherwise: float) -> str:
        """Return the look-up of a level."""
        is_text = bool(table) and isinstance(table[0][0], str)
        known, kind = self.templates, "text_" if is_text else ""
        own = {name: known.get(kind + name, known[name]) for name in ("equal", "row", "table")}
        rows = []
        for given, number in table:
            level = self.text(given) if is_text else self.number(given)
            test = own["equal"].format(x=x, level=level)
            rows.append(own["row"].format(test=test, level=level, value=self.number(number)))
        return own["table"].format(x=x, rows="".join(rows), otherwise=self.number(otherwise))


_TEMPLATES = {
    "missing": "{x} != {x}",
    "choice": "({x} ? {1} : {2})",
    "above": "{x} > {1}",
    "fraction": "(({x} - {1}) * {2})",
    "times": "{x} * {1}",
    "plus": "{x} + {1}",
    "equal": "{x} == {level}",
    "row": "{test} ? {value} : ",
    "table": "({rows}{otherwise})",
}


def pretty(value: Any) -> str:
    """Return indented JSON; floats are written as ``1.0``, since Solr rejects ``1``."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def template(name: str) -> str:
    """Return a file of the folder ``templates``."""
    return (Path(__file__).parent / "templates" / name).read_text(encoding="utf-8")


def filled(name: str, fields: Mapping[str, str], optional: Any = True) -> str:
    """Return a template with ``@fields@`` filled in, with or without the parts ``@?…?@``."""
    text = re.sub(r"(?s)@\?(.*?)\?@", r"\1" if optional else "", template(name))
    return re.sub("@([a-z]+)@", lambda found: fields[found[1]], text)


def versioned(name: str, *written: Any) -> str:
    """Return a name with eight digits of a digest of its contents.

    >>> versioned("web", {"bm25": 1.0})
    'web_d0363be1'
    """
    return f"{name}_{hashlib.sha256(json.dumps(written).encode()).hexdigest()[:8]}"


def rescored(top: int, **rescore: Any) -> dict[str, Any]:
    """Return a search of Elasticsearch or OpenSearch whose best documents are rescored.

    With ``query``, the original score has weight 0.
    """
    if top > MOST_RESCORED:
        raise InputError(f"servers rescore at most {MOST_RESCORED:,} documents: give a smaller top")
    if "query" in rescore:
        weights = {"query_weight": 0, "rescore_query_weight": 1}
        rescore = {"query": {**weights, "rescore_query": rescore["query"]}}
    window = {"window_size": max(100, top)}
    return {"query": {"match_all": {}}, "size": top, "rescore": window | rescore}


def quoted(name: str, quote: str) -> str:
    r"""Return a text in quotes, with backslash escapes.

    >>> print(quoted("it's", "'"))
    'it\'s'
    """
    return quote + name.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote


def check_plain(names: Iterable[str], target: str, kind: str = "feature name") -> None:
    """Reject names with line breaks, control characters or invalid characters."""
    for name in names:
        if not name or UNSAFE.search(name):
            raise InputError(
                f"the {kind} {name!r} cannot be written for {target}: "
                + ("rename it" if kind == "level" else "give it another in a file for --names")
            )


def unused(name: str, taken: Iterable[str]) -> str:
    """Return a name that differs from those taken also without regard to case.

    >>> unused("score", ["bm25", "Score"])
    'score_'
    """
    known = {other.lower() for other in taken}
    while name.lower() in known:
        name += "_"
    return name
