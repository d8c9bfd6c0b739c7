"""The path, leave-query-out and choice of alpha of RankRLS."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank import RankingData, make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.rankers import RankRLS, RankRLSCV
from leanrank.rankers.leave_query_out import choose_size


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=25, n_features=8, random_state=3)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_the_path_is_a_sequence_of_fits(data, wide, sparse):
    X = np.hstack([data.X] * 60) if wide else data.X
    X = csr_array(X) if sparse else X
    held_out = RankingData(X, data.y, data.qid)
    path = RankRLS().path(X, data.y, data.qid, alphas=[1e-3, 1.0, 0.1], validation=held_out)
    assert path.alphas.tolist() == [1.0, 0.1, 1e-3]
    for alpha, coef in zip(path.alphas, path.coefs, strict=True):
        fitted = RankRLS(alpha).fit(X, data.y, qid=data.qid)
        assert np.allclose(coef, fitted.coef_, rtol=1e-6, atol=1e-9)
        expected = fitted.score(held_out)
        assert path.measures["ndcg@10"][path.alphas == alpha] == pytest.approx(expected)
    assert (np.diff(path.objectives) < 0).all()


@pytest.mark.parametrize("wide", [False, True])
def test_leave_query_out_is_training_without_the_query(data, wide):
    X = np.hstack([data.X, np.random.default_rng(0).normal(size=(len(data), 400))])
    X = X if wide else data.X
    shuffled = np.random.default_rng(1).permutation(len(data))
    X, y, qid = X[shuffled], data.y[shuffled], data.qid[shuffled]
    scores = RankRLS(normalize="none").leave_query_out(X, y, qid, alphas=[3.0, 0.5])
    for alpha, row in zip([3.0, 0.5], scores, strict=True):
        for q in np.unique(qid)[:5]:
            mine = qid == q
            again = RankRLS(alpha, normalize="none").fit(X[~mine], y[~mine], qid=qid[~mine])
            assert np.allclose(row[mine], again.predict(X[mine]), atol=1e-8)


def test_the_chosen_alpha_has_the_best_measure(data):
    alphas = [1e-4, 1e-2, 1.0, 100.0]
    fitted = RankRLSCV(alphas, measure="ndcg@5").fit(data)
    scores = RankRLS().leave_query_out(data, alphas=alphas)
    means = [evaluate(data, s, measures="ndcg@5").means["ndcg@5"] for s in scores]
    assert np.allclose(fitted.measures_, means)
    assert fitted.alpha_ == alphas[int(np.argmax(means))]
    assert np.allclose(fitted.coef_, RankRLS(fitted.alpha_).fit(data).coef_)


def test_the_loss_can_choose_too(data):
    alphas = [1e-4, 1e-2, 1.0, 100.0]
    fitted = RankRLSCV(alphas, measure="loss", normalize="none").fit(data)
    scores = RankRLS(normalize="none").leave_query_out(data, alphas=alphas)
    errors = []
    for row in scores:
        away = row - data.y
        means = np.array([away[data.qid == q].mean() for q in data.qid])
        errors.append(np.sum((away - means) ** 2) / data.n_queries)
    assert np.allclose(fitted.measures_, errors)
    assert fitted.alpha_ == alphas[int(np.argmin(errors))]


def test_the_one_standard_error_rule_prefers_the_simpler(data):
    alphas = np.logspace(-6, 3, 19)
    best = RankRLSCV(alphas).fit(data).alpha_
    assert RankRLSCV(alphas, rule="1se").fit(data).alpha_ >= best


def test_the_lowest_error_is_chosen(data):
    alphas = np.logspace(-6, 6, 7)
    found = RankRLSCV(alphas, measure="all_pairs_error").fit(data)
    turned = RankRLSCV(alphas, measure="joachims_tau").fit(data)
    assert found.alpha_ == turned.alpha_
    assert choose_size(np.array([[0.1, 0.2], [0.3, 0.4]]), "best", "domination_error") == 0


def test_choosing_with_undefined_queries():
    values = np.array([[np.nan, 0.5, 0.1], [np.nan, 0.6, np.nan]])
    assert choose_size(values, "best") == 1
    with pytest.raises(InputError, match="not defined on any"):
        choose_size(np.full((2, 3), np.nan), "best")


def test_queries_of_one_level_are_nothing_to_choose_by():
    rng = np.random.default_rng(0)
    X, qid = rng.normal(size=(12, 3)), np.repeat([0, 1, 2], 4)
    y = np.array([0, 1, 2, 0, 1, 1, 1, 1, 0, 0, 0, 0])
    with pytest.warns(DataWarning, match="only one query has labels that differ"):
        ranker = RankRLSCV().fit(X, y, qid)
    assert ranker.alpha_ == max(ranker.alphas_)


def test_a_single_query_leaves_nothing_to_choose_by(data):
    with pytest.warns(DataWarning, match="only one query"):
        fitted = RankRLSCV([0.1, 10.0]).fit(data.X, data.y)
    assert fitted.alpha_ == 10.0


def test_documents_of_weight_zero_and_two_in_the_measure(data):
    weight = np.random.default_rng(2).integers(0, 3, len(data)).astype(np.float64)
    rows = np.repeat(np.arange(len(data)), weight.astype(int))
    weighted = RankRLSCV([1e-3, 1.0]).fit(data.X, data.y, data.qid, sample_weight=weight)
    repeated = RankRLSCV([1e-3, 1.0]).fit(data.X[rows], data.y[rows], data.qid[rows])
    assert np.allclose(weighted.measures_, repeated.measures_)


@pytest.mark.parametrize(
    ("alphas", "words"), [([], "empty"), ([0.0, 1.0], "above 0"), ([-1.0], "at least 0")]
)
def test_bad_alphas(data, alphas, words):
    with pytest.raises(InputError, match=words):
        RankRLSCV(alphas).fit(data)


def test_a_wide_sparse_set_is_not_densified(monkeypatch):
    rng = np.random.default_rng(4)
    n = 60_000
    rows, columns = np.repeat(np.arange(60), 20), rng.integers(0, n, 1200)
    X = csr_array((rng.random(1200), (rows, columns)), shape=(60, n))
    y = rng.integers(0, 2, 60)
    data = RankingData(X, y, np.repeat(np.arange(6), 10))
    monkeypatch.setattr(type(data.X), "toarray", _small_only(type(data.X).toarray))
    fitted = RankRLS(0.1).fit(data)
    path = RankRLS().path(data, alphas=[0.1])
    assert np.allclose(path.coefs[0], fitted.coef_, atol=1e-9)
    assert RankRLS(0.1).leave_query_out(data).shape == (1, 60)


def _small_only(toarray):
    def checked(self, *args, **options):
        assert self.shape[0] * self.shape[1] < 100_000, "a large sparse matrix was densified"
        return toarray(self, *args, **options)

    return checked
