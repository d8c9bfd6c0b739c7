"""The sparse group lasso: against its definition, an independent solver, and the elastic net."""

import itertools

import numpy as np
import pytest
from scipy.optimize import minimize_scalar
from scipy.sparse import csr_array

from leanrank.errors import InputError
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.hessians import Limits
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.quadratic_models import GramModel
from leanrank.solvers.newton.solver import Newton

GROUPS = np.array([0, 0, 0, 1, 1, 2, 3, 3, 3, 3])
P = len(GROUPS)


def a_problem(seed=0, loss="domination", sparse=False, limits=None):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(120, P)) * (rng.random((120, P)) < 0.7)
    X[:, 1] = X[:, 0] + 0.1 * rng.normal(size=120)
    y = np.digitize(X[:, :5] @ [1, 1, 0, -1, 0.5] + rng.normal(size=120), [0, 1.5]).astype(float)
    loss = get_loss(loss)
    plan = loss.prepare(Labels(y, np.arange(0, 121, 8)))
    return MemoryProblem(csr_array(X) if sparse else X, loss, plan, None, limits)


def a_penalty(rng, alpha=0.05, l1_ratio=1.0, group_ratio=0.5, plain=False):
    factors = (
        None if plain else rng.choice([0.0, 0.5, 1.0, 2.0, np.inf], P, p=[0.1, 0.3, 0.3, 0.2, 0.1])
    )
    signs = None if plain else rng.choice([-1, 0, 1], P)
    return GroupPenalty.build(
        alpha, l1_ratio, P, GROUPS, group_ratio=group_ratio, factors=factors, signs=signs
    )


def slow_solver(problem, penalty, rounds=4_000):
    """Proximal gradients from the definition: nothing of Newton's is used."""
    w, ahead, inertia = np.zeros(P), np.zeros(P), 1.0
    hessian = problem.hessian(problem.design.take(np.arange(P)), problem.scores(w), exact=True)
    k = 4.0 * np.linalg.eigvalsh(hessian)[-1]
    for at in range(rounds):
        problem.at(ahead)
        z = ahead - problem.gradient() / k
        before, w = w, np.zeros(P)
        for g in range(len(penalty.nu)):
            own = penalty.group == g
            above, below = penalty.base.above[own] / k, penalty.base.below[own] / k
            s = np.where(
                z[own] > above, z[own] - above, np.where(z[own] < -below, z[own] + below, 0)
            )
            s = np.where(np.isnan(s), 0.0, s)
            length = np.linalg.norm(s)
            left = max(0.0, 1.0 - penalty.nu[g] / k / length) if length else 0.0
            w[own] = left * s / (1.0 + penalty.base.ridge[own] / k)
        uphill = (ahead - w) @ (w - before) > 0
        faster = 0.5 * (1.0 + np.sqrt(1.0 + 4.0 * inertia**2))
        ahead = w if uphill else w + (inertia - 1.0) / faster * (w - before)
        inertia = 1.0 if uphill else faster
        if at > 10 and np.abs(w - before).max() <= 1e-13:
            break
    return w, problem.at(w) + penalty.value(w)


@pytest.mark.parametrize("plain", [True, False])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
@pytest.mark.parametrize("group_ratio", [1.0, 0.5])
@pytest.mark.parametrize("sparse", [False, True])
def test_newton_finds_the_optimum_of_a_slow_solver(sparse, group_ratio, l1_ratio, plain):
    rng = np.random.default_rng([sparse, int(10 * group_ratio), int(10 * l1_ratio), plain])
    for loss, alpha in itertools.product(("domination", "squared-hinge"), (0.2, 0.02)):
        problem = a_problem(3, loss, sparse)
        penalty = a_penalty(rng, alpha, l1_ratio, group_ratio, plain)
        found = Newton(tol=1e-9).solve(problem, penalty)
        assert found.converged
        _, best = slow_solver(problem, penalty)
        assert found.objective == pytest.approx(best, rel=1e-7)
        # no model is better than the certificate says
        assert found.objective * (1.0 - found.gap) <= best * (1 + 1e-12)
        problem.at(found.w)
        assert penalty.residual(found.w, problem.gradient()).max() <= 1e-3
        assert not found.w[penalty.excluded].any()


