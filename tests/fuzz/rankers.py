"""Every ranker with odd parameters on odd data."""

from __future__ import annotations

import random
import re
import warnings
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.harness import target

LEFT_ALONE = frozenset({"callback", "verbose", "warm_start", "copy_X"})
COUNTS = (0, 1, 2, 3, 30, -1, 2.5, "many", None, True)
SIZES = (0.0, 1e-300, 1e-12, 1e-3, 0.3, 1.0, 7.0, 1e6, 1e150, -1.0, float("nan"), float("inf"))
OTHERS = ("x", None, True, [], (1.0, 2.0))


PLAUSIBLE: dict[str, tuple[Any, ...]] = {
    "curves": (None, 1, 2, 5, "auto", "auto"),
    "monotone": (None, 1, -1, 0, {"0": 1}),
    "signs": (None, 1, -1, 0),
    "groups": (None, [0, 0], [0, 1, 0], [0, 0, 1, 1]),
    "penalty_factors": (None, [1.0, 0.0], [0.5, 2.0, 1.0], [1e-9, 1e9, 1.0]),
    "penalty": ("l1", "l2", "elastic-net", "groups"),
}
"""Values of parameters whose default says little of what they may be."""


@lru_cache(maxsize=1)
def _classes() -> list[Any]:
    from leanrank.rankers import RANKERS, KernelRankRLS, LinearRanker, get_ranker

    found = {get_ranker(name) for name in RANKERS} | {KernelRankRLS, LinearRanker}
    return sorted(found, key=lambda each: each.__name__)


@lru_cache
def _listed(ranker: Any) -> dict[str, list[str]]:
    """The words that the documentation of a ranker lists in braces, by parameter."""
    found = re.findall(r"^    (\w+) : \{([^}]*)\}", ranker.__doc__ or "", re.MULTILINE)
    return {name: re.findall(r'"([^"]+)"', listed) for name, listed in found}


@lru_cache(maxsize=1)
def _words() -> list[str]:
    """Every word that some ranker takes by default, or its documentation lists in braces."""
    words = {"x"}
    for each in _classes():
        words |= {value for value in each().get_params().values() if isinstance(value, str)}
        words.update(*_listed(each).values())
    return sorted(words)


def odd_parameters(rng: random.Random, ranker: Any) -> dict[str, Any]:
    """Draw values for up to three parameters, most of them values that they may have."""
    known = {k: v for k, v in ranker.get_params(deep=False).items() if k not in LEFT_ALONE}
    chosen = rng.sample(sorted(known), k=min(len(known), rng.choice((0, 1, 1, 2, 3))))
    return {name: _drawn(rng, type(ranker), name, known[name]) for name in chosen}


def _drawn(rng: random.Random, ranker: Any, name: str, default: Any) -> Any:
    plausible = rng.random() < 0.8
    listed = _listed(ranker).get(name)
    if plausible and name in PLAUSIBLE and not listed:
        return rng.choice(PLAUSIBLE[name])
    if plausible and (listed or default is None):
        return rng.choice(listed or (None,))
    if isinstance(default, bool):
        return rng.choice((True, False) if plausible else ("x", None))
    if isinstance(default, int):
        return rng.choice((1, 2, 3, 30) if plausible else COUNTS)
    if isinstance(default, float):
        return rng.choice(SIZES[:9] if plausible else SIZES)
    if isinstance(default, str):
        return default if plausible else rng.choice(_words())
    return rng.choice((*OTHERS, *COUNTS, *SIZES, *_words()))


