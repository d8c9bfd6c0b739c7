"""AdaRank: a sum of single features, boosted by the measure that is to be high."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import DataWarning, InputError
from leanrank.losses.base import Labels
from leanrank.metrics import Measure, evaluate
from leanrank.metrics.measures import AUC, COVERAGE, DCG, JOACHIMS, KENDALL, TOP_RANK
from leanrank.rankers.boosted import BoostedRanker, Callback, HeldOut
from leanrank.solvers.measure_boosting import boost_measure
from leanrank.solvers.threshold_columns import column_values


class AdaRank(BoostedRanker):
    """AdaRank (Xu & Li 2007): boosting that looks at nothing but a measure of each query's ranking.

    A weak ranker is one feature used as the score. Each round takes the one with the best measure
    over the queries, weighted towards those that the rounds before rank badly. The sum is a linear
    function of the features, so their scale matters: bring them to one first, as the public sets
    are (``QueryMinMax``, say).

    Parameters
    ----------
    n_rounds : int, default=200
    measure : str, default="map"
        What to make high: "map", "ndcg@5", "mrr" or any other measure within [−1, 1].
    convention : str, default="standard"
        How it is computed. In "standard" documents with equal scores, which a single feature has
        many of, count as in all their orders on average; the LETOR conventions credit a weak ranker
        with the order of the file.
    signs : array-like or int, default=1
        One of −1, 0, 1 a feature, or one for all: 1 uses features as they are, as published; −1
        turned over; 0 both.
    repeats : {"progress", "always", "never"}, default="progress"
        When a feature may be taken again. The weights of the queries move little, so that the
        feature which is best on average tends to come again and again and to change nothing.
        "progress": a feature that did not raise the measure above its best so far is set aside
        until another one does; when all are, the run ends. "always": as published. "never": each
        feature is taken once.
    patience : int, optional
        Rounds without a better one after which to stop; by default all rounds are run.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    verbose : int, default=0
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    coef_ : array of shape (n_features,)
        The weights of each feature's weak rankers, added up.
    n_iter_ : int
        Rounds in the model: those up to the best one, by the measure on validation data or, without
        them, on the training data.
    history_ : list of dict
        Round, feature, value and the measure on the training data; with validation data,
        theirs as "validation".

    Examples
    --------
    >>> from leanrank import AdaRank, make_ranking
    >>> data = make_ranking(n_queries=40, n_features=10, n_informative=3, random_state=0)
    >>> ranker = AdaRank(measure="ndcg@10", signs=0).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    def __init__(
        self,
        n_rounds: int = 200,
        *,
        measure: str = "map",
        convention: str = "standard",
        signs: Any = 1,
        repeats: str = "progress",
        patience: int | None = None,
        n_jobs: int | None = None,
        verbose: int = 0,
        callback: Callback | None = None,
    ) -> None:
        self.n_rounds = n_rounds
        self.measure = measure
        self.convention = convention
        self.signs = signs
        self.repeats = repeats
        self.patience = patience
        self.n_jobs = n_jobs
        self.verbose = verbose
        self.callback = callback

    def _boost(self, data: RankingData, labels: Labels, held_out: HeldOut | None) -> None:
        _check_measure(self.measure)
        for name in ("gain_weight", "offset"):
            if getattr(labels, name) is not None:
                raise InputError(
                    f"AdaRank sees whole rankings, so {name} has no meaning there: leave it out"
                )
        features, signs = _weak_rankers(self.signs, data.n_features)
        data = _repeated(data)
        queries = np.flatnonzero(data.informative)
        weight = np.ones(data.n_queries) if data.query_weight is None else data.query_weight
        queries = queries[weight[queries] > 0]
        if len(queries) == 0:
            raise InputError(
                "no query has documents at two levels, so there is nothing to learn from: give "
                "labels that differ within a query (n_samples=1 cannot train a ranker)"
            )
        data, weight = data.queries[queries], weight[queries]
        X = data.X.tocsc() if data.is_sparse else data.X
        measured = self._measurer(data)
        table = np.empty((len(features), len(weight)))
        for row, (feature, sign) in enumerate(zip(features, signs, strict=True)):
            table[row] = measured(sign * column_values(X, feature).astype(np.float64))
        defined = ~np.isnan(table).any(axis=0)
        if not defined.any():
            raise InputError(f"{self.measure} is not defined on any query: choose another measure")
        scores = np.zeros(len(data))

        def combined(weak: int, value: float) -> FloatArray:
            nonlocal scores
            column = column_values(X, int(features[weak])).astype(np.float64)
            scores += value * signs[weak] * column
            return measured(scores)[defined]

        coef, best, best_quality = np.zeros(data.n_features), np.zeros(data.n_features), -np.inf
        self.n_iter_ = 0
        rounds = boost_measure(
            table[:, defined], combined, weight[defined], self.n_rounds, self.repeats
        )
        for count, (weak, value, quality) in enumerate(rounds, start=1):
            feature, step = int(features[weak]), float(value * signs[weak])
            coef[feature] += step
            entry: dict[str, Any] = {"round": count, "feature": feature, "value": step}
            entry[self.measure] = quality
            if held_out is not None:
                held_out.scores += step * held_out.column(feature).astype(np.float64)
                entry["validation"] = held_out.measured()
                quality = held_out.sign * entry["validation"]
            self._report(entry)
            if quality > best_quality:
                best, best_quality, self.n_iter_ = coef.copy(), quality, count
            if self.patience is not None and count - self.n_iter_ >= self.patience:
                break
        self.coef_ = best
        if not best.any():
            warnings.warn(
                f"AdaRank learned a model without features: none ranks with {self.measure} above 0",
                DataWarning,
                stacklevel=4,
            )

    def _measurer(self, data: RankingData) -> Callable[[FloatArray], FloatArray]:
        def measured(scores: FloatArray) -> FloatArray:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", DataWarning)  # a single feature ties many documents
                found = evaluate(
                    data,
                    scores,
                    measures=self.measure,
                    convention=self.convention,
                    n_jobs=self.n_jobs,
                )
            return found.per_query[self.measure]

        return measured


