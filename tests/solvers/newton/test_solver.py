"""Newton against a general solver on the objective written out from its definition."""

from __future__ import annotations

import itertools
import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.errors import InputError
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.losses.exponential import ExponentialLoss
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.penalties.concave import ConcavePenalty, MinimaxConcave
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.quadratic_models import GramModel
from leanrank.solvers.newton.solver import Newton
from tests.solvers.reference_domination import (
    Reference,
    gradient,
    make_problem,
    random_features,
    random_labels,
)

RATIOS = {"l1": 1.0, "l2": 0.0, "elastic net": 0.6}


def alpha_max(problem, n):
    return ElasticNet.build(1.0, 1.0, n).alpha_max_ratio(gradient(problem, np.zeros(n)))


def with_margin(rng, labels, margin):
    """Give the labels that a kind of margin stands for."""
    if margin == "offset":
        return replaced(labels, offset=rng.normal(size=len(labels.y)) * 2)
    return replaced(labels, offset=0.7 * labels.y) if margin == "scaled" else labels


def replaced(labels, **changes):
    return Labels(**{**labels.__dict__, **changes})


CASES = [
    pytest.param(form, name, margin, weights, id=f"{form}-{name}-{margin}-{weights}")
    for (form, name, margin, weights) in itertools.product(
        ["dense", "sparse"], RATIOS, ["none", "offset", "scaled"], [False, True]
    )
]


@pytest.mark.parametrize(("form", "name", "margin", "weights"), CASES)
def test_the_optimum_its_conditions_and_its_certificate(form, name, margin, weights):
    rng = np.random.default_rng([len(form), len(name), len(margin), weights])
    normalize = str(rng.choice(["query", "term", "none"]))
    labels = random_labels(rng, weights=weights, normalize=normalize)
    labels = with_margin(rng, labels, margin)
    X = random_features(rng, len(labels.y), 6, form)
    problem, reference = make_problem(X, labels), Reference(X, labels)
    top = alpha_max(problem, 6)
    for share in (0.3, 0.03):
        penalty = ElasticNet.build(share * top, RATIOS[name], 6)
        solution = Newton(tol=1e-7).solve(problem, penalty)
        assert solution.converged
        assert solution.gap <= 1e-7
        assert solution.objective == pytest.approx(
            reference.objective(solution.w, penalty), rel=1e-12
        )
        assert penalty.residual(solution.w, reference.loss(solution.w)[1]).max() <= 1e-3 * top
        _, best = reference.optimum(penalty)
        assert solution.objective <= best * (1 + 1e-7)
        assert solution.objective * (1 - solution.gap) <= best * (1 + 1e-14)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_the_certificate_is_honest_wherever_it_stops(seed, form):
    rng = np.random.default_rng(seed)
    labels = random_labels(rng, n_queries=12, weights=seed % 2 == 0)
    labels = with_margin(rng, labels, ["none", "offset", "scaled"][seed % 3])
    X = random_features(rng, len(labels.y), 9, form)
    problem, reference = make_problem(X, labels), Reference(X, labels)
    penalty = ElasticNet.build(
        0.05 * alpha_max(problem, 9), [1.0, 0.5][seed % 2], 9, None, rng.choice([-1, 0, 1], 9)
    )
    _, best = reference.optimum(penalty)
    starts = [None, rng.normal(size=9), 30 * rng.normal(size=9)]
    for start, tol in itertools.product(starts, [0.9, 1e-1, 1e-2, 1e-4]):
        for max_iter in (1, 2, 100):
            solution = Newton(tol=tol, max_iter=max_iter).solve(problem, penalty, start)
            assert solution.converged == (solution.gap <= tol)
            assert solution.objective * (1 - solution.gap) <= best * (1 + 1e-12)
            assert best <= solution.objective * (1 + 1e-9)
            for entry in solution.history:
                assert entry["objective"] * (1 - entry["gap"]) <= best * (1 + 1e-12)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
