import numpy as np
import pytest
from scipy.optimize import minimize_scalar

from leanrank.errors import InputError
from leanrank.penalties.power import POWERS, PowerPenalty


def test_build_value_and_flags():
    penalty = PowerPenalty.build(0.5, 3, 3, [1.0, 0.0, np.inf])
    assert penalty.rate.tolist() == [0.5, 0.0, np.inf]
    assert penalty.excluded.tolist() == [False, False, True]
    assert penalty.free.tolist() == [False, True, False]
    assert penalty.value(np.array([-2.0, 7.0, 0.0])) == 4.0
    assert penalty.value(np.array([0.0, 0.0, 1e-9])) == np.inf
    assert penalty.value(np.zeros(3)) == 0.0


def test_a_rounded_power_is_taken_as_the_exact_one():
    assert PowerPenalty.build(1.0, 1.3333333333333, 1).power == 4 / 3


@pytest.mark.parametrize("power", [1, 2, 0.5, 1.3, 5, np.nan, -3])
def test_powers_without_a_closed_form_are_refused(power):
    with pytest.raises(InputError, match="has no closed form"):
        PowerPenalty.build(1.0, power, 2)


@pytest.mark.parametrize("alpha", [0.0, -1.0, np.nan])
def test_a_power_needs_a_strength(alpha):
    with pytest.raises(InputError, match="alpha above 0"):
        PowerPenalty.build(alpha, 3, 2)


@pytest.mark.parametrize("power", POWERS)
def test_the_conjugate_by_search(power):
    rng = np.random.default_rng(0)
    penalty = PowerPenalty.build(0.3, power, 5, [1.0, 0.2, 4.0, 0.0, np.inf])
    c = rng.normal(size=5)
    total = sum(
        -minimize_scalar(
            lambda x, j=j: c[j] * x + penalty.rate[j] * abs(x) ** power,
            bounds=(-300, 300),
            method="bounded",
            options={"xatol": 1e-12},
        ).fun
        for j in range(3)
    )
    assert penalty.conjugate(c) == pytest.approx(total, rel=1e-9)
    assert penalty.dual_scale(c) == 1.0


@pytest.mark.parametrize("power", POWERS)
def test_fenchel_and_young_meet_at_the_slope(power):
    rng = np.random.default_rng(1)
    penalty = PowerPenalty.build(0.3, power, 8, rng.random(8) + 0.1)
    w = rng.normal(size=8)
    c = -power * penalty.rate * np.abs(w) ** (power - 1) * np.sign(w)
    assert penalty.value(w) + penalty.conjugate(c) == pytest.approx(-c @ w, rel=1e-12)
    other = c + rng.normal(size=8)
    assert penalty.value(w) + penalty.conjugate(other) > -other @ w


@pytest.mark.parametrize("power", POWERS)
def test_no_strength_of_a_power_empties_a_model(power):
    penalty = PowerPenalty.build(1.0, power, 2, [1.0, np.inf])
    assert penalty.alpha_max_ratio(np.array([0.1, 0.0])) == np.inf
    assert penalty.alpha_max_ratio(np.array([0.0, 5.0])) == 0.0
