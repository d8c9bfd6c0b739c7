"""Measures and their names, such as ``ndcg@10`` and ``map(rel=2)``."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np

from leanrank.data.sources import decimal
from leanrank.errors import InputError

NDCG, DCG, MEAN_NDCG, ERR, AP, PRECISION, RECALL, MRR = range(8)
AUC, ALL_PAIRS_ERROR, DOMINATION_ERROR, KENDALL, JOACHIMS, LOSS = range(8, 14)
"""Kinds from AUC on are measures of pairs or scores, where all conventions treat ties alike."""


@dataclass(frozen=True)
class Measure:
    """One measure with its cut-off and relevance threshold.

    Attributes
    ----------
    name : str
        The name that the caller gave.
    kind : int
    k : int or None
        The cut-off; None is the whole list.
    rel : float or None
        The lowest relevant label; None leaves it to the convention.
    max_label : float or None
        ERR only: the highest label of the scale; None takes the highest in the data.

    Examples
    --------
    >>> Measure.parse("p@10(rel=2)")
    Measure('p@10(rel=2)')
    """

    name: str
    kind: int
    k: int | None = None
    rel: float | None = None
    max_label: float | None = None

    @staticmethod
    def parse(name: str) -> Measure:
        """Return the measure of a name."""
        if not isinstance(name, str):
            raise InputError(f"the measure {name!r} is not a name: choose from {measure_names()}")
        return _parse(name.strip())

    @property
    def uses_gains(self) -> bool:
        """Whether labels have gains."""
        return self.kind in (NDCG, DCG, MEAN_NDCG, LOSS)

    @property
    def sees_tie_order(self) -> bool:
        """Whether the order of documents with equal scores matters."""
        return self.kind < AUC

    @property
    def higher_is_better(self) -> bool:
        """Whether a better ranking has a higher value."""
        return self.kind not in (ALL_PAIRS_ERROR, DOMINATION_ERROR, LOSS)

    def __repr__(self) -> str:
        return f"Measure({self.name!r})"


class Terms(NamedTuple):
    """One measure under one convention.

    Attributes
    ----------
    kind, cut : int
    lowest : int
        The code of the lowest level that is relevant.
    short_is_zero, cut_relevant : bool
        Whether a list shorter than the cut-off has 0, and at most that many documents count as
        relevant.
    empty : float
        The value of a query without a relevant document.
    stop_scale : float
    """

    kind: int
    cut: int
    lowest: int
    short_is_zero: bool
    cut_relevant: bool
    empty: float
    stop_scale: float


def parse_measures(measures: str | Measure | Iterable[str | Measure]) -> tuple[Measure, ...]:
    """Return one measure, several, or those of a text with commas, each once.

    >>> parse_measures("ndcg@10, map(rel=2)")
    (Measure('ndcg@10'), Measure('map(rel=2)'))
    """
    if isinstance(measures, str):
        measures = measures.split(",")
    elif isinstance(measures, Measure):
        measures = (measures,)
    parsed = (m if isinstance(m, Measure) else Measure.parse(m) for m in measures)
    listed = tuple({measure.name: measure for measure in parsed}.values())
    if not listed:
        raise InputError(f"no measure was given: choose from {measure_names()}")
    return listed


def measure_names() -> str:
    """Return the names of all measures."""
    return ", ".join(form for form, *_ in _FORMS.values())


def percent_zero(w: Any) -> float:
    """Return 100·(1 − ‖w‖₀/n), the percentage of the weights that are exactly zero.

    >>> percent_zero([0.0, 0.5, 0.0, 0.0])
    75.0
    """
    weights = np.asarray(w)
    if weights.size == 0:
        raise InputError("w is empty: give at least one weight")
    return 100.0 * (1.0 - int(np.count_nonzero(weights)) / weights.size)


# name: how it is written, kind, whether @k may / must follow, the option it takes
_FORMS: dict[str, tuple[str, int, str, str | None]] = {
    "ndcg": ("ndcg[@k]", NDCG, "may", None),
    "dcg": ("dcg[@k]", DCG, "may", None),
    "mean_ndcg": ("mean_ndcg", MEAN_NDCG, "no", None),
    "map": ("map[@k][(rel=r)]", AP, "may", "rel"),
    "ap": ("ap[@k][(rel=r)]", AP, "may", "rel"),
    "p": ("p@k[(rel=r)]", PRECISION, "must", "rel"),
    "r": ("r@k[(rel=r)]", RECALL, "must", "rel"),
    "mrr": ("mrr[@k][(rel=r)]", MRR, "may", "rel"),
    "err": ("err[@k][(max=m)]", ERR, "may", "max"),
    "auc": ("auc[(rel=r)]", AUC, "no", "rel"),
    "all_pairs_error": ("all_pairs_error", ALL_PAIRS_ERROR, "no", None),
    "domination_error": ("domination_error", DOMINATION_ERROR, "no", None),
    "kendall_tau_b": ("kendall_tau_b", KENDALL, "no", None),
    "joachims_tau": ("joachims_tau", JOACHIMS, "no", None),
    "loss": ("loss", LOSS, "no", None),
}

_PATTERN = re.compile(
    r"(?P<base>[a-z_]+)(?:@(?P<k>[0-9]+))?(?:\((?P<option>[a-z]+)=(?P<value>[0-9.eE+-]+)\))?"
)


@lru_cache(maxsize=512)
def _parse(name: str) -> Measure:
    match = _PATTERN.fullmatch(name.lower())
    form = _FORMS.get(match["base"]) if match else None
    if match is None or form is None:
        raise InputError(f"the measure {name!r} is not known: choose from {measure_names()}")
    written, kind, cut, option = form
    k = None if match["k"] is None else int(match["k"])
    if (k is None and cut == "must") or (k is not None and cut == "no"):
        verb = "needs a" if cut == "must" else "takes no"
        raise InputError(f"the measure {name!r} {verb} cut-off: it is written {written}")
    if k is not None and not 1 <= k < 2**31:
        raise InputError(f"the measure {name!r} has a cut-off of {k}: it must be 1 or more")
    if match["option"] is not None and match["option"] != option:
        raise InputError(
            f"the measure {name!r} has no option {match['option']!r}: it is written {written}"
        )
    value = None if match["value"] is None else _finite(match["value"], name)
    return Measure(
        name,
        kind,
        k,
        rel=value if option == "rel" else None,
        max_label=value if option == "max" else None,
    )


def _finite(text: str, name: str) -> float:
    value = decimal(text)
    if not np.isfinite(value):
        raise InputError(f"the measure {name!r} holds {text!r}, which is not a finite number")
    return value
