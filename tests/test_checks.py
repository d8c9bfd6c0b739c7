"""The battery passes for good rankers, and fails for rankers that break each of its promises."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from leanrank import checks
from leanrank.checks import check_ranker, ranker_checks
from leanrank.rankers import RankRLS


@pytest.mark.parametrize("check", ranker_checks(), ids=lambda c: c.__name__)
@pytest.mark.parametrize("ranker", [RankRLS(), RankRLS(0.5, normalize="none")], ids=str)
def test_rankrls_passes(ranker, check):
    check(ranker)


@parametrize_with_checks([RankRLS()])
def test_rankrls_passes_scikit_learn(estimator, check):
    check(estimator)


def test_the_list_holds_every_check():
    defined = {n for n in vars(checks) if n.startswith("check_ranker_")}
    assert {c.__name__ for c in ranker_checks()} == defined
    assert len(ranker_checks()) == len(defined) >= 13


class Spoiled(RankRLS):
    def _learn(self, data, labels, held_out):
        super()._learn(data, labels, held_out)
        self.coef_ = self.spoil(self.coef_, data)


class OrderDependent(Spoiled):
    def spoil(self, w, data):
        return w * (1 + 0.01 * np.sign(data.X[0][0] if not data.is_sparse else 1))


class NameDependent(RankRLS):
    def fit(self, X, y=None, qid=None, **more):
        super().fit(X, y, qid, **more)
        if np.asarray(qid).dtype.kind == "U":
            self.coef_ = self.coef_ + 1e-9
        return self


class GroupIgnoring(RankRLS):
    def fit(self, X, y=None, qid=None, *, group=None, **more):
        return super().fit(X, y, qid, **more)


class SparseDifferent(Spoiled):
    def spoil(self, w, data):
        return w * (1.01 if data.is_sparse else 1)


class SinglePrecisionWeights(Spoiled):
    def spoil(self, w, data):
        return w.astype(data.X.dtype)


class ThreadDependent(Spoiled):
    def spoil(self, w, data):
        return w * (1 + 1e-15 * ((self.n_jobs or 1) - 1))


class Pointwise(Spoiled):
    """Regresses on the labels themselves: a query's level gets a weight."""

    def spoil(self, w, data):
        X = data.X.toarray() if data.is_sparse else data.X
        return np.linalg.lstsq(X + 1.0, data.y, rcond=None)[0]


class CountsLoneDocuments(Spoiled):
    def spoil(self, w, data):
        return w * (1 + 0.01 * np.sum(np.diff(data.query_ptr) == 1))


class ForgetsOnPickle(RankRLS):
    def __getstate__(self):
        state = super().__getstate__()
        return state | {"coef_": state["coef_"] * 2} if "coef_" in state else state


class SavesRounded(RankRLS):
    def to_model(self, **more):
        kept = self.coef_
        self.coef_ = np.round(kept, 3)
        try:
            return super().to_model(**more)
        finally:
            self.coef_ = kept


class Backwards(Spoiled):
    def spoil(self, w, data):
        return -w


class Mutating(RankRLS):
    def fit(self, X, y=None, qid=None, **more):
        if isinstance(X, np.ndarray) and X.flags.writeable:
            X -= X.mean(axis=0)
        return super().fit(X, y, qid, **more)


class NeedsWriteable(RankRLS):
    def fit(self, X, y=None, qid=None, **more):
        if isinstance(y, np.ndarray):
            y += 0
        return super().fit(X, y, qid, **more)


class RanksFromZero(RankRLS):
    def rank(self, X, qid=None, **more):
        return super().rank(X, qid, **more) - 1


class RanksUpwards(RankRLS):
    def rank(self, X, qid=None, **more):
        self.coef_ = -self.coef_
        try:
            return super().rank(X, qid, **more)
        finally:
            self.coef_ = -self.coef_


class AcceptsNaN(RankRLS):
    def fit(self, X, y=None, qid=None, **more):
        return super().fit(np.nan_to_num(X), y, qid, **more)


class AcceptsMissingLabels(RankRLS):
    def fit(self, X, y=None, qid=None, **more):
        return super().fit(X, np.nan_to_num(y), qid, **more)


class AcceptsBoth(RankRLS):
    def fit(self, X, y=None, qid=None, *, group=None, **more):
        return super().fit(X, y, qid, group=group if qid is None else None, **more)


class LearnsNothingQuietly(RankRLS):
    def fit(self, X, y=None, qid=None, **more):
        if y is not None and np.ptp(np.nan_to_num(y)) == 0:
            y = np.arange(len(y))
        return super().fit(X, y, qid, **more)


@pytest.mark.parametrize(
    ("broken", "check"),
    [
        (OrderDependent, "is_invariant_to_row_order"),
        (NameDependent, "is_invariant_to_query_names"),
        (GroupIgnoring, "is_the_same_for_group_sizes_and_ranking_data"),
        (SparseDifferent, "is_the_same_for_sparse_and_dense"),
        (SinglePrecisionWeights, "is_nearly_the_same_in_single_precision"),
        (ThreadDependent, "is_the_same_on_any_number_of_threads"),
        (Pointwise, "is_unmoved_by_a_constant_within_queries"),
        (CountsLoneDocuments, "is_unmoved_by_queries_of_one_document"),
        (ForgetsOnPickle, "is_saved_and_loaded"),
        (SavesRounded, "is_saved_and_loaded"),
        (Backwards, "is_better_than_chance"),
        (Mutating, "does_not_change_its_input"),
        (NeedsWriteable, "does_not_change_its_input"),
        (RanksFromZero, "does_rank_within_queries"),
        (RanksUpwards, "does_rank_within_queries"),
        (AcceptsNaN, "does_refuse_bad_input"),
        (AcceptsMissingLabels, "does_refuse_bad_input"),
        (AcceptsBoth, "does_refuse_bad_input"),
        (LearnsNothingQuietly, "does_refuse_bad_input"),
    ],
)
def test_a_broken_ranker_is_caught(broken, check):
    with pytest.raises((AssertionError, ValueError)):
        getattr(checks, f"check_ranker_{check}")(broken())


def test_the_broken_rankers_break_every_check():
    marks = test_a_broken_ranker_is_caught.pytestmark[0].args[1]
    assert {f"check_ranker_{check}" for _, check in marks} == {c.__name__ for c in ranker_checks()}


def test_check_ranker_names_the_check_that_failed():
    check_ranker(RankRLS())
    with pytest.raises(AssertionError, match="check_ranker_does_rank_within_queries"):
        check_ranker(RanksFromZero())
