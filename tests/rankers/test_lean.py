"""The default ranker: what it chooses, and by what."""

import pickle
from datetime import date
from decimal import Decimal
from itertools import pairwise

import numpy as np
import pandas as pd
import pytest
from scipy import sparse
from scipy.special import logsumexp
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import LeanRanker, evaluate
from leanrank.checks import ranker_checks
from leanrank.data import RankingData, dump
from leanrank.designs.ramp_columns import RampColumns
from leanrank.designs.ramps import ramp_design
from leanrank.errors import InputError
from leanrank.execution import Executor
from leanrank.losses.base import Labels
from leanrank.losses.listnet import SoftmaxLoss
from leanrank.rankers.lean_search import Search
from leanrank.rankers.lean_structure import (
    JUMP_RATIO,
    Settings,
    Structure,
    by_content,
    divided,
    rises,
    target_sizes,
)


def curved(n_queries=60, n=12, seed=0, n_noise=8, noise=0.3):
    """Return a set whose labels follow a hump of one feature and a step of another."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n_queries * n, 2 + n_noise))
    u = -2 * X[:, 0] ** 2 + 3 * (X[:, 1] > 0.3) + noise * rng.normal(size=len(X))
    y = np.digitize(u, np.quantile(u, [0.5, 0.8, 0.95])).astype(float)
    return RankingData(X, y, np.repeat(np.arange(n_queries), n))


@pytest.fixture(scope="module")
def data():
    return curved()


@pytest.fixture(scope="module")
def fitted(data):
    return LeanRanker(max_pairs=0).fit(data)


def loss_of(data, u):
    """Return the mean softmax loss, a query counting by the root of its total gain."""
    losses, weights = [], []
    for begin, end in pairwise(data.query_ptr):
        gain, s = 2.0 ** data.y[begin:end] - 1, u[begin:end]
        if gain.min() < gain.max():
            losses.append(logsumexp(s) - gain / gain.sum() @ s)
            weights.append(np.sqrt(gain.sum()))
    return np.average(losses, weights=weights)


def test_it_finds_the_two_features_and_ranks_well(data, fitted):
    front = {row["features"]: row for row in fitted.front_}
    assert set(fitted.resized(2).model_.indices) == {0, 1}
    assert fitted.score(curved(seed=1)) > 0.85
    assert front[2]["loss"] < front[1]["loss"]
    assert fitted.dual_gap_ <= 1e-6


def test_the_front_descends_and_another_size_is_one_call(data, fitted):
    sizes = [row["features"] for row in fitted.front_]
    assert sizes == sorted(set(sizes), reverse=True)
    small = fitted.resized(3)
    assert small.n_features_ <= 3
    asked = LeanRanker(3, max_pairs=0).fit(data)
    assert asked.model_.indices.tolist() == small.model_.indices.tolist()
    np.testing.assert_allclose(asked.predict(data), small.predict(data), atol=0.02)
    assert fitted.max_features is None  # the ranker itself is as it was


def test_the_final_model_is_the_optimum_of_the_stated_objective(data):
    """No small change of the learned curves lowers loss plus penalty."""
    ranker = LeanRanker(max_pairs=0, tol=1e-8).fit(data)
    u = ranker.predict(data)
    assert loss_of(data, u) < ranker.objective_ <= loss_of(data, 0 * u)
    for factor in (0.99, 1.01):  # the penalty is as many times as large
        penalty = ranker.objective_ - loss_of(data, u)
        assert loss_of(data, factor * u) + factor * penalty >= ranker.objective_ - 1e-9


def test_held_out_losses_are_those_of_a_model_of_the_other_queries(data):
    """One fold by hand: fit the other queries alone, with the same knots, and judge these."""
    held_out = np.arange(data.n_queries) % 5 == 0
    rows = np.repeat(held_out, np.diff(data.query_ptr))
    ramps = RampColumns.at_quantiles(data.X, 5).with_lines(data.X, 0.3)
    settings = Settings(0.5, None, None, np.array([1.0, 0.3, 0.1]), 0, 1e-9)

    def searched(part, folds):
        labels = Labels(part.y, part.query_ptr)
        design = ramp_design(part.X, ramps, Executor())
        loss = SoftmaxLoss(emphasis=0.5)
        structure = Structure(design, design.ramps)
        search = Search(part, labels, loss, {"curves": structure}, settings, Executor())
        search.divide(folds)
        return search

    search = searched(data, [held_out])
    found = search.path(search.kinds["curves"])
    losses, (w,) = found.losses, found.weights
    test, rest = (RankingData(data.X[r], data.y[r], data.qid[r]) for r in (rows, ~rows))
    scores = search.kinds["curves"].design.matvec(w)
    mean, _ = search.mean_and_error(losses)
    assert mean == pytest.approx(loss_of(test, scores[rows]), rel=1e-12)
    assert np.isnan(losses[~held_out]).all()
    alone = searched(rest, [])
    alone.fit_whole(alone.kinds["curves"], float(settings.strengths[found.position]))
    np.testing.assert_allclose(
        alone.kinds["curves"].design.matvec(alone.whole.w), scores[~rows], atol=1e-4
    )


def test_a_feature_is_as_strong_as_the_objective_rises_without_it(data):
    """By hand: the quadratic model on explicit columns; and nearly what another fit says."""
    ramps = RampColumns.at_quantiles(data.X, 3).with_lines(data.X, 0.3)
    design = ramp_design(data.X, ramps, Executor())
    structure = Structure(design, design.ramps).with_pairs([(0, 1), (1, 4)])
    settings = Settings(0.5, None, None, np.array([1.0, 0.3, 0.1, 0.03]), 2, 1e-10)
    labels, loss = Labels(data.y, data.query_ptr), SoftmaxLoss(emphasis=0.5)
    search = Search(data, labels, loss, {"curves": structure}, settings, Executor())
    search.fit_whole(structure, 0.03)
    part, w, n = search.whole, search.whole.w, data.n_features
    problem = part.problem(structure)
    found = rises(problem, structure, w)
    X = np.array([structure.design.matvec(column) for column in np.eye(len(w))]).T
    u, scale, hessian = X @ w, part.plan.scale, np.zeros((len(w), len(w)))
    for q, (begin, end) in enumerate(pairwise(data.query_ptr)):
        s = np.exp(u[begin:end] - logsumexp(u[begin:end]))
        Z = X[begin:end] - s @ X[begin:end]
        hessian += scale[q] / scale.sum() * (Z.T * s) @ Z
    terms = {j: [j] + [n + k for k, p in enumerate(structure.pairs) if j in p] for j in range(n)}
    exact = np.zeros(n)
    objective = part.solve(problem, settings.penalty(structure), 0.03, w).objective
    for j in np.flatnonzero(found):
        own = np.isin(structure.owner, terms[j])
        rest = ~own & (w != 0)
        forced = hessian[:, own] @ w[own]
        moved = np.linalg.lstsq(hessian[np.ix_(rest, rest)], forced[rest], rcond=1e-9)[0]
        rise = 0.5 * (w[own] @ forced[own] - moved @ forced[rest])
        assert found[j] == pytest.approx(rise, rel=1e-2)
        penalty = settings.penalty(structure, np.array([j]))
        again = part.solve(problem, penalty, 0.03, penalty.permitted(w))
        exact[j] = again.objective - objective
    assert len(np.flatnonzero(found)) > 3
    listed = search.weakest(problem, structure, w)
    assert listed == sorted(np.flatnonzero(found).tolist(), key=lambda j: found[j])
    weak = (exact > 0) & (exact < 0.01)
    assert weak.any()
    np.testing.assert_allclose(found[weak], exact[weak], rtol=0.5)
    assert np.argsort(exact)[-2:].tolist() == np.argsort(found)[-2:].tolist()


def test_of_two_features_that_say_the_same_one_leaves_first():
    """Each moves the scores more than the third does, but without it the other takes over."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(2_000, 3))
    X[:, 1] = X[:, 0] + 0.3 * rng.normal(size=2_000)
    u = X[:, 0] + X[:, 1] + 0.7 * X[:, 2] + rng.gumbel(size=2_000)
    y = np.digitize(u, np.quantile(u, [0.6, 0.85]))
    ranker = LeanRanker(2, max_pairs=0).fit(X, y, qid=np.repeat(np.arange(100), 20))
    full = ranker.front_models_[0].predict(X)
    moved = [
        np.std(full - ranker.front_models_[0].predict(X * (np.arange(3) != j))) for j in range(3)
    ]
    assert np.argmin(moved) == 2
    assert 2 in ranker.model_.indices


