"""Fits on a Dask cluster: the same optimum, the same bits, and sentences with a partition."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from sklearn.base import clone

from leanrank import LinearRanker, make_ranking
from leanrank.data.ranking_data import RankingData
from leanrank.errors import ClusterError, DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.rankers import (
    DominationRanker,
    FenchelRank,
    ListNet,
    MinBatSRank,
    NonconvexRankSVM,
    RankBoost,
    RankRLS,
    RankSVM,
    SparseRank,
    TopicRanker,
)
from leanrank.rankers.dask import data_on_cluster
from leanrank.rankers.streaming import fit_stream
from leanrank.selection import cross_validate_path

pytest.importorskip("dask.dataframe")
pytest.importorskip("distributed")

import itertools

import dask
import dask.array as da
import dask.dataframe as dd
import distributed
import pandas as pd
from distributed import Client, LocalCluster

FEATURES = [f"x{j}" for j in range(8)]


def local(n_workers: int, threads: int, *, processes: bool = False) -> LocalCluster:
    return LocalCluster(
        n_workers=n_workers,
        threads_per_worker=threads,
        processes=processes,
        dashboard_address="127.0.0.1:0",
        worker_dashboard_address="127.0.0.1:0",
        silence_logs=logging.CRITICAL,
    )


@pytest.fixture(scope="module")
def client():
    with local(2, 1) as cluster, Client(cluster) as client:
        yield client


def made(seed: int = 0, n_queries: int = 40) -> tuple[RankingData, pd.DataFrame]:
    data = make_ranking(
        n_queries=n_queries, n_features=8, n_informative=3, docs_per_query=12, random_state=seed
    )
    frame = pd.DataFrame(data.X, columns=FEATURES)
    return data, frame.assign(label=data.y, qid=data.qid)


def cut(frame: pd.DataFrame, *rows: int) -> dd.DataFrame:
    edges = [0, *rows, len(frame)]
    parts = [frame.iloc[a:b] for a, b in itertools.pairwise(edges)]
    return dd.from_delayed([dask.delayed(part) for part in parts], meta=frame.iloc[:0])


def fit(ranker, table, **options):
    return ranker.fit(table[FEATURES], table["label"], qid=table["qid"], **options)


@pytest.mark.parametrize(
    "ranker",
    [
        DominationRanker(alpha=0.01, margin="scaled"),
        RankSVM(alpha=0.01),
        RankSVM(alpha=0.01, loss="hinge", tol=1e-3),
        ListNet(alpha=0.01),
        LinearRanker("logistic", "elastic-net", l1_ratio=0.5, normalize="term"),
        FenchelRank(radius=1.0),
        SparseRank(alpha=0.02, tol=1e-4),
        NonconvexRankSVM(alpha=0.02),
        RankRLS(alpha=0.1),
    ],
    ids=lambda ranker: f"{type(ranker).__name__}",
)
def test_the_same_optimum_as_in_memory(client, ranker):
    data, frame = made()
    ours = fit(ranker, cut(frame, 120, 240))
    assert ours.n_queries_ == 40
    assert ours.n_informative_queries_ == int(data.informative.sum())
    assert list(ours.feature_names_in_) == FEATURES
    weights, tol = ours.coef_.copy(), getattr(ranker, "tol", 1e-9)
    objective = getattr(ours, "objective_", 0.0)
    theirs = ranker.fit(frame[FEATURES], frame["label"], qid=frame["qid"])
    np.testing.assert_allclose(weights, theirs.coef_, atol=10 * np.sqrt(tol))
    assert objective == pytest.approx(getattr(theirs, "objective_", 0.0), rel=2 * tol)


def test_bits_do_not_depend_on_workers_or_threads():
    _, frame = made(1)
    found = set()
    for n_workers, threads in [(1, 1), (2, 1), (4, 1), (1, 2), (2, 2), (4, 2)]:
        with local(n_workers, threads) as cluster, Client(cluster):
            table = cut(frame, 60, 120, 180, 240, 400)
            ranker = fit(DominationRanker(alpha=0.005), table)
            curved = fit(DominationRanker(alpha=0.005, curves=2), table)
            bits = ranker.coef_.tobytes(), curved.coef_.tobytes()
            found.add((*bits, str(ranker.history_)))
    assert len(found) == 1


def weights_of(table, **options) -> np.ndarray:
    return fit(DominationRanker(alpha=0.01, tol=1e-9), table, **options).coef_


def test_rows_of_a_query_may_be_anywhere(client, caplog):
    caplog.set_level(logging.INFO, "leanrank.dask")
    _, frame = made(2)
    expected = weights_of(cut(frame, 120, 240))
    assert "no query lies across the 3 partitions: they are used unchanged" in caplog.text
    stitched = weights_of(cut(frame, 100, 150, 151, 152, 300))
    assert "2 queries lie across partitions" in caplog.text
    np.testing.assert_allclose(stitched, expected, atol=1e-6)
    mixed = frame.sample(frac=1.0, random_state=0)
    shuffled = weights_of(cut(mixed, 100, 300))
    assert "40 queries lie across partitions" in caplog.text
    np.testing.assert_allclose(shuffled, expected, atol=1e-6)
    # neighbours by name only: one query at both ends
    ends = pd.concat([frame.iloc[6:], frame.iloc[:6]])
    np.testing.assert_allclose(weights_of(cut(ends, 120, 240)), expected, atol=1e-6)


def test_a_shuffle_keeps_weights_with_their_documents(client):
    rng = np.random.default_rng(0)
    _, frame = made(3)
    frame = frame.assign(
        weight=rng.integers(1, 3, len(frame)).astype(float),
        gain=rng.uniform(0.5, 1.0, len(frame)),
        start=rng.normal(size=len(frame)),
    )
    by_query = {int(each): float(rng.uniform(0.5, 2.0)) for each in frame["qid"].unique()}

    def options(table):
        return {
            "sample_weight": table["weight"],
            "gain_weight": table["gain"],
            "offset": table["start"],
            "query_weight": by_query,
        }

    mixed = cut(frame.sample(frac=1.0, random_state=1), 90, 200)
    ours = weights_of(mixed, **options(mixed))
    ranker = DominationRanker(alpha=0.01, tol=1e-9)
    theirs = ranker.fit(frame[FEATURES], frame["label"], qid=frame["qid"], **options(frame))
    np.testing.assert_allclose(ours, theirs.coef_, atol=1e-6)


@pytest.mark.parametrize("kind", ["text", "category", "string", "float"])
def test_queries_may_have_any_kind_of_name(client, kind):
    _, frame = made(4)
    expected = weights_of(cut(frame, 100, 300))
    names = frame["qid"].map("q{}".format)
    if kind == "category":
        names = names.astype("category")
    elif kind == "string":
        names = names.astype("string")
    elif kind == "float":
        names = frame["qid"].astype(float)
    np.testing.assert_allclose(
        weights_of(cut(frame.assign(qid=names), 100, 300)), expected, atol=1e-7
    )


def test_arrays_lists_and_empty_partitions(client):
    data, frame = made(5)
    expected = weights_of(cut(frame, 120, 240))
    X, y, qid = (da.from_array(v, chunks=c) for v, c in [
        (np.asarray(data.X), ((120, 120, 240), (5, 3))),
        (data.y, 480),
        (data.qid, 100),
    ])  # fmt: skip
    ranker = DominationRanker(alpha=0.01, tol=1e-9)
    np.testing.assert_array_equal(ranker.fit(X, y, qid=qid).coef_, expected)
    pieces = [data.queries[:10], data.queries[10:20], data.queries[20:]]
    delayed = [dask.delayed(piece) for piece in pieces]
    np.testing.assert_array_equal(ranker.fit(delayed).coef_, expected)
    futures = [client.submit(lambda piece=piece: piece, pure=False) for piece in pieces]
    np.testing.assert_array_equal(ranker.fit(futures).coef_, expected)
    columns = [[dask.delayed(v) for v in (p.X, p.y, p.qid)] for p in pieces]
    ranker.fit(*[list(each) for each in zip(*columns, strict=True)])
    np.testing.assert_array_equal(ranker.coef_, expected)
    np.testing.assert_array_equal(weights_of(cut(frame, 0, 120, 120, 240, 480)), expected)


def test_sparse_and_single_precision_partitions(client):
    from scipy.sparse import csr_array

    data, frame = made(6)
    pieces = [data.queries[:10], data.queries[10:]]
    lists = [
        [dask.delayed(csr_array(p.X)) for p in pieces],
        [dask.delayed(p.y) for p in pieces],
        [dask.delayed(p.qid) for p in pieces],
    ]
    ranker = DominationRanker(alpha=0.01, tol=1e-9).fit(*lists)
    np.testing.assert_allclose(ranker.coef_, weights_of(cut(frame, 120)), atol=1e-6)
    single = cut(frame.astype(dict.fromkeys(FEATURES, np.float32)), 120)
    np.testing.assert_allclose(weights_of(single), ranker.coef_, atol=1e-5)


def test_alpha_max_and_path(client):
    data, frame = made(7)
    table = cut(frame, 120, 240)
    ranker = DominationRanker()
    given = table[FEATURES], table["label"]
    top = ranker.alpha_max(*given, qid=table["qid"])
    assert top == pytest.approx(ranker.alpha_max(data))
    path = ranker.path(*given, qid=table["qid"], n_alphas=5, validation=data)
    whole = ranker.path(data, n_alphas=5, validation=data)
    np.testing.assert_allclose(path.objectives, whole.objectives, rtol=2e-6)
    np.testing.assert_allclose(path.measures["ndcg@10"], whole.measures["ndcg@10"], atol=1e-3)


@pytest.mark.parametrize("gaps", [False, True])
def test_curves_have_the_knots_of_all_documents(client, gaps):
    _, frame = made(21)
    if gaps:
        frame.loc[5, "x1"] = np.nan  # in the first partition only
    ranker = DominationRanker(alpha=0.002, curves=4, monotone={"x0": 1})
    ours = fit(clone(ranker), cut(frame, 0, 120, 240))
    theirs = fit(clone(ranker), frame)
    assert [a.tolist() for a in ours.ramps_.knots] == [a.tolist() for a in theirs.ramps_.knots]
    np.testing.assert_array_equal(ours.ramps_.gap, theirs.ramps_.gap)
    assert ours.ramps_.gap.any() == gaps
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=2e-6)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-2)
    scores = ours.predict(cut(frame, 100)[FEATURES]).compute()
    np.testing.assert_array_equal(scores, ours.predict(frame[FEATURES]))


def test_paths_of_curves_and_of_least_squares(client):
    data, frame = made(22)
    table = cut(frame, 120, 240)
    given = table[FEATURES], table["label"], table["qid"]
    for ranker, tol in [(DominationRanker(curves=3), 2e-6), (RankRLS(), 1e-9)]:
        alphas = [0.3, 0.003]
        ours = ranker.path(*given, alphas=alphas, validation=data)
        theirs = ranker.path(data, alphas=alphas, validation=data)
        np.testing.assert_allclose(ours.objectives, theirs.objectives, rtol=tol)
        np.testing.assert_allclose(ours.measures["ndcg@10"], theirs.measures["ndcg@10"], atol=2e-3)
    np.testing.assert_allclose(ours.coefs, theirs.coefs, rtol=1e-7, atol=1e-9)


def with_nan(frame, column, row):
    out = frame.copy()
    out.loc[row, column] = np.nan
    return out


def test_bad_input_names_the_partition(client):
    _, frame = made(8)
    text = frame.astype({"x2": object})
    text.loc[130, "x2"] = "many"
    lists = [[dask.delayed(p) for p in (frame[FEATURES][:120], frame[FEATURES[1:]][120:])]]
    lists += [[dask.delayed(p) for p in (frame[c][:120], frame[c][120:])] for c in ("label", "qid")]
    mixed = [dask.delayed(frame["qid"][:120]), dask.delayed(frame["qid"][120:].map(str))]
    table, other = cut(frame, 120), cut(frame, 60, 120)
    X, y, qid = table[FEATURES], table["label"], table["qid"]

    def refused(pattern, *arguments, **options):
        with pytest.raises(InputError, match=pattern) as raised:
            DominationRanker().fit(*arguments, **options)
        assert "\n" not in str(raised.value)

    def refused_table(pattern, frame):
        table = cut(frame, 120, 240)
        refused(pattern, table[FEATURES], table["label"], table["qid"])

    refused_table("partition 1: Input X contains NaN in feature 'x3'", with_nan(frame, "x3", 130))
    refused_table("partition 2: the label of document 60 is", with_nan(frame, "label", 300))
    refused_table("partition 0: qid is missing in row 7", with_nan(frame, "qid", 7))
    refused_table("partition 0: the column 'x2' holds string values", text)
    refused("partition 1 has 7 features .* but partition 0 has 8 features", *lists)
    refused(
        "partition 1 has .* text as qid but partition 0 has .* numbers",
        *lists[:0],
        X,
        y,
        mixed,
    )
    refused("qid has 3 partitions but X has 2: take both from one", X, y, other["qid"])
    refused("X is on Dask but y is ndarray: give y as a Dask collection", X, np.zeros(480), qid)
    refused("all 2 partitions are empty", *(cut(frame[:0], 0)[c] for c in (FEATURES, "label")))
    refused("no query has documents at two levels", X, y * 0, qid)
    refused("takes no group on Dask", X, y, group=[480])
    array = da.from_array(frame[FEATURES].to_numpy(), chunks=(120, 8))
    labels, ids = (da.from_array(frame[c].to_numpy(), chunks=120) for c in ("label", "qid"))
    refused("qid has 2 dimensions: give one value per document", array, labels, ids[:, None])
    refused("y has 2 dimensions: give one value per document", X, table[["label"]], qid)
    refused("partition 0: X has one dimension: give documents × feat", array[:, 0], labels, ids)
    refused("query_weight must be a mapping", X, y, qid, query_weight=qid)
    with pytest.raises(InputError, match="RankBoost needs all documents in memory"):
        fit(RankBoost(), table)
    with pytest.raises(InputError, match="needs all documents in memory: use solver='newton'"):
        fit(DominationRanker(solver="bound-cd"), table)
    with pytest.raises(InputError, match="TopicRanker needs all documents in memory"):
        TopicRanker(DominationRanker()).fit(da.zeros((480, 2)), np.eye(480)[:, :2])
    with pytest.raises(InputError, match="needs all documents in memory"):
        cross_validate_path(DominationRanker(), X, y, qid)
    assert not MinBatSRank._fits_on_cluster


def test_partitions_with_other_columns_than_promised(client):
    _, frame = made(9)
    parts = [frame[:120], frame[120:].drop(columns="x4")]
    table = dd.from_delayed(
        [dask.delayed(p) for p in parts], meta=frame.iloc[:0], verify_meta=False
    )
    with pytest.raises(InputError, match=r"partition 1 could not be read .*'x4'"):
        fit(DominationRanker(), table)
    named = [dask.delayed(p[FEATURES]) for p in (frame[:120], frame[FEATURES[::-1]][120:])]
    named[1] = dask.delayed(frame[FEATURES[::-1]][120:])
    others = [
        [dask.delayed(frame[c][a]) for a in (slice(120), slice(120, 480))] for c in ("label", "qid")
    ]
    with pytest.raises(
        InputError, match=r"partition 1 has 8 features \(x7, .* partition 0 has 8 features \(x0, "
    ):
        DominationRanker().fit(named, *others)


def test_a_single_delayed_object_is_one_partition(client):
    data, frame = made(24)
    given = (dask.delayed(frame[c]) for c in (FEATURES, "label", "qid"))
    ranker = DominationRanker(alpha=0.01).fit(*given)
    np.testing.assert_allclose(
        ranker.coef_, DominationRanker(alpha=0.01).fit(data).coef_, atol=1e-6
    )
    scores = ranker.predict(dask.delayed(frame[FEATURES])).compute()
    np.testing.assert_array_equal(scores, ranker.predict(frame[FEATURES]))


def test_scores_of_another_width_are_refused_at_once(client):
    data, frame = made(25)
    ranker = DominationRanker(alpha=0.01).fit(data)
    boosted = RankBoost(n_rounds=2).fit(data)
    array = da.from_array(frame[FEATURES].to_numpy(), chunks=(100, 4))
    for given in (array[:, :2], cut(frame, 100)[FEATURES[:2]]):
        for each in (ranker, boosted):
            with pytest.raises(InputError, match=f"X has 2 features, but {type(each).__name__} is"):
                each.predict(given)
    with pytest.raises(InputError, match="X has one dimension"):
        ranker.predict(array[:, 0])


QUIET = """
import dask, dask.array as da, numpy as np
from leanrank import make_ranking
from leanrank.rankers import DominationRanker
data = make_ranking(n_queries=20, n_features=4, random_state=0)
X = np.array(data.X)
given = [da.from_array(np.asarray(v), chunks=(250, 4)[: v.ndim]) for v in (X, data.y, data.qid)]
ranker = DominationRanker(alpha=0.01).fit(*given)
X[3, 2] = np.nan
try:
    DominationRanker().fit(da.from_array(X, chunks=(250, 4)), *given[1:])
