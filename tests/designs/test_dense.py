"""Products against NumPy, dense and sparse; the same bits for any number of threads.

What blocks add to a Hessian is tested through the problem, beside the loss that it belongs to.
"""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.sparse import csr_array

from leanrank.designs.base import make_design
from leanrank.designs.dense import DenseDesign
from leanrank.designs.sparse import SparseDesign
from leanrank.execution import ROWS_PER_RANGE, make_executor
from leanrank.losses.base import Curvature

FORMS = ["dense64", "dense32", "sparse64", "sparse32"]


def table(rng, n_rows, n_features, density=0.6):
    """Give numbers that float32 holds exactly, with empty rows and columns."""
    X = np.round(rng.normal(size=(n_rows, n_features)) * 64) / 64
    X[rng.random(X.shape) > density] = 0.0
    if n_rows > 2:
        X[n_rows // 2] = 0.0
    if n_features > 2:
        X[:, 1] = 0.0
    return X


def stored(X, form):
    X = X.astype(np.float32 if form.endswith("32") else np.float64)
    return csr_array(X) if form.startswith("sparse") else np.ascontiguousarray(X)


def small_blocks(X, rows=3, nonzeros=5, workers=1):
    """Return a design that cuts X into many blocks."""
    executor, anchor = make_executor(workers), np.zeros(X.shape[0], dtype=np.int64)
    if isinstance(X, np.ndarray):
        return DenseDesign(X, executor, anchor, rows_per_block=rows)
    return SparseDesign(X, executor, anchor, nonzeros_per_block=nonzeros, rows_per_band=rows)


def anchored(X):
    """Subtract the first row, which stands for that of each query."""
    return X - X[:1]


def balanced(rng, n):
    """Draw a score gradient: it adds up to zero."""
    g = rng.normal(size=n)
    return g - g.mean() if n else g


shapes = st.tuples(st.integers(0, 14), st.integers(0, 9))


@pytest.mark.parametrize("form", FORMS)
@given(shape=shapes, seed=st.integers(0, 2**32 - 1))
def test_products_of_the_whole_matrix(form, shape, seed):
    rng = np.random.default_rng(seed)
    X = table(rng, *shape)
    whole = small_blocks(stored(X, form))
    assert (whole.n_rows, whole.n_features) == shape
    w, g = rng.normal(size=shape[1]), balanced(rng, shape[0])
    sparse_w = np.where(np.arange(shape[1]) == 3, w, 0.0)
    for weights in (w, sparse_w, np.zeros(shape[1])):
        assert np.allclose(whole.matvec(weights), anchored(X) @ weights, atol=1e-13)
    assert np.allclose(whole.rmatvec(g), X.T @ g, atol=1e-13)


@pytest.mark.parametrize("form", FORMS)
@given(shape=shapes, seed=st.integers(0, 2**32 - 1))
def test_products_of_a_block(form, shape, seed):
    rng = np.random.default_rng(seed)
    n_rows, n_features = shape
    X = table(rng, *shape)
    for chosen in (
        np.arange(n_features),
        np.arange(n_features)[::-1].copy(),  # all of them, in another order
        np.sort(rng.permutation(n_features)[: n_features // 2]),
        np.zeros(0, dtype=np.int64),
    ):
        block = small_blocks(stored(X, form)).take(chosen)
        some = X[:, chosen]
        v, g = rng.normal(size=len(chosen)), balanced(rng, n_rows)
        assert block.n_features == len(chosen)
        assert np.allclose(block.matvec(v), anchored(some) @ v, atol=1e-13)
        assert np.allclose(block.rmatvec(g), some.T @ g, atol=1e-13)


@pytest.mark.parametrize("n_features", [3, 40])
@pytest.mark.parametrize("form", FORMS)
def test_the_same_bits_for_any_number_of_threads(form, n_features):
    rng = np.random.default_rng(0)
    X = stored(rng.normal(size=(2_011, n_features)) * (rng.random((2_011, n_features)) < 0.5), form)
    w, g = rng.normal(size=n_features), rng.normal(size=2_011)
    chosen = np.arange(0, n_features, 2)
    seen = []
    for workers in (1, 2, 4):
        whole = small_blocks(X, rows=50, nonzeros=200, workers=workers)
        block = whole.take(chosen)
        seen.append(
            [
                whole.matvec(w),
                whole.matvec(np.where(np.arange(n_features) == 1, w, 0)),
                whole.rmatvec(g),
                block.matvec(w[chosen]),
                block.rmatvec(g),
            ]
        )
    blocks = whole.column_blocks(whole.column_sizes) if form.startswith("sparse") else whole.blocks
    assert len(blocks) > 2
    for other in seen[1:]:
        for one, two in zip(seen[0], other, strict=True):
            assert one.tobytes() == two.tobytes()


@pytest.mark.parametrize("form", ["dense32", "sparse32"])
def test_real_block_sizes_are_crossed(form):
    n_rows = 2 * ROWS_PER_RANGE + 17
    rng = np.random.default_rng(0)
    X = table(rng, n_rows, 2)
    whole = make_design(stored(X, form), make_executor(2))
    block = whole.take(np.arange(2))
    assert n_rows > 2 * ROWS_PER_RANGE
    g = balanced(rng, n_rows)
    assert np.allclose(whole.rmatvec(g), X.T @ g, rtol=1e-9)
    assert np.allclose(block.matvec(np.array([1.0, 0.5])), anchored(X) @ [1.0, 0.5])


@pytest.mark.parametrize("form", ["dense32", "sparse32"])
def test_sums_are_double_precision_whatever_the_storage(form):
    # In float32 a million ones after 2²⁴ would be lost.
    column = np.ones((1_000_001, 1))
    column[0], column[1] = 0.0, 2.0**24
    whole = make_design(stored(column, form), make_executor(1))
    assert whole.rmatvec(np.ones(len(column))).item() == 2.0**24 + 999_999
    rows = np.vstack([np.zeros(50_000), column[1:50_001, 0]])
    design = make_design(stored(rows, form), make_executor(1))
    assert design.matvec(np.ones(50_000))[1] == 2.0**24 + 49_999
    w = np.zeros(50_000)
    w[:100] = 1.0  # few weights: the other kernel
    assert design.matvec(w)[1] == 2.0**24 + 99


def test_many_columns_are_not_copied():
    X = np.arange(40, dtype=np.float32).reshape(5, 8)
    whole = DenseDesign(X, make_executor(1), np.zeros(5, dtype=np.int64))
    for chosen in (np.arange(8), np.arange(8)[::-1], np.array([5, 1, 2])):
        block = whole.take(chosen)
        assert np.shares_memory(block.X, X)
        np.testing.assert_array_equal(block.columns((1, 4), 0, 2), (X - X[0])[1:4, chosen[:2]])
    few = whole.take(np.array([5, 1]))
    assert not np.shares_memory(few.X, X)


def test_read_only_storage():
    X = np.arange(12.0).reshape(4, 3)
    X.flags.writeable = False
    frozen = csr_array(X)
    for array in (frozen.data, frozen.indices, frozen.indptr):
        array.flags.writeable = False
    for matrix in (X, frozen):
        block = make_design(matrix, make_executor(1)).take(np.arange(3))
        assert np.array_equal(block.matvec(np.ones(3)), anchored(X).sum(axis=1))
        g = np.array([1.0, -1.0, 2.0, -2.0])
        assert np.array_equal(block.rmatvec(g), X.T @ g)


def test_wide_indices():
    X = csr_array(np.eye(4))
    X.indices, X.indptr = X.indices.astype(np.int64), X.indptr.astype(np.int64)
    block = SparseDesign(X, make_executor(1), np.zeros(4, dtype=np.int64)).take(np.array([1, 3]))
    assert block.matvec(np.array([2.0, 5.0])).tolist() == [0, 2, 0, 5]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_columns_that_are_not_copied_give_the_same_bits(dtype):
    rng = np.random.default_rng(0)
    n, chosen = 61, np.array([5, 0, 3])
    X = rng.normal(size=(n, 13)).astype(dtype)
    ptr = np.array([0, 1, 20, 20, 45, 60, 61])  # a query goes on through several blocks
    anchor = np.repeat(ptr[:-1], np.diff(ptr))
    diag, atoms = rng.random(n), rng.normal(size=(n, 2))
    cell = np.repeat(np.arange(6), np.diff(ptr))
    curvature = Curvature(diag, atoms, np.zeros((0, 0)), cell)
    v, g, values = rng.normal(size=3), rng.normal(size=n), rng.normal(size=(n - 11, 2))
    found = []
    for most in (None, 0):
        design = DenseDesign(X, make_executor(2), anchor, most_copied=most, rows_per_block=8)
        block = design.take(chosen)
        gram, sums = np.zeros((3, 3)), np.zeros((6, 2, 3))
        for rows in ((0, 13), (13, 30), (30, 61)):
            block.add_rows(curvature, rows, 0, gram, sums)
        few = np.array([0.0, 0.0, 1.5])
        found.append([
            block.matvec(v), block.matvec(few), block.rmatvec(g), block.spread, gram, sums,
            block.finish(gram, sums[:3, 0]), block.columns((9, 33), 1, 3),
            block.cross((11, n), values), block.n_bytes,
        ])  # fmt: skip
    assert type(design.take(chosen)) is not type(
        DenseDesign(X, make_executor(1), anchor).take(chosen)
    )
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)
