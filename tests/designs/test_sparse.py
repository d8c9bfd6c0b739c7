"""Hessians of sparse columns against dense ones."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.designs.sparse import SparseDesign
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.problem.memory import MemoryProblem


def problems(sizes, densities, dtype, seed=0, workers=1):
    rng = np.random.default_rng(seed)
    n = sum(sizes)
    X = rng.normal(size=(n, len(densities))).astype(dtype)
    X[rng.random(X.shape) > densities] = 0.0
    labels = Labels(
        y=rng.integers(0, 3, n).astype(np.float64),
        query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
    )
    loss = DominationLoss()
    plan = loss.prepare(labels)
    executor = make_executor(workers)
    u = rng.normal(size=n)
    anchor = np.repeat(labels.query_ptr[:-1], sizes)
    forms = X.astype(np.float64), SparseDesign(csr_array(X), executor, anchor)
    return [MemoryProblem(x, loss, plan, executor) for x in forms], u


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sizes", [[9, 1, 0, 30, 2], [200], [1] * 5 + [40] * 3])
def test_rare_and_frequent_columns(sizes, dtype):
    densities = np.array([0.05, 0.9, 0.0, 0.5, 0.02, 0.3, 1.0])
    (dense, sparse), u = problems(sizes, densities, dtype)
    for chosen in (np.arange(7), np.array([5, 0, 1]), np.array([2]), np.array([0, 4])):
        expected = dense.hessian(dense.design.take(chosen), u, exact=True)
        found = sparse.hessian(sparse.design.take(chosen), u)
        np.testing.assert_array_equal(found, found.T)
        np.testing.assert_allclose(found, expected, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("workers", [2, 3])
def test_the_same_bits_for_any_number_of_threads(workers):
    densities = np.array([0.9, 0.4, 0.2, 0.05, 0.01])
    (_, one), u = problems([40_000], densities, np.float32)
    (_, many), _ = problems([40_000], densities, np.float32, workers=workers)
    features = np.arange(5)
    first = one.hessian(one.design.take(features), u)
    np.testing.assert_array_equal(first, many.hessian(many.design.take(features), u))
