"""Pairs of features beside the curves of ``LinearRanker``."""

import numpy as np
import pytest
from scipy import sparse

from leanrank import LinearRanker, load_model
from leanrank.data.ranking_data import RankingData
from leanrank.designs.ramps import ramp_design
from leanrank.designs.surfaces import SurfaceDesign
from leanrank.errors import InputError
from leanrank.execution import SerialExecutor
from leanrank.rankers import DominationRanker

NAMES = ("bm25", "age", "clicks", "links", "length")


def made(n_queries=150, seed=0, gaps=False, dtype=np.float64):
    """Return documents whose utility has a surface of bm25 and clicks."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(10 * n_queries, 5))
    utility = X[:, 0] + 0.5 * X[:, 1] + 0.6 * X[:, 2] + 0.3 * X[:, 3] + 1.5 * X[:, 0] * X[:, 2]
    y = np.digitize(utility + 0.3 * rng.normal(size=len(X)), [0.0, 1.5])
    if gaps:
        X[rng.random(X.shape) < 0.1] = np.nan
    return RankingData(X.astype(dtype), y, np.arange(len(X)) // 10, feature_names=NAMES)


@pytest.mark.parametrize("solver", ["newton", "proximal"])
@pytest.mark.parametrize("gaps", [False, True])
def test_the_optimum_is_that_of_written_columns(solver, gaps):
    data = made(60, gaps=gaps)
    ours = LinearRanker(
        "logistic", curves=4, pairs=[("clicks", "bm25"), (1, 3)], alpha=0.003, tol=1e-8,
        penalty_factors={"age": 2.0},
    ).fit(data)  # fmt: skip
    columns = ours.ramps_
    design = SurfaceDesign(ramp_design(data.X, columns.ramps, SerialExecutor()), columns.pairs)
    assert columns.pairs.tolist() == [[0, 2], [1, 3]]
    n = len(columns.feature)
    written = data.replace(
        X=design.take(np.arange(n)).columns((0, len(data)), 0, n), feature_names=None
    )
    factors = np.array([1.0, 2.0, 1.0, 1.0, 1.0, 1.0, 2.0])[columns.feature]
    theirs = LinearRanker(
        "logistic", "groups", solver, groups=columns.feature, alpha=0.003, penalty_factors=factors,
        tol=1e-8 if solver == "newton" else 1e-5, max_iter=20_000,
    ).fit(written)  # fmt: skip
    assert ours.dual_gap_ <= 1e-8
    assert ours.objective_ == pytest.approx(theirs.objective_, rel=2e-5)
    np.testing.assert_allclose(ours.coef_, theirs.coef_, atol=1e-5 if solver == "newton" else 2e-2)
    assert ours.coef_[columns.feature == 5].any()
    scores = written.X @ ours.coef_
    less = ours.predict(data) - scores
    np.testing.assert_allclose(less, less[0], atol=1e-9)  # a constant changes no order


@pytest.mark.parametrize("loss", ["domination", "logistic", "squared-hinge", "listnet"])
def test_a_number_takes_the_pairs_that_promise_most(loss):
    data = made()
    ranker = LinearRanker(loss, curves=6, pairs=1, alpha=0.01).fit(data)
    assert ranker.ramps_.pairs.tolist() == [[0, 2]]
    assert list(ranker.to_model().surfaces) == [(0, 2)]
    curves = LinearRanker(loss, curves=6, alpha=0.01).fit(data)
    test = made(seed=1)
    assert ranker.score(test) > curves.score(test) + 0.02


def test_no_pairs_are_curves_alone():
    data = made(40)
    expected = DominationRanker(curves=4).fit(data)
    for none in (0, []):
        ranker = DominationRanker(curves=4, pairs=none).fit(data)
        np.testing.assert_array_equal(ranker.coef_, expected.coef_)
        assert ranker.to_model().surfaces == {}
    np.testing.assert_array_equal(ranker.predict(data), expected.predict(data))


def test_the_model_is_saved_explained_and_on_a_path(tmp_path):
    data = made(60, gaps=True)
    path = LinearRanker(curves=4, pairs=2).path(data, n_alphas=6, validation=made(30, 1, True))
    assert path.n_selected[0] == 0
    assert path.n_selected[-1] == 5
    assert path.measures["ndcg@10"][-1] > path.measures["ndcg@10"][1]
    ranker = path.ranker(5)
    assert ranker.n_features_ == 5
    assert ranker.to_model().surfaces
    ranker.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    np.testing.assert_array_equal(again.predict(data.X), ranker.predict(data))
    some = data.queries[:1]
    explained = ranker.explain(some)
    assert any("×" in name for name in explained.features)
    np.testing.assert_allclose(explained.contributions.sum(axis=1), ranker.predict(some))


def test_float32_has_the_objective_of_its_model():
    data = made(60, dtype=np.float32)
    ranker = LinearRanker("logistic", curves=4, pairs=[(0, 2)], alpha=0.003).fit(data)
    wide = LinearRanker("logistic", curves=4, pairs=[(0, 2)], alpha=0.003).fit(
        data.replace(X=data.X.astype(np.float64))
    )
    assert ranker.objective_ == pytest.approx(wide.objective_, rel=1e-5)


def test_a_feature_of_the_query_weighs_another():
    data = made(200)
    kind = np.repeat(np.arange(200) % 2, 10).astype(float)
    X = np.column_stack((data.X[:, :2], kind))
    y = np.digitize(np.where(kind, X[:, 0], X[:, 1]), [0.0, 1.0])
    told = RankingData(X, y, data.qid, feature_names=("words", "vectors", "kind"))
    ranker = LinearRanker("logistic", curves=4, pairs=2, alpha=0.002).fit(told)
    assert ranker.ramps_.of_query.tolist() == [False, False, True]
    assert ranker.ramps_.pairs.tolist() == [[0, 2], [1, 2]]
    assert "kind" not in ranker.curves_
    assert ranker.score(told) > 0.99
    assert LinearRanker("logistic", curves=4, alpha=0.002).fit(told).score(told) < 0.97


@pytest.mark.parametrize(
    ("how", "message"),
    [
        ({"curves": None, "pairs": 1}, "curves=None"),
        ({"pairs": ["ab"]}, "two features"),
        ({"pairs": [("bm25", "bm25")]}, "two different features"),
        ({"pairs": [("bm25", "agee")]}, "did you mean 'age'"),
        ({"pairs": [(0, 1)], "monotone": {"age": 1}}, "'age', which is monotone"),
        ({"pairs": -1}, "pairs=-1"),
        ({"pairs": "auto"}, "pairs='auto'"),
    ],
)
def test_bad_pairs(how, message):
    with pytest.raises(InputError, match=message):
        LinearRanker(**{"curves": 4, **how}).fit(made(20))


def test_sparse_features_have_no_pairs():
    data = made(20)
    with pytest.raises(InputError, match="dense X"):
        LinearRanker(curves=4, pairs=1).fit(sparse.csr_array(data.X), data.y, data.qid)


def test_pairs_of_monotone_features_are_left_out():
    data = made()
    ranker = LinearRanker(curves=4, pairs=3, monotone={"bm25": 1}).fit(data)
    assert ranker.ramps_.pairs.shape == (3, 2)
    assert not (ranker.ramps_.pairs == 0).any()
