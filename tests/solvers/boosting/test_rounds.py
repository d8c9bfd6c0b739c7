"""Boosting against RankBoost written out over explicit pairs."""

import numpy as np
import pytest

from leanrank.execution import Executor
from leanrank.losses.base import Labels
from leanrank.losses.exponential import ExponentialLoss
from leanrank.solvers.boosting.rounds import boost, boosting_weight
from leanrank.solvers.boosting.threshold_columns import ThresholdColumns, cut_values


def problem(seed, *, levels=3, missing=0.0, n_queries=6):
    rng = np.random.default_rng(seed)
    sizes = [1, 2, *rng.integers(3, 9, size=n_queries - 2)]
    ptr = np.concatenate(([0], np.cumsum(sizes)))
    n = int(ptr[-1])
    X = rng.integers(0, 4, size=(n, 3)).astype(float)
    X[:, 0] = rng.normal(size=n)
    X[rng.random(X.shape) < missing] = np.nan
    y = rng.integers(0, levels, size=n).astype(float)
    y[ptr[2] : ptr[3]] = 1.0  # a query of one level
    y[ptr[3]], y[ptr[3] + 1] = 0.0, 1.0  # and one that has two
    return X, y, ptr


def explicit_pairs(y, ptr, normalize):
    winner, loser, weight = [], [], []
    for q in range(len(ptr) - 1):
        rows = range(ptr[q], ptr[q + 1])
        mine = [(i, j) for i in rows for j in rows if y[i] > y[j]]
        winner += [i for i, _ in mine]
        loser += [j for _, j in mine]
        weight += [1.0 / len(mine) if normalize == "query" else 1.0 for _ in mine]
    weight = np.array(weight)
    return np.array(winner), np.array(loser), weight / weight.sum()


def every_weak_ranker(X):
    for column in X.T:
        absent = np.isnan(column)
        for low in [-np.inf, *np.unique(column[~absent])]:
            for missing in (0, 1):
                yield np.where(absent, missing, np.nan_to_num(column) > low).astype(float)


def run(X, y, ptr, n_rounds, normalize="query", **labels):
    loss = ExponentialLoss()
    plan = loss.prepare(Labels(y=y, query_ptr=ptr, normalize=normalize, **labels))
    columns = ThresholdColumns(X, None, Executor())
    return list(boost(columns, loss, plan, Executor(), n_rounds))


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("normalize", ["query", "none"])
def test_rounds_are_those_of_explicit_pairs(seed, normalize):
    """RankBoost as it is written: a distribution over pairs, and every weak ranker tried."""
    X, y, ptr = problem(seed, levels=2 + seed % 4, missing=0.2 * (seed % 3))
    winner, loser, D = explicit_pairs(y, ptr, normalize)
    rounds = run(X, y, ptr, 10, normalize)
    assert rounds
    for cut, value, _ in rounds:
        h = cut_values(cut, X[:, cut.feature]).astype(float)
        r = float(D @ (h[winner] - h[loser]))
        best = max(abs(float(D @ (w[winner] - w[loser]))) for w in every_weak_ranker(X))
        assert cut.agreement == pytest.approx(r, abs=1e-9)
        assert abs(r) == pytest.approx(best, abs=1e-9)
        if abs(r) < 1 - 1e-9:
            assert value == pytest.approx(0.5 * np.log((1 + r) / (1 - r)), rel=1e-6)
        D = D * np.exp(-value * (h[winner] - h[loser]))
        D = D / D.sum()
    if len(rounds) < 10:  # nothing was left to learn
        best = max(abs(float(D @ (w[winner] - w[loser]))) for w in every_weak_ranker(X))
        assert best < 1e-9 or best > 1 - 1e-8


@pytest.mark.parametrize("seed", range(5))
def test_every_round_lowers_the_loss_as_promised(seed):
    X, y, ptr = problem(seed, n_queries=20, missing=0.1)
    before = 1.0
    for found in run(X, y, ptr, 40):
        bound = np.sqrt(1 - found.weak.agreement**2)
        assert found.result <= before * bound * (1 + 1e-9) + 1e-12
        before = found.result


def test_the_loss_is_that_of_the_sum():
    X, y, ptr = problem(3, n_queries=15)
    rounds = run(X, y, ptr, 10)
    winner, loser, D = explicit_pairs(y, ptr, "query")
    scores = sum(r.value * cut_values(r.weak, X[:, r.weak.feature]) for r in rounds)
    assert rounds[-1].result == pytest.approx(D @ np.exp(-(scores[winner] - scores[loser])))


def test_it_ends_when_one_cut_orders_every_pair():
    X = np.array([[0.0], [1.0], [0.0], [5.0]])
    rounds = run(X, np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 2, 4]), 50)
    assert len(rounds) == 1
    assert rounds[0].value == pytest.approx(10.7, abs=0.1)
    assert np.isfinite(rounds[0].result)


def test_it_ends_when_nothing_agrees():
    X = np.array([[1.0], [1.0], [2.0], [2.0]])  # constant within the queries
    assert run(X, np.array([0.0, 1.0, 0.0, 1.0]), np.array([0, 2, 4]), 50) == []


def test_an_offset_is_where_the_scores_start():
    X, y, ptr = problem(4, n_queries=12)
    plain = run(X, y, ptr, 5)
    first = plain[0]
    started = -first.value * cut_values(first.weak, X[:, first.weak.feature])
    rest = run(X, y, ptr, 4, offset=started)
    for mine, theirs in zip(rest, plain[1:], strict=True):
        assert mine.weak[1:] == theirs.weak[1:]
        assert mine.value == pytest.approx(theirs.value)


def test_weights():
    assert boosting_weight(0.0) == 0.0
    assert boosting_weight(0.6) == pytest.approx(0.5 * np.log(1.6 / 0.4))
    assert boosting_weight(-0.6) == -boosting_weight(0.6)
    assert np.isfinite(boosting_weight(1.0))
