"""Every candidate at every step, against training again without each query."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.errors import InputError
from leanrank.execution import make_executor
from leanrank.solvers.least_squares import greedy
from leanrank.solvers.least_squares.greedy import make_state
from tests.solvers.reference_rankrls import (
    centre,
    centred_of,
    decrease,
    frozen_decrease,
    left_out,
    random_problem,
)

KINDS = ("standard", "low", "frozen")


def follow(X, plan, alpha, kind, *, sparse=False, jobs=1, steps=None, tol=1e-8):
    """Run a state step by step beside the slow twin."""
    A, b = centre(X, plan)
    centred = centred_of(X, plan, sparse)
    twin = frozen_decrease if kind == "frozen" else decrease
    state = make_state(kind, centred, alpha, make_executor(jobs))
    n = X.shape[1]
    for _ in range(n if steps is None else steps):
        candidates = np.setdiff1d(np.arange(n), state.chosen)
        gains = state.decreases(candidates)
        slow = [twin(A, b, centred.query_of, state.chosen, i, alpha) for i in candidates]
        assert np.allclose(gains, slow, rtol=0, atol=tol * np.abs(slow).max() + 1e-14)
        state.add(int(candidates[np.argmax(gains)]))
        residual = left_out(A, b, centred.query_of, state.chosen, alpha)
        assert np.allclose(state.residual, residual, atol=1e-9 * np.abs(b).max())
    return state


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("weights", [False, True])
@pytest.mark.parametrize("seed", range(3))
def test_leave_query_out_of_every_candidate(kind, sparse, weights, seed):
    rng = np.random.default_rng(seed)
    X, plan = random_problem(
        rng, weights=weights, offset=weights, normalize=("none", "query", "term")[seed]
    )
    follow(X, plan, 10.0 ** rng.integers(-3, 2) * plan.scale.max(), kind, sparse=sparse)


@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1e-2, 1.0, 1e4, 1e8, 1e12])
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("sparse", [False, True])
def test_duplicate_constant_collinear_and_lonely_features(alpha, kind, sparse):
    X, plan = random_problem(np.random.default_rng(0), n=10, sizes=[1, 5, 7, 0, 12, 2, 9, 6, 6])
    X[:, 3] = X[:, 1]
    X[:, 4] = 0.1
    X[:, 5] = X[:, 0] + X[:, 2]
    X[:, 6] = 0.0
    X[7:10, 6] = [1.0, -2.0, 0.5]  # lives in one query
    X[:, 9] = 0.0
    state = follow(X, plan, alpha, kind, sparse=sparse, tol=1e-6)
    assert state.start_energy[4] == 0.0
    assert state.start_energy[9] == 0.0
    assert state.only[6] == 2
    assert (np.delete(state.only, 6) == -1).all()


@given(st.integers(0, 10**6), st.sampled_from(KINDS), st.booleans(), st.integers(-9, 9))
@settings(max_examples=30)
def test_random_problems(seed, kind, sparse, power):
    rng = np.random.default_rng(seed)
    X, plan = random_problem(
        rng, n=int(rng.integers(1, 6)), sizes=[*rng.integers(0, 6, 4), 3, 4], weights=False
    )
    X = np.round(X)  # ties, duplicates, constants
    follow(X, plan, 10.0**power, kind, sparse=sparse, tol=1e-5)


@pytest.mark.parametrize("kind", KINDS)
def test_the_same_bits_on_any_number_of_threads(kind):
    X, plan = random_problem(np.random.default_rng(3), n=70, sizes=[6] * 700)
    assert X.size > 2 * greedy.NUMBERS_PER_RANGE
    assert X.shape[1] > 2 * greedy.COLUMNS_AT_ONCE
    runs = []
    for jobs in (1, 4):
        state = make_state(kind, centred_of(X, plan), 0.5, make_executor(jobs))
        gains = [state.decreases(np.arange(11))]
        for feature in (4, 2, 9):
            state.add(feature)
            gains.append(state.decreases(np.array([0, 1, 10])))
        runs.append((np.concatenate(gains), state.residual))
    assert np.array_equal(runs[0][0], runs[1][0])
    assert np.array_equal(runs[0][1], runs[1][1])


def test_more_features_than_a_buffer_holds():
    from leanrank.solvers.least_squares._greedy_kernels import WIDTH

    X, plan = random_problem(np.random.default_rng(4), n=2 * WIDTH + 5, sizes=[4, 5, 6])
    X[4:9, WIDTH] = 0  # a feature of two queries
    X[:9, WIDTH + 1] = 0  # a feature of one
    follow(X, plan, 0.3, "standard", steps=2)


@pytest.mark.parametrize("kind", KINDS)
def test_adding_without_measuring(kind):
    X, plan = random_problem(np.random.default_rng(5))
    A, b = centre(X, plan)
    centred = centred_of(X, plan)
    state = make_state(kind, centred, 0.2, make_executor(1))
    for feature in (3, 0, 5):
        state.add(feature)
    assert np.allclose(state.residual, left_out(A, b, centred.query_of, [3, 0, 5], 0.2))


@pytest.mark.parametrize("kind", KINDS)
def test_the_decrease_of_the_training_error(kind):
    X, plan = random_problem(np.random.default_rng(6), sizes=[20])
    A, b = centre(X, plan)

    def error(chosen):
        w = np.linalg.solve(
            A[:, chosen].T @ A[:, chosen] + 0.2 * np.eye(len(chosen)), A[:, chosen].T @ b
        )
        return np.sum((b - A[:, chosen] @ w) ** 2) + 0.2 * w @ w

    state = make_state(kind, centred_of(X, plan), 0.2, make_executor(1), by_training=True)
    state.add(2)
    gains = state.decreases(np.array([0, 4]))
    if kind == "frozen":
        r = b - A[:, 2] * (A[:, 2] @ b / (0.2 + A[:, 2] @ A[:, 2]))
        expected = [(A[:, i] @ r) ** 2 / (0.2 + A[:, i] @ A[:, i]) for i in (0, 4)]
    else:
        expected = [error([2]) - error([2, i]) for i in (0, 4)]
    assert np.allclose(gains, expected)


def test_what_the_machine_cannot_hold_is_refused_before_it_is_tried(monkeypatch):
    assert greedy.machine_memory() > 2**20
    X, plan = random_problem(np.random.default_rng(8))
    monkeypatch.setattr(greedy, "machine_memory", lambda: 100.0)
    with pytest.raises(InputError, match="use memory='low', or fitting='back'"):
        make_state("standard", centred_of(X, plan), 1.0, make_executor(1))
    make_state("low", centred_of(X, plan), 1.0, make_executor(1))
