"""Rankers that learn a curve per feature."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning

from leanrank import LinearRanker, RampFeatures, load_model
from leanrank.data.ranking_data import RankingData
from leanrank.designs.ramps import ramp_design
from leanrank.errors import InputError
from leanrank.execution import Executor
from leanrank.online import OnlineRanker
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.rankers import DominationRanker, ListNet, MinBatSRank, RankNet, RankRLS, RankSVM
from leanrank.selection import cross_validate_path

NAMES = ("full", "age", "gap", "noise1", "noise2")


def bent(n=600, seed=0, names=NAMES):
    """Relevance saturates in the first feature, peaks in the second, and prefers gaps."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, 5))
    X[:, 0] = 1000.0 * rng.exponential(size=n)
    X[rng.random(n) < 0.3, 2] = np.nan
    score = np.minimum(X[:, 0] / 500.0, 1.0) - np.abs(X[:, 1]) + np.isnan(X[:, 2])
    y = np.digitize(score + 0.3 * rng.normal(size=n), [-0.5, 0.5, 1.0])
    return RankingData(X, y, np.arange(n) // 12, feature_names=names)


SYSTEMS = [
    DominationRanker(alpha=0.02),
    RankSVM(alpha=0.02, l1_ratio=1.0),
    RankSVM(alpha=0.01, l1_ratio=0.8),
    RankNet(alpha=0.01, l1_ratio=1.0),
    ListNet(alpha=0.02),
    LinearRanker("logistic", "l1", alpha=0.02),
]


@pytest.mark.parametrize("system", SYSTEMS, ids=repr)
def test_curves_find_what_lines_cannot(system):
    train, test = bent(), bent(seed=1)
    ranker = clone(system).set_params(curves=6).fit(train)
    line = clone(system).fit(train.replace(X=np.nan_to_num(train.X) * [1e-3, 1, 1, 1, 1]))
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.score(test) > 0.05 + line.score(
        test.replace(X=np.nan_to_num(test.X) * [1e-3, 1, 1, 1, 1])
    )
    assert {"full", "age", "gap"} <= set(ranker.curves_)
    assert ranker.n_features_ == len(ranker.curves_)
    assert ranker.sparsity_ == ranker.n_features_ / 5
    assert ranker.to_model().n_nonzero == ranker.n_features_
    assert ranker.curves_["gap"].missing > ranker.curves_["gap"](np.zeros(1))[0]


@pytest.mark.parametrize("kind", ["dense64", "dense32", "sparse64"])
def test_model_file_design_and_ranker_give_the_same_scores(kind, tmp_path):
    train = bent()
    X = train.X.astype(np.float32) if kind == "dense32" else train.X
    train = train.replace(X=csr_array(X) if kind == "sparse64" else X)
    ranker = DominationRanker(alpha=0.01, curves=5).fit(train)
    scores = ranker.predict(train)
    design = ramp_design(train.X, ranker.ramps_, Executor())
    close = 1e-5 if kind == "dense32" else 1e-12
    assert np.allclose(design.matvec(ranker.coef_), scores, rtol=0, atol=close)
    ranker.save(tmp_path / "model.json")
    model = load_model(tmp_path / "model.json")
    assert np.array_equal(model.predict(train), scores)
    assert model.n_nonzero == ranker.n_features_
    assert np.allclose(model.explain(train).contributions.sum(axis=1), scores)


def test_units_make_no_difference_and_no_warning(recwarn):
    train = bent()
    scaled = train.replace(X=train.X * [1e-6, 1.0, 1e9, 1.0, 1.0] + [0, 0, 0, 5.0, 0])
    one, other = (DominationRanker(alpha=0.02, curves=6).fit(data) for data in (train, scaled))
    assert np.allclose(one.predict(train), other.predict(scaled), atol=1e-5)
    assert not [w for w in recwarn if "units" in str(w.message)]


@pytest.mark.parametrize("direction", [1, -1])
def test_monotone_curves_never_turn(direction):
    train = bent()
    free = DominationRanker(alpha=0.005, curves=8).fit(train)
    rises = np.diff(free.curves_["age"].heights)
    assert (rises > 0).any()
    assert (rises < 0).any()
    given = {"age": direction, 0: 1}
    ranker = DominationRanker(alpha=0.005, curves=8, monotone=given).fit(train)
    x = np.linspace(-4, 4, 500)
    if "age" in ranker.curves_:
        assert np.all(direction * np.diff(ranker.curves_["age"](x)) >= 0)
    assert np.all(np.diff(ranker.curves_["full"](1000 * np.sort(np.abs(x)))) >= 0)
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.objective_ >= free.objective_ * (1 - 1e-6)


def test_knots_may_be_given_by_feature():
    train = bent()
    given = DominationRanker(alpha=0.01, curves={"age": [-1.0, 0.0, 1.0], 0: 3}).fit(train)
    assert given.ramps_.knots[1].tolist() == [-1.0, 0.0, 1.0]
    assert len(given.ramps_.knots[0]) == 4
    auto = DominationRanker(alpha=0.01, curves="auto").fit(train)
    for at in (2, 3, 4):
        assert np.array_equal(given.ramps_.knots[at], auto.ramps_.knots[at])
    columns = RampFeatures({"age": [-1.0, 0.0, 1.0], 0: 3}).fit(train)
    assert all(map(np.array_equal, columns.ramps_.knots, given.ramps_.knots))
    low, middle, high, beyond = given.curves_["age"](np.array([-1.0, 0.0, 1.0, 5.0]))
    assert middle - max(low, high) > 0.5
    assert beyond == high


def test_monotone_may_be_one_number_for_all_and_leaves_gaps_free():
    ranker = DominationRanker(alpha=0.005, curves=4, monotone=-1).fit(bent())
    ramps = ranker.ramps_
    assert np.all(ranker.coef_[~ramps.is_gap] <= 0.0)
    assert ranker.coef_[ramps.is_gap].max() > 0.0


def test_path_counts_features_and_measures_each_model():
    train, vali = bent(), bent(seed=1)
    ranker = DominationRanker(curves=5)
    path = ranker.path(train, n_alphas=12, validation=vali)
    assert path.n_selected[0] == 0
    assert np.all(path.n_selected <= 5)
    assert path.n_features == 5
    assert path.dual_gaps.max() <= 1e-6
    at = path.best()
    again = DominationRanker(alpha=float(path.alphas[at]), curves=5).fit(train)
    assert np.isclose(again.score(vali), path.measures["ndcg@10"][at], atol=1e-3)
    assert path.model(at).n_nonzero == path.n_selected[at] == again.n_features_
    assert path.weights.shape == (12, 5)
    assert np.array_equal((path.weights != 0).sum(axis=1), path.n_selected)
    assert "of 5 features" in repr(path)


def test_alpha_max_is_where_the_first_feature_enters():
    train = bent()
    for ratio in (0.0, 0.5, 1.0):
        ranker = DominationRanker(curves=5, group_ratio=ratio)
        top = ranker.alpha_max(train)
        with pytest.warns(match="without features"):
            assert ranker.set_params(alpha=1.001 * top).fit(train).n_features_ == 0
        assert ranker.set_params(alpha=0.98 * top).fit(train).n_features_ == 1


def test_group_ratio_makes_a_model_of_fewer_features():
    counts = {}
    for ratio in (0.0, 1.0):
        path = DominationRanker(curves=8, group_ratio=ratio, tol=1e-5).path(bent(), n_alphas=15)
        weights = [path.ramps.used(w).size for w in path.coefs]
        pieces = (path.coefs != 0).sum(axis=1)
        counts[ratio] = np.sum(weights) / np.sum(pieces)
    assert counts[1.0] < counts[0.0]


def test_penalty_factors_are_by_feature():
    factors = {"full": np.inf, "noise1": 0.0}
    ranker = DominationRanker(alpha=0.02, curves=4, penalty_factors=factors).fit(bent())
    assert "full" not in ranker.curves_
    assert "noise1" in ranker.curves_


def test_groups_of_features_enter_together():
    groups = ["a", "a", "b", "c", "c"]
    ranker = LinearRanker(
        "domination", "groups", groups=groups, group_ratio=1.0, alpha=0.05, curves=4
    ).fit(bent())
    assert {"full", "age"} <= set(ranker.curves_)


def test_ridge_alone_needs_no_groups():
    ranker = RankSVM(alpha=0.1, curves=4).fit(bent())
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.n_features_ == 5
    unit = ranker._make_penalty(1.0, len(ranker.coef_))
    assert isinstance(unit, ElasticNet)
    hinge = RankSVM(alpha=0.1, curves=4, loss="hinge", tol=1e-3).fit(bent())
    assert hinge.dual_gap_ <= 1e-3


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        ({"monotone": {"age": 1}}, "monotone has no effect with curves=None"),
        ({"curves": 3, "signs": 1}, "use monotone"),
        ({"curves": 0}, "curves=0"),
        ({"curves": "many"}, "'many' is not known"),
        ({"curves": 2.5}, "curves=2.5 must be"),
        ({"curves": 5000}, "at most 1,000"),
        ({"curves": {"agee": 3}}, "did you mean 'age'"),
        ({"curves": {"age": [1.0, 0.0]}}, "each larger than the one before"),
        ({"curves": {"age": [0.0, np.inf]}}, "finite numbers"),
        ({"curves": {"age": [1.0]}}, "give 2 to 1,001"),
        ({"curves": {"age": ["a", "b"]}}, "knots of the feature 'age' holds something"),
        ({"curves": {"age": [[0.0, 1.0]]}}, "knots of the feature 'age' cannot be used"),
        ({"curves": {"age": "many"}}, "'many' is not known"),
        ({"curves": {"age": 2.5}}, "curves=2.5"),
        ({"curves": 3, "monotone": {"agee": 1}}, "did you mean 'age'"),
        ({"curves": 3, "monotone": {"age": 2}}, "never rises"),
        ({"curves": 3, "monotone": [1, 1]}, "monotone must be 5"),
        ({"curves": 3, "groups": list("abcde")}, "groups has no effect"),
        ({"curves": 3, "penalty": "groups", "groups": [1]}, "one group per feature"),
        ({"curves": 3, "l1_ratio": 0.0, "group_ratio": 0.3}, "group_ratio has no effect"),
        ({"curves": 3, "solver": "bound-cd"}, "leave curves out"),
        ({"curves": 3, "penalty": ElasticNet.build(1.0, 1.0, 5)}, "name the penalty"),
        ({"group_ratio": 0.3}, "group_ratio has no effect"),
    ],
)
def test_what_has_no_effect_or_no_meaning_is_refused(settings, text):
    train = bent() if settings.get("curves") else bent().replace(X=np.zeros((600, 5)))
    with pytest.raises(InputError, match=text):
        DominationRanker(**settings).fit(train)