def test_more_features_than_documents_and_than_one_working_set(form, ratio):
    rng = np.random.default_rng(7)
    labels = random_labels(rng, n_queries=10)
    X = random_features(rng, len(labels.y), 200, form)
    problem, reference = make_problem(X, labels), Reference(X, labels)
    penalty = ElasticNet.build(0.02 * alpha_max(problem, 200), ratio, 200)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = Newton(tol=1e-7).solve(problem, penalty)
    assert solution.converged
    w, best = reference.optimum(penalty, solution.w, 200)  # finds less if there is less
    assert solution.objective <= best * (1 + 1e-7)
    assert solution.objective * (1 - solution.gap) <= best
    if ratio == 1.0:
        assert 0 < np.count_nonzero(solution.w) <= len(labels.y)
    if ratio < 1.0:  # the optimum is unique
        np.testing.assert_allclose(solution.w, w, atol=5e-3 * np.abs(w).max())


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_signs_and_factors_are_obeyed_and_optimal(form):
    rng = np.random.default_rng(3)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 12, form)
    problem, reference = make_problem(X, labels), Reference(X, labels)
    top = alpha_max(problem, 12)
    factors = np.array([0, 0, np.inf, np.inf, 1, 1, 1, 1, 2, 0.5, 3, 1.0])
    signs = np.array([0, 0, 0, 0, 1, 1, -1, -1, 1, -1, 0, 0])
    for share, ratio in itertools.product((0.5, 0.05), (1.0, 0.4, 0.0)):
        penalty = ElasticNet.build(share * top, ratio, 12, factors, signs)
        solution = Newton(tol=1e-7).solve(problem, penalty)
        assert solution.converged
        assert np.all(solution.w[2:4] == 0)
        assert np.all(solution.w[:2] != 0)
        assert np.all(solution.w[signs == 1] >= 0)
        assert np.all(solution.w[signs == -1] <= 0)
        c = reference.loss(solution.w)[1]
        assert penalty.residual(solution.w, c).max() <= 1e-3 * top
        problem.at(np.zeros(12))
        scale = problem.gradient_scale()[:2]
        assert solution.free_residual <= 1e-7
        assert solution.free_residual == pytest.approx((np.abs(c[:2]) / scale).max(), abs=1e-12)
        assert solution.objective <= reference.optimum(penalty)[1] * (1 + 1e-7)


@pytest.mark.parametrize("sign", [-1, 1])
def test_an_unpenalised_feature_held_at_zero_by_its_sign_is_no_obstacle(sign):
    rng = np.random.default_rng(1)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 3)
    X[:, 0] = -sign * labels.y + 0.5 * X[:, 0]
    problem, reference = make_problem(X, labels), Reference(X, labels)
    penalty = ElasticNet.build(0.1, 1.0, 3, [0.0, 1.0, 1.0], [sign, 0, 0])
    solution = Newton(tol=1e-8).solve(problem, penalty)
    assert solution.w[0] == 0
    assert solution.objective <= reference.optimum(penalty)[1] * (1 + 1e-8)
    assert solution.converged
    assert solution.free_residual == 0


def test_a_dual_value_does_not_count_before_the_free_features_are_optimal():
    for seed in range(6):
        rng = np.random.default_rng(seed)
        labels = random_labels(rng, n_queries=20)
        X = random_features(rng, len(labels.y), 12, ["dense", "sparse"][seed % 2])
        problem, reference = make_problem(X, labels), Reference(X, labels)
        factors = np.ones(12)
        factors[:2] = 0.0
        free = ElasticNet.build(1.0, 1.0, 12, factors).only_free()
        c = reference.loss(reference.optimum(free)[0])[1]
        penalty = ElasticNet.build(0.999 * np.abs(c[2:]).max(), 1.0, 12, factors)
        solution = Newton(tol=1e-9).solve(problem, penalty)
        assert solution.converged
        assert np.any(solution.w[2:] != 0)
        assert solution.objective <= reference.optimum(penalty)[1] * (1 + 1e-8)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_all_features_free_reach_the_unpenalised_optimum(form):
    rng = np.random.default_rng(5)
    labels = random_labels(rng, n_queries=30)
    X = random_features(rng, len(labels.y), 4, form)
    penalty = ElasticNet.build(0.0, 1.0, 4)
    solution = Newton(tol=1e-7).solve(make_problem(X, labels), penalty)
    reference = Reference(X, labels)
    assert solution.converged
    assert np.abs(reference.loss(solution.w)[1]).max() <= 1e-7
    assert solution.objective <= reference.optimum(penalty)[1] * (1 + 1e-10)


