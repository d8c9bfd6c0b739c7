"""The conventions of measures, in one table.

Published figures often differ more by their treatment of the second rank, short lists, ties and
queries without a relevant document than by their rankers. A convention fixes all of these choices.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

import numpy as np

from leanrank._numbers import is_number
from leanrank._typing import FloatArray
from leanrank.errors import InputError, check_choice


@dataclass(frozen=True)
class Convention:
    """Every choice that a measure leaves open.

    Parameters
    ----------
    name : str
    gain : {"exp2", "linear"}
        The gain of a document of label r: 2^r − 1, or r; 0 for labels below zero.
    discount : {"log2", "letor"}
        The factor of a gain at rank i: 1/log2(1 + i), or 1 at ranks 1 and 2 and 1/log2(i) below.
    rel : float
        The lowest relevant label, for measures of binary relevance.
    short_lists : {"as_is", "ndcg_zero", "zero"}
        @k of a list with fewer than k documents: the missing positions are irrelevant; or NDCG@k
        counts as 0; or NDCG@k and P@k count as 0.
    no_relevant : {0, 1, "skip"}
        A query without a relevant document (for DCG, NDCG and ERR: without any gain) counts as this
        value, or is left out of the mean and counted in ``undefined``. Value 1 is for the measures
        that would divide by zero (NDCG, mean NDCG, AP, R@k); the others are then 0.
    ties : {"input", "average", "pessimistic", "docid"}
        Documents with equal scores: in the order given; the expected value over all their orders;
        the worst first; by document id descending, scores being compared as 32-bit floats, as
        trec_eval does.
    ap_cut : {"all", "reachable"}
        AP@k is divided by the number of relevant documents, or by at most k.
    source : str
        The origin of the convention.
    """

    name: str
    gain: str = "exp2"
    discount: str = "log2"
    rel: float = 1.0
    short_lists: str = "as_is"
    no_relevant: float | str = "skip"
    ties: str = "average"
    ap_cut: str = "all"
    source: str = "the caller"

    def __post_init__(self) -> None:
        for name, allowed in _CHOICES.items():
            value = getattr(self, name)
            if isinstance(value, bool) or value not in allowed:
                listed = ", ".join(map(repr, allowed))
                raise InputError(f"{name}={value!r} is not known: choose from {listed}")
        if not is_number(self.rel) or not math.isfinite(self.rel):
            raise InputError(f"rel={self.rel!r} is not a label: give the lowest relevant one")
        object.__setattr__(self, "rel", float(self.rel))

    def replace(self, **choices: Any) -> Convention:
        """Return a copy with other choices; None is the choice of this convention.

        >>> CONVENTIONS["letor4"].replace(ties="average", rel=None).ties
        'average'
        """
        made = {name: value for name, value in choices.items() if value is not None}
        return dataclasses.replace(self, **made) if made else self

    def discounts(self, length: int) -> FloatArray:
        """Return the discounts at ranks 1 to ``length``.

        >>> CONVENTIONS["letor4"].discounts(4).tolist()
        [1.0, 1.0, 0.6309297535714575, 0.5]
        """
        ranks = np.arange(1, length + 1, dtype=np.float64)
        if self.discount == "log2":
            return 1.0 / np.log2(1.0 + ranks)
        return 1.0 / np.log2(np.maximum(ranks, 2.0))

    def gains(self, levels: FloatArray) -> FloatArray:
        """Return the gain of each label in ``levels``, which ascend."""
        earned = np.maximum(levels, 0.0)
        if self.gain == "linear":
            return earned
        if len(levels) and levels[-1] > _HIGHEST_EXP2_LABEL:
            raise InputError(
                f"y has the label {levels[-1]:g}, whose gain 2^label − 1 is out of range: use "
                "gain='linear'"
            )
        return np.exp2(earned) - 1.0


def find_convention(convention: str | Convention) -> Convention:
    """Return the convention of a name; a Convention is returned unchanged.

    >>> find_convention("mslr").rel
    2.0
    """
    if isinstance(convention, Convention):
        return convention
    check_choice("convention", convention, CONVENTIONS)
    return CONVENTIONS[convention]


_HIGHEST_EXP2_LABEL = 1000.0  # leaves room for the sum over a query of any length

_CHOICES: dict[str, tuple[Any, ...]] = {
    "gain": ("exp2", "linear"),
    "discount": ("log2", "letor"),
    "short_lists": ("as_is", "ndcg_zero", "zero"),
    "no_relevant": (0, 1, "skip"),
    "ties": ("input", "average", "pessimistic", "docid"),
    "ap_cut": ("all", "reachable"),
}


_TOOL: dict[str, Any] = {"discount": "letor", "no_relevant": 0, "ties": "input"}
_NAMED = (
    Convention("standard", source="textbooks"),
    Convention("letor3", short_lists="zero", source="LETOR 3.0 tool", **_TOOL),
    Convention("letor4", short_lists="ndcg_zero", source="LETOR 4.0 tool", **_TOOL),
    Convention("mslr", short_lists="ndcg_zero", rel=2.0, source="MSLR-WEB tool", **_TOOL),
    Convention("trec", gain="linear", no_relevant=0, ties="docid", source="trec_eval"),
    Convention("lightgbm", no_relevant=1, ties="input", ap_cut="reachable", source="LightGBM"),
)

CONVENTIONS: Mapping[str, Convention] = MappingProxyType({each.name: each for each in _NAMED})
"""The named conventions; each is the default for all of its choices."""
