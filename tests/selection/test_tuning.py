"""The search: what it tries, that it can be repeated, killed and taken up again."""

import json
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace

import numba
import numpy as np
import pytest

from leanrank import LeanRanker, evaluate
from leanrank._jit import compile_seconds
from leanrank.data import (
    RankingData,
    click_weights,
    estimate_propensities,
    make_clicks,
    make_ranking,
)
from leanrank.errors import InputError
from leanrank.rankers import RANKERS, DominationRanker, MinBatSRank, RankBoost, get_ranker
from leanrank.registry import SYSTEMS, Front, Space
from leanrank.selection import tune
from leanrank.selection.engine import fit_alone, same_strength
from leanrank.selection.folds import QueryKFold, whole_query_folds
from leanrank.selection.search import round_robin
from leanrank.selection.trials import Task, joined_sets, run_trial
from leanrank.selection.tuning import default_systems

TUNING = {name: system.tuning for name, system in SYSTEMS.items() if system.tuning is not None}
SOME = ("domination", "greedyrankrls", "rankrls")


@pytest.fixture(scope="module")
def parts():
    data = make_ranking(
        n_queries=60, docs_per_query=10, n_features=10, n_informative=4, random_state=2
    )
    return data.queries[:40], data.queries[40:]


def answer(study):
    """All that a search found, to the bit."""
    return [
        (one.name, one.model.to_dict(), one.judged(study.measure).tobytes())
        for one in [study.chosen, *study.candidates]
    ]


def test_every_space_of_the_search_can_be_tried(parts):
    for name, space in TUNING.items():
        known = get_ranker(space.ranker)().get_params()
        assert {*space.fixed, *space.grid} <= set(known), name
        assert space.ranker == SYSTEMS[name].space.ranker
        if "random_state" in known and space.ranker not in ("greedyrankrls", "ranknet"):
            assert space.fixed["random_state"] == 0
    assert {space.ranker for space in TUNING.values()} >= set(RANKERS) - {
        "fenchelrank", "sparserank", "rankrlscv",
    }  # fmt: skip


@pytest.mark.parametrize("name", sorted(TUNING))
def test_the_first_trial_of_every_system(name, parts):
    task = Task(*parts, "ndcg@10", ("ndcg@10", "map"))
    space = TUNING[name]
    found = run_trial(task, space, space.settings()[0])
    assert found
    for one in found:
        assert one.n_features == len(one.model.indices) > 0
        assert len(one.values["map"]) == 20
        assert len(one.training_values["ndcg@10"]) == 40
        assert one.cost == one.n_features
    assert max(one.score("ndcg@10") for one in found) > 0.5


def test_a_query_is_judged_by_a_model_that_has_not_seen_it(parts):
    """By hand: four groups, each measured by the fit to the others."""
    training, validation = parts
    task = Task(training, validation, "map", ("map",), ("map",))
    space = Space("rankrls", {"alpha": 0.1})
    (one,) = run_trial(task, space, {})
    assert [fold.test.sum() for fold in task.folds] == [10, 10, 10, 10]
    for group in range(4):
        inside = task.folds[group].test
        ranker = get_ranker("rankrls")(alpha=0.1).fit(training.queries[~inside])
        mine = training.queries[inside]
        expected = task.judge.per_query(mine, ranker.predict(mine), ["map"])["map"]
        assert one.training_values["map"][inside] == pytest.approx(expected, nan_ok=True)
    ranker = get_ranker("rankrls")(alpha=0.1).fit(training)
    assert one.model.coef == pytest.approx(ranker.coef_)


def test_a_size_of_a_front_is_judged_by_models_of_that_size(parts):
    """By hand: without a group, the front has other sizes, and the one of the same size counts."""
    task = Task(*parts, "map", ("map",), ("map",))
    space = Space("lean", {"max_pairs": 0, "n_folds": 2}, sweep=Front())
    found = run_trial(task, space, {})
    ranker = get_ranker("lean")(**space.fixed).fit(parts[0])
    repeated = {**space.fixed, **same_strength(ranker)}
    sizes = set()
    for group, part in enumerate(task.parts):
        models = get_ranker("lean")(**repeated).fit(part.train).front_models_
        sizes.add(models[0].n_nonzero)
        for one in found:
            like = next(m for m in models if m.n_nonzero <= one.n_features)
            expected = task.judge.per_query(part.validation, like.predict(part.validation))["map"]
            mine = one.training_values["map"][task.folds[group].test]
            assert mine == pytest.approx(expected, nan_ok=True)
    assert len(sizes | {found[0].n_features}) > 1, "all fronts have the same sizes"


