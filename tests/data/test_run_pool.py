"""Runs side by side, against loops over queries and runs."""

import numpy as np
import pytest

from leanrank.data.trec import SCALERS, Qrels, Run, RunPool
from leanrank.errors import InputError


def random_runs(seed, n_runs=3, n_queries=8, n_documents=9):
    """Runs with ties, one-document lists and queries that a run does not answer."""
    rng = np.random.default_rng(seed)
    runs = {}
    for at in range(n_runs):
        rows = []
        for query in rng.permutation(n_queries):
            size = rng.choice([0, 1, 2, n_documents])
            for document in rng.choice(n_documents, size, replace=False):
                score = rng.choice([rng.normal(), 1.0, -2.0])
                rows.append((f"q{query}", f"d{document}", score))
        runs[f"run{at}"] = Run(*zip(*rows, strict=True)) if rows else Run([], [], [])
    judged = [(f"q{q}", f"d{d}") for q in range(n_queries + 1) for d in range(n_documents + 1)]
    kept = [pair for pair in judged if rng.random() < 0.6]
    return runs, Qrels(*zip(*kept, strict=True), rng.integers(0, 3, len(kept)))


def listed(run, query):
    """The documents of a query from the top: by score, then by id, the greatest first."""
    rows = [at for at, q in enumerate(run.qid) if q == query]
    rows.sort(key=lambda at: (run.score[at], run.doc_id[at]), reverse=True)
    return {str(run.doc_id[at]): float(run.score[at]) for at in rows}


def slow(scaler, scores, document, constant):
    """Scale one document of one list, a dictionary from the top down."""
    values = np.array(list(scores.values()))
    if not scores:
        return 0.0
    if document not in scores:
        z = (values - values.mean()) / (values.std() or 1.0)
        return z.min() if scaler == "query-standard" else 0.0
    rank = list(scores).index(document)
    if scaler == "query-reciprocal-rank":
        return (constant + 1) / (constant + rank + 1)
    if scaler == "query-rank":
        return 1 - rank / len(scores)
    if scaler == "query-standard":
        return (scores[document] - values.mean()) / (values.std() or 1.0)
    spread = values.max() - values.min()
    return (scores[document] - values.min()) / spread if spread else 1.0


@pytest.mark.parametrize("seed", range(6))
def test_every_scaler_against_a_loop(seed):
    runs, qrels = random_runs(seed)
    pool = RunPool.build(runs, qrels)
    lists = {(n, q): listed(run, q) for n, run in runs.items() for q in pool.data.query_ids}
    for scaler in SCALERS:
        found = pool.scaled(scaler, 7)
        expected = [
            [slow(scaler, lists[name, query], document, 7) for name in runs]
            for query, document in zip(pool.data.qid, pool.data.doc_ids, strict=True)
        ]
        np.testing.assert_allclose(found, expected, atol=1e-12)


@pytest.mark.parametrize("seed", range(4))
def test_labels_and_pools(seed):
    runs, qrels = random_runs(seed)
    judged = dict(zip(zip(qrels.qid, qrels.doc_id, strict=True), qrels.label, strict=True))
    pool = RunPool.build(runs, qrels)
    data = pool.data
    retrieved = {(q, d) for r in runs.values() for q, d in zip(r.qid, r.doc_id, strict=True)}
    assert len(data) == len({(q, d) for q, d in retrieved if q in set(qrels.qid)})
    pairs = list(zip(data.qid, data.doc_ids, strict=True))
    assert data.y.tolist() == [judged.get(pair, 0.0) for pair in pairs]
    for at, query in enumerate(data.query_ids):
        everything = {d for q, d in [*judged, *pairs] if q == query}
        labels = pool.judged_labels[pool.judged_ptr[at] : pool.judged_ptr[at + 1]]
        assert sorted(labels) == sorted(judged.get((query, d), 0.0) for d in everything)


def test_a_part_of_the_queries_is_what_is_built_from_it():
    runs, qrels = random_runs(1)
    pool = RunPool.build(runs, qrels)
    part = pool.queries(np.array([1, 2, 4]))
    names = set(pool.data.query_ids[[1, 2, 4]])
    inside = np.array([q in names for q in qrels.qid])
    again = RunPool.build(runs, Qrels(qrels.qid[inside], qrels.doc_id[inside], qrels.label[inside]))
    assert part.data.query_ids.tolist() == again.data.query_ids.tolist()
    np.testing.assert_array_equal(part.data.X, again.data.X)
    np.testing.assert_array_equal(part.rank, again.rank)
    np.testing.assert_array_equal(part.judged_labels, again.judged_labels)
    np.testing.assert_array_equal(part.judged_ptr, again.judged_ptr)


def test_notes_say_what_was_left_out_or_assumed():
    bm25 = Run(["q", "q", "other"], ["a", "b", "a"], [2.0, 1.0, 1.0])
    qrels = Qrels(["q", "q", "lost"], ["a", "z", "a"], [1, 2, 1])
    assert RunPool.build({"bm25": bm25}, qrels).notes == (
        "1 query without judgments left out",
        "1 judged query left out that no run answers",
        "1 of 2 retrieved documents without a judgment count as label 0",
        "1 relevant document not retrieved by any run: no weights can find them",
    )


def test_a_run_with_gaps_is_named():
    whole = Run(["p", "q"], ["a", "b"], [2.0, 1.0])
    pool = RunPool.build(
        {"whole": whole, "half": Run(["q"], ["b"], [1.0])}, Qrels(["p", "q"], ["a", "b"], [1, 0])
    )
    assert pool.notes == ("the run 'half' answers 1 of 2 queries",)


def test_extreme_scores_stay_finite():
    run = Run(["q"] * 3, ["a", "b", "c"], [1.7e308, -1.7e308, 0.0])
    assert RunPool.build({"r": run}).scaled("query-minmax").ravel().tolist() == [1.0, 0.0, 0.5]


def test_faults():
    run = Run(["q"], ["a"], [1.0])
    with pytest.raises(InputError, match="no run answers a judged query"):
        RunPool.build({"r": run}, Qrels(["p"], ["a"], [1]))
    with pytest.raises(InputError, match="the run 'r' lists a document twice"):
        RunPool.build({"r": Run(["q", "q"], ["a", "a"], [1.0, 2.0])})
    with pytest.raises(InputError, match="there is no run"):
        RunPool.build({})
    with pytest.raises(InputError, match="scaler='log' is not known"):
        RunPool.build({"r": run}).scaled("log")
