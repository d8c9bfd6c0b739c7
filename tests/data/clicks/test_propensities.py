"""Propensities from documents that moved, and clicks weighed by them."""

import numpy as np
import pytest

from leanrank.data import (
    click_weights,
    estimate_propensities,
    make_clicks,
    make_ranking,
    read_clicks,
)
from leanrank.errors import InputError
from leanrank.rankers import DominationRanker

HYPERBOLA = 1.0 / np.arange(1, 11)


@pytest.fixture(scope="module")
def documents():
    return make_ranking(n_queries=60, docs_per_query=10, n_levels=2, random_state=3)


@pytest.mark.parametrize(("swaps", "eta"), [("adjacent", 1.0), ("shuffle", 0.0)])
def test_swaps_give_the_propensities(documents, swaps, eta):
    clicks = make_clicks(documents, 150_000, eta=eta, swaps=swaps, random_state=1)
    truth = np.arange(1, 11) ** -eta
    assert np.allclose(estimate_propensities(clicks), truth, rtol=0.12)


def by_hand(clicks, k, other):
    """Mantel and Haenszel's ratio, document by document."""
    up = down = 0.0
    for row in range(len(clicks.data)):
        mine = clicks.row == row
        here, there = mine & (clicks.position == k), mine & (clicks.position == other)
        n, m = here.sum(), there.sum()
        if n and m:
            up += clicks.clicked[here].sum() * m / (n + m)
            down += clicks.clicked[there].sum() * n / (n + m)
    return up / down


def test_the_estimate_is_that_of_mantel_and_haenszel(documents):
    clicks = make_clicks(documents.queries[:6], 3000, eta=0.7, swaps="shuffle", list_length=4)
    ratios = [1, *(by_hand(clicks, k, k - 1) for k in (2, 3, 4))]
    assert np.allclose(estimate_propensities(clicks), np.cumprod(ratios))


def test_sparse_counts_equal_dense_ones(documents):
    clicks = make_clicks(documents, 200, swaps="shuffle")
    from leanrank.data import clicks as propensities

    dense = propensities._counts(clicks, 10)
    far = propensities._counts(clicks, 10_000)  # so many cells that they are sorted instead
    for one, other in zip(dense, far, strict=True):
        assert np.array_equal(one, other)


def test_weights_by_hand():
    log = {
        "session": [1, 1, 2, 2, 3, 3],
        "query": ["q"] * 6,
        "document": list("abbaab"),
        "position": [1, 2, 1, 2, 1, 2],
        "clicked": [1, 0, 0, 1, 0, 1],
    }
    features = {"query": ["q"] * 2, "document": ["a", "b"], "f": [0.0, 1.0]}
    clicks = read_clicks(log, features)
    weights = click_weights(clicks, [1.0, 0.25])
    assert np.allclose(weights.y, [2 / (1 + 0.25 + 1), 1 / (0.25 + 1 + 0.25)])
    assert np.allclose(weights.gain_weight, [(1 + 4) / 3, 4 / 3])
    same = click_weights(clicks, {1: 4.0, 2: 1.0, 99: 0.1})  # a common factor does not matter
    assert np.allclose(same.gain_weight, weights.gain_weight)
    clipped = click_weights(clicks, [1.0, 0.25], clip=0.5)
    assert np.allclose(clipped.gain_weight, [(1 + 2) / 3, 2 / 3])


def test_inverse_propensity_is_unbiased(documents):
    """Whatever ranking was shown, weights estimate attraction."""
    clicks = make_clicks(
        documents.queries[:30], 200_000, noise=0.2, swaps="shuffle", random_state=5
    )
    attraction = 0.2 + 0.8 * documents.queries[:30].y
    assert np.abs(click_weights(clicks, HYPERBOLA).gain_weight - attraction).max() < 0.1
    assert np.abs(click_weights(clicks, HYPERBOLA).y - attraction).max() < 0.1


def test_weighing_out_the_position_ranks_better_than_clicks_at_face_value():
    truth = make_ranking(
        n_queries=150, docs_per_query=10, n_features=8, n_levels=2, label_noise=0.3, random_state=0
    )
    shown = -truth.X[:, 0]  # a poor ranking, on a feature that says little
    clicks = make_clicks(truth, 60_000, eta=1.5, scores=shown, swaps="adjacent", random_state=0)
    weighed = click_weights(clicks, estimate_propensities(clicks))
    naive = click_weights(clicks, np.ones(10))
    scores = []
    for weights in (weighed, naive):
        ranker = DominationRanker(alpha=1e-3).fit(
            clicks.X, weights.y, qid=clicks.qid, gain_weight=weights.gain_weight
        )
        scores.append(ranker.score(truth.X, truth.y, qid=truth.qid))
    best = DominationRanker(alpha=1e-3).fit(truth.X, truth.y, qid=truth.qid)
    assert scores[0] > scores[1] + 0.02
    assert scores[0] > best.score(truth.X, truth.y, qid=truth.qid) - 0.02


@pytest.mark.parametrize(
    ("propensities", "clip", "words"),
    [
        ([1.0, 0.5], 0.01, "nan at position 3"),
        ({1: 1.0}, 0.01, "nan at position 2"),
        (np.r_[1.0, 0.0, HYPERBOLA], 0.01, "0.0 at position 2"),
        (np.ones((2, 2)), 0.01, "2 dimensions"),
        (HYPERBOLA, 0.0, "clip=0.0"),
    ],
)
def test_wrong_propensities(documents, propensities, clip, words):
    clicks = make_clicks(documents, 50)
    with pytest.raises(InputError, match=words):
        click_weights(clicks, propensities, clip=clip)


def test_nothing_moved(documents):
    clicks = make_clicks(documents, 500)
    with pytest.raises(InputError, match="position 2 cannot be estimated"):
        estimate_propensities(clicks)
