"""Features of different spread are found, in dense and sparse data, and only those."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.data import RankingData
from leanrank.data.scaling import column_ranges
from leanrank.data.scaling.normalizers import NORMALIZERS, make_normalizer
from leanrank.data.scaling.spread import scale_wanted, wide_spread


def table(n_rows=200, seed=0):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, 4)) * (rng.random((n_rows, 4)) < 0.7)


def test_ranges_over_several_blocks_of_rows():
    X = table(40_000)
    X[:, 1] = np.abs(X[:, 1])
    X[17_000, 0] = X[3, 2] = np.nan
    X[:, 3] = np.nan
    for least, found, wanted in zip(
        (1, 0), column_ranges(csr_array(X)), column_ranges(X), strict=True
    ):
        np.testing.assert_array_equal(found, wanted)
        assert np.isnan(found).tolist() == [False, False, False, True]
        assert (found[1] == 0.0) == bool(least)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_ratio_of_deviations_dense_and_sparse(dtype):
    X = (table() * [1.0, 3000.0, 0.5, 2.0] + [0, 0, 1e3, 0]).astype(dtype)
    spreads = X.std(axis=0, dtype=np.float64)
    expected = spreads[1] / spreads[2]
    for matrix in (X, csr_array(X)):
        found = wide_spread(matrix, ["a", "b", "c", "d"])
        assert found.ratio == pytest.approx(expected, rel=1e-3)
        assert (found.widest, found.narrowest) == ("'b'", "'c'")


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_units_that_do_not_differ(make):
    X = table()
    assert wide_spread(make(X * [1.0, 50.0, 1.0, 1.0])) is None
    assert wide_spread(make(X * [1.0, 0.0, 1.0, 1.0])) is None  # constant
    assert wide_spread(make(X[:9] * [1.0, 1e6, 1.0, 1.0])) is None  # too few rows


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_rare_features_and_outliers_are_not_units(make):
    rare = np.zeros((200_000, 2))
    rare[::2, 0] = 1.0
    rare[:10, 1] = 1.0
    assert rare.std(axis=0)[0] / rare.std(axis=0)[1] > 50
    assert wide_spread(make(rare), factor=50) is None
    outlier = np.random.default_rng(0).normal(size=(20_000, 2))
    outlier[0, 1] = 5000.0
    assert np.ptp(outlier, axis=0)[1] / np.ptp(outlier, axis=0)[0] > 100
    assert wide_spread(make(outlier)) is None
    few = table()
    few[:, 3] = 0.0
    few[:9, 3] = 1e6
    assert wide_spread(make(few)) is None


@pytest.mark.parametrize("make", [np.asarray, csr_array])
def test_missing_and_extreme_values(make):
    X = table() * [1.0, 1e4, 1.0, 1.0]
    expected = wide_spread(make(X)).ratio
    X[::3, 1] = np.nan
    assert wide_spread(make(X)).ratio == pytest.approx(expected, rel=0.2)
    X[:, 2] = np.nan
    assert wide_spread(make(X)).widest == "'f2'"
    X[:] = table()
    X[::2, 1], X[1::2, 1] = 1.7e308, -1.7e308
    assert wide_spread(make(X)).ratio == np.inf


@pytest.mark.parametrize("kind", NORMALIZERS)
def test_nothing_is_left_to_scale_after_any_normaliser(kind):
    rng = np.random.default_rng(1)
    X = np.exp(3 * rng.normal(size=(2000, 5))) * [1e-4, 1.0, 1e3, 1e6, 1.0]
    X[:, 4] = rng.random(2000) < 0.01
    data = RankingData(X, qid=np.repeat(np.arange(100), 20))
    assert wide_spread(data.X) is not None
    assert wide_spread(make_normalizer(kind).fit_transform(data).X) is None


def test_what_scale_asks_for():
    data = RankingData(table() * [1, 1e4, 1, 1])
    assert scale_wanted(data, "auto").kind == "standard"
    assert "'f2'" in scale_wanted(data, "auto").reason
    assert scale_wanted(data, "none") == scale_wanted(data, None) == (None, "")
    assert scale_wanted(data, "none").make() is None
    assert scale_wanted(data, "minmax") == ("minmax", "")
    assert scale_wanted(RankingData(table())) == (None, "")