except ValueError as error:
    print(error)
kept = da.from_array(X, chunks=(250, 4)).persist()
"""


def test_nothing_but_one_sentence_is_printed():
    """Neither the log of a failed task, nor that of a cluster which ends with the process."""
    done = subprocess.run(
        [sys.executable, "-c", QUIET], capture_output=True, text=True, timeout=120, check=True
    )
    assert "partition 0: Input X contains NaN in feature 'f3'" in done.stdout
    (said,) = done.stderr.splitlines()
    assert said.startswith("no Dask client is active: started a cluster")


def test_a_partition_that_cannot_be_read_has_a_remedy(client):
    def broken():
        raise OSError("disk gone")

    _, frame = made(26)
    parts = [dask.delayed(frame[:240]), dask.delayed(broken)()]
    table = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
    with pytest.raises(InputError, match=r"partition 1 .*\(OSError: disk gone\): compute it by"):
        fit(DominationRanker(), table)


def test_killed_workers_leave_the_same_bits(tmp_path):
    _, frame = made(10, n_queries=60)
    for at in range(4):
        frame[180 * at : 180 * at + 180].to_parquet(tmp_path / f"part-{at}.parquet")
    with local(2, 1, processes=True) as cluster, Client(cluster) as client:
        table = dd.read_parquet(tmp_path)
        expected = fit(DominationRanker(alpha=0.002), table)
        killed = []

        def kill(entry):
            if entry["iteration"] == 3:
                killed.append(min(client.run(os.getpid).values()))
                os.kill(killed[0], signal.SIGKILL)

        found = fit(DominationRanker(alpha=0.002, callback=kill), table)
        assert len(killed) == 1
        assert found.coef_.tobytes() == expected.coef_.tobytes()
        assert found.history_ == expected.history_


@pytest.mark.slow
@pytest.mark.parametrize("when", ["reading", "fitting"])
def test_a_cluster_may_be_without_workers_for_a_moment(tmp_path, when):
    """The only worker is killed and restarted, as a new one with another address."""
    data, frame = made(10)
    mark = tmp_path / "killed"

    def read(rows):
        if when == "reading" and not mark.exists():
            mark.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return frame[rows]

    parts = [dask.delayed(read)(rows) for rows in (slice(0, 240), slice(240, None))]
    with local(1, 1, processes=True) as cluster, Client(cluster) as client:

        def kill(entry):
            if when == "fitting" and entry["iteration"] == 3:
                mark.touch()
                os.kill(min(client.run(os.getpid).values()), signal.SIGKILL)

        table = dd.from_delayed(parts, meta=frame.iloc[:0], verify_meta=False)
        ranker = DominationRanker(alpha=0.002, callback=kill)
        with ThreadPoolExecutor() as pool:  # a fit that waits ends with the cluster
            try:
                found = pool.submit(fit, ranker, table).result(timeout=100)
            finally:
                client.close()
    assert mark.exists()
    expected = DominationRanker(alpha=0.002).fit(data)
    assert found.objective_ == pytest.approx(expected.objective_, rel=1e-5)


def test_data_that_only_a_lost_worker_held():
    _, frame = made(11)
    with local(2, 1) as cluster, Client(cluster) as client:
        parts = [frame[:240], frame[240:]]
        workers = sorted(client.nthreads())
        held = [
            client.scatter(part, workers=[worker])
            for part, worker in zip(parts, workers, strict=True)
        ]
        table = dd.from_delayed([dask.delayed(each) for each in held], meta=frame.iloc[:0])

        def lose(entry):
            if entry["iteration"] == 2:
                lost = next(w for w in cluster.workers.values() if w.address == workers[1])
                client.sync(lost.close, nanny=False)

        ranker = DominationRanker(alpha=0.005, callback=lose)
        with pytest.raises(
            ClusterError, match="a worker died with data that were only in its memory"
        ):
            fit(ranker, table)


def test_scores_are_lazy_and_stay_with_their_rows(client):
    data, frame = made(12)
    table = cut(frame, 0, 130, 300)
    ranker = DominationRanker(alpha=0.01, callback=lambda entry: None).fit(data)
    ranker.feature_names_in_ = np.array(FEATURES, dtype=object)
    expected = ranker.predict(frame[FEATURES])
    scores = ranker.predict(table[FEATURES])
    assert isinstance(scores, dd.Series)
    np.testing.assert_array_equal(scores.compute().to_numpy(), expected)
    array = da.from_array(np.asarray(data.X), chunks=(100, 5))
    del ranker.feature_names_in_
    assert isinstance(ranker.predict(array), da.Array)
    np.testing.assert_array_equal(ranker.predict(array).compute(), expected)
    (piece,) = ranker.predict([dask.delayed(np.asarray(data.X))])
    np.testing.assert_array_equal(piece.compute(), expected)
    boosted = RankBoost(n_rounds=5).fit(data)
    np.testing.assert_array_equal(boosted.predict(array).compute(), boosted.predict(data.X))


def test_measures_are_those_of_all_queries(client):
    _, frame = made(13)
    rng = np.random.default_rng(0)
    frame = frame.assign(score=rng.normal(size=len(frame)))
    mixed = cut(frame.sample(frac=1.0, random_state=2), 90, 300)
    wanted = ["ndcg@5", "map", "err@10", "kendall_tau_b"]
    ours = evaluate(mixed["label"], mixed["score"], mixed["qid"], measures=wanted, rel=2)
    theirs = evaluate(frame["label"], frame["score"], frame["qid"], measures=wanted, rel=2)
    assert ours.means == pytest.approx(theirs.means, rel=1e-12)
    assert ours.undefined == theirs.undefined
    assert ours.settings == theirs.settings
    assert sorted(ours.query_ids) == sorted(theirs.query_ids)
    ranker = DominationRanker(alpha=0.01)
    found = fit(ranker, mixed).score(mixed[FEATURES], mixed["label"], qid=mixed["qid"])
    assert found == pytest.approx(ranker.score(frame[FEATURES], frame["label"], qid=frame["qid"]))


def test_validation_data_must_be_in_memory(client):
    table = cut(made(15)[1], 120, 240)
    given = table[FEATURES], table["label"], table["qid"]
    with pytest.raises(InputError, match=r"validation: .* needs all documents in memory"):
        DominationRanker().path(*given, n_alphas=4, validation=given)


def test_wild_units_are_seen_across_partitions(client):
    _, frame = made(19)
    wild = frame.assign(x1=frame["x1"] * 5000.0)
    with pytest.warns(DataWarning, match="the spread of 'x1' is .* times that of"):
        fit(DominationRanker(alpha=0.01), cut(wild, 120, 240))


def test_stochastic_rankers_read_partitions_as_a_stream(client):
    data, frame = made(16)
    ranker = fit(MinBatSRank(alpha=0.01, epochs=2), cut(frame, 120, 240))
    chunks = [data.queries[:10], data.queries[10:20], data.queries[20:]]
    expected = fit_stream(MinBatSRank(alpha=0.01, epochs=2), chunks, epochs=2)
    np.testing.assert_array_equal(ranker.coef_, expected.coef_)
    assert list(ranker.feature_names_in_) == FEATURES
    with pytest.raises(InputError, match="MinBatSRank takes no offset from a stream"):
        fit(MinBatSRank(), cut(frame, 120), offset=cut(frame, 120)["label"])


def test_a_cluster_is_started_where_there_is_none(monkeypatch, caplog):
    def no_client():
        raise ValueError("no client")

    monkeypatch.setattr(distributed, "get_client", no_client)
    _, frame = made(17)
    fit(DominationRanker(alpha=0.01), cut(frame, 240))
    client = distributed.default_client()
    assert "no Dask client is active: started a cluster" in caplog.text
    assert "http://127.0.0.1:" in caplog.text
    servers = [client.cluster.scheduler, *client.cluster.workers.values()]
    sockets = [s for server in servers for s in server.http_server._sockets.values()]
    assert {s.getsockname()[0] for s in sockets} == {"127.0.0.1"}
    client.close()
    client.cluster.close()


def test_a_cluster_without_workers_is_given_up():
    _, frame = made(18)
    with local(1, 1) as cluster, Client(cluster):
        data = data_on_cluster(
            DominationRanker(), *(cut(frame, 240)[c] for c in (FEATURES, "label", "qid"))
        )
        data.X.patience = 0.1
        cluster.scale(0)
        cluster.sync(cluster._correct_state)
        with pytest.raises(ClusterError, match="no worker"):
            DominationRanker().fit(data)
