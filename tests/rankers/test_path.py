"""Regularisation paths: cold optima, measures on validation data, and which model is best."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from leanrank import make_ranking
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.metrics import evaluate
from leanrank.rankers import DominationRanker, RankRLS
from leanrank.rankers.path import Path, alpha_grid


@pytest.fixture(scope="module")
def train():
    return make_ranking(n_queries=40, docs_per_query=12, n_features=15, random_state=0)


@pytest.fixture(scope="module")
def vali():
    return make_ranking(n_queries=20, docs_per_query=12, n_features=15, random_state=1)


def made_path(values, coefs):
    n = len(values)
    return Path(
        alphas=np.arange(n, 0, -1.0),
        coefs=np.array(coefs, dtype=float),
        dual_gaps=np.zeros(n),
        objectives=np.ones(n),
        n_iters=np.ones(n, dtype=int),
        measures={"map": np.array(values), "ndcg@10": -np.array(values)},
    )


@pytest.mark.parametrize("solver", ["newton", "bound-cd"])
@pytest.mark.filterwarnings("ignore:.*model without features")
def test_warm_starts_reach_the_cold_optima(train, solver):
    ranker = DominationRanker(
        solver=solver, tol=1e-6, max_iter=100 if solver == "newton" else 20_000
    )
    n, ratio = (10, 1e-3) if solver == "newton" else (4, 0.1)
    path = ranker.path(train.X, train.y, train.qid, n_alphas=n, alpha_min_ratio=ratio)
    assert len(path) == n
    assert path.coefs.shape == (n, 15)
    assert np.all(path.dual_gaps <= 1e-6)
    assert np.all(np.diff(path.alphas) < 0)
    for k, alpha in enumerate(path.alphas):
        cold = DominationRanker(alpha, tol=1e-6).fit(train)
        assert path.objectives[k] == pytest.approx(cold.objective_, rel=2e-6)
        np.testing.assert_allclose(
            path.coefs[k], cold.coef_, atol=5e-3 * max(1.0, np.abs(cold.coef_).max())
        )
    assert np.array_equal(path.n_selected, [np.count_nonzero(w) for w in path.coefs])
    assert not hasattr(ranker, "coef_"), "a path is not a fit"


def test_the_path_starts_empty_at_alpha_max_and_then_is_not(train):
    ranker = DominationRanker()
    path = ranker.path(train.X, train.y, train.qid, n_alphas=5)
    assert path.alphas[0] == ranker.alpha_max(train.X, train.y, train.qid)
    assert path.alphas[-1] == pytest.approx(1e-3 * path.alphas[0])
    assert path.n_selected[0] == 0
    assert np.all(path.n_selected[1:] > 0)


def test_alphas_of_the_caller_are_taken_in_descending_order(train):
    path = DominationRanker().path(train, alphas=[0.01, 0.1, 0.03])
    assert path.alphas.tolist() == [0.1, 0.03, 0.01]
    ridge = DominationRanker(l1_ratio=0).path(train, alphas=(0.1, 1.0))
    assert ridge.n_selected.tolist() == [15, 15]
    assert np.linalg.norm(ridge.coefs[0]) < np.linalg.norm(ridge.coefs[1])


def test_unpenalised_features_are_in_from_the_start(train):
    factors = np.ones(15)
    factors[[2, 5]] = 0.0
    path = DominationRanker(penalty_factors=factors).path(train, n_alphas=4)
    assert np.flatnonzero(path.coefs[0]).tolist() == [2, 5]
    assert np.all(path.coefs[:, [2, 5]] != 0)
    assert np.all(np.delete(path.coefs[1], [2, 5]).any())


@pytest.mark.parametrize("form", ["data", "tuple", "sparse"])
def test_measures_are_those_of_each_model_on_the_validation_data(train, vali, form):
    held_out = {
        "data": vali,
        "tuple": (vali.X, vali.y, vali.qid),
        "sparse": RankingData(csr_array(vali.X), vali.y, vali.qid),
    }[form]
    path = DominationRanker().path(
        train, n_alphas=4, validation=held_out, measures=["ndcg@5", "map"], convention="letor4"
    )
    assert list(path.measures) == ["ndcg@5", "map"]
    for k in range(1, 4):
        expected = evaluate(
            vali.y,
            vali.X @ path.coefs[k],
            vali.qid,
            measures=["ndcg@5", "map"],
            convention="letor4",
        ).means
        for name in path.measures:
            assert path.measures[name][k] == pytest.approx(expected[name], abs=1e-12)


def test_one_measure_may_be_given_by_its_name(train, vali):
    path = DominationRanker().path(train, n_alphas=3, validation=vali, measures="map")
    assert list(path.measures) == ["map"]
    assert path.best() in (1, 2)


def test_rows_of_the_validation_data_in_any_order(train, vali):
    order = np.random.default_rng(0).permutation(len(vali.y))
    shuffled = vali.X[order], vali.y[order], vali.qid[order]
    plain = DominationRanker().path(train, n_alphas=3, validation=vali)
    mixed = DominationRanker().path(train, n_alphas=3, validation=shuffled)
    np.testing.assert_allclose(mixed.measures["ndcg@10"][1:], plain.measures["ndcg@10"][1:])


def test_best_takes_the_highest_measure_and_the_sparsest_among_equals():
    coefs = [[0, 0, 0], [1, 0, 0], [1, 2, 3], [1, 2, 0]]
    assert made_path([0.1, 0.2, 0.5, 0.4], coefs).best() == 2
    assert made_path([0.1, 0.2, 0.5, 0.5], coefs).best() == 3
    assert made_path([0.1, 0.5, 0.5, 0.5], coefs).best("map") == 1
    assert made_path([0.1, 0.2, 0.5, 0.4], coefs).best("ndcg@10") == 1


def test_best_never_takes_an_empty_or_unmeasured_model():
    coefs = [[0, 0], [1, 0], [1, 1]]
    assert made_path([0.9, 0.1, 0.2], coefs).best() == 2
    assert made_path([0.9, np.nan, 0.2], coefs).best() == 2
    with pytest.raises(InputError, match="no model ranks anything"):
        made_path([0.9, 0.8], [[0.0], [0.0]]).best()
    with pytest.raises(InputError, match="no model ranks anything"):
        made_path([0.9, np.nan], [[0.0], [1.0]]).best()


def test_best_needs_measures_and_knows_their_names(train):
    with pytest.raises(InputError, match="was not measured: give validation="):
        DominationRanker().path(train, n_alphas=2).best()
    with pytest.raises(InputError, match=r"not measured by 'mrr', only by \['map', 'ndcg@10'\]"):
        made_path([0.1], [[1.0]]).best("mrr")


def test_wrong_arguments_get_a_sentence(train, vali):
    ranker = DominationRanker()
    for options, message in [
        ({"alphas": []}, "alphas is empty"),
        ({"alphas": [0.1, -1]}, "alphas=-1"),
        ({"n_alphas": 0}, "n_alphas=0"),
        ({"n_alphas": 2.5}, "n_alphas=2.5"),
        ({"n_alphas": True}, "n_alphas=True"),
        ({"alpha_min_ratio": 1.5}, "alpha_min_ratio=1.5"),
        ({"alpha_min_ratio": 0}, "alpha_min_ratio=0"),
        ({"validation": (vali.X, vali.y)}, r"validation must be a RankingData"),
        ({"validation": RankingData(vali.X[:, :4], vali.y, vali.qid)}, "has 4 features"),
        ({"validation": vali, "measures": ["luck"]}, "'luck' is not known"),
    ]:
        with pytest.raises(InputError, match=message):
            ranker.path(train, **{"n_alphas": 2, **options})
    with pytest.raises(InputError, match="tol=-1"):
        DominationRanker(tol=-1).path(train)
    with pytest.raises(InputError, match="max_iter=0"):
        DominationRanker(max_iter=0).path(train)


def test_without_an_alpha_max_the_caller_must_give_alphas(train):
    with pytest.raises(InputError, match="without an ℓ1 penalty"):
        DominationRanker(l1_ratio=0).path(train)
    with pytest.raises(InputError, match="no penalised feature enters"):
        DominationRanker(penalty_factors=np.full(15, np.inf)).path(train)


def test_models_that_stop_short_are_told(train):
    with pytest.warns(ConvergenceWarning, match=r"2 of 3 models, the first at alpha=\d.*tol=1e-06"):
        path = DominationRanker(max_iter=1).path(train, n_alphas=3)
    assert np.all(path.dual_gaps[1:] > 1e-6)


def test_alpha_grid():
    assert alpha_grid(2.0, 1, 0.1).tolist() == [2.0]
    np.testing.assert_allclose(alpha_grid(2.0, 3, 0.01), [2.0, 0.2, 0.02])


def test_an_error_measure_prefers_the_smallest():
    path = Path(
        alphas=np.array([2.0, 1.0, 0.5]),
        coefs=np.array([[1.0, 0.0], [1.0, 1.0], [1.0, 1.0]]),
        dual_gaps=np.zeros(3),
        objectives=np.ones(3),
        n_iters=np.ones(3, dtype=np.int64),
        measures={"all_pairs_error": np.array([0.3, 0.1, 0.2]), "map": np.array([0.3, 0.1, 0.2])},
    )
    assert path.best("all_pairs_error") == 1
    assert path.best("map") == 0


@pytest.mark.parametrize("ranker", [DominationRanker(), DominationRanker(curves=3), RankRLS()])
@pytest.mark.parametrize("which", [2, "map", None])
def test_a_point_of_a_path_is_a_ranker_and_a_model(train, vali, ranker, which):
    strengths = {"n_alphas": 6} if hasattr(ranker, "l1_ratio") else {"alphas": [0.1, 1.0, 10.0]}
    named = train.replace(feature_names=[f"x{at}" for at in range(15)])
    path = ranker.path(named, validation=vali, measures=("ndcg@10", "map"), **strengths)
    at = which if isinstance(which, int) else path.best(which)
    one = path.ranker(which)
    assert type(one) is type(ranker)
    assert one.alpha == path.alphas[at]
    again = clone(one).fit(named)
    assert {name for name in vars(again) if name.endswith("_")} - {"history_"} == {
        name for name in vars(one) if name.endswith("_")
    }
    np.testing.assert_allclose(one.predict(vali), again.predict(vali), rtol=1e-3, atol=1e-3)
    model = path.model(which)
    assert model.feature_names == named.feature_names
    np.testing.assert_array_equal(model.predict(vali), one.predict(vali))
    one.coef_[:] = 0
    assert path.coefs[at].any()


def test_a_path_made_by_hand_has_models_only():
    path = made_path([0.1, 0.2], [[1, 0], [1, 1]])
    assert path.model("map").n_nonzero == 2
    with pytest.raises(InputError, match="made without a ranker"):
        path.ranker("map")
