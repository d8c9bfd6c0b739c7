"""Cross-validation by query: against loops written out, for every ranker, and its choices."""

import warnings

import numpy as np
import pytest
from scipy import sparse
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GroupShuffleSplit

from leanrank.data import RankingData, make_ranking
from leanrank.errors import InputError
from leanrank.metrics import evaluate
from leanrank.rankers import (
    RANKERS,
    DominationRanker,
    FenchelRank,
    GreedyRankRLS,
    RankRLS,
    RankSVM,
    get_ranker,
)
from leanrank.selection import CrossValidation, QueryKFold, cross_validate_path
from papers.public_sets import fetch

ALPHAS = (0.3, 0.1, 0.03)
QUICK = {
    "lcra": {"epochs": 1, "n_steps": 200},
    "rsrank": {"epochs": 2},
    "spd": {"epochs": 2},
    "minbatsrank": {"epochs": 2},
    "pamir": {"epochs": 2},
    "rankboost": {"n_rounds": 5},
    "adarank": {"n_rounds": 5},
    "greedyrankrls": {"n_features_to_select": 3},
    "rankrlscv": {"alphas": (1.0, 0.1)},
    "lean": {"n_folds": 2, "n_strengths": 4, "max_pairs": 0},
}
"""Settings that make a ranker fast; what it learns does not matter here."""


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=24, docs_per_query=12, n_features=8, random_state=0)


@pytest.mark.parametrize("name", sorted(RANKERS))
def test_every_path_by_a_loop_or_a_sentence(name, data):
    """Every model of a path is what a fit at its parameters gives, in any number of threads."""
    ranker = get_ranker(name)(**QUICK.get(name, {}))
    known = ranker.get_params()
    if not (hasattr(ranker, "path") and "alpha" in known):
        with pytest.raises(InputError, match="has no path: use scikit-learn's GridSearchCV"):
            cross_validate_path(ranker, data)
        return
    if "tol" in known:
        ranker.set_params(tol=1e-8)
    how = {"alphas": ALPHAS, "cv": 3, "measures": ["map", "ndcg@5"]}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = cross_validate_path(ranker, data, **how)
        threads = cross_validate_path(ranker, data, n_jobs=3, **how)
    for measure in ("map", "ndcg@5"):
        assert np.array_equal(found.fold_means[measure], threads.fold_means[measure])
        assert found.fold_means[measure].shape == (3, len(found.parameters))
    assert np.array_equal(found.n_features, threads.n_features)
    assert found.alphas.tolist() == list(ALPHAS)
    if name == "nonconvex":  # where a start elsewhere may end elsewhere
        return
    train, test = list(QueryKFold(3).split(data))[1]
    inside = np.isin(data.query_ids, data.qid[test])
    for at, parameters in enumerate(found.parameters):
        fitted = clone(ranker).set_params(**parameters)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            fitted.fit(data.X[train], data.y[train], qid=data.qid[train])
        scores = fitted.predict(data.X[test])
        judged = evaluate(data.y[test], scores, data.qid[test], measures="ndcg@5", ties="average")
        assert found.fold_means["ndcg@5"][1, at] == pytest.approx(judged["ndcg@5"], abs=6e-3)
        assert np.nanmean(found.per_query["ndcg@5"][at, inside]) == pytest.approx(
            judged["ndcg@5"], abs=6e-3
        )
    assert found.refit(data).predict(data).shape == data.y.shape


def test_default_strengths(data):
    lasso = cross_validate_path(DominationRanker(), data, n_alphas=5, cv=3)
    top = DominationRanker().alpha_max(data)
    assert lasso.alphas == pytest.approx(top * np.logspace(0, -3, 5))
    for ridge in (RankRLS(), RankSVM(l1_ratio=0.0)):
        found = cross_validate_path(ridge, data, n_alphas=9, cv=3)
        assert found.alphas == pytest.approx(np.logspace(2, -6, 9))
    with pytest.raises(InputError, match="n_alphas"):
        cross_validate_path(DominationRanker(), data, n_alphas=0)
    constant = RankingData(np.zeros((6, 2)), [0, 1, 2, 0, 1, 2], [1, 1, 1, 2, 2, 2])
    with pytest.raises(InputError, match="no penalised feature enters"):
        cross_validate_path(DominationRanker(), constant, cv=2)