def test_the_chosen_model_beside_lean_ranker(parts, tmp_path):
    study = tune(*parts, systems=["lean", "domination"], trials=2, max_features=4)
    assert study.default.algorithm == "lean"
    assert study.default.n_features <= 4
    own = replace(study, chosen=study.default)
    assert own.beside_default is None
    worst = min(study.candidates, key=lambda one: one.score("ndcg@10"))
    beside = replace(study, chosen=worst).beside_default
    assert beside.other is study.default
    assert beside.better == pytest.approx(worst.score("ndcg@10") - beside.other.score("ndcg@10"))
    assert f"better by {-beside.better:.4f}" in str(beside)
    assert tune(*parts, systems=["domination"], trials=1).default is None


def test_the_same_on_every_run_and_number_of_threads(parts, tmp_path):
    how = {"systems": SOME, "trials": 6, "max_features": 4, "measure": "map"}
    first = tune(*parts, **how)
    assert answer(tune(*parts, **how, n_jobs=2)) == answer(first)
    assert answer(tune(*parts, **how, journal=tmp_path / "j")) == answer(first)
    assert first.chosen.n_features <= 4
    assert {one.algorithm for one in first.candidates} >= {"domination", "greedyrankrls"}
    assert [entry["trial"] for entry in first.history] == [1, 2, 3, 4, 5, 6]


def test_going_on_from_any_trial_gives_the_same(parts, tmp_path):
    how = {"systems": SOME, "trials": 5, "max_features": 4}
    path = tmp_path / "j.jsonl"
    whole = answer(tune(*parts, **how, journal=path))
    lines = path.read_bytes().splitlines(keepends=True)
    assert len(lines) == 6
    for n_kept in (0, 1, 3, 5, 6):
        path.write_bytes(b"".join(lines[:n_kept]) + b'{"trial": 9, "ca')
        if n_kept == 0:
            path.unlink()
        assert answer(tune(*parts, **how, journal=path)) == whole, f"{n_kept} lines"


KILLED = """
import sys
from leanrank.data import make_ranking
from leanrank.selection import tune
data = make_ranking(n_queries=60, docs_per_query=10, n_features=10, n_informative=4, random_state=2)
study = tune(data.queries[:40], data.queries[40:], trials=6, max_features=4, journal=sys.argv[1],
             systems=["greedyrankrls", "rankrls"])
print(study.chosen.model.to_dict(), study.chosen.score("ndcg@10").hex(), len(study.candidates))
"""


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL on this system")
def test_killed_and_restarted(tmp_path):
    """Killed for real, several times, wherever it happens to be."""

    def start(path):
        return subprocess.Popen(
            [sys.executable, "-c", KILLED, str(path)], stdout=subprocess.PIPE, text=True
        )

    whole, interrupted = tmp_path / "whole", tmp_path / "interrupted"
    expected, _ = start(whole).communicate(timeout=120)
    n_lines = whole.read_bytes().count(b"\n")
    assert n_lines == 7
    kills = 0
    for wanted in (1, 4):
        process = start(interrupted)
        deadline = time.monotonic() + 120
        while time.monotonic() < deadline and process.poll() is None:
            there = interrupted.read_bytes().count(b"\n") if interrupted.exists() else 0
            if there >= wanted:
                break
            time.sleep(0.002)
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
            kills += 1
        process.wait()
        process.stdout.close()
    assert kills == 2
    assert interrupted.read_bytes().count(b"\n") < n_lines
    resumed, _ = start(interrupted).communicate(timeout=120)
    assert resumed == expected
    assert expected.strip()


def test_a_journal_of_other_data_or_wishes_is_refused(parts, tmp_path):
    path = tmp_path / "j"
    how = {"systems": ["rankrls"], "trials": 1, "journal": path}
    tune(*parts, **how)
    with pytest.raises(InputError, match="belongs to another run: not the same training data"):
        tune(parts[1], parts[0], **how)
    with pytest.raises(InputError, match="not the same measure"):
        tune(*parts, **how, measure="map")
    with pytest.raises(InputError, match="not the same max_features"):
        tune(*parts, **how, max_features=3)


