from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from leanrank import load_letor, load_model, make_ranking
from leanrank.data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.model import Steps
from leanrank.rankers import RankBoost


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_features=8, n_informative=3, random_state=5)


@pytest.fixture(scope="module")
def holes(data):
    X = np.array(data.X)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    return data.replace(X=X)


def test_the_score_is_the_sum_of_the_weak_rankers(holes):
    ranker = RankBoost(60).fit(holes)
    expected = np.zeros(len(holes))
    for feature, threshold, missing, value in ranker.weak_rankers_:
        column = holes.X[:, feature]
        expected += value * np.where(np.isnan(column), missing, column > threshold)
    np.testing.assert_allclose(ranker.predict(holes), expected, rtol=1e-12, atol=1e-12)
    assert any(weak.missing for weak in ranker.weak_rankers_)
    used = {weak.feature for weak in ranker.weak_rankers_}
    assert set(np.flatnonzero(ranker.feature_importances_)) == used
    assert ranker.sparsity_ == len(used) / 8
    assert ranker.n_iter_ == len(ranker.weak_rankers_) == len(ranker.history_)


def test_the_objective_is_the_loss_of_the_scores(data):
    ranker = RankBoost(30, normalize="term").fit(data)
    u, total, pairs = ranker.predict(data), 0.0, 0
    for q in range(data.n_queries):
        rows = slice(data.query_ptr[q], data.query_ptr[q + 1])
        above = data.y[rows][:, None] > data.y[rows][None, :]
        total += np.exp(-(u[rows][:, None] - u[rows][None, :]))[above].sum()
        pairs += above.sum()
    assert ranker.objective_ == pytest.approx(total / pairs)
    losses = [entry["loss"] for entry in ranker.history_]
    assert losses == sorted(losses, reverse=True)
    assert ranker.history_[0]["round"] == 1


def test_missing_values_are_ranked_by_what_they_mean():
    """A feature that only good documents lack ranks them first."""
    rng = np.random.default_rng(1)
    y = rng.integers(0, 2, size=200).astype(float)
    X = rng.normal(size=(200, 3))
    X[y == 1, 2] = np.nan
    ranker = RankBoost(5).fit(X, y, qid=np.repeat(np.arange(20), 10))
    assert ranker.weak_rankers_[0].feature == 2
    assert ranker.score(X, y, qid=np.repeat(np.arange(20), 10)) == 1.0


def test_infinity_is_no_missing_value(data):
    X = np.array(data.X)
    X[3, 2] = -np.inf
    with pytest.raises(InputError, match="infinity in feature 'f3'"):
        RankBoost(3).fit(X, data.y, data.qid)


@pytest.mark.parametrize("normalize", ["query", "none"])
def test_sample_weight_is_repetition(data, normalize):
    weight = np.random.default_rng(2).integers(0, 3, size=len(data))
    rows = np.repeat(np.arange(len(data)), weight)
    ranker = RankBoost(20, normalize=normalize, n_thresholds=10)
    weighed = clone(ranker).fit(data.X, data.y, data.qid, sample_weight=weight)
    repeated = clone(ranker).fit(data.X[rows], data.y[rows], data.qid[rows])
    assert [w[:3] for w in weighed.weak_rankers_] == [w[:3] for w in repeated.weak_rankers_]
    np.testing.assert_allclose(weighed.predict(data), repeated.predict(data), rtol=1e-9)


def test_preferences_instead_of_labels(data):
    """Listing the pairs that the labels imply gives the same model."""
    winner, loser = [], []
    for q in range(data.n_queries):
        rows = np.arange(data.query_ptr[q], data.query_ptr[q + 1])
        above = data.y[rows][:, None] > data.y[rows][None, :]
        winner += rows[np.nonzero(above)[0]].tolist()
        loser += rows[np.nonzero(above)[1]].tolist()
    listed = RankBoost(15).fit(data.X, qid=data.qid, preferences=(winner, loser))
    implied = RankBoost(15).fit(data)
    assert [w[:3] for w in listed.weak_rankers_] == [w[:3] for w in implied.weak_rankers_]
    np.testing.assert_allclose(listed.predict(data), implied.predict(data), rtol=1e-9)


def test_query_weight_zero_leaves_a_query_out(data):
    weight = np.ones(data.n_queries)
    weight[:10] = 0
    without = data.queries[10:]
    some = RankBoost(20).fit(data.X, data.y, data.qid, query_weight=weight)
    rest = RankBoost(20).fit(without)
    assert [w[:3] for w in some.weak_rankers_] == [w[:3] for w in rest.weak_rankers_]


