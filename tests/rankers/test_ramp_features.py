"""Ramps with fixed knots: read as rankers read X, and equal to what the model makes of them."""

from __future__ import annotations

import itertools

import numpy as np
import pandas as pd
import pytest
from scipy.sparse import coo_array, csr_array, lil_array

from leanrank import RampFeatures
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.model import Model

X = np.array([[0], [1], [2], [3], [10]])
COLUMNS = [0.0, 0.1, 0.2, 0.3, 1.0]


FORMS = [
    *itertools.product([np.asarray, csr_array, lil_array, coo_array], ["i4", "u1", "f4", "f8"]),
    (np.asarray, "f2"),  # SciPy has no sparse one
]


@pytest.mark.parametrize(("kind", "dtype"), FORMS)
def test_any_matrix_of_numbers_gives_the_same_columns(kind, dtype):
    given = kind(X.astype(dtype))
    ramps = RampFeatures({0: [0, 10]}).fit(given)
    assert np.allclose(ramps.transform(given).ravel(), COLUMNS)


def test_booleans_are_zero_and_one():
    ramps = RampFeatures({0: [0, 10]}).fit(X)
    assert np.allclose(ramps.transform(csr_array(X > 0)).ravel(), [0.0, 0.1, 0.1, 0.1, 0.1])


def test_an_entry_that_is_stored_twice_counts_as_its_sum():
    twice = csr_array((np.array([1.0, 2.0]), np.array([0, 0]), np.array([0, 2])), shape=(1, 1))
    assert np.allclose(RampFeatures({0: [0, 10]}).fit(X).transform(twice), 0.3)


def test_names_of_a_data_frame_are_known_and_another_order_is_refused():
    values = np.random.default_rng(0).normal(size=(100, 2))
    frame = pd.DataFrame(values, columns=["a", "b"])
    ramps = RampFeatures({"a": [0, 1]}).fit(frame)
    assert ramps.ramps_.knots[0].tolist() == [0.0, 1.0]
    assert ramps.to_model(Model.from_coef(np.ones(3))).feature_names == ("a", "b")
    with pytest.raises(ValueError, match="feature names should match"):
        ramps.transform(frame[["b", "a"]])
    data = RankingData(values, np.zeros(100), feature_names=["b", "a"])
    with pytest.raises(InputError, match="column 0 of X is 'b', but RampFeatures was fitted with"):
        ramps.transform(data)


@pytest.mark.parametrize("as_data", [False, True])
def test_gaps_where_fit_saw_none_are_refused_as_the_model_refuses_them(as_data):
    values = np.random.default_rng(0).normal(size=(200, 2))
    later = np.array([[0.0, np.nan], [0.0, -99.0]])
    given = RankingData(later, np.zeros(2)) if as_data else later
    ramps = RampFeatures(4).fit(values)
    with pytest.raises(InputError, match="NaN in feature 'f2', but fit had none"):
        ramps.transform(given)
    with pytest.raises(InputError, match="f2"):
        ramps.to_model(Model.from_coef(np.ones(8))).predict(given)


def test_a_new_gap_counts_as_the_smallest_value_in_columns_and_in_the_model():
    values = np.random.default_rng(0).normal(size=(200, 2))
    values[:30, 0] = np.nan
    ramps = RampFeatures(4).fit(values)
    later = np.array([[0.0, np.nan], [0.0, -99.0]])
    columns = ramps.transform(later)
    assert columns.shape == (2, 9)
    assert np.array_equal(columns[0], columns[1])
    w = np.arange(1.0, 10.0)
    assert np.allclose(ramps.to_model(Model.from_coef(w)).predict(later), columns @ w)


def test_other_columns_and_other_models_are_refused():
    ramps = RampFeatures(4).fit(np.random.default_rng(0).normal(size=(200, 2)))
    with pytest.raises(ValueError, match="RampFeatures is expecting 2 features"):
        ramps.transform(np.zeros((3, 5)))
    with pytest.raises(InputError, match="not learned from these ramps"):
        ramps.to_model(Model.from_coef([1.0, 2.0]))
    with pytest.raises(ValueError, match="2D array"):
        RampFeatures().fit(np.zeros(3))
