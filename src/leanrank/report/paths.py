"""The paths of a study: its own, or those formed by its candidates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from leanrank.data.scaling.normalizers import normalizer_from_dict
from leanrank.rankers.path import Path
from leanrank.selection.candidate import Candidate, describe
from leanrank.selection.study import Study

LEAST_POINTS = 5
MOST_PATHS = 6


def find_paths(study: Study) -> dict[str, Path]:
    """Return paths by their display name.

    Where a study has none, linear candidates of one algorithm that differ in alpha only are put
    together; the longest ones are kept.
    """
    if study.paths:
        return dict(list(study.paths.items())[:MOST_PATHS])
    groups: dict[str, dict[float, Candidate]] = {}
    for one in study.candidates:
        alpha = one.parameters.get("alpha")
        point = _is_plain(one) and one.model.is_linear
        if point and isinstance(alpha, float) and alpha > 0:
            groups.setdefault(_name(one), {}).setdefault(alpha, one)
    long_enough = {name: each for name, each in groups.items() if len(each) >= LEAST_POINTS}
    longest = sorted(long_enough, key=lambda name: -len(long_enough[name]))[:MOST_PATHS]
    return {name: _path(long_enough[name]) for name in longest}


def path_of(one: Candidate, paths: Mapping[str, Path]) -> str | None:
    """Return the name of the path that a candidate lies on."""
    alpha = one.parameters.get("alpha") if _is_plain(one) else None
    for name in (_name(one), one.algorithm):
        path = paths.get(name)
        if path is not None and alpha is not None and _spans(path, float(alpha)):
            return name
    return None


def _is_plain(one: Candidate) -> bool:
    """Return whether a candidate is determined by its parameters. Others, fitted to some of the
    features only, have a name of their own.
    """
    return one.name == describe(one.algorithm, one.parameters)


def _spans(path: Path, alpha: float) -> bool:
    return float(path.alphas.min()) * 0.999 <= alpha <= float(path.alphas.max()) * 1.001


def _name(one: Candidate) -> str:
    return describe(one.algorithm, {k: v for k, v in one.parameters.items() if k != "alpha"})


def _path(points: Mapping[float, Any]) -> Path:
    alphas = np.array(sorted(points, reverse=True))
    unknown = np.full(len(alphas), np.nan)
    normalizer = points[alphas[0]].model.normalizer
    return Path(
        alphas=alphas,
        coefs=np.array([points[alpha].model.coef for alpha in alphas.tolist()]),
        dual_gaps=unknown,
        objectives=unknown,
        n_iters=np.zeros(len(alphas), dtype=np.int64),
        normalizer=None if normalizer is None else normalizer_from_dict(normalizer),
    )