def test_everything_shut_out_is_an_empty_certified_model():
    rng = np.random.default_rng(0)
    labels = random_labels(rng)
    X = random_features(rng, len(labels.y), 3)
    penalty = ElasticNet.build(0.1, 1.0, 3, [np.inf] * 3)
    solution = Newton().solve(make_problem(X, labels), penalty, np.ones(3))
    assert solution.converged
    assert not solution.w.any()
    assert solution.objective == pytest.approx(Reference(X, labels).loss(np.zeros(3))[0])


def test_a_start_with_forbidden_weights_is_put_right():
    rng = np.random.default_rng(2)
    labels = random_labels(rng, n_queries=15)
    X = random_features(rng, len(labels.y), 5)
    problem = make_problem(X, labels)
    penalty = ElasticNet.build(0.02, 1.0, 5, [1, 1, 1, np.inf, 1], [1, -1, 0, 0, 0])
    start = np.array([-5.0, 5.0, 1.0, 3.0, 0.0])
    kept = start.copy()
    warm = Newton(tol=1e-7).solve(problem, penalty, start)
    cold = Newton(tol=1e-7).solve(problem, penalty)
    assert np.array_equal(start, kept)
    assert warm.converged
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-3)
    assert warm.objective == pytest.approx(cold.objective, rel=1e-7)


def test_constant_and_duplicate_features():
    rng = np.random.default_rng(4)
    labels = random_labels(rng, n_queries=15)
    X = random_features(rng, len(labels.y), 4)
    per_query = np.repeat(rng.normal(size=15), np.diff(labels.query_ptr))
    wide = np.column_stack([X, X, np.full(len(X), 3.0), per_query, np.zeros(len(X)), -X[:, 0]])
    for form, ratio in itertools.product(("dense", "sparse"), (1.0, 0.5, 0.0)):
        plain = Newton(tol=1e-7).solve(make_problem(X, labels), ElasticNet.build(0.01, ratio, 4))
        matrix = csr_array(wide) if form == "sparse" else wide
        problem = make_problem(matrix, labels)
        penalty = ElasticNet.build(0.01, ratio, 12)
        solution = Newton(tol=1e-7).solve(problem, penalty)
        assert solution.converged
        np.testing.assert_allclose(solution.w[8:11], 0, atol=1e-9)
        if ratio == 1.0:  # a copy changes nothing; with a ridge it shares the weight and gains
            assert solution.objective == pytest.approx(plain.objective, rel=2e-7)
            u, v = X @ plain.w, wide @ solution.w
            at = labels.query_ptr[:-1]
            sizes = np.diff(labels.query_ptr)
            np.testing.assert_allclose(
                u - np.repeat(u[at], sizes), v - np.repeat(v[at], sizes), atol=1e-3
            )
        else:
            assert solution.objective < plain.objective
            np.testing.assert_allclose(solution.w[:4], solution.w[4:8], atol=2e-3)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize(
    ("form", "mean"),
    [
        ("dense", 1e2),
        ("dense", 1e4),
        ("sparse", 1e1),
        pytest.param("sparse", 1e3),
    ],
)
def test_a_feature_with_a_mean_far_above_its_spread(form, mean, dtype):
    rng = np.random.default_rng(4)
    labels = random_labels(rng, n_queries=30, most=12)
    X = rng.normal(size=(len(labels.y), 6))
    X[:, 5] = labels.y + 0.5 * rng.normal(size=len(X)) + mean
    X[:, 4] = labels.y + 2.0 * rng.normal(size=len(X))
    X = X.astype(dtype)
    centred = X.astype(np.float64)
    centred[:, 5] -= mean
    problem = make_problem(csr_array(X) if form == "sparse" else X, labels)
    penalty = ElasticNet.build(0.02, 1.0, 6)
    solution = Newton(tol=1e-6).solve(problem, penalty)
    assert solution.converged
    best = Reference(centred, labels).optimum(penalty)[1]
    assert solution.objective == pytest.approx(best, rel=2e-6)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("loss", [DominationLoss(), ExponentialLoss(), SquaredHingeLoss()])
