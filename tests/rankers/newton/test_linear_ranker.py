"""Any point of the grid: names and objects, the named systems as special cases, refusals."""

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import LinearRanker, make_ranking
from leanrank.checks import check_ranker
from leanrank.errors import InputError
from leanrank.losses.base import Loss
from leanrank.losses.domination import DominationLoss
from leanrank.losses.logistic import LogisticLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.rankers import DominationRanker, ListNet, RankNet, RankSVM
from leanrank.solvers.newton.solver import Newton


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=30, docs_per_query=8, n_features=12, n_informative=3, random_state=3
    )


@pytest.mark.parametrize(
    "ranker",
    [
        LinearRanker(tol=1e-9),
        LinearRanker("logistic", "groups", groups=[0, 0, 1, 1, 2, 2], alpha=0.02, tol=1e-10),
    ],
    ids=["default", "groups"],
)
def test_the_battery_of_rankers(ranker):
    if ranker.groups is None:
        check_ranker(ranker)
        return
    from leanrank.checks import ranker_checks

    for check in ranker_checks():
        if "constant_within" not in check.__name__:  # it adds a feature that is in no group
            check(ranker)


@parametrize_with_checks([LinearRanker()])
def test_scikit_learn_compatibility(estimator, check):
    check(estimator)


@pytest.mark.parametrize(
    ("named", "parts"),
    [
        (DominationRanker(0.02), {"alpha": 0.02}),
        (RankSVM(0.02), {"loss": "squared-hinge", "penalty": "l2", "alpha": 0.02}),
        (RankNet(0.02), {"loss": LogisticLoss(), "penalty": "l2", "alpha": 0.02}),
        (RankNet(0.02, 0.5), {"loss": "logistic", "penalty": "elastic-net", "alpha": 0.02}),
        (
            ListNet(0.002, 0.7),
            {"loss": "listnet", "penalty": "elastic-net", "l1_ratio": 0.7, "alpha": 0.002},
        ),
        (
            RankSVM(0.02, loss="hinge", tol=1e-3),
            {
                "loss": "hinge",
                "penalty": "l2",
                "alpha": 0.02,
                "tol": 1e-3,
                "solver": "cutting-plane",
            },
        ),
    ],
)
def test_named_systems_are_points_of_the_grid(data, named, parts):
    one, other = named.fit(data), LinearRanker(**parts).fit(data)
    assert other.objective_ == pytest.approx(one.objective_, rel=2e-3 if "tol" in parts else 1e-6)
    assert other.alpha_max(data) == pytest.approx(one.alpha_max(data))


def test_objects_of_your_own(data):
    class Doubled(DominationLoss):
        name = "doubled"

        def evaluate(self, plan, r0, r1, u, g):
            value = 2.0 * super().evaluate(plan, r0, r1, u, g)
            g[plan.span(r0, r1)] *= 2.0
            return value

        def dual(self, plan, r0, r1, u, a):
            return 2.0 * super().dual(plan, r0, r1, u, a)

        curvature = Loss.curvature  # not declared any more: Newton goes by products
        product = Loss.product

    plain = LinearRanker(alpha=0.02, tol=1e-9).fit(data)
    twice = LinearRanker(Doubled(), ElasticNet.build(1.0, 1.0, 12), Newton(steps=3), alpha=0.04)
    twice.set_params(tol=1e-8).fit(data)
    assert twice.dual_gap_ <= 1e-8
    assert twice.objective_ == pytest.approx(2.0 * plain.objective_, rel=1e-7)
    np.testing.assert_allclose(twice.coef_, plain.coef_, atol=1e-3)


def test_a_path_of_groups(data):
    groups = np.arange(12) // 3
    ranker = LinearRanker(penalty="groups", groups=groups, group_ratio=1.0)
    path = ranker.path(data, n_alphas=8)
    assert path.dual_gaps.max() <= 1e-6
    assert not path.coefs[0].any()
    for coef in path.coefs:  # with norms only, a group is in or out
        per_group = [np.count_nonzero(coef[groups == g]) for g in range(4)]
        assert set(per_group) <= {0, 3}
    same = LinearRanker(penalty=GroupPenalty.build(1.0, 1.0, 12, groups), alpha=path.alphas[4])
    np.testing.assert_allclose(same.fit(data).coef_, path.coefs[4], atol=1e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"loss": "hinge"}, "'newton' needs a continuous gradient of the loss 'hinge'"),
        ({"loss": "squared"}, "'newton' needs dual of the loss 'squared'"),
        ({"loss": "hinges"}, "did you mean 'hinge'"),
        ({"solver": "newten"}, "did you mean 'newton'"),
        ({"penalty": "l3"}, "penalty='l3'"),
        ({"penalty": "groups"}, "needs groups="),
        ({"groups": [0] * 12}, "groups has no effect"),
        ({"l1_ratio": 0.5}, "l1_ratio has no effect"),
        ({"penalty": ElasticNet.build(1.0, 1.0, 12), "signs": 1}, "signs has no effect"),
        ({"penalty": ElasticNet.build(1.0, 1.0, 3)}, "made for 3 features"),
        ({"solver": "bound-cd", "loss": "logistic"}, "'bound-cd' needs term_mass"),
    ],
)
def test_what_does_not_fit_is_refused_before_any_work(data, parameters, message):
    with pytest.raises(InputError, match=message):
        LinearRanker(**parameters).fit(data)


@pytest.mark.parametrize(
    ("ranker", "message"),
    [
        (DominationRanker(margin_scale=9.0), "margin_scale has no effect"),
        (DominationRanker(bound="paper"), "bound has no effect"),
        (RankSVM(margin_scale=2.0), "margin_scale has no effect"),
        (RankNet(margin_scale=2.0), "margin_scale has no effect"),
    ],
)
def test_parameters_without_effect_are_refused(data, ranker, message):
    with pytest.raises(InputError, match=message):
        ranker.fit(data)
