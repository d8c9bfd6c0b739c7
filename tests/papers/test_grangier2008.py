from __future__ import annotations

import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone

from leanrank.errors import InputError
from leanrank.metrics import evaluate
from leanrank.rankers import PAMIR
from papers.grangier2008 import PAMIRRetriever


def text_and_pictures(seed, n_queries=120, n_pictures=400, n_terms=40, n_features=60):
    """Pictures are about a few terms and look accordingly; queries are one to three terms.

    A picture is relevant to a query if it is about all of its terms.
    """
    rng = np.random.default_rng(seed)
    looks = np.random.default_rng(0).normal(size=(n_terms, n_features))  # of the world, not a draw
    about = rng.random((n_pictures, n_terms)) < 0.15
    P = about @ looks + rng.normal(size=(n_pictures, n_features))
    Q = np.zeros((n_queries, n_terms))
    for row in Q:
        row[rng.choice(n_terms, rng.integers(1, 4), replace=False)] = 1.0
    relevance = Q @ about.T >= Q.sum(axis=1)[:, None]
    return Q / np.linalg.norm(Q, axis=1)[:, None], P, relevance


@pytest.fixture(scope="module")
def world():
    return text_and_pictures(1), text_and_pictures(2), text_and_pictures(3)


def test_it_retrieves_new_pictures_for_new_queries(world):
    train, vali, test = world
    retriever = PAMIRRetriever(C=0.003, n_steps=20_000, epochs=10).fit(*train, validation=vali)
    found = retriever.score(*test)
    _, P, relevance = test
    rng = np.random.default_rng(0)
    chance = np.nanmean(
        [
            evaluate(row, rng.normal(size=len(row)), measures="map")["map"]
            for row in relevance.astype(float)
        ]
    )
    assert found > 0.5
    assert found > 4 * chance
    assert retriever.coef_.shape == (40, 60)
    # what W says a picture is about ranks its own terms high
    assert retriever.project(P).shape == (400, 40)


def test_rank_lists_the_best_first(world):
    (Q, P, relevance), _, _ = world
    retriever = PAMIRRetriever(n_steps=3_000).fit(Q, P, relevance)
    scores = retriever.predict(Q[:5], P)
    assert scores.shape == (5, 400)
    np.testing.assert_allclose(scores, Q[:5] @ retriever.coef_ @ P.T)
    np.testing.assert_allclose(scores, Q[:5] @ retriever.project(P).T)
    listed = retriever.rank(Q[:5], P)
    assert np.array_equal(listed, np.argsort(-scores, axis=1, kind="stable"))
    assert np.array_equal(retriever.rank(Q[:5], P, k=3), listed[:, :3])
    assert retriever.rank(Q[:2], P[:4], k=10).shape == (2, 4)


def test_ties_keep_the_order_of_the_pictures():
    retriever = PAMIRRetriever(n_steps=10).fit([[1.0]], [[1.0], [0.0]], [[1, 0]])
    assert retriever.rank([[1.0]], [[0.0], [1.0], [0.0], [1.0]]).tolist() == [[1, 3, 0, 2]]


def test_blocks_of_queries_change_nothing(world):
    (Q, P, relevance), _, _ = world
    retriever = PAMIRRetriever(n_steps=1_000).fit(Q, P, relevance)
    whole = retriever.rank(Q, P, k=5), retriever.score(Q, P, relevance)
    assert np.array_equal(retriever.rank(Q, P, k=5, scores_at_once=1_000), whole[0])
    assert retriever.score(Q, P, relevance, scores_at_once=1_000) == pytest.approx(whole[1])


@pytest.mark.parametrize("form", [csr_array, np.asarray])
def test_sparse_and_dense_learn_the_same(world, form):
    (Q, P, relevance), _, _ = world
    plain = PAMIRRetriever(n_steps=2_000).fit(Q, P, relevance)
    other = PAMIRRetriever(n_steps=2_000).fit(form(Q), form(P), form(relevance.astype(np.float32)))
    np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-9)
    np.testing.assert_allclose(other.predict(form(Q), form(P)), plain.predict(Q, P), atol=1e-8)


