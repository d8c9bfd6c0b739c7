"""``leanrank tune --max-features 10`` beside tree ensembles, on MQ2008 and OHSUMED.

On each of the five folds the search has 60 seconds of one processor (``--budget``), chooses on the
training and the validation part only, and its model is measured on the test part once. LightGBM and
XGBoost try twelve settings each, with early stopping on the same validation part, and the best of
them there is measured on the test part. All choose by MAP. ``--reports DIR`` keeps every search's
report and model.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from leanrank import load_letor, load_model
from leanrank.errors import DataWarning
from leanrank.metrics import compare_values, evaluate
from leanrank.selection import Split, fit_system
from leanrank.selection.systems import installed, title

CONVENTIONS = {"MQ2008": "letor4", "OHSUMED": "letor3"}
WIDTHS = {"MQ2008": 46, "OHSUMED": 45}
TREES = ("lightgbm", "xgboost")
MOST = 10
MEASURES = ("map", "ndcg@10")
OURS = f"leanrank tune, at most {MOST} features"
SEARCH = """
import runpy, time
time.perf_counter = time.process_time
runpy.run_module("leanrank", run_name="__main__")
"""
"""The command line with a clock of processor time."""


def run(options: Options) -> list[Table]:
    if options.data is None:
        raise SystemExit("give --data DIR with MQ2008 and OHSUMED, or set LEANRANK_DATA")
    budget = options.budget or ("5s" if options.quick else "60s")
    tables = []
    for name in CONVENTIONS:
        wanted, _, fold = (options.only or name).partition(":")
        if wanted != name:
            continue
        folds = [int(fold)] if fold else list(range(1, 2 if options.quick else 6))
        found = [_one_fold(options, name, number, budget) for number in folds]
        tables += [_means(name, found, budget), _by_fold(name, found, folds)]
    return tables


def _one_fold(options: Options, name: str, fold: int, budget: str) -> dict[str, dict[str, Any]]:
    assert options.data is not None
    folder = options.data / name / f"Fold{fold}"
    files = [folder / f"{part}.txt" for part in ("train", "vali", "test")]
    train, vali, test = (load_letor(file, n_features=WIDTHS[name]) for file in files)
    convention = CONVENTIONS[name]
    results: dict[str, dict[str, Any]] = {}

    model, chosen = _tune(options, name, fold, files, budget)
    results[OURS] = {
        **_measured(test, model.predict(test), convention),
        "features": model.n_nonzero,
        "chosen": chosen,
    }
    for system in TREES:
        if not installed(system):
            print(f"{title(system)} is not installed: left out")
            continue
        best = fit_system(system, Split(train, vali, "map", convention))
        results[title(system)] = {
            **_measured(test, best.model.predict(test), convention),
            "features": best.n_features,
            "chosen": str(best.parameters),
        }
    for system, result in results.items():
        shown = "  ".join(f"{m} {np.mean(result[m]):.4f}" for m in MEASURES)
        print(f"{name} fold {fold}: {system}: {shown}, {result['features']} features", flush=True)
    return results


def _tune(options: Options, name: str, fold: int, files: list[Path], budget: str) -> Any:
    """Run the command as a user would; give the model and what it is called."""
    with tempfile.TemporaryDirectory() as scratch:
        folder = Path(scratch) if options.reports is None else options.reports
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{name}-fold{fold}.json"
        words = ["tune", str(files[0]), "--vali", str(files[1]), "--max-features", str(MOST)]
        words += ["--budget", budget, "--measure", "map", "--convention", CONVENTIONS[name]]
        words += ["--model", str(path), "--json", "-j1"]
        if options.reports is not None:
            words += ["--report", str(folder / f"{name}-fold{fold}.html")]
        done = subprocess.run(
            [sys.executable, "-c", SEARCH, *words], capture_output=True, text=True, check=False
        )
        if done.returncode:
            raise RuntimeError(f"leanrank {' '.join(words)}: {done.stderr}")
        return load_model(path), json.loads(done.stdout)["chosen"]["name"]


def _measured(test: Any, scores: Any, convention: str) -> dict[str, Any]:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", DataWarning)
        found = evaluate(test, scores, measures=list(MEASURES), convention=convention)
        fair = evaluate(test, scores, measures="map", convention=convention, ties="average")
    return {**found.per_query, "map, ties averaged": fair.per_query["map"]}


def _means(name: str, found: list[dict[str, dict[str, Any]]], budget: str) -> Table:
    """Set the means of the folds' means side by side, with tests over all queries."""
    folds = f"{len(found)} folds" if len(found) > 1 else "one fold"
    table = Table(f"{name}, {CONVENTIONS[name]}, {folds}: test part")
    every = (*MEASURES, "map, ties averaged")
    for system in found[0]:
        row: dict[str, Any] = {"system": system}
        for measure in every:
            row[measure] = f"{np.mean([np.mean(one[system][measure]) for one in found]):.4f}"
        row["features"] = f"{np.mean([one[system]['features'] for one in found]):.1f}"
        for measure in MEASURES:
            if system == OURS:
                continue
            ours, theirs = (
                np.concatenate([one[each][measure] for one in found]) for each in (OURS, system)
            )
            tested = compare_values(theirs, ours, random_state=0)
            row[f"tune's {measure} against it"] = (
                f"{tested.difference:+.4f} (p = {tested.p_randomization:.2g})"
            )
        table.add(**row)
    table.note = (
        f"The search had {budget} of processor time; trees tried twelve settings each, on one "
        "thread. Chosen by MAP on training and validation parts only. p: paired randomisation "
        "test over all test queries. Ties averaged: documents of equal scores in all their orders, "
        "where the convention keeps the order of the file."
    )
    return table


def _by_fold(name: str, found: list[dict[str, dict[str, Any]]], folds: list[int]) -> Table:
    table = Table(f"{name}, fold by fold")
    for fold, results in zip(folds, found, strict=True):
        for system, result in results.items():
            table.add(
                fold=fold,
                system=system,
                **{m: f"{np.mean(result[m]):.4f}" for m in MEASURES},
                features=result["features"],
                chosen=result["chosen"],
            )
    return table
