"""Boosting by a measure, on tables made by hand."""

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.solvers.boosting.rounds import boost_measure
from leanrank.solvers.boosting.single_features import SingleFeatures


class Scripted:
    """A combined ranker whose measures were written before."""

    def __init__(self, *measures):
        self.measures = [np.array(m, dtype=float) for m in measures]
        self.calls = []

    def __call__(self, weak, value):
        self.calls.append((weak, value))
        return self.measures[min(len(self.calls), len(self.measures)) - 1]


TABLE = np.array([[0.9, 0.1], [0.3, 0.6], [-0.5, -0.5]])
EVEN = np.ones(2)


def test_the_queries_that_are_ranked_badly_weigh_more():
    script = Scripted([0.9, 0.1], [0.5, 0.5])
    first, second = boost_measure(TABLE, script, EVEN, 2, "always")
    assert (first.weak, first.result) == (0, 0.5)
    assert first.value == pytest.approx(0.5 * np.log((1 + 0.5) / (1 - 0.5)))
    P = np.exp([-0.9, -0.1])
    P /= P.sum()
    assert second.weak == int(np.argmax(TABLE @ P)) == 1
    E = float(TABLE[1] @ P)
    assert second.value == pytest.approx(0.5 * np.log((1 + E) / (1 - E)))


def test_query_weights():
    script = Scripted([0.5, 0.1])
    (first,) = boost_measure(TABLE, script, np.array([1.0, 9.0]), 1)
    assert first.weak == 1
    assert first.result == pytest.approx(0.1 * 0.5 + 0.9 * 0.1)


def test_it_ends_when_nothing_is_left():
    script = Scripted([0.5, 0.5])
    rounds = list(boost_measure(TABLE, script, EVEN, 50))
    # 0 makes progress, then 0 and 1 do not; the third ranks backwards and is never taken
    assert [r.weak for r in rounds] == [0, 0, 1]
    assert [r.weak for r in boost_measure(TABLE, Scripted([0.5, 0.5]), EVEN, 50, "never")] == [0, 1]
    assert len(list(boost_measure(TABLE, Scripted([0.5, 0.5]), EVEN, 7, "always"))) == 7


def test_it_ends_when_all_is_perfect():
    assert len(list(boost_measure(TABLE, Scripted([0.9, 0.9], [1.0, 1.0]), EVEN, 50))) == 2
    (only,) = boost_measure(np.ones((1, 2)), Scripted([1.0, 1.0]), EVEN, 50)
    assert np.isfinite(only.value)


def test_the_first_of_equals():
    table = np.array([[0.1, 0.1], [0.4, 0.2], [0.2, 0.4]])
    (first,) = boost_measure(table, Scripted([0.1, 0.1]), EVEN, 1)
    assert first.weak == 1


def test_queries_that_teach_nothing_are_left_out():
    X = np.arange(8.0)[:, None]
    y = [0, 1, 1, 1, 1, 0, -1, 0]  # one level in the second query, nothing relevant in the last
    data = RankingData(X, y, list("aabbccdd"), query_weight=[1.0, 1.0, 3.0, 1.0])
    weak = SingleFeatures(data, "map", "standard", 1, None)
    assert weak.table.tolist() == [[1.0, 0.5]]
    assert weak.query_weight.tolist() == [1.0, 3.0]
    assert weak.add(0, 2.0).tolist() == [1.0, 0.5]
