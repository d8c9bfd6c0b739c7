"""RankSVM against scikit-learn on explicit pairs, and what it promises."""

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.svm import LinearSVC
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import RankingData, make_ranking
from leanrank.checks import check_ranker
from leanrank.errors import InputError
from leanrank.rankers import DominationRanker, GreedyRankRLS, RankRLS, RankSVM


@parametrize_with_checks(
    [RankSVM(), RankSVM(0.1, 1.0, margin="scaled"), RankSVM(0.1, loss="hinge", tol=1e-3)]
)
def test_scikit_learn_is_satisfied(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    "ranker", [RankSVM(), RankSVM(l1_ratio=1.0, importance="ndcg")], ids=["l2", "l1"]
)
def test_the_battery_of_rankers(ranker):
    check_ranker(ranker)


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=12, n_features=8, n_informative=3, docs_per_query=15, random_state=1
    )


def pairs_of(y, qid):
    i, j = np.nonzero((y[:, None] > y) & (qid[:, None] == qid))
    return i, j


def as_classes(X, i, j):
    """Differences of pairs, every other one turned round: two classes, as LinearSVC needs."""
    sign = np.where(np.arange(len(i)) % 2, -1.0, 1.0)
    return (X[i] - X[j]) * sign[:, None], sign


@pytest.mark.filterwarnings("ignore:Liblinear failed to converge")
@pytest.mark.parametrize("alpha", [0.5, 5.0, 100.0])
@pytest.mark.parametrize(("l1_ratio", "penalty"), [(0.0, "l2"), (1.0, "l1")])
def test_the_optimum_is_that_of_linear_svc_on_explicit_pairs(data, alpha, l1_ratio, penalty):
    i, j = pairs_of(data.y, data.qid)
    peer = LinearSVC(
        penalty=penalty,
        loss="squared_hinge",
        dual=False,
        C=1 / alpha,
        fit_intercept=False,
        tol=1e-12,
        max_iter=100_000,
        random_state=0,  # with a few seeds its ℓ1 solver stops short
    ).fit(*as_classes(data.X, i, j))
    ranker = RankSVM(alpha, l1_ratio, normalize="none", tol=1e-12)
    ranker.fit(data.X, data.y, qid=data.qid)
    np.testing.assert_allclose(ranker.coef_, peer.coef_[0], rtol=1e-4, atol=1e-6)
    from_edges = clone(ranker).fit(data.X, qid=data.qid, preferences=(i, j))
    np.testing.assert_allclose(from_edges.coef_, peer.coef_[0], rtol=1e-4, atol=1e-6)


def test_the_hinge_is_that_of_linear_svc_too(data):
    i, j = pairs_of(data.y, data.qid)
    Z, sign = as_classes(data.X, i, j)
    peer = LinearSVC(
        loss="hinge", C=0.05, fit_intercept=False, tol=1e-9, max_iter=500_000, random_state=0
    ).fit(Z, sign)
    objective = 10 * (peer.coef_[0] @ peer.coef_[0])
    objective += np.maximum(0, 1 - sign * (Z @ peer.coef_[0])).sum()
    for solver, tol in ((None, 1e-6), ("struct", 1e-3)):
        ranker = RankSVM(20.0, loss="hinge", solver=solver, normalize="none", tol=tol)
        ranker.fit(data.X, data.y, qid=data.qid)
        assert ranker.dual_gap_ <= tol
        assert ranker.objective_ == pytest.approx(objective, rel=2 * tol)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("margin", [None, "scaled"])
@pytest.mark.parametrize("importance", [None, "ndcg"])
@pytest.mark.parametrize("form", ["dense", "sparse", "float32"])
def test_every_form_is_certified(data, l1_ratio, margin, importance, form):
    X = {"dense": data.X, "sparse": sp.csr_array(data.X), "float32": data.X.astype(np.float32)}
    ranker = RankSVM(0.01, l1_ratio, margin=margin, importance=importance)
    ranker.fit(X[form], data.y, qid=data.qid)
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.score(X[form], data.y, qid=data.qid) > 0.8