def test_rows_in_any_order_sparse_or_single_precision(data):
    order = np.random.default_rng(1).permutation(len(data))
    first = [data.qid[order][0]]
    shuffled = cross_validate_path(
        RankRLS(), data.X[order], data.y[order], data.qid[order], alphas=ALPHAS, cv=3
    )
    regrouped = RankingData(data.X[order], data.y[order], data.qid[order])
    assert shuffled.query_ids[0] == first
    same = cross_validate_path(RankRLS(), regrouped, alphas=ALPHAS, cv=3)
    thin = regrouped.replace(X=sparse.csr_array(regrouped.X))
    single = regrouped.replace(X=regrouped.X.astype(np.float32))
    assert np.array_equal(same.fold_means["ndcg@10"], shuffled.fold_means["ndcg@10"])
    for other in (thin, single):
        found = cross_validate_path(RankRLS(), other, alphas=ALPHAS, cv=3)
        assert found.fold_means["ndcg@10"] == pytest.approx(same.fold_means["ndcg@10"], abs=1e-6)


def test_own_row_numbers_and_weights(data):
    order = np.random.default_rng(1).permutation(len(data))
    X, y, qid = data.X[order], data.y[order], data.qid[order]
    rows = list(QueryKFold(3).split(X, y, qid))
    given = cross_validate_path(RankRLS(), X, y, qid, alphas=ALPHAS, cv=rows)
    dealt = cross_validate_path(RankRLS(), X, y, qid, alphas=ALPHAS, cv=3)
    assert np.array_equal(given.fold_means["ndcg@10"], dealt.fold_means["ndcg@10"])
    weight = np.random.default_rng(0).uniform(0.1, 9, len(y))
    heavy = cross_validate_path(RankRLS(), X, y, qid, alphas=ALPHAS, cv=3, sample_weight=weight)
    train, test = rows[0]
    fitted = RankRLS(0.1).fit(X[train], y[train], qid[train], sample_weight=weight[train])
    expected = fitted.score(X[test], y[test], qid=qid[test])
    assert heavy.fold_means["ndcg@10"][0, 1] == pytest.approx(expected)
    assert expected != pytest.approx(dealt.fold_means["ndcg@10"][0, 1], abs=1e-6)


def made(values, sizes, *, n_splits=None, measure="ndcg@10"):
    """Make a result by hand; values and sizes of shape (folds, models)."""
    values, sizes = np.array(values, float), np.array(sizes)
    names = [{"alpha": 1.0 / (k + 1)} for k in range(values.shape[1])]
    return CrossValidation(
        RankRLS(),
        names,
        {measure: values},
        {measure: values.T},
        sizes,
        np.arange(len(values)),
        n_splits or len(values),
        "standard",
    )


def test_means_errors_and_choices():
    values = [[0.30, 0.50, 0.60, 0.58], [0.30, 0.56, 0.62, 0.62], [0.30, 0.44, 0.55, 0.60]]
    sizes = [[0, 2, 5, 9], [1, 2, 5, 9], [1, 2, 5, 9]]
    found = made(values, sizes)
    assert found.means["ndcg@10"] == pytest.approx([0.3, 0.5, 0.59, 0.6])
    error = np.std(values, axis=0, ddof=1) / np.sqrt(3)
    assert found.standard_errors["ndcg@10"] == pytest.approx(error)
    assert error[3] == pytest.approx(0.011547, abs=1e-6)  # so 0.59 is within, 0.5 is not
    assert found.best() == 3
    assert found.one_standard_error() == 2
    assert found.best_alpha == 0.25
    assert found.one_standard_error_alpha == pytest.approx(1 / 3)
    assert found.choose("1se") == found.parameters[2]
    assert "1 s.e." in repr(found)
    with pytest.raises(InputError, match="rule='first'"):
        found.choose("first")
    with pytest.raises(InputError, match="'map' was not measured"):
        found.best("map")


def test_a_model_that_is_empty_or_diverged_in_a_fold_is_never_chosen():
    found = made([[0.9, 0.5, np.nan], [0.9, 0.5, 0.9]], [[0, 3, 4], [1, 3, 4]])
    assert found.best() == found.one_standard_error() == 1
    assert np.isnan(found.means["ndcg@10"][2])
    hopeless = made([[0.9], [0.9]], [[0], [0]])
    with pytest.raises(InputError, match="no model ranks anything in every fold"):
        hopeless.best()