def _check_measure(name: str) -> None:
    kind = Measure.parse(name).kind
    bounded = kind not in (DCG, TOP_RANK, COVERAGE) and (kind <= AUC or kind in (KENDALL, JOACHIMS))
    if not bounded:
        raise InputError(
            f"measure={name!r} cannot be boosted: it must be higher for better rankings and lie "
            "within -1 and 1, such as 'map' or 'ndcg@10'"
        )


def _weak_rankers(signs: Any, n_features: int) -> tuple[IntArray, FloatArray]:
    """List the features to use and the sign of each; a feature of sign 0 is there twice."""
    given = np.asarray(signs)
    if given.ndim > 1 or (given.ndim == 1 and len(given) != n_features):
        raise InputError(
            f"signs has shape {given.shape}: give one, or one for each of {n_features}"
        )
    if not np.isin(given, (-1, 0, 1)).all():
        raise InputError("signs must be -1, 0 or 1")
    each = np.broadcast_to(given, n_features)
    up, down = np.flatnonzero(each >= 0), np.flatnonzero(each <= 0)
    features = np.concatenate((up, down))
    sign = np.repeat([1.0, -1.0], [len(up), len(down)])
    order = np.argsort(features, kind="stable")
    return features[order], sign[order]


def _repeated(data: RankingData) -> RankingData:
    """Write out what sample_weight says: a document of weight 2 is in the list twice."""
    if data.sample_weight is None:
        return data
    counts = data.sample_weight.astype(np.int64)
    if not np.array_equal(counts, data.sample_weight):
        raise InputError(
            "AdaRank measures lists of documents, in which each is there a whole number of times: "
            "give whole sample_weight, or query_weight"
        )
    if (counts == 1).all():
        return data
    rows = np.repeat(np.arange(len(data)), counts)
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))[rows]
    weight = data.query_weight
    return RankingData(
        data.X[rows],
        data.y[rows],
        query_of,
        query_weight=None if weight is None else weight[np.unique(query_of)],
        doc_ids=None if data.doc_ids is None else data.doc_ids[rows],
    )
