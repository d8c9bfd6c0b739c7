from __future__ import annotations

import contextlib
from unittest import SkipTest

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.utils.estimator_checks import estimator_checks_generator

from leanrank import load_letor, load_model, make_ranking
from leanrank.checks import ranker_checks
from leanrank.errors import InputError
from leanrank.metrics import evaluate
from leanrank.rankers import PAMIR
from leanrank.solvers.sampling.pair_sampling import document_keys, draw_pairs, index_pairs

VARIANTS = [PAMIR(n_steps=5_000), PAMIR(0.1, n_steps=3_000, average=True, sampling="pairs")]


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_features=6, n_informative=3, random_state=5)


@pytest.mark.parametrize("ranker", VARIANTS, ids=str)
def test_the_battery(ranker):
    for check in ranker_checks():
        check(clone(ranker))


@pytest.mark.parametrize("ranker", [PAMIR(n_steps=2_000)], ids=str)
def test_scikit_learns_battery(ranker):
    for estimator, check in estimator_checks_generator(ranker):
        with contextlib.suppress(SkipTest):
            check(estimator)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("C", [0.003, 0.5])
def test_steps_are_the_minimisers_of_their_objectives(data, C, sparse):
    """w moves to argmin ½‖w − w₀‖² + C·max(0, 1 − w·(x⁺ − x⁻)), pair after drawn pair."""
    X = csr_array(data.X) if sparse else data.X
    ranker = PAMIR(C, n_steps=300).fit(X, data.y, data.qid)
    index = index_pairs(data.y, data.query_ptr, over="queries", keys=document_keys(data.X))
    seed = np.random.RandomState(0).randint(2**31 - 1)
    w = np.zeros(6)
    for better, worse in zip(*draw_pairs(index, 300, int(seed)), strict=True):
        away = data.X[better] - data.X[worse]
        loss = max(0.0, 1.0 - w @ away)
        after = w + min(C, loss / (away @ away)) * away
        reached = 0.5 * np.sum((after - w) ** 2) + C * max(0.0, 1.0 - after @ away)
        for factor in (0.0, 0.5, 0.9, 1.1, 2.0):
            other = w + factor * (after - w)
            cost = 0.5 * np.sum((other - w) ** 2) + C * max(0.0, 1.0 - other @ away)
            assert reached <= cost + 1e-12
        w = after
    np.testing.assert_allclose(ranker.coef_, w, atol=1e-12)


def test_seeds(data):
    first = PAMIR(n_steps=500).fit(data).coef_
    assert np.array_equal(first, PAMIR(n_steps=500, random_state=0).fit(data).coef_)
    assert not np.array_equal(first, PAMIR(n_steps=500, random_state=1).fit(data).coef_)


def test_partial_fit_goes_on(data):
    whole = PAMIR(n_steps=400, epochs=2).fit(data)
    parts = PAMIR(n_steps=400).partial_fit(data).partial_fit(data)
    assert np.array_equal(whole.coef_, parts.coef_)
    assert np.array_equal(
        PAMIR(n_steps=400).partial_fit(data).coef_, PAMIR(n_steps=400).fit(data).coef_
    )


def test_validation_keeps_the_best_pass(data):
    train, vali = data.queries[:20], data.queries[20:]
    ranker = PAMIR(0.5, n_steps=200, epochs=15).fit(train, validation=vali)
    curve = [entry["ndcg@10"] for entry in ranker.history_]
    assert ranker.best_epoch_ == int(np.argmax(curve)) + 1
    found = evaluate(vali, ranker.predict(vali), measures="ndcg@10")["ndcg@10"]
    assert found == pytest.approx(max(curve))
    stopped = PAMIR(0.5, n_steps=200, epochs=15, patience=1).fit(train, validation=vali)
    assert stopped.n_iter_ <= 15


def test_save_and_load(data, tmp_path):
    ranker = PAMIR(n_steps=500).fit(data)
    ranker.save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").predict(data).tolist() == ranker.predict(data).tolist()


def test_wrong_parameters(data):
    for parameters, message in (
        ({"C": 0}, "C=0"),
        ({"n_steps": 0}, "n_steps=0"),
        ({"sampling": "documents"}, "sampling='documents'"),
    ):
        with pytest.raises(InputError, match=message):
            PAMIR(**parameters).fit(data)


def test_quality_on_public_data(data_dir):
    """MQ2008, five folds: as RankSVM, whose loss it has, 0.4696 as published."""
    found = []
    for fold in range(1, 6):
        train, vali, test = (
            load_letor(data_dir / f"MQ2008/Fold{fold}/{part}.txt")
            for part in ("train", "vali", "test")
        )
        ranker = PAMIR(n_steps=20_000, epochs=20, convention="letor4").fit(train, validation=vali)
        found.append(
            evaluate(test, ranker.predict(test), measures="map", convention="letor4")["map"]
        )
    assert np.mean(found) > 0.465
