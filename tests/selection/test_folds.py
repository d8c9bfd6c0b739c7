"""Folds of whole queries: by themselves, and in scikit-learn's own searches."""

import numpy as np
import pytest
import sklearn
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    GroupShuffleSplit,
    KFold,
    cross_val_predict,
    cross_val_score,
    cross_validate,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leanrank.data import QueryStandardScaler, RankingData, make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.rankers import DominationRanker, RankBoost, RankRLS, RankSVM
from leanrank.selection import QueryKFold, RankingScorer, cross_validate_path
from leanrank.selection.folds import ranking_data, whole_query_folds


@pytest.fixture
def data():
    return make_ranking(n_queries=30, docs_per_query=12, n_features=6, random_state=0)


@pytest.fixture
def routing():
    with sklearn.config_context(enable_metadata_routing=True):
        yield


@given(
    sizes=st.lists(st.integers(1, 6), min_size=2, max_size=30),
    n_splits=st.integers(2, 6),
    n_repeats=st.integers(1, 3),
    stratify=st.booleans(),
    seed=st.integers(0, 5),
)
def test_every_query_is_tested_once_a_repetition(sizes, n_splits, n_repeats, stratify, seed):
    rng = np.random.default_rng(seed)
    qid = rng.permutation(np.repeat(np.arange(len(sizes)), sizes))  # rows in any order
    y = rng.integers(0, 3, len(qid))
    cv = QueryKFold(n_splits, n_repeats, stratify, seed)
    if len(sizes) < n_splits:
        with pytest.raises(InputError, match="fewer folds"):
            next(cv.split(qid, y, qid))
        return
    pairs = list(cv.split(qid[:, None], y, qid))
    assert len(pairs) == cv.get_n_splits() == n_splits * n_repeats
    for start in range(0, len(pairs), n_splits):
        tested = np.concatenate([test for _, test in pairs[start : start + n_splits]])
        assert np.array_equal(np.sort(tested), np.arange(len(qid)))
        counts = [len(np.unique(qid[test])) for _, test in pairs[start : start + n_splits]]
        assert max(counts) - min(counts) <= 1
    for train, test in pairs:
        assert not set(qid[train]) & set(qid[test])
        assert np.array_equal(np.sort(np.concatenate([train, test])), np.arange(len(qid)))


def test_folds_are_the_same_every_time_and_differ_between_repetitions_and_seeds(data):
    def tests(cv):
        return [test.tolist() for _, test in cv.split(data.X, data.y, data.qid)]

    assert tests(QueryKFold(3)) == tests(QueryKFold(3)) == tests(QueryKFold(3, random_state=0))
    assert tests(QueryKFold(3)) != tests(QueryKFold(3, random_state=1))
    twice = tests(QueryKFold(3, n_repeats=2))
    assert twice[:3] == tests(QueryKFold(3))
    assert twice[3:] != twice[:3]
    names = [f"q{q}" for q in data.qid]
    assert [t.tolist() for _, t in QueryKFold(3).split(data.X, groups=names)] == twice[:3]
    assert [t.tolist() for _, t in QueryKFold(3).split(data)] == twice[:3]
    assert [t.tolist() for _, t in QueryKFold(3).split(data.X, qid=names)] == twice[:3]