def test_a_mean_that_leaves_few_digits_costs_none(form, loss):
    rng = np.random.default_rng(4)
    labels = random_labels(rng, n_queries=30, most=12)
    X = np.round(rng.normal(size=(len(labels.y), 6)) * 16)
    X[:, 5] += 16 * labels.y
    far = X.copy()
    far[:, 4:] += 1e13 * np.repeat(rng.integers(1, 3, (30, 2)), np.diff(labels.query_ptr), axis=0)
    plan, penalty = loss.prepare(labels), ElasticNet.build(0.3, 1.0, 6)
    near = Newton(tol=1e-9).solve(MemoryProblem(X, loss, plan), penalty)
    problem = MemoryProblem(csr_array(far) if form == "sparse" else far, loss, plan)
    solution = Newton(tol=1e-9).solve(problem, penalty)
    assert solution.converged
    assert np.count_nonzero(solution.w[4:]) > 0
    np.testing.assert_allclose(solution.w, near.w, rtol=1e-4, atol=1e-7)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_features_that_differ_far_more_between_queries_than_within(form):
    rng = np.random.default_rng(16)
    labels = random_labels(rng, n_queries=40, most=12)
    X = rng.normal(size=(len(labels.y), 6))
    X[:, 5] += 2 * labels.y
    far = X + 1e4 * np.repeat(rng.normal(size=(40, 6)), np.diff(labels.query_ptr), axis=0)
    penalty = ElasticNet.build(0.01, 1.0, 6)
    near = Newton().solve(make_problem(X, labels), penalty)
    problem = make_problem(csr_array(far) if form == "sparse" else far, labels)
    solution = Newton(max_iter=30).solve(problem, penalty)
    assert solution.converged
    assert solution.objective == pytest.approx(near.objective, rel=1e-5)


@pytest.mark.parametrize("share", [1e-3, 1e-6, 1e-9])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_separable_data_with_a_tiny_strength(form, share):
    rng = np.random.default_rng(0)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 5)
    X[:, 0] += 6 * labels.y
    problem = make_problem(csr_array(X) if form == "sparse" else X, labels)
    penalty = ElasticNet.build(share * alpha_max(problem, 5), 1.0, 5)
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise"):
        warnings.simplefilter("error")
        solution = Newton(tol=1e-6).solve(problem, penalty)
    assert solution.converged
    assert np.isfinite(solution.w).all()
    assert np.abs(solution.w).max() > 0.2 * -np.log(share) / 6
    assert 0 < solution.objective < 20 * share * -np.log(share)


