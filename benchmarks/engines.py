"""Exports in real engines: documents whose score has the bits it should have, largest difference,
orders that change; and the time that an export of ten features takes.

Engines that are large or slow to start take part with LEANRANK_ENGINES=1. ``--only sample``,
``--only mq2008``, ``--only recorded`` and ``--only export`` run one part.
"""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.harness import Options, Table, race
from leanrank import RankBoost, RankSVM
from leanrank.data import load_letor, load_sample
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.errors import InputError
from leanrank.model import Model
from leanrank.model.export import TARGETS, export_model
from leanrank.model.verify.agreement import Agreement
from leanrank.model.verify.engines import EMULATED, ENGINES, verify_export, verify_logged
from leanrank.model.writing import as_model
from tests.model.verify.drivers import HEAVY
from tests.model.verify.test_recorded import ENGINES as RECORDED
from tests.model.verify.test_recorded import documents, recorded

ENGINES.update(HEAVY)


def run(options: Options) -> list[Table]:
    tables = []
    if options.only in (None, "sample"):
        train, vali, test = load_sample()
        tables.append(_engines("sample set", train, [train, vali, test], options))
    if options.only in (None, "mq2008") and options.data is not None:
        fold = Path(options.data) / "MQ2008" / "Fold1"
        parts = [load_letor(fold / f"{part}.txt") for part in ("train", "vali", "test")]
        tables.append(_engines("MQ2008, fold 1", parts[0], parts, options))
    if options.only in (None, "recorded"):
        tables.append(_recorded())
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
    """Time the writing of ten features."""
    rng = np.random.default_rng(0)
    names = [f"feature_{at}" for at in range(10)]
    plain = Model.from_coef(np.abs(rng.normal(size=10)), feature_names=names)
    scaled = plain.replace(normalizer={"kind": "query-minmax"})
    given = {name: scaled if name == "hybrid:opensearch" else plain for name in TARGETS}

    def writer(name: str) -> Any:
        return lambda: export_model(given[name], name)

    timings = race({name: writer(name) for name in TARGETS}, repeat=max(5, options.repeat))
    table = Table("Export of ten features")
    for name, timing in timings.items():
        table.add(target=name, milliseconds=f"{1000 * timing.median:.2f}", bytes=len(timing.result))
    return table
