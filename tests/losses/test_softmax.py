"""The softmax loss with gains as target, against brute force."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import logsumexp, softmax

from leanrank.data import RankingData
from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.losses.listnet import SoftmaxLoss
from leanrank.rankers import LinearRanker

PTR = np.array([0, 1, 5, 5, 9, 14])


def brute(y, u, ptr=PTR, weight=None):
    """Return the mean over informative queries of log Σ e^u − Σ p u, p the shares of the gains."""
    weight = np.ones(len(y)) if weight is None else weight
    losses = []
    for begin, end in pairwise(ptr):
        gain, m, s = 2.0 ** y[begin:end] - 1, weight[begin:end], u[begin:end]
        if len(np.unique(gain[m > 0])) < 2:
            continue
        p = m * gain / np.sum(m * gain)
        losses.append(logsumexp(s, b=m / min(1.0, m[m > 0].min())) - p @ s)
    return np.mean(losses)


@pytest.fixture
def made():
    rng = np.random.default_rng(0)
    y = rng.integers(0, 4, 14).astype(float)
    y[5:9] = 2.0  # equal gains: no information
    return y, rng.normal(size=14)


@pytest.mark.parametrize("scale", [1.0, 1e-3, 300.0])
def test_value_gradient_hessian_and_dual_are_those_of_brute_force(made, scale):
    y, u = made
    u = scale * u
    loss = SoftmaxLoss()
    plan = loss.prepare(Labels(y, PTR))
    g = np.zeros(14)
    value = loss.evaluate(plan, 0, 5, u, g)
    assert value == pytest.approx(brute(y, u), rel=1e-12)
    h = 1e-6 * scale
    for i in range(14):
        step = np.zeros(14)
        step[i] = h
        slope = (brute(y, u + step) - brute(y, u - step)) / (2 * h)
        assert g[i] == pytest.approx(slope, abs=1e-6)
    d, out = np.random.default_rng(1).normal(size=14), np.zeros(14)
    loss.product(plan, 0, 5, u, d, out)
    ahead, behind = np.zeros(14), np.zeros(14)
    loss.evaluate(plan, 0, 5, u + h * d, ahead)
    loss.evaluate(plan, 0, 5, u - h * d, behind)
    np.testing.assert_allclose(out, (ahead - behind) / (2 * h), atol=1e-6)
    dual = loss.dual(plan, 0, 5, u, 0.3)
    expected = 0.0
    informative = [(1, 5), (9, 14)]
    for begin, end in informative:
        gain = 2.0 ** y[begin:end] - 1
        q = 0.3 * softmax(u[begin:end]) + 0.7 * gain / gain.sum()
        expected -= np.sum(q[q > 0] * np.log(q[q > 0])) / len(informative)
    assert dual == pytest.approx(expected, rel=1e-10)


def test_a_weight_of_two_is_the_document_twice(made):
    y, u = made
    weight = np.ones(14)
    weight[[2, 10]] = 2.0
    loss, g = SoftmaxLoss(), np.zeros(16)
    once = loss.evaluate(loss.prepare(Labels(y, PTR, sample_weight=weight)), 0, 5, u, np.zeros(14))
    rows = np.sort(np.r_[np.arange(14), 2, 10])
    ptr = np.array([0, 1, 6, 6, 10, 16])
    twice = loss.evaluate(loss.prepare(Labels(y[rows], ptr)), 0, 5, u[rows], g)
    assert once == pytest.approx(twice, rel=1e-12)


def test_gains_are_powers_labels_or_a_table(made):
    y, _ = made
    values = [
        SoftmaxLoss(gain).prepare(Labels(labels, PTR)).target
        for gain, labels in (("exp2", y), ("linear", 2.0**y - 1), ([0, 1, 3, 7], y))
    ]
    np.testing.assert_allclose(values[1], values[0])
    np.testing.assert_allclose(values[2], values[0])
    weighted = SoftmaxLoss("linear").prepare(Labels(np.ones(14), PTR, gain_weight=2.0**y - 1))
    np.testing.assert_allclose(weighted.target, values[0])


def test_a_query_without_a_positive_gain_carries_no_information():
    y = np.array([0.0, 0.0, 1.0, 0.0])
    plan = SoftmaxLoss("linear").prepare(Labels(y, np.array([0, 2, 4])))
    assert plan.scale.tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("gain", "label", "named"),
    [
        ("linear", -1.0, "-1"),
        ("exp2", 2000.0, "linear"),
        ([0.0, np.inf], 1.0, "inf"),
        ([0.0, np.nan], 1.0, "nan"),
        ([0.0], 1.0, "label 1"),
        ("exp3", 1.0, "exp3"),
    ],
)
def test_bad_gains_are_named(gain, label, named):
    with pytest.raises(InputError, match=named):
        SoftmaxLoss(gain).prepare(Labels(np.array([0.0, label]), np.array([0, 2])))


def test_newton_reaches_the_optimum_of_another_solver():
    rng = np.random.default_rng(3)
    X, y = rng.normal(size=(120, 3)), rng.integers(0, 3, 120).astype(float)
    qid = np.repeat(np.arange(12), 10)
    data = RankingData(X, y, qid)
    ranker = LinearRanker("softmax", "l2", alpha=0.05, tol=1e-13).fit(data)

    def objective(w):
        return brute(y, X @ w, data.query_ptr) + 0.025 * w @ w

    best = minimize(objective, np.zeros(3), method="Nelder-Mead", tol=1e-12)
    np.testing.assert_allclose(ranker.coef_, best.x, atol=1e-5)
    assert ranker.objective_ == pytest.approx(best.fun, rel=1e-9)


def test_a_query_may_count_by_its_gain(made):
    y, u = made
    losses = {}
    for emphasis in (0.0, 0.5, 1.0):
        loss = SoftmaxLoss(emphasis=emphasis)
        losses[emphasis] = loss.evaluate(loss.prepare(Labels(y, PTR)), 0, 5, u, np.zeros(14))
        each = np.array([brute(y[a:b], u[a:b], np.array([0, b - a])) for a, b in ((1, 5), (9, 14))])
        total = np.array([(2.0 ** y[a:b] - 1).sum() for a, b in ((1, 5), (9, 14))])
        weight = total**emphasis
        assert losses[emphasis] == pytest.approx(each @ weight / weight.sum(), rel=1e-12)
    assert losses[0.0] != losses[1.0]
