"""Cuts found by histograms against all thresholds tried one by one."""

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array

from leanrank.data.ranking_data import column_values
from leanrank.execution import Executor
from leanrank.solvers.boosting.threshold_columns import (
    BINS,
    CodedColumn,
    Cut,
    ThresholdColumns,
    choose_thresholds,
    cut_values,
)


def make_matrix(rng, n_rows, n_features, *, missing=0.0, values=4, dtype=np.float64):
    X = rng.integers(-values, values + 1, size=(n_rows, n_features)).astype(dtype)
    X[:, 0] = rng.normal(size=n_rows)  # all values differ
    X[:, -1] = 2.0  # a constant
    X[rng.random(X.shape) < missing] = np.nan
    return X


def brute_force(X, direction):
    """Try every feature, every split of its values, and both answers for missing ones."""
    best = 0.0
    for j in range(X.shape[1]):
        column = X[:, j]
        absent = np.isnan(column)
        for low in [-np.inf, *np.unique(column[~absent])]:
            above = direction[~absent & (np.nan_to_num(column) > low)].sum()
            for found in (above, above + direction[absent].sum()):
                if abs(found) > abs(best):
                    best = found
    return best


@settings(max_examples=300)
@given(
    seed=st.integers(0, 10**6),
    n_rows=st.integers(1, 40),
    n_features=st.integers(2, 5),
    missing=st.sampled_from([0.0, 0.3, 1.0]),
    sparse=st.booleans(),
    dtype=st.sampled_from([np.float64, np.float32]),
)
def test_the_best_cut_of_all(seed, n_rows, n_features, missing, sparse, dtype):
    rng = np.random.default_rng(seed)
    X = make_matrix(rng, n_rows, n_features, missing=missing, dtype=dtype)
    direction = rng.normal(size=n_rows)
    direction -= direction.mean()  # as a score gradient: it adds up to zero
    columns = ThresholdColumns(csr_array(X) if sparse else X, None, Executor())
    cut = columns.best(direction)
    expected = brute_force(X, direction)
    if cut is None:
        assert abs(expected) < 1e-12
        return
    assert abs(cut.agreement) == pytest.approx(abs(expected), abs=1e-11)
    true = cut_values(cut, X[:, cut.feature])
    assert direction[true].sum() == pytest.approx(cut.agreement, abs=1e-12)
    scores = np.zeros(n_rows)
    columns.add(cut, 1.5, scores)
    assert scores.tolist() == np.where(true, 1.5, 0.0).tolist()


