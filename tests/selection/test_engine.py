"""Choosing on validation data: what is tried, what is never chosen."""

import warnings
from dataclasses import replace

import numpy as np
import pytest

from leanrank.data import RankingData, make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.model import Model
from leanrank.rankers import get_ranker
from leanrank.registry import SYSTEMS, get_system
from leanrank.selection import (
    AlphaPath,
    Candidate,
    Fits,
    Sizes,
    Space,
    Split,
    best_candidate,
    fit_best,
    fit_system,
    run_space,
    system_names,
)
from leanrank.selection.engine import fit_beside, make_ranker, run_setting
from leanrank.selection.systems import fit_lightgbm, fit_xgboost
from leanrank.selection.trials import Task, fit_support, run_trial

SPACES = {name: system.space for name, system in SYSTEMS.items() if system.space is not None}


@pytest.fixture(scope="module")
def split():
    data = make_ranking(n_queries=40, docs_per_query=15, n_features=8, random_state=0)
    return Split(data.queries[:25], data.queries[25:], "ndcg@5", "letor4")


def tried(parameters, value, n_features):
    model = Model.from_coef(np.arange(1, 9) <= n_features)
    return Candidate.of("svm", parameters, model, {"map": np.array([value])})


def test_every_ranker_has_a_system_of_its_name():
    for space in SPACES.values():
        assert SYSTEMS[space.ranker].space.ranker == space.ranker


@pytest.mark.parametrize("name", sorted(SPACES))
def test_parameters_are_known_and_grids_modest(name):
    space = SPACES[name]
    known = get_ranker(space.ranker)().get_params()
    tried = {*space.fixed, *space.grid}
    assert tried <= set(known), f"{name} has no {tried - set(known)}"
    assert not set(space.fixed) & set(space.grid)
    assert 1 <= len(space.settings()) <= 20
    if "random_state" in known and space.ranker not in ("greedyrankrls", "ranknet"):
        assert space.fixed["random_state"] == 0
    assert SYSTEMS[name].title


@pytest.mark.parametrize("name", sorted(SPACES))
def test_every_space_gives_a_ranker_that_ranks(name, split):
    """The first setting of each, so that a renamed parameter is noticed here."""
    space = SPACES[name]
    trials = run_setting(space, space.settings()[0], split)
    best = best_candidate(trials, split.judge)
    again = make_ranker(space, best.parameters, split.judge)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fit_beside(again, split.train, split.validation)
    value = split.value(again.predict(split.validation))
    assert value == pytest.approx(best.value, abs=2e-3)  # a path is started elsewhere than a fit
    assert value > 0.45


def test_the_best_of_a_path_is_chosen(split):
    space = Space("rankrls", sweep=AlphaPath(alphas=(1e-4, 1e-1, 1e2)))
    trials = list(run_space(space, split))
    assert [trial.parameters["alpha"] for trial in trials] == [1e2, 1e-1, 1e-4]
    chosen = fit_best(space, split)
    assert chosen.value == max(trial.value for trial in trials)
    assert chosen.n_trials == 3
    by_hand = get_ranker("rankrls")(**chosen.parameters).fit(split.train)
    assert np.array_equal(chosen.model.coef, by_hand.coef_)
    measured = evaluate(
        split.validation, by_hand.predict(split.validation), measures="ndcg@5", convention="letor4"
    )
    assert chosen.value == pytest.approx(measured["ndcg@5"])
    assert chosen.seconds > 0
    assert chosen.search_seconds > 0


def test_sizes_and_grids_are_crossed(split):
    space = Space("greedyrankrls", {"normalize": "query"}, {"alpha": (1e-3, 1e-1)}, Sizes(most=4))
    trials = list(run_space(space, split))
    assert len(trials) == 8
    assert {t.parameters["n_features_to_select"] for t in trials} == {1, 2, 3, 4}
    assert all(t.parameters["normalize"] == "query" for t in trials)
    chosen = fit_best(space, split)
    assert chosen.n_features == chosen.parameters["n_features_to_select"]


def test_a_ranker_that_stops_by_itself_uses_the_same_measure(split):
    space = Space("minbatsrank", {"random_state": 0, "epochs": 4})
    ranker = make_ranker(space, space.fixed, split.judge)
    assert ranker.measure == "ndcg@5"
    assert ranker.convention.ties == "average"
    chosen = fit_best(space, split)
    curve = [entry["ndcg@5"] for entry in fit_beside(ranker, *split.scaled).history_]
    assert len(curve) == 4
    assert chosen.value == pytest.approx(max(curve))


