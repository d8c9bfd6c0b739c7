"""Steps on drawn pairs: against a slow twin step by step, and against the optimum they aim at."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from leanrank.errors import InputError
from leanrank.losses import pair_loss
from leanrank.losses.base import Labels
from leanrank.solvers.sampling.pair_descent import (
    SCHEDULES,
    PairRule,
    descend,
    largest_pair,
    make_pair_block,
    start_pairs,
)
from leanrank.solvers.sampling.pair_sampling import draw_pairs, fill_pairs, new_state


def problem(n_features=5, seed=0, sparse=False):
    rng = np.random.default_rng(seed)
    sizes = [6, 1, 0, 4, 9, 3]
    ptr = np.concatenate(([0], np.cumsum(sizes)))
    X = rng.normal(size=(ptr[-1], n_features))
    if sparse:
        X *= rng.random(X.shape) < 0.4
    X[:, -1] = 0.0  # an empty feature
    y = rng.integers(0, 3, ptr[-1]).astype(float)
    y[11:20] = np.arange(9) % 2
    return X, y, ptr.astype(np.int64)


def value_of(loss, z, gap):
    return {
        "hinge": np.maximum(0, 1 - z),
        "squared-hinge": np.maximum(0, 1 - z) ** 2,
        "squared": (gap - z) ** 2,
        "logistic": np.logaddexp(0, -z),
    }[loss]


def all_pairs(y, ptr):
    return np.array(
        [
            (i, j)
            for q in range(len(ptr) - 1)
            for i in range(ptr[q], ptr[q + 1])
            for j in range(ptr[q], ptr[q + 1])
            if y[i] > y[j]
        ]
    )


@numba.njit
def call(function, z, gap):
    return function(z, gap)


@pytest.mark.parametrize("name", ["hinge", "squared-hinge", "squared", "logistic"])
def test_losses_and_slopes(name):
    for z in (-800.0, -3.0, -0.5, 0.0, 0.7, 1.3, 800.0):
        value, slope = call(pair_loss(name).pair_slope(), z, 2.0)
        assert value == pytest.approx(value_of(name, z, 2.0), rel=1e-12)
        h = 1e-6
        numeric = (value_of(name, z + h, 2.0) - value_of(name, z - h, 2.0)) / (2 * h)
        assert slope == pytest.approx(numeric, abs=1e-4 * max(1.0, abs(z)))


def twin(X, y, pairs, rule, weights=None, average=False, offset=None):
    """The textbook, dense and eager: no scale, nothing put off."""
    w, pending, past = np.zeros(X.shape[1]), 0.0, []
    alpha, slope = rule.l1 + rule.l2, pair_loss(rule.loss).pair_slope()  # in Python here
    for t, (a, b) in enumerate(pairs, start=1):
        p = X[a] - X[b]
        z = w @ p - (0.0 if offset is None else offset[a] - offset[b])
        c = 1.0 if weights is None else weights(a, b)
        if rule.passive_aggressive:
            if p.any():
                w = w + c * min(rule.largest, max(0.0, 1 - z) / (p @ p)) * p
        else:
            rate = [
                rule.eta0 / (1 + alpha * rule.eta0 * t),
                1 / (alpha * t) if alpha else 0.0,
                rule.eta0,
            ][rule.schedule]
            w = (1 - rate * rule.l2) * w - rate * c * slope(z, y[a] - y[b])[1] * p
            pending += rate * rule.l1
        if t % rule.every == 0:
            w = np.where(np.abs(w) <= rule.ceiling, soft(w, pending), w)
            pending = 0.0
        past.append(w)
    if average:  # since the last doubling but one
        n = len(past)
        begin = max(1, 2 ** (n.bit_length() - 2)) if n > 1 else 1
        return np.mean(past[begin - 1 :], axis=0)
    return np.where(np.abs(w) <= rule.ceiling, soft(w, pending), w)


def soft(w, amount):
    return np.sign(w) * np.maximum(np.abs(w) - amount, 0.0)


RULES = {
    "hinge": PairRule("hinge", eta0=0.3, l2=0.05),
    "pegasos": PairRule("hinge", schedule=1, l2=0.05),
    "squared": PairRule("squared", eta0=0.05, l2=0.3),
    "logistic": PairRule("logistic", schedule=2, eta0=0.5, l2=0.01),
    "no penalty": PairRule("squared-hinge", schedule=2, eta0=0.02),
    "passive-aggressive": PairRule("hinge", passive_aggressive=True, largest=0.2),
    "l1": PairRule("hinge", eta0=0.3, l1=0.1),
    "l1 now and then": PairRule("hinge", eta0=0.3, l1=0.1, every=7),
    "elastic net": PairRule("logistic", eta0=0.5, l1=0.05, l2=0.2, every=3),
    "ceiling": PairRule("logistic", schedule=2, eta0=0.5, l1=0.03, every=5, ceiling=0.3),
    "fast decay": PairRule("hinge", schedule=2, eta0=1.0, l2=0.9),  # to the least scale
}


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_every_step_is_the_textbooks(rule, sparse, dtype):
    X, y, ptr = problem(sparse=True)
    X = X.astype(dtype)
    block = make_pair_block(csr_array(X) if sparse else X, Labels(y, ptr))
    for average in (False, True):
        if average and rule.l1:
            continue
        for n_steps in (1, 2, 3, 50, 300):
            state = start_pairs(rule, X.shape[1], 3, average=average)
            descend(state, block, n_steps)
            pairs = np.stack(draw_pairs(block.index, n_steps, 3), axis=1)
            expected = twin(X.astype(float), y, pairs, rule, average=average)
            assert np.allclose(state.weights(), expected, rtol=1e-9, atol=1e-12)
            assert np.array_equal(state.weights() == 0, expected == 0)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_going_on_is_the_same_as_going_through(rule):
    X, y, ptr = problem()
    block = make_pair_block(X, Labels(y, ptr))
    through = start_pairs(rule, X.shape[1], 1, average=not rule.l1)
    descend(through, block, 500)
    parts = start_pairs(rule, X.shape[1], 1, average=not rule.l1)
    for n_steps in (1, 99, 130, 270):
        descend(parts, block, n_steps)
        parts.weights()  # reading changes nothing
    assert np.array_equal(through.weights(), parts.weights())


def test_weights_of_levels_gains_and_offsets():
    X, y, ptr = problem()
    rng = np.random.default_rng(2)
    gain, offset = rng.random(len(y)), rng.normal(size=len(y))
    table = rng.random((3, 3))
    labels = Labels(y, ptr, gain_weight=gain, offset=offset)
    block = make_pair_block(X, labels, importance=table)
    listed = all_pairs(y, ptr)
    mean = np.mean([table[int(y[i]), int(y[j])] for i, j in listed])

    def weight(a, b):
        return table[int(y[a]), int(y[b])] / mean * gain[a]

    rule = PairRule("squared-hinge", eta0=0.05, l2=0.1)
    state = start_pairs(rule, X.shape[1], 3)
    descend(state, block, 200)
    pairs = np.stack(draw_pairs(block.index, 200, 3), axis=1)
    expected = twin(X, y, pairs, rule, weight, offset=offset)
    assert np.allclose(state.weights(), expected, rtol=1e-9)


def objective(w, X, y, pairs, loss, l1, l2):
    p = X[pairs[:, 0]] - X[pairs[:, 1]]
    values = value_of(loss, p @ w, y[pairs[:, 0]] - y[pairs[:, 1]])
    return values.mean() + l1 * np.abs(w).sum() + 0.5 * l2 * (w @ w)


def optimum(X, y, pairs, loss, l1, l2):
    """The least value, over positive and negative parts, by a general method from many starts."""
    n = X.shape[1]

    def split(v):
        return objective(v[:n] - v[n:], X, y, pairs, loss, 0.0, l2) + l1 * v.sum()

    bounds = [(0, None)] * (2 * n)
    best = min(
        (
            minimize(split, start, bounds=bounds, method="L-BFGS-B", options={"maxiter": 5000})
            for start in np.random.default_rng(0).random((4, 2 * n))
        ),
        key=lambda found: found.fun,
    )
    polished = minimize(split, best.x, bounds=bounds, method="Powell", options={"xtol": 1e-9})
    return min(best.fun, polished.fun)


@pytest.mark.parametrize(
    ("loss", "schedule"),
    [("hinge", "pegasos"), ("hinge", "optimal"), ("squared", "optimal"), ("logistic", "optimal")],
)
def test_it_converges_to_the_batch_optimum(loss, schedule):
    X, y, ptr = problem(seed=4)
    pairs, l2 = all_pairs(y, ptr), 0.1
    block = make_pair_block(X, Labels(y, ptr))
    eta0 = 0.5 / largest_pair(block, block.index)
    rule = PairRule(loss, SCHEDULES.index(schedule), eta0, l2=l2)
    state = start_pairs(rule, X.shape[1], 0, average=True)
    least = optimum(X, y, pairs, loss, 0.0, l2)
    away = []
    for n_steps in (2_000, 2_000_000):
        descend(state, block, n_steps)
        away.append(objective(state.weights(), X, y, pairs, loss, 0.0, l2) - least)
    assert -1e-6 < away[1] < 2e-5
    assert away[1] < away[0]


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge"])
def test_truncated_it_converges_too_with_exact_zeros(loss):
    X, y, ptr = problem(seed=4, n_features=8)
    pairs, l1 = all_pairs(y, ptr), 0.1
    block = make_pair_block(X, Labels(y, ptr))
    rule = PairRule(loss, 0, eta0=0.1, l1=l1, every=200)
    state = start_pairs(rule, X.shape[1], 0)
    descend(state, block, 3_000_000)
    w = state.weights()
    least = optimum(X, y, pairs, loss, l1, 0.0)
    assert objective(w, X, y, pairs, loss, l1, 0.0) - least < 1e-3 * least
    assert 0 < np.count_nonzero(w) < 7


def test_pairs_in_parts_are_those_one_by_one():
    X, y, ptr = problem()
    index = make_pair_block(X, Labels(y, ptr)).index
    state, parts = new_state(8), np.empty((40, 2), dtype=np.int64)
    fill_pairs(index, state, parts[:17], 17)
    fill_pairs(index, state, parts[17:], 23)
    assert np.array_equal(parts, np.stack(draw_pairs(index, 40, 8), axis=1))


def test_more_features_can_come():
    X, y, ptr = problem()
    wide = np.hstack([X, np.random.default_rng(3).normal(size=(len(X), 2))])
    for rule in (RULES["hinge"], RULES["elastic net"]):
        state = start_pairs(rule, 5, 0, average=not rule.l1)
        descend(state, make_pair_block(X, Labels(y, ptr)), 100)
        before = state.weights()
        state.grow(7)
        assert np.array_equal(state.weights(), np.append(before, [0.0, 0.0]))
        descend(state, make_pair_block(wide, Labels(y, ptr)), 100)
        assert np.all(state.weights()[5:] != 0)


def test_divergence_is_told():
    X, y, ptr = problem()
    block = make_pair_block(1e3 * X, Labels(y, ptr))
    state = start_pairs(PairRule("squared", schedule=2, eta0=1.0), 5, 0)
    with pytest.raises(InputError, match="lower eta0"):
        descend(state, block, 1000)
