"""A search on a Dask cluster: the study of the same data in memory, on any number of workers."""

from __future__ import annotations

import os
import signal
from dataclasses import replace

import numpy as np
import pytest

from leanrank.data import make_ranking
from leanrank.errors import InputError
from leanrank.registry import SYSTEMS, AlphaPath, Space
from leanrank.selection import Costs, tune
from leanrank.selection.cluster import ClusterTask, facts_on_cluster, on_dask, read_parts
from leanrank.selection.cross_validation.splits import QueryKFold, query_facts
from leanrank.selection.tuning.local_search import Sieve
from leanrank.selection.tuning.trials import Task, run_trial
from leanrank.selection.tuning.tune import default_systems

pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

import itertools
import logging

import dask
import dask.array as da
import dask.dataframe as dd
import pandas as pd
from distributed import Client, LocalCluster

SOME = ("domination", "rankrls", "ranksvm-curves")
NAMES = [f"x{j}" for j in range(8)]


def local(n_workers, *, processes=False):
    here = "127.0.0.1:0"
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=1,
        processes=processes,
        dashboard_address=here,
        worker_dashboard_address=here,
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def client():
    with local(2) as cluster, Client(cluster) as client:
        yield client


@pytest.fixture(autouse=True)
def _short_paths(monkeypatch):
    """Every model of a path takes several trips to the workers: a few models will do."""
    for name, system in list(SYSTEMS.items()):
        if system.tuning is not None and system.cluster:
            sweep = AlphaPath(n_alphas=5, alpha_min_ratio=0.03)
            if isinstance(system.tuning.sweep, AlphaPath) and system.tuning.sweep.alphas:
                sweep = AlphaPath((1.0, 0.1, 1e-2))
            fixed = {**system.tuning.fixed, "tol": 1e-4} if "tol" in system.tuning.fixed else {}
            short = replace(system.tuning, fixed={**system.tuning.fixed, **fixed}, sweep=sweep)
            monkeypatch.setitem(SYSTEMS, name, replace(system, tuning=short))


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=60, docs_per_query=12, n_features=8, n_informative=3, random_state=5
    )


def cut(data, *queries):
    """Partitions of a data set, as delayed data sets."""
    edges = [0, *queries, data.n_queries]
    return [dask.delayed(data.queries[a:b]) for a, b in itertools.pairwise(edges)]


def answer(study):
    return [
        (one.name, one.model.to_dict(), one.judged(study.measure).tobytes())
        for one in [study.chosen, *study.candidates]
    ]


def alike(ours, theirs):
    """Compare studies on a cluster and in memory, which add up in another order."""
    assert [one.name.split()[0] for one in ours.candidates] == [
        one.name.split()[0] for one in theirs.candidates
    ]
    for one, other in zip(ours.candidates, theirs.candidates, strict=True):
        assert one.score("ndcg@10") == pytest.approx(other.score("ndcg@10"), abs=5e-3)
    assert ours.chosen.model.indices.tolist() == theirs.chosen.model.indices.tolist()
    assert ours.chosen.score("ndcg@10") == pytest.approx(theirs.chosen.score("ndcg@10"), abs=1e-3)
    if ours.chosen.model.is_linear:
        np.testing.assert_allclose(ours.chosen.model.coef, theirs.chosen.model.coef, atol=5e-3)


def test_folds_are_those_of_memory(client, data):
    ours, held_out = read_parts(cut(data, 7, 30), None)
    assert held_out is None
    task = ClusterTask(ours, None)
    np.testing.assert_array_equal(task.folds, Task(data, None).folds)
    for theirs, here in zip(
        query_facts(data.y, data.query_ptr), facts_on_cluster(ours), strict=True
    ):
        np.testing.assert_array_equal(here, theirs)
    with pytest.raises(InputError, match="60 queries cannot be cut"):
        next(QueryKFold(61).deal(facts_on_cluster(ours)))


@pytest.mark.parametrize("scale", [None, "standard"])
@pytest.mark.parametrize("validated", [True, False])
def test_one_trial_is_that_of_memory(client, data, scale, validated):
    """A partition without queries of a group, scaled folds, chosen columns."""
    parts = (data.queries[:40], data.queries[40:]) if validated else (data, None)
    there = read_parts(cut(parts[0], 1, 3, 20), cut(parts[1], 5) if validated else None)
    measures = ("ndcg@10", "err@5")
    how = ("ndcg@10", measures, measures, "standard")
    mine = ClusterTask(*there, *how, unscaled=there[0], scale=scale)
    yours = Task(*parts, *how, unscaled=parts[0], scale=scale)
    for columns in (None, np.array([1, 4, 6])):
        for space in (
            Space("rankrls", sweep=AlphaPath((1.0, 1e-3))),
            Space("ranksvm", {"curves": 3, "l1_ratio": 1.0}, sweep=AlphaPath((0.01, 0.003))),
        ):
            ours = run_trial(mine, space, {}, columns=columns)
            theirs = run_trial(yours, space, {}, columns=columns)
            assert len(ours) == len(theirs) > 0
            for one, other in zip(ours, theirs, strict=True):
                assert one.model.indices.tolist() == other.model.indices.tolist()
                for measure in measures:
                    np.testing.assert_allclose(
                        one.judged(measure), other.judged(measure), atol=0.25, equal_nan=True
                    )
                    assert one.score(measure) == pytest.approx(other.score(measure), abs=2e-3)


