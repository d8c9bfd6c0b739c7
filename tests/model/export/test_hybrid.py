"""The weights of retrievers for three engines."""

import json

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.data.trec import Run, RunPool
from leanrank.errors import InputError
from leanrank.model import Model
from leanrank.model.export import export_model, hybrid_weights
from leanrank.model.export.targets import Options
from leanrank.model.verify import runners, verify_export
from leanrank.model.verify.engines import Job

WEIGHTS = {"bm25": 1.5, "dense": 0.5}


def model(scaler, weights=(1.5, 0.0, 0.5)):
    normalizer = None if scaler is None else {"kind": scaler}
    return Model.from_coef(weights, feature_names=["bm25", "fresh", "dense"], normalizer=normalizer)


def test_opensearch_weights_add_up_to_one():
    made = json.loads(export_model(model("query-minmax"), "hybrid:opensearch"))
    assert made["phase_results_processors"] == [
        {
            "normalization-processor": {
                "normalization": {"technique": "min_max"},
                "combination": {
                    "technique": "arithmetic_mean",
                    "parameters": {"weights": [0.75, 0.25]},
                },
            }
        }
    ]
    assert "bm25, dense" in made["description"]


def test_opensearch_reciprocal_ranks():
    made = json.loads(hybrid_weights(WEIGHTS, "opensearch", scaler="query-reciprocal-rank"))
    combination = made["phase_results_processors"][0]["score-ranker-processor"]["combination"]
    assert combination == {
        "technique": "rrf",
        "rank_constant": 60,
        "parameters": {"weights": [0.75, 0.25]},
    }


@pytest.mark.parametrize(("scaler", "name"), [("query-minmax", "minmax"), (None, "none")])
def test_elasticsearch_linear_retriever(scaler, name):
    made = json.loads(export_model(model(scaler), "hybrid:elasticsearch", top=7))
    retrievers = made["retriever"]["linear"]["retrievers"]
    assert [(r["weight"], r["normalizer"]) for r in retrievers] == [(1.5, name), (0.5, name)]
    assert made["size"] == 7


def test_elasticsearch_reciprocal_ranks():
    made = json.loads(
        hybrid_weights(WEIGHTS, "elasticsearch", scaler="query-reciprocal-rank", rank_constant=20)
    )
    rrf = made["retriever"]["rrf"]
    assert [r["weight"] for r in rrf["retrievers"]] == [1.5, 0.5]
    assert rrf["rank_constant"] == 20


def test_qdrant_formula_takes_negative_weights():
    made = json.loads(hybrid_weights({"bm25": 1.5, "spam": -0.5}, "qdrant", scaler=None))
    products = [{"mult": [1.5, "$score[0]"]}, {"mult": [-0.5, "$score[1]"]}]
    assert made["query"]["formula"] == {"sum": products}


def test_qdrant_has_reciprocal_ranks_of_its_own():
    """Its weights are inside the fraction: w / (60 + rank) would be another function."""
    equal = {"bm25": 1.0, "dense": 1.0}
    made = json.loads(hybrid_weights(equal, "qdrant", scaler="query-reciprocal-rank"))
    assert made["query"] == {"rrf": {"k": 61}}
    with pytest.raises(InputError, match="another function"):
        hybrid_weights(WEIGHTS, "qdrant", scaler="query-reciprocal-rank")


@pytest.mark.parametrize("weights", [(10, 100), (1, 1), (30, 1)])
def test_qdrant_itself_gives_the_ranks_that_are_learned(weights):
    pytest.importorskip("qdrant_client")
    rng = np.random.default_rng(0)
    X, query = rng.uniform(0, 1, (60, 2)), np.arange(60) // 20
    X[rng.random(X.shape) < 0.2] = np.nan
    given = dict(zip(("bm25", "dense"), weights, strict=True))
    text = hybrid_weights(given, "qdrant", scaler="query-qdrant-rank")
    _, found = runners.qdrant(Job(text, list(given), X, query, Options()))
    keys = [str(q) for q in query], [f"d{at:03d}" for at in range(60)]
    runs = {}
    for at, name in enumerate(given):
        has = np.flatnonzero(~np.isnan(X[:, at]))
        runs[name] = Run(*([of[row] for row in has] for of in keys), X[has, at])
    pool = RunPool.build(runs)
    sums = pool.scaled("query-qdrant-rank", weights).sum(axis=1)
    scores = dict(zip(pool.data.doc_ids, sums, strict=True))
    expected = [scores.get(name, 0.0) for name in keys[1]]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-12)


def test_qdrant_itself_gives_the_score_of_a_formula():
    pytest.importorskip("qdrant_client")
    X = np.random.default_rng(1).uniform(0, 1, (60, 3))
    data = RankingData(X, np.zeros(60), qid=np.arange(60) // 20)
    data = data.replace(feature_names=("bm25", "fresh", "dense"))
    found = verify_export(model(None, (0.7, 0.0, -0.3)), "hybrid:qdrant", data)
    assert found.documents == 60
    assert found.difference < 1e-6
    assert found.orders_changed == 0


@pytest.mark.parametrize(
    ("target", "scaler", "words"),
    [
        ("hybrid:opensearch", None, "always normalises"),
        ("hybrid:opensearch", "query-rank", r"sql:\*"),
        ("hybrid:opensearch", "query-standard", "sql:duckdb"),
        ("hybrid:elasticsearch", "query-standard", "sql:duckdb"),
        ("hybrid:qdrant", "query-minmax", "hybrid:opensearch"),
    ],
)
def test_what_an_engine_cannot_do_is_refused(target, scaler, words):
    with pytest.raises(InputError, match=words):
        export_model(model(scaler), target)


@pytest.mark.parametrize("target", ["hybrid:opensearch", "hybrid:elasticsearch"])
def test_negative_weights_are_refused(target):
    given = model("query-minmax", [1.0, 0.0, -1.0])
    with pytest.raises(InputError, match="cannot take negative weights: train with") as refusal:
        export_model(given, target)
    assert "sql:*" in str(refusal.value)
    assert "or hybrid" not in str(refusal.value)
    with pytest.raises(InputError, match="takes no negative weights for ranks"):
        hybrid_weights({"a": -1.0}, "qdrant", scaler="query-qdrant-rank")
