"""What features cost: a table by name, all in one unit or in none."""

from __future__ import annotations

import csv
import math
import os
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.errors import FileError, InputError

TIMES = {"": 1.0, "ms": 1e-3, "s": 1.0, "min": 60.0, "h": 3600.0}
"""Units of a budget, in seconds."""

OTHERS = "*"
"""In a table: the cost of every feature that it does not name."""

_AMOUNT = re.compile(r"\s*((?:\d+\.?\d*|\.\d+)(?:[eE][+-]?\d+)?)\s*([^\W\d_]*)\s*")


@dataclass(frozen=True, eq=False)
class Costs:
    """One cost per feature, all in one unit.

    Examples
    --------
    >>> costs = Costs.from_table({"bm25": "0.2ms", "pagerank": "1ms", "*": "3ms"},
    ...                          ["bm25", "pagerank", "clicks"])
    >>> costs.unit, costs.each.tolist()
    ('ms', [0.2, 1.0, 3.0])
    >>> costs.show(costs.of(np.array([0, 1])))
    '1.2ms'
    >>> costs.amount("3ms")
    3.0
    """

    each: FloatArray
    unit: str = ""

    @classmethod
    def from_table(
        cls,
        table: Mapping[Any, Any],
        names: Sequence[str] | None = None,
        *,
        n_features: int | None = None,
        source: str = "the table of costs",
    ) -> Costs:
        """Read costs by the name of the feature, or its number from 0 where there are no names."""
        known = list(map(str, names if names is not None else range(n_features or 0)))
        given = {str(name).strip(): cost for name, cost in table.items()}
        strange = [name for name in given if name not in known and name != OTHERS]
        if strange:
            what = "name" if names is not None else "number (they count from 0)"
            raise InputError(f"{source}: no feature has the {what} {strange[0]!r}")
        missing = [name for name in known if name not in given]
        if missing and OTHERS not in given:
            raise InputError(
                f"{source}: feature {missing[0]!r} has no cost ({len(missing)} have none): add it, "
                f"or one line for all others, named {OTHERS!r}"
            )
        parsed = {name: _parse(cost, f"{source}, {name!r}") for name, cost in given.items()}
        units = sorted({unit for number, unit in parsed.values() if number})
        if len(units) > 1:
            raise InputError(
                f"{source}: costs in {' and '.join(unit or 'plain numbers' for unit in units)} "
                "cannot be compared: give all costs in one unit"
            )
        each = [parsed[name if name in parsed else OTHERS][0] for name in known]
        return cls(np.array(each, dtype=np.float64), *units)

    @classmethod
    def read(
        cls,
        path: str | os.PathLike[str],
        names: Sequence[str] | None = None,
        *,
        n_features: int | None = None,
    ) -> Costs:
        """Read lines of name and cost separated by a comma; a first line may be their header."""
        try:
            lines = Path(path).read_text(encoding="utf-8-sig").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            reason = getattr(error, "strerror", None) or error
            raise FileError(f"{path}: cannot be read ({reason})") from error
        table: dict[str, str] = {}
        for number, cells in enumerate(csv.reader(lines), 1):
            if not cells:
                continue
            if len(cells) != 2:
                raise InputError(f"{path}, line {number}: write a feature, a comma and its cost")
            name, cost = (cell.strip() for cell in cells)
            if name in table:
                raise InputError(f"{path}, line {number}: {name!r} has a cost already")
            if number > 1 or _AMOUNT.fullmatch(cost):
                table[name] = cost
        return cls.from_table(table, names, n_features=n_features, source=str(path))

    def of(self, features: IntArray) -> float:
        """Add up the costs of features."""
        return float(self.each[features].sum())

    def amount(self, text: str) -> float:
        """Read an amount such as ``3ms``, which must be in the unit of these costs."""
        number, unit = _parse(text, "the cost")
        if unit not in ("", self.unit):
            raise InputError(
                f"the cost: {text!r} is not in {self.unit or 'plain numbers'}, as the table is"
            )
        return number

    def show(self, amount: float) -> str:
        """Write an amount with its unit."""
        return f"{amount:.6g}{self.unit}"


def read_seconds(text: str, where: str = "the budget") -> float:
    """Read a length of time; a plain number is seconds.

    >>> read_seconds("60"), read_seconds("2min"), read_seconds("500 ms")
    (60.0, 120.0, 0.5)
    """
    number, unit = _parse(text, where)
    if not number or unit not in TIMES:
        raise InputError(f"{where}: {text!r} is no length of time: write one such as 60s or 5min")
    return number * TIMES[unit]


def _parse(given: Any, where: str) -> tuple[float, str]:
    found = _AMOUNT.fullmatch(str(given))
    if found is None or not float(found.group(1)) < math.inf:
        raise InputError(f"{where}: {given!r} is no amount: write a number from 0 on, such as 3ms")
    return float(found.group(1)), found.group(2)