def test_empty_and_broken_models_are_never_chosen():
    """Labels descend in the file, so in input order a model of zeros would be perfect."""
    y = np.tile([2, 1, 0], 5)
    X = np.column_stack([np.tile([1.0, 0.0, 1.0], 5), np.zeros(15)])
    data = RankingData(X, y, np.repeat(np.arange(5), 3))
    split = Split(data, data, "map", "letor3")
    with pytest.warns(DataWarning, match="input order"):
        assert evaluate(data, np.zeros(15), measures="map", convention="letor3")["map"] == 1
    for scores in (
        np.zeros(15),
        np.repeat(np.arange(5.0), 3),
        np.full(15, np.nan),
        np.full(15, np.inf),
    ):
        assert np.isnan(split.value(scores))
    trials = [tried({"a": 0}, np.nan, 0), tried({"a": 1}, 0.4, 1)]
    assert best_candidate(trials, split.judge).parameters == {"a": 1}
    with pytest.raises(InputError, match="no model ranks anything"):
        best_candidate(trials[:1], split.judge)


def test_ties_do_not_follow_the_file():
    y = np.array([1, 0, 0, 0])
    data = RankingData([[0.0]] * 4, y)
    split = Split(data, data, "map", "letor4")
    tied = split.value(np.array([1.0, 1.0, 1.0, 0.0]))
    assert tied == pytest.approx((1 + 1 / 2 + 1 / 3) / 3)


def test_lower_is_better_for_errors_and_equals_go_to_the_sparser(split):
    error = Split(split.train, split.validation, "all_pairs_error")
    all_of_them = [tried({"a": 1}, 0.3, 5), tried({"a": 2}, 0.2, 5), tried({"a": 3}, 0.2, 2)]
    assert best_candidate(all_of_them, error.judge).parameters == {"a": 3}
    assert best_candidate(all_of_them, split.judge).parameters == {"a": 1}


@pytest.mark.parametrize("name", ["lightgbm", "xgboost"])
def test_trees(name, split):
    pytest.importorskip(name)
    fit = {"lightgbm": fit_lightgbm, "xgboost": fit_xgboost}[name]
    grid = {"learning_rate": (0.1,), "leaves": (4, 8), "least": (5,)}
    one, two = fit(split, grid), fit(split, grid)
    assert one.n_trials == 2
    assert 1 <= one.n_features <= 8
    assert np.array_equal(one.model.predict(split.validation), two.model.predict(split.validation))
    assert split.value(one.model.predict(split.validation)) == pytest.approx(one.value)
    halves = Split(split.train.replace(y=split.train.y / 2), split.validation)
    with pytest.raises(InputError, match="whole labels"):
        fit_system(name, halves)


def test_the_best_single_feature(split):
    chosen = fit_system("bestfeature", split)
    values = []
    for feature in range(8):
        for direction in (1, -1):
            scores = direction * split.train.X[:, feature]
            found = evaluate(
                split.train, scores, measures="ndcg@5", convention="letor4", ties="average"
            )
            values.append((found["ndcg@5"], {"feature": feature, "direction": direction}))
    assert chosen.parameters == max(values, key=lambda item: item[0])[1]


def test_names():
    assert {"domination", "lightgbm", "bestfeature"} <= set(system_names())
    with pytest.raises(InputError, match="did you mean 'domination'"):
        fit_system("dominaton", None)
    with pytest.raises(InputError, match="no system 'svm'"):
        get_system("svm")
    assert isinstance(Space("rankrls").sweep, Fits)


def test_systems_with_curves_count_features_and_place_them():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 6))
    y = np.digitize(-np.abs(X[:, 4]) + 0.1 * rng.normal(size=400), [-0.8, -0.4])
    data = RankingData(X, y, np.arange(400) // 10, feature_names=[f"x{j}" for j in range(6)])
    task = Task(data, data)
    system = get_system("domination-curves")
    space = replace(system.tuning, sweep=AlphaPath(n_alphas=6))
    setting = {"normalize": "query", "group_ratio": 0.5}
    found = run_trial(task, space, setting)
    best = max(found, key=lambda one: one.score("ndcg@10"))
    assert 4 in best.model.indices
    assert best.model.feature_names == data.feature_names
    again = fit_support(task, best)
    assert set(again.indices) <= set(best.model.indices)
    assert not again.is_linear
