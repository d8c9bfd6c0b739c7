"""The guides to a loss, a penalty and a solver are code that runs, taken from CONTRIBUTING.md."""

import re
from pathlib import Path

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from leanrank import LinearRanker, make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.execution import make_executor
from leanrank.losses.base import Labels
from leanrank.metrics import evaluate
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers import ListNet, MinBatSRank
from leanrank.solvers.newton.solver import Newton

GUIDE = Path(__file__).parent.parent / "CONTRIBUTING.md"


@pytest.fixture(scope="module")
def blocks():
    text = GUIDE.read_text(encoding="utf-8")
    found = re.findall(r"<!-- the tests run this[^\n]*-->\n```python\n(.*?)```", text, re.DOTALL)
    assert len(found) == 5
    return found


@pytest.fixture(scope="module")
def guide(blocks):
    names = {"__name__": "guide"}
    for block in blocks:
        exec(compile(block, str(GUIDE), "exec"), names)
    return names


@pytest.fixture
def labels():
    data = make_ranking(n_queries=12, n_features=5, random_state=3)
    y, ptr = data.y.copy(), np.array(data.query_ptr)
    y[ptr[2] : ptr[3]] = 1.0  # a query of one level
    ptr = np.insert(ptr, 5, ptr[5])  # and one without documents
    rng = np.random.default_rng(0)
    weight = rng.uniform(0.5, 2.0, len(ptr) - 1)
    offset = rng.normal(size=len(y))
    return data, Labels(y, ptr, query_weight=weight, offset=offset)


def test_the_loss_is_short(blocks):
    lines = [line for line in blocks[0].splitlines() if line.strip()]
    assert len([line for line in lines if not line.startswith(("from", "import", '"""'))]) < 40


def test_the_value_is_the_cross_entropy(guide, labels):
    _, given = labels
    loss = guide["ListNetLoss"]()
    plan = loss.prepare(given)
    u = np.random.default_rng(1).normal(scale=3.0, size=plan.n_rows)
    expected = 0.0
    for begin, end, scale in zip(plan.query_ptr[:-1], plan.query_ptr[1:], plan.scale, strict=True):
        p, s = (np.exp(v[begin:end]) / np.exp(v[begin:end]).sum() for v in (given.y, u))
        expected -= scale * np.sum(p * np.log(s))
    n_queries = len(plan.scale)
    parts = [loss.evaluate(plan, q, q + 1, u, np.zeros_like(u)) for q in range(n_queries)]
    assert np.isclose(sum(parts), expected, rtol=1e-12)
    assert np.count_nonzero(plan.scale) == n_queries - 2


def test_gradient_and_hessian_are_the_slopes(guide, labels):
    data, given = labels
    loss = guide["ListNetLoss"]()
    problem = MemoryProblem(data.X, loss, loss.prepare(given))
    w = np.random.default_rng(2).normal(size=data.n_features)

    def gradient(w):
        return problem.design.rmatvec(problem.evaluate(problem.scores(w))[1])

    h = 1e-5
    steps = h * np.eye(len(w))
    values = [
        [problem.evaluate(problem.scores(w + side * step))[0] for side in (1, -1)] for step in steps
    ]
    slopes = np.array([(up - down) / (2 * h) for up, down in values])
    np.testing.assert_allclose(gradient(w), slopes, rtol=1e-6, atol=1e-8)
    bends = np.array([(gradient(w + step) - gradient(w - step)) / (2 * h) for step in steps])
    block = problem.design.take(np.arange(len(w)))
    hessian = problem.hessian(block, problem.scores(w), exact=True)
    np.testing.assert_allclose(hessian, bends, rtol=1e-5, atol=1e-7)


@pytest.mark.parametrize(("alpha", "l1_ratio"), [(0.05, 1.0), (0.01, 0.5), (0.1, 0.0)])
def test_newton_certifies_the_optimum(guide, labels, alpha, l1_ratio):
    data, given = labels
    loss = guide["ListNetLoss"]()
    plan = loss.prepare(given)
    problem = MemoryProblem(data.X, loss, plan)
    penalty = ElasticNet.build(alpha, l1_ratio, data.n_features)
    solution = Newton(tol=1e-9).solve(problem, penalty)
    assert solution.converged
    assert solution.gap <= 1e-9
    c = problem.design.rmatvec(problem.evaluate(problem.scores(solution.w))[1])
    assert penalty.residual(solution.w, c).max() < 1e-4
    threaded = MemoryProblem(data.X, loss, plan, make_executor(2))
    assert np.array_equal(Newton(tol=1e-9).solve(threaded, penalty).w, solution.w)
    rng = np.random.default_rng(4)
    for _ in range(20):  # no dual value is above the optimum, wherever it is taken
        u = problem.scores(rng.normal(size=data.n_features))
        c = problem.design.rmatvec(problem.evaluate(u)[1])
        a = penalty.dual_scale(c)
        dual = problem.dual_at(u, a) - penalty.conjugate(a * c)
        assert dual <= solution.objective * (1 + 1e-12)


