"""Costs of features, and lengths of time."""

from __future__ import annotations

import csv
import os
import re
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.sources import parse_number, shown_name, text_lines
from leanrank.errors import InputError, ParseError
from leanrank.rankers.parameters import by_feature

TIMES = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Units of a budget, in seconds."""

OTHERS = "*"
"""The entry of a table for all features that it does not name."""


def feature_costs(given: Any, names: Sequence[str] | None, n_features: int) -> FloatArray | None:
    """Return the cost of each feature, from an array or a dict by feature; None for None.

    >>> feature_costs({"bm25": 0.2, "*": 3}, ["bm25", "pagerank", "clicks"], 3).tolist()
    [0.2, 3.0, 3.0]
    """
    rest = np.nan
    if isinstance(given, Mapping):
        given = dict(given)
        rest = float(given.pop(OTHERS, rest))
        for text in [one for one in given if names is None and isinstance(one, str)]:
            given[int(text) if text.isdecimal() else text] = given.pop(text)
    costs: FloatArray | None = by_feature("costs", given, n_features, names, rest)
    if costs is None:
        return None
    if len(costs) != n_features or not (np.isnan(costs) | (costs >= 0)).all():
        raise InputError(f"costs must be {n_features} numbers, at least 0")
    missing = np.flatnonzero(np.isnan(costs)).tolist()
    if missing:
        first = missing[0] if names is None else names[missing[0]]
        raise InputError(
            f"costs: feature {first!r} has no cost ({len(missing)} have none): add it, or one "
            f"entry for all others, named {OTHERS!r}"
        )
    return costs


def read_costs(path: str | os.PathLike[str]) -> dict[str, float]:
    """Return the costs in a file with one feature, comma and cost per line.

    A first line whose cost has no digit is a header.
    """
    table: dict[str, float] = {}
    reader, name = csv.reader(text for _, text in text_lines(path)), shown_name(path)
    for cells in filter(None, reader):
        line = reader.line_num
        if len(cells) != 2:
            raise ParseError("write a feature, a comma and its cost", path=name, line=line)
        feature, cost = (cell.strip() for cell in cells)
        if line == 1 and not re.search(r"\d", cost):
            continue
        if feature in table:
            raise ParseError(f"{feature!r} has a cost already", path=name, line=line)
        table[feature] = parse_number(cost, "cost", path, line)
    return table


def read_seconds(text: str, where: str = "the budget") -> float:
    """Return a length of time in seconds; a number without a unit is seconds.

    >>> read_seconds("60"), read_seconds("2min"), read_seconds("500 ms")
    (60.0, 120.0, 0.5)
    """
    found = re.fullmatch(r"\s*(\d+\.?\d*|\.\d+)\s*([a-z]*)\s*", text)
    if found is None or not float(found[1]) or found[2] not in TIMES:
        raise InputError(f"{where}: {text!r} is no length of time: write one such as 60s or 5min")
    return float(found[1]) * TIMES[found[2]]