def test_infinity_is_refused_and_missing_values_only_where_training_had_some():
    train = bent()
    infinite = train.replace(X=np.where(np.isnan(train.X), np.inf, train.X))
    with pytest.raises(InputError, match="infinity in feature 'gap'"):
        DominationRanker(curves=3).fit(infinite)
    full = train.replace(X=np.nan_to_num(train.X))
    ranker = DominationRanker(alpha=0.01, curves=3).fit(full)
    with pytest.raises(InputError, match="full"):
        ranker.predict(full.replace(X=np.full((600, 5), np.nan)))
    ranker.fit(train)
    gaps = train.replace(X=np.full((600, 5), np.nan))
    assert np.isfinite(ranker.predict(gaps)).all()


def with_outlier(value):
    """Few documents without gaps, and one value far from all others."""
    train = bent(120)
    X = np.nan_to_num(train.X)
    X[7, 0] = value
    return train.replace(X=X)


def test_the_sign_of_features_makes_no_difference():
    train = with_outlier(1e6)
    one, other = (
        DominationRanker(alpha=0.01, curves=4, tol=1e-8).fit(data)
        for data in (train, train.replace(X=-train.X))
    )
    assert one.ramps_.knots[0].max() < 1e5
    assert np.isclose(one.objective_, other.objective_, rtol=1e-7)


