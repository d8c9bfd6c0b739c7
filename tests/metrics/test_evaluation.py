"""What evaluate takes, gives, refuses and warns about."""

from __future__ import annotations

import json
import math
import subprocess
import sys
import warnings

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import Measure, evaluate, parse_measures, percent_zero

EVERYTHING = [
    "ndcg@5", "ndcg", "dcg@5", "mean_ndcg", "map", "p@3", "r@3", "mrr", "err@5", "auc",
    "all_pairs_error", "domination_error", "kendall_tau_b", "joachims_tau",
]  # fmt: skip


def problem(seed=0, n=400, n_queries=30):
    rng = np.random.default_rng(seed)
    return rng.integers(0, 4, n), rng.normal(size=n).round(1), rng.integers(0, n_queries, n)


def test_rows_in_any_order_and_qid_of_any_kind():
    y, scores, qid = problem()
    found = evaluate(y, scores, qid, measures=EVERYTHING)
    grouped = np.argsort(qid, kind="stable")
    names = np.array([f"query-{q}" for q in qid])
    again = evaluate(y[grouped], scores[grouped], names[grouped], measures=EVERYTHING)
    first_seen = list(dict.fromkeys(qid.tolist()))
    assert found.query_ids.tolist() == first_seen
    place = [again.query_ids.tolist().index(f"query-{q}") for q in first_seen]
    for name in EVERYTHING:
        np.testing.assert_array_equal(found.per_query[name], again.per_query[name][place])
    by_size = evaluate(y[grouped], scores[grouped], group=np.bincount(qid), measures=EVERYTHING)
    for name in EVERYTHING:
        np.testing.assert_array_equal(by_size.per_query[name], again.per_query[name])


@pytest.mark.parametrize("ties", ["input", "average", "pessimistic", "docid"])
def test_same_bits_on_any_number_of_threads(ties):
    rng = np.random.default_rng(1)
    y, scores = rng.integers(0, 5, 90_000), rng.normal(size=90_000).round(2)
    qid = np.repeat(np.arange(900), 100)
    ids = np.arange(90_000)
    results = [
        evaluate(y, scores, qid, measures=EVERYTHING, ties=ties, doc_ids=ids, n_jobs=n_jobs)
        for n_jobs in (1, 2, 4)
    ]
    for other in results[1:]:
        assert other.means == results[0].means
        for name in EVERYTHING:
            np.testing.assert_array_equal(other.per_query[name], results[0].per_query[name])


def test_a_data_set_brings_its_queries():
    y, scores, qid = problem()
    data = RankingData(np.zeros((len(y), 1)), y, qid, doc_ids=[f"d{i}" for i in range(len(y))])
    direct = evaluate(y, scores, qid, measures=EVERYTHING)
    grouped = scores if data.order is None else scores[data.order]
    assert evaluate(data, grouped, measures=EVERYTHING).means == direct.means
    assert evaluate(data, grouped, measures="mrr", convention="trec")["mrr"] > 0
    with pytest.raises(InputError, match="leave qid and group out"):
        evaluate(data, grouped, qid)
    unlabelled = RankingData(np.zeros((2, 1)))
    with pytest.raises(InputError, match="y is nan in row 0"):
        evaluate(unlabelled, [1, 2])


@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, np.int8, bool, object])
def test_labels_and_scores_of_any_number_type(dtype):
    y, scores = np.array([0, 1, 0, 1], dtype), np.array([0, 1, 1, 0], dtype)
    found = evaluate(y, scores, measures=EVERYTHING)
    assert found.means == evaluate([0, 1, 0, 1], [0, 1, 1, 0], measures=EVERYTHING).means
    y.flags.writeable = scores.flags.writeable = False
    assert evaluate(y, scores, measures=EVERYTHING).means == found.means


def test_extreme_scores_keep_their_order():
    scores = [1e308, -1e308, 5e-324, 0.0, -0.0]
    found = evaluate([4, 0, 3, 1, 2], scores, measures="all_pairs_error,ndcg")
    assert found["all_pairs_error"] == pytest.approx(0.5 / 10)  # 0.0 and -0.0 tie
    assert found["ndcg"] < 1