def odd_data(rng: random.Random) -> tuple[Any, Any, Any]:
    """Draw a small data set: ties, constants, extremes, one-level queries, sparse, float32."""
    draw = np.random.default_rng(rng.getrandbits(64))
    n, p = int(draw.integers(2, 30)), int(draw.integers(1, 6))
    X = draw.normal(size=(n, p))
    kind = rng.randrange(10)
    if kind == 0:
        X *= 10.0 ** draw.integers(-150, 150, size=p)
    elif kind == 1:
        X[:, 0] += 10.0 ** draw.integers(3, 16)
    elif kind == 2:
        X[:, rng.randrange(p)] = rng.choice((0.0, 1.0, 1e300))
    elif kind == 3:
        X = np.round(X)
    elif kind == 4:
        X[draw.random(X.shape) < 0.2] = rng.choice((1e308, -1e308, 5e-324, 1e-160))
    elif kind == 5 and rng.random() < 0.5:
        X[draw.random(X.shape) < 0.3] = np.nan
    y = draw.integers(0, rng.choice((1, 2, 2, 3, 3, 5, 5)), n).astype(float)
    if rng.random() < 0.1:
        y *= rng.choice((1e-300, 1e200, -1.0, 0.5))
    qid = np.sort(draw.integers(0, max(1, n // rng.choice((2, 4, 30))), n))
    if rng.random() < 0.3:
        qid = draw.permutation(qid)
    matrix: Any = X
    if rng.random() < 0.2:
        with np.errstate(over="ignore"):
            matrix = X.astype(np.float32)
    if rng.random() < 0.2:
        from scipy.sparse import csr_array

        matrix = csr_array(matrix)
    return matrix, y, qid


def _load_kernels() -> None:
    """Fit every ranker once, so that no input is charged for compilation."""
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(24, 3)), rng.integers(0, 3, 24).astype(float), np.arange(24) // 6
    for each in _classes():
        each().fit(X, y, qid)
    _words()


@target("rankers", limit=60.0, share=6.0, prepare=_load_kernels)
def rankers(rng: random.Random, folder: Path) -> None:
    """A fit gives finite weights and scores, or one sentence, and it ends."""
    ranker = rng.choice(_classes())()
    ranker.set_params(**odd_parameters(rng, ranker))
    X, y, qid = odd_data(rng)
    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's own
        ranker.fit(X, y, qid)
    with np.errstate(all="ignore"):
        if hasattr(ranker, "coef_"):
            assert np.isfinite(ranker.coef_).all(), f"weights that are not finite: {ranker!r}"
        values = X.data if hasattr(X, "indptr") else X
        if values.size and np.nanmax(np.abs(values), initial=0.0) < 1e100:
            scores = ranker.predict(X, qid=qid) if _takes_qid(ranker) else ranker.predict(X)
            assert np.isfinite(scores).all(), f"scores that are not finite: {ranker!r}"
        if hasattr(ranker, "to_model"):
            ranker.to_model().save(folder / "out.json")


def _takes_qid(ranker: Any) -> bool:
    import inspect

    return "qid" in inspect.signature(ranker.predict).parameters


def _serve_once() -> None:
    from leanrank.online.ranker import DEFAULTS, OnlineRanker

    for method in DEFAULTS:
        ranker = OnlineRanker(method, n_features=2)
        ranker.observe(ranker.rank(np.eye(2)), [0, 1])


@target("online", limit=20.0, share=2.0, prepare=_serve_once)
def online(rng: random.Random, folder: Path) -> None:
    """A learner that serves odd documents stays finite or says so, and goes on from its file."""
    from leanrank.online.ranker import DEFAULTS, OnlineRanker

    method = rng.choice(sorted(DEFAULTS))
    known = DEFAULTS[method]
    chosen = rng.sample(sorted(known), k=min(len(known), rng.choice((0, 1, 1, 2, 3))))
    given = {name: _drawn_online(rng, name, known[name]) for name in chosen}
    X, _, _ = odd_data(rng)
    length = rng.choice((1, 2, 3, 10, 10, 100, *COUNTS))
    seed = rng.choice((0, 1, 2**32, -1, 2**64, "x", 1.5)) if rng.random() < 0.2 else 0
    ranker = OnlineRanker(
        method, n_features=X.shape[1], list_length=length, random_state=seed, **given
    )
    for _ in range(rng.choice((1, 2, 5))):
        rows = X[: rng.randrange(1, X.shape[0] + 1)]
        shown = ranker.rank(rows)
        assert len(set(shown.documents.tolist())) == len(shown.documents)
        assert (shown.propensities > 0).all(), f"a list that cannot be shown: {given}"
        assert (shown.propensities <= 1 + 1e-9).all(), f"a chance above 1: {given}"
        ranker.observe(shown, [rng.random() < 0.4 for _ in shown.documents])
        assert np.isfinite(ranker.coef_).all(), f"weights that are not finite: {method} {given}"
    ranker.save(folder / "out.state")
    again = OnlineRanker.load(folder / "out.state")
    for each in (ranker, again):
        each.observe(each.rank(X), np.arange(min(length, X.shape[0])) == 0)
    assert np.array_equal(ranker.coef_, again.coef_), f"goes on otherwise: {method} {given}"


def _drawn_online(rng: random.Random, name: str, default: Any) -> Any:
    plausible = rng.random() < 0.8
    if name == "solver":
        return rng.choice(("sgd", "ftrl") if plausible else OTHERS)
    if isinstance(default, int):
        return rng.choice((1, 2, 3, 30) if plausible else COUNTS)
    return rng.choice(SIZES[3:7] if plausible else SIZES)
