"""Steps a second, and the time until a ranking is nearly as good as the batch optimum's.

Two objectives, each with its own batch optimum as the target: every pair counts the same, or every
query does. Learners that are given pairs get the weights of the second as importance weights.
MinBatSRank takes whole queries, so it is in the second only.

Everybody gets the same queries and one core. SPD and MinBatSRank read documents; scikit-learn and
Vowpal Wabbit read differences of pairs that were built, shuffled and (Vowpal Wabbit) written to its
binary cache before their clock starts. Each learner gets four settings, of which the one with the
best validation MAP after the largest budget is timed. The target is 99 % of the validation MAP of
RankSVM's optimum, itself the best of four strengths. A budget reaches the target when the mean over
the seeds does. Seconds are those of the processor, all threads of the learner together.
"""

from __future__ import annotations

import os
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, show_seconds
from leanrank.data import load_letor, make_ranking
from leanrank.data.ranking_data import RankingData
from leanrank.metrics import evaluate

SEEDS = (0, 1, 2)
PAIR_STEPS = (300, 1_000, 3_000, 10_000, 30_000, 100_000, 300_000)
PASSES = (1, 2, 4, 8, 16, 32)
OBJECTIVES = {"pair": "pairs", "query": "queries"}
Run = Callable[[dict[str, Any], int, int], tuple[np.ndarray, float]]


@dataclass(frozen=True)
class Learner:
    """How a contestant learns: settings to choose from, budgets, and what a budget counts."""

    name: str
    settings: list[dict[str, Any]]
    budgets: tuple[int, ...]
    unit: str
    per_budget: float  # units of speed in one unit of the budget
    run: Run  # (setting, budget, seed) -> weights, seconds
    building: float = 0.0


@dataclass(frozen=True)
class Pairs:
    """Differences x_high − x_low, and what each counts (1 on average)."""

    X: np.ndarray
    weight: np.ndarray


def run(options: Options) -> list[Table]:
    warnings.simplefilter("ignore")
    train, vali, test, name = _sets(options)
    with _one_core(), tempfile.TemporaryDirectory() as folder:
        tables = []
        for objective, over in OBJECTIVES.items():
            start = time.process_time()
            pairs = build_pairs(train, over)
            built = time.process_time() - start
            learners = [
                _spd(train, over),
                *([_minbatsrank(train)] if over == "queries" else []),
                _sgd(pairs, built),
                *_vowpal_wabbit(pairs, Path(folder), built),
            ]
            title = f"{name}, every {objective} counts the same"
            optimum = _batch_optimum(train, vali, "query" if over == "queries" else "term")
            tables.append(_compare(title, learners, optimum, (train, vali, test), pairs, options))
        return tables


@contextmanager
def _one_core() -> Iterator[None]:
    """Keep to one core: Vowpal Wabbit reads in a thread beside the one that learns."""
    if not hasattr(os, "sched_setaffinity"):
        yield
        return
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(cores)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, cores)


def _compare(
    title: str,
    learners: list[Learner],
    found: tuple[np.ndarray, float],
    sets: tuple[RankingData, RankingData, RankingData],
    pairs: Pairs,
    options: Options,
) -> Table:
    train, vali, test = sets
    optimum, seconds = found
    target = 0.99 * _map(vali, optimum)
    table = Table(
        f"{title}: {len(train):,} documents, {train.n_features} features, {len(pairs.X):,} pairs"
    )
    table.add(
        learner="RankSVM, batch optimum",
        **{"vali MAP": _map(vali, optimum), "test MAP": _map(test, optimum)},
        **{"time to 99 %": f"{show_seconds(seconds)} (all of it)"},
    )
    for learner in learners:
        budgets = learner.budgets[:3] if options.quick else learner.budgets
        table.add(**_row(learner, budgets, vali, test, target))
    table.note = (
        f"Target: validation MAP {target:.4f}. Speed is that of the largest budget. Means over "
        f"{len(SEEDS)} seeds. Building the pairs, which only the last learners need, is not in "
        "their time: it stands beside it."
    )
    return table


