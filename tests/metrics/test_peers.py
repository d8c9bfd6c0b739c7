"""Independent implementations, on random data with ties and queries without relevant documents."""

from __future__ import annotations

import numpy as np
import pytest

from leanrank.metrics import Qrels, Run, evaluate, evaluate_run


def random_queries(seed, n_queries=60, longest=30, levels=4, n_scores=8):
    """Labels, scores with many ties, and qid; every sixth query has nothing relevant."""
    rng = np.random.default_rng(seed)
    sizes = rng.integers(1, longest, n_queries)
    qid = np.repeat(np.arange(n_queries), sizes)
    y = rng.integers(0, levels, len(qid))
    y[qid % 6 == 0] = 0
    scores = rng.integers(0, n_scores, len(qid)) / 8 if n_scores else rng.normal(size=len(qid))
    return y, scores, qid


TREC = {
    "map": "map",
    "ndcg": "ndcg",
    "ndcg@5": "ndcg_cut_5",
    "ndcg@20": "ndcg_cut_20",
    "p@5": "P_5",
    "p@20": "P_20",
    "r@5": "recall_5",
    "map@5": "map_cut_5",
    "mrr": "recip_rank",
}


@pytest.mark.parametrize("n_scores", [5, 0])
def test_trec_convention_is_trec_eval(n_scores):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    y, scores, qid = random_queries(1, n_scores=n_scores)
    docs = np.array([f"d{i * 7919 % 101}" for i in range(len(y))])  # ids in no order
    qrels: dict = {}
    run: dict = {}
    for q, doc, label, score in zip(qid, docs, y, scores, strict=True):
        qrels.setdefault(f"q{q}", {})[doc] = int(label)
        run.setdefault(f"q{q}", {})[doc] = float(score)
    wanted = {"map", "ndcg", "ndcg_cut.5,20", "P.5,20", "recall.5", "map_cut.5", "recip_rank"}
    peer = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    found = evaluate(y, scores, qid, measures=list(TREC), convention="trec", doc_ids=docs)
    for ours, theirs in TREC.items():
        values = [peer[f"q{q}"][theirs] for q in found.query_ids]
        np.testing.assert_allclose(found.per_query[ours], values, rtol=1e-12, err_msg=ours)


@pytest.mark.parametrize("complete", [False, True])
def test_runs_that_miss_documents_are_scored_as_by_trec_eval(complete):
    pytrec_eval = pytest.importorskip("pytrec_eval")
    rng = np.random.default_rng(4)
    qrels: dict = {}
    run: dict = {}
    for q in range(40):
        pool = rng.permutation(40)
        judged, retrieved = (
            pool[: rng.integers(1, 25)],
            rng.permutation(pool)[: rng.integers(1, 30)],
        )
        if q != 3:  # retrieved, never judged
            labels = rng.integers(-1, 4, len(judged)) * (q % 5 > 0)
            qrels[f"q{q}"] = {f"d{d}": int(r) for d, r in zip(judged, labels, strict=True)}
        if q != 8:  # judged, never retrieved
            run[f"q{q}"] = {f"d{d}": float(rng.integers(0, 6)) for d in retrieved}
    if complete:
        run["q8"] = {"nothing": 1.0}
    wanted = {"map", "ndcg", "ndcg_cut.5,20", "P.5,20", "recall.5", "map_cut.5", "recip_rank"}
    peer = pytrec_eval.RelevanceEvaluator(qrels, wanted).evaluate(run)
    if complete:
        del run["q8"]
    rows = [(q, d, r) for q, docs in qrels.items() for d, r in docs.items()]
    hits = [(q, d, s) for q, docs in run.items() for d, s in docs.items()]
    rng.shuffle(rows)
    found = evaluate_run(
        Qrels(*zip(*rows, strict=True)),
        Run(*zip(*hits, strict=True)),
        list(TREC),
        complete=complete,
    )
    assert set(found.query_ids) == set(peer)
    for ours, theirs in TREC.items():
        values = [peer[str(q)][theirs] for q in found.query_ids]
        np.testing.assert_allclose(found.per_query[ours], values, rtol=1e-12, err_msg=ours)


def test_ir_measures_agrees_on_runs():
    ir_measures = pytest.importorskip("ir_measures")
    y, scores, qid = random_queries(9)
    docs = [f"d{i}" for i in range(len(y))]
    qrels = [ir_measures.Qrel(str(q), d, int(r)) for q, d, r in zip(qid, docs, y, strict=True)]
    run = [ir_measures.ScoredDoc(str(q), d, s) for q, d, s in zip(qid, docs, scores, strict=True)]
    names = {
        "ndcg@10": "nDCG@10",
        "map": "AP",
        "map(rel=2)": "AP(rel=2)",
        "p@5(rel=2)": "P(rel=2)@5",
        "mrr": "RR",
    }
    theirs = {name: ir_measures.parse_measure(peer) for name, peer in names.items()}
    peer = ir_measures.calc_aggregate(theirs.values(), qrels, run)
    found = evaluate(y, scores, qid, measures=list(names), convention="trec", doc_ids=docs)
    for name, measure in theirs.items():
        assert found[name] == pytest.approx(peer[measure], rel=1e-12), name


