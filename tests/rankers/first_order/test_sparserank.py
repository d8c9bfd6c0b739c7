"""SparseRank as people meet it: the batteries, its parameters, its path."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from scipy.sparse import csr_array
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import load_letor, make_ranking
from leanrank.checks import ranker_checks
from leanrank.errors import InputError
from leanrank.rankers import RankSVM, SparseRank, get_ranker


@pytest.fixture(scope="module")
def data():
    return make_ranking(
        n_queries=20, docs_per_query=(1, 12), n_features=8, n_informative=3, random_state=3
    )


@pytest.mark.parametrize("check", ranker_checks(), ids=lambda c: c.__name__)
@pytest.mark.parametrize(
    "ranker",
    [SparseRank(tol=1e-9), SparseRank(0.05, solver="proximal", tol=1e-7)],
    ids=["newton", "proximal"],
)
def test_the_battery_of_rankers(ranker, check):
    check(clone(ranker))


@parametrize_with_checks([SparseRank(), SparseRank(solver="proximal", tol=1e-3)])
def test_scikit_learns_battery(estimator, check):
    check(estimator)


@pytest.mark.parametrize("solver", ["newton", "proximal"])
@pytest.mark.parametrize("normalize", ["query", "term", "none"])
def test_its_optimum_is_rank_svms(data, solver, normalize):
    alpha = 0.1 * SparseRank(normalize=normalize).alpha_max(data)
    svm = RankSVM(alpha, 1.0, normalize=normalize, tol=1e-10).fit(data)
    ranker = SparseRank(alpha, normalize=normalize, solver=solver).fit(data)
    assert ranker.dual_gap_ <= 1e-6
    assert ranker.objective_ == pytest.approx(svm.objective_, rel=1e-6)
    np.testing.assert_allclose(ranker.coef_, svm.coef_, atol=5e-3 * np.abs(svm.coef_).max())


@pytest.mark.filterwarnings("ignore:.*model without features")
def test_alpha_max_empties_the_model_and_the_path_goes_down_from_it(data):
    top = SparseRank().alpha_max(data)
    assert not SparseRank(top * 1.0001).fit(data).coef_.any()
    assert SparseRank(top * 0.99).fit(data).coef_.any()
    path = SparseRank().path(data, n_alphas=5, alpha_min_ratio=0.05)
    assert np.all(path.dual_gaps <= 1e-6)
    last = SparseRank(path.alphas[-1]).fit(data)
    assert path.objectives[-1] == pytest.approx(last.objective_, rel=2e-6)


def test_a_given_k_is_where_it_begins(data):
    ranker = SparseRank(0.05, solver="proximal", lipschitz=0.25).fit(data)
    assert ranker.history_[0]["lipschitz"] == 0.25
    for wrong in (0.0, -1.0, "small"):
        with pytest.raises(InputError, match="lipschitz"):
            SparseRank(solver="proximal", lipschitz=wrong).fit(data)


def test_parameters_without_effect_and_unknown_solvers_are_refused(data):
    with pytest.raises(InputError, match="lipschitz has no effect"):
        SparseRank(lipschitz=1.0).fit(data)
    with pytest.raises(InputError, match="solver='fast'"):
        SparseRank(solver="fast").fit(data)


def test_the_defaults_end_on_small_random_data():
    r = np.random.default_rng(916470422)
    X, y = r.normal(size=(8, 3)), r.integers(0, 3, 8).astype(float)
    for solver in ("newton", "proximal"):
        ranker = SparseRank(solver=solver, max_iter=200)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            ranker.fit(X, y, np.repeat([0, 1], 4))
        assert np.isfinite(ranker.coef_).all()


def test_a_run_that_cannot_go_on_says_why(data):
    with pytest.warns(ConvergenceWarning, match="hardly lower the objective"):
        SparseRank(0.05, solver="proximal", tol=1e-300).fit(data)


def test_a_short_run_says_so(data):
    with pytest.warns(ConvergenceWarning, match="SparseRank stopped after 10"):
        SparseRank(1e-4, solver="proximal", max_iter=10).fit(data)


def test_a_sparse_column_far_from_zero_is_solved():
    rng = np.random.default_rng(1)
    X, y = rng.normal(size=(13, 5)), rng.integers(0, 3, 13).astype(float)
    X[:, 0] += 1e13
    far = SparseRank().fit(csr_array(X), y)
    assert far.dual_gap_ <= far.tol
    X[:, 0] -= 1e13
    np.testing.assert_allclose(far.objective_, SparseRank().fit(X, y).objective_, rtol=1e-6)


def test_a_tolerance_below_rounding_ends(data):
    with pytest.warns(ConvergenceWarning, match="hardly lower the objective"):
        ranker = SparseRank(0.05, tol=1e-300).fit(data)
    assert ranker.n_iter_ <= 100
    assert ranker.dual_gap_ <= 1e-12


def test_it_has_a_name():
    assert get_ranker("sparserank") is SparseRank


@pytest.mark.parametrize("name", ["MQ2008", "OHSUMED"])
def test_real_data_to_a_gap_of_1e_6(name, data_dir):
    train = load_letor(data_dir / name / "Fold1" / "train.txt")
    alpha = 0.01 * SparseRank().alpha_max(train)
    ranker = SparseRank(alpha).fit(train)
    assert ranker.dual_gap_ <= 1e-6
    svm = RankSVM(alpha, 1.0).fit(train)
    assert ranker.objective_ == pytest.approx(svm.objective_, rel=2e-6)
