"""Systems side by side: measured as by hand, tested against the best, the same in any process."""

import json

import numpy as np
import pytest

from leanrank.data import make_ranking
from leanrank.metrics import compare_values, evaluate
from leanrank.model import Model
from leanrank.selection import Candidate, Split, compare_systems, fit_system
from leanrank.selection.compare import (
    MEASURES,
    ComparedSet,
    Outcome,
    holm,
    markdown,
    seconds,
    to_dict,
)

SYSTEMS = ["rankrls", "bestfeature"]


@pytest.fixture(scope="module")
def splits():
    parts = []
    for seed in (0, 1):
        data = make_ranking(n_queries=36, docs_per_query=12, n_features=6, random_state=seed)
        parts.append((data.queries[:16], data.queries[16:24], data.queries[24:36]))
    return parts


@pytest.fixture(scope="module")
def compared(splits):
    said = []
    found = compare_systems("made up", splits, SYSTEMS, convention="letor4", say=said.append)
    assert len(said) == 4
    assert said[-1] == "made up, split 2: best feature (2 of 2)"
    return found


def test_figures_are_those_of_a_fit_by_hand(compared, splits):
    for number, (train, vali, test) in enumerate(splits, 1):
        chosen = fit_system("rankrls", Split(train, vali, "map", "letor4"))
        found = evaluate(
            test, chosen.model.predict(test), measures=list(MEASURES), convention="letor4"
        )
        mine = next(o for o in compared.outcomes if (o.system, o.fold) == ("rankrls", number))
        assert mine.chosen.parameters == chosen.parameters
        assert mine.chosen.n_features == chosen.n_features
        for measure in MEASURES:
            assert np.array_equal(mine.per_query[measure], found.per_query[measure])
    row = next(row for row in compared.rows if row.system == "rankrls")
    by_split = [o.per_query["map"].mean() for o in compared.outcomes if o.system == "rankrls"]
    assert row.means["map"] == pytest.approx(np.mean(by_split))


@pytest.mark.slow
def test_only_times_depend_on_the_processes(compared, splits):
    other = compare_systems("made up", splits, SYSTEMS, convention="letor4", n_jobs=2)
    for one, two in zip(compared.outcomes, other.outcomes, strict=True):
        assert (one.system, one.fold) == (two.system, two.fold)
        assert one.chosen.parameters == two.chosen.parameters
        for measure in MEASURES:
            assert np.array_equal(one.per_query[measure], two.per_query[measure])


SOME = Candidate.of("rankrls", {"alpha": 1.0}, Model.from_coef([1.0]), {"map": np.ones(1)})


def outcomes(values):
    """Systems with given MAP on each of two splits."""
    return [
        Outcome(system, fold, SOME, {"map": np.asarray(v, dtype=float)})
        for system, by_fold in values.items()
        for fold, v in enumerate(by_fold, 1)
    ]


def test_marks_are_of_a_paired_test_over_all_queries():
    rng = np.random.default_rng(0)
    best = [rng.random(30), rng.random(20)]
    near = [v + 0.2 * rng.normal(size=len(v)) - 0.01 for v in best]
    far = [v - 0.3 + 0.1 * rng.normal(size=len(v)) for v in best]
    values = outcomes({"rankrls": best, "domination": near, "bestfeature": far})
    made = ComparedSet("s", "letor4", "map", ("map",), values)
    rows = {row.system: row for row in made.rows}
    assert made.best("map") == "rankrls"
    assert "map" not in rows["rankrls"].worse
    raw = {
        name: compare_values(np.concatenate(best), np.concatenate(v)).p_randomization
        for name, v in (("domination", near), ("bestfeature", far))
    }
    assert rows["bestfeature"].worse["map"] == pytest.approx(2 * raw["bestfeature"])
    assert rows["domination"].worse["map"] == pytest.approx(raw["domination"])
    assert rows["bestfeature"].means["map"] == pytest.approx(np.mean([v.mean() for v in far]))
    page = markdown(made)
    assert "| **" in page
    assert page.count("°") == 2  # the mark and its explanation