def test_more_trials_go_on_from_fewer(parts, tmp_path):
    how = {"systems": SOME, "journal": tmp_path / "j", "max_features": 4}
    few = tune(*parts, **how, trials=2)
    more = tune(*parts, **how, trials=4)
    assert answer(more)[1 : 1 + len(few.candidates)] == answer(few)[1:]
    assert len(more.candidates) > len(few.candidates)


def test_a_budget_of_time_is_kept(parts):
    tune(*parts, systems=SOME, trials=2)  # compiled
    started = time.perf_counter()
    told = []
    study = tune(*parts, budget=1.5, progress=told.append)
    taken = time.perf_counter() - started
    assert study.chosen.n_features
    assert taken < 1.5 + 4.0  # one fit may exceed it, on a machine that is busy with others
    assert [at.trials for at in told] == list(range(len(told)))
    assert told[0].share < 0.5


def test_a_budget_that_is_too_short_gives_a_model_all_the_same(parts, tmp_path):
    how = {"systems": ["domination"], "journal": tmp_path / "j"}
    study = tune(*parts, **how, budget=1e-6)
    assert study.chosen.algorithm == "domination"
    assert all(not one.training_values for one in study.candidates)  # there was no time for it
    again = tune(*parts, **how, trials=1)
    assert all(one.training_values for one in again.candidates)
    assert tune(parts[0], systems=["domination"], budget=1e-6).chosen.values


def test_without_validation_data(parts):
    data = parts[0]
    study = tune(data, systems=SOME, trials=5, max_features=4)
    assert study.validation is data
    assert study.chosen.n_features <= 4
    for one in study.candidates:
        assert len(one.values["map"]) == len(one.values["ndcg@10"]) == 40
        assert not one.training_values
    assert study.chosen.score("ndcg@10") == study.chosen.means["ndcg@10"]


def test_a_single_training_query_is_judged_by_validation_data_only(tmp_path):
    data = make_ranking(n_queries=12, docs_per_query=30, n_features=5, random_state=0)
    how = {"systems": SOME, "trials": 4, "journal": tmp_path / "j"}
    study = tune(data.queries[:1], data.queries[1:], **how)
    assert answer(tune(data.queries[:1], data.queries[1:], **how)) == answer(study)
    assert all(not one.training_values for one in study.candidates)
    assert study.chosen.score("ndcg@10") == study.chosen.means["ndcg@10"]


def test_costs_and_bounds(parts):
    costs = np.arange(1.0, 11.0)
    study = tune(*parts, systems=SOME, trials=5, costs=costs, max_cost=9.0)
    assert study.chosen.cost <= 9
    assert study.chosen.cost == costs[study.chosen.model.indices].sum()
    study = tune(*parts, systems=SOME, trials=3, min_measure={"map": 0.55})
    assert study.chosen.score("map") >= 0.55
    smaller = [one for one in study.candidates if one.n_features < study.chosen.n_features]
    assert all(one.score("map") < 0.55 for one in smaller)
    with pytest.raises(InputError, match=r"no model reaches map 0.99, max_features=2: the"):
        tune(*parts, systems=["rankrls", "domination"], trials=2, max_features=2,
             min_measure={"map": 0.99})  # fmt: skip


def test_an_order_in_the_file_is_not_learned():
    """Labels descend in the file: in input order, a model of nothing would be perfect."""
    rng = np.random.default_rng(0)
    y = np.tile(np.repeat([2, 1, 0], 4), 40)
    X = rng.normal(size=(480, 3))
    X[:, 0] += 0.5 * y
    X[:, 2] = 1.0
    data = RankingData(X, y, np.repeat(np.arange(40), 12))
    study = tune(
        data.queries[:30], data.queries[30:], systems=SOME, trials=4, convention="letor4",
        measure="map",
    )  # fmt: skip
    assert all(one.n_features for one in study.candidates)
    assert 0 in study.chosen.model.indices
    assert all(one.score("map") < 0.95 for one in study.candidates)


