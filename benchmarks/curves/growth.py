"""A set whose curves are known: what is found of them as documents grow in number."""

from __future__ import annotations

import tempfile
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Kept, Options, Table, show_seconds
from benchmarks.pairwise.clock import now
from leanrank.data.ranking_data import RankingData
from leanrank.rankers import DominationRanker
from leanrank.selection.engine import Split
from leanrank.selection.systems import fit_lightgbm

NAMES = ("saturating", "threshold", "peak", "missing", "line", *(f"noise{k}" for k in range(1, 16)))
PER_QUERY = 20
SIZES = (1_000, 10_000, 100_000, 1_000_000)
FOR_PICTURE = 20_000
TREES = {"learning_rate": (0.1,), "leaves": (8, 31), "least": (20,)}


def true_curves() -> dict[str, Any]:
    """Return the curves of the made-up set; what is missing adds 0.8."""
    return {
        "saturating": lambda x: 2.0 * np.minimum(x, 1.0),
        "threshold": lambda x: 1.0 * (x > 0.5),
        "peak": lambda x: -np.abs(x),
        "missing": lambda x: np.where(np.isnan(x), 0.8, 0.5 * np.nan_to_num(x)),
        "line": lambda x: 0.5 * x,
    }


def make_bent(n: int, seed: int) -> RankingData:
    """Draw documents, a quarter of one feature missing, and labels from 0 to 4 by noisy scores."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(NAMES)))
    X[:, 0] = rng.exponential(size=n)
    X[rng.random(n) < 0.25, 3] = np.nan
    scores = sum(curve(X[:, at]) for at, curve in enumerate(true_curves().values()))
    noisy = scores + 0.5 * rng.normal(size=n)
    y = np.digitize(noisy, [0.9, 1.6, 2.2, 2.8])
    return RankingData(X, y, np.arange(n) // PER_QUERY, feature_names=NAMES)


def growth(options: Options) -> list[Table]:
    sizes = SIZES[:2] if options.quick else SIZES
    test = make_bent(40_000, seed=9)
    table = Table("NDCG@10 on a made-up set with known curves, as training documents grow")
    with tempfile.TemporaryDirectory() as scratch:
        kept = Kept((options.reports or Path(scratch)) / "growth.jsonl")
        for n in sizes:
            table.add(**kept.get((n,), partial(_one_size, n, test)))
    table.add(documents="the truth", curves=f"{_ndcg(test, _true_scores(test)):.4f}")
    table.note = (
        "strength of lines and curves (15) and leaves of LightGBM (2 settings, up to 500 trees) "
        "chosen on validation data of a quarter of the size; lines get the mean for what is "
        "missing; processor time of the whole choice"
    )
    if options.reports is not None:
        train, vali = make_bent(FOR_PICTURE, seed=1), make_bent(FOR_PICTURE // 4, seed=2)
        _picture(_fitted(train, vali, curves="auto"), options.reports)
    return [table]


def _one_size(n: int, test: RankingData) -> dict[str, Any]:
    train, vali = make_bent(n, seed=1), make_bent(max(1_000, n // 4), seed=2)
    row: dict[str, Any] = {"documents": f"{n:,}"}
    for name, settings in (("lines", {}), ("curves", {"curves": "auto"})):
        parts = [part if settings else _filled(part) for part in (train, vali, test)]
        started = now()
        ranker = _fitted(parts[0], parts[1], **settings)
        row[name] = f"{ranker.score(parts[2]):.4f}"
        row[f"{name}, features"] = ranker.n_features_
        row[f"{name}, time"] = show_seconds(now() - started)
    started = now()
    chosen = fit_lightgbm(Split(train, vali, "ndcg@10"), TREES)
    row["LightGBM"] = f"{_ndcg(test, chosen.model.predict(test)):.4f}"
    row["LightGBM, time"] = show_seconds(now() - started)
    return row


def _fitted(train: RankingData, vali: RankingData, **settings: Any) -> DominationRanker:
    """Fit with the strength that validation data prefer."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        path = DominationRanker(tol=1e-5, **settings).path(train, n_alphas=15, validation=vali)
        best = float(path.alphas[path.best()])
        return DominationRanker(alpha=best, tol=1e-5, **settings).fit(train)


def _filled(data: RankingData) -> RankingData:
    X = np.where(np.isnan(data.X), 0.0, data.X)  # the mean of the values that are there
    return data.replace(X=X)


def _ndcg(data: RankingData, scores: Any) -> float:
    from leanrank.metrics import evaluate

    return float(evaluate(data, scores, measures=["ndcg@10"]).means["ndcg@10"])


def _true_scores(data: RankingData) -> Any:
    X = np.asarray(data.X)
    return sum(curve(X[:, at]) for at, curve in enumerate(true_curves().values()))


def _picture(ranker: Any, folder: Any) -> None:
    """Draw the learned curves over the true ones, both less their means; a point is for missing."""
    import altair as alt

    rows, gap, scale = [], np.array([np.nan]), _fit_scale(ranker)
    for name, true in true_curves().items():
        x = np.linspace(0.0, 4.0, 161) if name == "saturating" else np.linspace(-3.0, 3.0, 241)
        learned = ranker.curves_[name]
        for kind, curve, unit in (("truth", true, 1.0), ("learned", learned, scale)):
            values = unit * curve(x)
            rows += [
                {"feature": name, "curve": kind, "x": float(a), "adds": float(b), "gap": False}
                for a, b in zip(x, values - values.mean(), strict=True)
            ]
            if name == "missing":
                adds = float(unit * curve(gap)[0] - values.mean())
                rows.append({"feature": name, "curve": kind, "x": 3.5, "adds": adds, "gap": True})
    of = alt.Color("curve:N", title=None, legend=alt.Legend(orient="top"))
    base = alt.Chart().encode(x=alt.X("x:Q", title=None), y="adds:Q", color=of)
    dash = alt.StrokeDash("curve:N", legend=None)
    lines = base.transform_filter("!datum.gap").mark_line().encode(strokeDash=dash)
    points = base.transform_filter("datum.gap").mark_point(shape="diamond", filled=True, size=60)
    chart = alt.layer(lines, points, data=alt.InlineData(rows)).properties(width=170, height=150)
    folder.mkdir(parents=True, exist_ok=True)
    for ending in ("svg", "png"):
        chart.facet(alt.Facet("feature:N", title=None), columns=3).save(
            str(folder / f"curves.{ending}")
        )


def _fit_scale(ranker: Any) -> float:
    """Return what makes learned scores most like true ones: a ranking knows no unit."""
    data = make_bent(20_000, seed=5)
    learned, true = ranker.predict(data), _true_scores(data)
    return float(np.cov(learned, true)[0, 1] / np.var(learned))