def test_same_seed_same_bits_on_any_number_of_threads_and_in_any_order_of_rows(data, fitted):
    two = LeanRanker(max_pairs=0, n_jobs=2).fit(data)
    assert two.model_ == fitted.model_.replace(provenance=two.model_.provenance)
    order = np.random.default_rng(5).permutation(len(data.y))
    frame = LeanRanker(max_pairs=0).fit(data.X[order], data.y[order], data.qid[order])
    np.testing.assert_allclose(frame.predict(data.X), fitted.predict(data.X), atol=1e-5)


def test_lines_are_kept_where_the_truth_is_linear():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(800, 6))
    u = X @ [1.0, -1.0, 0.5, 0.0, 0.0, 0.0] + 0.3 * rng.normal(size=800)
    y = np.digitize(u, np.quantile(u, [0.5, 0.8, 0.95])).astype(float)
    made = RankingData(X, y, np.repeat(np.arange(80), 10))
    told = []
    LeanRanker(max_pairs=0, callback=told.append).fit(made)
    losses = {entry["choice"]: entry["loss"] for entry in told}
    assert losses["lines"] < losses["curves"]


def test_gaps_have_a_value_of_their_own(data):
    X = data.X.copy()
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    ranker = LeanRanker(max_pairs=0).fit(X, data.y, data.qid)
    assert np.isfinite(ranker.predict(X)).all()
    assert ranker.score(X, data.y, data.qid) > 0.7