@pytest.mark.parametrize("n_values", [3, 1000, 70_000])
def test_codes_of_every_width(n_values):
    rng = np.random.default_rng(n_values)
    X = rng.permutation(np.arange(80_000) % n_values).astype(np.float64)[:, None]
    direction = rng.normal(size=len(X)) + 0.1 * np.sign(X[:, 0] - n_values // 3)
    direction -= direction.mean()
    columns = ThresholdColumns(X, None, Executor(), exact_values=1 << 17)
    cut = columns.best(direction)
    order = np.argsort(-X[:, 0], kind="stable")
    sums = np.cumsum(direction[order])[np.flatnonzero(np.diff(X[order, 0]) != 0)]
    assert abs(cut.agreement) == pytest.approx(np.abs(sums).max(), rel=1e-9)
    assert direction[X[:, 0] > cut.threshold].sum() == pytest.approx(cut.agreement, rel=1e-9)


def test_the_first_of_equal_features_whatever_the_order_of_the_rows():
    rng = np.random.default_rng(1)
    column = rng.normal(size=2000)
    X = np.column_stack([rng.normal(size=2000), column, column, -column])
    direction = rng.normal(size=2000) + column
    direction -= direction.mean()
    for _ in range(5):
        order = rng.permutation(2000)
        columns = ThresholdColumns(np.ascontiguousarray(X[order]), None, Executor())
        assert columns.best(direction[order]).feature == 1


def test_threads_find_the_same_bits():
    rng = np.random.default_rng(2)
    X = make_matrix(rng, 3000, 40, missing=0.1)
    direction = rng.normal(size=3000)
    cuts = [
        ThresholdColumns(X, None, executor).best(direction)
        for executor in (Executor(), Executor(2), Executor(4))
    ]
    assert cuts[0] == cuts[1] == cuts[2]


@pytest.mark.parametrize("sparse", [False, True])
def test_many_values_are_cut_at_quantiles_of_a_sample_and_few_between_any_two(sparse):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(20_000, 3))
    X[:, 1] = np.arange(20_000) % 100
    X[rng.random(20_000) < 0.1, 2] = np.nan
    direction = np.nan_to_num(X[:, 0]) + 0.3 * rng.normal(size=20_000)
    direction -= direction.mean()
    given = csr_array(X) if sparse else X
    exact = ThresholdColumns(given, None, Executor()).best(direction)
    columns = ThresholdColumns(given, None, Executor(), exact_values=4_000)
    sizes = [len(one.thresholds) for one in columns._columns]
    assert max(sizes) <= BINS
    assert sizes[1] == 99
    assert all(one.codes.dtype == np.uint8 for one in columns._columns)
    share = np.mean(
        X[:, 0] > columns._columns[0].thresholds[len(columns._columns[0].thresholds) // 2]
    )
    assert share == pytest.approx(0.5, abs=0.02)
    cut = columns.best(direction)
    assert cut.feature == exact.feature
    assert cut.agreement == pytest.approx(exact.agreement, rel=0.01)
    assert direction[X[:, 0] > cut.threshold].sum() == pytest.approx(cut.agreement, rel=1e-9)


def test_thresholds_separate_neighbours():
    close = np.nextafter(1.0, 2.0)
    for values in ([1.0, close], [1.7e308, -1.7e308], [0.0, 5e-324], [-1.0, np.nextafter(-1.0, 0)]):
        ordered = np.sort(values)
        (threshold,) = choose_thresholds(np.array(values))
        assert ordered[0] <= threshold < ordered[1]


def test_few_thresholds_are_near_quantiles():
    values = np.arange(1000.0)
    few = choose_thresholds(values, n_thresholds=4)
    assert few.tolist() == [199.5, 399.5, 599.5, 799.5]
    skewed = choose_thresholds(
        np.array([0.0] * 90 + [1, 2, 3, 4, 5, 6, 7, 8, 9, 10]), n_thresholds=3
    )
    assert skewed.tolist() == [0.5]  # all quantiles are nearest to the end of the zeros
    assert choose_thresholds(values[:3], n_thresholds=9).tolist() == [0.5, 1.5]


def test_weights_count_as_repetition():
    rng = np.random.default_rng(3)
    values, weight = rng.normal(size=50), rng.integers(1, 4, size=50)
    for n_thresholds in (None, 7):
        weighed = choose_thresholds(values, weight.astype(float), n_thresholds=n_thresholds)
        repeated = choose_thresholds(np.repeat(values, weight), n_thresholds=n_thresholds)
        assert weighed.tolist() == repeated.tolist()


@pytest.mark.parametrize("sparse", [False, True])
def test_documents_of_weight_zero_make_no_threshold(sparse):
    X = np.array([[0.0, 1.0], [0.0, 3.0], [7.0, 2.0], [4.0, 0.0], [np.nan, np.nan]])
    weight = np.array([1.0, 1.0, 0.0, 1.0, 0.0])
    direction = np.array([-0.5, 0.1, 0.0, 0.4, 0.0])
    given = csr_array(X) if sparse else X
    columns = ThresholdColumns(given, None, Executor(), weight)
    cut = columns.best(direction)
    assert cut == Cut(pytest.approx(0.4), 0, 2.0, 0)
    without = ThresholdColumns(X[weight > 0], None, Executor()).best(direction[weight > 0])
    assert cut == without


def test_nothing_to_cut():
    nothing = np.full((5, 2), np.nan)
    nothing[:, 1] = 3.0
    assert ThresholdColumns(nothing, None, Executor()).best(np.zeros(5)) is None


def test_missing_alone_may_be_the_best_cut():
    X = np.array([[1.0], [1.0], [np.nan], [1.0]])
    direction = np.array([0.2, 0.2, -0.6, 0.2])
    cut = ThresholdColumns(X, None, Executor()).best(direction)
    assert (cut.threshold, cut.missing) == (-np.inf, 0)
    assert cut_values(cut, X[:, 0]).tolist() == [True, True, False, True]


def test_a_sparse_column_is_made_dense():
    X = csr_array(np.array([[0.0, 1.0], [2.0, 0.0]])).tocsc()
    assert column_values(X, 0).tolist() == [0.0, 2.0]


@pytest.mark.parametrize("n_thresholds", [0, 1, 2, 3, 7, 254, 300])
def test_codes_count_the_thresholds_below(n_thresholds):
    rng = np.random.default_rng(n_thresholds)
    thresholds = np.sort(rng.normal(size=n_thresholds))
    values = np.concatenate([rng.normal(size=2_000), thresholds, [np.inf, -np.inf, np.nan]])
    expected = np.searchsorted(thresholds, values)
    expected[-1] = n_thresholds + 1
    assert CodedColumn.of(values, thresholds, None).codes.tolist() == expected.tolist()
