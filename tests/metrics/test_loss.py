"""The measure ``loss`` against brute force, and where a choice can go by it."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.special import logsumexp

from leanrank import evaluate, make_ranking
from leanrank.rankers import DominationRanker, RankBoost
from leanrank.selection import Split, choose, cross_validate_path, fit_system, tune


def brute_force(scores, labels, ptr):
    """Return the loss of each query, with the best of all scales found by a general minimiser."""
    queries = [slice(a, b) for a, b in pairwise(ptr)]

    def losses(t):
        out = []
        for rows in queries:
            gains, u = 2.0 ** np.maximum(labels[rows], 0) - 1, t * scores[rows]
            if len(u) == 0 or np.ptp(gains) == 0:
                out.append(np.nan)
            else:
                out.append(logsumexp(u) - gains / gains.sum() @ u)
        return np.array(out)

    best = minimize_scalar(lambda t: np.nanmean(losses(t)), bounds=(0, 50), method="bounded")
    return losses(best.x)


@pytest.mark.parametrize("seed", range(6))
def test_brute_force(seed):
    rng = np.random.default_rng(seed)
    sizes = rng.integers(0, 8, 30)
    ptr = np.concatenate(([0], np.cumsum(sizes)))
    labels = rng.integers(-1, 4, ptr[-1]).astype(float)
    scores = labels * rng.choice([0.0, 0.3]) + rng.normal(size=len(labels)).round(1)
    found = evaluate(labels, scores, group=sizes, measures="loss").per_query["loss"]
    np.testing.assert_allclose(found, brute_force(scores, labels, ptr), rtol=1e-4, atol=1e-4)


def test_the_unit_of_scores_does_not_matter_and_lower_is_better():
    data = make_ranking(n_queries=20, random_state=0)
    good, bad = data.y + np.random.default_rng(0).normal(size=(2, len(data))) * [[1.0], [4.0]]
    loss = [evaluate(data, s, measures="loss")["loss"] for s in (good, 1e6 * good + 3, bad, -good)]
    assert loss[0] == pytest.approx(loss[1])
    assert loss[0] < loss[2] < loss[3]
    constant = evaluate(data, np.zeros(len(data)), measures="loss")["loss"]
    assert loss[3] == pytest.approx(constant)  # a scale below 0 is not allowed


def test_scores_that_separate_all_labels_have_a_finite_loss():
    data = make_ranking(n_queries=5, random_state=0)
    assert 0 <= evaluate(data, data.y, measures="loss")["loss"] < 3


def test_a_path_a_cross_validation_and_a_search_choose_by_it():
    train, vali = (make_ranking(n_queries=30, n_features=8, random_state=s) for s in (0, 1))
    path = DominationRanker().path(train, n_alphas=8, validation=vali, measures=["ndcg@10", "loss"])
    assert path.best("loss") == np.nanargmin(path.measures["loss"])
    found = cross_validate_path(DominationRanker(), train, n_alphas=8, measures=["loss"])
    worth = np.where(found.n_features.min(axis=0) > 0, found.means["loss"], np.inf)
    assert found.best() == np.argmin(worth)
    study = tune(train, vali, trials=2, systems=["domination"], measure="loss")
    assert study.chosen is choose(study.candidates, measure="loss")
    assert study.chosen.score("loss") == min(one.score("loss") for one in study.candidates)
    assert {"ndcg@10", "map"} <= set(study.chosen.means)  # reported beside it
    assert fit_system("rankrls", Split(train, vali, "loss")).n_features


def test_a_ranker_stops_early_by_it():
    train, vali = (make_ranking(n_queries=30, n_features=8, random_state=s) for s in (0, 1))
    ranker = RankBoost(n_rounds=20, patience=5, measure="loss").fit(train, validation=vali)
    losses = [entry["loss"] for entry in ranker.history_]
    assert ranker.n_iter_ == 1 + int(np.argmin(losses))
