"""The batteries of leanrank and of scikit-learn over boosted and least-squares rankers."""

import contextlib
from unittest import SkipTest

import pytest
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from leanrank.checks import ranker_checks
from leanrank.rankers import AdaRank, GreedyRankRLS, KernelRankRLS, RankBoost, RankRLSCV

OURS = [
    AdaRank(),
    AdaRank(60, measure="ndcg@5", signs=0, repeats="never"),
    RankBoost(40),
    RankBoost(15, n_thresholds=5, normalize="none", importance="ndcg"),
    GreedyRankRLS(),
    GreedyRankRLS(4),
    GreedyRankRLS(3, memory="low"),
    GreedyRankRLS(rule="1se"),
    RankRLSCV(alphas=[1e-3, 0.1]),
]
SCIKIT_LEARN = [
    AdaRank(10),
    AdaRank(5, signs=0),
    RankBoost(10),
    RankBoost(10, n_thresholds=3),
    GreedyRankRLS(),
    GreedyRankRLS(1),
    RankRLSCV(),
    KernelRankRLS(kernel="linear"),
    KernelRankRLS(kernel="rbf"),
]


@pytest.mark.parametrize("ranker", OURS, ids=str)
def test_the_battery(ranker):
    for check in ranker_checks():
        check(clone(ranker))


@pytest.mark.filterwarnings("ignore::leanrank.errors.DataWarning")  # these data have one query
@pytest.mark.parametrize("ranker", SCIKIT_LEARN, ids=str)
def test_scikit_learns_battery(ranker):
    for estimator, check in estimator_checks_generator(ranker):
        with contextlib.suppress(SkipTest):
            check(estimator)
