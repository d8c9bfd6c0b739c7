"""The vectorised exponentials against the C library's."""

import numpy as np
import pytest

from leanrank._smooth import CHUNK, exp_chunk, sigmoid_chunk, softplus_chunk


@pytest.mark.parametrize("spread", [1e-9, 0.1, 1.0, 50.0, 400.0])
def test_equal_the_c_library(spread):
    x = np.random.default_rng(0).normal(size=CHUNK) * spread
    x = np.clip(x, -708.0, 709.0)
    raised = x.copy()
    exp_chunk(raised, len(x))
    np.testing.assert_allclose(raised, np.exp(x), rtol=4e-16)
    logistic = x.copy()
    sigmoid_chunk(logistic, len(x))
    np.testing.assert_allclose(logistic, 1.0 / (1.0 + np.exp(-x)), rtol=2e-15)
    slopes, terms = x.copy(), np.empty(len(x))
    softplus_chunk(slopes, terms, len(x))
    np.testing.assert_allclose(terms, np.logaddexp(0.0, x), rtol=1e-15)
    np.testing.assert_array_equal(slopes, logistic)


def test_only_the_first_values_are_touched():
    values = np.zeros(4)
    exp_chunk(values, 2)
    np.testing.assert_array_equal(values, [1, 1, 0, 0])


def test_extremes():
    values = np.array([-np.inf, -1e6, -709.0, 1e6, np.inf, np.nan])
    exp_chunk(values, 6)
    assert values[:3].tolist() == [0.0, 0.0, 0.0]
    assert np.isfinite(values[3:5]).all()  # so that a weight of zero makes it zero
    assert np.isnan(values[5])
    z, terms = np.array([-1e6, 1e6, np.inf, np.nan]), np.empty(4)
    softplus_chunk(z, terms, 4)
    np.testing.assert_array_equal(z, [0, 1, 1, np.nan])
    np.testing.assert_array_equal(terms, [0, 1e6, np.inf, np.nan])