def test_stratified_folds_share_out_sizes_and_levels():
    """Ten large, ten small, ten poor and ten empty queries: each fold gets two of each."""
    sizes = np.repeat([40, 4, 20, 9], 10)
    labels = [2] * 10 + [2] * 10 + [1] * 10 + [0] * 10
    order = np.random.default_rng(0).permutation(40)
    y, qid = [], []
    for query in order:
        y += [labels[query]] + [0] * (sizes[query] - 1)
        qid += [query] * sizes[query]
    y, qid = np.array(y), np.array(qid)
    for _, test in QueryKFold(5, n_repeats=3, stratify=True).split(y, y, qid):
        found = np.bincount(np.unique(qid[test]) // 10, minlength=4)
        assert found.tolist() == [2, 2, 2, 2]
    uneven = [
        np.bincount(np.unique(qid[test]) // 10, minlength=4).tolist()
        for _, test in QueryKFold(5).split(y, y, qid)
    ]
    assert uneven.count([2, 2, 2, 2]) < 5


def test_stratified_folds_of_real_labels_and_missing_ones():
    rng = np.random.default_rng(0)
    y = rng.normal(size=200)
    y[:10] = np.nan
    qid = np.repeat(np.arange(20), 10)
    means = [np.nanmean(y[test]) for _, test in QueryKFold(4, stratify=True).split(y, y, qid)]
    assert len(means) == 4
    with pytest.raises(InputError, match="give y"):
        next(QueryKFold(4, stratify=True).split(qid, None, qid))


def test_wrong_parameters_are_refused():
    for wrong in ({"n_splits": 1}, {"n_splits": 2.5}, {"n_repeats": 0}, {"random_state": -1}):
        with pytest.raises(InputError, match=next(iter(wrong))):
            QueryKFold(**wrong)
    with pytest.raises(InputError, match="needs the query of each row"):
        next(QueryKFold().split(np.zeros((9, 1))))
    with pytest.raises(InputError, match="qid has 3 values"):
        next(QueryKFold(2).split(np.zeros((9, 1)), groups=[1, 2, 3]))
    assert repr(QueryKFold(3, stratify=True)).startswith("QueryKFold(")


RANKERS = [
    (DominationRanker(), {"alpha": [0.3, 0.03]}),
    (RankSVM(), {"alpha": [1.0, 0.01]}),
    (RankRLS(), {"alpha": [10.0, 0.01]}),
    (RankBoost(n_rounds=5), {"n_rounds": [1, 10]}),
]


@pytest.mark.parametrize(("ranker", "grid"), RANKERS, ids=lambda one: type(one).__name__)
def test_grid_search(routing, data, ranker, grid):
    """``qid`` alone reaches the ranker, its score and the splitter; rows come in any order."""
    order = np.random.default_rng(0).permutation(len(data.y))
    X, y, qid = data.X[order], data.y[order], data.qid[order]
    search = GridSearchCV(ranker, grid, cv=QueryKFold(3, stratify=True)).fit(X, y, qid=qid)
    (name, values), expected = next(iter(grid.items())), []
    for value in values:
        scores = []
        for train, test in QueryKFold(3, stratify=True).split(X, y, qid):
            fitted = sklearn.base.clone(ranker).set_params(**{name: value})
            fitted.fit(X[train], y[train], qid=qid[train])
            scores.append(fitted.score(X[test], y[test], qid=qid[test]))
        expected.append(np.mean(scores))
    assert search.cv_results_["mean_test_score"] == pytest.approx(expected)
    assert search.best_params_[name] == values[int(np.argmax(expected))]
    assert search.predict(X).shape == y.shape
    both = GridSearchCV(ranker, grid, cv=QueryKFold(3, stratify=True))
    both.fit(X, y, qid=qid, groups=qid)
    assert both.best_score_ == search.best_score_


@pytest.mark.parametrize("ranker", [RankRLS(0.1), DominationRanker(0.1)], ids=str)
def test_cross_validate_and_pipelines(routing, data, ranker):
    """Steps that scale within queries get the queries too; sparse rows are cut as dense ones."""
    pipeline = make_pipeline(StandardScaler(), QueryStandardScaler(), ranker)
    cv, params = QueryKFold(3, n_repeats=2), {"qid": data.qid}
    found = cross_validate(
        pipeline, data.X, data.y, cv=cv, params=params, scoring=RankingScorer("ndcg@10")
    )
    expected = []
    for train, test in cv.split(data.X, data.y, data.qid):
        fitted = sklearn.base.clone(pipeline)
        fitted.fit(data.X[train], data.y[train], qid=data.qid[train])
        expected.append(fitted.score(data.X[test], data.y[test], qid=data.qid[test]))
    assert found["test_score"] == pytest.approx(expected)
    assert len(set(expected)) > 1
    dense = cross_val_score(ranker, data.X, data.y, cv=cv, params=params)
    thin = cross_val_score(ranker, sparse.csr_array(data.X), data.y, cv=cv, params=params)
    assert thin == pytest.approx(dense)
    scores = cross_val_predict(ranker, data.X, data.y, cv=QueryKFold(3), params=params)
    assert scores.shape == data.y.shape
    grid = {f"{type(ranker).__name__.lower()}__alpha": [0.2, 0.02]}
    search = GridSearchCV(pipeline, grid, cv=QueryKFold(3), scoring=RankingScorer("map"))
    search.fit(data.X, data.y, qid=data.qid)
    assert search.best_score_ == max(search.cv_results_["mean_test_score"])
    judged = evaluate(data.y, search.best_estimator_.predict(data.X, qid=data.qid), data.qid)
    assert search.score(data.X, data.y, qid=data.qid) == pytest.approx(judged["map"])


def test_the_scorer(data):
    """Any measure in any convention; errors come out negative; ties follow no order of the file."""
    ranker = RankRLS(0.1).fit(data.X, data.y, qid=data.qid)
    scores = ranker.predict(data.X)
    for measure, sign in (("map", 1), ("all_pairs_error", -1)):
        value = RankingScorer(measure, "letor4")(ranker, data.X, data.y, qid=data.qid)
        expected = evaluate(data.y, scores, data.qid, measures=measure, convention="letor4")
        assert value == pytest.approx(sign * expected[measure])
    with pytest.warns(DataWarning, match="without features"):
        empty = DominationRanker(100.0).fit(data.X, data.y, qid=data.qid)
    order = np.lexsort([-data.y, data.qid])  # the best documents first
    tied = RankingScorer("map", "letor4")(empty, data.X[order], data.y[order], qid=data.qid[order])
    assert tied < 0.9
    with pytest.raises(InputError, match="needs the query of each row"):
        RankingScorer()(ranker, data.X, data.y)
    pipeline = make_pipeline(QueryStandardScaler(), RankRLS())
    pipeline.fit(data.X, data.y, rankrls__qid=data.qid, querystandardscaler__qid=data.qid)
    with pytest.raises(InputError, match="enable_metadata_routing=True"):
        RankingScorer()(pipeline, data.X, data.y, qid=data.qid)


def test_several_scorers_at_once(routing, data):
    found = cross_validate(
        RankSVM(0.1, tol=1e-8),
        data.X,
        data.y,
        cv=QueryKFold(3),
        params={"qid": data.qid},
        scoring={"map": RankingScorer("map"), "ndcg": RankingScorer("ndcg@5")},
    )
    ranker, measures = RankSVM(tol=1e-8), ["map", "ndcg@5"]
    own = cross_validate_path(ranker, data, alphas=[0.1], cv=3, measures=measures)
    assert found["test_map"] == pytest.approx(own.fold_means["map"][:, 0])
    assert found["test_ndcg"] == pytest.approx(own.fold_means["ndcg@5"][:, 0])


def test_without_routing_the_groups_are_enough(data):
    found = GridSearchCV(RankRLS(), {"alpha": [1.0, 0.1]}, cv=QueryKFold(3))
    found.fit(data.X, data.y, groups=data.qid)
    for (train, test), (own, mine) in zip(
        QueryKFold(3).split(data.X, data.y, data.qid),
        found.cv.split(data.X, data.y, data.qid),
        strict=True,
    ):
        assert np.array_equal(train, own)
        assert np.array_equal(test, mine)
    with pytest.raises(InputError, match="groups=qid"):
        GridSearchCV(RankRLS(), {"alpha": [1.0]}, cv=QueryKFold(3)).fit(data.X, data.y)


@pytest.mark.filterwarnings("ignore:The groups parameter is ignored")
def test_other_splitters_give_whole_queries_or_an_error(data):
    folds = whole_query_folds(data, GroupKFold(3))
    assert np.array_equal(sum(fold.test.astype(int) for fold in folds), np.ones(30))
    half = whole_query_folds(data, GroupShuffleSplit(4, test_size=0.5, random_state=0))
    assert [fold.test.sum() for fold in half] == [15] * 4
    with pytest.raises(InputError, match="documents of the query"):
        whole_query_folds(data, KFold(7))
    with pytest.raises(InputError, match="others to test"):
        whole_query_folds(data, [(np.arange(24), np.arange(12))])
    with pytest.raises(InputError, match="to train on"):
        whole_query_folds(data, [(np.arange(24), np.arange(0))])
    with pytest.raises(InputError, match="no fold"):
        whole_query_folds(data, [])


def test_rows_are_counted_as_the_caller_counts_them():
    X, y, qid = np.arange(6.0)[:, None], [0, 1, 0, 1, 1, 0], ["b", "a", "b", "a", "c", "c"]
    data = RankingData(X, y, qid)
    folds = whole_query_folds(data, [([1, 3, 4, 5], [0, 2])], rows_of=X)
    assert data.query_ids[folds[0].test].tolist() == ["b"]
    grouped = whole_query_folds(data, [([2, 3, 4, 5], [0, 1])])
    assert data.query_ids[grouped[0].test].tolist() == ["b"]


def test_what_cannot_be_shared_out_is_refused(data):
    kept = ranking_data(RankSVM(), data.X, data.y, data.qid, sample_weight=np.ones(len(data)))
    assert kept.sample_weight is not None
    with pytest.raises(InputError, match="'preferences' cannot be divided"):
        ranking_data(RankSVM(), data.X, data.y, data.qid, preferences=([0], [1]))
