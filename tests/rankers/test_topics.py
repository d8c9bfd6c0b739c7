from __future__ import annotations

import pickle
import warnings

import numpy as np
import pytest
from scipy.sparse import csc_array, csr_array, csr_matrix
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning, NotFittedError

from leanrank.errors import InputError
from leanrank.metrics import evaluate, percent_zero
from leanrank.rankers import PAMIR, DominationRanker, RankBoost, RankRLS, TopicRanker

N, FEATURES = 240, 9


def collection(seed=0, n=N, graded=False):
    """Three topics, each with its own few features; graded ones have levels 0 to 3."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, FEATURES))
    X[rng.random(X.shape) < 0.5] = 0.0
    W = np.zeros((3, FEATURES))
    W[0, :2], W[1, 3], W[2, 5:8] = [2.0, -1.0], 2.0, [1.0, 1.0, -2.0]
    liking = X @ W.T + rng.normal(size=(n, 3))
    if graded:
        return X, np.digitize(liking, [0.5, 1.5, 2.5]).astype(np.float64)
    return X, (liking > 1.5).astype(np.float64)


def single_fits(ranker, X, Y):
    return np.array([clone(ranker).fit(X, Y[:, t]).coef_ for t in range(Y.shape[1])])


RANKERS = {
    "l1": DominationRanker(0.02, tol=1e-10),
    "net": DominationRanker(0.02, l1_ratio=0.5, tol=1e-10),
    "l2": DominationRanker(0.02, l1_ratio=0.0, tol=1e-10),
    "sum": DominationRanker(0.5, normalize="none", tol=1e-10),
    "margin": DominationRanker(0.02, margin="scaled", margin_scale=0.5, tol=1e-10),
    "signs": DominationRanker(0.02, signs=1, tol=1e-10),
    "factors": DominationRanker(
        0.02, penalty_factors=[0.0, 2.0, np.inf] + [1.0] * 6, tol=1e-10, max_iter=500
    ),
    "bound": DominationRanker(0.02, solver="bound-cd", tol=1e-8, max_iter=5000),
}


@pytest.mark.parametrize("graded", [False, True])
@pytest.mark.parametrize("name", RANKERS)
def test_equals_one_fit_a_topic(name, graded):
    X, Y = collection(graded=graded)
    ranker = RANKERS[name]
    topics = TopicRanker(ranker).fit(X, Y)
    expected = single_fits(ranker, X, Y)
    assert topics.coef_.shape == (3, FEATURES)
    assert np.allclose(topics.coef_.toarray(), expected, atol=1e-9)
    assert (topics.alphas_ == ranker.alpha).all()
    assert (topics.dual_gaps_ <= ranker.tol).all()
    assert topics.n_features_in_ == FEATURES
    assert np.allclose(topics.predict(X), X @ expected.T, atol=1e-7)


def test_the_domination_loss_is_the_default():
    X, Y = collection()
    topics, expected = TopicRanker().fit(X, Y), TopicRanker(DominationRanker()).fit(X, Y)
    assert np.array_equal(topics.coef_.toarray(), expected.coef_.toarray())
    assert topics.ranker is None


@pytest.mark.parametrize("form", [csr_array, csc_array, csr_matrix, np.asfortranarray])
@pytest.mark.parametrize("graded", [False, True])
def test_forms_of_x_and_y(form, graded):
    X, Y = collection(graded=graded)
    ranker = DominationRanker(0.02, tol=1e-10)
    expected = TopicRanker(ranker).fit(X, Y).coef_.toarray()
    for given_x, given_y in ((form(X), Y), (X, form(Y)), (form(X), form(Y))):
        found = TopicRanker(ranker).fit(given_x, given_y)
        assert np.allclose(found.coef_.toarray(), expected, atol=1e-8)
        assert np.allclose(found.predict(given_x), X @ expected.T, atol=1e-7)
        means = found.evaluate(given_x, given_y).means
        for name, value in TopicRanker(ranker).fit(X, Y).evaluate(X, Y).means.items():
            assert means[name] == pytest.approx(value, abs=1e-12)


def test_kinds_of_labels():
    X, Y = collection()
    expected = TopicRanker(DominationRanker(0.02)).fit(X, Y).coef_.toarray()
    for given in (Y.astype(bool), Y.astype(np.int8), Y.tolist(), csr_array(Y.astype(bool))):
        assert np.array_equal(
            TopicRanker(DominationRanker(0.02)).fit(X, given).coef_.toarray(), expected
        )


def test_given_sparse_labels_are_not_changed():
    X, Y = collection()
    rows, columns = np.nonzero(Y)
    given = _uncompressed(np.tile(rows, 2), np.tile(columns, 2), np.ones(2 * len(rows)), Y.shape)
    before = given.indices.copy()
    TopicRanker(DominationRanker(0.02)).fit(X, given)
    assert np.array_equal(given.indices, before)


def test_sparse_labels_with_repeated_and_unsorted_entries():
    X, Y = collection()
    rows, columns = np.nonzero(Y)
    order = np.random.default_rng(1).permutation(len(rows))
    rows, columns = np.tile(rows[order], 2), np.tile(columns[order], 2)
    halves = csr_array((np.full(len(rows), 0.5), (rows, columns)), shape=Y.shape)
    repeated = _uncompressed(rows, columns, np.full(len(rows), 0.5), Y.shape)
    expected = TopicRanker(DominationRanker(0.02)).fit(X, Y).coef_.toarray()
    for given in (halves, repeated):
        found = TopicRanker(DominationRanker(0.02)).fit(X, given).coef_.toarray()
        assert np.array_equal(found, expected)


def _uncompressed(rows, columns, values, shape):
    """Make a CSC array whose columns hold the same document twice, out of order."""
    order = np.argsort(columns, kind="stable")
    ptr = np.searchsorted(columns[order], np.arange(shape[1] + 1))
    return csc_array((values[order], rows[order], ptr), shape=shape)


def test_float32_is_kept_and_close():
    X, Y = collection()
    wide = TopicRanker(DominationRanker(0.02, tol=1e-8)).fit(X, Y)
    narrow = TopicRanker(DominationRanker(0.02, tol=1e-8)).fit(X.astype(np.float32), Y)
    assert np.allclose(wide.coef_.toarray(), narrow.coef_.toarray(), atol=1e-4)


@pytest.mark.parametrize("validated", [False, True])
@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_threads_do_not_change_a_bit(form, validated):
    X, Y = collection(n=600)
    held_out = collection(seed=1) if validated else None
    found = [
        TopicRanker(DominationRanker(0.01), n_alphas=5 if validated else 20, n_jobs=n_jobs).fit(
            form(X), Y, validation=held_out
        )
        for n_jobs in (None, 2, 3)
    ]
    for other in found[1:]:
        assert np.array_equal(other.coef_.toarray(), found[0].coef_.toarray())
        assert np.array_equal(other.alphas_, found[0].alphas_)
        assert np.array_equal(other.predict(X), found[0].predict(X))


def test_one_topic_uses_the_threads_within():
    X, Y = collection(n=40_000)  # several blocks of rows
    one, two = (
        TopicRanker(DominationRanker(0.02), n_jobs=n_jobs).fit(X, Y[:, 0]) for n_jobs in (1, 2)
    )
    assert one.coef_.shape == (1, FEATURES)
    assert np.array_equal(one.coef_.toarray(), two.coef_.toarray())
    ranker = DominationRanker(0.02).fit(X, Y[:, 0], np.zeros(len(Y)))
    assert np.allclose(one.coef_.toarray()[0], ranker.coef_, atol=1e-6)


@pytest.mark.parametrize("form", [np.asarray, csr_array])
def test_validation_chooses_the_best_alpha_of_each_topic(form):
    X, Y = collection()
    Xv, Yv = collection(seed=1)
    ranker = DominationRanker(tol=1e-8)
    topics = TopicRanker(ranker, n_alphas=8, alpha_min_ratio=0.01).fit(
        form(X), Y, validation=(form(Xv), csr_array(Yv))
    )
    for t in range(3):
        path = clone(ranker).path(
            X,
            Y[:, t],
            n_alphas=8,
            alpha_min_ratio=0.01,
            validation=(Xv, Yv[:, t], np.zeros(N)),
            measures=["map"],
        )
        usable = np.where(path.n_selected > 0, path.measures["map"], -np.inf)
        assert topics.alphas_[t] == pytest.approx(path.alphas[np.argmax(usable)], rel=1e-9)
        assert np.allclose(topics.coef_.toarray()[t], path.coefs[np.argmax(usable)], atol=1e-5)
    assert topics.coef_.toarray().any(axis=1).all()


def test_measure_that_is_an_error_is_minimised():
    X, Y = collection()
    Xv, Yv = collection(seed=1)
    alphas = [0.2, 0.05, 0.01]
    topics = TopicRanker(DominationRanker(), alphas=alphas, measure="all_pairs_error").fit(
        X, Y, validation=(Xv, Yv)
    )
    for t in range(3):
        errors = []
        for alpha in alphas:
            w = DominationRanker(alpha).fit(X, Y[:, t]).coef_
            found = evaluate(Yv[:, t], Xv @ w, measures=["all_pairs_error"])
            errors.append(found.means["all_pairs_error"] if w.any() else np.inf)
        assert topics.alphas_[t] == alphas[int(np.argmin(errors))]


def test_means_are_over_the_topics_where_a_measure_is_defined():
    X, Y = collection()
    Xv, Yv = collection(seed=1)
    Yv[:, 1] = 0.0
    result = TopicRanker(DominationRanker(0.02)).fit(X, Y).evaluate(Xv, Yv)
    assert np.isnan(result.per_query["all_pairs_error"][1])
    assert np.isfinite(result.means["all_pairs_error"])


def test_evaluation_averages_over_topics():
    X, Y = collection()
    topics = TopicRanker(DominationRanker(0.02)).fit(X, Y)
    result = topics.evaluate(X, Y)
    assert list(result.means) == [
        "map",
        "p@10",
        "domination_error",
        "all_pairs_error",
        "percent_zero",
    ]
    scores = topics.predict(X)
    for name in ("map", "p@10", "domination_error", "all_pairs_error"):
        expected = [evaluate(Y[:, t], scores[:, t], measures=[name]).means[name] for t in range(3)]
        assert np.allclose(result.per_query[name], expected)
        assert result.means[name] == pytest.approx(np.mean(expected))
    zeros = [percent_zero(w) for w in topics.coef_.toarray()]
    assert result.per_query["percent_zero"].tolist() == zeros


def test_fitted_topics_can_be_cloned_and_pickled():
    X, Y = collection()
    topics = TopicRanker(DominationRanker(0.02), n_jobs=1)
    assert clone(topics).get_params()["ranker__alpha"] == 0.02
    topics.fit(X, Y)
    assert not hasattr(topics.ranker, "coef_")  # the ranker given is a recipe
    again = pickle.loads(pickle.dumps(topics))
    assert np.array_equal(again.predict(X), topics.predict(X))


def test_unfinished_fits_are_told():
    X, Y = collection()
    ranker = DominationRanker(0.001, solver="bound-cd", max_iter=1)
    with pytest.warns(ConvergenceWarning):
        TopicRanker(ranker).fit(X, Y)
    with pytest.warns(ConvergenceWarning, match="models stopped"):
        TopicRanker(ranker, alphas=[0.01, 0.001, 0.0001]).fit(X, Y, validation=(X, Y))


def test_errors_say_what_is_wrong():
    X, Y = collection()
    ranker = DominationRanker()
    flat = Y.copy()
    flat[:, 1] = 0.0
    bad = Y.copy()
    bad[7, 2] = np.nan
    holes = X.copy()
    holes[3, 4] = np.nan
    cases = [
        (lambda: TopicRanker(ranker).fit(X, flat), "topic 1 has all documents at one level"),
        (lambda: TopicRanker(ranker).fit(X, csr_array(flat)), "topic 1 has all documents"),
        (lambda: TopicRanker(ranker).fit(X, Y[:-1]), "documents × topics"),
        (lambda: TopicRanker(ranker).fit(X, Y[:, :0]), "documents × topics"),
        (lambda: TopicRanker(ranker).fit(X, bad), "not a finite number"),
        (lambda: TopicRanker(ranker).fit(X, csr_array(bad)), "not a finite number"),
        (lambda: TopicRanker(ranker).fit(holes, Y), "4"),
        (lambda: TopicRanker(ranker).fit(X, Y, validation=(X, Y[:, :2])), "3 topics"),
        (lambda: TopicRanker(ranker).fit(X, Y, validation=(X[:9], Y)), "documents × topics"),
        (lambda: TopicRanker(ranker).fit(X, Y, validation=X), "validation"),
        (lambda: TopicRanker(ranker, alphas=[]).fit(X, Y, validation=(X, Y)), "alphas is empty"),
        (lambda: TopicRanker(ranker, n_alphas=3).fit(X, Y), "n_alphas has no effect with"),
        (
            lambda: TopicRanker(ranker, alphas=[1], n_alphas=3).fit(X, Y, validation=(X, Y)),
            "n_alphas has no effect with alphas",
        ),
        (
            lambda: TopicRanker(RankRLS(), measure="mrr").fit(X, Y),
            "measure has no effect with a ranker without a path",
        ),
        (lambda: TopicRanker(ranker, alphas=[-1]).fit(X, Y, validation=(X, Y)), "alphas"),
        (lambda: TopicRanker(ranker, n_alphas=0).fit(X, Y, validation=(X, Y)), "n_alphas"),
        (
            lambda: TopicRanker(DominationRanker(l1_ratio=0.0)).fit(X, Y, validation=(X, Y)),
            "give alphas",
        ),
        (lambda: TopicRanker(DominationRanker(-1.0)).fit(X, Y), "alpha"),
        (lambda: TopicRanker(DominationRanker(tol=0)).fit(X, Y, validation=(X, Y)), "tol"),
        (lambda: TopicRanker(ranker, measure="nonsense").fit(X, Y, validation=(X, Y)), "nonsense"),
        (lambda: TopicRanker(ranker).fit(X, Y).evaluate(X, Y[:, :1]), "3 topics"),
        (lambda: TopicRanker(object()).fit(X, Y), "is not a linear ranker"),
        (lambda: TopicRanker(RankBoost(2)).fit(X, Y), "is not a linear ranker"),
        (lambda: TopicRanker(ranker).fit(X, Y.astype(str)), "not a finite number"),
        (
            lambda: TopicRanker(ranker).fit(X, Y, validation=(X, 0 * Y)),
            "topic 0 has all validation",
        ),
    ]
    for call, sentence in cases:
        with pytest.raises(InputError, match=sentence):
            call()
    with pytest.raises(ValueError, match="features"):
        TopicRanker(ranker).fit(X, Y).predict(X[:, :-1])
    with pytest.raises(NotFittedError):
        TopicRanker(ranker).predict(X)


def test_no_warnings_on_ordinary_data():
    X, Y = collection()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        TopicRanker(DominationRanker(), n_alphas=4).fit(X, Y, validation=(X, Y)).evaluate(X, Y)


def test_a_ranker_without_a_path_gets_the_validation_documents():
    X, Y = collection()
    held_out = collection(seed=1)
    ranker = PAMIR(0.1, n_steps=2_000, epochs=3)
    topics = TopicRanker(ranker, n_jobs=2).fit(X, Y, validation=held_out)
    for t in range(Y.shape[1]):
        alone = PAMIR(0.1, n_steps=2_000, epochs=3)
        alone.fit(X, Y[:, t].astype(float), validation=(held_out[0], held_out[1][:, t], None))
        np.testing.assert_array_equal(topics.coef_.toarray()[t], alone.coef_)
    assert np.isnan(topics.alphas_).all()
    assert topics.evaluate(*held_out).means["map"] > 0.5
    rls = TopicRanker(RankRLS(1.0)).fit(X, Y, validation=held_out)  # takes none: fits all the same
    np.testing.assert_allclose(rls.coef_.toarray()[0], RankRLS(1.0).fit(X, Y[:, 0]).coef_)