def test_a_rising_curve_rises(data):
    ranker = LeanRanker(max_pairs=0, monotone={1: 1, 0: -1}).fit(data)
    X = np.zeros((50, data.n_features))
    X[:, 1] = np.linspace(-3, 3, 50)
    assert (np.diff(ranker.predict(X)) >= 0).all()
    X = np.zeros((50, data.n_features))
    X[:, 0] = np.linspace(-3, 3, 50)
    assert (np.diff(ranker.predict(X)) <= 0).all()


def test_costs_and_factors_are_respected(data):
    cheap = LeanRanker(max_pairs=0, costs={0: 5.0, 1: 1.0}, max_cost=2.0).fit(data)
    assert 0 not in cheap.model_.indices
    without = LeanRanker(max_pairs=0, penalty_factors={1: np.inf}).fit(data)
    assert 1 not in without.model_.indices
    with pytest.raises(InputError, match="max_cost"):
        LeanRanker(max_pairs=0, costs=dict.fromkeys(range(10), 5.0), max_cost=1.0).fit(data)


def test_wide_sparse_data_get_weights():
    rng = np.random.default_rng(0)
    X = sparse.random(600, 2_000, 0.02, format="lil", random_state=1)
    X[:, 7] = rng.random((600, 1))
    y = (X[:, [7]].toarray()[:, 0] > 0.6).astype(float)
    ranker = LeanRanker(10).fit(X.tocsr(), y, np.repeat(np.arange(60), 10))
    assert ranker.model_.is_linear
    assert 7 in ranker.model_.indices
    assert ranker.n_features_ <= 10
    gaps = X.tocsr()
    gaps.data[3] = np.nan
    with pytest.raises(InputError, match="NaN"):  # a weight has no value for a gap
        LeanRanker(10).fit(gaps, y, np.repeat(np.arange(60), 10))


def test_one_query_cannot_be_divided_and_that_is_said(data):
    rows = slice(0, 12)
    with pytest.warns(UserWarning, match="held out"):
        ranker = LeanRanker(max_pairs=0).fit(data.X[rows], data.y[rows])
    assert ranker.front_[0].keys() == {"features", "pairs"}


def test_any_loss_and_weights_instead_of_curves(data):
    ranker = LeanRanker(loss="domination", max_pairs=0).fit(data)
    assert ranker.score(data) > 0.8
    lines = LeanRanker(curves=None).fit(data)
    assert lines.model_.is_linear


def test_columns_of_a_frame_keep_their_names_and_dates_are_refused(data):
    frame = pd.DataFrame(data.X, columns=[f"c{j}" for j in range(data.n_features)])
    ranker = LeanRanker(max_pairs=0).fit(frame, data.y, qid=data.qid)
    assert {"c0", "c1"} <= set(ranker.model_.weights)
    frame["when"] = pd.Timestamp("2026-01-01")
    frame["kind"] = "a"
    with pytest.raises(InputError, match=r"'when'.*age in days"):
        LeanRanker().fit(frame, data.y, qid=data.qid)


