import csv
import io
import json

import numpy as np
import pytest

from leanrank import load_letor
from leanrank.metrics import evaluate


@pytest.fixture
def scored(files):
    data = load_letor("test.txt")
    scores = np.random.default_rng(0).normal(size=len(data))
    (files / "s.txt").write_text("".join(f"{score!r}\n" for score in scores.tolist()))
    return data, scores


def test_means_are_those_of_the_library(run, scored):
    data, scores = scored
    ran = run(
        "evaluate", "test.txt", "s.txt", "--measures", "ndcg@10,map", "--convention", "letor4"
    )
    assert (ran.code, ran.err) == (0, "")
    for name, mean in evaluate(data, scores, convention="letor4").means.items():
        (line,) = [line for line in ran.out.splitlines() if line.startswith(name)]
        assert line.split() == [name, f"{mean:.4f}"]
    assert f"6 queries, {len(data):,} documents, convention letor4" in ran.out


def test_scores_belong_to_lines_of_the_file(run, files):
    lines = [("a", 2, 3.0), ("b", 0, 9.0), ("a", 0, 1.0), ("b", 1, 10.0), ("a", 1, 2.0)]
    (files / "mixed.txt").write_text("".join(f"{y} qid:{q} 1:1\n" for q, y, _ in lines))
    (files / "mixed-scores.txt").write_text("".join(f"{s}\n" for *_, s in lines))
    ran = run("evaluate", "mixed.txt", "mixed-scores.txt", "--json")
    assert json.loads(ran.out)["means"] == {"ndcg@10": 1.0, "map": 1.0}


def test_ties_by_document_id_need_document_ids(run, files):
    lines = ["1 qid:1 1:1 #docid = A", "0 qid:1 1:1 #docid = B"]
    (files / "named.txt").write_text("\n".join(lines))
    (files / "equal.txt").write_text("1\n1\n")
    words = ("named.txt", "equal.txt", "--convention", "trec", "--measures", "mrr", "--json")
    assert json.loads(run("evaluate", *words).out)["means"] == {"mrr": 0.5}  # B before A
    (files / "named.txt").write_text("\n".join(line.split(" #")[0] for line in lines))
    ran = run("evaluate", *words)
    assert ran.code == 2
    assert ran.err.startswith("leanrank: error: ties by document id need doc_ids")


def test_json(run, scored):
    data, scores = scored
    ran = run("evaluate", "test.txt", "s.txt", "--measures", "mrr,err@5", "--json")
    result = json.loads(ran.out)
    assert (ran.code, ran.err) == (0, "")
    assert result["means"] == evaluate(data, scores, measures=["mrr", "err@5"]).means
    assert (result["queries"], result["documents"]) == (6, len(data))


def test_a_measure_that_is_nowhere_defined_is_null(run, files):
    (files / "flat.txt").write_text("0 qid:1 1:1\n0 qid:1 1:2\n")
    (files / "flat-scores.txt").write_text("1\n2\n")
    words = ("evaluate", "flat.txt", "flat-scores.txt", "--measures", "auc")
    assert json.loads(run(*words, "--json").out)["means"] == {"auc": None}
    assert "–" in run(*words).out


def test_per_query(run, files, scored):
    data, scores = scored
    ran = run("evaluate", "test.txt", "s.txt", "--per-query", "q.csv")
    assert ran.code == 0
    rows = list(csv.DictReader(io.StringIO((files / "q.csv").read_text())))
    expected = evaluate(data, scores)
    assert [row["query"] for row in rows] == [str(q) for q in data.query_ids.tolist()]
    for name, values in expected.per_query.items():
        assert [float(row[name] or "nan") for row in rows] == pytest.approx(
            values.tolist(), abs=0, rel=0, nan_ok=True
        )
    ran = run("evaluate", "test.txt", "s.txt", "--per-query", "-")
    assert ran.out == (files / "q.csv").read_text()
    assert "6 queries" in ran.err


