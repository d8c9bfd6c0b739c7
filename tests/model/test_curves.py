"""Curves: what each kind computes, and the models that they add up to."""

import pickle

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline

from leanrank import make_ranking
from leanrank.data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.errors import InputError, ModelError
from leanrank.model import Line, Model, Ramps, Steps, load_model, save_model
from leanrank.model.terms import sum_of_weak_rankers
from leanrank.rankers import RankBoost
from tests.model import boosted

NAN = float("nan")
NAMES = ("bm25", "length", "click rate")


@pytest.fixture
def model():
    return boosted(
        3, [0, 0, 2], [0.3, 2.5, -np.inf], [0, 1, 0], [0.5, 0.25, -0.125], feature_names=NAMES
    )


def random_ramps(rng, n_segments=5):
    knots = np.sort(rng.choice(np.arange(-8, 9) / 4, n_segments + 1, replace=False))
    rises = rng.normal(size=n_segments) * rng.integers(0, 2, n_segments)
    return knots, rises


@settings(max_examples=100)
@given(seed=st.integers(0, 10**6), n_segments=st.integers(1, 9))
def test_ramps_are_the_sum_of_clipped_fractions(seed, n_segments):
    rng = np.random.default_rng(seed)
    knots, rises = random_ramps(rng, n_segments)
    x = np.concatenate([knots, rng.choice(np.arange(-12, 13) / 4, 20), rng.normal(size=20)])
    expected = np.zeros(len(x))
    for a, b, rise in zip(knots, knots[1:], rises, strict=False):
        expected += rise * np.clip((x - a) / (b - a), 0, 1)
    np.testing.assert_allclose(Ramps(knots, rises)(x), expected, atol=1e-14)
    np.testing.assert_allclose(Ramps.of(knots, rises)(x), expected, atol=1e-14)


def test_knots_that_nothing_needs_are_left_out():
    assert Ramps.of([0, 1, 2, 3], [0, 1, 0], 0.5) == Ramps((1.0, 2.0), (1.0,), 0.5)
    assert Ramps.of([0, 1, 2, 3, 4], [1, 0, 0, -1]) == Ramps((0.0, 1.0, 3.0, 4.0), (1.0, 0.0, -1.0))
    assert Ramps.of([0, 1], [0], 0.5) == Steps((), (0.0,), 0.5)
    assert Ramps.of([0, 1], [0]).is_zero


@settings(max_examples=100)
@given(seed=st.integers(0, 10**6))
def test_a_curve_that_rises_everywhere_never_falls_by_rounding(seed):
    rng = np.random.default_rng(seed)
    knots = np.cumsum(rng.random(6) + 1e-3)
    curve = Ramps(knots, rng.random(5))
    near = [np.nextafter(knot, end) for knot in knots for end in (-np.inf, knot, np.inf)]
    values = curve(np.sort(np.concatenate([near, rng.uniform(0, 6, 300)])))
    assert (np.diff(values) >= 0).all()


def test_what_cannot_be_scored_is_refused():
    X = np.array([[1.0, 1.0], [1.0, NAN]])
    for curve in (Line(2.0), Ramps((0.0, 2.0), (1.0,)), Steps((0.5,), (0.0, 1.0))):
        with pytest.raises(InputError, match="feature 'f2' is nan in row 1 "):
            Model(2, {1: curve}).predict(X)
        known = Model(2, {1: type(curve)(*curve.to_dict().values(), missing=7.0)})
        assert known.predict(X)[1] == 7.0
        with pytest.raises(InputError, match="feature 'f2' is inf in row 0"):
            known.predict([[0.0, np.inf]])


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_a_model_of_all_kinds_adds_its_curves(sparse, dtype):
    rng = np.random.default_rng(0)
    X = (rng.normal(size=(17_000, 6)) * rng.integers(0, 2, (17_000, 6))).astype(dtype)
    X[::5, 2] = NAN
    curves = {
        0: Ramps(*random_ramps(rng)),
        1: Line(0.5),
        2: Ramps(*random_ramps(rng), missing=-0.5),
        4: Steps((-0.5, 0.0, 0.25), (0.0, 1.0, 0.5, 2.0)),
        5: Line(-1.0, missing=3.0),
    }
    model = Model(6, curves)
    given = csr_array(X) if sparse else X
    scores = model.predict(given)
    expected = sum(curve(X[:, at]) for at, curve in curves.items())
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    for row in (0, 5, 16_383, 16_384, 16_999):  # whatever the rows beside it
        assert model.predict(given[[row]])[0] == scores[row]
    assert Model.from_dict(model.to_dict()) == model


