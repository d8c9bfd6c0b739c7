"""A confidence sequence holds at all times at once."""

import numpy as np
import pytest

from leanrank.errors import InputError
from leanrank.online import confidence_sequence


def slow(values, low, high, alpha):
    """Return the last bounds, value by value, before they are intersected."""
    xs = [(v - low) / (high - low) for v in values]
    mean, spread, seen, ss = 0.5, 0.25, 0.0, 0.0
    top = bottom = cost = 0.0
    for t, x in enumerate(xs, start=1):
        bet = min(np.sqrt(2 * np.log(2 / alpha) / (spread * t * np.log(1 + t))), 0.5)
        cost += (x - mean) ** 2 * (-np.log(1 - bet) - bet)
        top, bottom = top + bet * x, bottom + bet
        seen += x
        mean = (0.5 + seen) / (t + 1)
        ss += (x - mean) ** 2
        spread = (0.25 + ss) / (t + 1)
    half = (np.log(2 / alpha) + cost) / bottom
    return low + (high - low) * (top / bottom - half), low + (high - low) * (top / bottom + half)


def test_bounds_are_those_of_the_definition():
    values = np.random.default_rng(0).uniform(-1, 3, 400)
    lower, upper = confidence_sequence(values, low=-1, high=3, alpha=0.1)
    ends = np.array([slow(values[: t + 1], -1, 3, 0.1) for t in range(400)])
    np.testing.assert_allclose(lower, np.maximum.accumulate(np.maximum(ends[:, 0], -1)), rtol=1e-9)
    np.testing.assert_allclose(upper, np.minimum.accumulate(np.minimum(ends[:, 1], 3)), rtol=1e-9)


@pytest.mark.parametrize("mean", [0.0, 0.3])
def test_the_mean_is_missed_at_any_time_no_more_often_than_promised(mean):
    rng, missed, fixed = np.random.default_rng(1), 0, 0
    for _ in range(400):
        p = np.array([0.3 - mean / 2, 0.4, 0.3 + mean / 2])
        values = rng.choice([-1.0, 0.0, 1.0], p=p, size=2_000)
        lower, upper = confidence_sequence(values, alpha=0.1)
        missed += bool((lower > mean).any() or (upper < mean).any())
        t = np.arange(50, 2_001)
        running = np.cumsum(values)[49:] / t
        fixed += bool((np.abs(running - mean) > 1.645 * values.std() / np.sqrt(t)).any())
    assert missed <= 40  # 10 %
    assert fixed > 100  # what looking again and again does to an ordinary interval
    assert upper[-1] - lower[-1] < 0.2


def test_a_difference_is_found_and_the_interval_shrinks():
    values = np.random.default_rng(2).choice([-1, 1], p=[0.45, 0.55], size=5_000)
    lower, upper = confidence_sequence(values)
    assert lower[-1] > 0
    assert (np.diff(lower) >= 0).all()
    assert (np.diff(upper) <= 0).all()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"values": [2.0]}, r"outside \[-1, 1\]"),
        ({"values": [np.nan]}, "outside"),
        ({"values": [0.0], "alpha": 0}, "alpha=0 in"),
        ({"values": [0.0], "low": 1}, "must be below"),
    ],
)
def test_what_cannot_be_is_refused(arguments, message):
    with pytest.raises(InputError, match=message):
        confidence_sequence(**arguments)
