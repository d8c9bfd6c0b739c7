from __future__ import annotations

import doctest
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.errors import InputError
from leanrank.losses import get_loss
from leanrank.losses.base import Labels
from leanrank.losses.pairs import order_of
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem
from leanrank.rankers import MinBatSRank
from leanrank.solvers.newton.solver import Newton
from leanrank.solvers.sampling import _ftrl_kernels, ftrl
from leanrank.solvers.sampling.ftrl import FTRLRule, FTRLState, ftrl_pass, make_batches

RULES = {
    "feature, total": FTRLRule(0.7, 0.5, 1.0),
    "feature, per step": FTRLRule(0.08, 0.5, 1.0, per_step=True),
    "uniform, total": FTRLRule(0.7, 0.3, uniform=True),
    "uniform, per step": FTRLRule(0.08, 0.3, uniform=True, per_step=True),
    "no penalty, rho 0": FTRLRule(0.0, 0.2, 0.0),
}


def blocks(seed=0, n_features=7, dtype=np.float64, density=0.4):
    """Queries of 0 to 9 documents, some of one document, some of one level; feature 3 is empty."""
    rng = np.random.default_rng(seed)
    sizes = np.concatenate([[5, 0, 1, 4], rng.integers(2, 10, 16), [3]])
    ptr = np.concatenate([[0], np.cumsum(sizes)]).astype(np.int64)
    X = rng.normal(size=(ptr[-1], n_features)) * (rng.random((ptr[-1], n_features)) < density)
    X[:, 3] = 0.0
    y = rng.integers(0, 3, ptr[-1]).astype(np.float64)
    y[ptr[3] : ptr[4]] = 1.0
    return X.astype(dtype), y, ptr


def textbook(X, labels, loss, rule, order):
    """Yield the weights after each step, from the whole history of Eq. 6 each time."""
    plan = loss.prepare(labels)
    share = np.count_nonzero(plan.scale) if labels.normalize == "query" else 1.0
    X = X.astype(np.float64)
    gradients, weights, rates = [], [], []
    w = np.zeros(X.shape[1])
    for t, q in enumerate(order, 1):
        u, g = X @ w, np.zeros(len(X))
        if labels.offset is not None:
            u = u - labels.offset
        loss.evaluate(plan, q, q + 1, u, g)
        rows = slice(plan.query_ptr[q], plan.query_ptr[q + 1])
        gradients.append(share * X[rows].T @ g[rows])
        weights.append(w)
        H = np.sqrt(rule.rho + np.sum(np.square(gradients), axis=0))
        rates.append(np.full(len(w), rule.gamma / np.sqrt(t)) if rule.uniform else rule.gamma / H)
        inverse = [np.zeros(len(w))] + [1 / r for r in rates]  # 1/η_0 = 0
        v = sum(
            g - (inverse[k + 1] - inverse[k]) * w
            for k, (g, w) in enumerate(zip(gradients, weights, strict=True))
        )
        threshold = rule.alpha * t if rule.per_step else rule.alpha
        w = -rates[-1] * np.sign(v) * np.maximum(np.abs(v) - threshold, 0.0)
        w[~np.isfinite(w)] = 0.0
        yield w


@pytest.mark.filterwarnings("ignore:divide by zero", "ignore:invalid value")
@pytest.mark.parametrize("loss", ["squared-hinge", "domination", "squared"])
@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
@pytest.mark.parametrize("sparse", [False, True], ids=["dense", "sparse"])
def test_step_by_step_against_the_textbook(loss, rule, sparse):
    for seed, normalize, dtype in ((0, "query", np.float64), (1, "none", np.float32)):
        X, y, ptr = blocks(seed, dtype=dtype)
        offset = None if seed == 0 else np.random.default_rng(5).normal(size=len(y))
        labels = Labels(y, ptr, offset=offset, normalize=normalize)
        if normalize == "none":
            rule = rule._replace(gamma=rule.gamma / 10, alpha=rule.alpha * 3)
        the_loss = get_loss(loss)
        batches = make_batches(csr_array(X) if sparse else X, labels, the_loss)
        order = np.tile(np.random.default_rng(seed).permutation(batches.active), 4)
        state = FTRLState.start(rule, X.shape[1])
        zeros = 0
        for q, w in zip(order, textbook(X, labels, the_loss, rule, order), strict=True):
            ftrl_pass(state, batches, np.array([q]))
            got = state.weights()
            assert np.allclose(got, w, rtol=1e-9, atol=1e-11)
            assert np.array_equal(got == 0.0, w == 0.0)
            zeros += np.count_nonzero(got == 0.0)
        assert got.any()
        assert rule.alpha == 0 or zeros > len(order)  # more than the empty feature


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_sparse_equals_dense(rule):
    X, y, ptr = blocks(2, n_features=40, density=0.08)
    labels = Labels(y, ptr)
    results = []
    for form in (X, csr_array(X)):
        batches = make_batches(form, labels, get_loss("domination"))
        state = FTRLState.start(rule, 40)
        ftrl_pass(state, batches, np.tile(batches.active, 30))
        results.append(state.weights())
    assert np.allclose(*results, rtol=1e-9, atol=1e-12)
    assert np.array_equal(results[0] == 0, results[1] == 0)


