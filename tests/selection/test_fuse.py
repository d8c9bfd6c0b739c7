"""Weights of runs: learned where runs differ, honest where they do not."""

import numpy as np
import pytest

from leanrank import fuse
from leanrank.data.trec import Qrels, Run, RunPool, dump_qrels, dump_run
from leanrank.errors import InputError
from leanrank.metrics import evaluate_run
from leanrank.selection.folds import QueryKFold
from leanrank.selection.fused import FUSED, RRF, QueryTypes

FEW = {"scalers": ("query-minmax", "query-reciprocal-rank"), "constants": (60,)}


@pytest.fixture(autouse=True)
def few(monkeypatch):
    """Settings that make a search fast."""
    monkeypatch.setattr("leanrank.selection.fuse.ALPHAS", (0.01,))


def made(noises, n_queries=40, n_documents=12, keep=9, seed=0):
    """Runs that see the labels through noise and keep their best documents only."""
    rng = np.random.default_rng(seed)
    qid = np.repeat([f"q{q}" for q in range(n_queries)], n_documents)
    documents = np.tile([f"d{d}" for d in range(n_documents)], n_queries)
    label = rng.choice([0, 0, 1, 2], len(qid))
    runs = {}
    for name, noise in noises.items():
        score = (label if np.isfinite(noise) else 0) + rng.normal(size=len(qid)) * min(noise, 9)
        ranks = np.argsort(np.argsort(-score.reshape(n_queries, -1), axis=1), axis=1).ravel()
        kept = ranks < keep
        runs[name] = Run(qid[kept], documents[kept], score[kept], name)
    judged = rng.random(len(qid)) < 0.8
    return runs, Qrels(qid[judged], documents[judged], label[judged])


@pytest.fixture(scope="module")
def clear():
    runs, qrels = made({"good": 0.6, "poor": 3.0, "fresh": np.inf})
    return runs, qrels, fuse(runs, qrels, **FEW)


def test_better_runs_weigh_more_and_the_weights_are_certified(clear):
    _, _, found = clear
    weights = found.weights
    assert weights["good"] > 3 * weights["poor"] > 0
    assert sum(weights.values()) == pytest.approx(1.0)
    assert min(weights.values()) >= 0
    assert found.setting.alpha is not None
    assert 0 <= found.dual_gap <= 1e-6


def test_it_stands_beside_rank_fusion_equal_weights_and_each_run(clear):
    _, _, found = clear
    systems = [FUSED, RRF, "equal weights", "good alone", "poor alone", "fresh alone"]
    assert list(found.means) == systems
    assert list(found.comparisons) == systems[1:]
    low, high = found.comparisons[RRF].interval
    assert 0 < low < found.comparisons[RRF].difference < high
    assert found.verdict().startswith("The learned weights beat reciprocal rank fusion (+0.")
    assert found.notes[0].endswith("without a judgment count as label 0")


def test_the_learning_curve_ends_with_all_training_queries(clear):
    _, _, found = clear
    assert [point.n_queries for point in found.curve] == [10, 25, 32]
    assert found.curve[-1].mean == found.means[FUSED]
    assert found.curve_sentence().startswith("With ")
    assert "judged queries you are within" in found.curve_sentence()


def test_baselines_are_what_evaluate_run_says(clear):
    """Judged documents that no run has count in the ideal list, for every system alike."""
    runs, qrels, found = clear
    pool = RunPool.build(runs, qrels)
    rrf: dict = {}
    for run in runs.values():
        for query in set(run.qid):
            rows = np.flatnonzero(run.qid == query)
            best = rows[np.argsort(-run.score[rows])]
            for rank, row in enumerate(best, start=1):
                key = (query, run.doc_id[row])
                rrf[key] = rrf.get(key, 0.0) + 1 / (60 + rank)
    fused = Run(*zip(*rrf, strict=True), list(rrf.values()))
    slow = evaluate_run(qrels, fused, "ndcg@10", convention="standard")
    by_query = dict(zip(slow.query_ids, slow.per_query["ndcg@10"], strict=True))
    expected = [by_query[q] for q in pool.data.query_ids]
    np.testing.assert_allclose(found.per_query[RRF], expected, atol=1e-12)
    alone = evaluate_run(qrels, runs["poor"], "ndcg@10", convention="standard")
    assert found.means["poor alone"] == pytest.approx(alone["ndcg@10"])


def test_apply_ranks_by_the_weighted_sum(clear):
    runs, _, found = clear
    fused = found.apply(runs)
    pool = RunPool.build({name: runs[name] for name in found.weights})
    X = pool.scaled(found.setting.scaler, found.setting.constant or 60)
    np.testing.assert_allclose(fused.score, X @ list(found.weights.values()))
    with pytest.raises(InputError, match="the run 'poor' is missing"):
        found.apply({"good": runs["good"]})


