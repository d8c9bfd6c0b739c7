from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.errors import InputError
from leanrank.rankers import RankRLS

SIZES = np.array([5, 1, 8, 2, 14])
N = int(SIZES.sum())


def example(seed=0, n_features=4):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, n_features))
    y = rng.integers(0, 3, N).astype(np.float64)
    return X, y, np.repeat(np.arange(len(SIZES)), SIZES)


def direct(X, y, qid, alpha, normalize, sample_weight=None, query_weight=None, offset=None):
    """Solve with explicit centring matrices, straight from the objective."""
    m = np.ones(len(y)) if sample_weight is None else sample_weight
    target = y if offset is None else y + offset
    omega = dict.fromkeys(np.unique(qid), 1.0) if query_weight is None else query_weight
    active = [q for q in np.unique(qid) if m[qid == q].sum() > 1]
    terms = {q: m[qid == q].sum() for q in active}
    H, b = alpha * np.eye(X.shape[1]), np.zeros(X.shape[1])
    for q in active:
        scale = {
            "none": omega[q],
            "term": omega[q] / sum(omega[p] * terms[p] for p in active),
            "query": omega[q] / terms[q] / sum(omega[p] for p in active),
        }[normalize]
        A, t, w = X[qid == q], target[qid == q], m[qid == q]
        L = np.diag(w) - np.outer(w, w) / w.sum()
        H += scale * A.T @ L @ A
        b += scale * A.T @ L @ t
    return np.linalg.solve(H, b)


@pytest.mark.parametrize("normalize", ["query", "term", "none"])
@pytest.mark.parametrize("alpha", [1e-12, 1e-3, 2.0, 1e12])
@pytest.mark.parametrize("form", ["dense", "sparse", "single"])
@pytest.mark.filterwarnings("error")
def test_against_explicit_centring_matrices(normalize, alpha, form):
    X, y, qid = example()
    X = X.astype(np.float32).astype(np.float64)
    given = {"dense": X, "sparse": csr_array(X), "single": X.astype(np.float32)}[form]
    rng = np.random.default_rng(1)
    extras = {
        "sample_weight": rng.integers(0, 3, N).astype(np.float64),
        "query_weight": dict(enumerate(rng.random(len(SIZES)))),
        "offset": rng.normal(size=N),
    }
    for chosen in ([], ["sample_weight"], ["query_weight"], ["offset"], list(extras)):
        more = {name: extras[name] for name in chosen}
        fitted = RankRLS(alpha, normalize=normalize).fit(given, y, qid, **more)
        expected = direct(X, y, qid, alpha, normalize, **more)
        assert np.allclose(fitted.coef_, expected, rtol=1e-9, atol=1e-12 * np.abs(expected).max())


def test_against_all_pairs_written_out():
    X, y, qid = example()
    H, b = 0.5 * np.eye(4), np.zeros(4)
    for i in range(N):
        for j in range(i):
            if qid[i] == qid[j]:  # tied pairs included
                d = X[i] - X[j]
                H += np.outer(d, d) / SIZES[qid[i]]
                b += d * (y[i] - y[j]) / SIZES[qid[i]]
    fitted = RankRLS(alpha=0.5, normalize="none").fit(X, y, qid)
    assert np.allclose(fitted.coef_, np.linalg.solve(H, b), rtol=1e-11)


@pytest.mark.parametrize("normalize", ["query", "term", "none"])
def test_sample_weight_is_repetition(normalize):
    X, y, qid = example()
    times = np.random.default_rng(2).integers(0, 4, N)
    weighted = RankRLS(0.1, normalize=normalize).fit(X, y, qid, sample_weight=times)
    rows = np.repeat(np.arange(N), times)
    repeated = RankRLS(0.1, normalize=normalize).fit(X[rows], y[rows], qid[rows])
    assert np.allclose(weighted.coef_, repeated.coef_, rtol=1e-11)