@pytest.mark.parametrize("error", [InputError("it cannot"), ZeroDivisionError("a\nslip")])
def test_a_system_that_fails_does_not_end_the_search(parts, error, monkeypatch, tmp_path):
    from leanrank.rankers import RankRLS

    def fail(*args, **options):
        raise error

    monkeypatch.setattr(RankRLS, "path", fail)
    how = {"journal": tmp_path / "j", "measure": "map"}
    study = tune(*parts, systems=["rankrls", "ranksvm"], trials=2, **how)
    assert {one.algorithm for one in study.candidates} == {"ranksvm"}
    problem = json.loads((tmp_path / "j").read_text().splitlines()[1])["entry"]["problem"]
    assert problem in ("it cannot", "unexpected ZeroDivisionError: a slip")
    with pytest.raises(InputError, match="no system gave a model that ranks anything: "):
        tune(*parts, systems=["rankrls"], trials=2)


def test_fitted_on_both_parts(parts):
    how = {"systems": SOME, "trials": 4, "max_features": 3}
    one, both = tune(*parts, **how), tune(*parts, **how, refit="both")
    assert both.chosen.name == one.chosen.name
    assert set(both.chosen.model.indices) <= set(one.chosen.model.indices)
    assert not np.array_equal(both.chosen.model.values, one.chosen.model.values)
    together = joined_sets(*parts)
    assert together.n_queries == 60
    assert np.array_equal(together.X[: len(parts[0])], parts[0].X)
    from scipy.sparse import csr_array

    sparse = joined_sets(parts[0].replace(X=csr_array(parts[0].X)), parts[1])
    assert np.array_equal(sparse.X.toarray(), together.X)
    weighted = joined_sets(parts[0].replace(query_weight=np.full(40, 2.0)), parts[1])
    assert weighted.query_weight.tolist() == [2.0] * 40 + [1.0] * 20


def test_systems_take_turns():
    spaces = {
        "rankrls": Space("rankrls", {}, {"alpha": (1, 2, 3)}),
        "ranksvm": Space("ranksvm"),
        "listnet": Space("listnet", {}, {"alpha": (1, 2, 3, 4, 5)}),
    }
    assert [(name, *s.values()) for name, _, s in round_robin(spaces)] == [
        ("rankrls", 1), ("ranksvm",), ("listnet", 1), ("rankrls", 2), ("listnet", 2),
        ("rankrls", 3), ("listnet", 3), ("listnet", 4), ("listnet", 5),
    ]  # fmt: skip


def test_every_system_has_its_first_trial_before_any_has_its_second():
    names = default_systems()
    assert {name for name, one in SYSTEMS.items() if one.tuning is not None} == set(names)
    assert names[:3] == ["lean", "domination", "domination-curves"]  # in 15 s on MQ2008
    place = names.index
    assert place("listnet") < place("rankrls") < place("rankboost")
    plan = [name for name, _, _ in round_robin({n: SYSTEMS[n].tuning for n in names})]
    assert plan[: len(names)] == names


def test_a_search_goes_on_until_everything_was_tried(parts):
    told = []
    systems = ["domination", "rankrls", "ranknet", "pamir"]
    study = tune(*parts, systems=systems, trials=6, progress=lambda at: told.append(at.doing))
    assert told == [*systems, "domination", "pamir"]
    assert study.not_tried == ()
    everything = tune(*parts, systems=["rankrls"], trials=9)
    assert len(everything.history) == 1


@pytest.mark.parametrize(("kind", "rounds"), [(RankBoost, "n_rounds"), (MinBatSRank, "epochs")])
def test_a_ranker_that_stops_early_then_learns_from_all_of_its_queries(parts, kind, rounds):
    data = parts[0]
    stopped = kind(**{rounds: 12}, patience=3)
    fold = whole_query_folds(data, QueryKFold(5, stratify=True))[0]
    stopped.fit(data.queries[fold.train], validation=data.queries[fold.test])
    best = stopped.best_epoch_ if rounds == "epochs" else stopped.n_iter_
    assert 1 <= best < 12
    alone = kind(**{rounds: 12}, patience=3)
    fit_alone(alone, data)
    whole = kind(**{rounds: best}).fit(data)
    assert np.array_equal(alone.predict(data), whole.predict(data))
    assert not np.array_equal(alone.predict(data), stopped.predict(data))


