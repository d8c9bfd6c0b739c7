"""Expected gains of documents beside the majority vote of made-up judges."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Options, Table
from leanrank.service.judgments import Ratings, dawid_skene

SKILLS = (0.9, 0.7, 0.45, 0.4, 0.4)


def judges(options: Options) -> Table:
    """Squared error of the gains of documents that no trusted judgment covers."""
    table = Table("Made-up judges: mean squared error of gains, 300 documents, 5 judges")
    kinds = {
        "independent, as assumed": 0.0,
        "half of the errors shared": 0.5,
        "all errors of three shared": 1.0,
    }
    for name, shared in kinds.items():
        errors: dict[str, list[float]] = {}
        for seed in range(3 if options.quick else 40):
            truth, ratings = made_up(seed, shared)
            gain = np.exp2(truth) - 1.0
            trusted = {ratings.items[i]: float(truth[i]) for i in range(60)}
            counts = ratings.counts()
            found = {
                "majority": np.exp2(ratings.levels[counts.argmax(axis=1)]) - 1.0,
                "mean of gains": (counts @ (np.exp2(ratings.levels) - 1.0)) / counts.sum(axis=1),
                "Dawid–Skene": dawid_skene(ratings).gains(),
                "with 60 trusted": dawid_skene(ratings, trusted=trusted).gains(),
            }
            for method, values in found.items():
                errors.setdefault(method, []).append(float(np.mean((values - gain)[60:] ** 2)))
        table.add(errors=name, **{method: np.mean(each) for method, each in errors.items()})
    return table


def made_up(seed: int, shared: float) -> tuple[np.ndarray, Ratings]:
    """Judges who are right with a given chance; the last three share a part of their errors."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(3, 300, p=[0.6, 0.3, 0.1])
    rows = []
    for i, level in enumerate(truth):
        luck, said = rng.random(), rng.integers(3)
        for j, skill in enumerate(SKILLS):
            same = j >= 2 and rng.random() < shared
            right = (luck if same else rng.random()) < skill
            wrong = said if same else rng.integers(3)
            rows.append((f"q{i // 10}", f"d{i}", f"j{j}", float(level if right else wrong)))
    return truth, Ratings.of(rows)
