"""The join of features and judgments accounts for every entry on both sides."""

import random

import numpy as np
import pytest

from leanrank.data import RankingData, dump, make_ranking
from leanrank.data.logs import LoggedDocument
from leanrank.data.logs.judgments import join_judgments, match_judgments
from leanrank.data.trec import Qrels
from leanrank.errors import DataWarning, InputError
from tests.data.logs.conftest import ltr_hit, ltr_response


def test_log_and_judgments_of_files(ltr_log, write):
    ratings = write("q.csv", "query,docid,rating", "jazz,b,2", "jazz,a,0", "rock,c,1", "rock,a,0")
    joined = match_judgments(ltr_log, ratings)
    data = joined.data
    assert (data.query_ids.tolist(), data.doc_ids.tolist()) == (["jazz", "rock"], list("abac"))
    assert data.feature_names == ("bm25", "age")
    assert data.X.tolist() == [[1.5, 3.0], [0.5, 0.0], [0.25, 1.0], [2.0, 9.0]]
    assert data.y.tolist() == [0.0, 2.0, 0.0, 1.0]
    assert joined.notes == ["1 missing value became 0 (age 1)"]
    kept = match_judgments(ltr_log, ratings, fill=np.nan)
    assert np.isnan(kept.data.X[1, 1])
    assert kept.notes == ["1 missing value became nan (age 1)"]


def test_everything_that_does_not_match_is_told(ltr_log, write):
    ratings = write("q.csv", "query,docid,rating", "jazz,b,2", "jazz,x,0", "pop,c,1")
    with pytest.warns(DataWarning) as caught:
        data = join_judgments(ltr_log, ratings)
    assert [str(one.message) for one in caught] == [
        "of 4 logged entries, 3 without a judgment left out (1 query without any): 'a' of query "
        "'jazz', 'a' of query 'rock', 'c' of query 'rock'",
        "of 3 judgments, 2 without features left out (1 query not in the log): 'x' of query "
        "'jazz', 'c' of query 'pop'",
        "1 missing value became 0 (age 1)",
    ]
    assert data.doc_ids.tolist() == ["b"]
    labelled = match_judgments(ltr_log, ratings, label=0)
    assert labelled.data.y.tolist() == [0.0, 2.0, 0.0, 0.0]
    assert "3 without a judgment labelled 0" in labelled.notes[0]


def test_the_last_of_repeated_entries_counts(write):
    log = write(
        "log.ndjson",
        ltr_response("q", ltr_hit("a", f=1.0), ltr_hit("b", f=2.0)),
        ltr_response("q", ltr_hit("a", f=5.0, g=1.0)),
    )
    joined = match_judgments(log, Qrels(["q", "q"], ["a", "b"], [1, 0]))
    assert joined.data.X.tolist() == [[5.0, 1.0], [2.0, 0.0]]
    assert joined.n_repeated == 1
    assert "1 logged entry replaced by a later one" in joined.notes[0]


@pytest.mark.parametrize("seed", [1, 2, 5])
def test_random_logs(seed):
    """Random logs with new features and repetitions on the way, against a dictionary."""
    rng = random.Random(seed)
    for _ in range(40):
        log, rows, columns = [], {}, {}
        judged = {(q, d): float(rng.randrange(3)) for q in "xy" for d in "abcdef"}
        for _ in range(rng.randrange(1, 30)):
            names = rng.sample("stuvw", rng.randrange(1, 5))
            features = {name: rng.choice([None, rng.random()]) for name in names}
            query, document = rng.choice("xy"), rng.choice("abcdefgh")
            log.append(LoggedDocument(query, document, features))
            if (query, document) in judged:
                rows[query, document] = features
                columns.update(dict.fromkeys(features))
        if not rows:
            continue
        qrels = Qrels(*zip(*judged, strict=True), list(judged.values()))
        joined = match_judgments(log, qrels, fill=np.nan)
        found = zip(joined.data.qid, joined.data.doc_ids, joined.data.X, joined.data.y, strict=True)
        assert joined.data.feature_names == tuple(columns)
        assert len(joined.data) == len(rows)
        for query, document, x, y in found:
            expected = [rows[query, document].get(name) for name in columns]
            assert [None if np.isnan(v) else v for v in x] == expected
            assert y == judged[query, document]
        kept = len(log) - len(joined.unjudged)
        assert kept == len(rows) + joined.n_repeated
        assert len(joined.unlogged) == len(judged) - len(rows)


def test_a_data_set_joins_as_well(tmp_path):
    made = make_ranking(n_queries=5, n_features=3, random_state=0)
    ids = np.array([f"d{i}" for i in range(len(made))])
    features = RankingData(made.X, qid=[f"q{q}" for q in made.qid], doc_ids=ids)
    qrels = Qrels([f"q{q}" for q in made.qid], ids, made.y)
    joined = match_judgments(features, qrels)
    np.testing.assert_array_equal(joined.data.X, made.X)
    np.testing.assert_array_equal(joined.data.y, made.y)
    assert joined.notes == []
    dump(features, tmp_path / "f.parquet")
    np.testing.assert_array_equal(match_judgments(tmp_path / "f.parquet", qrels).data.X, made.X)
    with pytest.raises(InputError, match="needs document ids"):
        match_judgments(RankingData(made.X), qrels)
    with pytest.raises(InputError, match="takes no query_field"):
        match_judgments(features, qrels, query_field="q")


def test_a_join_without_a_match_shows_both_sides(ltr_log):
    with pytest.raises(InputError, match=r"has 'a' of query 'jazz' where .* 'a' of query '17'"):
        match_judgments(ltr_log, Qrels([17], ["a"], [1]))
    with pytest.raises(InputError, match=r"has 'a' of .* have 'sku-1' of query 'jazz'"):
        match_judgments(ltr_log, Qrels(["jazz"], ["sku-1"], [1]), label=0.0)
    with pytest.raises(InputError, match="there are no logged documents"):
        match_judgments([], Qrels(["jazz"], ["sku-1"], [1]))
    with pytest.raises(InputError, match="has no feature"):
        match_judgments([LoggedDocument("q", "d", {})], Qrels(["q"], ["d"], [1]))
