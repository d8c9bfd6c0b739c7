"""Exports in real engines: documents whose score has the bits it should have, or the largest
difference and the queries whose order changes; sizes of scripts before and after.

Engines that are large or slow to start take part with LEANRANK_ENGINES=1. ``--only kinds``,
``--only mq2008``, ``--only recorded``, ``--only scripts`` and ``--only export`` run one part.
"""

from __future__ import annotations

import os
from decimal import Decimal
from pathlib import Path
from time import process_time
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table
from leanrank.data import load_letor
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.errors import InputError
from leanrank.model import Levels, Line, Model, Ramps, Steps, Surface
from leanrank.model.export import TARGETS, export_model, formula_of
from leanrank.model.export.text import Syntax
from leanrank.model.verify.engines import EMULATED, ENGINES, Agreement, verify_export, verify_logged
from leanrank.model.writing import as_model
from leanrank.rankers import RankBoost, RankSVM
from tests.model.verify.drivers import HEAVY, OTHERS
from tests.model.verify.test_recorded import ENGINES as RECORDED
from tests.model.verify.test_recorded import documents, recorded

ENGINES.update(OTHERS | HEAVY)


def run(options: Options) -> list[Table]:
    tables = []
    if options.only in (None, "kinds"):
        tables.append(_kinds(400 if options.quick else 2000))
    if options.only in (None, "mq2008") and options.data is not None:
        fold = Path(options.data) / "MQ2008" / "Fold1"
        parts = [load_letor(fold / f"{part}.txt") for part in ("train", "vali", "test")]
        tables.append(_engines("MQ2008, fold 1", parts[0], parts, options))
    if options.only in (None, "recorded"):
        tables.append(_recorded())
    if options.only in (None, "scripts"):
        tables.append(_scripts(options))
    if options.only in (None, "export"):
        tables.append(_times(options))
    return tables


def _engines(title: str, train: RankingData, parts: list[RankingData], options: Options) -> Table:
    table = Table(
        f"Exports in their engines: {title}",
        note="bit-equal: to the float64 sum in the order of features (for a float32 emulator: "
        "documents whose float32 sum is that number). model: largest difference to predict().",
    )
    data = RankingData(
        np.vstack([np.asarray(part.X) for part in parts]),
        np.concatenate([part.y for part in parts]),
        qid=np.concatenate([[f"{at}-{q}" for q in part.qid] for at, part in enumerate(parts)]),
    )
    heavy = os.environ.get("LEANRANK_ENGINES", "") not in ("", "0")
    models = _models(train, options)
    for target in [*ENGINES, *EMULATED]:
        if target in ENGINES:
            lack = ENGINES[target].lacks()
            if lack is None and target in HEAVY and not heavy:
                lack = "LEANRANK_ENGINES=1"
            if lack is not None:
                table.add(target=target, model=f"not run: needs {lack}")
                continue
        for name, model in models.items():
            try:
                found = verify_export(model, target, data)
            except InputError as error:
                table.add(target=target, model=name, engine=f"refused: {_reason(error)}")
                continue
            table.add(target=target, model=name, engine=found.engine, **_row(found))
        print(f"  {target} done", flush=True)
    return table


NAMES = ("line", "curve", "steps", "other", "kind", "stock", "clicks")
SURFACE = Surface((0.0, 0.4, 1.0), (0.0, 0.5, 1.0), ((0, 0.1, 0), (0.3, 0, 1), (-0.2, 0.4, 0.7)))
BENT = {
    1: Ramps((0.0, 0.2, 0.6, 1.0), (0.7, -0.3, 0.4), 0.1),
    0: Line(1 / 3),
}
STEPS = {2: Steps((0.2, 0.5, 0.9), (0.0, 1.0, -0.3, 0.7), 0.2)}
PLAIN = {0: Line(1 / 3), 2: Line(-1.25), 5: Line(0.2), 6: Line(0.01)}