@pytest.mark.parametrize("limits", [Limits(fewest_gram=1, gram_copies=10**9), None])
def test_a_working_set_too_large_for_a_matrix(limits):
    penalty = a_penalty(np.random.default_rng(0), 0.02, plain=True)
    one = Newton(tol=1e-8).solve(a_problem(limits=limits), penalty)
    assert one.converged
    assert one.objective == pytest.approx(slow_solver(a_problem(), penalty)[1], rel=1e-7)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_groups_of_one_are_an_elastic_net(sparse, l1_ratio):
    rng = np.random.default_rng(1)
    factors, signs = rng.choice([0.0, 0.5, 1.0, np.inf], P), rng.choice([-1, 0, 1], P)
    for ratio in (0.0, 0.4, 1.0):
        group = GroupPenalty.build(
            0.03, l1_ratio, P, np.arange(P), group_ratio=ratio, factors=factors, signs=signs
        )
        net = ElasticNet.build(0.03, l1_ratio, P, factors, signs)
        problem = a_problem(2, sparse=sparse)
        one, other = (Newton(tol=1e-10).solve(problem, penalty) for penalty in (group, net))
        np.testing.assert_allclose(one.w, other.w, atol=1e-6)
        w, c = net.permitted(rng.normal(size=P)), rng.normal(size=P)
        assert group.value(w) == pytest.approx(net.value(w))
        assert group.dual_scale(c) == pytest.approx(net.dual_scale(c), rel=1e-12)
        a = net.dual_scale(c)
        assert group.conjugate(a * c) == pytest.approx(net.conjugate(a * c), abs=1e-15)
        np.testing.assert_allclose(group.residual(w, c), net.residual(w, c), atol=1e-14)
        step = 0.5 * (net.permitted(rng.normal(size=P)) - w)
        assert group.change(w, step) == pytest.approx(net.change(w, step))


@pytest.mark.parametrize("seed", range(8))
def test_the_path_begins_at_alpha_max(seed):
    rng = np.random.default_rng(seed)
    problem = a_problem(seed)
    problem.at(np.zeros(P))
    c = problem.gradient()
    unit = GroupPenalty.build(1.0, 1.0, P, GROUPS, group_ratio=rng.random())
    top = unit.alpha_max_ratio(c)
    assert not Newton(tol=1e-12).solve(problem, unit.times(1.0001 * top)).w.any()
    assert Newton(tol=1e-12).solve(problem, unit.times(0.999 * top)).w.any()
    # in the middle of the path groups are in or out, and some features of those in are not
    middle = Newton(tol=1e-9).solve(problem, unit.times(0.3 * top)).w
    assert middle.any()
    assert not middle.all()


@pytest.mark.parametrize("seed", range(30))
def test_its_parts_follow_from_the_definition(seed):
    rng = np.random.default_rng(seed)
    penalty = a_penalty(rng, 0.3, rng.choice([1.0, 0.5]), rng.choice([0.3, 1.0]), seed % 2 == 0)
    w, c = penalty.permitted(rng.normal(size=P)), rng.normal(size=P)
    w[GROUPS == 3] *= rng.integers(2)
    # how many times stronger: that holds the group, and a little less does not
    ratio = penalty.ratio(np.where(penalty.free | penalty.excluded, 0.0, c))
    for g in range(len(penalty.nu)):
        own = np.flatnonzero((penalty.group == g) & ~penalty.free & ~penalty.excluded)
        if len(own) == 0 or not np.isfinite(ratio[own[0]]) or ratio[own[0]] == 0:
            continue
        for factor, holds in ((1.000001, True), (0.999999, False)):
            pull = penalty.times(factor * ratio[own[0]]).base.excess(c)[own]
            assert (np.linalg.norm(pull) <= factor * ratio[own[0]] * penalty.nu[g]) == holds
    # proximal map: no other point is lower
    x = penalty.prox(w, 1.7)
    least = 0.85 * np.sum((x - w) ** 2) + penalty.value(x)
    for _ in range(40):
        other = penalty.permitted(x + rng.choice([1e-6, 1e-2, 1.0]) * rng.normal(size=P))
        assert 0.85 * np.sum((other - w) ** 2) + penalty.value(other) >= least - 1e-12
    # Fenchel–Young: value + conjugate is at least −⟨c, w⟩, free features aside
    a = penalty.dual_scale(c)
    free = penalty.free
    bound = -a * (c[~free] @ w[~free])
    assert penalty.value(w) + penalty.conjugate(a * c) >= bound - 1e-12
    step = 0.5 * (penalty.permitted(rng.normal(size=P)) - w)
    expected = penalty.value(w + step) - penalty.value(w)
    assert penalty.change(w, step) == pytest.approx(expected, abs=1e-12)


