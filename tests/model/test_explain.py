"""Scores taken apart: parts add up, differences explain, whatever X is."""

import numpy as np
import pandas as pd
import polars as pl
import pytest
from scipy.sparse import csr_array

from leanrank import make_ranking
from leanrank.data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.errors import InputError, ModelError
from leanrank.model import Line, Model, Ramps, Steps
from leanrank.rankers import DominationRanker, KernelRankRLS, RankBoost
from tests.model import boosted

NAMES = ["bm25", "spam", "age", "clicks"]
MODEL = Model.from_coef([0.5, -2.0, 0.0, 1.25], feature_names=NAMES)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(7, 4))


def brute_force(model, row):
    """What each feature adds, one at a time: the score with it alone, less that of nothing."""
    empty = np.full((1, model.n_features), -1e300)
    parts = []
    for at in model.indices:
        alone = np.zeros((1, model.n_features)) if model.is_linear else empty.copy()
        base = model.predict(alone)[0]
        alone[0, at] = row[at]
        parts.append(model.predict(alone)[0] - base)
    return parts


def test_contributions_of_a_linear_model_are_weights_times_features(X):
    explained = MODEL.explain(X)
    assert explained.features == ("bm25", "spam", "clicks")
    np.testing.assert_allclose(explained.contributions, X[:, [0, 1, 3]] * [0.5, -2.0, 1.25])
    np.testing.assert_array_equal(explained.scores, MODEL.predict(X))
    for row in range(len(X)):
        np.testing.assert_allclose(explained.contributions[row], brute_force(MODEL, X[row]))


def test_contributions_of_a_boosted_model_are_its_steps(X):
    rng = np.random.default_rng(1)
    n = 30
    model = boosted(
        4, rng.integers(0, 3, n), rng.normal(size=n), rng.integers(0, 2, n), rng.normal(size=n)
    )
    X[2, 1] = model.curves[1].thresholds[0]  # on a threshold
    explained = model.explain(X)
    np.testing.assert_allclose(explained.contributions.sum(axis=1), model.predict(X), atol=1e-12)
    for row in range(len(X)):
        np.testing.assert_allclose(
            explained.contributions[row], brute_force(model, X[row]), atol=1e-12
        )


def test_contributions_of_ramps_are_their_curves(X):
    curves = {0: Ramps((-1.0, 0.0, 0.5), (2.0, -1.0)), 2: Steps((0.1,), (0.5, 0.0)), 3: Line(2.0)}
    explained = Model(4, curves).explain(X)
    for at, (feature, curve) in enumerate(curves.items()):
        assert explained.contributions[:, at].tolist() == curve(X[:, feature]).tolist()
    np.testing.assert_allclose(explained.contributions.sum(axis=1), explained.scores)


def test_a_missing_value_adds_what_the_boosted_model_says_of_it():
    model = boosted(2, [0, 1], [0.5, 3.0], [1, 0], [1.0, -0.25])
    explained = model.explain([[np.nan, 4.0]])
    assert explained.contributions.tolist() == [[1.0, -0.25]]


@pytest.mark.parametrize(
    "make",
    [
        csr_array,
        lambda X: X.astype(np.float32),
        lambda X: pd.DataFrame(X, columns=NAMES)[NAMES[::-1]],
        lambda X: pl.DataFrame(X, schema=NAMES).select(NAMES[::-1]),
    ],
    ids=["sparse", "float32", "pandas, other order", "polars, other order"],
)
def test_any_kind_of_table_gives_the_same(make, X):
    np.testing.assert_allclose(
        MODEL.explain(make(X)).contributions, MODEL.explain(X).contributions, rtol=1e-6
    )


def test_a_normaliser_comes_before_the_weights():
    data = make_ranking(5, 8, n_features=4, random_state=2)
    normalizer = make_normalizer("query-minmax")
    scaled = normalizer.fit_transform(data)
    model = MODEL.replace(feature_names=None, normalizer=normalizer.to_dict())
    plain = MODEL.replace(feature_names=None)
    np.testing.assert_allclose(
        model.explain(data).contributions, plain.explain(scaled).contributions
    )


