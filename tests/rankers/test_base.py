from __future__ import annotations

import doctest
import tracemalloc
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pytest
import sklearn
from scipy.sparse import csr_array
from sklearn.exceptions import NotFittedError
from sklearn.model_selection import GridSearchCV, GroupKFold, cross_validate
from sklearn.pipeline import Pipeline
from sklearn.preprocessing import StandardScaler

from leanrank import RankingData
from leanrank._numbers import check_number
from leanrank.errors import InputError
from leanrank.rankers import RANKERS, RankRLS, get_ranker
from leanrank.rankers.inputs import check_finite

N = 60
NAMES = ["bm25", "pagerank", "clicks"]


def example(seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(N, 3))
    y = np.digitize(X @ [1.0, -0.5, 0.0] + 0.3 * rng.normal(size=N), [0, 1]).astype(np.float64)
    return X, y, np.arange(N) // 6


def frames(X):
    return {
        "pandas": pd.DataFrame(X, columns=NAMES),
        "polars": pl.DataFrame(X, schema=NAMES),
        "pyarrow": pa.table({name: X[:, j] for j, name in enumerate(NAMES)}),
    }


@pytest.mark.parametrize("kind", ["int", "float", "str", "bytes", "tuple", "datetime", "list"])
def test_query_identifiers_of_any_type_in_any_order(kind):
    X, y, qid = example()
    names = {
        "int": qid.astype(np.int32),
        "float": qid + 0.5,
        "str": np.array([f"WT04-{q}" for q in qid]),
        "bytes": np.array([b"q%d" % q for q in qid]),
        "tuple": np.fromiter((("q", int(q)) for q in qid), dtype=object, count=N),
        "datetime": np.datetime64("2024-01-01") + qid,
        "list": qid.tolist(),
    }[kind]
    plain = RankRLS().fit(X, y, qid)
    mixed = np.random.default_rng(1).permutation(N)
    shuffled = [names[i] for i in mixed] if kind == "list" else names[mixed]
    fitted = RankRLS().fit(X[mixed], y[mixed], shuffled)
    assert np.allclose(fitted.coef_, plain.coef_, rtol=1e-11)
    assert np.array_equal(fitted.rank(X[mixed], shuffled), fitted.rank(X, qid)[mixed])


def test_no_qid_is_one_query():
    X, y, _ = example()
    one = RankRLS().fit(X, y)
    assert np.array_equal(one.coef_, RankRLS().fit(X, y, np.zeros(N)).coef_)
    assert one.n_queries_ == one.n_informative_queries_ == 1


def test_group_and_ranking_data_with_weights_and_offset():
    X, y, qid = example()
    rng = np.random.default_rng(2)
    more = {"sample_weight": rng.random(N), "query_weight": rng.random(10), "offset": rng.random(N)}
    plain = RankRLS().fit(X, y, qid, **more)
    assert np.array_equal(RankRLS().fit(X, y, group=[6] * 10, **more).coef_, plain.coef_)
    data = RankingData(X, y, qid, **more)
    assert np.array_equal(RankRLS().fit(data).coef_, plain.coef_)
    for name in more:
        without = RankRLS().fit(X, y, qid, **{k: v for k, v in more.items() if k != name})
        assert not np.allclose(without.coef_, plain.coef_, rtol=1e-6), name


@pytest.mark.parametrize("name", ["y", "qid", "group", "sample_weight", "query_weight", "offset"])
def test_nothing_given_beside_ranking_data_is_ignored(name):
    X, y, qid = example()
    value = {"group": [6] * 10, "query_weight": np.ones(10)}.get(name, np.ones(N))
    with pytest.raises(InputError, match=f"brings its own {name}: leave {name} out"):
        RankRLS().fit(RankingData(X, y, qid), **{name: value})


def test_rank_and_score_refuse_contradictions():
    X, y, qid = example()
    data = RankingData(X, y, qid)
    fitted = RankRLS().fit(data)
    with pytest.raises(InputError, match="both qid and group"):
        fitted.rank(X, qid, group=[6] * 10)
    with pytest.raises(InputError, match="brings its own qid"):
        fitted.rank(data, qid)
    with pytest.raises(InputError, match="brings its own y"):
        fitted.score(data, y)
    with pytest.raises(InputError, match="needs the labels y"):
        fitted.score(X)
    assert np.array_equal(fitted.rank(X, group=[6] * 10), fitted.rank(X, qid))
    assert fitted.score(data) == fitted.score(X, y, qid) == fitted.score(X, y, group=[6] * 10)


def test_gain_weight_is_checked_under_its_own_name_and_refused_by_the_squared_loss():
    X, y, qid = example()
    for wrong, words in (
        (np.ones(3), "gain_weight has 3 values"),
        (np.full(N, -1.0), "gain_weight is -1.0 in row 0"),
        (["a"] * N, "gain_weight holds something that is not a number"),
        (np.ones(N), "the squared loss has no winners"),
    ):
        with pytest.raises(InputError, match=words):
            RankRLS().fit(X, y, qid, gain_weight=wrong)