@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_the_scale_of_the_features_does_not_matter(form, ratio):
    rng = np.random.default_rng(6)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 80, form)
    answers = []
    for size in (1.0, 1e6, 1e-6):
        problem = make_problem(X * size, labels)
        penalty = ElasticNet(
            np.full(80, 0.01 * size * ratio),
            np.full(80, 0.01 * size * ratio),
            np.full(80, 0.01 * size**2 * (1 - ratio)),
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            solution = Newton(tol=1e-7).solve(problem, penalty)
        assert solution.converged
        answers.append((solution.objective, solution.w * size))
    for objective, w in answers[1:]:
        assert objective == pytest.approx(answers[0][0], rel=2e-7)
        np.testing.assert_allclose(w, answers[0][1], atol=3e-3 * np.abs(w).max())


def test_the_gap_closes_to_the_last_digits():
    for seed in range(8):
        rng = np.random.default_rng(seed)
        labels = random_labels(rng, n_queries=20)
        X = random_features(rng, len(labels.y), 80, ["dense", "sparse"][seed % 2])
        problem = make_problem(X, labels)
        penalty = ElasticNet.build(0.05 * alpha_max(problem, 80), 1.0, 80)
        assert Newton(tol=1e-11).solve(problem, penalty).converged


def very_different_scales(form, dtype):
    rng = np.random.default_rng(8)
    labels = random_labels(rng, n_queries=40)
    X = (rng.normal(size=(len(labels.y), 8)) * 10.0 ** np.arange(-6, 10, 2)).astype(dtype)
    return X, labels, make_problem(csr_array(X) if form == "sparse" else X, labels)


@pytest.mark.parametrize("ratio", [1.0, 0.5, 0.0])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_features_of_very_different_scales(form, dtype, ratio):
    X, labels, problem = very_different_scales(form, dtype)
    penalty = ElasticNet.build(1.0, ratio, 8)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        solution = Newton(tol=1e-6).solve(problem, penalty)
    assert solution.gap <= 1e-4
    reference = Reference(X, labels)
    assert solution.objective == pytest.approx(reference.objective(solution.w, penalty), rel=1e-9)
    best = reference.optimum(penalty, solution.w, 200)[1]
    assert solution.objective * (1 - solution.gap) <= best <= solution.objective * (1 + 1e-12)


def test_features_of_very_different_scales_reach_the_tolerance():
    for form, dtype, ratio in itertools.product(
        ("dense", "sparse"), (np.float32, np.float64), (1.0, 0.5, 0.0)
    ):
        _, _, problem = very_different_scales(form, dtype)
        assert Newton(tol=1e-6).solve(problem, ElasticNet.build(1.0, ratio, 8)).converged


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_single_precision_is_certified_too(form):
    rng = np.random.default_rng(9)
    labels = random_labels(rng, n_queries=30)
    X = random_features(rng, len(labels.y), 20, form).astype(np.float32)
    problem, reference = make_problem(X, labels), Reference(X.astype(np.float64), labels)
    penalty = ElasticNet.build(0.02 * alpha_max(problem, 20), 1.0, 20)
    solution = Newton(tol=1e-7).solve(problem, penalty)
    assert solution.converged
    assert solution.w.dtype == np.float64
    assert solution.objective <= reference.optimum(penalty)[1] * (1 + 1e-7)


def test_offsets_of_a_million_neither_overflow_nor_lie():
    rng = np.random.default_rng(10)
    labels = random_labels(rng, n_queries=10, most=5)
    X = random_features(rng, len(labels.y), 4)
    wild = replaced(labels, offset=rng.choice([-1e6, 0.0, 1e6], len(labels.y)))
    problem, reference = make_problem(X, wild), Reference(X, wild)
    penalty = ElasticNet.build(1e-3 * alpha_max(problem, 4), 1.0, 4)
    with warnings.catch_warnings(), np.errstate(over="raise", invalid="raise"):
        warnings.simplefilter("error")
        solution = Newton(max_iter=10).solve(problem, penalty)
    assert np.isfinite(solution.w).all()
    assert solution.objective == pytest.approx(reference.objective(solution.w, penalty), rel=1e-9)
    assert solution.objective <= reference.objective(np.zeros(4), penalty)
    best = reference.optimum(penalty, max_iter=100)[1]
    assert solution.objective * (1 - solution.gap) <= best * (1 + 1e-9)
    # the same for every document of a query: no margin at all
    shift = np.repeat(rng.choice([-1e6, 0.0, 1e6], 10), np.diff(labels.query_ptr))
    penalty = ElasticNet.build(0.02, 1.0, 4)
    plain = Newton(tol=1e-7).solve(make_problem(X, labels), penalty)
    shifted = Newton(tol=1e-7).solve(make_problem(X, replaced(labels, offset=shift)), penalty)
    assert shifted.converged
    assert shifted.objective == pytest.approx(plain.objective, rel=1e-7)
    np.testing.assert_allclose(shifted.w, plain.w, atol=1e-3)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_threads_do_not_change_a_bit(form):
    rng = np.random.default_rng(11)
    labels = random_labels(rng, n_queries=4_000, most=20)
    X = random_features(rng, len(labels.y), 20, form)
    penalty = ElasticNet.build(0.005, 0.9, 20)
    with single_threaded_blas():
        answers = [
            Newton(tol=1e-8).solve(make_problem(X, labels, n_jobs=jobs), penalty)
            for jobs in (1, 2, 4)
        ]
    for other in answers[1:]:
        assert np.array_equal(answers[0].w, other.w)
        assert answers[0].objective == other.objective
        assert answers[0].gap == other.gap
        assert answers[0].history == other.history


def test_one_query_longer_than_a_range_uses_threads_without_changing_a_bit():
    rng = np.random.default_rng(12)
    n = 40_000
    X = random_features(rng, n, 8, "sparse")
    y = (X @ rng.normal(size=8) + rng.normal(size=n) > 3).astype(float)
    labels = Labels(y=y, query_ptr=np.array([0, n]))
    penalty = ElasticNet.build(0.01, 1.0, 8)
    with single_threaded_blas():
        one, two = (
            Newton().solve(make_problem(X, labels, n_jobs=jobs), penalty) for jobs in (1, 2)
        )
    assert one.converged
    assert np.array_equal(one.w, two.w)


def test_history_and_callback_tell_the_same_story():
    rng = np.random.default_rng(13)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 10)
    problem = make_problem(X, labels)
    told = []
    penalty = ElasticNet.build(0.01, 1.0, 10)
    solution = Newton(callback=told.append).solve(problem, penalty)
    assert told == solution.history
    assert len(told) == solution.n_iter
    assert [e["iteration"] for e in told] == list(range(1, solution.n_iter + 1))
    last = told[-1]
    assert last["objective"] == solution.objective
    assert last["gap"] == solution.gap <= 1e-6
    assert last["support"] == np.count_nonzero(solution.w)


