"""Comparing two rankers."""

from __future__ import annotations

import itertools
import json
import math

import numpy as np
import pytest

from leanrank.errors import InputError
from leanrank.metrics import compare, compare_values, evaluate


def slow_randomization(d):
    sums = [abs(sum(s * v for s, v in zip(signs, d, strict=True))) for signs in
            itertools.product((-1, 1), repeat=len(d))]  # fmt: skip
    return np.mean(np.array(sums) >= abs(sum(d)) - 1e-12)


@pytest.mark.parametrize("n", [1, 2, 5, 10])
def test_few_differences_are_tested_exactly(n):
    rng = np.random.default_rng(n)
    a = rng.random(n + 3)
    b = a + np.append(rng.normal(0.2, 0.5, n), np.zeros(3))
    found = compare_values(a, b)
    assert found.exact
    assert found.n_permutations == 2**n
    assert found.p_randomization == pytest.approx(slow_randomization((b - a)[:n]))
    assert found.ties == 3


def test_drawn_patterns_agree_with_all_patterns():
    d = np.random.default_rng(0).normal(0.3, 1, 17)
    drawn = compare_values(np.zeros(17), d, n_permutations=20_000)
    sums = np.zeros(1)
    for value in d:
        sums = np.concatenate((sums + value, sums - value))
    exact = np.mean(np.abs(sums) >= abs(d.sum()) - 1e-12)
    assert not drawn.exact
    assert abs(drawn.p_randomization - exact) < 5 * math.sqrt(exact * (1 - exact) / 20_000)


def test_the_p_value_of_draws_is_never_zero_and_has_a_seed():
    d = np.random.default_rng(1).normal(5, 1, 200)
    found = compare_values(np.zeros(200), d, n_permutations=999)
    assert found.p_randomization == 1 / 1000
    a, b = np.random.default_rng(2).normal(size=(2, 300))
    ps = [compare_values(a, b, random_state=seed).p_randomization for seed in (0, 0, 1)]
    assert ps[0] == ps[1] != ps[2]
    assert compare_values(b, a).p_randomization == pytest.approx(ps[0], abs=0.03)


def test_p_values_are_uniform_when_nothing_differs():
    rng = np.random.default_rng(3)
    ps = [
        compare_values(
            *rng.normal(size=(2, 40)), n_permutations=400, random_state=s
        ).p_randomization
        for s in range(200)
    ]
    assert 0.02 < np.mean(np.array(ps) <= 0.1) < 0.2


def test_t_test_interval_and_effect_size():
    stats = pytest.importorskip("scipy.stats")
    a, b = np.random.default_rng(4).normal(size=(2, 30))
    found = compare_values(a, b, confidence=0.9)
    peer = stats.ttest_rel(b, a)
    assert found.t == pytest.approx(peer.statistic)
    assert found.p_t_test == pytest.approx(peer.pvalue)
    interval = peer.confidence_interval(0.9)
    assert found.interval == pytest.approx((interval.low, interval.high))
    assert found.effect_size == pytest.approx(peer.statistic / math.sqrt(30))
    assert found.difference == pytest.approx(found.mean_b - found.mean_a)


def test_equal_rankers_do_not_differ():
    found = compare_values([0.1, 0.2, 0.3], [0.1, 0.2, 0.3])
    assert (found.p_randomization, found.p_t_test, found.difference) == (1, 1, 0)
    assert (found.wins, found.ties, found.losses) == (0, 3, 0)


def test_one_query_has_no_t_test():
    found = compare_values([0.1], [0.3])
    assert math.isnan(found.p_t_test)
    assert found.p_randomization == 1
    assert json.loads(json.dumps(found.to_dict()))["p_t_test"] is None


def test_comparing_scores():
    rng = np.random.default_rng(5)
    y, qid = rng.integers(0, 3, 600), np.repeat(np.arange(60), 10)
    noise, signal = rng.normal(size=600), y + rng.normal(size=600)
    found = compare(y, noise, signal, qid, measure="map(rel=2)", convention="letor4")
    a = evaluate(y, noise, qid, measures="map(rel=2)", convention="letor4")
    b = evaluate(y, signal, qid, measures="map(rel=2)", convention="letor4")
    assert (found.mean_a, found.mean_b) == (a["map(rel=2)"], b["map(rel=2)"])
    assert found.wins > found.losses
    assert found.p_randomization < 0.001
    errors = compare(y, noise, signal, qid, measure="all_pairs_error")
    assert errors.difference < 0
    assert errors.wins > errors.losses  # a lower error is a win
    text = str(found)
    assert "map(rel=2) on 60 queries" in text
    assert "10,000 draws" in text


def test_queries_undefined_for_either_are_left_out():
    found = compare_values([0.1, np.nan, 0.3], [0.2, 0.5, 0.3])
    assert found.wins + found.ties + found.losses == 2
    assert np.isnan(found.differences[1])
    assert found.mean_a == pytest.approx(0.2)


def test_unusable_input_is_refused():
    for arguments, words in (
        (([1, 2], [1]), "a has 2 values and b has 1"),
        (([np.nan], [1]), "nothing to compare"),
        (([np.inf], [1]), "finite"),
        ((["x"], [1]), "not a number"),
    ):
        with pytest.raises(InputError, match=words):
            compare_values(*arguments)
    with pytest.raises(InputError, match="confidence"):
        compare_values([1], [2], confidence=95)
    with pytest.raises(InputError, match="n_permutations"):
        compare_values([1], [2], n_permutations=0)
