"""The minimum of convex functions on a segment."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanrank.solvers.first_order._subproblems import minimise_on_segment


@given(
    st.floats(-2, 3),
    st.floats(0.1, 100),
    st.floats(0.1, 100),
    st.floats(0.01, 2),
    st.sampled_from([0.0, 0.1, 1.0, 10.0]),
)
def test_a_kinked_parabola_whatever_curvature_is_claimed(at, left, right, high, claimed):
    def probe(t):
        side = left if t < at else right
        return side * (t - at), claimed * side

    t = minimise_on_segment(probe, high, accuracy=1e-6)
    little_slope = abs(probe(t)[0]) <= 1e-6 * abs(probe(0.0)[0])
    assert little_slope or t == pytest.approx(np.clip(at, 0.0, high), abs=3e-6 * max(1.0, high))


def test_a_slope_that_jumps_across_zero_is_found_by_halving():
    looked = []

    def probe(t):
        looked.append(t)
        return (-1.0 if t < 0.7 else 5.0), 0.0

    assert minimise_on_segment(probe, accuracy=1e-4) == pytest.approx(0.7, abs=1e-4)
    assert len(looked) < 20


def test_newton_needs_few_slopes_on_a_smooth_function():
    looked = []

    def probe(t):
        looked.append(t)
        return np.exp(3 * t) - 4.0, 3 * np.exp(3 * t)

    assert minimise_on_segment(probe, accuracy=1e-8) == pytest.approx(np.log(4) / 3, abs=1e-8)
    assert len(looked) <= 9


def test_no_descent_is_no_step():
    assert minimise_on_segment(lambda t: (1.0, 1.0)) == 0.0
    assert minimise_on_segment(lambda t: (0.0, 1.0)) == 0.0
    assert minimise_on_segment(lambda t: (-1.0, 1.0), high=0.0) == 0.0