def test_holm_is_monotone_and_at_most_one():
    rng = np.random.default_rng(1)
    p = {str(at): float(v) for at, v in enumerate(rng.random(9) ** 3)}
    fixed = holm(p)
    order = sorted(p, key=p.get)
    for place, name in enumerate(order):
        slow = max(min(1.0, (9 - at) * p[other]) for at, other in enumerate(order[: place + 1]))
        assert fixed[name] == pytest.approx(slow)
    assert holm({}) == {}


def test_a_system_that_fails_is_named_and_left_out():
    made = outcomes({"rankrls": [[0.5, 0.4], [0.3]], "domination": [[0.5, 0.4], [0.3]]})
    made[3] = Outcome("domination", 2, problem="nothing to learn from")
    compared = ComparedSet("s", "letor4", "map", ("map",), made)
    assert [row.system for row in compared.rows] == ["rankrls"]
    assert compared.problems == ["Domination Rank: nothing to learn from (split 2)"]
    assert "nothing to learn from" in markdown(compared)


def test_one_system_does_not_take_the_others_with_it(splits, monkeypatch):
    from leanrank.selection import compare as comparison

    fit = comparison.fit_system

    def sometimes(name, split):
        if name == "domination":
            raise ZeroDivisionError("by\nzero")
        return fit(name, split)

    monkeypatch.setattr(comparison, "fit_system", sometimes)
    found = compare_systems("made up", splits, ["domination", "bestfeature"], convention="letor4")
    assert [row.system for row in found.rows] == ["bestfeature"]
    assert found.problems == ["Domination Rank: unexpected ZeroDivisionError: by zero (split 1)"]


def test_undefined_queries_are_left_out_of_means():
    made = outcomes({"rankrls": [[0.5, np.nan], [0.3]], "bestfeature": [[np.nan, np.nan], [0.3]]})
    compared = ComparedSet("s", "standard", "map", ("map",), made)
    assert compared.rows[0].means["map"] == pytest.approx(0.4)
    assert np.isnan(compared.rows[1].means["map"])
    assert compared.best("map") == "rankrls"


def test_the_same_figures_in_every_form(compared):
    value = f"{compared.rows[0].means['map']:.4f}"
    assert value in markdown(compared)
    kept = json.loads(json.dumps(to_dict(compared)))
    assert kept["systems"][0]["means"]["map"] == compared.rows[0].means["map"]
    assert len(kept["systems"][0]["splits"]) == 2


def test_times_are_readable():
    assert [seconds(x) for x in (0.0, 0.000004, 0.0123, 0.99, 1.26, 9.99, 123.4)] == [
        "0", "4e-06", "0.012", "0.99", "1.3", "10", "123",
    ]  # fmt: skip


def test_scaling_is_learned_on_the_training_part(splits):
    found = compare_systems("s", splits[:1], ["rankrls"], scale="standard", measures=["map"])
    train = splits[0][0]
    normalizer = found.outcomes[0].chosen.model.normalizer
    assert normalizer["kind"] == "standard"
    assert np.allclose(normalizer["mean"], train.X.mean(axis=0))


def test_the_lowest_error_is_the_best():
    rng = np.random.default_rng(0)
    low, high = 0.2 + 0.01 * rng.random(40), 0.8 + 0.01 * rng.random(40)
    found = ComparedSet(
        "made up", "standard", "map", ("domination_error",),
        [Outcome("rankrls", 1, SOME, {"domination_error": high}),
         Outcome("ranksvm", 1, SOME, {"domination_error": low})],
    )  # fmt: skip
    assert found.best("domination_error") == "ranksvm"
    rows = {row.system: row.worse for row in found.rows}
    assert rows["ranksvm"] == {}
    assert rows["rankrls"]["domination_error"] < 0.001