@pytest.mark.parametrize("k", [3, 10, None])
def test_scikit_learn_averages_ties_in_ndcg_and_dcg(k):
    peers = pytest.importorskip("sklearn.metrics")
    y, scores, qid = random_queries(2)
    at = "" if k is None else f"@{k}"
    found = evaluate(y, scores, qid, measures=[f"ndcg{at}", f"dcg{at}"], gain="linear")
    for q, ndcg, dcg in zip(found.query_ids, *found.per_query.values(), strict=True):
        labels, own = y[qid == q], scores[qid == q]
        if len(labels) > 1 and labels.any():
            assert ndcg == pytest.approx(peers.ndcg_score([labels], [own], k=k), rel=1e-12)
            assert dcg == pytest.approx(peers.dcg_score([labels], [own], k=k), rel=1e-12)


def test_scikit_learn_average_precision_without_ties_and_auc_with():
    peers = pytest.importorskip("sklearn.metrics")
    y, scores, qid = random_queries(3, n_scores=0)
    found = evaluate(y, scores, qid, measures=["map(rel=2)"])
    for q, value in zip(found.query_ids, found.per_query["map(rel=2)"], strict=True):
        labels = y[qid == q] >= 2
        if labels.any():
            peer = peers.average_precision_score(labels, scores[qid == q])
            assert value == pytest.approx(peer, rel=1e-12)
        else:
            assert np.isnan(value)
    y, scores, qid = random_queries(3)
    found = evaluate(y, scores, qid, measures=["auc(rel=2)"])
    for q, value in zip(found.query_ids, found.per_query["auc(rel=2)"], strict=True):
        labels = y[qid == q] >= 2
        if 0 < labels.sum() < len(labels):
            assert value == pytest.approx(peers.roc_auc_score(labels, scores[qid == q]), abs=1e-14)
        else:
            assert np.isnan(value)


@pytest.mark.filterwarnings("ignore:One or more sample arguments:Warning")
def test_scipy_kendall():
    stats = pytest.importorskip("scipy.stats")
    y, scores, qid = random_queries(5)
    found = evaluate(y, scores, qid, measures=["kendall_tau_b"])
    peer = [stats.kendalltau(y[qid == q], scores[qid == q]).statistic for q in found.query_ids]
    np.testing.assert_allclose(found.per_query["kendall_tau_b"], peer, atol=1e-14)


@pytest.mark.filterwarnings("ignore::leanrank.errors.DataWarning")
def test_lightgbm_reports_the_same_ndcg_and_map():
    lightgbm = pytest.importorskip("lightgbm")
    y, _, qid = random_queries(6, n_queries=80)
    rng = np.random.default_rng(0)
    X = np.round(rng.normal(size=(len(y), 3)), 1)  # few leaves: many ties
    groups = np.bincount(qid)
    data = lightgbm.Dataset(X, y, group=groups, free_raw_data=False)
    report: dict = {}
    booster = lightgbm.train(
        {
            "objective": "lambdarank",
            "metric": ["ndcg", "map"],
            "eval_at": [1, 3, 10],
            "num_leaves": 7,
            "min_data_in_leaf": 5,
            "verbose": -1,
            "num_threads": 1,
        },
        data,
        num_boost_round=3,
        valid_sets=[data],
        callbacks=[lightgbm.record_evaluation(report)],
    )
    scores = booster.predict(X, raw_score=True)
    assert len(np.unique(scores)) < 100
    names = [f"{measure}@{k}" for measure in ("ndcg", "map") for k in (1, 3, 10)]
    found = evaluate(y, scores, group=groups, measures=names, convention="lightgbm")
    for name in names:
        assert found[name] == pytest.approx(report["training"][name][-1], abs=1e-9), name


@pytest.mark.parametrize("minus", ["", "-"])
def test_xgboost_reports_the_same_ndcg(minus):
    xgboost = pytest.importorskip("xgboost")
    y, _, qid = random_queries(7, n_queries=80)
    X = np.random.default_rng(0).normal(size=(len(y), 3))
    data = xgboost.DMatrix(X, y, qid=qid)
    report: dict = {}
    booster = xgboost.train(
        {
            "objective": "rank:pairwise",
            "booster": "gblinear",  # no two scores alike
            "eval_metric": [f"ndcg@{k}{minus}" for k in (1, 3, 10)],
            "nthread": 1,
        },
        data,
        num_boost_round=1,
        evals=[(data, "train")],
        evals_result=report,
        verbose_eval=False,
    )
    scores = booster.predict(data, output_margin=True)
    names = ["ndcg@1", "ndcg@3", "ndcg@10"]
    # queries without relevant documents count as 1, and as 0 with a minus after the cut-off
    found = evaluate(y, scores, qid, measures=names, no_relevant=0 if minus else 1)
    for name in names:
        assert found[name] == pytest.approx(report["train"][name + minus][-1], abs=1e-6), name