def test_numbers_and_dates_that_a_frame_holds_as_objects_are_no_categories(data):
    frame = pd.DataFrame(data.X, columns=[f"c{j}" for j in range(data.n_features)])
    expected = LeanRanker(max_pairs=0).fit(frame, data.y, qid=data.qid).predict(frame)
    for made in (float, lambda v: Decimal(repr(float(v)))):
        other = frame.assign(c0=[made(v) for v in frame["c0"]]).astype({"c0": object})
        ranker = LeanRanker(max_pairs=0).fit(other, data.y, qid=data.qid)
        np.testing.assert_array_equal(ranker.predict(other), expected)
        np.testing.assert_array_equal(ranker.model_.predict(other), expected)
    frame["c0"] = pd.Series([date(2026, 1, 1 + at % 28) for at in range(len(frame))], dtype=object)
    with pytest.raises(InputError, match=r"'c0'.*age in days"):
        LeanRanker().fit(frame, data.y, qid=data.qid)
    numbered = pd.DataFrame(data.X).astype({0: object})
    numbered[data.n_features] = np.where(data.X[:, 0] > 0, "a", "b")
    ranker = LeanRanker(max_pairs=0).fit(numbered, data.y, qid=data.qid)
    assert list(ranker.feature_names_in_[:2]) == ["0", "1"]


def test_linear_gains_of_clicks(data):
    clicks = (data.y > 1).astype(float) / 0.5
    ranker = LeanRanker(gain="linear", max_pairs=0).fit(data.X, clicks, data.qid)
    assert evaluate(data, ranker.predict(data)).means["ndcg@10"] > 0.7
    with pytest.raises(InputError, match="negative"):
        LeanRanker(gain="linear").fit(data.X, clicks - 1.0, data.qid)


def test_it_is_cloned_and_pickled(data, fitted):
    assert clone(fitted).get_params() == fitted.get_params()
    again = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(again.predict(data), fitted.predict(data))


@pytest.mark.parametrize(
    ("bad", "named"),
    [
        ({"max_features": 0}, "max_features"),
        ({"max_pairs": -1}, "max_pairs"),
        ({"n_folds": 0}, "n_folds"),
        ({"min_strength": 2.0}, "min_strength"),
        ({"loss": "soft"}, "softmax"),
        ({"loss": "hinge"}, "'hinge'"),
        ({"loss": "domination", "gain": "linear"}, "gain"),
        ({"monotone": {0: 2}}, "monotone"),
        ({"max_pairs": "all"}, "auto"),
        ({"penalty_factors": [1.0]}, "penalty_factors"),
        ({"costs": {"nope": 1.0}, "max_cost": 1.0}, "nope"),
    ],
)
def test_bad_parameters_are_named(data, bad, named):
    with pytest.raises(InputError, match=named):
        LeanRanker(**bad).fit(data)


def test_sizes_end_at_one():
    assert target_sizes(1) == [1]
    assert target_sizes(3) == [3, 2, 1]