def test_validation_keeps_the_best_round(data):
    train, vali = data.queries[:20], data.queries[20:]
    ranker = RankBoost(80, measure="map").fit(train, validation=vali)
    curve = [entry["map"] for entry in ranker.history_]
    assert len(curve) == 80
    assert ranker.n_iter_ == int(np.argmax(curve)) + 1 < 80
    found = evaluate(vali, ranker.predict(vali), measures="map")["map"]
    assert found == pytest.approx(max(curve))
    stopped = RankBoost(80, measure="map", patience=5).fit(
        train, validation=(vali.X, vali.y, vali.qid)
    )
    assert len(stopped.history_) <= 80
    best = int(np.argmax([entry["map"] for entry in stopped.history_])) + 1
    assert stopped.n_iter_ == best
    assert len(stopped.history_) in (best + 5, 80)


def test_an_error_as_the_measure_is_to_be_low(data):
    train, vali = data.queries[:20], data.queries[20:]
    ranker = RankBoost(30, measure="all_pairs_error").fit(train, validation=vali)
    curve = [entry["all_pairs_error"] for entry in ranker.history_]
    assert ranker.n_iter_ == int(np.argmin(curve)) + 1


def test_validation_that_does_not_fit(data):
    with pytest.raises(InputError, match="X has 3 features, but RankBoost is expecting 8"):
        RankBoost(3).fit(data, validation=(data.X[:, :3], data.y, data.qid))
    with pytest.raises(InputError, match="map is not defined on any query of the validation"):
        RankBoost(3, measure="map").fit(data, validation=(data.X, np.zeros(len(data)), data.qid))
    with pytest.raises(InputError, match=r"tuple \(X, y, qid\)"):
        RankBoost(3).fit(data, validation=data.X)


@pytest.mark.parametrize("sparse", [False, True])
def test_save_and_load(holes, tmp_path, sparse):
    ranker = RankBoost(40).fit(holes)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert all(isinstance(curve, Steps) for curve in model.curves.values())
    X = csr_array(np.array(holes.X)) if sparse else holes.X
    assert model.predict(X).tolist() == ranker.predict(holes).tolist()
    assert model.rank(X, holes.qid).tolist() == ranker.rank(X, holes.qid).tolist()
    assert model.provenance["algorithm"] == "RankBoost"
    assert model.provenance["training"]["n_iter"] == ranker.n_iter_
    again = pickle.loads(pickle.dumps(ranker))
    assert again.predict(holes).tolist() == ranker.predict(holes).tolist()


def test_names_travel(tmp_path):
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    frame = pandas.DataFrame(rng.normal(size=(60, 3)), columns=["bm25", "age", "spam"])
    y = (frame["bm25"] - frame["spam"] > 0.5).astype(float)
    ranker = RankBoost(20).fit(frame, y, qid=np.repeat(np.arange(6), 10))
    ranker.save(tmp_path / "m.json")
    shuffled = frame[["spam", "bm25", "age"]]
    assert (
        load_model(tmp_path / "m.json").predict(shuffled).tolist() == ranker.predict(frame).tolist()
    )


def test_features_that_cannot_rank_give_an_empty_model():
    data = RankingData(np.ones((6, 2)), [0, 1, 0, 1, 1, 0], ["a"] * 3 + ["b"] * 3)
    with pytest.warns(DataWarning, match="model without features"):
        ranker = RankBoost().fit(data)
    assert ranker.predict(data).tolist() == [0.0] * 6
    assert (ranker.n_iter_, ranker.sparsity_) == (0, 0.0)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"n_rounds": 0}, "n_rounds=0"),
        ({"n_thresholds": 2.5}, "n_thresholds=2.5"),
        ({"patience": 0}, "patience=0"),
        ({"normalize": "pair"}, "normalize='pair'"),
    ],
)
def test_wrong_parameters(data, parameters, message):
    with pytest.raises(InputError, match=message):
        RankBoost(**parameters).fit(data)


def test_more_thresholds_lower_the_loss_faster(data):
    losses = [RankBoost(10, n_thresholds=n).fit(data).objective_ for n in (1, 5, None)]
    assert losses[0] > losses[1] > losses[2]


def test_progress(data, capsys):
    seen = []
    RankBoost(3, verbose=1, callback=seen.append).fit(data)
    assert [entry["round"] for entry in seen] == [1, 2, 3]
    assert capsys.readouterr().err.count("[RankBoost] round") == 3


def test_quality_on_public_data(data_dir):
    """MQ2008, five folds: MAP about 0.477 as published."""
    found = []
    for fold in range(1, 6):
        train, vali, test = (
            load_letor(data_dir / f"MQ2008/Fold{fold}/{part}.txt")
            for part in ("train", "vali", "test")
        )
        ranker = RankBoost(
            300, n_thresholds=10, normalize="none", measure="map", convention="letor4"
        ).fit(train, validation=vali)
        found.append(
            evaluate(test, ranker.predict(test), measures="map", convention="letor4")["map"]
        )
    assert np.mean(found) == pytest.approx(0.477, abs=0.005)