def _row(
    learner: Learner, budgets: tuple[int, ...], vali: RankingData, test: RankingData, target: float
) -> dict[str, Any]:
    learner.run(learner.settings[0], budgets[0], 0)  # compiles, and warms the caches
    largest = budgets[-1]
    ends = [(s, [learner.run(s, largest, seed) for seed in SEEDS]) for s in learner.settings]
    setting, runs = max(ends, key=lambda end: np.mean([_map(vali, w) for w, _ in end[1]]))
    speed = largest * learner.per_budget / float(np.median([seconds for _, seconds in runs]))
    reached = "not reached"
    for budget in budgets:
        tries = [learner.run(setting, budget, seed) for seed in SEEDS]
        if np.mean([_map(vali, w) for w, _ in tries]) >= target:
            seconds = float(np.median([seconds for _, seconds in tries]))
            reached = f"{show_seconds(seconds)} ({budget:,} {learner.unit})"
            break
    return {
        "learner": learner.name,
        "speed": f"{speed:,.0f} {'documents' if learner.unit == 'passes' else 'pair steps'}/s",
        "vali MAP": float(np.mean([_map(vali, w) for w, _ in runs])),
        "test MAP": float(np.mean([_map(test, w) for w, _ in runs])),
        "features": f"{np.mean([np.count_nonzero(w) for w, _ in runs]):.0f}",
        "time to 99 %": reached,
        "building pairs": show_seconds(learner.building) if learner.building else "none",
        "setting": ", ".join(f"{k}={v}" for k, v in setting.items()),
    }


def _spd(train: RankingData, over: str) -> Learner:
    from leanrank.rankers import SPD

    def learn(setting: dict[str, Any], budget: int, seed: int) -> tuple[np.ndarray, float]:
        ranker = SPD(n_steps=budget, random_state=seed, sampling=over, **setting)
        return _timed(lambda: ranker.fit(train).coef_)

    settings = [{"alpha": alpha} for alpha in (1e-4, 1e-3, 1e-2, 1e-1)]
    return Learner("leanrank SPD (hinge)", settings, PAIR_STEPS, "steps", 1, learn)


def _minbatsrank(train: RankingData) -> Learner:
    from leanrank.rankers import MinBatSRank

    def learn(setting: dict[str, Any], budget: int, seed: int) -> tuple[np.ndarray, float]:
        ranker = MinBatSRank(epochs=budget, random_state=seed, l1="per_step", **setting)
        return _timed(lambda: ranker.fit(train).coef_)

    settings = [{"alpha": a, "eta0": g} for a in (1e-3, 1e-2) for g in (0.1, 1.0)]
    return Learner("leanrank MinBatSRank", settings, PASSES, "passes", len(train), learn)


def _sgd(pairs: Pairs, built: float) -> Learner:
    from sklearn.linear_model import SGDClassifier

    def learn(setting: dict[str, Any], budget: int, seed: int) -> tuple[np.ndarray, float]:
        model = SGDClassifier(fit_intercept=False, random_state=seed, **setting)
        X, y, weight = _signed(pairs, seed)
        whole, part = divmod(budget, len(X))

        def steps() -> np.ndarray:
            for _ in range(whole):
                model.partial_fit(X, y, classes=[-1, 1], sample_weight=weight)
            if part:
                first = slice(part)
                model.partial_fit(X[first], y[first], classes=[-1, 1], sample_weight=weight[first])
            return model.coef_[0]

        return _timed(steps)

    settings = [{"loss": "hinge", "alpha": alpha} for alpha in (1e-4, 1e-3, 1e-2, 1e-1)]
    return Learner("scikit-learn SGDClassifier", settings, PAIR_STEPS, "steps", 1, learn, built)


