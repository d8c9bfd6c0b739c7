"""Sums of weak rankers: what they score, and what their files may and may not hold."""

import copy
import json
import pickle
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.sparse import csr_array
from sklearn.pipeline import make_pipeline

from leanrank import RankBoost, make_ranking
from leanrank.data import RankingData
from leanrank.data.normalize import make_normalizer
from leanrank.errors import InputError, ModelError
from leanrank.model import BoostedModel, LinearModel, load_model, save_model

GOLDEN = Path(__file__).parent / "golden" / "boosted-v1.json"
NAN = float("nan")


@pytest.fixture
def model():
    return load_model(GOLDEN)


def test_golden_file_of_version_1(model, tmp_path):
    assert isinstance(model, BoostedModel)
    assert model.n_features == 3
    assert model.features.tolist() == [0, 0, 2]
    assert model.thresholds.tolist() == [0.30000000000000004, 2.5, -np.inf]
    assert model.missing.tolist() == [0, 1, 0]
    assert model.values.tolist() == [0.5, 0.25, -0.125]
    assert model.provenance["training"] == {"n_iter": 4}
    X = [[0.3, 9, NAN], [1.0, 9, 0.0], [3.0, NAN, -5.0], [NAN, 9, NAN]]
    assert model.predict(X).tolist() == [0.0, 0.375, 0.625, 0.25]
    assert model.rank(X).tolist() == [4, 2, 1, 3]
    model.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_text() == GOLDEN.read_text()


def test_what_it_says_of_itself(model):
    assert model.indices.tolist() == [0, 2]
    assert (model.n_nonzero, model.n_weak_rankers) == (2, 3)
    assert model.sparsity == pytest.approx(2 / 3)
    assert model.importances.tolist() == [0.75, 0.0, 0.125]
    assert model.weights == {"bm25": 0.75, "click rate": 0.125}
    assert repr(model).splitlines()[0] == "BoostedModel: 2 of 3 features, 3 weak rankers"


def test_equal_weak_rankers_are_added_up():
    model = BoostedModel(
        2, [1, 0, 1, 1, 0], [2.0, 1.0, 2.0, 2.0, 0.5], [0, 0, 0, 1, 0], [1.0, 3.0, 0.5, 4.0, 2.0]
    )
    assert model.features.tolist() == [0, 0, 1, 1]
    assert model.thresholds.tolist() == [0.5, 1.0, 2.0, 2.0]
    assert model.values.tolist() == [2.0, 3.0, 1.5, 4.0]
    cancelled = BoostedModel(2, [1, 1], [2.0, 2.0], [0, 0], [1.0, -1.0])
    assert (cancelled.n_weak_rankers, cancelled.n_nonzero) == (0, 0)
    assert cancelled.predict([[1.0, 5.0]]).tolist() == [0.0]


def test_it_is_immutable_plain_data(model):
    with pytest.raises(AttributeError):
        model.n_features = 1
    with pytest.raises(ValueError, match="read-only"):
        model.values[0] = 1.0
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert hash(again) == hash(model)
    assert model != LinearModel.from_coef([1.0])
    assert model.replace(provenance={}).provenance == {}


@settings(max_examples=60)
@given(seed=st.integers(0, 10**6), sparse=st.booleans(), single=st.booleans())
def test_predict_is_the_sum_written_out(seed, sparse, single):
    rng = np.random.default_rng(seed)
    n = int(rng.integers(0, 30))
    model = BoostedModel(
        6,
        rng.integers(0, 6, size=n),
        rng.choice([-np.inf, -1.0, 0.0, 0.5, 1.0], size=n),
        rng.integers(0, 2, size=n),
        rng.normal(size=n),
    )
    X = rng.choice([NAN, -1.0, 0.0, 0.5, 0.7, 2.0], size=(20, 6))
    X = X.astype(np.float32) if single else X
    expected = np.zeros(20)
    for f, threshold, missing, value in zip(
        model.features, model.thresholds, model.missing, model.values, strict=True
    ):
        column = X[:, f]
        expected += value * np.where(np.isnan(column), missing, column > threshold)
    scores = model.predict(csr_array(X) if sparse else X)
    np.testing.assert_allclose(scores, expected, atol=1e-12)
    assert BoostedModel.from_dict(model.to_dict()) == model


def test_a_score_does_not_depend_on_the_rows_beside_it():
    rng = np.random.default_rng(0)
    model = BoostedModel(
        9, rng.integers(0, 9, 50), rng.normal(size=50), [0] * 50, rng.normal(size=50)
    )
    X = rng.normal(size=(17_000, 9))
    scores = model.predict(X)
    for row in (0, 16_383, 16_384, 16_999):
        assert model.predict(X[[row]])[0] == scores[row]
    assert model.predict(csr_array(X)).tolist() == scores.tolist()