def test_compiling_does_not_count(parts, monkeypatch):
    def slow_start(*given):
        fresh = numba.njit(lambda x: np.sort(x)[0])
        assert fresh(np.array([2.0, 1.0])) == 1.0
        return run_trial(*given)

    monkeypatch.setattr("leanrank.selection.search.run_trial", slow_start)
    began, before = time.perf_counter(), compile_seconds()
    study = tune(*parts, systems=["rankrls"], trials=1)
    wall, compiled = time.perf_counter() - began, compile_seconds() - before
    assert compiled > 0.01
    assert 0 < study.history[-1]["seconds"] <= wall - compiled


def test_what_leanness_costs(parts):
    study = tune(*parts, systems=["domination"], trials=1, max_features=1)
    cost = study.leanness
    assert cost.other.n_features > study.chosen.n_features == 1
    expected = cost.other.score("ndcg@10") - study.chosen.score("ndcg@10")
    assert -cost.better == pytest.approx(expected)
    assert cost.better < 0
    assert f"better by {-cost.better:.4f} (standard error " in str(cost)
    assert tune(*parts, systems=["domination"], trials=1).leanness is None


def test_systems_whose_models_are_too_large_are_tried_once(parts):
    told = []
    systems = ["minbatsrank", "rankrls", "pamir"]
    try:
        tune(*parts, systems=systems, trials=9, max_features=1, progress=told.append)
    except InputError as error:
        assert "no model was found with max_features=1" in str(error)  # noqa: PT017
    done = [at.doing for at in told]
    assert done.count("pamir") == done.count("rankrls") == 1


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"budget": 0}, "budget=0"),
        ({"trials": 0}, "trials=0"),
        ({"trials": 1, "budget": 1}, "both a budget and a number of trials"),
        ({"max_features": 0}, "max_features=0"),
        ({"refit": "test"}, "refit='test' is not known"),
        ({"systems": ["svm"]}, "no system 'svm'"),
    ],
)
def test_wishes_that_make_no_sense(parts, how, message):
    with pytest.raises(InputError, match=message):
        tune(*parts, **how)


def test_data_that_do_not_fit(parts):
    training, validation = parts
    with pytest.raises(InputError, match="has 9 features, the training data 10"):
        tune(training, validation.replace(X=validation.X[:, :9]))
    flat = training.replace(y=np.zeros(len(training)))
    with pytest.raises(InputError, match="needs two training queries"):
        tune(flat)
    with pytest.raises(InputError, match="no system gave a model that ranks anything"):
        tune(flat, validation, trials=2, systems=["domination", "rankrls"])


def test_the_journal_holds_plain_json(parts, tmp_path):
    path = tmp_path / "j"
    tune(*parts, systems=["rankrls", "rankboost"], trials=3, journal=path)
    lines = [json.loads(line)["entry"] for line in path.read_text().splitlines()]
    assert [line["trial"] for line in lines[1:]] == [0, 1, 2]
    assert lines[1]["candidates"][0]["model"]["curves"][0].keys() == {"feature", "weight"}
    assert lines[2]["candidates"][0]["model"]["curves"][0].keys() >= {"thresholds", "levels"}


def test_the_scaler_is_fitted_without_the_queries_that_judge(parts):
    """By hand: a scaler and a ranker for each group of queries."""
    from leanrank.data import make_normalizer

    training = parts[0].replace(X=parts[0].X * np.linspace(1, 50, 10) + 3.0)
    task = Task(training, None, "map", ("map",), ("map",), scale="standard")
    (one,) = run_trial(task, Space("rankrls", {"alpha": 0.1}), {})
    for group in range(5):
        inside = task.folds[group].test
        rest, mine = training.queries[~inside], training.queries[inside]
        scaler = make_normalizer("standard").fit(rest)
        ranker = get_ranker("rankrls")(alpha=0.1).fit(scaler.transform(rest))
        scores = ranker.predict(scaler.transform(mine))
        expected = task.judge.per_query(mine, scores, ["map"])["map"]
        assert one.values["map"][inside] == pytest.approx(expected, nan_ok=True)