def test_noise_is_not_sold_as_a_gain():
    """With equally good runs there is nothing to learn, and the verdict says so."""
    sure = 0
    for seed in range(5):
        runs, qrels = made({"a": 1.0, "b": 1.0, "c": 1.0}, seed=seed)
        found = fuse(runs, qrels, curve=False, random_state=seed, **FEW)
        sure += found.verdict().startswith("The learned weights beat")
    assert sure <= 1
    assert "needs no judgments" in found.verdict()


def test_a_run_that_does_as_well_alone_is_named():
    runs, qrels = made({"good": 0.5, "noise": np.inf, "more": np.inf}, keep=12)
    found = fuse(runs, qrels, curve=False, **FEW)
    assert found.verdict().startswith("The learned weights beat reciprocal rank fusion (+0.")
    assert " They do not beat good alone (" in found.verdict()


def test_same_seed_same_result():
    runs, qrels = made({"a": 0.7, "b": 2.0})
    first, second = (fuse(runs, qrels, random_state=3, **FEW) for _ in range(2))
    assert first.weights == second.weights
    assert first.means == second.means
    assert [p.mean for p in first.curve] == [p.mean for p in second.curve]


def test_labels_of_a_fold_do_not_touch_what_is_chosen_without_it():
    runs, qrels = made({"a": 0.7, "b": 1.5, "c": np.inf})
    data = RunPool.build(runs, qrels).data
    _, test = next(QueryKFold(5, random_state=1).split(data.X, data.y, data.qid))
    held_out = set(data.qid[test])
    inside = np.isin(qrels.qid, list(held_out))
    turned = Qrels(qrels.qid, qrels.doc_id, np.where(inside, 2 - qrels.label, qrels.label))
    how = {"curve": False, **FEW}
    before, after = fuse(runs, qrels, **how), fuse(runs, turned, **how)
    assert before.fold_settings[0] == after.fold_settings[0]
    queries = np.isin(data.query_ids, list(held_out))
    assert not np.array_equal(before.per_query[FUSED][queries], after.per_query[FUSED][queries])


@pytest.mark.parametrize("loss", ["domination", "exponential", "listnet", "logistic"])
def test_other_losses(loss, monkeypatch):
    monkeypatch.setattr("leanrank.selection.fuse.ALPHAS", (1e-3,))
    runs, qrels = made({"good": 0.6, "poor": 3.0})
    found = fuse(runs, qrels, loss=loss, curve=False, **FEW)
    assert found.weights["good"] > found.weights["poor"]


def test_a_run_may_count_against_a_document_if_allowed():
    runs, qrels = made({"good": 0.8, "bad": 1.5})
    runs["bad"] = Run(runs["bad"].qid, runs["bad"].doc_id, -runs["bad"].score, "bad")
    found = fuse(runs, qrels, nonnegative=False, curve=False, scalers=["query-minmax"])
    assert found.weights["bad"] < 0
    kept = fuse(runs, qrels, curve=False, scalers=["query-minmax"])
    assert kept.weights["bad"] >= 0


def test_few_queries_with_information_fall_back_to_equal_weights():
    """A subset of the learning curve, or a fold, may say nothing at all."""
    runs, qrels = made({"a": 0.7, "b": 2.0}, n_queries=60)
    few = np.isin(qrels.qid, [f"q{at}" for at in range(0, 60, 6)])
    found = fuse(runs, Qrels(qrels.qid, qrels.doc_id, np.where(few, qrels.label, 0)), **FEW)
    assert sum(found.weights.values()) == pytest.approx(1.0)
    assert np.isfinite(found.means[FUSED])