def _vowpal_wabbit(pairs: Pairs, folder: Path, built: float) -> list[Learner]:
    try:
        import vowpalwabbit
    except ImportError as error:
        print(f"Vowpal Wabbit is left out: {error}", flush=True)
        return []
    n_features = pairs.X.shape[1]
    folder = Path(tempfile.mkdtemp(dir=folder))
    caches: dict[tuple[int, int], Path] = {}

    def cache_of(seed: int, n: int) -> Path:
        """Have the examples in Vowpal Wabbit's own binary form, which it reads fastest."""
        if (seed, n) not in caches:
            X, y, weight = (values[:n] for values in _signed(pairs, seed))
            text, cache = folder / "pairs.vw", folder / f"{seed}-{n}.cache"
            with text.open("w") as file:
                rows = zip(X.tolist(), y.tolist(), weight.tolist(), strict=True)
                for row, label, count in rows:
                    cells = " ".join(f"{j}:{v:.7g}" for j, v in enumerate(row) if v)
                    file.write(f"{label} {count:.7g} | {cells}\n")
            made = f"--quiet --noconstant -b 10 -d {text} --cache_file {cache} -k"
            vowpalwabbit.Workspace(made).finish()
            caches[seed, n] = cache
        return caches[seed, n]

    def learn(setting: dict[str, Any], budget: int, seed: int) -> tuple[np.ndarray, float]:
        n = min(budget, len(pairs.X))
        passes = max(1, round(budget / n))
        words = " ".join(f"--{key} {value}" for key, value in setting.items())
        command = (
            f"--quiet --noconstant -b 10 --ftrl --loss_function hinge {words} --holdout_off "
            f"--passes {passes} --cache_file {cache_of(seed, n)}"
        )
        start = time.process_time()
        model = vowpalwabbit.Workspace(command)
        seconds = time.process_time() - start
        # Features that are written as numbers keep them as their place.
        weights = np.array([model.get_weight(j) for j in range(n_features)])
        model.finish()
        return weights, seconds * budget / (n * passes)

    settings = [
        {"ftrl_alpha": alpha, "ftrl_beta": 1.0, "l1": l1} for alpha in (0.05, 0.5) for l1 in (0, 1)
    ]
    name = f"Vowpal Wabbit {vowpalwabbit.__version__} --ftrl"
    return [Learner(name, settings, PAIR_STEPS, "steps", 1, learn, built)]


def build_pairs(data: RankingData, over: str) -> Pairs:
    """List the pairs of different levels in a query, weighted so that pairs or queries are even."""
    blocks, counts = [], []
    for begin, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        y = data.y[begin:end]
        high, low = np.nonzero(y[:, None] > y[None, :])
        blocks.append(data.X[begin + high] - data.X[begin + low])
        counts.append(np.full(len(high), len(high)))
    weight = 1.0 / np.concatenate(counts) if over == "queries" else np.ones(sum(map(len, blocks)))
    return Pairs(np.concatenate(blocks), weight / weight.mean())


def _signed(pairs: Pairs, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Shuffle the pairs and turn half of them round, so that both classes are there."""
    rng = np.random.default_rng(seed)
    order = rng.permutation(len(pairs.X))
    y = rng.choice([-1, 1], size=len(order))
    return np.ascontiguousarray(pairs.X[order] * y[:, None]), y, pairs.weight[order]


def _batch_optimum(
    train: RankingData, vali: RankingData, normalize: str
) -> tuple[np.ndarray, float]:
    from leanrank.rankers import RankSVM

    RankSVM().fit(train)  # compiles
    runs = [
        _timed(lambda alpha=alpha: RankSVM(alpha=alpha, normalize=normalize).fit(train).coef_)
        for alpha in (1e-4, 1e-3, 1e-2, 1e-1)
    ]
    return max(runs, key=lambda found: _map(vali, found[0]))


def _map(data: RankingData, weights: np.ndarray) -> float:
    scores = np.asarray(data.X @ weights, dtype=np.float64)
    return float(evaluate(data, scores, measures=["map"], convention="letor4").means["map"])


def _timed(function: Callable[[], np.ndarray]) -> tuple[np.ndarray, float]:
    start = time.process_time()
    result = function()
    return result, time.process_time() - start


def _sets(options: Options) -> tuple[RankingData, RankingData, RankingData, str]:
    folder = None if options.data is None else options.data / "MQ2008" / "Fold1"
    if folder is not None and folder.is_dir():
        parts = [load_letor(folder / f"{part}.txt") for part in ("train", "vali", "test")]
        return parts[0], parts[1], parts[2], "MQ2008, fold 1"
    print("MQ2008 is not there (give --data): made-up queries of its shape instead", flush=True)
    data = make_ranking(780, (5, 40), 46, n_informative=15, random_state=0)
    queries = data.queries
    return queries[:470], queries[470:620], queries[620:], "made up, shape of MQ2008"