def test_a_fold_without_defined_queries_is_left_out():
    found = made([[0.4, 0.6], [np.nan, np.nan], [0.6, 0.8]], np.ones((3, 2), int))
    assert found.means["ndcg@10"] == pytest.approx([0.5, 0.7])
    alone = made([[0.4, 0.6]], [[2, 1]])
    assert np.isnan(alone.standard_errors["ndcg@10"]).all()
    assert alone.one_standard_error() == alone.best() == 1


def test_equals_go_to_the_sparser_and_errors_go_down():
    found = made([[0.5, 0.5, 0.2], [0.7, 0.7, 0.2]], [[6, 4, 1], [6, 4, 1]])
    assert found.best() == 1
    assert found.one_standard_error() == 0
    wrong = made(
        [[0.2, 0.1, 0.4], [0.2, 0.1, 0.4]], [[1, 9, 1], [1, 9, 1]], measure="all_pairs_error"
    )
    assert wrong.best() == 1


def test_repetitions_do_not_shrink_the_error(data):
    def validated(cv):
        return cross_validate_path(RankRLS(), data, alphas=[1.0], cv=cv)

    once, often = validated(4), validated(QueryKFold(4, n_repeats=3))
    assert once.n_splits == often.n_splits == 4
    values = often.fold_means["ndcg@10"][:, 0]
    assert len(values) == 12
    assert often.standard_errors["ndcg@10"][0] == pytest.approx(values.std(ddof=1) / 2)
    assert not np.isnan(often.per_query["ndcg@10"]).any()
    some = validated(GroupShuffleSplit(2, test_size=0.25, random_state=0))
    assert 12 <= np.isnan(some.per_query["ndcg@10"]).sum() <= 18


def test_ties_do_not_follow_the_file():
    """Labels descend in the file: in input order the empty model would be perfect."""
    y = np.tile([2.0, 1, 0, 0], 8)
    X = np.random.default_rng(0).normal(size=(32, 2))
    data = RankingData(X, y, np.repeat(np.arange(8), 4))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = cross_validate_path(
            DominationRanker(), data, alphas=(100.0, 0.01), cv=2, convention="letor4"
        )
    assert found.n_features[:, 0].tolist() == [0, 0]
    assert np.isnan(found.means["ndcg@10"][0])  # it ranks nothing
    assert found.best() == 1


def test_one_warning_for_all_fits(data):
    hasty = DominationRanker(tol=1e-12, max_iter=2)
    with pytest.warns(ConvergenceWarning, match="3 of 3 fits did not converge") as caught:
        cross_validate_path(hasty, data, alphas=[0.001], cv=3)
    assert len(caught) == 1
    assert caught[0].filename == __file__


def test_a_ranker_without_a_path_of_strengths(data):
    for ranker in (FenchelRank(), GreedyRankRLS()):
        with pytest.raises(InputError, match=f"{type(ranker).__name__} has no path"):
            cross_validate_path(ranker, data)


def test_data_frames(data):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(data.X, columns=[f"f{j}" for j in range(8)])
    found = cross_validate_path(
        RankRLS(), frame, pandas.Series(data.y), pandas.Series(data.qid), alphas=ALPHAS, cv=3
    )
    plain = cross_validate_path(RankRLS(), data, alphas=ALPHAS, cv=3)
    assert np.array_equal(found.fold_means["ndcg@10"], plain.fold_means["ndcg@10"])
    assert found.refit(frame, data.y, data.qid).feature_names_in_[0] == "f0"


@pytest.mark.realdata
def test_one_standard_error_on_a_public_set(data_dir):
    """A few features do as well as many, as far as these queries can tell; and so on the test."""
    train, _, test = fetch("MQ2008", data_dir=data_dir, download=False).fold(1)
    ranker = DominationRanker(tol=1e-4)
    found = cross_validate_path(
        ranker, train, n_alphas=20, measures=["map"], convention="letor4", n_jobs=2
    )
    best, sparse_one = found.refit(train), found.refit(train, rule="1se")
    n_best, n_sparse = (np.count_nonzero(r.coef_) for r in (best, sparse_one))
    assert n_sparse < n_best <= 46
    values = [
        evaluate(test, r.predict(test), measures="map", convention="letor4")["map"]
        for r in (best, sparse_one)
    ]
    assert values[1] > values[0] - 0.05


def test_a_choice_goes_by_a_measure_of_its_own(data):
    found = cross_validate_path(DominationRanker(), data, cv=3, n_alphas=8, choose_by="loss")
    assert found.measures == ("loss", "ndcg@10")
    assert found.means["loss"][found.best()] == found.means["loss"][1:].min()
    assert found.best() == found.best("loss")