def test_one_huge_value_moves_nothing():
    train = with_outlier(1e308)
    ranker = DominationRanker(alpha=0.01, curves=4).fit(train)
    assert np.isfinite(ranker.predict(train)).all()


@pytest.mark.parametrize(
    ("knots", "text"),
    [
        ([0.0, 1e-320], "two knots of the feature 'age' are too close"),
        ([-1.0, 0.0, 1e-320], "two knots of the feature 'age' are too close"),
        ([-4e307, 0.0, 4e307], r"two knots of the feature .age. are .* far apart"),
    ],
)
def test_given_knots_without_a_slope_are_refused(knots, text):
    with pytest.raises(InputError, match=text):
        DominationRanker(curves={"age": knots}).fit(bent())


@pytest.mark.parametrize("curves", [1, 4, "auto"])
def test_values_too_far_apart_for_a_curve_are_refused(curves):
    X = bent().X.copy()
    X[:, 1] = np.where(X[:, 1] > 0, 1.7e308, -1.7e308)
    with pytest.raises(InputError, match=r"two knots of the feature .age. are"):
        DominationRanker(curves=curves).fit(bent().replace(X=X))


def test_a_fit_that_stops_early_advises_what_helps_curves():
    with pytest.warns(ConvergenceWarning, match="fewer segments or a larger alpha"):
        DominationRanker(alpha=1e-4, curves=50, max_iter=3).fit(bent())


