"""The order of scores, whatever the scores are and were."""

import numpy as np
import pytest

from leanrank import _score_order
from leanrank._score_order import sort_scores

N = 5_000


def spreads(rng):
    normal = rng.normal(size=N)
    return {
        "normal": normal,
        "ties": rng.integers(0, 50, N) / 7.0,
        "constant": np.full(N, 3.25),
        "two": rng.integers(0, 2, N) * 1e-300,
        "outlier": np.append(normal[1:], 1e250),
        "outliers": np.concatenate(([-1e308], normal[2:], [1e308])),
        "offset": normal + 1e8,
        "tiny": normal * 5e-324 * 1e3,
        "many scales": normal * 10.0 ** rng.integers(-200, 200, N),
        "ascending": np.sort(normal),
        "descending": -np.sort(normal),
        "infinite": np.append(normal[1:], np.inf),
        "signed zeros": np.where(rng.random(N) < 0.5, 0.0, -0.0),
        "short": normal[:100],
    }


@pytest.mark.parametrize("spread", list(spreads(np.random.default_rng(0))))
def test_sorted_by_score_and_row(spread):
    rng = np.random.default_rng(1)
    u = np.concatenate((rng.normal(size=7), spreads(rng)[spread], rng.normal(size=5)))
    n = len(u) - 12
    expected = 7 + np.argsort(u[7 : 7 + n], kind="stable")
    order, x = np.arange(len(u)), np.full(n + 3, np.nan)
    for _ in range(2):  # the second time it is sorted already
        sort_scores(u, 7, order[7 : 7 + n], x)
        np.testing.assert_array_equal(order[7:-5], expected)
        np.testing.assert_array_equal(x[:n], u[expected])
        assert np.isnan(x[n:]).all()
        np.testing.assert_array_equal(order[:7], np.arange(7))
        np.testing.assert_array_equal(order[-5:], np.arange(len(u) - 5, len(u)))
    other = rng.normal(size=len(u))
    sort_scores(other, 7, order[7 : 7 + n], x)
    np.testing.assert_array_equal(order[7:-5], 7 + np.argsort(other[7:-5], kind="stable"))
    sort_scores(u, 7, order[7 : 7 + n], x)  # what was sorted before leaves no trace
    np.testing.assert_array_equal(order[7:-5], expected)


def test_digits_give_up_where_they_cannot_tell():
    rng = np.random.default_rng(2)
    rows, x = np.arange(N), np.empty(N)
    assert _score_order._sort_by_digits(rng.normal(size=N), 0, rows, x)
    assert not _score_order._sort_by_digits(spreads(rng)["outlier"], 0, rows, x)
    assert not _score_order._sort_by_digits(spreads(rng)["outliers"], 0, rows, x)
    assert not _score_order._sort_by_digits(np.full(N, 1.0), 0, rows, x)


def test_nothing_to_sort():
    order, x = np.arange(1), np.empty(1)
    sort_scores(np.array([5.0]), 0, order[:0], x)
    sort_scores(np.array([5.0]), 0, order, x)
    assert x[0] == 5.0
