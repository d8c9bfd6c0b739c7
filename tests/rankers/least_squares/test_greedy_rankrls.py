from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn import config_context
from sklearn.pipeline import make_pipeline

from leanrank import make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.rankers import GreedyRankRLS, RankRLS


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_features=12, n_informative=4, random_state=5)


def test_every_size_from_one_fit(data):
    ranker = GreedyRankRLS(6, alpha=0.02).fit(data)
    assert ranker.coef_path_.shape == (6, 12)
    for k in range(1, 7):
        coef = ranker.coef_path_[k - 1]
        assert set(np.flatnonzero(coef)) == set(ranker.selected_[:k])
        alone = RankRLS(0.02).fit(data.X[:, ranker.selected_[:k]], data.y, data.qid)
        assert np.allclose(coef[ranker.selected_[:k]], alone.coef_)
    assert np.array_equal(ranker.coef_, ranker.coef_path_[-1])
    ranker.resize(2)
    assert ranker.selected_.tolist() == ranker.subsets_[1].tolist()
    assert np.count_nonzero(ranker.coef_) == 2
    assert ranker.transform(data.X).shape[1] == 2


@pytest.mark.parametrize("options", [{"memory": "low"}, {"n_jobs": 2}])
@pytest.mark.parametrize("sparse", [False, True])
def test_variants_choose_the_same(data, options, sparse):
    plain = GreedyRankRLS(8, alpha=0.01).fit(data)
    X = csr_array(data.X) if sparse else data.X
    other = GreedyRankRLS(8, alpha=0.01, **options).fit(X, data.y, data.qid)
    assert other.selected_.tolist() == plain.selected_.tolist()
    assert np.allclose(other.criterion_path_, plain.criterion_path_, rtol=1e-9)
    assert np.allclose(other.coef_path_, plain.coef_path_, atol=1e-10)


def left_out(ranker, data):
    """Score documents by RankRLS on the other queries, for the features of every size."""
    plain = RankRLS(ranker.alpha, normalize=ranker.normalize)
    return np.vstack(
        [plain.leave_query_out(data.X[:, s], data.y, data.qid) for s in ranker.subsets_]
    )


def test_the_criterion_is_that_of_the_leave_query_out_scores(data):
    for options in ({}, {"fitting": "back"}):
        ranker = GreedyRankRLS(5, alpha=2.0, normalize="none", **options).fit(data)
        for row, criterion in zip(left_out(ranker, data), ranker.criterion_path_, strict=True):
            away = row - data.y
            away = away - np.array([away[data.qid == q].mean() for q in data.qid])
            assert away @ away == pytest.approx(criterion, rel=1e-9)


def test_auto_by_the_criterion(data):
    ranker = GreedyRankRLS(alpha=0.01, max_features=9).fit(data)
    assert len(ranker.subsets_) == 9
    assert len(ranker.selected_) == int(np.argmin(ranker.criterion_path_)) + 1
    assert np.allclose(-ranker.select_path_.sum(axis=1), ranker.criterion_path_)
    fewer = GreedyRankRLS(alpha=0.01, max_features=9, rule="1se").fit(data)
    assert len(fewer.selected_) <= len(ranker.selected_)


def test_a_size_by_validation(data):
    held_out = make_ranking(n_queries=30, n_features=12, n_informative=4, random_state=6)
    ranker = GreedyRankRLS(12, alpha=0.01).fit(data)
    values = ranker.measure_path(held_out, measure="ndcg@10")
    assert values[4] == pytest.approx(ranker.resize(5).score(held_out))
    assert np.array_equal(
        values, ranker.measure_path(held_out.X, held_out.y, held_out.qid, measure="ndcg@10")
    )


def test_before_another_ranker(data):
    with config_context(enable_metadata_routing=True):
        line = make_pipeline(GreedyRankRLS(3, alpha=0.01), RankRLS(0.5))
        line.fit(data.X, data.y, qid=data.qid)
        chosen = line[0].get_support(indices=True)
        alone = RankRLS(0.5).fit(data.X[:, chosen], data.y, data.qid)
        assert np.allclose(line[-1].coef_, alone.coef_)
        assert line.score(data.X, data.y, qid=data.qid) > 0.5
    names = line[0].get_feature_names_out()
    assert names.tolist() == [f"x{i}" for i in chosen]


def test_random_candidates_are_repeatable(data):
    runs = [
        GreedyRankRLS(5, candidates=3, random_state=seed).fit(data).selected_.tolist()
        for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1] != runs[2]
    low = GreedyRankRLS(5, candidates=3, random_state=0, memory="low").fit(data)
    assert low.selected_.tolist() == runs[0]


