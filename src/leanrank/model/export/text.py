"""Writing formulas as text: a table of templates per language, and quoting."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

from leanrank._display import UNSAFE
from leanrank.errors import InputError

MOST_RESCORED = 10_000
IDENTIFIER = re.compile(r"[A-Za-z_][A-Za-z0-9_]*")


@dataclass(frozen=True)
class Syntax:
    """How a language writes the parts of a formula: a ``Writer`` of text.

    >>> Syntax().if_above("x", "1.0", "2.0", "0.0")
    '(x > 1.0 ? 2.0 : 0.0)'
    """

    literal: Callable[[float], str] = repr
    value: str = "{x}"
    fill: str = ""  # where it differs from a choice by whether the feature is missing
    is_missing: str = "{x} != {x}"
    choice: str = "({test} ? {then} : {otherwise})"
    above: str = "{x} > {threshold}"
    past: str = "(({x} - {start}) * {rate})"
    product: str = "{a} * {b}"
    sum: str = "{a} + {b}"
    # look-up tables: how a text is written and compared, a row, and the table around the rows
    text: Callable[[str], str] = json.dumps
    text_value: str = "{x}"
    equal: str = "{x} == {level}"
    row: str = "{test} ? {value} : "
    table: str = "({rows}{otherwise})"
    text_equal: str = ""  # where they differ for texts
    text_row: str = ""
    text_table: str = ""

    def number(self, value: float) -> str:
        """Write a number so that reading it gives the same bits."""
        return self.literal(value)

    def filled(self, x: str, value: float) -> str:
        """Write a feature with a number where it is missing."""
        if self.fill:
            return self.fill.format(x=x, value=self.number(value))
        return self.if_missing(x, self.number(value), self.value.format(x=x))

    def if_missing(self, x: str, then: str, otherwise: str) -> str:
        """Write a choice by whether a feature is missing."""
        test = self.is_missing.format(x=x)
        return self.choice.format(test=test, then=then, otherwise=otherwise)

    def if_above(self, x: str, threshold: str, then: str, otherwise: str) -> str:
        """Write a choice by whether a feature is above a threshold."""
        test = self.above.format(x=self.value.format(x=x), threshold=threshold)
        return self.choice.format(test=test, then=then, otherwise=otherwise)

    def fraction(self, x: str, start: str, rate: str) -> str:
        """Write the share of a ramp that a feature is past."""
        return self.past.format(x=self.value.format(x=x), start=start, rate=rate)

    def lookup(self, x: str, table: list[tuple[Any, float]], otherwise: float) -> str:
        """Write the value of a level."""
        is_text = bool(table) and isinstance(table[0][0], str)
        value = (self.text_value if is_text else self.value).format(x=x)
        equal, row, around = self.equal, self.row, self.table
        if is_text:
            equal = self.text_equal or equal
            row, around = self.text_row or row, self.text_table or around
        rows = []
        for given, number in table:
            level = self.text(given) if is_text else self.number(given)
            test = equal.format(x=value, level=level)
            rows.append(row.format(test=test, level=level, value=self.number(number)))
        return around.format(x=value, name=x, rows="".join(rows), otherwise=self.number(otherwise))

    def times(self, a: str, b: str) -> str:
        """Write a product."""
        return self.product.format(a=a, b=b)

    def plus(self, a: str, b: str) -> str:
        """Write a sum."""
        return self.sum.format(a=a, b=b)


def pretty(value: Any) -> str:
    """Lay out a JSON document; whole weights are written as ``1.0``, since Solr rejects ``1``."""
    return json.dumps(value, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


def rescored(query: Any, top: int) -> dict[str, Any]:
    """Return a search of Elasticsearch or OpenSearch in which a query alone decides the order."""
    if top > MOST_RESCORED:
        raise InputError(f"servers rescore at most {MOST_RESCORED:,} documents: give a smaller top")
    weights = {"query_weight": 0, "rescore_query_weight": 1}
    rescore = {"window_size": max(100, top), "query": {**weights, "rescore_query": query}}
    return {"query": {"match_all": {}}, "size": top, "rescore": rescore}


def quoted(name: str, quote: str) -> str:
    r"""Quote a text; a backslash escapes.

    >>> print(quoted("it's", "'"))
    'it\'s'
    """
    return quote + name.replace("\\", "\\\\").replace(quote, "\\" + quote) + quote


def check_plain(names: Iterable[str], target: str, kind: str = "feature name") -> None:
    """Reject names with line breaks, control characters or what is no character of a text."""
    for name in names:
        if not name or UNSAFE.search(name):
            raise InputError(
                f"the {kind} {name!r} cannot be written for {target}: "
                + ("rename it" if kind == "level" else "give it another in a file for --names")
            )


def unused(name: str, taken: Iterable[str]) -> str:
    """Return a name that is not taken, in any case.

    >>> unused("score", ["bm25", "Score"])
    'score_'
    """
    known = {other.lower() for other in taken}
    while name.lower() in known:
        name += "_"
    return name