@pytest.mark.parametrize("seed", range(30))
def test_zero_weights_are_pulled_away_where_they_are_not_optimal(seed):
    rng = np.random.default_rng(seed)
    penalty = a_penalty(rng, 0.3, rng.choice([1.0, 0.5]), rng.choice([0.3, 1.0]), seed % 2 == 0)
    w = penalty.permitted(rng.normal(size=P) * (rng.random(P) < 0.5))
    w[GROUPS == 3] *= rng.integers(2)
    c = np.where(penalty.excluded, 0.0, rng.normal(size=P) * rng.choice([0.1, 1.0]))
    moves = penalty.pull(w, c) > 1.0
    np.testing.assert_array_equal(moves, (w == 0) & (penalty.residual(w, c) > 0))


def test_the_conjugate_of_a_group_with_a_ridge_is_attained():
    penalty = GroupPenalty.build(0.3, 0.5, 3, [0, 0, 0], group_ratio=0.6)
    c = np.array([0.5, -0.4, 0.02])
    direction = penalty.prox(-c, 1.0)
    direction /= np.linalg.norm(direction)
    best = minimize_scalar(
        lambda t: c @ (t * direction) + penalty.value(t * direction),
        bounds=(0, 50),
        method="bounded",
    )
    assert penalty.conjugate(c) == pytest.approx(-best.fun, rel=1e-8)


@pytest.mark.parametrize("seed", range(6))
def test_the_inner_problem_meets_its_conditions(seed):
    rng = np.random.default_rng(seed)
    A = rng.normal(size=(2 * P, P))
    H, c = A.T @ A / (2 * P), rng.normal(size=P)
    penalty = a_penalty(rng, 0.3, rng.choice([1.0, 0.5]), 0.5, seed % 2 == 0)
    w = penalty.permitted(rng.normal(size=P))
    step = GramModel(H, accuracy=1e-11, max_rounds=1000).minimise(penalty, c, w)
    assert penalty.residual(w + step, c + H @ step).max() <= 1e-7


def test_the_penalty_of_free_features_alone_has_no_ridge():
    penalty = GroupPenalty.build(1.0, 0.5, 4, [0, 0, 1, 1], group_ratio=0.5, factors=[0, 0, 1, 1])
    free = penalty.only_free()
    assert free.excluded.tolist() == [False, False, True, True]
    assert not free.ridge.any()


def test_groups_travel_together():
    penalty = GroupPenalty.build(0.1, 1.0, P, GROUPS, factors=[1, np.inf, 0, *[1] * 7])
    chosen = np.zeros(P, dtype=bool)
    chosen[[0, 5]] = True
    assert np.flatnonzero(penalty.together(chosen)).tolist() == [0, 5]
    chosen[7] = True
    features = np.flatnonzero(penalty.together(chosen))
    assert features.tolist() == [0, 5, 6, 7, 8, 9]
    part, w = penalty.restrict(features), np.arange(6.0)
    whole = np.zeros(P)
    whole[features] = w
    assert part.value(w) == pytest.approx(penalty.value(whole))
    some, whole[[6, 8]] = [0, 5, 7, 9], 0.0  # the rest of a group is zero
    assert penalty.restrict(np.array(some)).value(whole[some]) == pytest.approx(
        penalty.value(whole)
    )


@pytest.mark.parametrize(("groups", "message"), [(None, "needs groups"), ([0, 1], "one group per")])
def test_wrong_groups_are_refused(groups, message):
    with pytest.raises(InputError, match=message):
        GroupPenalty.build(0.1, 1.0, P, groups)
