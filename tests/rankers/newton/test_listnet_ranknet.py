"""ListNet and RankNet as people meet them: the batteries, certificates, options, real data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.linear_model import LogisticRegression
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import load_letor, make_ranking
from leanrank.checks import check_ranker
from leanrank.errors import InputError
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.rankers import ListNet, RankNet
from tests.losses.test_listnet import softmax


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=25, docs_per_query=(1, 14), n_features=8, n_informative=3, random_state=3
    )


@pytest.mark.parametrize(
    "ranker",
    [
        # the battery compares weights, whose error is about the root of the gap
        ListNet(0.01, tol=1e-10),
        ListNet(0.05, 0.5, target="gain", tol=1e-10),
        ListNet(0.05, 0.0, tol=1e-10),
        RankNet(0.02, tol=1e-10),
        RankNet(0.02, 1.0, tol=1e-10),
        RankNet(0.02, 0.5, margin="scaled", importance="ndcg", tol=1e-10),
    ],
    ids=str,
)
def test_the_battery_of_rankers(ranker):
    check_ranker(ranker)


@parametrize_with_checks([ListNet(), ListNet(0.1, 0.5), RankNet(), RankNet(0.1, 1.0)])
@pytest.mark.filterwarnings("ignore:.*model without features")
def test_the_battery_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message=".*stopped after")
        check(estimator)


def listnet_gradient(data, w, *, gain):
    """The mean over informative queries of the cross entropy, and its gradient in the weights."""
    value, gradient, n = 0.0, np.zeros(len(w)), 0
    for q in range(data.n_queries):
        rows = slice(data.query_ptr[q], data.query_ptr[q + 1])
        X, y = data.X[rows], data.y[rows]
        if len(np.unique(y)) < 2:
            continue
        n += 1
        t, u = (2.0**y - 1 if gain else y), X @ w
        wanted, p = softmax(t), softmax(u)
        value -= wanted @ np.log(p)
        gradient += X.T @ (p - wanted)
    return value / n, gradient / n


@pytest.mark.parametrize("target", ["label", "gain"])
@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
def test_listnet_reaches_a_certified_optimum(data, l1_ratio, target):
    ranker = ListNet(0.02, l1_ratio, target=target, tol=1e-9)
    ranker.fit(data.X, data.y, qid=data.qid)
    assert ranker.dual_gap_ <= 1e-9
    penalty = ElasticNet.build(0.02, l1_ratio, 8)
    value, gradient = listnet_gradient(data, ranker.coef_, gain=target == "gain")
    assert ranker.objective_ == pytest.approx(value + penalty.value(ranker.coef_), rel=1e-9)
    assert penalty.residual(ranker.coef_, gradient).max() <= 1e-5


def differences(data):
    """List the differences of all comparable pairs, and the share of each in the loss."""
    rows, weight = [], []
    for q in range(data.n_queries):
        begin, end = data.query_ptr[q], data.query_ptr[q + 1]
        found = [
            data.X[i] - data.X[j]
            for i in range(begin, end)
            for j in range(begin, end)
            if data.y[i] > data.y[j]
        ]
        rows += found
        weight += [1.0 / max(1, len(found))] * len(found)
    return np.array(rows), np.array(weight) / sum(weight)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.4, 1.0])
def test_ranknet_reaches_a_certified_optimum(data, l1_ratio):
    ranker = RankNet(0.02, l1_ratio, tol=1e-9).fit(data.X, data.y, qid=data.qid)
    assert ranker.dual_gap_ <= 1e-9
    penalty = ElasticNet.build(0.02, l1_ratio, 8)
    D, weight = differences(data)
    z = D @ ranker.coef_
    value = weight @ np.log1p(np.exp(-z))
    gradient = -D.T @ (weight / (1 + np.exp(z)))
    assert ranker.objective_ == pytest.approx(value + penalty.value(ranker.coef_), rel=1e-9)
    assert penalty.residual(ranker.coef_, gradient).max() <= 1e-5


def test_ranknet_is_logistic_regression_on_explicit_differences(data):
    D, weight = differences(data)
    ranker = RankNet(0.05, tol=1e-10).fit(data.X, data.y, qid=data.qid)
    # both signs of every pair: logistic regression wants two classes
    peer = LogisticRegression(C=1 / 0.05, fit_intercept=False, tol=1e-10, max_iter=1000).fit(
        np.vstack([D, -D]), np.repeat([1, 0], len(D)), np.tile(weight / 2, 2)
    )
    np.testing.assert_allclose(ranker.coef_, peer.coef_[0], rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("ranker", [ListNet(0.01), ListNet(0.02, 0.5), RankNet(0.02, 1.0)])
def test_sparse_and_dense_paths_agree(data, ranker):
    ranker.set_params(tol=1e-9)
    dense = ranker.path(data.X, data.y, qid=data.qid, n_alphas=5, alpha_min_ratio=0.05)
    sparse = ranker.path(csr_matrix(data.X), data.y, qid=data.qid, n_alphas=5, alpha_min_ratio=0.05)
    np.testing.assert_allclose(sparse.coefs, dense.coefs, atol=1e-4)
    assert dense.dual_gaps.max() <= 1e-9
    assert dense.n_selected[0] == 0
    assert dense.n_selected[-1] > 0


def test_ranknet_learns_from_preferences_what_it_learns_from_labels(data):
    ptr, y = data.query_ptr, data.y
    pairs = [
        (i, j)
        for q in range(data.n_queries)
        for i in range(ptr[q], ptr[q + 1])
        for j in range(ptr[q], ptr[q + 1])
        if y[i] > y[j]
    ]
    winner, loser = np.array(pairs).T
    from_labels = RankNet(0.02, tol=1e-10).fit(data.X, y, qid=data.qid)
    from_pairs = RankNet(0.02, tol=1e-10).fit(
        data.X, qid=data.qid, preferences=(winner, loser, np.ones(len(pairs)))
    )
    np.testing.assert_allclose(from_pairs.coef_, from_labels.coef_, atol=1e-6)
    with pytest.raises(InputError, match="preferences"):
        ListNet().fit(data.X, qid=data.qid, preferences=(winner, loser))


def test_a_scaled_margin_is_an_offset(data):
    scaled = RankNet(0.02, margin="scaled", margin_scale=0.7).fit(data.X, data.y, qid=data.qid)
    moved = RankNet(0.02).fit(data.X, data.y, qid=data.qid, offset=0.7 * data.y)
    assert np.array_equal(scaled.coef_, moved.coef_)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (ListNet(target="gainz"), "target='gainz'"),
        (RankNet(margin="wide"), "margin='wide'"),
        (RankNet(importance="map"), "importance='map'"),
    ],
)
def test_bad_parameters_are_named(data, ranker, message):
    with pytest.raises(InputError, match=message):
        ranker.fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("ranker", [ListNet(1e-3, target="gain"), RankNet(1e-3, 1.0)], ids=str)
def test_real_data(data_dir, ranker):
    train, test = (load_letor(data_dir / f"MQ2008/Fold1/{part}.txt") for part in ("train", "test"))
    ranker.fit(train)
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.score(test) > 0.4
