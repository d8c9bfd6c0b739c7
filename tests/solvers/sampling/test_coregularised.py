"""Views that agree: the step is minus the gradient of Eq. 1, and the steps reach its optimum."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array

from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.solvers.sampling.coregularised import (
    ViewedBlock,
    Views,
    descend_views,
    random_views,
    start_views,
)
from leanrank.solvers.sampling.pair_descent import PairRule, descend, make_pair_block, start_pairs
from leanrank.solvers.sampling.pair_sampling import document_keys, fill_pairs, index_all_pairs
from tests.solvers.sampling.test_pair_descent import all_pairs, problem, value_of


def blocks(X, y, ptr, hidden_labels):
    """Labelled pairs of documents with labels, unlabelled ones of the others."""
    block = make_pair_block(X, Labels(y, ptr))
    index = index_all_pairs(ptr, among=hidden_labels, keys=document_keys(X))
    return ViewedBlock(**vars(block), hidden=index)


def partly_labelled(sparse=False):
    X, y, ptr = problem(n_features=6, seed=4)
    hidden = np.arange(len(y)) % 5 < 2
    y = np.where(hidden, np.nan, y)
    return (csr_array(X) if sparse else X), X, y, ptr, hidden


def hidden_pairs(hidden, ptr):
    return np.array(
        [
            (i, j)
            for q in range(len(ptr) - 1)
            for i in range(ptr[q], ptr[q + 1])
            for j in range(i)
            if j >= ptr[q] and hidden[i] and hidden[j]
        ]
    )


def equation_1(W, member, p, gap, loss, hidden_p, alpha, mu):
    """J of the paper for given labelled and unlabelled pairs, both sums plain."""
    W = W * member
    value = 0.0
    for v in range(len(W)):
        value += value_of(loss, p @ W[v], gap).sum() + 0.5 * alpha[v] * (W[v] @ W[v])
        for u in range(len(W)):
            if u != v:
                value += mu * np.sum((hidden_p @ W[v] - hidden_p @ W[u]) ** 2)
    return value


def differences(X, pairs):
    return X[pairs[:, 0]] - X[pairs[:, 1]]


MEMBERS = {
    "two": random_views(6, 2, seed=1),
    "three": random_views(6, 3, seed=2),
    "overlapping": np.array([[1.0, 1, 1, 0, 0, 0], [0, 0, 1, 1, 1, 0], [1, 0, 0, 0, 0, 0]]),
}


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared", "logistic"])
@pytest.mark.parametrize("member", MEMBERS.values(), ids=MEMBERS)
def test_a_step_is_minus_the_gradient_of_equation_1(member, loss, sparse):
    given, X, y, ptr, hidden = partly_labelled(sparse)
    block = blocks(given, y, ptr, hidden)
    n_views = len(member)
    alpha, eta0 = np.linspace(0.1, 0.3, n_views), np.linspace(1e-3, 2e-3, n_views)
    views = Views(member, alpha, eta0, mu=0.2, n_labeled=3, n_unlabeled=4)
    rule = PairRule(loss, schedule=2)  # constant rates: the step is the gradient
    state = start_views(rule, views, 6, 5)
    descend_views(state, block, 40)
    before = state.view_weights()
    labelled, unlabelled = np.empty((3, 2), np.int64), np.empty((4, 2), np.int64)
    fill_pairs(block.index, state.generator.copy(), labelled, 3)
    fill_pairs(block.hidden, state.hidden_generator.copy(), unlabelled, 4)
    p, gap = differences(X, labelled), y[labelled[:, 0]] - y[labelled[:, 1]]
    hidden_p = differences(X, unlabelled)

    def j(W):
        return equation_1(W, member, p, gap, loss, hidden_p, alpha, 0.2)

    descend_views(state, block, 1)
    step = (state.view_weights() - before) / eta0[:, None]
    h = 1e-5
    for v, f in np.argwhere(member):
        move = np.zeros_like(before)
        move[v, f] = h
        numeric = (j(before + move) - j(before - move)) / (2 * h)
        assert step[v, f] == pytest.approx(-numeric, rel=1e-5, abs=1e-6)
    assert np.all(step[member == 0] == 0)


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_one_view_is_spd(loss, average):
    _, X, y, ptr, hidden = partly_labelled()
    block = blocks(X, y, ptr, hidden)
    rule = PairRule(loss, eta0=0.05, l2=0.1)
    views = Views(np.ones((1, 6)), np.array([0.1]), np.array([0.05]), 7.0, 1, 3)
    one = start_views(rule, views, 6, 5, average=average)
    descend_views(one, block, 500)
    spd = start_pairs(rule, 6, 5, average=average)
    descend(spd, block, 500)
    assert np.allclose(one.weights(), spd.weights(), rtol=1e-12, atol=1e-15)


def test_without_mu_each_view_is_spd_on_its_own_features():
    _, X, y, ptr, hidden = partly_labelled()
    block, member = blocks(X, y, ptr, hidden), MEMBERS["two"]
    rule = PairRule("hinge", eta0=0.05, l2=0.1)
    views = Views(member, np.full(2, 0.1), np.full(2, 0.05), 0.0, 1, 10)
    state = start_views(rule, views, 6, 5)
    descend_views(state, block, 500)
    alone = []
    for row in member:
        # same documents, same draws: only what a view does not see is blotted out
        rows = block.rows._replace(dense=block.rows.dense * row)
        spd = start_pairs(rule, 6, 5)
        descend(spd, ViewedBlock(**{**vars(block), "rows": rows}), 500)
        alone.append(spd.weights())
    assert np.allclose(state.view_weights(), alone, rtol=1e-12, atol=1e-15)
    assert np.allclose(state.weights(), np.mean(alone, axis=0), rtol=1e-12)


@pytest.mark.parametrize("loss", ["hinge", "squared"])
def test_it_converges_to_the_optimum_of_equation_1(loss):
    _, X, y, ptr, hidden = partly_labelled()
    block, member = blocks(X, y, ptr, hidden), MEMBERS["two"]
    k, n_hidden, mu, alpha = 2, 3, 0.1, np.array([0.2, 0.4])
    views = Views(member, alpha, np.full(2, 0.02), mu, k, n_hidden)
    state = start_views(PairRule(loss), views, 6, 0, average=True)
    descend_views(state, block, 500_000)
    pairs, unlabelled = all_pairs(y, ptr), hidden_pairs(hidden, ptr)
    p, gap = differences(X, pairs), y[pairs[:, 0]] - y[pairs[:, 1]]
    hidden_p = differences(X, unlabelled)

    def j(flat, mu=mu):
        W = flat.reshape(2, 6) * member
        value = sum(
            k * value_of(loss, p @ W[v], gap).mean() + 0.5 * alpha[v] * (W[v] @ W[v])
            for v in range(2)
        )
        return value + mu * n_hidden * 2 * np.mean((hidden_p @ W[0] - hidden_p @ W[1]) ** 2)

    def least(mu):
        starts = np.random.default_rng(0).normal(size=(2, 12))
        found = [minimize(j, s, (mu,), method="Powell", options={"xtol": 1e-8}) for s in starts]
        return min(found, key=lambda f: f.fun)

    best = least(mu)
    assert j(state.view_weights().ravel()) - best.fun < 3e-4 * best.fun
    # and the agreement matters: without it another point is the best
    assert j(least(0.0).x) - best.fun > 3e-3 * best.fun


def test_random_views_are_disjoint_and_even_and_stay():
    for n_features, n_views in ((7, 2), (10, 3), (2, 5)):
        member = random_views(n_features, n_views, seed=3)
        assert np.all(member.sum(axis=0) == 1)
        sizes = member.sum(axis=1)
        assert sizes.max() - sizes.min() <= 1
        assert np.array_equal(random_views(n_features + 4, n_views, 3)[:, :n_features], member)
    assert not np.array_equal(random_views(40, 2, 0), random_views(40, 2, 1))


def test_views_do_not_grow():
    views = Views(np.ones((1, 6)), np.ones(1), np.ones(1), 0.0, 1, 0)
    with pytest.raises(InputError, match="fit again"):
        start_views(PairRule("hinge"), views, 6, 0).grow(8)
