"""Passive-aggressive steps on triplets against the problem that each step solves."""

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.stats import chisquare

from leanrank.errors import InputError
from leanrank.solvers.sampling.pair_sampling import new_state
from papers.grangier2008 import fill_triplets, make_retrieval_block, take_steps


def draw_triplets(block, n, generator):
    """Draw rows (query, relevant picture, other picture) as the steps do."""
    out = np.zeros((n, 3), dtype=np.int64)
    queries, pairs = np.zeros(n, dtype=np.int64), np.zeros((n, 2), dtype=np.int64)
    fill_triplets(block.triplets, block.n_pictures, generator, queries, pairs, n)
    out[:, 0], out[:, 1:] = queries, pairs
    return out


def problem(seed, n_queries=5, n_terms=7, n_pictures=12, n_features=6):
    rng = np.random.default_rng(seed)
    Q = rng.normal(size=(n_queries, n_terms)) * (rng.random((n_queries, n_terms)) < 0.5)
    Q[:, 0] = 1.0
    P = rng.normal(size=(n_pictures, n_features)) * (rng.random((n_pictures, n_features)) < 0.6)
    relevance = rng.random((n_queries, n_pictures)) < 0.4
    relevance[:, 0], relevance[:, 1] = True, False
    return Q, P, relevance


def block_of(Q, P, relevance, sparse=False):
    return make_retrieval_block(
        csr_array(Q), csr_array(P) if sparse else P, csr_array(relevance.astype(float))
    )


def textbook(W, Q, P, triplets, C):
    """The same steps on whole matrices."""
    losses = []
    for q, better, worse in triplets:
        away = np.outer(Q[q], P[better] - P[worse])
        losses.append(max(0.0, 1.0 - np.sum(W * away)))
        if losses[-1] > 0 and np.sum(away**2) > 0:
            W = W + min(C, losses[-1] / np.sum(away**2)) * away
    return W, np.mean(losses)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [0.01, 0.5, 100.0])
def test_steps_are_those_of_whole_matrices(sparse, C):
    Q, P, relevance = problem(1)
    P[3] = P[4]  # two pictures alike: nothing can be learned from them
    block = block_of(Q, P, relevance, sparse)
    W = np.zeros((7, 6))
    loss, moved = take_steps(W, block, C, 500, new_state(3))
    triplets = draw_triplets(block, 500, new_state(3))
    expected, expected_loss = textbook(np.zeros((7, 6)), Q, P, triplets, C)
    np.testing.assert_allclose(W, expected, atol=1e-10)
    assert loss == pytest.approx(expected_loss)
    assert 0 < moved <= 500


@pytest.mark.parametrize("seed", range(6))
def test_a_step_is_the_minimiser_of_its_objective(seed):
    Q, P, relevance = problem(seed)
    block = block_of(Q, P, relevance)
    rng = np.random.default_rng(seed)
    C = [0.02, 0.1, 50.0][seed % 3]
    before = 0.1 * rng.normal(size=(7, 6))
    after = before.copy()
    take_steps(after, block, C, 1, new_state(seed))
    ((q, better, worse),) = draw_triplets(block, 1, new_state(seed))
    away = np.outer(Q[q], P[better] - P[worse])

    def objective(W):
        W = W.reshape(before.shape)
        return 0.5 * np.sum((W - before) ** 2) + C * max(0.0, 1.0 - np.sum(W * away))

    found = objective(after)
    assert found <= objective(before) + 1e-12
    for scale in (1e-3, 1e-1, 1.0):
        for _ in range(200):
            assert found <= objective(after + scale * rng.normal(size=after.shape)) + 1e-12
    # it is a line: the minimum over all matrices is that over multiples of the direction
    line = minimize(lambda t: objective(before + t[0] * away), [0.0], method="Nelder-Mead")
    assert found <= line.fun + 1e-8


def test_only_the_rows_of_the_querys_terms_move():
    Q, P, relevance = problem(2)
    Q[:, 5] = 0.0
    relevance[1:] = False  # one usable query
    W = np.zeros((7, 6))
    take_steps(W, block_of(Q, P, relevance), 1.0, 50, new_state(0))
    assert set(np.flatnonzero(W.any(axis=1))) == set(np.flatnonzero(Q[0]))


def test_triplets_are_drawn_evenly():
    Q, P, relevance = problem(3, n_queries=4, n_pictures=7)
    Q[2] = 0.0  # a query without terms
    relevance[3] = True  # and one to which all is relevant
    drawn = draw_triplets(block_of(Q, P, relevance), 60_000, new_state(1))
    expected = {}
    for q in (0, 1):
        good, bad = np.flatnonzero(relevance[q]), np.flatnonzero(~relevance[q])
        for a in good:
            for b in bad:
                expected[q, a, b] = 60_000 / (2 * len(good) * len(bad))
    keys, counts = np.unique(drawn, axis=0, return_counts=True)
    assert {tuple(key) for key in keys.tolist()} == set(expected)
    assert chisquare(counts, [expected[tuple(key)] for key in keys.tolist()]).pvalue > 1e-3


def test_nothing_to_learn_from():
    Q, P, relevance = problem(4)
    with pytest.raises(InputError, match="nothing to learn from"):
        block_of(Q, P, np.ones_like(relevance))
