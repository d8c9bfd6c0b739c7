"""The neutral description: folding, order of sums, steps."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanrank.data.scaling.normalizers import NORMALIZERS, make_normalizer
from leanrank.errors import ModelError
from leanrank.model import Model
from leanrank.model.curves import Scale
from leanrank.model.export.formula import formula_of
from tests.model import boosted

finite = st.floats(-1e6, 1e6)


def documents(seed=0, n=200, width=6):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, width)).round(2)
    X[:, 1] = X[0, 1]  # the same everywhere
    return X, np.sort(rng.integers(0, 25, n))


def steps(seed=0, width=6, with_missing=True):
    rng = np.random.default_rng(seed)
    thresholds = rng.normal(size=40).round(1)
    thresholds[::9] = -np.inf
    missing = rng.integers(0, 2, 40) if with_missing else np.zeros(40, dtype=int)
    return rng.integers(0, width, 40), thresholds, missing, rng.normal(size=40)


@pytest.mark.parametrize("kind", [None, *NORMALIZERS])
def test_linear_scores_are_those_of_the_model(kind):
    X, qid = documents()
    scaler = None if kind is None else make_normalizer(kind).fit(X, qid=qid).to_dict()
    model = Model.from_coef([0.5, 2.0, 0.0, -1.25, 3.0, 1e-3], normalizer=scaler)
    np.testing.assert_allclose(
        formula_of(model).scores(X[:, model.indices], qid),
        model.predict(X, qid),
        rtol=0,
        atol=1e-13,
    )


@pytest.mark.parametrize("kind", [None, *NORMALIZERS])
def test_step_scores_are_those_of_the_model_bit_for_bit(kind):
    X, qid = documents()
    scaler = None if kind is None else make_normalizer(kind).fit(X, qid=qid)
    features, thresholds, missing, values = steps()
    if kind in ("standard", "minmax"):  # thresholds that documents hit exactly
        rows = np.arange(40)
        hit = scaler.transform(X)[rows, features]
        thresholds = np.where(np.isinf(thresholds), thresholds, hit)
    model = boosted(
        6,
        features,
        thresholds,
        missing,
        values,
        normalizer=None if scaler is None else scaler.to_dict(),
    )
    assert (formula_of(model).scores(X[:, model.indices], qid) == model.predict(X, qid)).all()


def test_missing_values_of_steps():
    X, _ = documents()
    X[::3, 2] = np.nan
    model = boosted(6, *steps())
    assert (formula_of(model).scores(X[:, model.indices]) == model.predict(X)).all()


def test_a_missing_feature_of_a_line_counts_as_zero():
    formula = formula_of(Model.from_coef([2.0, 1.0]))
    assert formula.scores(np.array([[np.nan, 3.0]])).tolist() == [3.0]


def test_sums_run_in_the_order_of_features():
    rng = np.random.default_rng(3)
    X, weights = rng.normal(size=(50, 30)), rng.normal(size=30)
    expected = []
    for row in X:
        total = 0.0
        for w, x in zip(weights.tolist(), row.tolist(), strict=True):
            total += w * x
        expected.append(total)
    assert formula_of(Model.from_coef(weights)).scores(X).tolist() == expected


@given(finite, st.floats(1e-6, 1e6), finite, st.integers(-3, 3))
def test_moved_threshold_keeps_every_document_on_its_side(shift, divisor, threshold, offset):
    scale = Scale(shift, divisor)
    moved = scale.largest_not_above(threshold)
    x = moved
    for _ in range(abs(offset)):
        x = float(np.nextafter(x, np.inf if offset > 0 else -np.inf))
    assert (x > moved) == (scale(x) > threshold)


def test_folding_that_overflows_is_refused():
    scaler = {"kind": "standard", "mean": [1.0], "scale": [1e-300]}
    model = Model.from_coef([1e300], normalizer=scaler)
    with pytest.raises(ModelError, match="not finite"):
        formula_of(model)


def test_version_tells_functions_apart():
    one, other = (formula_of(Model.from_coef([w])) for w in (1.0, 1.0 + 2**-52))
    assert one.version != other.version
    assert one.version == formula_of(Model.from_coef([1.0])).version