def test_files_and_frames_give_the_same(tmp_path):
    pd = pytest.importorskip("pandas")
    runs, qrels = made({"a": 0.7, "b": 2.0}, n_queries=20)
    direct = fuse(runs, qrels, curve=False, **FEW)
    files, frames = [], {}
    for name, run in runs.items():
        dump_run(run, tmp_path / f"{name}.trec")
        files.append(tmp_path / f"{name}.trec")
        columns = {"qid": run.qid, "doc_id": run.doc_id, "score": run.score}
        frames[name] = pd.DataFrame(columns)
    dump_qrels(qrels, tmp_path / "q.txt")
    judged = {"qid": qrels.qid, "doc_id": qrels.doc_id, "label": qrels.label}
    assert fuse(frames, judged, curve=False, **FEW).weights == direct.weights
    assert fuse(files, tmp_path / "q.txt", curve=False, **FEW).weights.keys() == {"a", "b"}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"loss": "hinges"}, "there is no loss 'hinges': did you mean 'hinge'"),
        ({"loss": "hinge"}, "the solver 'newton' needs .* 'hinge'"),
        ({"scalers": ["query-minmux"]}, "did you mean 'query-minmax'"),
        ({"scalers": []}, "there is nothing to choose from"),
        ({"cv": 1}, "cv=1 must be a whole number"),
        ({"cv": 30}, "40 of 40 judged queries have .* 30 folds inside 30 folds need 60 of them"),
        ({"measure": "auc"}, "the measure 'auc' needs the score of every document"),
        ({"qrels": Qrels(["q1", "q2"], ["d1", "d2"], [1, 0])}, "1 of 2 judged queries have retri"),
        ({"measure": "ndcg@"}, "ndcg@"),
        ({"runs": [Run(["q"], ["a"], [1.0])]}, "1 run was given: give at least two"),
        ({"runs": [Run(["q"], ["a"], [1.0])] * 2}, "two runs have the tag 'leanrank'"),
        ({"runs": {"a": {"qid": []}, "b": 3}}, "the run 'a' is a dict without the columns"),
        ({"qrels": 3}, "the judgments is a int without the columns qid, doc_id, label"),
    ],
)
def test_faults(change, message):
    runs, qrels = made({"a": 1.0, "b": 1.0})
    given = {"runs": runs, "qrels": qrels} | change
    with pytest.raises(InputError, match=message):
        fuse(given.pop("runs"), given.pop("qrels"), **given)


def of_types(n_queries=150, seed=0):
    """One run is right for each of two types of queries, and all queries of the third need both."""
    rng = np.random.default_rng(seed)
    kinds = np.array(["name", "topic", "both"])[np.arange(n_queries) % 3]
    qid = np.repeat([f"q{q}" for q in range(n_queries)], 12)
    documents = np.tile([f"d{d}" for d in range(12)], n_queries)
    label = rng.choice([0, 0, 1, 2], len(qid))
    runs = {}
    for name, poor in (("words", "topic"), ("vectors", "name")):
        noise = np.where(np.repeat(kinds, 12) == poor, 6.0, 0.8)
        runs[name] = Run(qid, documents, label + noise * rng.normal(size=len(qid)), name)
    table = {"qid": [f"q{q}" for q in range(n_queries)], "kind": kinds}
    return runs, Qrels(qid, documents, label), table


def test_weights_depend_on_the_type_of_the_query():
    runs, qrels, table = of_types()
    found = fuse(
        runs, qrels, query_features=table, baseline={"words": 1, "vectors": 0}, curve=False, **FEW
    )
    by_type = found.weights_by_type
    assert by_type["kind=name"]["words"] > 0.7 > 0.3 > by_type["kind=topic"]["words"]
    assert 0.3 < by_type["kind=both"]["words"] < 0.7
    for other in ("one set of weights", "weights of today"):
        assert found.comparisons[other].interval[0] > 0
        assert f"{other} (+" in found.verdict()
    assert found.verdict().count("(") == found.verdict().count(")") == 3
    today = found.per_query["weights of today"]
    np.testing.assert_allclose(today, found.per_query["words alone"])
    fused = evaluate_run(qrels, found.apply(runs, table), "ndcg@10")
    one = evaluate_run(qrels, fuse(runs, qrels, curve=False, **FEW).apply(runs), "ndcg@10")
    assert fused.means["ndcg@10"] > one.means["ndcg@10"] + 0.02
    with pytest.raises(InputError, match="query_features"):
        found.apply(runs)


def test_numbers_of_queries_become_ranges():
    runs, qrels, table = of_types(60)
    lengths = np.arange(60) % 3 * 10 + np.arange(60) / 60
    numbers = {"qid": table["qid"], "length": lengths}
    found = fuse(runs, qrels, query_features=numbers, curve=False, **FEW)
    assert len(found.weights_by_type) == 3
    assert next(iter(found.weights_by_type)).startswith("length above")
    with pytest.raises(InputError, match="baseline"):
        fuse(runs, qrels, baseline={"words": 1}, curve=False, **FEW)


def test_a_number_that_is_missing_is_a_type_of_its_own():
    length = np.arange(40.0)
    length[::4] = np.nan
    table = {"qid": np.arange(40), "length": length}
    types = QueryTypes.find(table, range(40))
    named = types.of(table)
    assert {named[str(at)] for at in range(0, 40, 4)} == {"length missing"}
    assert named["1"] == "length up to 13.6667"
    assert types.names == tuple(sorted(set(named.values())))
