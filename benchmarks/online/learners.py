"""How fast learners serve and learn, beside the same in plain NumPy.

No package for online learning to rank is on PyPI (neither lerot, oltr, interleaving nor
multileaving), so the contestant is written here, from the papers, with NumPy's vectors.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

import numpy as np

from benchmarks.harness import Options, Table, race
from leanrank.data import QueryMinMaxScaler, RankingData, load_letor, make_ranking
from leanrank.online import ClickModel, OnlineRanker, simulate, user
from leanrank.online.simulation import Collection, make_collection

LENGTH = 10


def run(options: Options) -> list[Table]:
    n = 50 if options.quick else 1_000
    table = Table(
        f"Lists of ten served, clicked and learned from: {n:,} in NumPy, {30 * n:,} compiled",
        note="Navigational users. NumPy: written for this benchmark, since no public package "
        "installs; documents of a query are one matrix, pairs are index arrays.",
    )
    visitor = user("navigational")
    for name, data in _sets(options).items():
        pool = make_collection(data)
        for method, plain in (("spd", plain_spd), ("pdgd", plain_pdgd), ("dbgd", plain_dbgd)):
            times = race(
                {
                    "NumPy": partial(plain, data, visitor, n),
                    "compiled": partial(_compiled, method, data.n_features, pool, visitor, 30 * n),
                },
                repeat=min(options.repeat, 3),
            )
            slow, fast = times["NumPy"].median / n, times["compiled"].median / (30 * n)
            table.add(
                data=name, method=method, numpy_us=round(1e6 * slow), compiled_us=1e6 * fast,
                ratio=round(slow / fast),
            )  # fmt: skip
    return [table]


def _compiled(
    method: str, n_features: int, pool: Collection, visitor: ClickModel, n: int
) -> np.ndarray:
    ranker = OnlineRanker(method, n_features=n_features)
    simulate(ranker, pool, visitor, n)
    return ranker.coef_


def _sets(options: Options) -> dict[str, RankingData]:
    if options.data is None:
        return {"made-up": make_ranking(150, 20, n_features=46, n_levels=3, random_state=0)}
    files = {name: options.data / name / "Fold1/train.txt" for name in ("MQ2008", "OHSUMED")}
    return {name: QueryMinMaxScaler().fit_transform(load_letor(f)) for name, f in files.items()}


def _lists(
    data: RankingData, n: int, seed: int
) -> Iterator[tuple[np.random.Generator, np.ndarray, np.ndarray]]:
    """Draw queries: features and grades of their documents."""
    rng, X, y = np.random.default_rng(seed), np.asarray(data.X), data.y.astype(int)
    for _ in range(n):
        q = rng.integers(data.n_queries)
        rows = slice(data.query_ptr[q], data.query_ptr[q + 1])
        yield rng, X[rows], y[rows]


def _clicks(rng: np.random.Generator, user: ClickModel, grades: np.ndarray) -> np.ndarray:
    clicked = rng.random(len(grades)) < user.click[grades]
    stops = clicked & (rng.random(len(grades)) < user.stop[1, 0, grades])
    if stops.any():
        clicked[np.argmax(stops) + 1 :] = False
    return clicked


def plain_spd(data: RankingData, user: ClickModel, n: int, explore: float = 0.1) -> np.ndarray:
    w = np.zeros(data.n_features)
    for rng, X, y in _lists(data, n, 0):
        scores = X @ w
        left = list(np.lexsort((rng.random(len(X)), -scores)))
        shown = np.empty(min(LENGTH, len(X)), dtype=int)
        for slot in range(len(shown)):
            at = rng.integers(len(left)) if rng.random() < explore else 0
            shown[slot] = left.pop(at)
        clicked = _clicks(rng, user, y[shown])
        rank = np.arange(len(shown))
        pairs = clicked[:, None] & ~clicked & (rank <= rank[:, None] + 1)
        upper, lower = np.nonzero(pairs)
        if len(upper):
            upper, lower = shown[upper], shown[lower]
            wrong = scores[upper] - scores[lower] < 1.0
            w += 0.01 * (X[upper[wrong]] - X[lower[wrong]]).sum(axis=0)
    return w


def plain_pdgd(data: RankingData, user: ClickModel, n: int) -> np.ndarray:
    w = np.zeros(data.n_features)
    for rng, X, y in _lists(data, n, 0):
        scores = X @ w
        mass = np.exp(scores - scores.max())
        order = np.argsort(-(scores + rng.gumbel(size=len(X))))  # Plackett-Luce
        shown = order[:LENGTH]
        clicked = _clicks(rng, user, y[shown])
        if not clicked.any():
            continue
        last = np.flatnonzero(clicked)[-1]
        considered = np.arange(len(shown)) <= last + 1
        upper, lower = np.nonzero(clicked[:, None] & (considered & ~clicked))
        if not len(upper):
            continue
        here = _log_chance(mass, shown[None])
        swapped = np.tile(shown, (len(upper), 1))
        each = np.arange(len(upper))
        swapped[each, upper], swapped[each, lower] = shown[lower], shown[upper]
        share = 1.0 / (1.0 + np.exp(here - _log_chance(mass, swapped)))
        i, j = shown[upper], shown[lower]
        slope = share * mass[i] * mass[j] / (mass[i] + mass[j]) ** 2
        w += 0.1 * (slope[:, None] * (X[i] - X[j])).sum(axis=0)
    return w


def _log_chance(mass: np.ndarray, lists: np.ndarray) -> np.ndarray:
    taken = np.cumsum(mass[lists], axis=1) - mass[lists]
    return (np.log(mass[lists]) - np.log(mass.sum() - taken)).sum(axis=1)


def plain_dbgd(data: RankingData, user: ClickModel, n: int) -> np.ndarray:
    w = np.zeros(data.n_features)
    for rng, X, y in _lists(data, n, 0):
        direction = rng.normal(size=len(w))
        direction /= np.linalg.norm(direction)
        mass = np.empty((2, len(X)))
        for ranker, each in enumerate((w, w + direction)):
            order = np.lexsort((rng.random(len(X)), -(X @ each)))
            mass[ranker, order] = np.arange(1.0, len(X) + 1) ** -3.0
        shown = np.empty(min(LENGTH, len(X)), dtype=int)
        shares = np.empty((2, len(shown)))
        for slot in range(len(shown)):
            chance = mass / mass.sum(axis=1, keepdims=True)
            shown[slot] = np.searchsorted(np.cumsum(chance[rng.integers(2)]), rng.random())
            shares[:, slot] = chance[:, shown[slot]]
            mass[:, shown[slot]] = 0.0
        clicked = _clicks(rng, user, y[shown])
        credit = (shares / shares.sum(axis=0))[:, clicked].sum(axis=1)
        if credit[1] > credit[0]:
            w += 0.01 * direction
    return w
