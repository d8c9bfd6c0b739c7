"""Validation data must be of the same features as the training data, in every ranker."""

import numpy as np
import pandas as pd
import pytest

from leanrank import RankingData, make_ranking
from leanrank.errors import InputError
from leanrank.rankers import PAMIR, AdaRank, DominationRanker, MinBatSRank, RankBoost, RankRLS

NAMES = list("abcde")
RANKERS = [
    MinBatSRank(epochs=2),
    PAMIR(n_steps=200, epochs=2),
    RankBoost(3),
    AdaRank(3, signs=0),
]


@pytest.fixture(scope="module")
def data():
    return make_ranking(12, 8, 5, random_state=0)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_frames_are_compared_by_their_columns(ranker, data):
    frame = pd.DataFrame(np.asarray(data.X), columns=NAMES)
    assert ranker.fit(frame, data.y, data.qid, validation=(frame, data.y, data.qid)).history_
    turned = frame[NAMES[::-1]], data.y, data.qid
    with pytest.raises(InputError, match="validation: column 0 of X is"):
        ranker.fit(frame, data.y, data.qid, validation=turned)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_ranking_data_are_compared_by_their_names(ranker, data):
    named = data.replace(feature_names=NAMES)
    other = data.replace(feature_names=["a", "b", "d", "c", "e"])
    ranker.fit(named, validation=named)
    with pytest.raises(InputError, match=r"validation: column 2 of X is 'd', but .* with 'c'"):
        ranker.fit(named, validation=other)
    with pytest.raises(InputError, match="column 2 of X is 'd'"):
        ranker.predict(other)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_what_cannot_be_measured_is_refused(ranker, data):
    with pytest.raises(InputError, match="validation: X has 4 features"):
        ranker.fit(data, validation=(data.X[:, :4], data.y, data.qid))
    with pytest.raises(InputError, match="not defined on any query of the validation data"):
        ranker.fit(data, validation=(data.X, np.zeros(len(data)), data.qid))
    with pytest.raises(InputError, match="validation must be a RankingData"):
        ranker.fit(data, validation=(data.X, data.y))


@pytest.mark.parametrize("ranker", [r for r in RANKERS if not isinstance(r, RankBoost)], ids=str)
def test_missing_values_are_found_whatever_the_weights(ranker, data):
    X = np.array(data.X)
    X[:, 2] = np.nan
    with pytest.raises(InputError, match="validation: Input X contains NaN in feature 'f3' "):
        ranker.fit(data, validation=(X, data.y, data.qid))


@pytest.mark.parametrize("ranker", [DominationRanker(), RankRLS()], ids=str)
def test_paths_check_their_validation_data(ranker, data):
    named = data.replace(feature_names=NAMES)
    other = RankingData(data.X, data.y, data.qid, feature_names=NAMES[::-1])
    with pytest.raises(InputError, match="validation: column 0 of X is 'e'"):
        ranker.path(named, alphas=[0.1], validation=other)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_a_misspelt_measure_is_found_without_validation_data(ranker, data):
    from sklearn.base import clone

    with pytest.raises(InputError, match="'mpa' is not known"):
        clone(ranker).set_params(measure="mpa").fit(data)


@pytest.mark.parametrize("ranker", RANKERS, ids=lambda r: type(r).__name__)
def test_patience_without_validation_data_is_refused(ranker, data):
    from sklearn.base import clone

    patient = clone(ranker).set_params(patience=3)
    if isinstance(ranker, AdaRank):  # stops by the training data
        assert patient.fit(data).n_iter_ > 0
        return
    with pytest.raises(InputError, match="patience has no effect without validation data"):
        patient.fit(data)