@pytest.mark.parametrize(("n_features", "staged"), [(10, False), (60, True)])
def test_a_weak_penalty_is_approached_in_stages_where_the_loss_can_vanish(n_features, staged):
    rng = np.random.default_rng(0)
    labels = random_labels(rng, n_queries=10)
    problem = make_problem(rng.normal(size=(len(labels.y), n_features)), labels)
    assert (2 * n_features >= len(labels.y)) == staged
    penalty = ElasticNet.build(1e-4 * alpha_max(problem, n_features), 1.0, n_features)
    usual, at_once = (solver.solve(problem, penalty) for solver in (Newton(), Newton(weak=np.inf)))
    assert usual.converged
    assert usual.objective == pytest.approx(at_once.objective, rel=1e-5)
    assert (usual.history[1]["support"] < at_once.history[1]["support"]) == staged


def test_the_iterations_end_at_max_iter():
    rng = np.random.default_rng(14)
    labels = random_labels(rng, n_queries=20)
    X = random_features(rng, len(labels.y), 10)
    problem = make_problem(X, labels)
    solution = Newton(max_iter=1).solve(problem, ElasticNet.build(1e-4, 1.0, 10))
    assert solution.n_iter == 1
    assert not solution.converged
    assert solution.gap > 1e-6


def test_a_penalty_that_it_cannot_use_is_refused_by_name():
    rng = np.random.default_rng(15)
    labels = random_labels(rng)
    X = random_features(rng, len(labels.y), 3)
    concave = ConcavePenalty(ElasticNet.build(0.1, 1.0, 3), MinimaxConcave(3.0))
    with pytest.raises(InputError, match=r"newton.*concave"):
        Newton().solve(make_problem(X, labels), concave)


def test_a_start_where_the_loss_is_infinite_is_refused():
    labels = Labels(y=np.array([0.0, 1.0]), query_ptr=np.array([0, 2]), offset=np.array([0.0, 1e4]))
    loss = ExponentialLoss()
    problem = MemoryProblem(np.array([[1.0], [0.0]]), loss, loss.prepare(labels))
    with pytest.raises(InputError, match="'exponential' loss is inf where the solver starts"):
        Newton().solve(problem, ElasticNet.build(0.1, 1.0, 1))


@pytest.mark.parametrize("heavy", [False, True])
def test_hessians_of_sampled_queries_end_at_the_same_optimum(heavy):
    rng = np.random.default_rng(5)
    labels = random_labels(rng, n_queries=600)
    n = len(labels.y)
    X = rng.normal(size=(n, 8))
    X[:, 0] += labels.y
    if heavy:  # the first queries say little about the others
        X[n // 2 :] *= np.exp(rng.normal(size=(n - n // 2, 8)))
    problem = make_problem(X, labels)
    penalty = ElasticNet.build(0.01 * alpha_max(problem, 8), 1.0, 8)
    models = []
    form = problem.quadratic

    def quadratic(*given, **options):
        models.append(form(*given, **options))
        return models[-1]

    problem.quadratic = quadratic
    sampled = Newton(sample_per_feature=1).solve(problem, penalty)
    assert models[0].sampled
    assert not models[-1].sampled
    assert sampled.converged
    whole = Newton().solve(make_problem(X, labels), penalty)
    assert sampled.objective == pytest.approx(whole.objective, rel=2e-6)


def test_a_step_of_a_sample_that_leads_nowhere_is_tried_with_all_documents():
    rng = np.random.default_rng(6)
    labels = random_labels(rng, n_queries=600)
    problem = make_problem(rng.normal(size=(len(labels.y), 4)), labels)
    penalty = ElasticNet.build(0.01 * alpha_max(problem, 4), 1.0, 4)
    form = problem.quadratic

    def quadratic(part, *, thin):
        model = form(part, thin=thin)
        if thin is not None:
            assert model.sampled
            return GramModel(1e-25 * model.hessian, sampled=True)  # a step of astronomic length
        assert not model.sampled
        return model

    problem.quadratic = quadratic
    assert Newton(sample_per_feature=1).solve(problem, penalty).converged