def test_a_weight_returns_to_exactly_zero():
    X = np.array([[1.0], [0.0], [0.0], [1.0]])
    labels = Labels(np.array([1.0, 0.0, 1.0, 0.0]), np.array([0, 2, 4]))  # opposite wishes
    batches = make_batches(X, labels, get_loss("squared-hinge"))
    state = FTRLState.start(FTRLRule(1.9, 0.1), 1)
    ftrl_pass(state, batches, np.array([0]))
    assert state.weights()[0] > 0.0
    ftrl_pass(state, batches, np.array([1]))
    assert state.v[0] != 0.0
    assert state.weights()[0] == 0.0


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_features_that_are_not_there_are_not_touched(rule):
    X, y, ptr = blocks(3)
    batches = make_batches(csr_array(X), Labels(y, ptr), get_loss("domination"))
    poisoned, clean = (FTRLState.start(rule, X.shape[1]) for _ in range(2))
    for array in (poisoned.v, poisoned.s, poisoned.w):
        array[3] = np.nan  # whoever reads it spreads it
    for state in (poisoned, clean):
        ftrl_pass(state, batches, np.tile(batches.active, 3))
    others = np.arange(X.shape[1]) != 3
    assert np.array_equal(poisoned.v[others], clean.v[others])
    assert np.array_equal(poisoned.w[others], clean.w[others])


@pytest.mark.parametrize("loss", ["squared-hinge", "domination", "squared", "listnet"])
@pytest.mark.parametrize("uniform", [False, True], ids=["feature", "uniform"])
def test_per_step_reaches_the_batch_optimum(loss, uniform):
    rng = np.random.default_rng(4)
    n_queries, docs, n_features = 30, 8, 10
    X = rng.normal(size=(n_queries * docs, n_features))
    y = np.digitize(X[:, :3] @ [1.0, -0.7, 0.4] + 0.7 * rng.normal(size=len(X)), [0, 1.0])
    ptr = np.arange(0, len(X) + 1, docs)
    labels, the_loss = Labels(y.astype(np.float64), ptr), get_loss(loss)
    problem = MemoryProblem(X, the_loss, the_loss.prepare(labels))
    top = np.abs(X.T @ problem.evaluate(np.zeros(len(X)))[1]).max()
    penalty = ElasticNet.build(0.2 * top, 1.0, n_features)
    batches = make_batches(X, labels, the_loss)

    def objective(w):
        return problem.evaluate(problem.scores(w))[0] + penalty.value(w)

    best = reference(problem, penalty)
    found = {}
    for per_step in (True, False):
        steps = 400 * len(batches.active)
        alpha = 0.2 * top * (1 if per_step else len(batches.active))
        state = FTRLState.start(FTRLRule(alpha, 0.3, 1.0, uniform, per_step), n_features)
        for _ in range(400):
            ftrl_pass(state, batches, rng.permutation(batches.active))
        assert state.steps == steps
        found[per_step] = state.weights()
    away = objective(found[True]) / objective(best) - 1
    assert -1e-7 < away < 1e-3
    assert objective(found[False]) > objective(found[True])
    assert np.count_nonzero(found[True]) < np.count_nonzero(found[False])
    assert np.abs(found[True] - best).max() < 0.05 * np.abs(best).max()


