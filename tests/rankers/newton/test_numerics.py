"""Numbers that used to be wrong: weights of zero, large offsets, unpenalised features."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.sparse import csr_array
from scipy.special import expit
from sklearn.exceptions import ConvergenceWarning

from leanrank import LinearRanker
from leanrank.errors import InputError
from leanrank.losses import LOSSES, get_loss
from leanrank.losses.base import Labels
from leanrank.rankers import DominationRanker, FenchelRank, ListNet, RankNet, RankSVM, SparseRank

RANKERS = [
    DominationRanker(alpha=0.05, tol=1e-9),
    RankSVM(alpha=0.05, l1_ratio=1.0, tol=1e-9),
    RankNet(alpha=0.05, l1_ratio=0.5, tol=1e-9),
    ListNet(alpha=0.01, tol=1e-9),
    SparseRank(alpha=0.05, tol=1e-6),
]


def a_set(seed=0, queries=3, docs=4, features=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * docs, features))
    return X, np.repeat(np.arange(queries), docs)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_a_document_of_weight_zero_is_a_document_left_out(ranker):
    X, q = a_set()
    y = np.array([0, 1, 1, 0, 0, 1, 1, 0, 0, 0, 1, 1], dtype=float)
    weight = np.full(12, 0.1)
    weight[[4, 7]] = 0.0  # the second query keeps one level
    there = weight > 0
    with_zero = ranker.fit(X, y, q, sample_weight=weight)
    objective, coef = with_zero.objective_, with_zero.coef_
    without = ranker.fit(X[there], y[there], q[there], sample_weight=weight[there])
    assert objective == pytest.approx(without.objective_, rel=1e-12)
    assert np.allclose(coef, without.coef_, rtol=1e-7, atol=1e-10)


@pytest.mark.parametrize("name", sorted(LOSSES))
@pytest.mark.parametrize("normalize", ["query", "term"])
def test_weights_of_other_queries_do_not_shift_a_query(name, normalize):
    rng = np.random.default_rng(3)
    y = rng.integers(0, 3, 40).astype(float)
    y[::10], y[1::10] = 0.0, 1.0
    ptr = np.arange(0, 41, 10)
    weight = rng.choice([0.0, 0.1, 0.3, 1.7], 40)
    weight[::10] = weight[1::10] = 0.1
    weight *= np.repeat([1e6, 1.0, 1e-6, 1e-3], 10)
    loss = get_loss(name)
    scale = loss.prepare(Labels(y, ptr, sample_weight=weight, normalize="query")).scale
    alone = [
        loss.prepare(Labels(y[at], np.array([0, 10]), sample_weight=weight[at])).scale[0]
        for at in (slice(b, b + 10) for b in ptr[:-1])
    ]
    assert np.allclose(scale * 4, alone, rtol=1e-12)
    del normalize


@pytest.mark.parametrize("offset", [1e6, 1e8, 1e12])
@pytest.mark.filterwarnings("ignore:the spread of")
@pytest.mark.parametrize("per_query", [False, True])
@pytest.mark.parametrize(
    "ranker",
    [
        DominationRanker(alpha=0.02, l1_ratio=0.0),
        DominationRanker(alpha=0.02, l1_ratio=1.0),
        RankSVM(alpha=0.02),
        RankNet(alpha=0.02),
        ListNet(alpha=0.02, l1_ratio=0.0),
    ],
    ids=["domination-l2", "domination-l1", "ranksvm", "ranknet", "listnet"],
)
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_a_column_far_from_zero_keeps_its_certificate(form, ranker, offset, per_query):
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 6)), rng.integers(0, 3, 60).astype(float)
    q = np.repeat(np.arange(6), 10)
    shift = offset * (1.0 + q) if per_query else np.full(60, offset)
    X[:, 0] += shift
    far = ranker.fit(form(X), y, q)
    objective, gap = far.objective_, far.dual_gap_
    X[:, 0] -= shift  # exact: what is left is what the data still says
    near = ranker.set_params(tol=1e-12).fit(X, y, q)
    ranker.set_params(tol=1e-6)
    assert objective <= near.objective_ * (1 + 1e-6)
    assert 0.0 < gap <= 1e-6
    assert objective * (1 - gap) <= near.objective_ * (1 + 1e-13)


def test_a_gap_below_the_rounding_is_that_rounding():
    rng = np.random.default_rng(8)
    X, y = rng.normal(size=(60, 6)), rng.integers(0, 3, 60).astype(float)
    q = np.repeat(np.arange(6), 10)
    near = DominationRanker(alpha=0.02, l1_ratio=0.0, tol=1e-13).fit(X, y, q)
    assert near.dual_gap_ > 0.0


@pytest.mark.parametrize("scale", [1e-6, 1.0, 1e6])
@pytest.mark.filterwarnings("ignore:the spread of:leanrank.errors.DataWarning")
def test_unpenalised_features_are_fitted_at_any_scale(scale):
    X, q = a_set(seed=1, queries=20, docs=8)
    y = (X @ [1.0, -1.0, 0.5] + np.random.default_rng(2).normal(size=160) > 0).astype(float)
    plain = DominationRanker(alpha=0.0).fit(X, y, q)
    scaled = DominationRanker(alpha=0.0).fit(X * scale, y, q)
    assert scaled.n_iter_ > 1
    assert np.allclose(scaled.coef_ * scale, plain.coef_, rtol=1e-4)
    X[:, 0] *= scale
    mixed = DominationRanker(alpha=0.01, penalty_factors=[0, 1, 1]).fit(X, y, q)
    X[:, 0] /= scale
    one = DominationRanker(alpha=0.01, penalty_factors=[0, 1, 1]).fit(X, y, q)
    assert np.allclose(mixed.coef_ * [scale, 1, 1], one.coef_, rtol=1e-3, atol=1e-6)


def test_the_gap_with_unpenalised_features_is_kept():
    """No model with the same unpenalised weights is better than the gap says."""
    X, q = a_set(seed=1, queries=20, docs=8)
    y = (X @ [1.0, -1.0, 0.5] + np.random.default_rng(2).normal(size=160) > 0).astype(float)
    factors = [0, 1, 1]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        rough = DominationRanker(alpha=0.01, penalty_factors=factors, max_iter=2).fit(X, y, q)
    held = X[:, 0] * rough.coef_[0]
    best = DominationRanker(alpha=0.01, tol=1e-12).fit(X[:, 1:], y, q, offset=-held)
    assert rough.objective_ * (1 - rough.dual_gap_) <= best.objective_ * (1 + 1e-12)


def test_a_cold_start_at_a_weak_penalty_goes_by_stages():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(200, 100)), rng.integers(0, 3, 200).astype(float)
    q = np.repeat(np.arange(20), 10)
    ranker = RankSVM(l1_ratio=1.0)
    top = ranker.alpha_max(X, y, q)
    path = ranker.path(X, y, q, alphas=top * np.logspace(0, -6, 30))
    cold = ranker.set_params(alpha=1e-6 * top).fit(X, y, q)
    assert cold.objective_ == pytest.approx(path.objectives[-1], rel=1e-6)
    stages = [entry["support"] for entry in cold.history_]
    assert stages[1] < 50  # not all features at once


@pytest.mark.parametrize("ranker", [DominationRanker(), RankSVM(), RankNet(), ListNet()])
@pytest.mark.parametrize("size", [1e155, 1e300])
def test_numbers_too_large_are_refused_or_give_finite_weights(ranker, size):
    X, q = a_set()
    X *= size
    y = np.tile([0.0, 1.0, 1.0, 0.0], 3)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            assert np.isfinite(ranker.fit(X, y, q).coef_).all()
        except InputError as error:
            assert "scale" in str(error)  # noqa: PT017


def test_sweeps_that_rise_are_not_the_answer():
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(25, 3)), rng.integers(0, 5, 25).astype(float)
    X[:, 0] += 1e14
    with pytest.warns(ConvergenceWarning, match="hardly lower the objective"):
        ranker = DominationRanker(solver="bound-cd").fit(X, y)
    assert ranker.objective_ <= ranker.history_[0]["objective"]
    assert ranker.objective_ < ranker.history_[-1]["objective"]


def test_no_feature_wants_to_enter_and_the_gap_cannot_close():
    X, q = a_set()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # an empty model, above its tolerance
        ranker = RankSVM(alpha=1e6, l1_ratio=1.0, tol=1e-300).fit(X, np.arange(12.0), q)
    assert not ranker.coef_.any()
    assert ranker.dual_gap_ < 1e-12


def saturated(seed=0, queries=5, docs=10, features=10):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(queries * docs, features))
    y = np.clip(np.round(X @ rng.normal(size=features) / 2 + 1), 0, 3)
    return X, y, np.repeat(np.arange(queries), docs), 100 * rng.normal(size=len(y))


def best_by_lbfgs(X, y, qid, margin, alpha):
    """Minimise the mean pairwise logistic loss + alpha·‖w‖₁, with w as a difference."""
    pairs = [
        (i, j)
        for q in np.unique(qid)
        for i, j in [np.nonzero((qid[:, None] == q) & (qid == q) & (y[:, None] > y))]
    ]

    def objective(v):
        w, total, slope = v[: len(v) // 2] - v[len(v) // 2 :], 0.0, 0.0
        for i, j in pairs:
            difference = X[i] - X[j]
            lead = difference @ w - margin * (y[i] - y[j])
            total += np.mean(np.logaddexp(0.0, -lead)) / len(pairs)
            slope -= difference.T @ expit(-lead) / len(i) / len(pairs)
        return total + alpha * v.sum(), np.concatenate([slope, -slope]) + alpha

    start = np.zeros(2 * X.shape[1])
    options = {"maxiter": 5000, "maxfun": 20_000, "ftol": 1e-15, "gtol": 1e-10}
    bounds = [(0, None)] * len(start)
    return minimize(
        objective, start, jac=True, method="L-BFGS-B", bounds=bounds, options=options
    ).fun


def test_margins_that_saturate_the_loss_are_learned():
    X, y, qid, _ = saturated()
    ranker = RankNet(alpha=1e-3, l1_ratio=1, margin="scaled", margin_scale=50).fit(X, y, qid)
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.objective_ == pytest.approx(best_by_lbfgs(X, y, qid, 50, 1e-3), rel=1e-6)


@pytest.mark.parametrize("curves", [None, 4])
@pytest.mark.parametrize("seed", [4, 7, 31, 35])
def test_offsets_that_saturate_the_loss_are_learned(seed, curves):
    X, y, qid, offset = saturated(seed, queries=10)
    weight = np.exp(np.random.default_rng(seed).normal(size=len(y)))
    given = {"offset": offset, "sample_weight": weight if curves else None}
    ranker = DominationRanker(alpha=1e-3, curves=curves).fit(X, y, qid, **given)
    assert ranker.dual_gap_ <= 1e-6
    other = LinearRanker(alpha=1e-3, curves=curves, solver="proximal", tol=0.1, max_iter=300)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        reached = other.fit(X, y, qid, **given).objective_
    assert ranker.objective_ <= reached * (1 + 1e-6)


def test_a_gap_above_the_tolerance_is_warned_of_wherever_the_loss_began():
    X, y, qid, offset = saturated(queries=3)
    offset *= 50.0 / np.abs(offset).max()
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker = LinearRanker("exponential", alpha=1e-2).fit(X, y, qid, offset=offset)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert ranker.dual_gap_ <= ranker.tol or warned


@pytest.mark.parametrize("penalty", ["l1", "l2"])
def test_a_loss_that_vanishes_without_a_penalty_has_no_gap(penalty):
    X, q = a_set(features=12)
    ranker = LinearRanker("squared-hinge", penalty, alpha=0.0).fit(X, np.tile(np.arange(4.0), 3), q)
    assert ranker.objective_ < 1e-20
    assert ranker.dual_gap_ == 0.0


@pytest.mark.parametrize("solver", ["greedy", "corrective"])
def test_a_ball_in_which_the_loss_vanishes_is_certified_or_warned_of(solver):
    X, q = a_set(features=12)
    y = np.tile(np.arange(4.0), 3)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        ranker = FenchelRank(radius=100.0, solver=solver, max_iter=200).fit(X, y, q)
    warned = any(issubclass(w.category, ConvergenceWarning) for w in caught)
    assert (ranker.dual_gap_ <= ranker.tol) != warned


@pytest.mark.parametrize("unpenalised", [{"alpha": 0.0}, {"penalty_factors": np.zeros(3)}])
@pytest.mark.parametrize("solver", ["newton", "proximal"])
def test_a_model_without_a_penalty_is_the_optimum(solver, unpenalised):
    rng = np.random.default_rng(0)
    X, y, qid = rng.normal(size=(60, 3)), rng.integers(0, 3, 60), np.repeat(np.arange(6), 10)
    ranker = LinearRanker("logistic", solver=solver, tol=1e-3, **unpenalised).fit(X, y, qid)
    assert ranker.objective_ == pytest.approx(best_by_lbfgs(X, y, qid, 0.0, 0.0), rel=1e-3)


@pytest.mark.parametrize("loss", ["domination", "logistic"])
def test_the_objective_of_curves_is_that_of_the_returned_model(loss):
    X, y, qid, offset = saturated(queries=20)
    X, offset = (7.0 + X).astype(np.float32), offset / 100
    ranker = LinearRanker(loss, alpha=1e-3, curves=32).fit(X, y, qid, offset=offset)
    parts = get_loss(loss)
    plan = parts.prepare(Labels(y, np.arange(0, 201, 10)))
    scores = ranker.to_model().predict(X.astype(np.float64)) - offset
    value = parts.evaluate(plan, 0, 20, scores, np.zeros(200))
    value += ranker._make_penalty(1e-3, len(ranker.coef_)).value(ranker.coef_)
    assert ranker.objective_ == pytest.approx(value, rel=1e-13)