def test_scaled_margins_are_differences_of_labels(data):
    i, j = pairs_of(data.y, data.qid)
    ranker = RankSVM(3.0, margin="scaled", margin_scale=0.5, normalize="none", tol=1e-12)
    w = ranker.fit(data.X, data.y, qid=data.qid).coef_
    missing = np.maximum(0, 0.5 * (data.y[i] - data.y[j]) - (data.X[i] - data.X[j]) @ w)
    gradient = -2 * missing @ (data.X[i] - data.X[j]) + 3.0 * w
    np.testing.assert_allclose(gradient, 0, atol=1e-5 * missing.sum())
    assert ranker.objective_ == pytest.approx(missing @ missing + 1.5 * w @ w)


def test_importance_weighs_pairs(data):
    i, j = pairs_of(data.y, data.qid)
    table = np.random.default_rng(0).random((len(data.levels), len(data.levels)))
    at = np.searchsorted(data.levels, data.y)
    ranker = RankSVM(3.0, importance=table, normalize="none", tol=1e-12)
    labelled = ranker.fit(data.X, data.y, qid=data.qid).coef_
    listed = (
        RankSVM(3.0, normalize="none", tol=1e-12)
        .fit(data.X, qid=data.qid, preferences=(i, j, table[at[i], at[j]]))
        .coef_
    )
    np.testing.assert_allclose(labelled, listed, rtol=1e-5, atol=1e-8)


def test_the_solvers_agree(data):
    X, y, qid = data.X, data.y, data.qid
    newton = RankSVM(0.1, tol=1e-10).fit(X, y, qid=qid)
    planes = RankSVM(0.1, solver="cutting-plane", tol=1e-5).fit(X, y, qid=qid)
    assert planes.objective_ == pytest.approx(newton.objective_, rel=1e-5)


def test_a_path_and_its_models(data):
    path = RankSVM(l1_ratio=1.0).path(data.X, data.y, qid=data.qid, n_alphas=6)
    assert (path.dual_gaps <= 1e-6).all()
    assert path.n_selected[0] <= 1 < path.n_selected[-1]
    one = RankSVM(path.alphas[3], 1.0).fit(data.X, data.y, qid=data.qid)
    assert one.objective_ == pytest.approx(path.objectives[3], rel=2e-6)


def test_threads_do_not_change_a_bit(data):
    fits = [RankSVM(0.01, 0.5, n_jobs=n).fit(data.X, data.y, qid=data.qid) for n in (1, 2, 3)]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
    assert np.array_equal(fits[0].coef_, fits[2].coef_)