def test_why_gives_differences_largest_first_that_add_up(X):
    explained = MODEL.explain(X)
    first, second = explained.ranked()[:2].tolist()
    why = explained.why(first, second)
    values = list(why.differences.values())
    assert values == sorted(values, key=abs, reverse=True)
    assert sum(values) == pytest.approx(explained.scores[first] - explained.scores[second])
    assert repr(why).splitlines()[0].startswith(f"row {first} stands above row {second} by ")
    assert "stands below" in repr(explained.why(second, first))
    assert "stands beside" in repr(explained.why(first, first))


def test_rows_of_two_queries_are_not_compared(X):
    explained = MODEL.explain(X, qid=["b", "a", "b", "a", "a", "b", "b"])
    assert explained.ranked(0).tolist() == sorted(
        [0, 2, 5, 6], key=lambda row: -explained.scores[row]
    )
    explained.why(0, 6)
    with pytest.raises(InputError, match="rows 0 and 1 belong to different queries"):
        explained.why(0, 1)
    for row in (7, -1):
        with pytest.raises(InputError, match="there is no row"):
            explained.why(0, row)


def test_shares_of_variance_are_covariances_within_queries():
    data = make_ranking(12, (1, 9), n_features=4, random_state=3)
    model = MODEL.replace(feature_names=None)
    explained = model.explain(data)
    inside, total = [], []
    for q in range(data.n_queries):
        part = explained.contributions[data.query_ptr[q] : data.query_ptr[q + 1]]
        inside.append(part - part.mean(axis=0))
        total.append(inside[-1].sum(axis=1))
    inside, total = np.concatenate(inside), np.concatenate(total)
    expected = [inside[:, j] @ total / (total @ total) for j in range(3)]
    np.testing.assert_allclose(explained.variance_shares, expected)
    assert explained.variance_shares.sum() == pytest.approx(1)


@pytest.mark.parametrize("X", [np.zeros((0, 4)), np.ones((1, 4)), np.ones((3, 4))])
def test_scores_without_variance_have_no_shares(X):
    explained = MODEL.explain(X)
    assert explained.variance_shares.tolist() == [0, 0, 0]
    assert repr(explained).startswith("Explanation: ")


def test_documents_are_called_by_their_identifiers():
    data = make_ranking(2, 12, n_features=4, random_state=4)
    data = data.replace(doc_ids=[f"d{at}" for at in range(len(data))])
    explained = MODEL.replace(feature_names=None).explain(data)
    assert "d0 stands" in repr(explained.why(0, 1))
    text = repr(explained)
    assert "document" in text
    assert "… and 7 documents, 1 query more" in text


@pytest.mark.parametrize("scale", [1e-9, 1e-2, 1.0, 1e5, 1e12])
def test_the_table_lines_up_at_any_scale(scale):
    lines = repr(MODEL.explain(scale * np.random.default_rng(5).normal(size=(4, 4)))).splitlines()
    assert len({len(line) for line in lines[1:]}) == 1


@pytest.mark.parametrize("ranker", [DominationRanker(alpha=0.05), RankBoost(n_rounds=20)])
def test_a_fitted_ranker_explains_what_it_predicts(ranker):
    data = make_ranking(20, 10, n_features=6, random_state=6)
    ranker.fit(data)
    explained = ranker.explain(data)
    np.testing.assert_allclose(
        explained.contributions.sum(axis=1), ranker.predict(data), atol=1e-10
    )


def test_a_kernel_model_says_why_it_cannot_explain():
    data = make_ranking(6, 5, n_features=3, random_state=7)
    ranker = KernelRankRLS(kernel="rbf").fit(data)
    with pytest.raises(ModelError, match="not linear"):
        ranker.explain(data)


def test_why_by_document_ids():
    data = RankingData([[1.0], [3.0], [2.0]], qid=[0, 0, 1], doc_ids=["a", "b", "b"])
    explained = Model.from_coef([2.0]).explain(data)
    assert explained.why("a", 1).scores == explained.why(0, 1).scores == (2.0, 6.0)
    with pytest.raises(InputError, match="'b' is in several rows"):
        explained.why("a", "b")
    for wrong in ("c", 3, 1.5, None):
        with pytest.raises(InputError, match="document ids, or of the 3 rows"):
            explained.why("a", wrong)
    with pytest.raises(InputError, match="there is no row 'a'"):
        Model.from_coef([2.0]).explain(data.X).why("a", "b")
