"""What kind of value each parameter of a ranker takes: one table for all rankers.

A parameter means the same wherever it occurs, so the table is by name. It tells kinds apart, a
number from a text; bounds are checked where they are used.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._numbers import is_number, is_whole
from leanrank.errors import InputError
from leanrank.metrics.conventions import Convention
from leanrank.metrics.measures import Measure


@dataclass(frozen=True)
class Kind:
    """A kind of value: how messages call it, and which values are of it."""

    name: str
    includes: Callable[[Any], bool]

    def __or__(self, other: Kind) -> Kind:
        return Kind(
            f"{self.name} or {other.name}",
            lambda value: self.includes(value) or other.includes(value),
        )


NUMBER = Kind("a number", is_number)
WHOLE = Kind("a whole number", is_whole)
SWITCH = Kind("True or False", lambda value: isinstance(value, (bool, np.bool_)))
TEXT = Kind("a text", lambda value: isinstance(value, str))
FUNCTION = Kind("a function", callable)
CONVENTION = Kind("a Convention", lambda value: isinstance(value, Convention))
MEASURE = Kind("a Measure", lambda value: isinstance(value, Measure))
NOTHING = Kind("None", lambda value: value is None)
SEVERAL = Kind(
    "a list", lambda value: np.iterable(value) and not isinstance(value, (str, bytes, Mapping))
)
TABLE = Kind("a dict by feature", lambda value: isinstance(value, Mapping))
BY_FEATURE = Kind("one per feature in a list", SEVERAL.includes) | TABLE

_NAMES = (
    (
        NUMBER,
        "min_strength C ceiling coef0 degree epsilon margin_scale mu p power_t radius rho tol",
    ),
    (NUMBER | NOTHING, "budget max_cost gamma group_ratio l1_ratio lipschitz"),
    (WHOLE, "epochs max_iter n_labeled n_rounds n_steps n_unlabeled rounds top truncate_every"),
    (WHOLE, "n_strengths"),
    (WHOLE | NOTHING, "batch_pairs candidates max_features n_jobs n_thresholds patience"),
    (WHOLE | TEXT, "n_features_to_select n_folds"),
    (WHOLE | TEXT | NOTHING, "max_pairs"),
    (WHOLE | TEXT | TABLE | NOTHING, "curves"),
    (WHOLE | SEVERAL, "views"),
    (SWITCH, "accelerate project relative shuffle warm_start"),
    (SWITCH | NOTHING, "average"),
    (SWITCH | WHOLE, "verbose"),
    (TEXT, "bound criterion fitting kernel l1 learning_rate memory normalize"),
    (TEXT, "rates repeats rule sampling search select_by storage target variant"),
    (TEXT | CONVENTION, "convention"),
    (TEXT | MEASURE, "measure"),
    (FUNCTION | NOTHING, "callback"),
    (SEVERAL, "alphas"),
    (SEVERAL | NOTHING, "categories"),
    (TEXT | SEVERAL, "gain"),
    (TEXT | SEVERAL | NOTHING, "importance margin"),
    (BY_FEATURE | NOTHING, "costs penalty_factors"),
    (WHOLE | BY_FEATURE | NOTHING, "monotone signs"),
)
PARAMETERS = {name: kind for kind, names in _NAMES for name in names.split()}


def check_parameters(ranker: Any, kinds: Mapping[str, Kind] = PARAMETERS) -> None:
    """Reject a parameter of the wrong kind.

    >>> from leanrank import RankRLS
    >>> check_parameters(RankRLS(normalize=2))
    Traceback (most recent call last):
    leanrank.errors.InputError: normalize=2 must be a text
    """
    for name, value in vars(ranker).items():  # scikit-learn's get_params takes ten times as long
        kind = kinds.get(name)
        if kind is not None and not kind.includes(value):
            raise InputError(f"{name}={value!r} must be {kind.name}")
