"""``leanrank fuse``: TREC runs and judgments in, a search pipeline out."""

import json

import pytest

from leanrank.data.trec import Run, dump_qrels, dump_run
from tests.selection.test_fuse import made

WORDS = ("fuse", "bm25.trec", "dense.trec.gz", "--qrels", "q.txt", "--no-curve")


@pytest.fixture
def runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    made_runs, qrels = made({"bm25": 0.6, "dense": 2.0}, n_queries=20)
    dump_run(made_runs["bm25"], "bm25.trec")
    dump_run(made_runs["dense"], "dense.trec.gz")
    dump_qrels(qrels, "q.txt")
    return tmp_path


def test_a_pipeline_for_opensearch(run, runs):
    ran = run(*WORDS[:-1], "--to", "opensearch", "-o", "pipeline.json")
    assert (ran.code, ran.err) == (0, "")
    for part in ("weights  bm25 0.", "bm25 alone", "equal weights", "reciprocal rank fusion",
                 "judged queries", "With 1", "The learned weights"):  # fmt: skip
        assert part in ran.out
    pipeline = json.loads((runs / "pipeline.json").read_text())
    (processor,) = pipeline["phase_results_processors"]
    (settings,) = processor.values()
    weights = settings["combination"]["parameters"]["weights"]
    assert sum(weights) == pytest.approx(1.0)
    assert weights[0] > weights[1]


def test_a_run_without_weight_is_named(run, runs):
    made_runs, _ = made({"bm25": 0.6, "against": 0.6}, n_queries=20, keep=12)
    against = made_runs["against"]
    dump_run(Run(against.qid, against.doc_id, -against.score), "against.trec")
    words = ("--qrels", "q.txt", "--no-curve", "--to", "opensearch", "-o", "pipeline.json")
    ran = run("fuse", "bm25.trec", "against.trec", *words)
    assert "without  against: weight 0, leave out of the request" in ran.out
    assert 'in this order: bm25"' in (runs / "pipeline.json").read_text()


@pytest.mark.parametrize("target", ["elasticsearch", "qdrant"])
def test_other_engines(run, runs, target):
    ran = run(*WORDS, "--to", target, "-o", "-")
    assert ran.code == 0
    assert "bm25" in json.dumps(json.loads(ran.out))


def test_a_pipeline_for_each_type_of_query(run, runs):
    kinds = [f"q{q},{'name' if q % 2 else 'topic'}" for q in range(20)]
    (runs / "queries.csv").write_text("\n".join(["qid,kind", *kinds]) + "\n")
    words = ("--query-features", "queries.csv", "--baseline", "bm25=1,dense=1")
    ran = run(*WORDS, *words, "--to", "opensearch", "-o", "pipelines.json")
    assert (ran.code, ran.err) == (0, "")
    for part in ("type of query", "kind=name", "one set of weights", "weights of today"):
        assert part in ran.out
    pipelines = json.loads((runs / "pipelines.json").read_text())
    assert list(pipelines) == ["kind=name", "kind=topic", "others"]
    assert all("phase_results_processors" in each for each in pipelines.values())
    ran = run(*WORDS, "--baseline", "bm25")
    assert ran.code == 2
    assert "--baseline bm25: write NAME=VALUE" in ran.err


def test_plain_weights_and_json_are_the_same(run, runs):
    first = json.loads(run(*WORDS, "--json").out)
    ran = run(*WORDS, "-o", "weights.json")
    assert ran.code == 0
    assert json.loads((runs / "weights.json").read_text()) == first
    assert first["dual_gap"] is None or first["dual_gap"] <= 1e-6
    assert set(first["comparisons"]) == {
        "reciprocal rank fusion", "equal weights", "bm25 alone", "dense alone"}  # fmt: skip
    assert first["verdict"].startswith("The learned weights")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--to", "opensarch"], "there is no target 'opensarch': did you mean 'opensearch'?"),
        (["bm25.trec"], "two runs are named 'bm25'"),
        (["none.trec"], "none.trec: there is no such file"),
        (["--loss", "hindge"], "there is no loss 'hindge': did you mean 'hinge'?"),
        (["--measure", "ncdg"], "the measure 'ncdg'"),
        (
            ["--folds", "11"],
            "20 of 20 judged queries have retrieved documents at two levels: 11 folds",
        ),
        (["-o", "no/p.json"], "no/p.json: the directory no does not exist"),
        (["-o", "-", "--json"], "--json and a result both go to standard output"),
    ],
)
def test_faults(run, runs, words, message):
    before = sorted(runs.iterdir())
    ran = run(*WORDS, *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {message}")
    assert ran.err.count("\n") == 1
    assert sorted(runs.iterdir()) == before
