"""The closed forms of a coordinate step against a scalar search and the slope they must cancel."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from leanrank.penalties.coordinate import coordinate_minimum
from leanrank.penalties.power import POWERS


def objective(x, z, beta, above, below, ridge, rate, power):
    value = 0.5 * beta * (x - z) ** 2 + 0.5 * ridge * x * x
    if x > 0:
        value += above * x
    elif x < 0:
        value -= below * x
    return value + (rate * abs(x) ** power if rate > 0 else 0.0)


def search(arguments):
    """The least value on each side of zero, and at zero."""
    z = arguments[0]
    found = [(objective(0.0, *arguments), 0.0)]
    sides = ((arguments[2], 0.0, abs(z) + 1), (arguments[3], -abs(z) - 1, 0.0))
    for rate, low, high in sides:
        if np.isinf(rate):
            continue
        side = minimize_scalar(
            objective,
            bounds=(low, high),
            args=arguments,
            method="bounded",
            options={"xatol": 1e-13},
        )
        found.append((side.fun, side.x))
    return min(found)


@pytest.mark.parametrize("seed", range(40))
def test_elastic_net_against_search(seed):
    rng = np.random.default_rng(seed)
    z = rng.normal() * rng.choice([0, 0.1, 1, 10])
    above, below = rng.choice([0.0, 0.3, 2.0, np.inf], 2)
    arguments = (z, rng.random() + 0.1, above, below, rng.choice([0.0, 0.5]), 0.0, 0.0)
    x = coordinate_minimum(*arguments)
    value, at = search(arguments)
    assert objective(x, *arguments) <= value + 1e-12
    assert x == pytest.approx(at, abs=1e-5)


@pytest.mark.parametrize("power", POWERS)
@pytest.mark.parametrize("seed", range(10))
def test_powers_against_search(power, seed):
    rng = np.random.default_rng(seed)
    z = rng.normal() * rng.choice([0.1, 1, 10])
    arguments = (z, rng.random() + 0.1, 0.0, 0.0, 0.0, 10 ** rng.uniform(-3, 2), power)
    x = coordinate_minimum(*arguments)
    value, at = search(arguments)
    assert objective(x, *arguments) <= value + 1e-12
    assert x == pytest.approx(at, abs=1e-4)


@pytest.mark.parametrize("power", POWERS)
def test_powers_cancel_the_slope_over_many_orders_of_magnitude(power):
    for size in 10.0 ** np.arange(-12, 13, 2):
        for t in 10.0 ** np.arange(-18, 19, 2):
            for beta in (1e-6, 1.0, 1e6):
                x = coordinate_minimum(size, beta, 0.0, 0.0, 0.0, t * beta, power)
                assert 0 < x <= size * (1 + 1e-15)
                pull = power * t * x ** (power - 1)
                # each term of x + pull = size is positive: the sum must agree to a few roundings
                assert x + pull == pytest.approx(size, rel=1e-11)


@pytest.mark.parametrize("power", POWERS)
def test_powers_are_odd_and_keep_zero(power):
    assert coordinate_minimum(0.0, 2.0, 0.0, 0.0, 0.0, 1.0, power) == 0.0
    for z in (1e-9, 0.3, 1e9):
        plus = coordinate_minimum(z, 2.0, 0.0, 0.0, 0.0, 1.0, power)
        assert coordinate_minimum(-z, 2.0, 0.0, 0.0, 0.0, 1.0, power) == -plus


def test_infinite_sides_shut_a_weight():
    assert coordinate_minimum(1e300, 1.0, np.inf, np.inf, 0.0, 0.0, 3.0) == 0.0
    assert coordinate_minimum(-5.0, 1.0, 0.0, np.inf, 0.0, 0.0, 0.0) == 0.0
    assert coordinate_minimum(5.0, 1.0, 0.0, np.inf, 0.0, 0.0, 0.0) == 5.0
