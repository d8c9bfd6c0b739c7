"""The closed form of a coordinate step against a scalar search; extrapolation."""

import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from leanrank.penalties.coordinate import coordinate_minimum, extrapolated


def objective(x, z, beta, above, below, ridge):
    value = 0.5 * beta * (x - z) ** 2 + 0.5 * ridge * x * x
    if x > 0:
        value += above * x
    elif x < 0:
        value -= below * x
    return value


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
    arguments = (z, rng.random() + 0.1, above, below, rng.choice([0.0, 0.5]))
    x = coordinate_minimum(*arguments)
    value, at = search(arguments)
    assert objective(x, *arguments) <= value + 1e-12
    assert x == pytest.approx(at, abs=1e-5)


@pytest.mark.parametrize("seed", range(5))
def test_extrapolation_cancels_the_moves_as_well_as_factors_of_sum_one_can(seed):
    points = np.random.default_rng(seed).normal(size=(6, 20))
    moves = np.diff(points[:, 3:15], axis=0)
    # a factor of each move, with what is missing to one as that of the last
    others = np.linalg.lstsq((moves[:-1] - moves[-1]).T, -moves[-1], rcond=None)[0]
    factors = np.append(others, 1.0 - others.sum())
    np.testing.assert_allclose(extrapolated(points, 3, 15), factors @ points[1:], rtol=1e-6)


def test_extrapolation_finds_the_limit_of_a_linear_iteration():
    rng = np.random.default_rng(0)
    matrix = np.diag([0.99, 0.9, 0.5, -0.3])
    limit, points = rng.normal(size=4), [rng.normal(size=4)]
    for _ in range(5):
        points.append(limit + matrix @ (points[-1] - limit))
    np.testing.assert_allclose(extrapolated(np.array(points), 0, 4), limit, atol=1e-3)
    assert np.abs(points[-1] - limit).max() > 0.1