def test_the_example_ranks_well(guide):
    test, w = guide["test"], guide["solution"].w
    ndcg = [
        evaluate(test, scores, measures="ndcg@10").means["ndcg@10"]
        for scores in (test.X @ w, *test.X.T, *-test.X.T)
    ]
    assert ndcg[0] > max(ndcg[1:]) + 0.05
    assert 0 < np.count_nonzero(w) < test.n_features


def test_the_same_loss_has_a_path_and_learns_online(guide):
    path, online = guide["path"], guide["online"]
    built_in = ListNet().path(guide["train"], alphas=path.alphas)
    np.testing.assert_allclose(path.coefs, built_in.coefs, atol=1e-4)
    assert online.coef_.any()
    data = make_ranking(n_queries=30, n_features=5, random_state=0)
    toy, same = (MinBatSRank(0.01, loss=loss) for loss in (guide["ListNetLoss"](), "listnet"))
    np.testing.assert_allclose(toy.fit(data).coef_, same.fit(data).coef_, rtol=1e-7)


def test_more_features_than_a_matrix_is_formed_for(guide):
    """The loss has no product of its own: two gradients stand in for it."""
    from leanrank import LinearRanker

    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 2_100))
    y, qid = rng.integers(0, 3, 60).astype(float), np.repeat(np.arange(6), 10)
    ranker = LinearRanker(guide["ListNetLoss"](), "l2", alpha=1.0, tol=1e-5).fit(X, y, qid)
    assert ranker.dual_gap_ <= 1e-5


@pytest.mark.parametrize("seed", range(3))
def test_the_penalty_of_the_guide(guide, seed):
    rng = np.random.default_rng(seed)
    penalty = guide["Slope"](np.sort(rng.uniform(0.1, 1.0, 4))[::-1])
    z, k = rng.normal(size=4), 1.7
    x = penalty.prox(z, k)
    reached = 0.5 * k * ((x - z) @ (x - z)) + penalty.value(x)
    for _ in range(200):  # no point around is lower
        near = x + rng.normal(scale=10.0 ** rng.uniform(-4, 0), size=4)
        assert 0.5 * k * ((near - z) @ (near - z)) + penalty.value(near) >= reached - 1e-12
    c = 5.0 * rng.normal(size=4)
    inside = penalty.dual_scale(c) * c
    for w in rng.normal(size=(200, 4)):  # the conjugate is the indicator of the dual ball
        assert inside @ w <= penalty.value(w) + 1e-12


def test_a_penalty_of_your_own_has_alpha_max_and_a_certificate(guide):
    slope, train = guide["slope"], guide["train"]
    top = slope.alpha_max(train)
    with pytest.warns(DataWarning, match="model without features"):
        assert not clone(slope).set_params(alpha=1.001 * top).fit(train).coef_.any()
    assert clone(slope).set_params(alpha=0.8 * top).fit(train).coef_.any()
    with pytest.raises(InputError, match=r"'newton' needs .* of the penalty 'slope'"):
        clone(slope).set_params(solver="newton").fit(train)


@pytest.mark.parametrize("form", [np.asarray, csr_array], ids=["dense", "sparse"])
def test_the_solver_of_the_guide_descends_to_newtons_optimum(guide, form):
    train, stepwise = guide["train"], clone(guide["stepwise"])
    stepwise.fit(form(train.X), train.y, train.qid)
    exact = LinearRanker(alpha=0.05).fit(train)
    assert exact.objective_ <= stepwise.objective_ * (1 + 1e-9)
    assert stepwise.objective_ <= exact.objective_ * (1 + 1e-3)
    fell = [entry["objective"] for entry in stepwise.history_]
    assert fell == sorted(fell, reverse=True)
    with pytest.raises(InputError, match="needs a continuous gradient of the loss 'hinge'"):
        clone(stepwise).set_params(loss="hinge").fit(train)