def test_what_a_bent_model_says_of_itself(model):
    assert model.indices.tolist() == [0, 2]
    assert model.n_nonzero == 2
    assert model.sparsity == pytest.approx(2 / 3)
    assert model.weights == {"bm25": 0.75, "click rate": 0.125}
    assert repr(model).splitlines()[0] == "Model: 2 of 3 features, 2 knots"
    assert not model.is_linear
    with pytest.raises(ModelError, match="no coef"):
        model.coef
    falls = Model(1, {0: Ramps((0.0, 1.0, 2.0), (0.5, -2.0))})
    assert falls.weights == {"f1": -2.0}


def test_equal_weak_rankers_are_added_up():
    model = boosted(
        2, [1, 0, 1, 1, 0], [2.0, 1.0, 2.0, 2.0, 0.5], [0, 0, 0, 1, 0], [1.0, 3.0, 0.5, 4.0, 2.0]
    )
    assert dict(model.curves) == {
        0: Steps((0.5, 1.0), (0.0, 2.0, 5.0), 0.0),
        1: Steps((2.0,), (0.0, 5.5), 4.0),
    }
    cancelled = boosted(2, [1, 1], [2.0, 2.0], [0, 0], [1.0, -1.0])
    assert cancelled.n_nonzero == 0
    assert cancelled.predict([[1.0, 5.0]]).tolist() == [0.0]


def test_it_is_immutable_plain_data(model):
    with pytest.raises(AttributeError):
        model.n_features = 1
    with pytest.raises(TypeError):
        model.curves[0] = Line(1.0)
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert hash(again) == hash(model)
    assert model != Model.from_coef([1.0])
    assert model.replace(provenance={}).provenance == {}


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), sparse=st.booleans(), single=st.booleans())
def test_steps_are_the_sum_of_weak_rankers_written_out(seed, sparse, single):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 30))
    weak = list(
        zip(
            rng.integers(0, 6, size=n).tolist(),
            rng.choice([-np.inf, -1.0, 0.0, 0.5, 1.0], size=n).tolist(),
            rng.integers(0, 2, size=n).tolist(),
            rng.normal(size=n).tolist(),
            strict=True,
        )
    )
    model = Model(6, sum_of_weak_rankers(weak))
    X = rng.choice([NAN, -1.0, 0.0, 0.5, 0.7, 2.0], size=(20, 6))
    X = X.astype(np.float32) if single else X
    expected = np.zeros(20)
    for feature, threshold, missing, value in weak:
        column = X[:, feature]
        expected += value * np.where(np.isnan(column), missing, column > threshold)
    scores = model.predict(csr_array(X) if sparse else X)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert Model.from_dict(model.to_dict()) == model


def test_columns_are_found_by_name(model):
    data = RankingData([[0.0, 1.0], [NAN, 3.0]], feature_names=["click rate", "bm25"])
    assert model.predict(data).tolist() == [0.375, 0.75]
    with pytest.raises(ModelError, match="the data lack the feature 'click rate'"):
        model.predict(RankingData([[1.0]], feature_names=["bm25"]))


def test_a_normaliser_travels_with_it(tmp_path):
    data = make_ranking(n_queries=12, n_features=4, random_state=0)
    normalizer = make_normalizer("standard")
    ranker = RankBoost(10).fit(normalizer.fit_transform(data))
    model = save_model(make_pipeline(normalizer, ranker), tmp_path / "m.json")
    loaded = load_model(tmp_path / "m.json")
    assert loaded == model
    assert loaded.normalizer["kind"] == "standard"
    assert np.array_equal(loaded.predict(data.X), ranker.predict(normalizer.transform(data.X)))
    assert "after standard normalisation" in repr(loaded)


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Line(np.inf), "a number of a line is not finite"),
        (lambda: Line(1.0, NAN), "a number of a line is not finite"),
        (lambda: Ramps((0.0, 1.0, 1.0), (1.0, 2.0)), "knots of a curve of ramps do not increase"),
        (lambda: Ramps((0.0, NAN), (1.0,)), "a number of a curve of ramps is not finite"),
        (lambda: Ramps((0.0, 1.0), (np.inf,)), "a number of a curve of ramps is not finite"),
        (lambda: Ramps((0.0,), ()), "has 1 knots and 0 rises"),
        (lambda: Steps((2.0, 1.0), (0.0, 1.0, 2.0)), "thresholds of a curve of steps do not"),
        (lambda: Steps((2.0,), (0.0, 1.0), NAN), "a number of a curve of steps is not finite"),
        (lambda: Steps((2.0,), (1.0,)), "give one level more than thresholds"),
        (lambda: Model(2, {2: Line(1.0)}), "features are from 0 to 1, but there is a curve of 2"),
        (lambda: Model(2, {0: Steps((), (0.0,), 0.0)}), "the weight of feature f1 is zero"),
    ],
)
def test_impossible_curves(build, message):
    with pytest.raises(ModelError, match=message):
        build()