def test_no_rows_and_empty_queries():
    found = evaluate([], [], [], measures=EVERYTHING)
    assert all(math.isnan(mean) for mean in found.means.values())
    assert len(found.query_ids) == 0
    found = evaluate([1, 0], [1, 2], group=[0, 2, 0], measures="mrr,auc", convention="letor4")
    assert found.per_query["mrr"].tolist() == [0, 0.5, 0]
    assert found.undefined == {"mrr": 0, "auc": 2}


def test_the_result_as_text_and_as_plain_values():
    y, scores, qid = [1, 0, 0, 0], [1, 2, 2, 1], ["a", "a", "b", "b"]
    found = evaluate(y, scores, qid, measures="mrr, auc", ties="pessimistic", gain="linear")
    text = str(found)
    assert "2 queries, convention standard with gain='linear', ties='pessimistic'" in text
    assert "mrr  0.5000  (1 left out)" in text
    plain = json.loads(json.dumps(found.to_dict(per_query=True)))
    assert plain["means"] == {"mrr": 0.5, "auc": 0.0}
    assert plain["per_query"]["mrr"] == [0.5, None]
    assert plain["settings"]["gain"] == "linear"
    assert plain["settings"]["changed"] == ["gain", "ties"]
    assert "undefined" in str(evaluate([1, 1], [1, 2], measures="auc"))


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (([0, 1], [1.0, np.nan]), "scores is nan in row 1"),
        (([0, 1], [np.inf, 1.0]), "scores is inf in row 0"),
        (([0, np.nan], [1.0, 2.0]), "y is nan in row 1"),
        (([0, 1], [1.0]), "scores has 1 values but there are 2 documents"),
        (([0, 1], [1.0, 2.0], ["a"]), "qid has 1 values"),
        (([0, 1], [[1.0, 2.0], [1.0, 2.0]]), "scores has 2 dimensions"),
        (([0, "x"], [1.0, 2.0]), "y holds something that is not a number"),
    ],
)
def test_unusable_input_is_named(arguments, words):
    with pytest.raises(InputError, match=words):
        evaluate(*arguments)


def test_the_row_named_is_the_callers():
    with pytest.raises(InputError, match="row 2"):
        evaluate([0, 1, 0], [1.0, 2.0, np.nan], ["a", "b", "a"])


def test_finite_numbers_with_an_infinite_sum_pass():
    assert evaluate([0, 1], [1e308, 1.5e308], measures="mrr")["mrr"] == 1


def test_contradicting_or_missing_arguments():
    with pytest.raises(InputError, match="both qid and group"):
        evaluate([0], [1], [0], group=[1])
    with pytest.raises(InputError, match="group sizes add up to 3"):
        evaluate([0, 1], [1, 2], group=[3])
    with pytest.raises(InputError, match="need doc_ids"):
        evaluate([0, 1], [1, 2], convention="trec")
    with pytest.raises(InputError, match="n_jobs"):
        evaluate([0, 1], [1, 2], n_jobs=0)


def test_ties_in_input_order_warn_when_they_carry_the_result():
    y, qid = np.tile([2, 1, 0, 0], 20), np.repeat(np.arange(20), 4)
    flat, good = np.zeros(80), np.tile([4.0, 3, 2, 1], 20)
    with pytest.warns(DataWarning, match="in 20 of 20 queries") as caught:
        evaluate(y, flat, qid, convention="letor4", measures=["map", "p@2", "ndcg@2"])
    assert len(caught) == 1
    assert caught[0].filename == __file__
    one_in_ten = np.where(qid < 2, flat, good)
    with pytest.warns(DataWarning, match="in 2 of 20"):
        evaluate(y, one_in_ten, qid, convention="letor4")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        evaluate(y, np.where(qid < 1, flat, good), qid, convention="letor4")  # one in twenty
        evaluate(y, flat, qid, convention="letor4", ties="average")
        evaluate(y, flat, qid, convention="letor4", measures="auc,all_pairs_error")
        evaluate(np.ones(80), flat, qid, convention="letor4")  # nothing to leak
        # ties at the bottom of the list are common and harmless
        evaluate(y, np.tile([4.0, 3, 0, 0], 20), qid, convention="letor4")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("ndgc@10", "'ndgc@10' is not known: choose from ndcg"),
        ("ndcg@", "is not known"),
        ("ndcg@-1", "is not known"),
        ("ndcg@0", "must be 1 or more"),
        ("p", "needs a cut-off"),
        ("auc@3", "takes no cut-off"),
        ("ndcg(rel=2)", "no option 'rel'"),
        ("map(max=2)", "no option 'max'"),
        ("map(rel=)", "is not known"),
        ("map(rel=1.2.3)", "not a finite number"),
        ("map(rel=1e999)", "not a finite number"),
        ("", "is not known"),
        ("map rel=2", "is not known"),
        (["map"], "is not a name"),
        (7, "is not a name"),
    ],
)
def test_measures_that_do_not_exist(name, words):
    with pytest.raises(InputError, match=words):
        evaluate([0, 1], [1, 2], measures=[name])


