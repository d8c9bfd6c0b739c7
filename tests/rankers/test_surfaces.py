"""Surfaces of two features in rankers: listed or screened, wherever the documents are."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank import LeanRanker, LinearRanker
from leanrank.data import dump
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.rankers import lean, lean_search, surfaces
from tests.designs.test_surfaces import explicit

NAMES = ("bm25", "new", "age", "links", "kind", "zero")
PAIRS = [("links", "age"), ("kind", "bm25")]  # named in any order


def made(n_queries=150, seed=0, gaps=False):
    """The score has a product of age and links, and a weight of bm25 that depends on the kind."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * n_queries, 6))
    X[:, :4] *= rng.random((len(X), 4)) < 0.7
    X[:, 1] = X[:, 1] > 0
    X[:, 4] = np.repeat(rng.integers(0, 3, n_queries), 10)
    X[:, 5] = 3.0
    u = 0.6 * X[:, 0] * X[:, 4] + 1.5 * X[:, 2] * X[:, 3] + X[:, 1]
    y = np.digitize(u + rng.gumbel(size=len(u)), [0.5, 1.5, 3])
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return RankingData(X, y, np.arange(len(X)) // 10, feature_names=NAMES)


def ranker(**more):
    return LinearRanker("logistic", **{"alpha": 0.003, "curves": 6, "pairs": PAIRS} | more)


def objective(Z, y, w, owner, alpha):
    """Mean over queries of the mean logistic loss of their pairs, plus the penalty; its slope."""
    u, y = (Z @ w).reshape(-1, 10), y.reshape(-1, 10)
    better = y[:, :, None] > y[:, None, :]
    count = better.sum((1, 2))
    weight = better / np.maximum(count, 1)[:, None, None] / np.count_nonzero(count)
    margin = u[:, :, None] - u[:, None, :]
    slope = -weight / (1.0 + np.exp(margin))
    norms = [np.linalg.norm(w[owner == k]) * (owner == k).sum() ** 0.5 for k in np.unique(owner)]
    penalty = alpha * (0.5 * np.abs(w).sum() + 0.5 * sum(norms))
    loss = (weight * np.logaddexp(0.0, -margin)).sum()
    return loss, Z.T @ (slope.sum(2) - slope.sum(1)).ravel(), penalty


def proximal_gradient(Z, y, owner, alpha, n_steps=1_500):
    """Minimise the same with nothing but the written columns."""
    w = v = np.zeros(Z.shape[1])
    t, size = 1.0, 1.0
    for _ in range(n_steps):
        loss, slope, _ = objective(Z, y, v, owner, alpha)
        while True:
            new = v - slope * size
            new = np.sign(new) * np.maximum(np.abs(new) - 0.5 * alpha * size, 0.0)
            for k in np.unique(owner):
                at = owner == k
                cut = 0.5 * alpha * size * at.sum() ** 0.5
                new[at] *= max(0.0, 1.0 - cut / max(np.linalg.norm(new[at]), 1e-300))
            step = new - v
            bound = loss + slope @ step + step @ step / (2 * size)
            if objective(Z, y, new, owner, alpha)[0] <= bound + 1e-14:
                break
            size /= 2
        later = (1 + np.sqrt(1 + 4 * t * t)) / 2
        again = (v - new) @ (new - w) > 0  # too far: without momentum
        v, t, w = (new, 1.0, new) if again else (new + (t - 1) / later * (new - w), later, new)
    loss, _, penalty = objective(Z, y, w, owner, alpha)
    return loss + penalty


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_another_solver_reaches_the_same_objective_on_written_columns(dtype):
    data = made(60, gaps=True)
    data = data.replace(X=data.X.astype(dtype))
    found = ranker(alpha=0.01, curves=4, tol=1e-9).fit(data)
    columns = found.ramps_
    X, ramps = data.X.astype(np.float64), columns.ramps
    parts = []
    for j, knots in enumerate(ramps.knots):
        for a, b in pairwise(knots):
            parts.append(np.nan_to_num(np.clip((X[:, j] - a) / (b - a), 0.0, 1.0)))
        if ramps.gap[j]:
            parts.append(np.isnan(X[:, j]).astype(float))
    Z = np.hstack((np.transpose(parts), explicit(X, ramps, columns.pairs.tolist())))
    best = proximal_gradient(Z, data.y, columns.feature, 0.01)
    assert found.objective_ == pytest.approx(best, rel=2e-7)
    loss, _, penalty = objective(Z, data.y, found.coef_, columns.feature, 0.01)
    assert loss + penalty == pytest.approx(found.objective_, rel=1e-7)
    less = Z @ found.coef_ - found.predict(data)
    less -= np.repeat(less.reshape(-1, 10).mean(axis=1), 10)
    np.testing.assert_allclose(less, 0.0, atol=1e-5)  # what depends on the query moves nothing


def test_pairs_may_be_named_or_found():
    data = made()
    listed, found = ranker().fit(data), ranker(pairs=2).fit(data)
    assert set(listed.to_model().surfaces) == set(found.to_model().surfaces) == {(0, 4), (2, 3)}
    assert 4 not in listed.to_model().curves  # constant within each query
    assert listed.objective_ < ranker(pairs=None).fit(data).objective_


@pytest.mark.parametrize("bad", [["age"], [("age",)], [("age", "age")], [("age", "no")]])
def test_pairs_that_are_none_are_named(bad):
    with pytest.raises(InputError, match="pairs"):
        ranker(pairs=bad).fit(made(20))


def test_a_monotone_feature_has_no_pair():
    data = made()
    with pytest.raises(InputError, match="'age', which is monotone"):
        ranker(monotone={"age": 1}).fit(data)
    assert set(ranker(monotone={"age": 1}, pairs=1).fit(data).to_model().surfaces) == {(0, 4)}


@pytest.mark.parametrize("pairs", [PAIRS, 2])
def test_the_same_on_disk_in_sparse_form_and_on_any_number_of_threads(pairs, tmp_path):
    pytest.importorskip("pyarrow")
    data = made()
    dump(data, tmp_path / "data.arrow")
    here = ranker(pairs=pairs).fit(data)
    for other in (RankingData.open(tmp_path / "data.arrow"), data):
        np.testing.assert_array_equal(ranker(pairs=pairs, n_jobs=2).fit(other).coef_, here.coef_)
    sparse = ranker(pairs=pairs).fit(data.replace(X=csr_array(data.X)))
    np.testing.assert_allclose(sparse.coef_, here.coef_, atol=1e-9)
    assert sparse.to_model().surfaces.keys() == here.to_model().surfaces.keys()
    np.testing.assert_allclose(sparse.predict(data), here.predict(data), atol=1e-9)


def test_many_documents_are_screened_by_some_queries(monkeypatch):
    asked = []

    def counted(design, pairs, g, weight, *more):
        asked.append(np.count_nonzero(weight))
        return sums(design, pairs, g, weight, *more)

    sums = surfaces.surfaces.screening_sums
    monkeypatch.setattr(surfaces.surfaces, "screening_sums", counted)
    monkeypatch.setattr(surfaces, "SCREENED_ROWS", 500)
    assert (2, 3) in ranker(pairs=1).fit(made()).to_model().surfaces
    assert 0 < asked[0] <= 500


@pytest.mark.parametrize("pairs", [PAIRS, 2])
def test_documents_on_dask_have_the_surfaces_of_memory(pairs):
    dd, distributed = map(pytest.importorskip, ("dask.dataframe", "distributed"))
    import pandas as pd

    data = made(gaps=True)
    frame = pd.DataFrame(data.X, columns=list(NAMES)).assign(y=data.y, qid=data.qid)
    here, found = ranker(pairs=pairs, tol=1e-9).fit(data), []
    for n_workers in (1, 2):
        how = {"processes": False, "threads_per_worker": 1, "dashboard_address": None}
        with distributed.Client(n_workers=n_workers, **how):
            parts = dd.from_pandas(frame, npartitions=3)
            there = ranker(pairs=pairs, tol=1e-9)
            found.append(there.fit(parts[list(NAMES)], parts["y"], qid=parts["qid"]))
    np.testing.assert_array_equal(found[0].coef_, found[1].coef_)
    there = found[0]
    assert there.objective_ == pytest.approx(here.objective_, rel=1e-8)
    np.testing.assert_array_equal(there.ramps_.of_query, here.ramps_.of_query)
    np.testing.assert_array_equal(there.ramps_.pairs, here.ramps_.pairs)
    for one, other in zip(there.ramps_.masses, here.ramps_.masses, strict=True):
        np.testing.assert_allclose(one, other, atol=1e-12)
    np.testing.assert_allclose(there.predict(data), here.predict(data), atol=1e-3)


@pytest.mark.slow
def test_the_default_ranker_finds_the_same_surfaces_in_sparse_form():
    data = made(400)
    dense = LeanRanker(max_pairs=2).fit(data)
    sparse = LeanRanker(max_pairs=2).fit(data.replace(X=csr_array(data.X)))
    assert set(dense.model_.surfaces) == {(0, 4), (2, 3)}
    assert sparse.model_.surfaces.keys() == dense.model_.surfaces.keys()
    np.testing.assert_allclose(sparse.predict(data), dense.predict(data), atol=1e-4)


@pytest.mark.parametrize("option", [{"max_pairs": 5}, {"heredity": False}])
def test_options_of_pairs_without_effect_are_refused(option):
    (name,) = option
    with pytest.raises(InputError, match=f"{name} has no effect with weights instead of curves"):
        LeanRanker(curves=None, **option).fit(made(20))


def test_without_pairs_nothing_is_screened(monkeypatch):
    def refuse(*_):
        raise AssertionError

    monkeypatch.setattr(surfaces.surfaces, "screening_sums", refuse)
    monkeypatch.setattr(lean_search, "find_pairs", refuse)
    monkeypatch.setattr(lean, "query_columns", refuse)
    assert not LeanRanker(max_pairs=0).fit(made(30)).model_.surfaces


def test_a_category_of_the_query_is_named():
    pandas = pytest.importorskip("pandas")
    data = made(60)
    frame = pandas.DataFrame(data.X[:, :4], columns=list(NAMES[:4]))
    frame["kind"] = np.array(["name", "topic", "trend"])[data.X[:, 4].astype(int)]
    with pytest.warns(UserWarning, match="category 'kind' has one value per query and is not used"):
        found = LeanRanker(max_pairs=2).fit(frame, data.y, qid=data.qid)
    assert "kind" not in found.model_.weights
    ones = frame.assign(**{f"is {one}": frame["kind"] == one for one in ("name", "trend")})
    found = LeanRanker(max_pairs=2).fit(ones.drop(columns="kind"), data.y, qid=data.qid)
    assert all(j < 4 for j in found.model_.curves)  # the weights of the others are in pairs
