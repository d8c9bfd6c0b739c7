from __future__ import annotations

import numpy as np
import pytest

from leanrank.execution import make_executor
from leanrank.solvers.least_squares.greedy import forward, make_state, nested_weights
from tests.solvers.reference_rankrls import centre, centred_of, left_out, random_problem, ridge


def search(X, plan, alpha, steps, *, kind="standard", **options):
    state = make_state(kind, centred_of(X, plan), alpha, make_executor(1))
    return [(list(state.chosen), residual) for residual in forward(state, steps, **options)]


def error(X, plan, chosen, alpha):
    A, b = centre(X, plan)
    query_of = np.repeat(np.arange(len(plan.query_ptr) - 1), np.diff(plan.query_ptr))
    return float(np.sum(left_out(A, b, query_of, list(chosen), alpha) ** 2))


@pytest.mark.parametrize("seed", range(3))
def test_forward_takes_the_best_at_each_step(seed):
    X, plan = random_problem(np.random.default_rng(seed))
    steps = search(X, plan, 0.1, 7)
    assert [len(chosen) for chosen, _ in steps] == list(range(1, 8))
    for before, (chosen, residual) in zip([[]] + [s[0] for s in steps], steps, strict=False):
        assert chosen[:-1] == before
        others = [error(X, plan, [*before, i], 0.1) for i in range(7) if i not in before]
        assert residual @ residual == pytest.approx(min(others), rel=1e-9)


def test_the_first_of_equals_is_taken():
    X, plan = random_problem(np.random.default_rng(0))
    X[:, 6] = X[:, 2]
    X[:, 1] = X[:, 2]
    first = search(X, plan, 0.1, 1)[0][0]
    gains = [-error(X, plan, [i], 0.1) for i in range(7)]
    if np.argmax(gains) in (1, 2, 6):
        assert first == [1]


@pytest.mark.parametrize("alpha", [1e-12, 1e-6, 1.0, 1e6, 1e12])
def test_weights_of_every_size(alpha):
    X, plan = random_problem(np.random.default_rng(2), n=8, sizes=[7] * 9)
    X[:, 7] = X[:, 6] + 1e-4 * X[:, 0]
    A, b = centre(X, plan)
    chosen = np.array([6, 3, 7, 2, 1])  # 6 and 7 nearly the same
    for k, w in enumerate(nested_weights(centred_of(X, plan), chosen, alpha), 1):
        expected = ridge(A[:, chosen[:k]], b, alpha)
        assert np.allclose(w, expected, rtol=1e-7, atol=1e-7 * np.abs(expected).max())


def test_candidates_are_drawn_and_repeatable():
    X, plan = random_problem(np.random.default_rng(4), n=30)
    runs = [
        search(X, plan, 0.1, 5, n_candidates=3, random=np.random.default_rng(seed))[-1][0]
        for seed in (0, 0, 1)
    ]
    assert runs[0] == runs[1] != runs[2]
    assert search(X, plan, 0.1, 5, n_candidates=100)[-1][0] == search(X, plan, 0.1, 5)[-1][0]
