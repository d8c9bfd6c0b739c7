"""Our default and the papers' systems beside trees, on every public set at hand.

YANDEX, MQ2008 and OHSUMED, and where ``--data DIR`` holds them MQ2007, MSLR-WEB10K, MSLR-WEB30K,
Istella-S and Yahoo, unpacked as they are published. Everyone learns from the training and
validation parts together and is judged on the test part, standard convention. Those who have
something to choose choose it on a fifth of the queries to learn from; trees are fitted again to
all of them.
``--only MQ2008`` is one set, ``--repeat 1`` one fold, ``--reports DIR`` keeps results.
"""

from __future__ import annotations

import pickle
import tempfile
import time
from collections.abc import Callable, Iterator
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.flagship.quality import LIBRARIES, MEASURES, PUBLIC, folds
from benchmarks.flagship.trees import Trees, tuned
from benchmarks.harness import Kept, Options, Table
from leanrank import LeanRanker, load_letor
from leanrank.data.ranking_data import RankingData
from leanrank.metrics import compare_values, evaluate
from leanrank.model import Model
from leanrank.selection.engine import Split
from leanrank.selection.systems import fit_system

LARGE = {"MQ2007": 46, "MSLR-WEB10K": 136, "MSLR-WEB30K": 136, "Istella-S": 220, "Yahoo": 700}
"""Sets that are read where they are present, and their numbers of features."""
PAPERS = {
    "domination": "Domination Rank",
    "greedyrankrls": "Greedy RankRLS",
    "minbatsrank": "MinBatSRank",
    "lcra": "LCRA",
    "ranksvm": "RankSVM",
    "adarank": "AdaRank",
    "rankboost": "RankBoost",
    "bestfeature": "best single feature",
}
OURS = "LeanRanker()"
Entry = dict[str, Any]
"""Measures by query, features, bytes, seconds to fit and to score a thousand documents."""


def run(options: Options) -> list[Table]:
    if options.data is None:
        raise SystemExit("the leaderboard is about public sets: give --data DIR")
    names = [name for name in (*PUBLIC, *LARGE) if (options.data / name).is_dir()]
    if options.only is not None:
        names = [name for name in names if name == options.only]
    if not names:
        raise SystemExit(f"none of {', '.join((*PUBLIC, *LARGE))} is in {options.data}")
    with tempfile.TemporaryDirectory() as scratch:
        kept = Kept((options.reports or Path(scratch)) / "leaderboard.jsonl")
        return [_table(name, _entries(name, kept, options)) for name in names]


def _entries(name: str, kept: Kept, options: Options) -> dict[str, list[Entry]]:
    found: dict[str, list[Entry]] = {}
    for number, (train, test) in enumerate(_divisions(name, options), 1):
        for who, fit in contestants().items():
            entry = kept.get((name, number, who), partial(_entry, fit, train, test))
            found.setdefault(who, []).append(entry)
            mean = np.nanmean(entry["values"]["ndcg@10"])
            print(f"{name} {number}, {who}: NDCG@10 {mean:.4f}, {entry['fit']:.1f} s", flush=True)
    return found


def _divisions(name: str, options: Options) -> Iterator[tuple[RankingData, RankingData]]:
    if name in PUBLIC:
        yield from folds(name, options)
        return
    assert options.data is not None
    parts = sorted((options.data / name).glob("Fold*")) or [options.data / name]
    for folder in parts[: 1 if options.quick else options.repeat]:
        train, vali, test = (
            _read(_file(folder, part), LARGE[name]) for part in ("train", "vali", "test")
        )
        X = np.concatenate([train.X, vali.X])
        qid = np.concatenate([train.qid.astype(str), np.char.add("v", vali.qid.astype(str))])
        yield RankingData(X, np.concatenate([train.y, vali.y]), qid), test


def _read(file: Path, n_features: int) -> RankingData:
    """Read a part; the largest double, by which Istella says that a value is missing, becomes 0."""
    data = load_letor(file, n_features=n_features, storage="dense")
    X = np.array(data.X)
    X[X == np.finfo(X.dtype).max] = 0.0
    return RankingData(X, data.y, data.qid)