class TestPreferences:
    def test_rows_are_in_the_callers_order(self, data):
        rng = np.random.default_rng(0)
        shuffled = rng.permutation(len(data))
        X, y, qid = data.X[shuffled], data.y[shuffled], data.qid[shuffled]
        i, j = pairs_of(y, qid)
        weight = rng.random(len(i))
        ranker = RankSVM(1.0, normalize="none", tol=1e-10)
        w = ranker.fit(X, qid=qid, preferences=(i, j, weight)).coef_
        missing = weight * np.maximum(0, 1 - (X[i] - X[j]) @ w)
        np.testing.assert_allclose(-2 * missing @ (X[i] - X[j]) + w, 0, atol=1e-4)
        assert ranker.n_queries_ == ranker.n_informative_queries_ == 12

    def test_a_ranking_data_has_rows_of_its_own(self, data):
        i, j = pairs_of(data.y, data.qid)
        unlabelled = RankingData(data.X, qid=data.qid)
        ranker = RankSVM().fit(unlabelled, preferences=(i, j))
        expected = RankSVM().fit(data.X, data.y, qid=data.qid).coef_
        np.testing.assert_allclose(ranker.coef_, expected, rtol=1e-3, atol=1e-5)

    def test_normalize_counts_preferences(self, data):
        i, j = pairs_of(data.y, data.qid)
        for normalize in ("query", "term"):
            ranker = RankSVM(0.1, normalize=normalize, tol=1e-10)
            labelled = ranker.fit(data.X, data.y, qid=data.qid).coef_
            listed = ranker.fit(data.X, qid=data.qid, preferences=(i, j)).coef_
            np.testing.assert_allclose(listed, labelled, rtol=1e-5, atol=1e-8)

    def test_preferences_without_queries_are_one_query(self, data):
        ranker = RankSVM(0.1).fit(data.X, preferences=([0, 40], [40, 80]))
        assert ranker.n_queries_ == 1
        scores = ranker.predict(data.X)
        assert scores[0] > scores[40] > scores[80]

    def test_hinge_and_path_take_them(self, data):
        i, j = pairs_of(data.y, data.qid)
        assert RankSVM(loss="hinge").fit(data.X, qid=data.qid, preferences=(i, j)).dual_gap_ < 1e-6
        path = RankSVM().path(data.X, qid=data.qid, preferences=(i, j), alphas=[1.0, 0.1])
        assert (path.dual_gaps <= 1e-6).all()

    @pytest.mark.parametrize(
        ("preferences", "complaint"),
        [
            (([0], [180]), "preference 0 puts document 0 above 180.* 0 to 179"),
            (([0, -1], [1, 2]), "preference 1 puts document -1"),
            (([0, 3], [1, 3]), "preference 1 puts document 3 above 3"),
            (([0, 0], [1, 15]), "preference 1 puts document 0 above 15"),
            (([0, 1], [1, 2], [1.0, -2.0]), "weight in preferences is -2.0"),
            (([0, 1], [1, 2], [0.0, 0.0]), "preferences is empty"),
            (([0, 1], [1, 2], [1.0]), "weight in preferences has 1 values but there are 2"),
            (([0, 1], [1, 2], ["a", "b"]), "not a number"),
            (([0, 1], [1]), "equally many row numbers"),
            (([], []), "equally many row numbers"),
            (([0.5], [1.0]), "equally many row numbers"),
            (([[0]], [[1]]), "equally many row numbers"),
            (np.array([[0, 1]]), "preferences must be a tuple"),
            (([0],), "preferences must be a tuple"),
        ],
    )
    def test_what_is_wrong_is_said(self, data, preferences, complaint):
        with pytest.raises(InputError, match=complaint):
            RankSVM().fit(data.X, qid=data.qid, preferences=preferences)

    @pytest.mark.parametrize(
        ("ranker", "complaint"),
        [
            (DominationRanker(), "the loss 'domination' is not a sum over pairs"),
            (RankRLS(), "RankRLS has no pairwise loss"),
            (GreedyRankRLS(), "GreedyRankRLS has no pairwise loss"),
            (RankSVM(margin="scaled"), "needs a label for every document"),
            (RankSVM(importance="ndcg"), "preferences do not have"),
        ],
        ids=["domination", "rankrls", "greedy", "margin", "importance"],
    )
    def test_who_cannot_use_them_says_so(self, data, ranker, complaint):
        with pytest.raises(InputError, match=complaint):
            ranker.fit(data.X, qid=data.qid, preferences=([0], [1]))


@pytest.mark.parametrize(
    ("options", "complaint"),
    [
        ({"loss": "logistic"}, "loss='logistic'"),
        ({"solver": "sgd"}, "solver='sgd'"),
        ({"margin": "wide"}, "margin='wide'"),
        ({"margin": "scaled", "margin_scale": 0.0}, "margin_scale=0.0"),
        ({"importance": "map"}, "importance='map' is not known"),
        (
            {"loss": "hinge", "solver": "newton"},
            "'newton' needs a continuous gradient of the loss 'hinge'",
        ),
    ],
)
def test_unknown_options_are_refused(data, options, complaint):
    with pytest.raises(InputError, match=complaint):
        RankSVM(**options).fit(data.X, data.y, qid=data.qid)


def test_both_spellings_of_the_loss(data):
    fits = [
        RankSVM(loss=name).fit(data.X, data.y, qid=data.qid)
        for name in ("squared-hinge", "squared_hinge")
    ]
    assert np.array_equal(fits[0].coef_, fits[1].coef_)
