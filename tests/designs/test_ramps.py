"""Ramps that are never stored, against ramps that are written out."""

from __future__ import annotations

import gc
import itertools
import tracemalloc
import weakref

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import RampDesign, SparseRampDesign, ramp_design
from leanrank.errors import InputError
from leanrank.execution import Executor, make_executor
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.first_order.proximal import Proximal
from leanrank.solvers.newton.solver import Newton

FORMS = ["dense64", "dense32", "sparse64", "sparse32"]


def awkward(n=300, seed=0):
    """Columns with ties, gaps, few values, one value, nothing but gaps, and huge offsets."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 9))
    X[:, 1] = np.where(rng.random(n) < 0.7, 0.0, rng.exponential(size=n))
    X[:, 2] = rng.integers(0, 3, n)
    X[:, 3] = 5.0
    X[rng.random(n) < 0.3, 4] = np.nan
    X[:, 5] = np.where(rng.random(n) < 0.2, np.nan, 2.0)
    X[:, 6] = np.nan
    X[:, 7] = 1e6 + rng.integers(0, 1000, n)
    X[:, 8] = np.where(rng.random(n) < 0.9, 0.0, rng.integers(-2, 3, n))
    return X


def stored(X, form):
    X = X.astype(np.float64 if form.endswith("64") else np.float32)
    return csr_array(X) if form.startswith("sparse") else X


def written_out(X, ramps):
    """Every ramp as a column, and one for missing values where there are any."""
    columns = []
    for j, a in enumerate(ramps.knots):
        x = X[:, j]
        for low, high in itertools.pairwise(a):
            columns.append(np.nan_to_num(np.clip((x - low) / (high - low), 0.0, 1.0)))
        if np.isnan(x).any():
            columns.append(np.isnan(x).astype(np.float64))
    return np.array(columns).T


def both(form, n_segments=5, n=300, seed=0):
    X = stored(awkward(n, seed), form)
    plain = (X if isinstance(X, np.ndarray) else X.toarray()).astype(np.float64)
    ramps = RampColumns.at_quantiles(X, n_segments)
    return ramp_design(X, ramps, Executor()), written_out(plain, ramps)


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("n_segments", [1, 5, 300])
def test_products_are_those_with_explicit_ramps(form, n_segments):
    design, columns = both(form, n_segments)
    rng = np.random.default_rng(1)
    assert design.n_features == columns.shape[1]
    close = 1e-11 if form.endswith("64") else 1e-4 * n_segments
    g = rng.normal(size=300)
    g[:20] = 0.0
    assert np.allclose(design.rmatvec(g), columns.T @ g, rtol=0, atol=close)
    w = rng.normal(size=design.n_features) * (rng.random(design.n_features) < 0.5)
    assert np.allclose(design.matvec(w), columns @ w, rtol=0, atol=close)
    some = rng.permutation(design.n_features)[: design.n_features // 2 + 1]
    assert np.all(design.column_norms >= np.linalg.norm(columns, axis=0) * (1 - 1e-6))
    block = design.take(some)
    assert np.allclose(block.columns((0, 300), 0, len(some)), columns[:, some], atol=close)
    assert np.allclose(block.columns((7, 90), 1, 3), columns[7:90, some[1:3]], atol=close)
    assert np.allclose(block.rmatvec(g), columns[:, some].T @ g, rtol=0, atol=close)
    assert np.allclose(block.matvec(w[some]), columns[:, some] @ w[some], rtol=0, atol=close)
    V = rng.normal(size=(83, 2))
    assert np.allclose(block.cross((7, 90), V), columns[7:90, some].T @ V, rtol=0, atol=close)
    assert np.allclose(block.written((7, 90), np.float32), columns[7:90, some], atol=1e-5)


def test_squares_over_some_rows_show_which_columns_a_sample_sees():
    design, columns = both("dense64")
    bounds = columns[40:90].sum(axis=0) * design.ramps.heights
    np.testing.assert_allclose(design.squares((40, 90)), bounds, atol=1e-5)
    np.testing.assert_allclose(design.squares((0, 300)), design.column_norms**2, rtol=1e-5)


def test_both_kinds_are_reached():
    assert isinstance(both("dense32")[0], RampDesign)
    assert isinstance(both("sparse32")[0], SparseRampDesign)


def labels(n=300, seed=2):
    rng = np.random.default_rng(seed)
    sizes = [0, 1, 4, 60, 35, 100, 50, 50]
    return Labels(
        y=rng.integers(0, 3, n).astype(np.float64),
        query_ptr=np.concatenate(([0], np.cumsum(sizes))).astype(np.int64),
    )


@pytest.mark.parametrize("loss", ["domination", "squared-hinge", "logistic", "listnet"])
@pytest.mark.parametrize("form", FORMS)
def test_hessians_are_those_with_explicit_ramps(loss, form):
    design, columns = both(form)
    made = get_loss(loss)
    plan = made.prepare(labels())
    ours, theirs = (MemoryProblem(X, made, plan) for X in (design, columns.copy()))
    w = np.random.default_rng(3).normal(size=design.n_features)
    some = np.random.default_rng(4).permutation(design.n_features)[:9]
    close = 1e-10 if form.endswith("64") else 1e-4
    assert np.isclose(ours.at(w), theirs.at(w), rtol=close)
    assert np.allclose(ours.gradient(), theirs.gradient(), rtol=0, atol=close)
    found, expected = (
        problem.hessian(problem.design.take(some), problem.point.u, exact=True)
        for problem in (ours, theirs)
    )
    assert np.allclose(found, expected, rtol=0, atol=close * np.abs(expected).max())
    rough = ours.hessian(ours.design.take(some), ours.point.u)
    assert np.allclose(rough, expected, rtol=0, atol=1e-4 * np.abs(expected).max())


@pytest.mark.parametrize("form", ["dense64", "sparse64", "dense32"])
@pytest.mark.parametrize("group_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.7])
def test_optimum_is_that_of_an_independent_solver_on_explicit_ramps(form, group_ratio, l1_ratio):
    design, columns = both(form)
    made = get_loss("domination")
    plan = made.prepare(labels())
    n = design.n_features
    signs = np.where(design.ramps.is_gap, 0, np.where(design.ramps.feature == 0, 1, 0))

    def penalty(alpha):
        return GroupPenalty.build(
            alpha, l1_ratio, n, design.ramps.feature, group_ratio=group_ratio, signs=signs
        )

    ours, theirs = (MemoryProblem(X, made, plan) for X in (design, columns.copy()))
    ours.at(np.zeros(n))
    alpha = 0.2 * penalty(1.0).alpha_max_ratio(ours.gradient())
    found = Newton(tol=1e-9).solve(ours, penalty(alpha))
    expected = Proximal(tol=1e-8, max_iter=20_000).solve(theirs, penalty(alpha))
    close = 1e-7 if form.endswith("64") else 1e-5
    assert found.converged
    assert expected.converged
    assert np.isclose(found.objective, expected.objective, rtol=close)
    assert np.all(found.w[(signs == 1)] >= 0.0)
    used = np.unique(design.ramps.feature[found.w != 0])
    assert 0 < len(used) < 8
    # above alpha_max nothing enters, and just below it something does
    for factor, empty in ((1.001, True), (0.98, False)):
        alpha = factor * penalty(1.0).alpha_max_ratio(gradient_at_zero(ours, n))
        assert (not Newton(tol=1e-9).solve(ours, penalty(alpha)).w.any()) == empty


def gradient_at_zero(problem, n):
    problem.at(np.zeros(n))
    return problem.gradient()


@pytest.mark.parametrize("form", FORMS)
def test_same_bits_on_any_number_of_threads(form):
    X = stored(awkward(), form)
    size = {"rows_per_block" if isinstance(X, np.ndarray) else "entries_per_block": 64}
    made = get_loss("domination")
    plan = made.prepare(labels())
    solutions = []
    for workers in (1, 2, 3):
        executor = make_executor(workers)
        design = ramp_design(X, RampColumns.at_quantiles(X, 5), executor, **size)
        problem = MemoryProblem(design, made, plan, executor)
        penalty = ElasticNet.build(0.01, 1.0, design.n_features)
        solutions.append(Newton(tol=1e-8).solve(problem, penalty).w)
    assert solutions[0].any()
    assert all(np.array_equal(solutions[0], w) for w in solutions)


def test_knots_of_few_values_ties_and_gaps():
    knots = RampColumns.at_quantiles(awkward(), 5).knots
    assert [len(a) for a in knots] == [6, 6, 3, 1, 6, 1, 0, 6, 5]
    assert knots[1][0] == 0.0  # seven in ten are zero, and zero is one knot
    assert knots[1][1] > 0.0
    assert np.array_equal(knots[2], [0.0, 1.0, 2.0])
    assert all(np.all(np.diff(a) > 0) for a in knots)


def test_dense_and_sparse_data_have_the_same_knots():
    X = awkward()
    dense, sparse = RampColumns.at_quantiles(X, 4), RampColumns.at_quantiles(csr_array(X), 4)
    assert all(np.array_equal(a, b) for a, b in zip(dense.knots, sparse.knots, strict=True))


def test_features_without_values_cost_nothing():
    n_features = 1_000_000
    X = csr_array(([1.0, 2.0], ([0, 1], [7, 7])), shape=(3, n_features))
    ramps = RampColumns.at_quantiles(X, 4)
    assert ramps.knots[7].tolist() == [0.0, 1.0, 2.0]
    assert len({id(each) for each in ramps.knots}) == 2
    assert (
        ramps.knots[0].tolist() == RampColumns.at_quantiles(np.zeros((3, 1)), 4).knots[0].tolist()
    )
    assert ramps.n_columns == 2


def test_knots_split_documents_evenly():
    x = np.random.default_rng(0).exponential(size=(4_000, 1))
    (knots,) = RampColumns.at_quantiles(x, 8).knots
    counts, _ = np.histogram(x, knots)
    assert np.all(np.abs(counts - 490) <= 5)  # 1% of the documents are outside at either end


def test_an_outlier_moves_no_knot():
    x = np.random.default_rng(0).normal(size=(4_000, 1))
    knots = RampColumns.at_quantiles(x, 8).knots[0]
    x[:10] = 1e9
    moved = RampColumns.at_quantiles(x, 8).knots[0]
    assert np.allclose(knots, moved, atol=0.1)


def column(kind, n, rng):
    """Values of several shapes: continuous, rounded, one that many share, few that all share."""
    x = rng.normal(rng.normal(), size=n)
    if kind == "rounded":
        return np.round(x, 1)
    if kind == "shared":
        return np.where(rng.random(n) < rng.uniform(0.1, 0.99), rng.normal(), x)
    if kind == "few":
        return rng.random() * rng.integers(-3, rng.integers(1, 30), n)
    return x


@pytest.mark.parametrize("kind", ["continuous", "rounded", "shared", "few"])
def test_knots_of_the_negative_are_the_negatives_and_shared_values_have_one(kind):
    for seed in range(100):
        rng = np.random.default_rng(seed)
        n, n_segments = int(rng.integers(3, 700)), int(rng.choice([1, 2, 3, 4, 5, 8, 20, 60, 200]))
        x = column(kind, n, rng)
        knots, mirrored = (
            RampColumns.at_quantiles(each[:, None], n_segments).knots[0] for each in (x, -x)
        )
        assert np.array_equal(knots, -mirrored[::-1])
        values, counts = np.unique(x, return_counts=True)
        assert min(2, len(values)) <= len(knots) <= n_segments + 1
        if len(values) <= n_segments + 1:
            assert np.array_equal(knots, values)
        assert np.isin(values[counts >= n / n_segments], knots).all()


@pytest.mark.parametrize("n", [60, 100, 149, 150])
@pytest.mark.parametrize("sign", [1.0, -1.0])
def test_one_outlier_among_few_documents_is_no_knot(n, sign):
    x = np.random.default_rng(n).normal(size=(n, 1))
    x[n // 2] = sign * 1e9
    assert np.abs(RampColumns.at_quantiles(x, 4).knots[0]).max() < 10


def test_one_feature_with_many_knots_costs_no_memory_for_the_others():
    X = random_array((200, 5_000), density=0.01, rng=np.random.default_rng(0), format="csr")
    knots = (np.linspace(0.0, 1.0, 900), *[np.array([0.0, 1.0])] * 4_999)
    ramps = RampColumns(knots, np.zeros(5_000, dtype=bool))
    tracemalloc.start()
    try:
        ramp_design(X, ramps, Executor()).rmatvec(np.ones(200))
        peak = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert peak < 5e6


def test_knots_too_close_for_a_slope_are_one():
    X = np.array([[0.0], [5e-324], [1.0]])
    assert RampColumns.at_quantiles(X, 2).knots[0].tolist() == [0.0, 1.0]
    wide = np.array([[-1.7e308], [1.7e308], [0.0]])
    design = ramp_design(wide, RampColumns.at_quantiles(wide, 1), Executor())
    assert np.isfinite(design.matvec(np.ones(1))).all()


@pytest.mark.parametrize("form", ["dense64", "sparse64"])
def test_infinite_values_are_refused(form):
    X = np.zeros((3, 2))
    X[1, 1] = np.inf
    X = stored(X, form)
    with pytest.raises(InputError, match=r"f2 \(column 1\) holds infinity"):
        ramp_design(X, RampColumns.at_quantiles(stored(np.eye(3, 2), form), 2), Executor())


def test_gaps_that_training_data_do_not_have_score_as_the_first_knot():
    X = np.arange(10.0)[:, None]
    ramps = RampColumns.at_quantiles(X, 3)
    later = ramp_design(np.array([[np.nan], [-5.0]]), ramps, Executor())
    w = np.array([1.0, 2.0, 3.0, 0.0])
    assert later.matvec(w).tolist() == [0.0, 0.0]


def test_bins_are_small_and_leave_with_their_problem():
    X = awkward()
    design = ramp_design(X, RampColumns.at_quantiles(X, 5), Executor())
    assert design.X is X
    assert design.bins.nbytes == X.nbytes // 8
    loss = get_loss("domination")
    problem = MemoryProblem(design, loss, loss.prepare(labels()))
    problem.at(np.zeros(problem.n_features))
    bins = weakref.ref(design.bins)
    gc.disable()  # which would find what refers to itself, sooner or later
    try:
        del design, problem
        assert bins() is None
    finally:
        gc.enable()