class KeepsGains(RankRLS):
    def _learn(self, data, labels, held_out):
        self.gains_ = labels.gain_weight
        self.coef_ = np.ones(data.n_features)


def test_gain_weight_follows_its_rows():
    X, y, qid = example()
    mixed = np.random.default_rng(3).permutation(N)
    fitted = KeepsGains().fit(X[mixed], y[mixed], qid[mixed], gain_weight=X[mixed, 0] ** 2)
    assert np.array_equal(fitted.gains_, RankingData(X[mixed], qid=qid[mixed]).X[:, 0] ** 2)
    data = RankingData(X[mixed], y[mixed], qid[mixed])
    assert np.array_equal(KeepsGains().fit(data, gain_weight=data.y).gains_, data.y)


@pytest.mark.parametrize("kind", ["pandas", "polars", "pyarrow"])
def test_data_frames_keep_their_names(kind):
    X, y, qid = example()
    frame = frames(X)[kind]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        fitted = RankRLS().fit(frame, y, qid)
        assert np.array_equal(fitted.predict(frame), RankRLS().fit(X, y, qid).predict(X))
    assert fitted.feature_names_in_.tolist() == NAMES
    assert fitted.to_model().feature_names == tuple(NAMES)
    renamed = pd.DataFrame(X, columns=["bm25", "clicks", "pagerank"])
    with pytest.raises(ValueError, match="feature names should match"):
        fitted.predict(renamed)
    fitted.fit(X, y, qid)
    assert not hasattr(fitted, "feature_names_in_")  # a new fit forgets the old names
    fitted.fit(frame, y, qid).fit(RankingData(X, y, qid))
    assert not hasattr(fitted, "feature_names_in_")


def test_the_number_of_features_is_checked():
    X, y, qid = example()
    fitted = RankRLS().fit(X, y, qid)
    for other in (X[:, :2], RankingData(X[:, :2])):
        with pytest.raises(ValueError, match="X has 2 features, but RankRLS is expecting 3"):
            fitted.predict(other)


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf])
@pytest.mark.parametrize("form", ["dense", "sparse", "single", "frame", "data"])
@pytest.mark.filterwarnings("error")
def test_holes_are_refused_with_their_column(value, form):
    X, y, qid = example()
    good = RankRLS().fit(X, y, qid)
    X[7, 1], X[9, 2] = value, -value
    column = "'pagerank'" if form == "frame" else "feature 'f2'"
    kind = "NaN" if np.isnan(value) else "infinity"
    given = {
        "dense": X,
        "sparse": csr_array(X),
        "single": X.astype(np.float32),
        "frame": pd.DataFrame(X, columns=NAMES),
        "data": RankingData(X, y, qid),
    }[form]
    with pytest.raises(InputError, match=f"contains {kind} in .*{column}"):
        RankRLS().fit(given) if form == "data" else RankRLS().fit(given, y, qid)
    if form != "frame":
        with pytest.raises(InputError, match=f"contains {kind} in .*{column}"):
            good.predict(given)


def test_large_finite_values_are_not_holes():
    check_finite(np.full((3, 2), 1e308), 2)  # their sum overflows


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_bad_labels_are_named_by_the_callers_row(value):
    X, y, qid = example()
    mixed = np.random.default_rng(4).permutation(N)
    y = y.copy()
    y[17] = value
    with pytest.raises(InputError, match=r"(document|row) 17\b"):
        RankRLS().fit(X, y, qid[mixed])


def test_a_failed_fit_is_not_a_fit():
    X, _, qid = example()
    ranker = RankRLS()
    with pytest.raises(InputError):
        ranker.fit(X, np.full(N, np.nan), qid)
    for use in (lambda: ranker.predict(X), lambda: ranker.sparsity_, ranker.to_model):
        with pytest.raises(NotFittedError):
            use()


def test_sparsity_counts_the_features_in_use():
    X, y, qid = example()
    X[:, 1] = 0.0
    assert RankRLS().fit(X, y, qid).sparsity_ == pytest.approx(2 / 3)


def test_equal_documents_get_equal_scores_wherever_they_stand():
    X, y, qid = example()
    fitted = RankRLS().fit(X, y, qid)
    many = np.tile(X[:1], (1_003, 1)).astype(np.float32)
    assert len(set(fitted.predict(many).tolist())) == 1


def test_single_precision_is_not_copied_to_double():
    rng = np.random.default_rng(5)
    X = rng.random((200_000, 20), dtype=np.float32)
    y, qid = rng.integers(0, 3, len(X)), np.arange(len(X)) // 50
    ranker = RankRLS().fit(X[:1_000], y[:1_000], qid[:1_000])  # compile outside of the measurement
    for call in (lambda: ranker.fit(X, y, qid), lambda: ranker.predict(X)):
        tracemalloc.start()
        call()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        assert peak < 1.5 * X.nbytes, f"{peak / X.nbytes:.2f} times X"  # a float64 copy is 2


