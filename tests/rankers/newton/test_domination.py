"""DominationRanker as people meet it: the batteries, margins, weights, scales, real data."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_matrix
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import load_letor, make_ranking
from leanrank.checks import check_ranker, ranker_checks
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.rankers import DominationRanker
from tests.solvers.reference_domination import Reference


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=20, docs_per_query=(1, 12), n_features=8, n_informative=3, random_state=3
    )


def fit(data, X=None, *, y=None, qid=None, offset=None, gain_weight=None, **parameters):
    options = {"tol": 1e-8, "alpha": 0.02, **parameters}
    weights = {k: options.pop(k) for k in ("sample_weight", "query_weight") if k in options}
    return DominationRanker(**options).fit(
        data.X if X is None else X,
        data.y if y is None else y,
        qid=data.qid if qid is None else qid,
        offset=offset,
        gain_weight=gain_weight,
        **weights,
    )


def same(one, other, tolerance=1e-3):
    scale = np.abs(one.coef_).max() + 1e-12
    np.testing.assert_allclose(other.coef_, one.coef_, atol=tolerance * scale)
    assert other.objective_ == pytest.approx(one.objective_, rel=1e-6)


@pytest.mark.parametrize(
    "ranker",
    [
        # the battery compares weights, whose error is about the root of the gap
        DominationRanker(tol=1e-9),
        DominationRanker(alpha=0.05, l1_ratio=0.5, tol=1e-9),
        DominationRanker(alpha=0.05, l1_ratio=0.0, tol=1e-9),
        DominationRanker(alpha=0.05, margin="scaled", tol=1e-9),
    ],
    ids=["default", "elastic net", "ridge", "scaled margin"],
)
def test_the_battery_of_rankers(ranker):
    check_ranker(ranker)


@pytest.mark.parametrize(
    "check", [c for c in ranker_checks() if "threads" not in c.__name__], ids=lambda c: c.__name__
)
def test_the_battery_of_rankers_for_the_one_thread_of_bound_cd(check):
    check(DominationRanker(alpha=0.2, solver="bound-cd", max_iter=20_000))


@parametrize_with_checks([DominationRanker(), DominationRanker(0.1, 0.5, margin="scaled")])
def test_the_battery_of_scikit_learn(estimator, check):
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="DominationRanker stopped after")
        check(estimator)


@pytest.mark.parametrize("solver", ["newton", "bound-cd"])
@pytest.mark.parametrize("margin", ["offset", "scaled"])
def test_margins_are_what_they_say(data, solver, margin):
    """Scores moved by a margin, and the definition with a table of the same margins, agree."""
    options = {"solver": solver, "max_iter": 100 if solver == "newton" else 50_000, "tol": 1e-7}
    levels = np.unique(data.y)
    table = 0.7 * (levels[:, None] - levels)
    if margin == "offset":
        fitted = fit(data, offset=0.7 * data.y, **options)
    else:
        fitted = fit(data, margin="scaled", margin_scale=0.7, **options)
    reference = Reference(data.X, Labels(y=data.y, query_ptr=data.query_ptr), table)
    penalty = ElasticNet.build(0.02, 1.0, 8)
    assert fitted.objective_ == pytest.approx(reference.objective(fitted.coef_, penalty), rel=1e-10)
    assert penalty.residual(fitted.coef_, reference.loss(fitted.coef_)[1]).max() <= 1e-4
    assert fitted.objective_ > fit(data).objective_


def test_a_margin_and_an_offset_add_up(data):
    offset = np.random.default_rng(0).normal(size=len(data.y))
    both = fit(data, margin="scaled", margin_scale=0.5, offset=offset)
    same(fit(data, offset=offset + 0.5 * data.y), both)


def test_a_margin_of_zero_is_no_margin(data):
    plain = fit(data)
    same(plain, fit(data, margin="scaled", margin_scale=0.0))


@pytest.mark.parametrize("solver", ["newton", "bound-cd"])
def test_row_order_names_and_shifts_within_queries_do_not_matter(data, solver):
    options = {"solver": solver, "max_iter": 50_000, "tol": 1e-7}
    plain = fit(data, **options)
    rng = np.random.default_rng(1)
    order = rng.permutation(len(data.y))
    same(plain, fit(data, data.X[order], y=data.y[order], qid=data.qid[order], **options))
    names = np.array([f"q{q}!" for q in data.qid])
    assert np.array_equal(plain.coef_, fit(data, qid=names, **options).coef_)
    sizes = np.diff(data.query_ptr)
    shift = np.repeat(10 * rng.normal(size=(len(sizes), 8)), sizes, axis=0)
    same(plain, fit(data, data.X + shift, **options))
    per_query = np.repeat(10 * rng.normal(size=len(sizes)), sizes)
    same(plain, fit(data, offset=per_query, **options))
    same(plain, fit(data, y=5 * data.y - 100, **options))  # levels are what counts


def test_degenerate_queries_change_nothing(data):
    rng = np.random.default_rng(2)
    lone, level = rng.normal(size=(2, 8)), rng.normal(size=(4, 8))
    X = np.vstack([lone, data.X, level])
    y = np.concatenate([[0, 2], data.y, [1, 1, 1, 1]])
    qid = np.concatenate([[-1, -2], data.qid, [-3] * 4])
    more = fit(data, X, y=y, qid=qid)
    same(fit(data), more)
    assert more.n_queries_ == data.n_queries + 3
    assert more.n_informative_queries_ == fit(data).n_informative_queries_


def test_sample_weight_is_repetition(data):
    rng = np.random.default_rng(3)
    weight = rng.integers(0, 4, len(data.y))
    copies = np.repeat(np.arange(len(data.y)), weight)
    for normalize in ("query", "term", "none"):
        alpha = 0.5 if normalize == "none" else 0.02
        weighted = fit(data, sample_weight=weight, normalize=normalize, alpha=alpha)
        repeated = fit(
            data,
            data.X[copies],
            y=data.y[copies],
            qid=data.qid[copies],
            normalize=normalize,
            alpha=alpha,
        )
        same(repeated, weighted)


def test_query_weight_is_a_query_repeated(data):
    weight = np.random.default_rng(4).integers(1, 4, data.n_queries)
    rows, names = [], []
    for q in range(data.n_queries):
        members = np.arange(data.query_ptr[q], data.query_ptr[q + 1])
        for copy in range(weight[q]):
            rows.append(members)
            names += [f"{q}-{copy}"] * len(members)
    rows = np.concatenate(rows)
    for normalize in ("query", "none"):
        alpha = 0.5 if normalize == "none" else 0.02
        weighted = fit(data, query_weight=weight, normalize=normalize, alpha=alpha)
        repeated = fit(
            data,
            data.X[rows],
            y=data.y[rows],
            qid=np.array(names),
            normalize=normalize,
            alpha=alpha,
        )
        same(repeated, weighted)


def test_gain_weight_weighs_the_terms_a_document_dominates_with(data):
    gain = np.random.default_rng(5).random(len(data.y)) + 0.1
    fitted = fit(data, gain_weight=gain)
    labels = Labels(y=data.y, query_ptr=data.query_ptr, gain_weight=gain)
    penalty = ElasticNet.build(0.02, 1.0, 8)
    reference = Reference(data.X, labels)
    assert fitted.objective_ == pytest.approx(reference.objective(fitted.coef_, penalty), rel=1e-10)
    assert fitted.objective_ <= reference.optimum(penalty)[1] * (1 + 1e-7)
    doubled = fit(data, gain_weight=2 * gain, alpha=0.04)
    np.testing.assert_allclose(doubled.coef_, fitted.coef_, atol=1e-3)


def test_normalisations_differ_by_a_factor_of_alpha_only():
    rng = np.random.default_rng(6)
    n_queries, docs = 15, 8
    X = rng.normal(size=(n_queries * docs, 5))
    y = np.tile([0, 0, 0, 0, 0, 1, 1, 2], n_queries).astype(float)  # three terms a query
    qid = np.repeat(np.arange(n_queries), docs)
    data = RankingData(X, y, qid)
    plain = fit(data, normalize="none", alpha=0.02 * 3 * n_queries)
    term = fit(data, normalize="term", alpha=0.02)
    query = fit(data, normalize="query", alpha=0.02)
    for other in (term, query):
        np.testing.assert_allclose(other.coef_, plain.coef_, atol=1e-3)
        assert other.objective_ * 3 * n_queries == pytest.approx(plain.objective_, rel=1e-7)


def test_offsets_of_a_million_fit_without_overflow(data):
    offset = np.random.default_rng(7).choice([-1e6, 0.0, 1e6], len(data.y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        warnings.filterwarnings("ignore", message="DominationRanker stopped after")
        warnings.filterwarnings("ignore", message=".*model without features")
        fitted = fit(data, offset=offset, max_iter=5, alpha=1.0)
    assert np.isfinite(fitted.coef_).all()
    assert np.isfinite(fitted.objective_)
    assert fitted.objective_ > 1e3


def test_single_precision_and_sparse_input(data):
    plain = fit(data, tol=1e-7)
    for X in (data.X.astype(np.float32), csr_matrix(data.X), csr_matrix(data.X.astype("f4"))):
        same(plain, fit(data, X, tol=1e-7), tolerance=2e-3)


@pytest.mark.parametrize(
    ("parameters", "message"),
    [
        ({"solver": "simplex"}, r"solver='simplex' must be one of 'bound-cd', 'newton'"),
        ({"margin": "wide"}, r"margin='wide'"),
        ({"margin": np.zeros((2, 2))}, r"margin=array"),
        ({"margin": "scaled", "margin_scale": -1.0}, r"margin_scale=-1.0"),
        ({"bound": "tight", "solver": "bound-cd"}, r"bound='tight'"),
        ({"normalize": "pair"}, r"normalize='pair'"),
        ({"alpha": -0.1}, r"alpha=-0.1 must be"),
        ({"alpha": np.nan}, r"alpha=nan"),
        ({"alpha": "0.1"}, r"alpha='0.1'"),
        ({"l1_ratio": 1.5}, r"l1_ratio=1.5 must be"),
        ({"tol": 0.0}, r"tol=0.0 must be"),
        ({"max_iter": 0}, r"max_iter=0 must be"),
        ({"max_iter": 2.5}, r"max_iter=2.5 must be"),
        ({"n_jobs": 0}, r"n_jobs=0"),
        ({"penalty_factors": [1.0]}, r"penalty_factors must be 8 numbers"),
        ({"penalty_factors": [-1.0] * 8}, r"penalty_factors must be 8 numbers"),
        ({"signs": [1, 1]}, r"signs must be 8"),
        ({"signs": 2}, r"signs must be 8"),
    ],
    ids=lambda value: str(value)[:40] if isinstance(value, dict) else "",
)
def test_wrong_parameters_get_a_sentence(data, parameters, message):
    with pytest.raises(InputError, match=message):
        DominationRanker(**parameters).fit(data.X, data.y, qid=data.qid)


@pytest.mark.parametrize("name", ["sample_weight", "gain_weight", "offset"])
def test_weights_of_the_wrong_length_get_a_sentence(data, name):
    with pytest.raises(InputError, match=name):
        DominationRanker().fit(data.X, data.y, qid=data.qid, **{name: np.ones(3)})


@pytest.mark.realdata
@pytest.mark.parametrize("share", [0.5, 0.2])
def test_both_solvers_agree_on_mq2008(data_dir, share):
    file = data_dir / "MQ2008" / "Fold1" / "train.txt"
    if not file.exists():
        pytest.skip(f"{file} is not there")
    train = load_letor(file)
    X = train.X.toarray() if hasattr(train.X, "toarray") else train.X
    top = DominationRanker().alpha_max(X, train.y, qid=train.qid)
    newton = DominationRanker(share * top, tol=1e-6).fit(X, train.y, qid=train.qid)
    descent = DominationRanker(share * top, tol=1e-4, solver="bound-cd", max_iter=2_000)
    descent.fit(X, train.y, qid=train.qid)
    assert newton.dual_gap_ <= 1e-6
    assert 0 < np.count_nonzero(newton.coef_) < 46
    assert newton.objective_ == pytest.approx(descent.objective_, rel=1e-4)
    assert newton.objective_ <= descent.objective_ * (1 + 1e-6)
    assert descent.objective_ * (1 - descent.dual_gap_) <= newton.objective_
    sparse = DominationRanker(share * top, tol=1e-6).fit(csr_matrix(X), train.y, qid=train.qid)
    assert sparse.objective_ == pytest.approx(newton.objective_, rel=2e-6)
