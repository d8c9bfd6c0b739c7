"""Rounds of weighted ℓ1 problems: the objective falls, and where it ends is stationary."""

from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest

from leanrank import make_ranking
from leanrank.errors import InputError
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.penalties.concave import SHAPES, ConcavePenalty, make_shape
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.solvers.first_order.bound_cd import BoundDescent
from leanrank.solvers.first_order.majorise import Majorise
from leanrank.solvers.newton.solver import Newton


def problem_of(loss="squared-hinge", seed=0, n_features=12):
    data = make_ranking(
        n_queries=25,
        docs_per_query=12,
        n_features=n_features,
        n_informative=3,
        label_noise=1.0,
        random_state=seed,
    )
    loss = get_loss(loss)
    plan = loss.prepare(Labels(y=np.array(data.y), query_ptr=np.array(data.query_ptr)))
    return MemoryProblem(np.array(data.X), loss, plan)


def penalty_of(name, alpha, n_features=12, **build):
    shape = make_shape(name, p=0.5, gamma=30.0 if name == "mcp" else 1.0, epsilon=0.02)
    return ConcavePenalty(ElasticNet.build(alpha, 1.0, n_features, **build), shape)


def objective(problem, penalty, w):
    return problem.evaluate(problem.scores(w))[0] + penalty.value(w)


@pytest.mark.parametrize("loss", ["squared-hinge", "domination", "logistic", "listnet"])
@pytest.mark.parametrize("name", SHAPES)
@pytest.mark.parametrize("alpha", [0.003, 0.03])
def test_the_objective_falls_and_the_end_is_stationary(name, loss, alpha):
    problem, penalty = problem_of(loss), penalty_of(name, alpha)
    seen = []
    solution = Majorise(
        tol=1e-9, rounds=60, max_iter=300, callback=lambda e: seen.append(dict(e))
    ).solve(problem, penalty)
    fell = [entry["objective"] for entry in solution.history]
    assert all(later <= earlier for earlier, later in pairwise(fell))
    assert solution.objective == fell[-1]
    assert solution.objective == pytest.approx(objective(problem, penalty, solution.w), rel=1e-10)
    assert solution.gap <= 1e-9
    assert solution.converged
    assert seen == solution.history
    # the definition: no coordinate can be moved a little for the better
    gradient = problem.design.rmatvec(problem.evaluate(problem.scores(solution.w))[1])
    rate = penalty.base.above
    slope = rate * penalty.shape.slope(np.abs(solution.w), rate)
    used = solution.w != 0
    left = np.where(
        used,
        np.abs(gradient + np.sign(solution.w) * slope),
        np.maximum(0.0, np.abs(gradient) - slope),
    )
    assert solution.history[-1]["stationarity"] == pytest.approx(left.max(), abs=1e-12)
    assert left.max() < 0.05 * alpha


def test_more_rounds_do_not_hurt_and_one_round_is_plain_l1():
    problem, penalty = problem_of(), penalty_of("log", 0.01)
    plain = Newton().solve(problem, penalty.base)
    one = Majorise(rounds=1).solve(problem, penalty)
    np.testing.assert_array_equal(one.w, plain.w)
    assert len(one.history) == 1
    values = [Majorise(rounds=r).solve(problem, penalty).objective for r in (1, 2, 4, 8)]
    assert values == sorted(values, reverse=True)
    assert values[-1] < values[0]


def test_small_weights_are_given_up_and_large_ones_less_shrunk():
    problem = problem_of(seed=2)
    plain = Newton().solve(problem, penalty_of("mcp", 0.01).base)
    concave = Majorise().solve(problem, penalty_of("mcp", 0.01))
    assert np.count_nonzero(concave.w) <= np.count_nonzero(plain.w)
    assert np.abs(concave.w).max() > np.abs(plain.w).max()
    log = Majorise().solve(problem, penalty_of("log", 0.003))
    assert np.count_nonzero(log.w) < np.count_nonzero(Newton().solve(problem, log_base()).w)


def log_base():
    return penalty_of("log", 0.003).base


def test_where_it_starts_does_not_matter():
    problem, penalty = problem_of(), penalty_of("lp", 0.01)
    cold = Majorise(tol=1e-9).solve(problem, penalty)
    warm = Majorise(tol=1e-9).solve(problem, penalty, np.ones(12))
    np.testing.assert_allclose(warm.w, cold.w, atol=1e-4)


def test_any_l1_solver_will_do():
    problem, penalty = problem_of("domination"), penalty_of("lp", 0.02)
    newton = Majorise(tol=1e-7, rounds=4).solve(problem, penalty)
    other = Majorise(tol=1e-7, rounds=4, max_iter=20_000, solver=BoundDescent()).solve(
        problem, penalty
    )
    assert other.objective == pytest.approx(newton.objective, rel=1e-5)
    np.testing.assert_allclose(other.w, newton.w, atol=1e-2)


def test_factors_and_signs_are_kept():
    problem = problem_of()
    factors = np.ones(12)
    factors[0], factors[1] = 0.0, np.inf
    for name in SHAPES:
        penalty = penalty_of(name, 0.02, factors=factors, signs=1)
        solution = Majorise().solve(problem, penalty)
        assert np.all(solution.w >= 0)
        assert solution.w[1] == 0
        assert solution.history[-1]["stationarity"] < np.inf


def test_an_empty_model_stays_empty():
    problem = problem_of()
    penalty = penalty_of("lp", 100.0)
    solution = Majorise().solve(problem, penalty)
    assert not solution.w.any()
    assert solution.history[-1]["stationarity"] == 0.0


def test_a_convex_penalty_is_refused_by_name():
    with pytest.raises(InputError, match=r"'majorise' needs majorant of the penalty 'elastic net'"):
        Majorise().solve(problem_of(), ElasticNet.build(0.1, 1.0, 12))


def test_a_solver_that_goes_up_is_not_followed():
    """A broken inner solver cannot make the objective rise."""
    problem, penalty = problem_of(), penalty_of("lp", 0.01)
    calls = []

    class Careless(Newton):
        def solve(self, problem, penalty, w=None):
            calls.append(1)
            found = super().solve(problem, penalty)
            if len(calls) < 3:
                return found
            w = found.w + 1.0
            value = problem.evaluate(problem.scores(w))[0] + penalty.value(w)
            return replace(found, w=w, objective=value)

    solution = Majorise(solver=Careless()).solve(problem, penalty)
    fell = [entry["objective"] for entry in solution.history]
    assert len(fell) == 3
    assert fell[2] == fell[1] == solution.objective