@pytest.mark.parametrize(
    ("convention", "remedy"),
    [
        ("letro4", "did you mean 'letor4'"),
        *((other, "choose from letor3, letor4, lightgbm") for other in ([], 7, None)),
    ],
)
def test_conventions_that_do_not_exist(convention, remedy):
    with pytest.raises(InputError, match=rf"convention=.* is not known: {remedy}"):
        evaluate([0, 1], [1, 2], convention=convention)


def test_measures_as_they_may_be_written():
    found = evaluate([0, 1], [1, 2], measures="NDCG@10 ,map(rel=1e0),map,map")
    assert list(found.means) == ["NDCG@10", "map(rel=1e0)", "map"]
    assert parse_measures(Measure.parse("p@3"))[0].k == 3
    with pytest.raises(InputError, match="no measure"):
        evaluate([0, 1], [1, 2], measures=[])
    with pytest.raises(InputError, match="allows labels up to 1"):
        evaluate([0, 2], [1, 2], measures="err(max=1)")


def test_percent_zero():
    assert percent_zero(np.array([0.0, -0.0, 1e-300, 2])) == 50
    assert percent_zero(np.zeros(4)) == 100
    with pytest.raises(InputError, match="w is empty"):
        percent_zero([])


def test_importing_loads_nothing_heavy():
    code = (
        "import sys, leanrank.metrics as m; m.evaluate, m.compare, m.load_run, m.evaluate_run;"
        "print([p for p in ('numba', 'scipy', 'sklearn', 'pandas') if p in sys.modules])"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(st.integers(0, 3), st.integers(-3, 3), st.integers(0, 2)), min_size=1))
def test_what_holds_for_every_ranking(rows):
    y, scores, qid = map(list, zip(*rows, strict=True))
    found = evaluate(y, scores, qid, measures=EVERYTHING).per_query
    unit = [name for name in EVERYTHING if name != "dcg@5"]
    for name in unit:
        values = found[name][~np.isnan(found[name])]
        low = -1 if "tau" in name else 0
        assert ((values >= low - 1e-12) & (values <= 1 + 1e-12)).all(), name
    np.testing.assert_allclose(found["joachims_tau"], 1 - 2 * found["all_pairs_error"], atol=1e-12)
    shifted = evaluate(y, [2 * s + 7 for s in scores], qid, measures=EVERYTHING).per_query
    reversed_rows = evaluate(y[::-1], scores[::-1], qid[::-1], measures=EVERYTHING)
    place = {q: at for at, q in enumerate(reversed_rows.query_ids.tolist())}
    back = [place[q] for q in dict.fromkeys(qid)]
    worst = evaluate(y, scores, qid, measures=EVERYTHING, ties="pessimistic").per_query
    for name in EVERYTHING:
        np.testing.assert_array_equal(found[name], shifted[name])
        # averaged over orders, the order of the rows does not matter
        np.testing.assert_allclose(reversed_rows.per_query[name][back], found[name], atol=1e-12)
        slack = worst[name] - found[name]
        assert not (slack > 1e-12).any(), name
