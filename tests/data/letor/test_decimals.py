"""Numbers are read to the last bit, by whichever of the ways."""

from __future__ import annotations

import io
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import pytest

from leanrank.data.letor import load_letor


def read(tokens: list[str], dtype=np.float64) -> np.ndarray:
    text = "".join(f"0 qid:1 1:{token}\n" for token in tokens).encode()
    return load_letor(io.BytesIO(text), dtype=dtype, storage="dense", n_features=1).X[:, 0]


def random_tokens(n: int) -> list[str]:
    rng = np.random.default_rng(0)
    tokens = []
    for bits in rng.integers(0, 0x7FEFFFFFFFFFFFFF, n):
        value = float(np.int64(bits).view(np.float64))
        tokens += [repr(value), f"{value:.16e}", f"{value:.20e}"]
        tokens.append(f"{rng.integers(10 ** rng.integers(1, 19))}e{rng.integers(-300, 280)}")
        tokens.append(f"{rng.random():.{rng.integers(1, 25)}f}")
        tokens.append(f"-{rng.integers(1000)}.{rng.integers(10**9):09d}")
    return tokens


def around_half_way(n: int) -> list[str]:
    """Give exact decimals of the middle between two doubles, and of points just beside it."""
    rng = np.random.default_rng(1)
    tokens = []
    with localcontext() as context:
        context.prec = 900
        for exponent in rng.integers(-200, 200, n):
            value = float(rng.random() * 10.0**exponent)
            middle = (Decimal(value) + Decimal(float(np.nextafter(value, np.inf)))) / 2
            tokens += [f"{middle:e}", f"{middle:.30e}", f"{middle:.17e}"]
            tokens.append(f"{middle:e}".replace("e", "0001e"))
    return tokens


def test_doubles_are_what_python_reads():
    tokens = random_tokens(3000) + around_half_way(500)
    expected = np.array([float(token) for token in tokens])
    assert read(tokens).tobytes() == expected.tobytes()


def test_singles_are_rounded_from_doubles():
    rng = np.random.default_rng(2)
    singles = rng.integers(0, 0x7F7FFFFF, 300, dtype=np.int32).view(np.float32)
    tokens = [str(value) for value in singles]
    tokens += [
        f"{rng.random() * 10.0 ** rng.integers(-47, 38):.{rng.integers(1, 20)}e}"
        for _ in range(500)
    ]
    expected = np.array([float(token) for token in tokens]).astype(np.float32)
    assert read(tokens, np.float32).tobytes() == expected.tobytes()


def test_long_quotients_near_a_tie():
    """Whole numbers of up to 18 digits over powers of ten, many of them close to half way."""
    rng = np.random.default_rng(3)
    tokens = []
    for _ in range(20_000):
        places, digits = rng.integers(1, 23), rng.integers(15, 19)
        w = int(rng.integers(10 ** (digits - 1), 10**digits))
        if rng.random() < 0.5:  # the decimal nearest to the middle between two doubles
            value = w / 10**places
            middle = (Fraction(value) + Fraction(float(np.nextafter(value, np.inf)))) / 2
            w = min(round(middle * 10**places), 10**18 - 1)
        text = str(w).rjust(places + 1, "0")
        tokens.append(f"{text[:-places]}.{text[-places:]}")
    assert read(tokens).tobytes() == np.array([float(token) for token in tokens]).tobytes()


@pytest.mark.parametrize(
    ("token", "value"),
    [
        ("0", 0.0),
        ("-0", -0.0),
        ("-.0e5", -0.0),
        ("0e999999999999", 0.0),
        ("1e-999999999999", 0.0),
        ("00000000000000000000000000000000000001", 1.0),
        ("0." + "0" * 400 + "1e401", 1.0),
        ("1" + "0" * 400 + "e-400", 1.0),
        ("+5.", 5.0),
        (".5E+1", 5.0),
        ("4.9e-324", 5e-324),
        ("2.4703282292062327e-324", 0.0),
        ("2.4703282292062328e-324", 5e-324),
        ("1.7976931348623157e308", 1.7976931348623157e308),
        ("9007199254740993", 9007199254740992.0),
        ("9007199254740992.999999999999999999999999", 9007199254740992.0),
        ("9007199254740993.000000000000000000000001", 9007199254740994.0),
    ],
)
def test_corner_cases(token, value):
    assert read([token]).tobytes() == np.array([value]).tobytes()
