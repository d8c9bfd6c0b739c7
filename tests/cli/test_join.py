"""``leanrank join``: files in, one training file out, and an account of the rest."""

import json

import pytest

from leanrank.data import load


@pytest.fixture
def logs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    features = {"a": [0.5, 3], "b": [1.5, None], "c": [2.5, 1]}
    for query in ("jazz", "rock"):
        hits = [
            {"_id": document, "fields": {"_ltrlog": [{"log": [
                {"name": "bm25", "value": bm25},
                {"name": "age"} | ({} if age is None else {"value": age}),
            ]}]}}
            for document, (bm25, age) in features.items()
        ]  # fmt: skip
        with (tmp_path / "log.ndjson").open("a") as out:
            out.write(json.dumps({"query": query, "hits": {"hits": hits}}) + "\n")
    ratings = "query,docid,rating\njazz,a,0\njazz,b,2\nrock,c,1\nrock,a,0\nfolk,a,1\n"
    (tmp_path / "ratings.csv").write_text(ratings)
    return tmp_path


WORDS = ("join", "--features", "log.ndjson", "--judgments", "ratings.csv", "-o", "train.letor")


def test_join(run, logs):
    ran = run(*WORDS)
    assert ran.code == 0
    assert ran.err.splitlines() == [
        "leanrank: warning: of 6 logged entries, 2 without a judgment left out (0 queries without "
        "any): 'c' of query 'jazz', 'b' of query 'rock'",
        "leanrank: warning: of 5 judgments, 1 without features left out (1 query not in the log): "
        "'a' of query 'folk'",
        "leanrank: warning: 1 missing value became 0 (age 1)",
    ]
    assert "Data written to train.letor" in ran.out
    data = load("train.letor")
    assert data.X.tolist() == [[0.5, 3.0], [1.5, 0.0], [0.5, 3.0], [2.5, 1.0]]
    assert data.y.tolist() == [0, 2, 0, 1]


def test_json_and_labels_for_the_unjudged(run, logs):
    ran = run(*WORDS, "--unjudged", "0", "--fill", "-1", "--json")
    result = json.loads(ran.out)
    assert (result["documents"], result["unjudged"], result["unlogged"]) == (6, 2, 1)
    assert result["missing"] == {"age": 2}
    assert load("train.letor").X[1].tolist() == [1.5, -1.0]


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--query-field", "text"], "log.ndjson, line 1: no query is named (looked at te"),
        (
            ["--document-field", "sku"],
            "log.ndjson, line 1: no document is named (looked at sku)",
        ),
        (["--judgment-format", "csv"], "format='csv' is not known"),
        (["--judgments", "none.csv"], "none.csv: there is no such file"),
        (["-o", "no/train.txt"], "no/train.txt: the directory no does not exist"),
    ],
)
def test_faults(run, logs, words, message):
    ran = run(*WORDS, *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {message}")
    assert not (logs / "train.letor").exists()
