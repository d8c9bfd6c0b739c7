"""NonconvexRankSVM as people meet it: the batteries, descent, paths, any loss, real data."""

from __future__ import annotations

import warnings
from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import load_letor, make_ranking
from leanrank.checks import check_ranker
from leanrank.errors import InputError
from leanrank.penalties.concave import SHAPES
from leanrank.rankers import NonconvexRankSVM, RankSVM


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=40,
        docs_per_query=(1, 20),
        n_features=20,
        n_informative=4,
        label_noise=1.0,
        random_state=5,
    )


def fit(data, **parameters):
    options = {"alpha": 0.02, **parameters}
    return NonconvexRankSVM(**options).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("penalty", SHAPES)
def test_the_battery_of_rankers(penalty):
    # a small alpha: a feature that hangs on a thread may go either way in single precision
    check_ranker(NonconvexRankSVM(0.001, penalty=penalty, tol=1e-10))


@parametrize_with_checks([NonconvexRankSVM(), NonconvexRankSVM(0.001, penalty="mcp")])
def test_the_battery_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped after")
        check(estimator)


@pytest.mark.parametrize("loss", ["squared-hinge", "logistic", "domination", "listnet"])
@pytest.mark.parametrize("penalty", SHAPES)
def test_the_objective_falls_round_by_round(data, penalty, loss):
    ranker = fit(data, penalty=penalty, loss=loss, alpha=0.005)
    fell = [entry["objective"] for entry in ranker.history_]
    assert all(later <= earlier for earlier, later in pairwise(fell))
    assert ranker.objective_ == fell[-1]
    assert ranker.dual_gap_ <= 1e-6
    assert 0 <= ranker.history_[-1]["stationarity"] < np.inf
    assert [entry["round"] for entry in ranker.history_] == list(range(1, len(fell) + 1))
    assert len(fell) <= (2 if penalty == "adaptive" else 10)
    assert ranker.n_iter_ == sum(entry["iterations"] for entry in ranker.history_)


def test_the_first_round_is_the_l1_ranksvm(data):
    plain = RankSVM(0.02, 1.0).fit(data.X, data.y, qid=data.qid)
    one = fit(data, n_rounds=1)
    np.testing.assert_allclose(one.coef_, plain.coef_, atol=1e-8)


def test_it_finds_the_features_that_matter(data):
    """The planted features, with less shrinkage than ℓ1, and fewer others."""
    plain = RankSVM(0.02, 1.0).fit(data.X, data.y, qid=data.qid)
    for penalty in ("lp", "log", "mcp"):
        ranker = fit(data, penalty=penalty, alpha=0.02 if penalty != "log" else 0.003)
        assert np.count_nonzero(ranker.coef_) <= np.count_nonzero(plain.coef_)
        assert ranker.score(data.X, data.y, qid=data.qid) > 0.7
    assert np.count_nonzero(fit(data).coef_) < np.count_nonzero(plain.coef_)


@pytest.mark.parametrize("penalty", SHAPES)
def test_a_path_is_fits_one_after_another(data, penalty):
    ranker = NonconvexRankSVM(penalty=penalty, tol=1e-9)
    path = ranker.path(data.X, data.y, qid=data.qid, n_alphas=6, alpha_min_ratio=0.01)
    assert path.n_selected[0] == 0
    assert path.n_selected[-1] > 0
    assert path.dual_gaps.max() <= 1e-9
    single = fit(data, penalty=penalty, alpha=float(path.alphas[3]), tol=1e-9)
    np.testing.assert_allclose(path.coefs[3], single.coef_, atol=1e-3)
    sparse = ranker.path(csr_matrix(data.X), data.y, qid=data.qid, alphas=path.alphas)
    np.testing.assert_allclose(sparse.coefs, path.coefs, atol=1e-3)


@pytest.mark.filterwarnings("ignore:.*model without features")
def test_above_alpha_max_the_model_is_empty(data):
    top = NonconvexRankSVM().alpha_max(data.X, data.y, qid=data.qid)
    assert not fit(data, alpha=1.001 * top).coef_.any()
    assert fit(data, alpha=0.9 * top, penalty="mcp").coef_.any()


@pytest.mark.parametrize(
    ("penalty", "epsilon"), [("lp", 1.0), ("log", 10.0), ("adaptive", 5.0), ("adaptive", 0.01)]
)
@pytest.mark.filterwarnings("ignore:.*model without features")
def test_a_penalty_that_is_flat_at_zero_needs_more(data, penalty, epsilon):
    shape = {"penalty": penalty, "epsilon": epsilon}
    top = NonconvexRankSVM(**shape).alpha_max(data.X, data.y, qid=data.qid)
    assert not fit(data, alpha=1.001 * top, **shape).coef_.any()
    if epsilon >= 1.0:
        assert fit(data, alpha=0.9 * top, **shape).coef_.any()


def test_factors_signs_and_a_share_of_ridge(data):
    factors = np.ones(20)
    factors[:2] = np.inf, 0.0
    ranker = fit(data, penalty_factors=factors, signs=1, l1_ratio=0.8)
    assert ranker.coef_[0] == 0
    assert np.all(ranker.coef_ >= 0)
    assert ranker.dual_gap_ <= 1e-6


def test_it_learns_from_preferences(data):
    rows = np.flatnonzero(np.diff(data.query_ptr) > 1)
    winner = data.query_ptr[rows]
    ranker = NonconvexRankSVM(0.001).fit(data.X, qid=data.qid, preferences=(winner, winner + 1))
    assert ranker.coef_.any()


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"penalty": "l0"}, "penalty='l0'"),
        ({"p": 1.0}, "p=1.0"),
        ({"epsilon": 0}, "epsilon=0"),
        ({"gamma": 0, "penalty": "mcp"}, "gamma=0"),
        ({"n_rounds": 0}, "n_rounds=0"),
        ({"n_rounds": 2.5}, "n_rounds=2.5"),
        ({"l1_ratio": 0}, "l1_ratio"),
        ({"loss": "hinge"}, "hinge"),
        ({"loss": "nothing"}, "there is no loss 'nothing'"),
    ],
)
def test_bad_parameters_are_named(data, parameters, message):
    with pytest.raises(InputError, match=message):
        fit(data, **parameters)


def test_fewer_features_on_real_data(data_dir):
    train, test = (load_letor(data_dir / f"MQ2008/Fold1/{part}.txt") for part in ("train", "test"))
    plain, ranker = RankSVM(0.01, 1.0).fit(train), NonconvexRankSVM(0.01).fit(train)
    assert ranker.dual_gap_ <= 1e-6
    assert np.count_nonzero(ranker.coef_) < np.count_nonzero(plain.coef_)
    assert ranker.score(test) > plain.score(test) - 0.02