def test_features_are_scaled_and_the_model_takes_raw_ones(parts):
    training, validation = (part.replace(X=part.X * np.linspace(1, 50, 10)) for part in parts)
    study = tune(training, validation, scale="standard", systems=["rankrls"], trials=1)
    assert study.model.normalizer["kind"] == "standard"
    scaled = study.split.scaled
    assert scaled[0].X.std(axis=0) == pytest.approx(1)
    bare = study.model.replace(normalizer=None)
    assert study.model.predict(validation) == pytest.approx(bare.predict(scaled[1]))
    wide = training.replace(X=training.X * 10.0 ** np.arange(10))
    auto = tune(wide, systems=["rankrls"], trials=1)
    assert auto.normalizer.kind == "standard"
    assert "times that of" in auto.scale_reason
    plain = tune(training, validation, scale="none", systems=["rankrls"], trials=1)
    assert plain.model.normalizer is None
    with pytest.raises(InputError, match="scale='huge' is not known"):
        tune(training, validation, scale="huge")


@pytest.mark.parametrize("name", ["rankboost", "minbatsrank", "adarank"])
def test_queries_that_judge_do_not_stop_a_ranker(name, parts):
    """With other labels in the validation part, the models are the same."""
    training, validation = parts
    turned = validation.replace(y=validation.y.max() - validation.y)
    space = TUNING[name]
    models = [
        [one.model.to_dict() for one in run_trial(Task(training, part), space, space.settings()[0])]
        for part in (validation, turned)
    ]
    assert models[0]
    assert models[0] == models[1]


def test_data_frames_and_tuples(parts):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    frames = []
    for part in parts:
        frame = pandas.DataFrame(part.X, columns=[f"f{j}" for j in range(10)])
        frames.append(frame.assign(label=part.y, qid=part.qid))
    how = {"systems": ["rankrls"], "trials": 1}
    expected = tune(*parts, **how).chosen.model.values
    assert np.array_equal(tune(*frames, **how).chosen.model.values, expected)
    tuples = [(part.X, part.y, part.qid) for part in parts]
    assert np.array_equal(tune(*tuples, **how).chosen.model.values, expected)
    with pytest.raises(InputError, match="training must be a RankingData, a data frame or a tuple"):
        tune(parts[0].X, **how)


def test_systems_that_were_not_tried_are_named(parts):
    study = tune(*parts, systems=["rankrls", "ranknet", "pamir"], trials=2)
    assert study.not_tried == ("pamir",)
    assert not study.problems


def test_an_interrupt_keeps_the_best_so_far(parts):
    def interrupt(at):
        if at.trials == 2:
            raise KeyboardInterrupt

    study = tune(*parts, systems=SOME, trials=9, progress=interrupt)
    assert study.interrupted
    assert answer(study) == answer(tune(*parts, systems=SOME, trials=9, progress=interrupt))
    assert study.chosen.n_features

    def at_once(at):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        tune(*parts, systems=SOME, trials=9, progress=at_once)


def test_a_cost_at_the_limit_is_within_it_but_for_rounding():
    data = make_ranking(30, 8, n_features=2, n_informative=2, random_state=0)
    costs = [0.1, 0.2]
    study = tune(data, systems=["rankrls"], trials=1, costs=costs, max_cost=0.3)
    assert study.chosen.cost > 0.3  # 0.1 + 0.2 in floating point
    assert study.history  # the search itself saw a model within the limit


