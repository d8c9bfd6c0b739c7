"""Concave penalties: slopes are slopes, and majorants lie above and touch."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanrank.penalties.concave import SHAPES, ConcavePenalty, make_shape
from leanrank.penalties.elastic_net import ElasticNet

OPTIONS = {"p": 0.4, "gamma": 2.5, "epsilon": 0.05}


@pytest.mark.parametrize("name", SHAPES)
def test_a_slope_is_the_derivative_of_its_value_and_falls(name):
    shape, rate = make_shape(name, **OPTIONS), np.full(50, 0.3)
    t, h = np.linspace(0.01, 2, 50), 1e-6
    slope = shape.slope(t, rate)
    numeric = (shape.value(t + h, rate) - shape.value(t - h, rate)) / (2 * h)
    np.testing.assert_allclose(slope, numeric, rtol=1e-6, atol=1e-6)
    assert np.all(np.diff(slope) <= 0)
    assert np.all(slope >= 0)
    assert shape.value(np.zeros(50), rate).max() == 0


def test_the_formulas():
    t, rate = np.array([0.0, 0.2, 3.0]), np.full(3, 0.5)
    lp, mcp, log, adaptive = (make_shape(n, **OPTIONS) for n in ("lp", "mcp", "log", "adaptive"))
    np.testing.assert_allclose(lp.value(t, rate), (t + 0.05) ** 0.4 - 0.05**0.4)
    np.testing.assert_allclose(lp.slope(t, rate), 0.4 * (t + 0.05) ** -0.6)
    np.testing.assert_allclose(log.value(t, rate), np.log((t + 0.05) / 0.05))
    np.testing.assert_allclose(log.slope(t, rate), 1 / (t + 0.05))
    np.testing.assert_allclose(mcp.value(t, rate), [0, 0.2 - 0.2**2 / 2.5, 1.25 / 2])
    np.testing.assert_allclose(mcp.slope(t, rate), [1, 1 - 0.2 / 1.25, 0])
    np.testing.assert_allclose(adaptive.slope(t, rate), (t + 0.05) ** -2.5)


@given(st.sampled_from(SHAPES), st.integers(0, 2**32 - 1))
def test_the_majorant_lies_above_and_touches(name, seed):
    rng = np.random.default_rng(seed)
    factors = rng.choice([0.0, 0.5, 1.0, np.inf], 6)
    signs = rng.integers(-1, 2, 6)
    base = ElasticNet.build(rng.random() + 0.01, 0.7, 6, factors, signs)
    penalty = ConcavePenalty(base, make_shape(name, **OPTIONS))
    draw = lambda: base.permitted(rng.normal(size=6) * rng.choice([0, 0.1, 1], 6))  # noqa: E731
    w = draw()
    majorant = penalty.majorant(w)
    constant = penalty.value(w) - majorant.value(w)
    for _ in range(20):
        v = draw()
        assert penalty.value(v) <= majorant.value(v) + constant + 1e-12 * (1 + penalty.value(v))
    assert np.array_equal(majorant.excluded, base.excluded)
    assert np.array_equal(penalty.excluded, base.excluded)
    assert np.array_equal(penalty.free, base.free)
    wrong = np.where(np.isinf(base.above), 1.0, np.where(np.isinf(base.below), -1.0, 0.0))
    if wrong.any():
        assert penalty.value(wrong) == np.inf
