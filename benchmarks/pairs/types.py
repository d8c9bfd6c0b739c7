"""Weights of runs that depend on the query: a made-up world of three types, and MQ2007-agg."""

from __future__ import annotations

import numpy as np

from benchmarks.harness import Options, Table
from leanrank import fuse
from leanrank.data import load_letor
from leanrank.metrics import Qrels, Run
from leanrank.selection.fused import FUSED, ONE_SET, RRF, Fusion

RUNS = ("words", "vectors", "clicks")
TRUTH = {
    "kind=name": (0.8, 0.1, 0.1),
    "kind=topic": (0.1, 0.8, 0.1),
    "kind=trend": (0.2, 0.2, 0.6),
}
"""Share of each run in what a query of each type wants."""

N_DOCUMENTS, NOISE = 20, 0.15


def types(options: Options) -> list[Table]:
    tables = [_recovered(options)]
    if options.data is not None:
        tables.append(_public(options))
    return tables


def _recovered(options: Options) -> Table:
    """Compare what is learned for each type with what its queries want."""
    table = Table(f"Three types of queries, {N_DOCUMENTS} documents each: weights of three runs")
    for n_queries in (150,) if options.quick else (150, 600):
        found = _fused_world(n_queries)
        for name, truth in TRUTH.items():
            learned = found.weights_by_type[name]
            row = {
                run: f"{learned[run]:.2f} ({true:.2f})"
                for run, true in zip(RUNS, truth, strict=True)
            }
            table.add(queries=n_queries, type=name, **row, **_gains(found))
    table.note = f"Learned weights (true ones). {_NOTE}"
    return table


def _fused_world(n_queries: int) -> Fusion:
    rng = np.random.default_rng(n_queries)
    kind = rng.integers(0, len(TRUTH), n_queries)
    scores = rng.random((n_queries, N_DOCUMENTS, len(RUNS)))
    utility = (scores * np.array(list(TRUTH.values()))[kind][:, None]).sum(axis=2)
    utility += NOISE * rng.normal(size=utility.shape)
    label = np.searchsorted(np.quantile(utility, (0.6, 0.8, 0.93)), utility)
    qid, doc = (at.ravel() for at in np.indices(utility.shape))
    runs = {name: Run(qid, doc, scores[:, :, at].ravel()) for at, name in enumerate(RUNS)}
    names = np.array([name.removeprefix("kind=") for name in TRUTH])
    table = {"qid": np.arange(n_queries), "kind": names[kind]}
    return fuse(runs, Qrels(qid, doc, label.ravel()), query_features=table, curve=False)


def _public(options: Options) -> Table:
    """Fuse the 21 rankings of MQ2007-agg; a type is how many of them hold a document on average."""
    assert options.data is not None
    data = load_letor(options.data / "MQ2007agg" / "train.txt")
    data = data.queries[: 100 if options.quick else data.n_queries]
    doc = np.arange(len(data))
    runs = {}
    for at in range(data.n_features):
        held = np.flatnonzero(~np.isnan(data.X[:, at]))
        runs[f"ranking {at + 1}"] = Run(data.qid[held], doc[held], -data.X[held, at])
    lists = np.add.reduceat((~np.isnan(data.X)).sum(axis=1), data.query_ptr[:-1])
    table = {"qid": data.query_ids, "lists": lists / np.diff(data.query_ptr)}
    found = fuse(
        runs, Qrels(data.qid, doc, data.y), query_features=table, curve=False,
        scalers=("query-minmax", "query-reciprocal-rank"), constants=(60,),
    )  # fmt: skip
    out = Table(f"MQ2007-agg: {data.n_queries:,} queries, {data.n_features} rankings")
    for name in (FUSED, ONE_SET, RRF, "equal weights"):
        more = {} if name == FUSED else {"types less this": _difference(found, name)}
        out.add(system=name, **{"NDCG@10": f"{found.means[name]:.4f}"}, **more)
    out.note = (
        "Nested cross-validation of five folds, paired 95% intervals. The types are three ranges "
        "of how many rankings hold a document of the query."
    )
    return out


_NOTE = (
    "Gain in NDCG@10 of weights by type over one set of weights and over reciprocal rank fusion, "
    "nested cross-validation, paired 95% interval; all types of a set together."
)


def _gains(found: Fusion) -> dict[str, str]:
    return {f"over {name}": _difference(found, name) for name in (ONE_SET, RRF)}


def _difference(found: Fusion, name: str) -> str:
    one = found.comparisons[name]
    low, high = one.interval
    return f"{one.difference:+.4f} ({low:+.4f} to {high:+.4f})"
