"""FenchelRank as people meet it: the batteries, its parameters, its equals."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import load_letor, make_ranking
from leanrank.checks import ranker_checks
from leanrank.errors import InputError
from leanrank.rankers import FenchelRank, RankSVM, SparseRank, get_ranker


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=20, docs_per_query=(1, 12), n_features=8, n_informative=3, random_state=3
    )


@pytest.mark.parametrize("check", ranker_checks(), ids=lambda c: c.__name__)
@pytest.mark.parametrize(
    "ranker",
    [FenchelRank(0.5, tol=1e-9), FenchelRank(0.3, solver="greedy", tol=1e-2, max_iter=300)],
    ids=["corrective", "greedy"],
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_battery_of_rankers(ranker, check):
    check(clone(ranker))


@parametrize_with_checks([FenchelRank(), FenchelRank(solver="greedy", tol=1e-3, max_iter=100)])
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_scikit_learns_battery(estimator, check):
    check(estimator)


def test_its_optimum_is_that_of_the_penalised_rankers(data):
    penalised = SparseRank(0.05, tol=1e-10).fit(data)
    svm = RankSVM(0.05, 1.0, tol=1e-10).fit(data)
    radius = np.abs(penalised.coef_).sum()
    ball = FenchelRank(radius, tol=1e-8).fit(data)
    scale = np.abs(ball.coef_).max()
    np.testing.assert_allclose(penalised.coef_, svm.coef_, atol=1e-3 * scale)
    np.testing.assert_allclose(ball.coef_, svm.coef_, atol=1e-3 * scale)
    assert ball.objective_ == pytest.approx(svm.objective_ - 0.05 * radius, rel=1e-7)


@pytest.mark.filterwarnings("ignore:.*model without features")
def test_it_stays_in_the_ball_and_the_ball_shrinks(data):
    losses = []
    for radius in (0.0, 0.1, 0.3, 1.0):
        ranker = FenchelRank(radius).fit(data)
        assert np.abs(ranker.coef_).sum() <= radius * (1 + 1e-9)
        losses.append(ranker.objective_)
    assert losses == sorted(losses, reverse=True)
    assert losses[0] == pytest.approx(1.0)
    assert losses[-1] < 0.9


def test_a_warm_start_begins_where_the_last_fit_ended(data):
    ranker = FenchelRank(0.5, tol=1e-8, warm_start=True).fit(data)
    first = ranker.coef_
    assert ranker.n_iter_ > 1
    assert ranker.fit(data).n_iter_ == 1
    assert np.array_equal(ranker.coef_, first)


def test_preferences_stand_in_for_labels(data):
    winner, loser = [], []
    for begin, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        i, j = np.nonzero(np.greater.outer(data.y[begin:end], data.y[begin:end]))
        winner.append(i + begin)
        loser.append(j + begin)
    edges = np.concatenate(winner), np.concatenate(loser)
    labelled = FenchelRank(0.5, tol=1e-9).fit(data)
    preferred = FenchelRank(0.5, tol=1e-9).fit(data.X, qid=data.qid, preferences=edges)
    np.testing.assert_allclose(preferred.coef_, labelled.coef_, atol=1e-5)


def test_wrong_parameters_and_a_short_run_say_so(data):
    for wrong in (-1.0, np.inf, "large"):
        with pytest.raises(InputError, match="radius"):
            FenchelRank(wrong).fit(data)
    with pytest.raises(InputError, match="solver='fast'"):
        FenchelRank(solver="fast").fit(data)
    assert not hasattr(FenchelRank(), "path")
    assert not hasattr(FenchelRank(), "alpha_max")
    with pytest.warns(ConvergenceWarning, match="solver='corrective'"):
        FenchelRank(solver="greedy", max_iter=3).fit(data)


def test_it_has_a_name_and_a_model(data, tmp_path):
    from leanrank import load_model

    assert get_ranker("fenchelrank") is FenchelRank
    ranker = FenchelRank(0.5).fit(data)
    ranker.save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    np.testing.assert_allclose(model.predict(data.X), ranker.predict(data.X))


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_real_data_to_a_gap_of_1e_6(name, data_dir):
    train = load_letor(data_dir / name / "Fold1" / "train.txt")
    ranker = FenchelRank(10.0).fit(train)
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.n_iter_ < 30
    assert np.abs(ranker.coef_).sum() == pytest.approx(10.0)
    greedy = FenchelRank(3.0, solver="greedy", tol=5e-3).fit(train)
    assert greedy.dual_gap_ <= 5e-3
    corrected = FenchelRank(3.0).fit(train)
    assert corrected.objective_ <= greedy.objective_ <= corrected.objective_ * (1 + 5e-3)