def test_limits_and_costs_count_features_of_curves_and_gaps_are_values():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 5))
    X[rng.random(200) < 0.3, 0] = np.nan
    utility = -np.abs(X[:, 1]) + np.isnan(X[:, 0]) + 0.5 * X[:, 2] + 0.1 * rng.normal(size=200)
    data = RankingData(X, np.digitize(utility, [-0.8, -0.3, 0.3]), np.arange(200) // 10)
    costs = {0: 5, "*": 1}
    systems = ["domination", "domination-curves"]
    study = tune(data, systems=systems, trials=2, max_features=2, max_cost=6.0, costs=costs)
    assert 1 <= study.chosen.n_features == len(study.chosen.model.curves) <= 2
    assert study.chosen.cost == sum(costs.get(at, 1) for at in study.chosen.model.indices) <= 6.0
    assert any(one.cost > 6.0 for one in study.candidates)
    assert "domination" in study.problems  # which takes no missing values


def test_systems_that_take_no_gaps_are_left_out_of_a_search():
    data = make_ranking(30, 8, n_features=3, n_informative=2, random_state=0)
    X = data.X.copy()
    X[::7, 1] = np.nan
    study = tune(data.replace(X=X * [1.0, 1e5, 1.0]), trials=6)
    assert study.normalizer is None  # curves and steps alone
    assert {one.algorithm for one in study.candidates} == {
        "lean", "rankboost", "domination", "ranksvm", "listnet", "ranknet",
    }  # fmt: skip
    assert all(
        one.algorithm in ("lean", "rankboost") or "curves" in one.parameters
        for one in study.candidates
    )
    assert "domination" in study.skipped
    assert not study.problems
    assert not tune(data, systems=["rankrls"], trials=1).skipped


def test_curves_alone_are_not_scaled():
    data = make_ranking(30, 8, n_features=3, n_informative=2, random_state=0)
    wide = data.replace(X=data.X * [1.0, 1e5, 1.0])
    curves = {"systems": ["domination-curves"], "trials": 1}
    study = tune(wide, **curves)
    assert study.normalizer is None
    assert study.scale_reason == "no, curves need no scaling"
    with pytest.raises(InputError, match="scale='standard' has no effect on curves"):
        tune(wide, scale="standard", **curves)


def test_a_curve_has_its_knots_in_the_units_of_the_features():
    data = make_ranking(30, 8, n_features=3, n_informative=2, random_state=0)
    wide = data.replace(X=data.X * [1.0, 1e5, 1.0] + 7.0)
    study = tune(wide, systems=["rankrls", "domination-curves", "rankboost"], trials=3)
    assert study.normalizer.kind == "standard"
    for algorithm in ("domination", "rankboost", "rankrls"):
        model = next(one for one in study.candidates if one.algorithm == algorithm).model
        assert (model.normalizer is None) == (algorithm != "rankrls")
        if 1 in model.curves and algorithm != "rankrls":
            assert max(map(abs, model.curves[1].cuts)) > 1000


def test_a_journal_of_other_names_is_refused(parts, tmp_path):
    """Models are applied by name: the same columns under other names are other data."""
    names = [f"x{j}" for j in range(10)]
    how = {"systems": ["rankrls"], "trials": 1, "journal": tmp_path / "j"}
    training, validation = (part.replace(feature_names=names) for part in parts)
    tune(training, validation, **how)
    renamed = [part.replace(feature_names=[names[1], names[0], *names[2:]]) for part in parts]
    with pytest.raises(InputError, match="feature names"):
        tune(*renamed, **how)


def test_validation_columns_are_matched_by_name(parts):
    names = [f"x{j}" for j in range(10)]
    training, validation = (part.replace(feature_names=names) for part in parts)
    order = [3, 1, 0, 2, *range(4, 10)]
    moved = validation.replace(X=validation.X[:, order], feature_names=[names[k] for k in order])
    how = {"systems": ["domination", "rankrls"], "trials": 3}
    assert answer(tune(training, moved, **how)) == answer(tune(training, validation, **how))
    with pytest.raises(InputError, match="x9"):
        tune(training, validation.replace(feature_names=[*names[:9], "other"]), **how)


def test_a_frame_without_labels_names_a_remedy_that_works(parts):
    pytest.importorskip("pyarrow")
    pandas = pytest.importorskip("pandas")
    from leanrank.data import from_frame

    frame = pandas.DataFrame(parts[0].X, columns=[f"f{j}" for j in range(10)])
    frame = frame.assign(grade=parts[0].y, qid=parts[0].qid)
    how = {"systems": ["rankrls"], "trials": 1}
    with pytest.raises(InputError, match=r"'label'.*from_frame"):
        tune(frame, **how)
    assert tune(from_frame(frame, label="grade"), **how).chosen.n_features
    assert tune(frame.rename(columns={"grade": "label"}), **how).chosen.n_features


def test_clicks_are_tuned_with_their_weights():
    truth = make_ranking(
        n_queries=60, docs_per_query=10, n_features=6, n_levels=2, label_noise=0.3, random_state=0
    )
    shown = {"eta": 1.5, "scores": -truth.X[:, 0], "swaps": "adjacent", "random_state": 0}
    clicks = make_clicks(truth, 20_000, **shown)
    how = {"systems": ["domination"], "trials": 1}
    study = tune(clicks, **how)
    weights = click_weights(clicks, estimate_propensities(clicks))
    given = clicks.data.replace(y=weights.y)
    same = tune(given, gain_weight=weights.gain_weight, **how)
    assert answer(same) == answer(study)
    assert answer(tune(given, **how)) != answer(study)  # the weights count
    alone = DominationRanker(**{**study.chosen.parameters, "n_jobs": 1})
    fitted = alone.fit(given, gain_weight=weights.gain_weight)
    assert study.chosen.model.coef == pytest.approx(fitted.coef_, abs=1e-3)
    assert evaluate(truth, study.model.predict(truth), measures="ndcg@10")["ndcg@10"] > 0.9
    both = tune(clicks, clicks, **how)
    assert both.validation.n_queries == clicks.data.n_queries
    with pytest.raises(InputError, match="gain_weight"):
        tune(clicks, clicks, refit="both", **how)
    with pytest.raises(InputError, match=r"gain_weight has .* values"):
        tune(given, gain_weight=[1.0], **how)
    unable = tune(
        given, gain_weight=weights.gain_weight, systems=["rankrls", "domination"], trials=2
    )
    assert "rankrls" in unable.problems


def test_a_click_log_is_learned_from_as_it_is_with_its_names():
    """As the page on clicks does it: a log, features by name, then a fit and a search."""
    truth = make_ranking(n_queries=40, docs_per_query=8, n_features=4, n_levels=2, random_state=0)
    truth = truth.replace(feature_names=("bm25", "age", "stars", "price"))
    shown = {"eta": 1.0, "scores": -truth.X[:, 0], "swaps": "adjacent", "random_state": 0}
    clicks = make_clicks(truth, 10_000, **shown)
    ranker = LeanRanker(max_features=3, max_pairs=0).fit(clicks)
    assert set(ranker.model_.weights) <= set(truth.feature_names)
    assert ranker.feature_names_in_.tolist() == list(truth.feature_names)
    study = tune(clicks, systems=["lean", "domination"], trials=2)
    assert study.problems == {}
    assert study.model.feature_names == truth.feature_names
    for model in (ranker.model_, study.model):
        assert evaluate(truth, model.predict(truth), measures="ndcg@10")["ndcg@10"] > 0.9


def test_data_on_dask_are_refused_with_a_remedy(parts):
    dask = pytest.importorskip("dask")
    with pytest.raises(InputError, match="sample"):
        tune([dask.delayed(parts[0])])
    with pytest.raises(InputError, match="sample"):
        tune(parts[0], [dask.delayed(parts[1])])


def test_validation_and_pooled_figures_have_names_of_their_own(parts):
    study = tune(*parts, systems=["domination"], trials=1)
    one = study.chosen
    pooled, own = one.score("ndcg@10"), one.means["ndcg@10"]
    assert f"{pooled:.4f}" != f"{own:.4f}"
    for text in (repr(one), study._repr_html_()):
        for value, name in ((pooled, "validation and training"), (own, "validation")):
            assert f"{value:.4f}" in text
            assert f"ndcg@10 ({name})" in text
    alone = tune(parts[0], systems=["domination"], trials=1).chosen
    assert f"ndcg@10 {alone.score('ndcg@10'):.4f}" in repr(alone)


def test_choosing_and_reporting_are_two_measures(parts, tmp_path):
    how = {"systems": SOME, "trials": 4, "journal": tmp_path / "j"}
    study = tune(*parts, **how, choose_by="loss")
    usable = [one for one in study.candidates if one.n_features]
    assert study.chosen.score("loss") == min(one.score("loss") for one in usable)
    assert (study.measure, study.choose_by) == ("ndcg@10", "loss")
    assert {"loss", "ndcg@10", "map"} <= set(study.chosen.values)
    assert study.front[-1].score("loss") == study.chosen.score("loss")
    with pytest.raises(InputError, match="choose_by"):
        tune(*parts, **how)


def test_a_study_writes_its_page(parts, tmp_path):
    pytest.importorskip("vl_convert")
    study = tune(*parts, systems=["domination"], trials=1)
    study.report(tmp_path / "page.html", title="A page of its own")
    assert "A page of its own" in (tmp_path / "page.html").read_text(encoding="utf-8")