def test_curves_need_all_data_at_once():
    data = bent().replace(X=np.nan_to_num(bent().X))
    with pytest.raises(InputError, match="reads X itself"):
        LinearRanker(solver="bound-cd", curves=3).fit(data)


def test_lines_follow_curves_and_curves_lines():
    train = bent().replace(X=np.nan_to_num(bent().X) * [1e-3, 1, 1, 1, 1])
    ranker = DominationRanker(alpha=0.01)
    line = ranker.fit(train).predict(train)
    curve = ranker.set_params(curves=4, warm_start=True).fit(train).predict(train)
    assert not np.allclose(line, curve)
    again = ranker.fit(train)
    assert again.n_iter_ <= 2
    assert np.array_equal(
        ranker.set_params(curves=None, warm_start=False).fit(train).predict(train), line
    )
    assert ranker.ramps_ is None


def test_same_bits_on_any_number_of_threads():
    train = bent(3_000)
    one, two = (DominationRanker(alpha=0.01, curves=6, n_jobs=n).fit(train) for n in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)


def test_cross_validation_along_a_path_counts_features():
    found = cross_validate_path(DominationRanker(curves=4, tol=1e-4), bent(), n_alphas=6)
    assert 0 < np.max(found.n_features) <= 5


@pytest.mark.parametrize("kind", ["dense64", "dense32", "sparse64"])
def test_fixed_knots_give_any_linear_learner_curves(kind):
    train, test = bent(), bent(seed=1)
    X = train.X.astype(np.float32) if kind == "dense32" else train.X
    train = train.replace(X=csr_array(X) if kind == "sparse64" else X)
    ramps = RampFeatures(6).fit(train.queries[:20])
    for learner in (
        MinBatSRank(alpha=0.05).fit_stream([ramps.transform(train)], epochs=3),
        RankRLS().fit(ramps.transform(train)),
    ):
        model = ramps.to_model(learner.to_model())
        assert model.n_features == 5
        assert model.feature_names == NAMES
        own = learner.predict(ramps.transform(test))
        assert np.allclose(model.predict(test), own, atol=1e-4 if kind == "dense32" else 1e-9)
    line = RankRLS().fit(train.replace(X=np.nan_to_num(bent().X) * [1e-3, 1, 1, 1, 1]))
    straight = line.score(test.replace(X=np.nan_to_num(test.X) * [1e-3, 1, 1, 1, 1]))
    assert learner.score(ramps.transform(test)) > straight + 0.05


def test_an_online_learner_has_curves_by_fixed_knots():
    data = bent()
    ramps = RampFeatures(4).fit(data)
    columns = ramps.transform(data)
    learner = OnlineRanker("pdgd", n_features=columns.n_features)
    for rows in np.split(np.arange(len(data)), data.query_ptr[1:-1]):
        shown = learner.rank(columns.X[rows])
        learner.observe(shown, data.y[rows][shown.documents] > 1)
    model = ramps.to_model(learner.to_model())
    assert model.n_features == 5
    assert np.allclose(model.predict(data), learner.predict(columns.X))


def test_scoring_makes_the_model_of_the_curves_once(monkeypatch) -> None:
    """And again when the weights change, in place too."""
    from leanrank.rankers import path

    made = []
    make = path.weights_model
    monkeypatch.setattr(path, "weights_model", lambda *a, **k: made.append(1) or make(*a, **k))
    data = bent()
    ranker = DominationRanker(alpha=0.01, curves=4).fit(data)
    first = ranker.predict(data)
    assert (ranker.predict(data) == first).all()
    assert len(made) == 1
    ranker.coef_ *= 2.0
    np.testing.assert_allclose(ranker.predict(data), 2.0 * first)
    assert len(made) == 2
    ranker.fit(data)
    assert (ranker.predict(data) == first).all()