def test_columns_are_found_by_name(model):
    data = RankingData([[0.0, 1.0], [NAN, 3.0]], feature_names=["click rate", "bm25"])
    assert model.predict(data).tolist() == [0.375, 0.75]
    with pytest.raises(ModelError, match="the data lack the feature 'click rate'"):
        model.predict(RankingData([[1.0]], feature_names=["bm25"]))


def test_infinity_is_refused(model):
    with pytest.raises(InputError, match="feature 'click rate' is inf in row 1"):
        model.predict([[1.0, 0, 0], [1.0, 0, np.inf]])


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


WEAK = {"feature": "bm25", "missing": 0, "threshold": 1.0, "value": 1.0}


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"weak_rankers": {}}, "weak_rankers is an object: a list is expected"),
        ({"weak_rankers": [3]}, r"weak_rankers\[0\] is 3: an object is expected"),
        ({"weak_rankers": [WEAK | {"note": 1}]}, r"weak_rankers\[0\] has the unknown key 'note'"),
        ({"weak_rankers": [{"feature": "bm25"}]}, r"weak_rankers\[0\] lacks the key 'missing'"),
        ({"weak_rankers": [WEAK | {"feature": "age"}]}, "is 'age', which is not in feature_names"),
        ({"weak_rankers": [WEAK | {"missing": 2}]}, "missing is 2: a whole number from 0 to 1"),
        ({"weak_rankers": [WEAK | {"missing": True}]}, "missing is true: a whole number"),
        ({"weak_rankers": [WEAK | {"threshold": "1"}]}, "threshold is '1': a number is expected"),
        ({"weak_rankers": [WEAK | {"threshold": NAN}]}, "threshold is not a finite number"),
        ({"weak_rankers": [WEAK | {"value": 0}]}, "value is zero: leave weak rankers"),
        ({"weak_rankers": [WEAK | {"value": None}]}, "value is null: a number is expected"),
        ({"weak_rankers": [WEAK, WEAK]}, r"weak_rankers\[1\] repeats the feature, threshold"),
        ({"weights": []}, "the document has the unknown key 'weights'"),
        ({"kind": "linear"}, "the document lacks the key 'weights'"),
        ({"n_features": 2}, "feature_names has 3 names but n_features is 2"),
    ],
)
def test_what_the_reader_refuses(tmp_path, change, message):
    document = json.loads(GOLDEN.read_text()) | change
    (tmp_path / "m.json").write_text(json.dumps(document))
    with pytest.raises(ModelError, match=message) as caught:
        load_model(tmp_path / "m.json")
    assert "\n" not in str(caught.value)


_scalars = st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5)


@settings(max_examples=400)
@given(data=st.data())
def test_fuzzed_documents(tmp_path_factory, data):
    document = copy.deepcopy(json.loads(GOLDEN.read_text()))
    for _ in range(data.draw(st.integers(1, 3))):
        weak = document["weak_rankers"]
        place = data.draw(st.sampled_from(range(len(weak))))
        if not isinstance(weak[place], dict):
            continue
        key = data.draw(st.sampled_from(["feature", "missing", "threshold", "value"]))
        value = data.draw(_scalars | st.sampled_from(["bm25", "length", 0, 1, 2.5]))
        weak[place][key] = value
    path = tmp_path_factory.getbasetemp() / "fuzzed-boosted.json"
    path.write_text(json.dumps(document))
    try:
        model = load_model(path)
    except ModelError as error:
        assert str(path) in str(error)  # noqa: PT017
        return
    stated = sorted(w["value"] for w in document["weak_rankers"])
    assert sorted(model.values.tolist()) == stated


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((2, [2], [0.0], [0], [1.0]), "a feature is not from 0 to 1"),
        ((2, [0], [NAN], [0], [1.0]), "a threshold is NaN or infinite"),
        ((2, [0], [np.inf], [0], [1.0]), "a threshold is NaN or infinite"),
        ((2, [0], [0.0], [2], [1.0]), "missing must be 0 or 1"),
        ((2, [0], [0.0], [0], [np.inf]), "a value is not finite"),
        ((2, [0, 1], [0.0], [0], [1.0]), "give one of each per weak ranker"),
        ((2, [0], [0.0], [0], [1.0], ["a"]), "1 feature names were given for 2 features"),
    ],
)
def test_impossible_models(arguments, message):
    with pytest.raises(ModelError, match=message):
        BoostedModel(*arguments)