def test_constant_features_that_are_taken_get_no_weight(data):
    X = np.column_stack([np.full(len(data), 0.3), data.X[:, :2], data.qid % 5])
    ranker = GreedyRankRLS(4).fit(X, data.y, data.qid)
    assert ranker.coef_[0] == ranker.coef_[3] == 0


def test_nothing_but_constant_features(data):
    X = np.column_stack([data.qid % 5, np.full(len(data), 0.1)])
    for options in ({}, {"memory": "low"}, {"fitting": "back"}):
        with pytest.warns(
            DataWarning, match="every score is 0: lower alpha or give features that differ"
        ):
            ranker = GreedyRankRLS(2, **options).fit(X, data.y, data.qid)
        assert not ranker.coef_.any()


def test_transforming_ranking_data(data):
    ranker = GreedyRankRLS(3, alpha=0.01).fit(data)
    kept = ranker.transform(data)
    assert np.array_equal(kept.X, ranker.transform(data.X))
    assert np.array_equal(kept.qid, data.qid)
    with pytest.raises(InputError, match="expecting 12 features"):
        ranker.transform(kept)


@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1.0, 1e12])
@pytest.mark.parametrize("options", [{}, {"memory": "low"}, {"fitting": "back"}])
def test_weights_as_exact_as_a_direct_solution(data, alpha, options):
    rng = np.random.default_rng(0)
    X = np.column_stack([data.X, data.X[:, 0], data.X[:, 1] + data.X[:, 2], rng.random(len(data))])
    ranker = GreedyRankRLS(15, alpha=alpha, normalize="none", **options).fit(X, data.y, data.qid)
    centred = X - np.array([X[data.qid == q].mean(axis=0) for q in data.qid])
    target = data.y - np.array([data.y[data.qid == q].mean() for q in data.qid])
    U, s, Vt = np.linalg.svd(centred, full_matrices=False)
    real = s > 1e-10 * s[0]
    exact = Vt[real].T @ (s[real] / (s[real] ** 2 + alpha) * (U[:, real].T @ target))
    # what the data say nothing about is decided by rounding where alpha is as small as that
    fitted = centred @ ranker.coef_
    assert np.allclose(fitted, centred @ exact, rtol=1e-8, atol=1e-10 * np.abs(fitted).max())
    if alpha >= 1e-6:
        assert np.allclose(ranker.coef_, exact, rtol=1e-5, atol=1e-6 * np.abs(exact).max())


def test_one_query_is_chosen_for_by_training(data):
    with pytest.warns(DataWarning, match="training error"):
        ranker = GreedyRankRLS(3, alpha=0.01).fit(data.X, data.y, np.zeros(len(data)))
    correlation = [abs(np.corrcoef(data.X[:, i], data.y)[0, 1]) for i in range(12)]
    assert ranker.selected_[0] == int(np.argmax(correlation))


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"n_features_to_select": 13}, "more than the 12 features"),
        ({"n_features_to_select": 0}, "n_features_to_select=0"),
        ({"n_features_to_select": 2.5}, "n_features_to_select=2.5"),
        ({"alpha": 0}, "alpha=0"),
        ({"memory": "none"}, "memory='none'"),
        ({"rule": "2se"}, "rule='2se'"),
        ({"candidates": 0}, "candidates=0"),
    ],
)
def test_bad_parameters(data, options, words):
    with pytest.raises(InputError, match=words):
        GreedyRankRLS(**options).fit(data)


def test_bad_sizes(data):
    ranker = GreedyRankRLS(3).fit(data)
    for size in (0, 4, True, 1.5):
        with pytest.raises(InputError, match="sizes from 1 to 3"):
            ranker.resize(size)


def test_auto_by_a_measure(data):
    ranker = GreedyRankRLS(alpha=0.01, select_by="ndcg@10").fit(data)
    scores = left_out(ranker, data)
    means = [evaluate(data, s, measures="ndcg@10").means["ndcg@10"] for s in scores]
    assert np.allclose(np.nanmean(ranker.select_path_, axis=1), means)
    assert ranker.n_features_to_select_ == int(np.argmax(means)) + 1 == len(ranker.selected_)
    fewer = GreedyRankRLS(alpha=0.01, select_by="ndcg@10", rule="1se").fit(data)
    assert len(fewer.selected_) <= len(ranker.selected_)