def shop(n=1_500, seed=0):
    """Return a frame whose labels follow a category, a flag and a product of two features."""
    rng = np.random.default_rng(seed)
    frame = pd.DataFrame(
        {
            "bm25": rng.gamma(2, 3, n),
            "age": rng.exponential(100, n),
            "lang": rng.choice(["de", "en", "fr", None], n),
            "new": rng.random(n) < 0.2,
        }
    )
    frame.loc[:3, "lang"] = ["rare", "odd", "rare", "odd"]
    u = 0.2 * frame.bm25 * (frame.age < 70) + (frame.lang == "en") + 0.8 * frame.new
    y = np.digitize(u, np.quantile(u, [0.5, 0.8, 0.95]))
    return frame, y, np.repeat(np.arange(n // 15), 15)


@pytest.fixture(scope="module")
def shopped():
    frame, y, qid = shop()
    return LeanRanker().fit(frame, y, qid=qid)


def test_texts_are_categories_and_the_model_scores_the_frame(shopped, tmp_path):
    frame, y, qid = shop(seed=1)
    table = shopped.model_.curves[2]
    values = dict(zip(table.levels, table.values, strict=True))
    assert values["en"] > max(values["de"], values["fr"])
    assert values["rare"] == values["odd"]  # too few documents for values of their own
    assert shopped.score(frame, y, qid) > 0.9
    shopped.save(tmp_path / "m.json")
    from leanrank import load_model

    np.testing.assert_array_equal(
        load_model(tmp_path / "m.json").predict(frame), shopped.predict(frame)
    )
    unseen = frame.assign(lang="xx")
    assert np.isfinite(shopped.predict(unseen)).all()


def test_the_true_pair_is_the_strongest_surface(shopped):
    shares = {pair: np.ptp(surface.values) for pair, surface in shopped.model_.surfaces.items()}
    assert max(shares, key=shares.get) == (0, 1)
    explained = shopped.explain(shop()[0].iloc[:15])
    assert "bm25 × age" in str(explained.why(0, 1))


def test_a_model_with_surfaces_scores_as_its_columns_do(shopped):
    """The exported grid and the columns that were fitted are the same function."""
    frame, y, qid = shop()
    scores = shopped.predict(frame)
    assert loss_of(RankingData(np.zeros((len(y), 1)), y, qid), scores) < shopped.objective_
    parts = shopped.explain(frame, qid)
    np.testing.assert_allclose(np.sum(parts.contributions, axis=1), scores, atol=1e-9)


def test_no_pairs_where_the_truth_has_none():
    """With noise; labels that are steps of a sum without any are no sum to a softmax."""
    told = []
    kept = []
    for seed in range(3):
        ranker = LeanRanker(callback=told.append).fit(curved(seed=seed, n_noise=3, noise=2.0))
        kept.append(ranker.front_[0]["pairs"])
    assert kept == [0, 0, 0]
    assert any(entry["choice"] == "pairs" for entry in told)


def test_numbers_may_be_names():
    rng = np.random.default_rng(0)
    kind = rng.integers(0, 6, 1_200).astype(float)
    y = np.isin(kind, (1, 4)).astype(float)
    X = np.column_stack((kind * 10, rng.normal(size=1_200)))
    ranker = LeanRanker(categories=[0]).fit(X, y, np.repeat(np.arange(80), 15))
    table = ranker.model_.curves[0]
    best = sorted(zip(table.values, table.levels, strict=True))[-2:]
    assert {level for _, level in best} == {10.0, 40.0}
    assert ranker.score(X, y, np.repeat(np.arange(80), 15)) > 0.99


def test_a_pair_with_a_monotone_feature_is_left_out():
    frame, y, qid = shop()
    ranker = LeanRanker(monotone={"bm25": 1}).fit(frame, y, qid=qid)
    assert all(0 not in pair for pair in ranker.model_.surfaces)


@pytest.mark.filterwarnings("ignore:LeanRanker:UserWarning")
@pytest.mark.parametrize("check", ranker_checks(), ids=lambda c: c.__name__)
def test_the_battery(check):
    many_fits = check.__name__ == "check_ranker_is_the_same_on_any_number_of_threads"
    check(LeanRanker(n_folds=2) if many_fits else LeanRanker())  # five would take ten seconds


BY_DOCUMENTS = "knots are quantiles of the documents, whatever their weights"


@pytest.mark.filterwarnings("ignore:LeanRanker:UserWarning")
@parametrize_with_checks(
    [LeanRanker()],
    expected_failed_checks=lambda _: {
        "check_sample_weight_equivalence_on_dense_data": BY_DOCUMENTS,
        "check_sample_weight_equivalence_on_sparse_data": BY_DOCUMENTS,
    },
)
def test_scikit_learns_battery(estimator, check):
    check(estimator)


def test_importances_are_spreads_within_queries(data, fitted):
    parts = fitted.explain(data).contributions
    spread = np.zeros(data.n_features)
    for term, column in zip(fitted.model_.terms, np.asarray(parts).T, strict=True):
        means = np.add.reduceat(column, data.query_ptr[:-1]) / np.diff(data.query_ptr)
        spread[term[0]] = np.std(column - np.repeat(means, np.diff(data.query_ptr)))
    np.testing.assert_allclose(fitted.feature_importances_, spread, atol=1e-9)


def test_a_feature_that_is_the_label_is_named(data):
    frame = pd.DataFrame(data.X[:, :2], columns=["a", "b"]).assign(same=data.y)
    with pytest.warns(UserWarning, match="'same' is the label itself"):
        LeanRanker(max_pairs=0).fit(frame, data.y, qid=data.qid)


@pytest.mark.parametrize("kind", ["pandas", "polars"])
def test_columns_given_as_labels_and_queries_are_no_features(data, kind):
    frame = pd.DataFrame(data.X[:, :3], columns=["a", "b", "c"])
    expected = LeanRanker(max_pairs=0).fit(frame, data.y, qid=data.qid).predict(frame)
    frame = frame.assign(grade=data.y, query=[f"q{q}" for q in data.qid])
    if kind == "polars":
        frame = pytest.importorskip("polars").from_pandas(frame)
    ranker = LeanRanker(max_pairs=0).fit(frame, frame["grade"], qid=frame["query"])
    assert list(ranker.feature_names_in_) == ["a", "b", "c"]
    np.testing.assert_array_equal(ranker.predict(frame), expected)
    np.testing.assert_array_equal(ranker.predict(frame[["a", "b", "c"]]), expected)
    assert ranker.score(frame, frame["grade"], frame["query"]) > 0.5
    assert len(ranker.explain(frame, frame["query"]).contributions) == len(frame)


def test_a_column_with_the_name_of_the_labels_is_left_out_and_named(data):
    frame = pd.DataFrame(data.X[:, :2], columns=["a", "b"]).assign(grade=data.y)
    with pytest.warns(UserWarning, match="'grade'"):
        ranker = LeanRanker(max_pairs=0).fit(frame, frame["grade"] > 1, qid=data.qid)
    assert list(ranker.feature_names_in_) == ["a", "b"]


def test_a_column_of_the_query_changes_the_weight_of_a_feature():
    rng = np.random.default_rng(0)
    kind = np.repeat(rng.integers(0, 2, 300), 10)
    X = rng.normal(size=(3_000, 3))
    truth = np.where(kind == 1, X[:, 0], X[:, 1])
    y = np.digitize(truth + 0.3 * rng.normal(size=3_000), [0.0, 1.0])
    X = np.column_stack((X, kind))
    qid = np.repeat(np.arange(300), 10)
    ranker = LeanRanker().fit(X[:2_000], y[:2_000], qid[:2_000])
    assert {(0, 3), (1, 3)} <= set(ranker.model_.surfaces)
    assert 3 not in ranker.model_.curves
    alone = LeanRanker(max_pairs=0).fit(X[:2_000], y[:2_000], qid[:2_000])
    test = X[2_000:], y[2_000:], qid[2_000:]
    assert ranker.score(*test) > alone.score(*test) + 0.05


def test_without_heredity_pairs_of_features_without_a_curve_are_found():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(6_000, 6))
    y = np.digitize(X[:, 0] + X[:, 1] * X[:, 2] + 0.2 * rng.normal(size=6_000), [0.0, 1.0])
    qid = np.repeat(np.arange(300), 20)
    free = LeanRanker(heredity=False, max_pairs=3).fit(X, y, qid)
    assert (1, 2) in free.model_.surfaces


def test_equal_factors_are_no_factors():
    frame, y, qid = shop()
    plain, five = (
        LeanRanker(penalty_factors=factors).fit(frame[["bm25", "age"]], y, qid=qid)
        for factors in (None, [5.0, 5.0])
    )
    np.testing.assert_allclose(
        five.predict(frame[["bm25", "age"]]), plain.predict(frame[["bm25", "age"]]), atol=1e-3
    )


def test_a_file_on_disk_gives_the_bits_of_memory(data, fitted, tmp_path):
    pytest.importorskip("pyarrow")
    dump(data, tmp_path / "data.arrow")
    mapped = RankingData.open(tmp_path / "data.arrow")
    assert LeanRanker(max_pairs=0).fit(mapped).model_ == fitted.model_


def test_documents_on_dask_have_the_optimum_of_memory(data):
    dd = pytest.importorskip("dask.dataframe")
    distributed = pytest.importorskip("distributed")
    names = [f"x{j}" for j in range(data.n_features)]
    frame = pd.DataFrame(data.X, columns=names).assign(y=data.y, qid=data.qid)
    settings = {"n_strengths": 2, "min_strength": 0.02, "tol": 1e-10}  # so that both choose 0.02
    here = LeanRanker(**settings, max_pairs=0, n_folds=1)
    here.fit(frame[names], frame["y"], qid=frame["qid"])
    local = {"processes": False, "dashboard_address": "127.0.0.1:0", "n_workers": 1}
    with distributed.LocalCluster(**local) as cluster, distributed.Client(cluster):
        parts = dd.from_pandas(frame, npartitions=3, sort=False)
        there = LeanRanker(**settings).fit(parts[names], parts["y"], qid=parts["qid"])
        scores = there.predict(parts[names]).compute()
        with pytest.raises(InputError, match="max_pairs"):
            LeanRanker(max_pairs=3).fit(parts[names], parts["y"], qid=parts["qid"])
    assert there.strength_ == here.strength_ < 0.03
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-9)
    np.testing.assert_allclose(scores, here.predict(frame[names]), atol=1e-4)
    losses = {row["features"]: row["loss"] for row in there.front_}
    assert losses[2] < losses[1]
    assert there.resized(2).n_features_ == 2