def reference(problem, penalty):
    """Solve by Newton where the loss allows it, else by many proximal gradient steps."""
    if problem.loss.offers("dual") and problem.loss.offers("fold"):
        return Newton(tol=1e-9).solve(problem, penalty).w
    X = problem.design.X
    w, step = np.zeros(X.shape[1]), 1.0
    for _ in range(3_000):
        value, g = problem.evaluate(X @ w)
        c = X.T @ g
        while True:
            new = w - step * c
            new = np.sign(new) * np.maximum(np.abs(new) - step * penalty.above[0], 0.0)
            d = new - w
            if problem.evaluate(X @ new)[0] <= value + c @ d + d @ d / (2 * step) + 1e-15:
                break
            step /= 2
        w = new
    return w


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_an_interrupted_run_ends_with_the_same_bits(rule):
    X, y, ptr = blocks(7)
    batches = make_batches(csr_array(X), Labels(y, ptr), get_loss("squared-hinge"))
    order = np.tile(batches.active, 5)
    plain = FTRLState.start(rule, X.shape[1], seed=3)
    ftrl_pass(plain, batches, order)
    stopped = FTRLState.start(rule, X.shape[1], seed=3)
    for part in np.split(order, np.sort(np.random.default_rng(0).integers(0, len(order), 6))):
        ftrl_pass(stopped, batches, part)
        stopped = pickle.loads(pickle.dumps(stopped))
    for name in ("v", "s", "w"):
        assert np.array_equal(getattr(plain, name), getattr(stopped, name))
    assert (plain.steps, plain.documents) == (stopped.steps, stopped.documents)


@pytest.mark.parametrize("rule", RULES.values(), ids=RULES)
def test_new_features_may_appear(rule):
    X, y, ptr = blocks(8)
    half = ptr[len(ptr) // 2]
    X[:half, 4:] = 0.0  # the last features come late
    full = make_batches(csr_array(X), Labels(y, ptr), get_loss("domination"))
    narrow = make_batches(csr_array(X[:half, :4]), Labels(y[:half], ptr[: len(ptr) // 2 + 1]),
                          get_loss("domination"))  # fmt: skip
    grown, plain = FTRLState.start(rule, 4), FTRLState.start(rule, X.shape[1])
    ftrl_pass(grown, narrow, narrow.active)
    grown.grow(X.shape[1])
    ftrl_pass(grown, full, full.active[full.active >= len(ptr) // 2])
    ftrl_pass(plain, full, full.active)
    assert np.allclose(grown.weights(), plain.weights(), rtol=1e-9, atol=1e-12)


def test_blocks_do_not_depend_on_their_neighbours():
    X, y, ptr = blocks(9)
    weight = np.linspace(0.5, 2.0, len(ptr) - 1)
    whole = make_batches(X, Labels(y, ptr, query_weight=weight), get_loss("squared-hinge"))
    rule = FTRLRule(0.3)
    one, many = (FTRLState.start(rule, X.shape[1]) for _ in range(2))
    ftrl_pass(one, whole, whole.active)
    for q in whole.active:
        rows = slice(ptr[q], ptr[q + 1])
        labels = Labels(y[rows], ptr[q : q + 2] - ptr[q], query_weight=weight[q : q + 1])
        alone = make_batches(X[rows], labels, get_loss("squared-hinge"))
        ftrl_pass(many, alone, alone.active)
    assert np.allclose(one.weights(), many.weights(), rtol=1e-9)


@pytest.mark.parametrize("loss", ["hinge", "squared-hinge"])
def test_steps_share_their_scratch(loss):
    # made anew for each query, a pass would take time for queries × documents
    X, y, ptr = blocks(11)
    batches = make_batches(X, Labels(y, ptr), get_loss(loss))
    made = []
    batches.loss.evaluate = lambda plan, *rest: made.append(order_of(plan)) or 0.0
    ftrl_pass(FTRLState.start(FTRLRule(0.1), X.shape[1]), batches, batches.active)
    assert len(made) == len(batches.active) > 1
    assert all(order is made[0] for order in made)


def test_divergence_is_told():
    X, y, ptr = blocks(10, density=1.0)
    batches = make_batches(1e6 * X, Labels(y, ptr, normalize="none"), get_loss("squared-hinge"))
    state = FTRLState.start(FTRLRule(0.0, 2.0, uniform=True), X.shape[1])
    with pytest.raises(InputError, match="lower eta0"):
        ftrl_pass(state, batches, np.tile(batches.active, 200))


def test_sums_of_inverse_roots():
    exact = np.cumsum(1 / np.sqrt(np.arange(1, 5_001)))
    got = [_ftrl_kernels.inverse_roots(n) for n in range(1, 5_001)]
    assert np.allclose(got, exact, rtol=1e-14)
    assert _ftrl_kernels.inverse_roots(0) == 0.0


def test_refusals():
    X, y, ptr = blocks()
    with pytest.raises(InputError, match="normalize='term' must be one of 'none', 'query'"):
        MinBatSRank(normalize="term").fit(X, y, group=np.diff(ptr))


def test_doctests():
    assert doctest.testmod(ftrl).failed == 0