def test_check_number():
    assert check_number("k", 3, low=1) == 3.0
    for value in (0, 1.5, True, "1", np.nan, np.inf):
        with pytest.raises(InputError, match=r"l1_ratio=.* above 0 and at most 1"):
            check_number("l1_ratio", value, open_low=True, high=1)


def test_rankers_by_name():
    for name, kind in RANKERS.items():
        assert get_ranker(name).__name__ == kind
    with pytest.raises(InputError, match="no system 'rankrsl': did you mean 'rankrls'"):
        get_ranker("rankrsl")
    with pytest.raises(InputError, match="choose from"):
        get_ranker("zzz")


def test_grid_search_with_routing_equals_the_loop_by_hand():
    X, y, qid = example()
    mixed = np.random.default_rng(6).permutation(N)
    X, y, qid = X[mixed], y[mixed], np.array([f"q{q}" for q in qid])[mixed]
    alphas = [1e-3, 1.0, 1e3]
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankRLS(), {"alpha": alphas}, cv=GroupKFold(5))
        search.fit(X, y, groups=qid, qid=qid)
        folds = cross_validate(
            RankRLS(1.0), X, y, cv=GroupKFold(5), params={"groups": qid, "qid": qid}
        )
    by_hand = [
        RankRLS(1.0).fit(X[a], y[a], qid[a]).score(X[b], y[b], qid[b])
        for a, b in GroupKFold(5).split(X, y, qid)
    ]
    assert np.allclose(folds["test_score"], by_hand)
    assert search.cv_results_["mean_test_score"][1] == pytest.approx(np.mean(by_hand))
    assert search.best_params_["alpha"] in alphas


def test_sample_weight_reaches_every_fit_of_a_search():
    X, y, qid = example()
    weight = np.random.default_rng(7).random(N)
    with sklearn.config_context(enable_metadata_routing=True):
        search = GridSearchCV(RankRLS(), {"alpha": [1.0]}, cv=GroupKFold(2))
        search.fit(X, y, groups=qid, qid=qid, sample_weight=weight)
    expected = RankRLS(1.0).fit(X, y, qid, sample_weight=weight)
    assert np.array_equal(search.best_estimator_.coef_, expected.coef_)


def test_pipelines_with_and_without_routing():
    X, y, qid = example()
    scaled = StandardScaler().fit_transform(X)
    plain = RankRLS().fit(scaled, y, qid)
    pipeline = Pipeline([("scale", StandardScaler()), ("rank", RankRLS())])
    pipeline.fit(X, y, rank__qid=qid)
    assert np.array_equal(pipeline.predict(X), plain.predict(scaled))
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline.fit(X, y, qid=qid)
        assert np.array_equal(pipeline.predict(X), plain.predict(scaled))
        assert pipeline.score(X, y, qid=qid) == plain.score(scaled, y, qid)


def test_a_pipeline_that_scales_within_queries():
    from leanrank.data.scaling.normalizers import QueryMinMaxScaler

    X, y, qid = example()
    scaled = QueryMinMaxScaler().fit_transform(X, qid=qid)
    plain = RankRLS().fit(scaled, y, qid)
    with sklearn.config_context(enable_metadata_routing=True):
        pipeline = Pipeline([("scale", QueryMinMaxScaler()), ("rank", RankRLS())])
        pipeline.fit(X, y, qid=qid)
        assert np.allclose(pipeline[-1].coef_, plain.coef_)
        assert pipeline.score(X, y, qid=qid) == pytest.approx(plain.score(scaled, y, qid))


def test_the_guide_runs():
    guide = Path(__file__).parents[2] / "docs" / "scikit-learn.md"
    before = sklearn.get_config()
    try:
        done = doctest.testfile(str(guide), module_relative=False, optionflags=doctest.ELLIPSIS)
    finally:
        sklearn.set_config(enable_metadata_routing=before["enable_metadata_routing"])
    assert done.attempted > 10
    assert done.failed == 0


@pytest.mark.parametrize("dtype", ["f8", "f4", ">f8", "i8"])
@pytest.mark.parametrize("order", ["C", "F"])
def test_arrays_that_need_no_checks_score_as_others(dtype, order):
    X, y, qid = example()
    ranker = RankRLS().fit(X, y, qid)
    X = np.asarray(np.round(10 * X), dtype=dtype, order=order)
    expected = ranker.predict(X.tolist())
    np.testing.assert_allclose(ranker.predict(X), expected, rtol=1e-6)
    with pytest.raises(ValueError, match="expecting 3 features"):
        ranker.predict(X[:, :2])
    with pytest.raises(ValueError, match="0 sample"):
        ranker.predict(X[:0])
    if np.dtype(dtype).kind == "f":
        X = X.copy()
        X[1, 2] = np.nan
        with pytest.raises(InputError, match="NaN"):
            ranker.predict(X)