def test_a_sum_cut_into_levels_has_no_pairs():
    rng = np.random.default_rng(3)
    X = rng.normal(size=(1_600, 6))
    u = X[:, 0] + 1.5 * np.minimum(X[:, 1], 0) + 0.7 * X[:, 2] + rng.normal(size=1_600)
    y = np.digitize(u, np.quantile(u, [0.6, 0.8, 0.93]))
    told = []
    ranker = LeanRanker(callback=told.append).fit(X, y, qid=np.repeat(np.arange(80), 20))
    assert [each["choice"] for each in told] == ["curves", "jumps", "lines", "pairs"]
    assert not ranker.model_.surfaces


def test_small_models_look_for_pairs_among_their_own_features():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(4_000, 9))
    noise = rng.gumbel(size=4_000)
    u = X @ np.linspace(1.0, 0.4, 9) + 1.5 * X[:, 0] * X[:, 1] + 0.4 * X[:, 0] * X[:, 2] + noise
    best = u.reshape(-1, 20).argmax(axis=1)
    y = (np.tile(np.arange(20), 200) == np.repeat(best, 20)).astype(int)
    ranker = LeanRanker(max_pairs=1, random_state=1).fit(X, y, qid=np.repeat(np.arange(200), 20))
    assert list(ranker.model_.surfaces) == [(0, 1)]
    assert {row["pairs"] for row in ranker.front_ if row["features"] > 1} == {1}


