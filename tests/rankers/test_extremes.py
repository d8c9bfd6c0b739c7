"""Every ranker on odd but finite data: finite weights or one sentence, and always an end."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.errors import LeanrankError
from leanrank.rankers import RANKERS, get_ranker

SHORT = {"n_steps": 300, "epochs": 2, "n_rounds": 5, "max_iter": 50}


def odd_data():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(12, 3)), np.tile([0.0, 1.0, 2.0, 0.0], 3)
    spike = X.copy()
    spike[:2, 0] = 1e308, -1e308
    return {
        "plain": (X, y),
        "huge": (X * 1e300, y),
        "large": (X * 1e150, y),
        "tiny": (X * 1e-300, y),
        "small": (X * 1e-160, y),
        "mixed": (X * [1e200, 1.0, 1e-200], y),
        "spike": (spike, y),
        "offset": (X + 1e15, y),
        "constant": (np.ones((12, 3)), y),
        "one document": (X[:1], y[:1]),
        "duplicates": (np.repeat(X[:4], 3, axis=0), y),
        "float32 huge": ((np.sign(X) * 3e38).astype(np.float32), y),
        "float32 tiny": ((X * 1e-44).astype(np.float32), y),
        "huge labels": (X, y * 1e300),
        "tiny labels": (X, y * 1e-300),
        "sparse huge": (csr_array(X * 1e300), y),
    }


ODD_PARAMETERS = {
    "alpha": (0.0, 1e-300, 1e300),
    "C": (1e-300, 1e300),
    "radius": (0.0, 1e-300, 1e300),
    "gamma": (1e-300, 1e300),
    "mu": (1e300,),
    "eta0": (1e-300, 1e300),
}


def fit(name, X, y, **parameters):
    """Fit, and return what was learned, or None if it was refused in one sentence."""
    ranker = get_ranker(name)()
    known = ranker.get_params()
    ranker.set_params(**{k: v for k, v in SHORT.items() if k in known}, **parameters)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        warnings.simplefilter("error", RuntimeWarning)  # NumPy's own
        try:
            ranker.fit(X, y, np.repeat([0, 1, 2], 4)[: len(y)])
        except LeanrankError:
            return None
    for learned in ("coef_", "dual_coef_", "feature_importances_"):
        if hasattr(ranker, learned):
            return getattr(ranker, learned)
    raise AssertionError(f"{name} has learned nothing")


@pytest.mark.parametrize("name", sorted(RANKERS))
@pytest.mark.parametrize("data", odd_data())
def test_weights_are_finite_or_refused(name, data):
    learned = fit(name, *odd_data()[data])
    assert learned is None or np.isfinite(learned).all()
    if data == "plain":
        assert learned is not None


@pytest.mark.parametrize("name", sorted(RANKERS))
@pytest.mark.parametrize("parameter", ODD_PARAMETERS)
def test_odd_parameters_are_used_or_refused(name, parameter):
    if parameter not in get_ranker(name)().get_params():
        return
    for value in ODD_PARAMETERS[parameter]:
        learned = fit(name, *odd_data()["plain"], **{parameter: value})
        assert learned is None or np.isfinite(learned).all()