@pytest.mark.parametrize("normalize", ["query", "term", "none"])
def test_query_weight_two_is_the_query_twice(normalize):
    X, y, qid = example()
    weighted = RankRLS(0.1, normalize=normalize).fit(X, y, qid, query_weight=[1, 1, 2, 1, 1])
    again = qid == 2
    doubled = RankRLS(0.1, normalize=normalize).fit(
        np.vstack([X, X[again]]),
        np.append(y, y[again]),
        np.append(qid, np.full(again.sum(), 99)),
    )
    assert np.allclose(weighted.coef_, doubled.coef_, rtol=1e-11)
    plain = RankRLS(0.1, normalize=normalize).fit(X, y, qid)
    assert not np.allclose(weighted.coef_, plain.coef_, rtol=1e-4)


def test_query_weight_by_name_whatever_the_order_of_rows():
    X, y, qid = example()
    names = np.array(list("cabed"))[qid]
    weight = {"a": 0.5, "b": 3.0, "c": 1.0, "d": 0.0, "e": 2.0}
    mixed = np.random.default_rng(3).permutation(N)
    one = RankRLS(0.1).fit(X, y, names, query_weight=weight)
    two = RankRLS(0.1).fit(X[mixed], y[mixed], names[mixed], query_weight=weight)
    assert np.allclose(one.coef_, two.coef_, rtol=1e-11)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.filterwarnings("error")
def test_without_penalty_duplicates_share_and_constants_get_nothing(dtype):
    X, y, qid = example()
    constant = np.full((N, 1), 0.1)
    by_query = (qid / 3.0)[:, None]
    X = X.astype(np.float32)
    wide = np.hstack([X, X[:, :1], constant, by_query]).astype(dtype)
    w = RankRLS(alpha=0).fit(wide, y, qid).coef_
    plain = RankRLS(alpha=0).fit(X, y, qid).coef_
    assert np.allclose(w[1:4], plain[1:], rtol=1e-6)
    assert np.allclose([w[0], w[4]], plain[0] / 2, rtol=1e-6)
    assert np.allclose(w[5:], 0, atol=1e-6)


def test_more_features_than_documents_fits_exactly_without_penalty():
    X, y, qid = example(n_features=60)
    fitted = RankRLS(alpha=0).fit(X, y, qid)
    away = fitted.predict(X) - y
    for q in range(len(SIZES)):
        assert np.ptp(away[qid == q]) < 1e-8


@pytest.mark.parametrize("alpha", [-1, np.nan, np.inf, "1", None, True])
def test_senseless_alpha(alpha):
    X, y, qid = example()
    with pytest.raises(InputError, match=r"alpha=.* must "):
        RankRLS(alpha).fit(X, y, qid)


def test_senseless_parameters_are_named():
    X, y, qid = example()
    with pytest.raises(InputError, match="normalize='max'"):
        RankRLS(normalize="max").fit(X, y, qid)
    with pytest.raises(InputError, match="n_jobs=0"):
        RankRLS(n_jobs=0).fit(X, y, qid)


@pytest.mark.parametrize("workers", [2, 4])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_same_bits_for_any_number_of_threads(workers, sparse):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(40_000, 7)) * (rng.random((40_000, 7)) < 0.5)
    y, qid = rng.integers(0, 3, 40_000), np.arange(40_000) // 37
    X = csr_array(X) if sparse else X
    one = RankRLS(n_jobs=1).fit(X, y, qid)
    many = RankRLS(n_jobs=workers).fit(X, y, qid)
    assert one.coef_.tobytes() == many.coef_.tobytes()


@pytest.mark.realdata
def test_the_published_figures_on_mq2008_fold1(data_dir):
    from leanrank import load_letor
    from leanrank.metrics import evaluate

    fold = data_dir / "MQ2008" / "Fold1"
    if not fold.is_dir():
        pytest.skip(f"{fold} is missing")
    train, test = load_letor(fold / "train.txt"), load_letor(fold / "test.txt")
    ranker = RankRLS(alpha=2, normalize="none").fit(train)
    names = ["map", "p@10", "mean_ndcg", "ndcg@10"]
    means = evaluate(
        test.y, ranker.predict(test), test.qid, measures=names, convention="letor4"
    ).means
    assert [round(means[name], 4) for name in names] == [0.4524, 0.2391, 0.4633, 0.2145]