def test_with_one_query_it_is_the_linear_form():
    """One query of one term: W has one row, and ranks as PAMIR on the pictures alone."""
    rng = np.random.default_rng(0)
    P = rng.normal(size=(200, 5))
    relevant = P[:, 0] - P[:, 3] > 0.7
    retriever = PAMIRRetriever(0.001, n_steps=100_000).fit([[1.0]], P, relevant[None])
    ranker = PAMIR(0.001, n_steps=100_000).fit(P, relevant.astype(float))
    mine, theirs = retriever.coef_[0], ranker.coef_
    cosine = mine @ theirs / np.linalg.norm(mine) / np.linalg.norm(theirs)
    assert cosine > 0.995


def test_seeds_and_partial_fit(world):
    (Q, P, relevance), _, _ = world
    first = PAMIRRetriever(n_steps=500).fit(Q, P, relevance)
    assert np.array_equal(first.coef_, clone(first).fit(Q, P, relevance).coef_)
    assert np.array_equal(first.coef_, first.fit(Q, P, relevance).coef_)  # fit starts anew
    other = PAMIRRetriever(n_steps=500, random_state=1).fit(Q, P, relevance)
    assert not np.array_equal(first.coef_, other.coef_)
    parts = PAMIRRetriever(n_steps=500).partial_fit(Q, P, relevance).partial_fit(Q, P, relevance)
    whole = PAMIRRetriever(n_steps=500, epochs=2).fit(Q, P, relevance)
    assert np.array_equal(parts.coef_, whole.coef_)
    assert parts.n_iter_ == whole.n_iter_ == 2
    assert parts.history_ == whole.history_
    assert np.array_equal(pickle.loads(pickle.dumps(parts)).predict(Q, P), parts.predict(Q, P))


def test_validation_keeps_the_best_pass(world):
    train, vali, _ = world
    seen = []
    retriever = PAMIRRetriever(1.0, n_steps=500, epochs=8, callback=seen.append)
    retriever.fit(*train, validation=vali)
    curve = [entry["map"] for entry in retriever.history_]
    assert seen == retriever.history_
    assert retriever.n_iter_ == int(np.argmax(curve)) + 1
    assert retriever.score(*vali) == pytest.approx(max(curve))
    with pytest.raises(InputError, match="patience has no effect without validation data"):
        clone(retriever).set_params(patience=1).fit(*train)
    stopped = clone(retriever).set_params(patience=1).fit(*train, validation=vali)
    assert len(stopped.history_) <= stopped.n_iter_ + 1


def test_wrong_input(world):
    (Q, P, relevance), vali, _ = world
    hole = P.copy()
    hole[1, 2] = np.nan
    for given, message in (
        ((Q, P, relevance[:, :-1]), "relevance has shape"),
        ((Q, hole, relevance), "P: Input X contains NaN in feature 'f3'"),
        ((Q, P, -relevance.astype(float)), "negative number"),
        ((Q, P, np.zeros_like(relevance)), "nothing to learn from"),
        ((0 * Q, P, relevance), "nothing to learn from"),
    ):
        with pytest.raises(InputError, match=message):
            PAMIRRetriever(n_steps=10).fit(*given)
    with pytest.raises(InputError, match="validation must be a triple"):
        PAMIRRetriever(n_steps=10).fit(Q, P, relevance, validation=vali[:2])
    with pytest.raises(InputError, match="C=-1 must be"):
        PAMIRRetriever(-1, n_steps=10).fit(Q, P, relevance)
    fitted = PAMIRRetriever(n_steps=10).fit(Q, P, relevance)
    for call in (
        lambda: fitted.predict(Q[:, 1:], P),
        lambda: fitted.rank(Q, P[:, 1:]),
        lambda: fitted.project(P[:, 1:]),
        lambda: fitted.partial_fit(Q[:, 1:], P, relevance),
    ):
        with pytest.raises(InputError, match="columns, but the model was learned from"):
            call()
