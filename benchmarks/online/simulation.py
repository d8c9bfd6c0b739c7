"""How fast lists are clicked, and a click model is fitted."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Options, Table, race
from leanrank.online import ClickModel, user


def run(options: Options) -> list[Table]:
    n = 10_000 if options.quick else 1_000_000
    lists = np.random.default_rng(0).integers(5, size=(n, 10))
    grades = np.linspace(0.1, 0.9, 5)
    browsing = np.tril(np.full((10, 10), 0.5)) + np.eye(10, 10) * 0.3
    browsing[0, 0] = 1.0
    models = {name: user(name, 5) for name in ("perfect", "navigational", "informational")}
    models["position-based"] = ClickModel.position_based(grades)
    models["dependent click"] = ClickModel.dependent_click(grades, np.linspace(0.6, 0.2, 10))
    models["user browsing"] = ClickModel.user_browsing(grades, browsing)
    table = Table(f"Clicks on {n:,} lists of ten, seconds by threads")
    for name, model in models.items():
        times = race(
            {str(j): lambda j=j, m=model: m.simulate(lists, 0, n_jobs=j) for j in (1, 2)},
            repeat=min(options.repeat, 3),
        )
        same = np.array_equal(times["1"].result, times["2"].result)
        table.add(
            user=name,
            **{f"{j} thread(s)": str(t) for j, t in times.items()},
            same=same,
            clicks_per_list=float(times["1"].result.sum() / n),
        )
    return [table, _fitted(models, lists[: n // 5])]


def _fitted(models: dict[str, ClickModel], lists: np.ndarray) -> Table:
    table = Table(
        f"Fitted by EM to {len(lists) // 2:,} lists, judged on as many others",
        note="largest error: over all parameters; perplexity and log-likelihood of the fitted "
        "model, and in brackets of the true one.",
    )
    half = len(lists) // 2
    for name in ("navigational", "position-based", "dependent click", "user browsing"):
        truth = models[name]
        clicked = truth.simulate(lists, 1)
        known = [np.where((t > 0) & (t < 1), 0.5, t) for t in truth.tables]
        start = ClickModel(known[0][:10], *known[1:])
        part = lists[:half], clicked[:half]
        seconds = race({"fit": lambda s=start, p=part: s.fit(p)}, repeat=1)
        found = seconds["fit"].result
        rest = lists[half:], clicked[half:]
        fitted, best = found.assess(rest), truth.assess(rest)
        errors = [
            np.abs(f - t[:10] if f.ndim == 2 else f - t).max()
            for f, t in zip(found.tables[:2], truth.tables[:2], strict=True)
        ]
        stops = np.abs(found.stop - truth.stop)[:, :9]
        table.add(
            user=name,
            seconds=seconds["fit"].median,
            largest_error=float(max(*errors, stops.max())),
            perplexity=f"{fitted.perplexity:.4f} ({best.perplexity:.4f})",
            log_likelihood=f"{fitted.log_likelihood:.4f} ({best.log_likelihood:.4f})",
        )
    return table