def test_the_sieve_is_that_of_memory(client, data):
    ours = ClusterTask(*read_parts(cut(data, 7, 30), None))
    theirs = Task(data, None)
    pool = np.array([0, 2, 3, 5, 7])
    (grams, targets), (wanted, aims) = ours.products(pool), theirs.products(pool)
    ratio = wanted.trace(axis1=1, axis2=2).sum() / grams.trace(axis1=1, axis2=2).sum()
    np.testing.assert_allclose(ratio * grams, wanted, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(ratio * targets, aims, rtol=1e-9, atol=1e-12)
    supports = [np.array([0, 2]), np.array([3]), np.array([0, 3, 7]), np.array([2, 5, 7])]
    chosen = [Sieve(task, pool).best(supports) for task in (ours, theirs)]
    assert [s.tolist() for s in chosen[0]] == [s.tolist() for s in chosen[1]]


@pytest.mark.parametrize("validated", [True, False])
def test_the_study_is_that_of_memory(client, data, validated, tmp_path):
    parts = (data.queries[:40], data.queries[40:]) if validated else (data,)
    there = [cut(part, 10, 15) for part in parts]
    how = {"systems": SOME, "trials": 5, "max_features": 3, "refit": "both"}
    how |= {"costs": Costs(np.arange(1.0, 9.0)), "min_measure": {"ndcg@10": 0.5}}
    ours = tune(*there, **how, journal=tmp_path / "j")
    alike(ours, tune(*parts, **how))
    assert any("chosen feature" in one.name for one in ours.candidates), "no local search"
    assert answer(tune(*there, **how, n_jobs=3)) == answer(ours)
    lines = (tmp_path / "j").read_bytes().splitlines(keepends=True)
    (tmp_path / "j").write_bytes(b"".join(lines[:3]))
    assert answer(tune(*there, **how, journal=tmp_path / "j")) == answer(ours)
    with pytest.raises(InputError, match="belongs to another run, whose training data"):
        tune(cut(parts[0], 20), *there[1:], **how, journal=tmp_path / "j")


def test_what_may_be_given(client, data):
    frame = pd.DataFrame(data.X, columns=NAMES).assign(label=data.y, qid=data.qid, doc_id="d")
    table = dd.from_pandas(frame, npartitions=3)
    X = da.from_array(np.asarray(data.X), chunks=(250, 8))
    y, qid = (da.from_array(np.asarray(v), chunks=250) for v in (data.y, data.qid))
    lists = [[dask.delayed(v[:360]), dask.delayed(v[360:])] for v in (data.X, data.y, data.qid)]
    for given in (table, (table[NAMES], table["label"], table["qid"]), (X, y, qid), tuple(lists)):
        assert on_dask(given)
        study = tune(given, systems=["rankrls"], trials=1)
        assert study.chosen.model.n_features == 8
        assert not study.skipped
    assert not on_dask((data.X, data.y, data.qid))
    assert study.chosen.score("ndcg@10") == pytest.approx(
        tune(data, systems=["rankrls"], trials=1).chosen.score("ndcg@10"), abs=1e-9
    )
    for pattern, given in [
        ("the training data have no column 'qid'", (table.drop(columns="qid"),)),
        ("the training data have no labels and queries: give", (X,)),
        ("on Dask but validation is RankingData: give a Dask coll", (table, data)),
        ("validation is on Dask but the training data are not", (data, table)),
    ]:
        with pytest.raises(InputError, match=pattern):
            tune(*given, trials=1)


def test_systems_that_need_memory_are_listed(client, data):
    study = tune(cut(data, 30), trials=1)
    wanted = [name for name in default_systems() if not SYSTEMS[name].cluster]
    assert list(study.skipped) == wanted
    assert {"rankboost", "greedyrankrls", "spd"} <= set(wanted)
    assert not {*study.not_tried, *study.problems} & set(wanted)
    assert study.skipped["spd"] == "documents one after the other, in this process"
    with pytest.raises(InputError, match=r"rankboost \(need all documents in memory\); spd \(need"):
        tune(cut(data, 30), systems=["rankboost", "domination", "spd"], trials=1)
    X = np.array(data.X)
    X[3, 2] = np.nan
    gaps = cut(data.replace(X=X), 30)
    study = tune(gaps, trials=1)
    assert study.chosen.algorithm == "domination"
    assert study.chosen.parameters["curves"] == "auto"
    assert study.skipped["domination"] == "features without missing values"


def test_wild_units_are_scaled_without_the_judges(client, data):
    wild = data.replace(X=np.asarray(data.X) * np.where(np.arange(8) == 1, 5000.0, 1.0))
    how = {"systems": SOME, "trials": 4, "max_features": 3}
    ours = tune(cut(wild, 10, 40), **how)
    theirs = tune(wild, **how)
    alike(ours, theirs)
    assert ours.scale_reason == theirs.scale_reason != ""
    np.testing.assert_allclose(ours.model.predict(wild), theirs.model.predict(wild), atol=2e-2)


def test_the_same_bits_on_any_number_of_workers_and_after_a_kill(data, tmp_path):
    frame = pd.DataFrame(data.X, columns=NAMES).assign(label=data.y, qid=data.qid)
    for at in range(4):
        frame[180 * at : 180 * at + 180].to_parquet(tmp_path / f"part-{at}.parquet")
    how = {"systems": ["rankrls", "domination"], "trials": 2, "scale": "standard"}
    found = []
    for n_workers, deadly in ((1, None), (2, 1)):
        with local(n_workers, processes=True) as cluster, Client(cluster) as client:

            def kill(at, client=client, deadly=deadly):
                if at.trials == deadly:
                    os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

            found.append(answer(tune(dd.read_parquet(tmp_path), **how, progress=kill)))
    assert found[0] == found[1]
