"""Learned weights of runs beside reciprocal rank fusion, on runs made from columns of MQ2008.

The list of features that circulates for LETOR 4.0 puts the whole document's BM25 in column 25 and
its language models in 30, 35 and 40. The data say otherwise: columns 25 to 28 are zero wherever the
anchor text holds no query term, 29 to 32 wherever the title holds none, 33 to 36 likewise for the
URL, so that 21 to 40 go by stream, and the whole document is 37 to 40. Both readings are measured.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from benchmarks.harness import Options, Table
from leanrank import fuse
from leanrank.data import RankingData, load_letor
from leanrank.metrics import Qrels, Run, compare_values, evaluate_run

NAMES = ("BM25", "LMIR.ABS", "LMIR.DIR", "LMIR.JM", "PageRank")
COLUMNS = {"whole document": (37, 38, 39, 40, 41), "as listed": (25, 30, 35, 40, 41)}
MEASURES = ("ndcg@10", "map")
LOSSES = ("squared-hinge", "logistic", "domination", "listnet", "exponential")


def run(options: Options) -> list[Table]:
    if options.data is None:
        raise SystemExit("benchmarks fuse needs MQ2008: give --data or set LEANRANK_DATA")
    folds = range(1, 2 if options.quick else 6)
    parts = {"folds": _systems, "losses": _losses, "curve": _learning_curve}
    chosen = [options.only] if options.only else list(parts)[: 2 if options.quick else 3]
    return [table for part in chosen for table in parts[part](options, folds)]


def _systems(options: Options, folds: Sequence[int]) -> list[Table]:
    return [_five_folds(options, title, columns, folds) for title, columns in COLUMNS.items()]


def _losses(options: Options, folds: Sequence[int]) -> list[Table]:
    table = Table("Loss of the learned weights, whole document, on the test parts")
    for loss in LOSSES[:1] if options.quick else LOSSES:
        found = _test_values(options, COLUMNS["whole document"], folds, loss)
        means = {m: float(np.nanmean(found[m]["learned weights"])) for m in MEASURES}
        table.add(loss=loss, **means)
    return [table]


def _five_folds(
    options: Options, title: str, columns: Sequence[int], folds: Sequence[int]
) -> Table:
    table = Table(
        f"MQ2008, {title} (columns {', '.join(map(str, columns))}): learned on train and vali by "
        "ndcg@10, tested once on test",
        note="difference: learned weights less the system of the row, paired 95% interval.",
    )
    found = _test_values(options, columns, folds, LOSSES[0])
    for system in found[MEASURES[0]]:
        row: dict[str, object] = {"system": system}
        for measure, values in found.items():
            row[measure] = f"{np.nanmean(values[system]):.4f}"
            if system == "learned weights":
                row[f"difference in {measure}"] = ""
                continue
            one = compare_values(values[system], values["learned weights"], measure=measure)
            low, high = one.interval
            row[f"difference in {measure}"] = f"{one.difference:+.4f} ({low:+.4f} to {high:+.4f})"
        table.add(**row)
    return table


def _test_values(
    options: Options, columns: Sequence[int], folds: Sequence[int], loss: str
) -> dict[str, dict[str, np.ndarray]]:
    """Return each measure of every system on the test queries of the folds."""
    found: dict[str, dict[str, list[np.ndarray]]] = {measure: {} for measure in MEASURES}
    for fold in folds:
        train = [_load(options, fold, part) for part in ("train", "vali")]
        test = [_load(options, fold, "test")]
        learned = fuse(_runs(train, columns), _qrels(train), loss=loss, curve=False)
        runs, qrels = _runs(test, columns), _qrels(test)
        systems = {"learned weights": learned.apply(runs), **fuse_without_learning(runs)}
        systems |= {f"{name} alone": one for name, one in runs.items()}
        for name, one in systems.items():
            values = evaluate_run(qrels, one, MEASURES, convention="standard").per_query
            for measure in MEASURES:
                found[measure].setdefault(name, []).append(values[measure])
    return {m: {name: np.concatenate(v) for name, v in of.items()} for m, of in found.items()}


def fuse_without_learning(runs: dict[str, Run]) -> dict[str, Run]:
    from leanrank.data.trec import RunPool

    pool = RunPool.build(runs)
    data = pool.data
    scores = {
        "reciprocal rank fusion": pool.scaled("query-reciprocal-rank", 60).sum(axis=1),
        "equal weights": pool.scaled("query-minmax").sum(axis=1),
    }
    return {name: Run(data.qid, data.doc_ids, of) for name, of in scores.items()}


def _learning_curve(options: Options, folds: Sequence[int]) -> list[Table]:
    parts = [_load(options, fold, "test") for fold in folds]
    found = fuse(_runs(parts, COLUMNS["whole document"]), _qrels(parts))
    table = Table(
        "Learning curve: all test parts as one set, nested cross-validation, ndcg@10",
        note=f"{found.curve_sentence()} {found.verdict()}",
    )
    for point in found.curve:
        low, high = point.against_all.interval
        table.add(
            queries=point.n_queries,
            mean=f"{point.mean:.4f}",
            difference=f"{point.against_all.difference:+.4f} ({low:+.4f} to {high:+.4f})",
        )
    return [table]


def _load(options: Options, fold: int, part: str) -> RankingData:
    assert options.data is not None
    return load_letor(options.data / "MQ2008" / f"Fold{fold}" / f"{part}.txt")


def _runs(parts: Sequence[RankingData], columns: Sequence[int]) -> dict[str, Run]:
    qid = np.concatenate([data.qid for data in parts])
    documents = np.concatenate([data.doc_ids for data in parts])
    return {
        name: Run(qid, documents, np.concatenate([data.X[:, column - 1] for data in parts]), name)
        for name, column in zip(NAMES, columns, strict=True)
    }


def _qrels(parts: Sequence[RankingData]) -> Qrels:
    return Qrels(*(np.concatenate([getattr(d, f) for d in parts]) for f in ("qid", "doc_ids", "y")))