def _file(folder: Path, part: str) -> Path:
    """Find a part by its published name, such as train.txt, sample/vali.txt or set1.valid.txt."""
    found = (file for file in sorted(folder.rglob("*.txt")) if f".{part}" in f".{file.name}")
    file = next(found, None)
    if file is None:
        raise SystemExit(f"{folder} has no file {part}.txt")
    return file


def contestants() -> dict[str, Callable[[RankingData], Any]]:
    """Return who takes part, each a function from data to a fitted model."""
    found: dict[str, Callable[[RankingData], Any]] = {
        OURS: lambda train: LeanRanker().fit(train).model_,
        "LeanRanker(max_features=10)": lambda train: LeanRanker(max_features=10).fit(train).model_,
    }
    for library, package in LIBRARIES.items():
        if find_spec(package) is not None:
            found[f"{library}, tuned"] = partial(lambda of, train: tuned(of, train)[1], library)
    return found | {title: partial(_paper, name) for name, title in PAPERS.items()}


def _paper(name: str, train: RankingData) -> Model:
    fold = np.random.default_rng(1).permutation(train.n_queries) % 5
    return fit_system(name, Split(train.queries[fold != 0], train.queries[fold == 0])).model


def _entry(fit: Callable[[RankingData], Any], train: RankingData, test: RankingData) -> Entry:
    started = time.process_time()
    model = fit(train)
    seconds = time.process_time() - started
    values = evaluate(test, model.predict(test), measures=list(MEASURES)).per_query
    some = test.queries[: int(np.searchsorted(test.query_ptr, 1000))]
    times = []
    for _ in range(5):
        started = time.process_time()
        for _ in range(10):
            model.predict(some)
        times.append((time.process_time() - started) / 10)
    used = model.n_nonzero if isinstance(model, Model) else getattr(model, "n_features_", 1)
    return {
        "values": {measure: values[measure].tolist() for measure in MEASURES},
        "features": int(used),
        "bytes": _bytes(model),
        "fit": seconds,
        "score": 1000 * min(times) / len(some),
    }


def _bytes(model: Any) -> int:
    """Return how large a model is on disk, in the file format of its own library."""
    if not isinstance(model, (Model, Trees)):
        return len(pickle.dumps(model))
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "model.json"
        if isinstance(model, Model):
            model.save(file)
        elif hasattr(model.ranker, "booster_"):
            model.ranker.booster_.save_model(str(file))
        else:
            model.ranker.save_model(str(file))
        return file.stat().st_size


def _table(name: str, found: dict[str, list[Entry]]) -> Table:
    def joined(who: str, measure: str) -> Any:
        return np.concatenate([entry["values"][measure] for entry in found[who]])

    n_folds = len(found[OURS])
    table = Table(f"{name}: {len(joined(OURS, 'map'))} queries of {n_folds} folds")
    for who, entries in found.items():
        row: dict[str, Any] = {"system": who}
        for measure in MEASURES:
            row[measure.upper()] = f"{np.nanmean(joined(who, measure)):.4f}"
        if who == OURS:
            row |= {"NDCG@10 − ours": "", "p": ""}
        else:
            test = compare_values(joined(OURS, "ndcg@10"), joined(who, "ndcg@10"))
            error = (test.interval[1] - test.difference) / 1.96
            row["NDCG@10 − ours"] = f"{test.difference:+.4f} ± {error:.4f}"
            row["p"] = f"{test.p_randomization:.4f}"
        row["features"] = f"{np.mean([entry['features'] for entry in entries]):.1f}"
        row["kB on disk"] = f"{np.mean([entry['bytes'] for entry in entries]) / 1000:.1f}"
        row["s to fit"] = f"{np.mean([entry['fit'] for entry in entries]):.2f}"
        row["ms per 1,000"] = f"{1000 * np.mean([entry['score'] for entry in entries]):.3f}"
        table.add(**row)
    table.note = (
        "Difference to LeanRanker() ± standard error over queries; p by Fisher's paired "
        "randomisation test, not corrected for the number of systems. Seconds are processor time, "
        "choosing included: LeanRanker chooses inside its fit, trees have twelve settings with "
        "early stopping, the papers' systems their paths and grids. Trees on one thread. "
        "Milliseconds of processor time to score a thousand documents."
    )
    return table