def test_standard_input(run, files, scored, monkeypatch):
    class Stdin:
        buffer = io.BytesIO((files / "s.txt").read_bytes())

    expected = run("evaluate", "test.txt", "s.txt")
    monkeypatch.setattr("sys.stdin", Stdin)
    assert run("evaluate", "test.txt", "-") == expected


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["test.txt", "none.txt"], "none.txt: there is no such file"),
        (
            ["test.txt", "bad.txt"],
            "bad.txt, line 2: 'x' is not a score: one finite number per line is expected",
        ),
        (["test.txt", "few.txt"], "few.txt has 2 scores but test.txt has "),
        (["test.txt", "s.txt", "--measures", "ndgc@10"], ""),
        (["test.txt", "s.txt", "--convention", "letor5"], ""),
        (["test.txt", "s.txt", "--per-query", "no/q.csv"], "no/q.csv: the directory no does not"),
        (["test.txt", "s.txt", "--json", "--per-query", "-"], "--json and a result both go"),
        (["-", "-"], "standard input (-) can be read only once"),
    ],
)
def test_faults(run, files, scored, words, message):
    (files / "bad.txt").write_text("1\nx\n")
    (files / "few.txt").write_text("1\n2\n")
    before = sorted(files.iterdir())
    ran = run("evaluate", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {message}")
    assert ran.err.count("\n") == 1
    assert sorted(files.iterdir()) == before


@pytest.fixture
def served(files):
    """A log of served lists with features in it, and the features in a table of their own."""
    import pyarrow as pa
    from pyarrow import parquet

    rng, n = np.random.default_rng(0), 1_200
    quality = np.array([0.1, 0.9, 0.5])
    shown = np.argsort(rng.random((n, 3)), axis=1)
    log = {
        "session": np.repeat(np.arange(n), 3),
        "query": ["q"] * (3 * n),
        "document": np.array(["a", "b", "c"])[shown].ravel(),
        "position": np.tile([1, 2, 3], n),
        "clicked": (rng.random((n, 3)) < quality[shown]).astype(int).ravel(),
        "propensity": np.tile([1 / 3, 1 / 2, 1.0], n),
    }
    parquet.write_table(pa.table(log), files / "bare.parquet")
    features = {f"f{j}": rng.normal(size=3) for j in range(1, 6)} | {"f6": quality}
    own = {name: column[shown].ravel() for name, column in features.items()}
    parquet.write_table(pa.table(log | own), files / "log.parquet")
    keys = {"query": ["q"] * 3, "document": ["a", "b", "c"]}
    parquet.write_table(pa.table(keys | features), files / "features.parquet")
    return features


def test_a_model_is_judged_from_a_click_log(run, served):
    assert run("train", "train.txt", "--model", "m.json").code == 0
    ran = run("evaluate", "--clicks", "log.parquet", "--policy", "m.json", "--json")
    assert (ran.code, ran.err) == (0, "")
    inside = json.loads(ran.out)
    assert set(inside["estimates"]) == {"ips", "clipped", "self-normalised", "doubly-robust"}
    assert inside["n_lists"] == 1_200
    words = ("features.parquet", "--clicks", "bare.parquet", "--policy", "m.json", "--json")
    joined = json.loads(run("evaluate", *words).out)
    assert joined["estimates"] == inside["estimates"]
    ran = run("evaluate", *words, "--read", "qid=query")
    assert ran.code == 2
    assert ran.err.startswith("leanrank: error: with --clicks a table of features has the columns")
    ran = run("evaluate", "--clicks", "log.parquet", "--policy", "m.json", "--discount", "log")
    assert "discounted clicks per list" in ran.out
    assert [line.split()[0] for line in ran.out.splitlines()[2:7]] == [
        "logged",
        *joined["estimates"],
    ]
    assert "1,200 lists" in ran.out


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ((), "give DATA and SCORES, or --clicks LOG and --policy MODEL"),
        (("test.txt", "scores.txt", "--depth", "5"), "--depth and --discount need --clicks LOG"),
        (("--clicks", "log.parquet"), "--clicks LOG and --policy MODEL go together"),
        (("test.txt",), "give DATA and SCORES"),
        (("--clicks", "-", "--policy", "-"), "standard input (-) can be read only once"),
    ],
)
def test_what_is_missing_is_told(run, files, words, message):
    ran = run("evaluate", *words)
    assert ran.code == 2
    assert ran.err.startswith(f"leanrank: error: {message}")


def test_scores_are_tested_against_other_scores(run, files):
    (files / "d.txt").write_text("".join(f"{i % 2} qid:{i // 2} 1:{i}\n" for i in range(12)))
    (files / "good.txt").write_text("0\n1\n" * 6)
    (files / "bad.txt").write_text("1\n0\n" * 6)
    ran = run("evaluate", "d.txt", "good.txt", "--baseline", "bad.txt", "--measures", "mrr,ndcg")
    row = next(line.split() for line in ran.out.splitlines() if line.startswith("mrr"))
    # all signs flipped alike in 2 of 64 patterns
    assert row == ["mrr", "0.5000", "1.0000", "+0.5000", "+0.5000", "to", "+0.5000", "0.031"]
    ran = run("evaluate", "d.txt", "good.txt", "--baseline", "bad.txt", "--json")
    tests = {each["measure"]: each for each in json.loads(ran.out)["comparisons"]}
    assert (tests["map"]["mean_a"], tests["map"]["wins"]) == (0.5, 6)
    assert run("evaluate", "--clicks", "d.txt", "--baseline", "bad.txt").code == 2