def test_many_documents_need_one_held_out_part():
    informative = np.ones(1_200, dtype=bool)
    for per_query, n_folds in ((2, 5), (84, 1)):
        n = 1_200 * per_query
        X, y = np.zeros((n, 1)), np.arange(n) % 2
        data = RankingData(X, y, np.repeat(np.arange(1_200), per_query))
        assert len(divided(data, informative, "auto", 0)) == n_folds


def test_a_jump_is_a_rise_in_few_segments():
    """A norm of each curve alone would spread the rise over all of its segments."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(1_600, 8))
    u = 2.0 * (X[:, 0] > 0.5) + 2.0 * (X[:, 1] > 0.0) + rng.normal(size=1_600)
    y, qid = np.digitize(u, np.quantile(u, [0.6, 0.85])), np.repeat(np.arange(80), 20)
    told = []
    ranker = LeanRanker(2, max_pairs=0, callback=told.append).fit(X, y, qid=qid)
    losses = {entry["choice"]: entry["loss"] for entry in told}
    assert losses["jumps"] < losses["curves"] < losses["lines"]
    assert ranker.model_.provenance["training"]["group_ratio"] == JUMP_RATIO
    for feature, step in ((0, 0.5), (1, 0.0)):
        at = ranker.model_.curves[feature](np.array([-2.0, step - 0.15, step + 0.15, 2.0]))
        assert at[2] - at[1] > 0.85 * (at[3] - at[0]) > 0.0
    before = ranker.objective_
    ranker.refit(X, y, qid=qid)  # at the same share of the norm: the same optimum
    assert ranker.objective_ == pytest.approx(before, rel=1e-5)
    smooth = LeanRanker(2, max_pairs=0, group_ratio=0.5).fit(X, y, qid=qid)
    assert np.ptp(smooth.model_.curves[0](np.array([-2.0, -0.1]))) > 0.01


def test_a_model_is_exported_and_verified_from_python(fitted, data):
    assert "CREATE" in fitted.model_.export("sql:sqlite")
    found = fitted.model_.verify("sql:sqlite", data)
    assert found.bit_equal == found.documents


def test_infinity_in_a_frame_with_texts_is_named_by_its_column():
    frame = pd.DataFrame({"price": [1.0, np.inf, 2.0, 3.0], "kind": list("abab")})
    with pytest.raises(InputError, match="infinity in feature 'price'"):
        LeanRanker().fit(frame, [0, 1, 0, 1], qid=[0, 0, 1, 1])


@pytest.mark.parametrize("form", ["dense", "texts", "lines"])
def test_choices_on_a_sample_are_fitted_to_all_documents(form, monkeypatch):
    monkeypatch.setattr("leanrank.rankers.lean_structure.CHOOSING_DOCUMENTS", 900)
    data = curved(200)
    X = pd.DataFrame(data.X.copy(), columns=[f"f{j}" for j in range(data.n_features)])
    options = {"tol": 1e-9}
    options["max_pairs"] = 0 if form == "lines" else 4
    if form == "lines":
        options["curves"] = None
    else:
        X.loc[X.index[-9:], "f2"] = np.nan  # where few samples look
    if form == "texts":
        X["shop"] = np.where(data.X[:, 5] > 0.4, "near", "far")
    ranker = LeanRanker(**options).fit(X, data.y, qid=data.qid)
    assert ranker.dual_gap_ <= 1e-9
    u = ranker.predict(X)
    if form != "lines":
        np.testing.assert_allclose(ranker.model_.predict(X), u)
        assert {0, 1} <= set(ranker.model_.indices.tolist())
    loss = loss_of(data, u)
    assert loss < ranker.objective_
    for factor in (0.99, 1.01):  # of all documents, not of those that chose
        penalty = ranker.objective_ - loss
        assert loss_of(data, factor * u) + factor * penalty >= ranker.objective_ - 1e-9
    backwards = np.arange(len(data))[::-1]
    turned = LeanRanker(**options, n_jobs=1).fit(
        X.iloc[backwards], data.y[backwards], qid=data.qid[backwards]
    )
    assert turned.front_[0]["features"] == ranker.front_[0]["features"]
    np.testing.assert_allclose(turned.predict(X), u, atol=1e-5)


def test_features_without_which_held_out_loss_falls_clearly_leave():
    """Products of neighbours, and fifteen features that are noise beside them."""
    rng = np.random.default_rng(3)
    X = rng.normal(size=(2_000, 20))
    u = 0.5 * X[:, :5].sum(axis=1) + (X[:, :4] * X[:, 1:5]).sum(axis=1)
    y = np.digitize(u + 0.5 * rng.normal(size=len(u)), [0.0, 2.0, 4.0]).astype(float)
    ranker = LeanRanker().fit(X, y, qid=np.repeat(np.arange(100), 20))
    losses = [row["loss"] for row in ranker.front_]
    assert ranker.front_[0]["features"] > ranker.n_features_ >= 5
    assert losses[0] > losses[[row["features"] for row in ranker.front_].index(ranker.n_features_)]
    assert set(range(5)) <= set(ranker.model_.indices.tolist())
    most = ranker.front_[0]["features"]
    assert ranker.resized(most).n_features_ == most


def test_a_sample_keeps_limits_and_counts_informative_documents(monkeypatch):
    monkeypatch.setattr("leanrank.rankers.lean_structure.CHOOSING_DOCUMENTS", 300)
    monkeypatch.setattr("leanrank.rankers.lean_structure.FEWEST_QUERIES", 20)
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(3_000, 20)), np.repeat(np.arange(300), 10)
    y = np.digitize(X @ rng.normal(size=20) + rng.normal(size=3_000), [0.0, 2.0]).astype(float)
    ranker = LeanRanker(max_features=12, curves=None, max_pairs=0).fit(X, y, qid=qid)
    training = ranker.model_.provenance["training"]
    assert ranker.n_features_ <= training["held_out"]["features"] <= 12
    assert ranker.front_models_[0].provenance["training"]["dual_gap"] <= 1e-4
    silent = np.vstack((X, rng.normal(size=(1_000, 20)))), np.append(y, np.zeros(1_000))
    more = LeanRanker(max_features=12, curves=None, max_pairs=0)
    more.fit(*silent, qid=np.append(qid, np.repeat(np.arange(300, 400), 10)))
    assert more.strength_ == ranker.strength_


def test_a_sample_has_enough_queries_and_the_order_of_rows_with_gaps_does_not_matter(monkeypatch):
    monkeypatch.setattr("leanrank.rankers.lean_structure.CHOOSING_DOCUMENTS", 250)
    rng = np.random.default_rng(1)
    X = rng.normal(size=(1_200, 4))
    y = np.digitize(X[:, 0] + rng.normal(size=1_200), [0.0, 1.0]).astype(float)
    ranker = LeanRanker(max_pairs=0).fit(X, y, qid=np.repeat(np.arange(4), 300))
    assert "loss" in ranker.front_[0]  # all four queries choose, no query alone
    X[:, 3] = np.nan
    data = RankingData(X, y, np.repeat(np.arange(300), 4))
    order = rng.permutation(300)
    turned = data.queries[order]
    informative = np.ones(300, dtype=bool)
    assert np.array_equal(order[by_content(turned, informative)], by_content(data, informative))


def test_a_query_that_is_drawn_twice_counts_twice(data):
    drawn = data.queries[np.sort(np.random.default_rng(0).integers(60, size=60))]
    assert len(set(drawn.query_ids)) < drawn.n_queries
    own = RankingData(drawn.X, drawn.y, np.repeat(np.arange(60), np.diff(drawn.query_ptr)))
    twice, apart = (LeanRanker(max_features=4, max_pairs=3).fit(each) for each in (drawn, own))
    assert twice.front_ == apart.front_
    assert twice.predict(data).tobytes() == apart.predict(data).tobytes()
