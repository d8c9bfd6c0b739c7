"""What penalised rankers share: alpha_max, certificates, warm starts, progress."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.exceptions import ConvergenceWarning

from leanrank import make_ranking
from leanrank.errors import DataWarning
from leanrank.losses.base import Labels
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.rankers import DominationRanker
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton
from tests.solvers.reference_domination import Reference


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, docs_per_query=10, n_features=12, random_state=5)


RANKERS = {
    "l1": {},
    "elastic net": {"l1_ratio": 0.4},
    "factors": {"penalty_factors": [1, 2, 0.5, np.inf, np.inf, 3, 1, 1, 1, 1, 1, 1]},
    "signs": {"signs": [1, -1, 1, -1, 0, 0, 1, 1, -1, -1, 1, -1]},
    "free": {"penalty_factors": [0, 0, 1, 1, 1, 1, 1, 1, 1, 1, np.inf, 2]},
    "free and signs": {"penalty_factors": [0.0, 0, *[1] * 10], "signs": 1},
    "term": {"normalize": "term"},
    "none": {"normalize": "none"},
    "margin": {"margin": "scaled"},
}


@pytest.mark.parametrize(
    "name",
    list(RANKERS),
)
@pytest.mark.parametrize("form", ["dense", "sparse"])
@pytest.mark.filterwarnings("ignore:DominationRanker stopped after")
@pytest.mark.filterwarnings("ignore:.*model without features")
def test_empty_at_alpha_max_and_not_below(data, name, form):
    parameters = RANKERS[name]
    X = csr_array(data.X) if form == "sparse" else data.X
    top = DominationRanker(**parameters).alpha_max(X, data.y, data.qid)
    assert 0 < top < np.inf
    factors = np.asarray(parameters.get("penalty_factors", np.ones(12)))
    penalised = factors > 0

    def at(alpha):
        ranker = DominationRanker(alpha, tol=1e-9, **parameters)
        return ranker.fit(X, data.y, data.qid).coef_

    for share in (1.0 + 1e-7, 1.001, 10.0):
        assert not at(share * top)[penalised].any()
    below = at(0.999 * top)
    assert np.count_nonzero(below[penalised]) >= 1
    assert np.count_nonzero(below[penalised]) <= 2
    assert not below[np.isinf(factors)].any()
    if name == "free":
        assert np.all(below[:2] != 0)


def test_alpha_max_is_infinite_without_an_l1_part_and_zero_without_a_way_in(data):
    def top(**parameters):
        return DominationRanker(**parameters).alpha_max(data.X, data.y, data.qid)

    assert top(l1_ratio=0) == np.inf
    assert top(penalty_factors=np.full(12, np.inf)) == 0
    gradient = Reference(data.X, Labels(y=data.y, query_ptr=data.query_ptr)).loss(np.zeros(12))[1]
    assert top(signs=np.sign(gradient)) == 0  # every weight may only grow the wrong way
    assert top(l1_ratio=0, signs=np.sign(gradient)) == 0
    assert top() == pytest.approx(np.abs(gradient).max(), rel=1e-12)
    assert top(l1_ratio=0.25) == pytest.approx(4 * np.abs(gradient).max(), rel=1e-12)


def test_alpha_max_leaves_the_ranker_alone(data):
    ranker = DominationRanker()
    before = dict(vars(ranker))
    ranker.alpha_max(data.X, data.y, data.qid)
    assert vars(ranker) == before


def test_fitted_attributes_and_certificate(data):
    ranker = DominationRanker(0.02).fit(data)
    reference = Reference(data.X, Labels(y=data.y, query_ptr=data.query_ptr))
    penalty = ElasticNet.build(0.02, 1.0, 12)
    assert ranker.objective_ == pytest.approx(reference.objective(ranker.coef_, penalty), rel=1e-12)
    best = reference.optimum(penalty)[1]
    assert ranker.objective_ * (1 - ranker.dual_gap_) <= best <= ranker.objective_ * (1 + 1e-9)
    assert 0 <= ranker.dual_gap_ <= 1e-6
    assert ranker.sparsity_ == np.count_nonzero(ranker.coef_) / 12
    assert ranker.n_iter_ == len(ranker.history_) == ranker.history_[-1]["iteration"]


def test_a_model_that_stops_short_is_told_at_the_callers_line(data):
    with pytest.warns((ConvergenceWarning, DataWarning)) as caught:
        ranker = DominationRanker(1e-4, max_iter=1).fit(data)
    warning, empty = caught
    assert "alpha=0.0001 is below alpha_max=" in str(empty.message)
    text = str(warning.message)
    assert text.startswith(
        "DominationRanker stopped after 1 iterations at a relative duality gap of"
    )
    assert "above tol=1e-06: raise max_iter or tol" in text
    assert warning.filename == __file__
    assert ranker.dual_gap_ > 1e-6
    assert ranker.n_iter_ == 1
    reference = Reference(data.X, Labels(y=data.y, query_ptr=data.query_ptr))
    best = reference.optimum(ElasticNet.build(1e-4, 1.0, 12))[1]
    assert ranker.objective_ * (1 - ranker.dual_gap_) <= best


@pytest.mark.filterwarnings("ignore:.*model without features")
def test_an_unpenalised_feature_short_of_its_optimum_is_told_as_such(data, monkeypatch):
    short = Solution(np.zeros(12), 1.0, 0.0, free_residual=0.25, n_iter=7, converged=False)
    monkeypatch.setattr(Newton, "solve", lambda self, *args: short)
    with pytest.warns(
        ConvergenceWarning,
        match="after 7 iterations at a relative gradient of 0.25 in an un",
    ):
        DominationRanker(0.0).fit(data)


def test_warm_start_begins_where_the_last_fit_ended(data):
    warm = DominationRanker(0.02, warm_start=True, tol=1e-6).fit(data)
    cold = warm.coef_.copy()
    warm.fit(data)
    assert warm.n_iter_ == 1
    assert np.array_equal(warm.coef_, cold)
    warm.set_params(alpha=0.015).fit(data)
    again = DominationRanker(0.015, tol=1e-6).fit(data)
    assert warm.objective_ == pytest.approx(again.objective_, rel=2e-6)
    assert warm.history_[0]["support"] == np.count_nonzero(cold)
    assert warm.history_[0]["gap"] < again.history_[0]["gap"]
    narrow = warm.fit(data.X[:, :4], data.y, qid=data.qid)  # other columns: a cold start
    assert narrow.coef_.shape == (4,)
    kept = narrow.coef_.copy()
    narrow.set_params(signs=1).fit(data.X[:, :4], data.y, qid=data.qid)
    assert np.all(narrow.coef_ >= 0)
    assert not np.array_equal(narrow.coef_, kept) or np.all(kept >= 0)


@pytest.mark.parametrize("settings", [{}, {"penalty": "groups", "groups": [0, 1, 1, 2, 2, 2]}])
@pytest.mark.parametrize("kind", [np.asarray, csr_array])
def test_a_warm_start_lets_go_of_features_that_have_become_empty(kind, settings):
    data = make_ranking(n_queries=40, n_features=6, n_informative=6, random_state=0)
    warm = DominationRanker(alpha=0.01, warm_start=True, **settings).fit(data)
    assert warm.coef_[0] != 0.0
    warm.fit(kind(data.X * [0, 1, 1, 1, 1, 1]), data.y, data.qid)
    assert warm.coef_[0] == 0.0
    assert warm.dual_gap_ <= 1e-6


def test_without_warm_start_a_second_fit_repeats_the_first(data):
    ranker = DominationRanker(0.02).fit(data)
    first, n_iter = ranker.coef_, ranker.n_iter_
    ranker.fit(data)
    assert np.array_equal(ranker.coef_, first)
    assert ranker.n_iter_ == n_iter


@pytest.mark.parametrize("solver", ["newton", "bound-cd"])
def test_callback_and_verbose_tell_every_iteration(data, solver, capsys):
    entries = []
    parameters = {"solver": solver, "alpha": 0.05, "max_iter": 5_000, "tol": 1e-4}
    quiet = DominationRanker(callback=entries.append, **parameters).fit(data)
    assert entries == quiet.history_
    assert all({"iteration", "objective", "gap", "support"} <= set(e) for e in entries)
    out = capsys.readouterr()
    assert (out.out, out.err) == ("", "")
    told = []
    loud = DominationRanker(callback=told.append, verbose=1, **parameters).fit(data)
    out = capsys.readouterr()
    assert out.out == ""
    lines = out.err.splitlines()
    assert len(lines) == len(entries) == len(told)
    assert lines[0].startswith("[DominationRanker] iteration ")
    assert " gap " in lines[-1]
    assert np.array_equal(loud.coef_, quiet.coef_)


@pytest.mark.parametrize("form", ["dense", "sparse"])
def test_threads_do_not_change_a_bit(form):
    big = make_ranking(n_queries=1_500, docs_per_query=30, n_features=12, random_state=2)
    X = csr_array(np.where(np.abs(big.X) < 0.5, 0.0, big.X)) if form == "sparse" else big.X
    fits = [DominationRanker(0.01, n_jobs=jobs).fit(X, big.y, qid=big.qid) for jobs in (None, 2, 4)]
    for other in fits[1:]:
        assert np.array_equal(fits[0].coef_, other.coef_)
        assert fits[0].dual_gap_ == other.dual_gap_
        assert fits[0].objective_ == other.objective_


@pytest.mark.parametrize("solver", ["newton", "bound-cd"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_signs_and_factors_through_the_ranker(data, solver, l1_ratio):
    factors = [0, 0, np.inf, np.inf, 1, 1, 1, 1, 1, 2, 2, 0.5]
    signs = [0, 0, 0, 0, 1, 1, 1, -1, -1, -1, 0, 0]
    ranker = DominationRanker(
        0.02,
        l1_ratio,
        solver=solver,
        penalty_factors=factors,
        signs=signs,
        max_iter=20_000,
    ).fit(data)
    w = ranker.coef_
    assert not w[2:4].any()
    assert np.all(w[4:7] >= 0)
    assert np.all(w[7:10] <= 0)
    penalty = ElasticNet.build(0.02, l1_ratio, 12, factors, signs)
    reference = Reference(data.X, Labels(y=data.y, query_ptr=data.query_ptr))
    assert penalty.residual(w, reference.loss(w)[1]).max() <= 2e-4
    assert ranker.objective_ <= reference.optimum(penalty)[1] * (1 + 2e-6)


def test_no_warning_on_ordinary_work(data):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for l1_ratio in (1.0, 0.5, 0.0):
            for scale in (1e-6, 1.0, 1e6):
                alpha = 0.02 * (scale if l1_ratio else scale**2)
                DominationRanker(alpha, l1_ratio).fit(data.X * scale, data.y, qid=data.qid)