def _kinds(n: int) -> Table:
    """Run one model of each kind in every engine, on documents of which every tenth has gaps."""
    table = Table(
        f"Exports in their engines, {n:,} documents",
        note="= is bit-equal to the float64 sum in the order of features; otherwise the largest "
        "difference to what the engine should compute (float32 sums for the float32 targets, trees "
        "for the tree targets), then that to the model if it is above 1e-5, and queries in which "
        "documents change places that differ by more than 1e-6 and the stated error. Trees are "
        "steps with a stated largest error, 0.05 here. A dash is refused with a sentence. Gaps: "
        "lines with fill values and curves with their own. Types: columns that are boolean, whole "
        "numbers, decimals and texts.",
    )
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.1, 1.1, (n, 7))
    X[:, 2] = rng.choice([0.2, 0.5, 0.9, 0.3, 1.0], n)  # at the thresholds
    X[:, 4] = rng.integers(0, 4, n)
    X[:, 5], X[:, 6] = rng.integers(0, 2, n), rng.integers(0, 50, n)
    gaps = np.where(rng.random(X.shape) < 0.1, np.nan, X)
    full, holes = (
        RankingData(each, np.zeros(n), qid=np.arange(n) // 20, feature_names=NAMES)
        for each in (X, gaps)
    )
    standard = {
        "kind": "standard",
        "mean": X.mean(axis=0).tolist(),
        "scale": X.std(axis=0).tolist(),
    }
    lines = Model(7, PLAIN, NAMES)
    texts = Levels(("de", "en", "fr"), (0.5, -1.0, 0.1), 0.25)
    fill = dict.fromkeys((0, 2, 5, 6), 0.5)
    models: dict[str, tuple[Any, Any]] = {
        "lines": (lines, full),
        "standard": (lines.replace(normalizer=standard), full),
        "query-minmax": (lines.replace(normalizer={"kind": "query-minmax"}), full),
        "curves": (Model(7, BENT, NAMES), full.replace(X=np.nan_to_num(X))),
        "steps": (Model(7, STEPS, NAMES), holes),
        "categories": (Model(7, {4: Levels((0.0, 1.0, 3.0), (0.5, -1.0, 0.1))}, NAMES), holes),
        "texts": (Model(7, {4: texts}, NAMES), holes),
        "surfaces": (Model(7, STEPS, NAMES, surfaces={(1, 3): SURFACE}), holes),
        "gaps": (Model(7, {**PLAIN, **STEPS, 2: Line(0.5)}, NAMES, fill=fill), holes),
        "types": (Model(7, PLAIN, NAMES, fill=fill), _typed(gaps)),
    }
    heavy = os.environ.get("LEANRANK_ENGINES", "") not in ("", "0")
    for target in [*ENGINES, *EMULATED]:
        lack = ENGINES[target].lacks() if target in ENGINES else None
        if lack is None and target in HEAVY and not heavy:
            lack = "LEANRANK_ENGINES=1"
        if lack is not None:
            table.add(target=target, engine=f"not run: needs {lack}")
            continue
        row: dict[str, Any] = {"target": target, "engine": ""}
        for kind, (model, data) in models.items():
            if kind == "types" and not target.startswith("sql:"):
                continue
            try:
                found = verify_export(model, target, data, max_error=0.05, shifts=_shifts(target))
            except InputError as error:
                row[kind] = "–" if "cannot" in str(error) or "need" in str(error) else str(error)
                continue
            row["engine"] = found.engine
            cell = "=" if found.bit_equal == found.documents else f"{found.difference:.0e}"
            if found.model_difference > 1e-5:
                cell += f", {found.model_difference:.0e} to the model"
            row[kind] = cell + (f", {found.beyond} orders" if found.beyond else "")
        table.add(**row)
        print(f"  {target} done", flush=True)
    return table


def _shifts(target: str) -> dict[str, float]:
    return dict.fromkeys(NAMES, 1.0) if target in EMULATED else {}


def _typed(X: Any) -> Any:
    """Return the documents as a table with types of its own."""
    import pyarrow as pa

    def column(at: int, make: Any, kind: Any = None) -> Any:
        return pa.array([None if x != x else make(x) for x in X[:, at].tolist()], kind)

    decimal = pa.decimal128(12, 4)
    columns = [column(0, lambda x: Decimal(f"{x:.4f}"), decimal), column(1, float)]
    columns += [column(2, lambda x: f"{x:.1f}"), column(3, float), column(4, int)]
    columns += [column(5, bool), column(6, int)]
    query = pa.array((np.arange(len(X)) // 20).tolist())
    return pa.table([*columns, query], names=[*NAMES, "qid"])


def _scripts(options: Options) -> Table:
    """Compare scripts that read a field once with those that read it wherever it is needed."""
    table = Table(
        "Size of scripts of twenty curves",
        note="bytes. before: doc[...] wherever a value is needed. Servers refuse more than 65,535. "
        "What a script takes in a server was not measured here.",
    )
    rng = np.random.default_rng(0)
    for knots in (4, 8, 16):
        curves = {
            at: Ramps(np.sort(rng.uniform(size=knots)), rng.normal(size=knots - 1), 0.1)
            for at in range(20)
        }
        model = Model(20, curves, tuple(f"feature_{at}" for at in range(20)))
        formula = formula_of(model)
        repeated = Syntax(missing="{x}.size() == 0")
        before = formula.written(repeated, [f"doc['{name}'].value" for name in formula.names])
        before = before.replace(".value.size()", ".size()")
        sizes = {"before": len(before)}
        for target in ("painless", "lucene-expression"):
            try:
                sizes[target] = len(export_model(model, target))
            except InputError:
                sizes[target] = 0
        shown = {name: f"{size:,}" if size else "refused" for name, size in sizes.items()}
        table.add(knots=knots, **shown)
    return table


def _recorded() -> Table:
    """Compare the emulator with what real engines answered over HTTP."""
    table = Table("Recorded answers of engines beside the float32 emulator")
    data = documents()
    for name, target in RECORDED.items():
        model, shifts, scores = recorded(name, data)
        found = verify_logged(model, scores, data, target=target, shifts=shifts)
        table.add(engine=name, **_row(found))
    return table


def _row(found: Agreement) -> dict[str, Any]:
    return {
        "documents": found.documents,
        "bit-equal": found.bit_equal,
        "largest difference": f"{found.difference:.1e}",
        "to the model": f"{found.model_difference:.1e}",
        "orders changed": f"{found.orders_changed} of {found.queries}",
    }


def _reason(error: InputError) -> str:
    return str(error).partition(": ")[0].partition("cannot ")[2]


def _models(train: RankingData, options: Options) -> dict[str, Any]:
    """Fit a model of each kind."""
    models: dict[str, Any] = {"linear": RankSVM(alpha=1e-3).fit(train).to_model()}
    for kind in ("standard", "query-minmax"):
        scaler = make_normalizer(kind).fit(train.X, qid=train.qid)
        scaled = train.replace(X=scaler.transform(train.X, qid=train.qid))
        models[kind] = as_model(RankSVM(alpha=1e-3).fit(scaled), scaler)
    models["steps"] = RankBoost(n_rounds=20 if options.quick else 100).fit(train).to_model()
    return models


def _times(options: Options) -> Table:
    """Measure the processor time and the size of exports of ten features."""
    rng = np.random.default_rng(0)
    names = [f"feature_{at}" for at in range(10)]
    plain = Model.from_coef(np.abs(rng.normal(size=10)), feature_names=names)
    scaled = plain.replace(normalizer={"kind": "query-minmax"})
    given = {name: scaled if name == "hybrid:opensearch" else plain for name in TARGETS}
    trees = Model(10, {at: Steps((0.5,), (0.0, float(at + 1))) for at in range(10)}, names)
    given |= {name: trees for name, target in TARGETS.items() if target.module == "ensembles"}

    seconds: dict[str, list[float]] = {name: [] for name in TARGETS}
    sizes = {}
    for _ in range(max(5, options.repeat)):
        for name, took in seconds.items():
            start = process_time()
            made = export_model(given[name], name)
            took.append(process_time() - start)
            sizes[name] = len("".join(made.values()) if isinstance(made, dict) else made)
    table = Table(
        "Export of ten features", note="milliseconds of processor time, the least of five"
    )
    for name, took in seconds.items():
        table.add(target=name, milliseconds=f"{1000 * min(took):.2f}", bytes=sizes[name])
    return table
