"""Folds of whole queries, and a scorer, for scikit-learn and the cross-validation of leanrank."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, NamedTuple

import numpy as np
from sklearn import get_config
from sklearn.base import BaseEstimator, clone
from sklearn.model_selection import BaseCrossValidator
from sklearn.utils.metadata_routing import MetadataRequest, get_routing_for_object

from leanrank._numbers import check_whole, is_whole
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.grouping import Grouping, group_rows
from leanrank.data.ranking_data import RankingData, informative_queries
from leanrank.errors import InputError
from leanrank.metrics import evaluate
from leanrank.metrics.judge import Judge, better_sign
from leanrank.rankers.inputs import refuse_beside_data, validated_matrix

LABEL_CLASSES = 4
"""Number of classes of queries by their mean label, for stratified folds."""


class QueryKFold(BaseCrossValidator):
    """Divide queries into folds, so that no query is in training and test at once.

    A splitter for scikit-learn's ``cv=``. With metadata routing enabled, it gets the ``qid`` of the
    ranker; without, give ``groups``.

    Parameters
    ----------
    n_splits : int, default=5
        Number of folds; their numbers of queries differ by one at most.
    n_repeats : int, default=1
        Number of times to repeat the split.
    stratify : bool, default=False
        Balance the folds by informative queries, mean label and length; needs y.
    random_state : int or None, default=None
        Seed of the split; None is 0.

    Examples
    --------
    >>> qid = ["a", "a", "b", "c", "c", "b", "d"]
    >>> for train, test in QueryKFold(2).split(np.zeros((7, 1)), groups=qid):
    ...     print(sorted({qid[row] for row in train}), sorted({qid[row] for row in test}))
    ['c', 'd'] ['a', 'b']
    ['a', 'b'] ['c', 'd']
    """

    # what scikit-learn passes on to ``split`` once metadata routing is enabled
    __metadata_request__split: ClassVar[dict[str, bool]] = {"groups": True, "qid": True}

    def __init__(
        self,
        n_splits: int = 5,
        n_repeats: int = 1,
        stratify: bool = False,
        random_state: int | None = None,
    ) -> None:
        self.n_splits = check_whole("n_splits", n_splits, 2)
        self.n_repeats = check_whole("n_repeats", n_repeats, 1)
        self.stratify = stratify
        check_whole("random_state", random_state or 0, 0)
        self.random_state = random_state

    def split(
        self, X: Any, y: Any = None, groups: Any = None, qid: Any = None
    ) -> Iterator[tuple[IntArray, IntArray]]:
        """Yield the rows of training and test for each fold, both ascending.

        Parameters
        ----------
        X : array-like or RankingData
            Documents, one per row; a RankingData contains labels and queries.
        y : array-like, optional
            Labels, for ``stratify``.
        groups, qid : array-like
            The query of each row; one of the two.
        """
        if isinstance(X, RankingData):
            grouping, y, n_rows = Grouping(X.query_ids, X.query_ptr, None), X.y, len(X)
        else:
            n_rows = X.shape[0] if hasattr(X, "shape") else len(X)
            if groups is None and qid is None:
                raise InputError(
                    "QueryKFold needs the query of each row: pass groups=qid (with "
                    "scikit-learn's metadata routing enabled, qid alone is enough)"
                )
            grouping = group_rows(qid if groups is None else groups, n_rows)
            y = None if y is None else grouping.take(np.asarray(y))
        if self.stratify and y is None:
            raise InputError("folds can be stratified by labels only: give y, or stratify=False")
        sizes = np.diff(grouping.query_ptr)
        labels = np.zeros(n_rows) if y is None else np.asarray(y, dtype=np.float64)
        for folds in self._deal(labels, grouping.query_ptr):
            fold_of_row = grouping.restore(np.repeat(folds, sizes))
            for fold in range(self.n_splits):
                inside = fold_of_row == fold
                yield np.flatnonzero(~inside), np.flatnonzero(inside)

    def get_n_splits(
        self, X: Any = None, y: Any = None, groups: Any = None, qid: Any = None
    ) -> int:
        """Return the number of pairs that ``split`` yields; arguments are ignored."""
        del X, y, groups, qid
        return self.n_splits * self.n_repeats

    def _deal(self, labels: FloatArray, query_ptr: IntArray) -> Iterator[IntArray]:
        """Yield the fold of each query, once per repetition."""
        n_queries = len(query_ptr) - 1
        if n_queries < self.n_splits:
            raise InputError(
                f"{n_queries} queries cannot be divided into n_splits={self.n_splits} folds: "
                "choose fewer folds"
            )
        for repeat in range(self.n_repeats):
            rng = np.random.default_rng([self.random_state or 0, repeat])
            order = rng.permutation(n_queries)
            if self.stratify:
                order = order[np.lexsort([key[order] for key in _strata(labels, query_ptr)])]
            # Every n_splits queries in a row go to different folds, in random order.
            n_rounds = -(-n_queries // self.n_splits)
            rounds = np.tile(np.arange(self.n_splits), (n_rounds, 1))
            rounds = rng.permuted(rounds, axis=1)
            folds = np.empty(n_queries, dtype=np.int64)
            folds[order] = rounds.ravel()[:n_queries]
            yield folds


class Fold(NamedTuple):
    """The queries of a data set for training, and those for testing."""

    train: BoolArray
    test: BoolArray


def whole_query_folds(data: RankingData, cv: Any, *, rows_of: Any = None) -> list[Fold]:
    """Return the folds of a data set, checked to consist of whole queries.

    Parameters
    ----------
    data : RankingData
    cv : int, splitter or iterable of (train, test) rows
        A number means ``QueryKFold``.
    rows_of : object, optional
        The X to which row numbers in ``cv`` refer, if it is not ``data`` but the X from which
        ``data`` was grouped.
    """
    if is_whole(cv):
        cv = QueryKFold(int(cv))
    order = data.order
    if hasattr(cv, "split"):
        cv, order = cv.split(data.X, data.y, data.qid), None
    elif rows_of is None or rows_of is data:
        order = None
    folds = [Fold(*(_whole_queries(rows, data, order) for rows in fold)) for fold in cv]
    if not folds:
        raise InputError("cv has no folds: give at least one")
    for train, test in folds:
        if (train & test).any() or not train.any() or not test.any():
            raise InputError(
                "a fold needs queries to train on, and others to test: use QueryKFold, or a "
                "splitter that keeps groups whole"
            )
    return folds


def ranking_data(
    ranker: Any, X: Any, y: Any = None, qid: Any = None, **options: Any
) -> RankingData:
    """Return the checked input of a ranker, grouped by query."""
    known = {"group", "sample_weight", "query_weight", "offset"}
    if set(options) - known:
        strange = min(set(options) - known)
        raise InputError(f"{strange!r} cannot be divided among subsets of queries: leave it out")
    if isinstance(X, RankingData):
        refuse_beside_data(y=y, qid=qid, **options)
        return X
    twin = clone(ranker)
    matrix = validated_matrix(twin, X, reset=True)
    names = getattr(twin, "feature_names_in_", None)
    return RankingData(matrix, y, qid, feature_names=names, **options)


def _whole_queries(rows: Any, data: RankingData, order: IntArray | None) -> BoolArray:
    """Return which queries some rows consist of."""
    inside = np.zeros(len(data), dtype=bool)
    inside[np.asarray(rows)] = True
    if order is not None:
        inside = inside[order]
    sizes = np.diff(data.query_ptr)
    query_of = np.repeat(np.arange(len(sizes)), sizes)
    counts = np.bincount(query_of[inside], minlength=len(sizes))
    split = np.flatnonzero((counts > 0) & (counts < sizes))
    if len(split):
        raise InputError(
            f"a fold has {counts[split[0]]} of the {sizes[split[0]]} documents of the query "
            f"{data.query_ids[split[0]]!r}: use QueryKFold, or a splitter that keeps groups whole"
        )
    whole: BoolArray = counts > 0
    return whole


def _strata(labels: FloatArray, query_ptr: IntArray) -> list[Any]:
    """Return the keys to sort queries by for stratified folds, the most important one last."""
    sizes = np.diff(query_ptr)
    labelled = ~np.isnan(labels)
    query_of = np.repeat(np.arange(len(sizes)), sizes)
    sums = np.bincount(query_of, np.where(labelled, labels, 0.0), len(sizes))
    means = sums / np.maximum(np.bincount(query_of, labelled, len(sizes)), 1)
    cuts = np.quantile(means, np.arange(1, LABEL_CLASSES) / LABEL_CLASSES)
    return [sizes, np.searchsorted(cuts, means), informative_queries(labels, query_ptr)]


class RankingScorer(BaseEstimator):
    """A measure for ``scoring=`` in GridSearchCV, cross_validate and others.

    It needs metadata routing enabled, through which it gets ``qid``; it passes it on to a pipeline
    whose steps need it to transform. Greater is better, so measures of errors are negated. Ties are
    averaged over all their orders, whatever the convention.

    Parameters
    ----------
    measure : str, default="ndcg@10"
        As for ``leanrank.metrics.evaluate``.
    convention : str or Convention, default="standard"

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import RankRLS
    >>> data = make_ranking(n_queries=20, random_state=0)
    >>> ranker = RankRLS().fit(data.X, data.y, qid=data.qid)
    >>> bool(0.5 < RankingScorer("map")(ranker, data.X, data.y, qid=data.qid) < 1)
    True
    """

    def __init__(self, measure: str = "ndcg@10", convention: Any = "standard") -> None:
        self.measure = measure
        self.convention = convention

    def __call__(self, estimator: Any, X: Any, y: Any, qid: Any = None) -> float:
        """Return the measure of a fitted ranker or pipeline on held-out queries."""
        if qid is None:
            raise InputError(
                "RankingScorer needs the query of each row: enable scikit-learn's metadata "
                "routing and pass qid"
            )
        scores = np.asarray(estimator.predict(X, **_passed_on(estimator, qid)))
        rules = Judge(self.measure, self.convention).rules
        found = evaluate(y, scores, qid, measures=self.measure, convention=rules, n_jobs=1)
        return better_sign(self.measure) * float(next(iter(found.means.values())))

    def get_metadata_routing(self) -> Any:
        """Return the request of the scorer for ``qid``."""
        request = MetadataRequest(owner=type(self).__name__)
        request.score.add_request(param="qid", alias=True)
        return request


def _passed_on(estimator: Any, qid: Any) -> dict[str, Any]:
    """Return ``qid`` as an argument of ``predict``, for a pipeline whose steps use it."""
    if not get_routing_for_object(estimator).consumes("predict", {"qid"}):
        return {}
    if not get_config()["enable_metadata_routing"]:
        raise InputError(
            "a step of the pipeline needs qid to transform, and scikit-learn passes it on only "
            "with sklearn.set_config(enable_metadata_routing=True)"
        )
    return {"qid": qid}
