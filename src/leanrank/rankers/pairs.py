"""Rankers that learn from pairs drawn at random: SPD, PAMIR, RSRank and LCRA."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, warn
from leanrank.losses import pair_loss
from leanrank.losses.base import Labels
from leanrank.rankers import parameters
from leanrank.rankers.parameters import Constraints, Uses, fixed, one_of
from leanrank.rankers.stochastic import StochasticRanker
from leanrank.solvers.sampling import coregularised, pair_descent
from leanrank.solvers.sampling.coregularised import ViewedBlock, ViewedState
from leanrank.solvers.sampling.pair_descent import SCHEDULES, PairBlock, PairRule, PairState


@dataclass(eq=False, repr=False)
class SampledPairRanker(StochasticRanker):
    """A ranker whose passes are ``n_steps`` steps, each on one pair drawn at random."""

    _state_type: ClassVar[type] = PairState

    _: KW_ONLY
    n_steps: int = 100_000
    loss: str = "hinge"
    sampling: str = "pairs"
    learning_rate: str = "optimal"
    eta0: float | None = None

    _used_with: ClassVar[Uses] = {"eta0": ("learning_rate", ("optimal", "constant"))}

    def _block(self, data: RankingData, labels: Labels) -> PairBlock:
        importance = getattr(self, "importance", None)
        return pair_descent.make_pair_block(
            data.X, labels, over=self.sampling, importance=importance
        )

    def _rule(self, block: PairBlock) -> PairRule:
        """Return the parameters of a step."""
        eta0 = self.eta0
        if eta0 is None:  # the first step about corrects the largest pair
            largest = pair_descent.largest_pair(block, block.index)
            eta0 = rate_for(pair_loss(self.loss).pair_steepness * largest)
        return PairRule(self.loss, SCHEDULES.index(self.learning_rate), float(eta0))

    def _averages(self) -> bool:
        """Return whether the model is the average of the weights over the later steps."""
        return bool(getattr(self, "average", False))

    def _begin(self, block: PairBlock, n_features: int, seed: int, n_passes: int) -> PairState:
        return pair_descent.start_pairs(
            self._rule(block), n_features, seed, average=self._averages()
        )

    def _pass(self, state: PairState, block: PairBlock, order: IntArray) -> float:
        return pair_descent.descend(state, block, self.n_steps)


def rate_for(size: float) -> float:
    """Return the learning rate for a squared norm of pairs; finite even if it is tiny."""
    return 1.0 / max(size, 1e-300) if size > 0.0 else 1.0


def check_pegasos(ranker: Any, l2: float) -> None:
    """Reject the Pegasos schedule without an ℓ2 penalty, where it divides by zero."""
    if ranker.learning_rate == "pegasos" and not l2 > 0.0:
        more = " and l1_ratio below 1" if hasattr(ranker, "l1_ratio") else ""
        raise InputError(f"learning_rate='pegasos' needs an ℓ2 penalty: give alpha above 0{more}")


@dataclass(eq=False, repr=False)
class SPD(SampledPairRanker):
    """Stochastic pairwise descent (Sculley 2009): one step per pair, drawn by an index.

    The time of a step depends on the features of the two documents only, not on the number of
    documents. The steps approach the minimum of the mean loss over pairs plus the penalty.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the penalty.
    l1_ratio : float, default=0.0
        Share of the ℓ1 penalty: 0 is ℓ2²; 1 is ℓ1, which makes weights exactly zero.
    loss : str, default="hinge"
        Loss of a pair: "hinge", "squared-hinge", "squared" or "logistic".
    sampling : {"pairs", "queries"}, default="pairs"
        "pairs": every pair is equally likely. "queries": every query is, then each of its pairs.
    n_steps : int, default=100_000
        Pairs per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each.
    learning_rate : {"optimal", "pegasos", "constant"}, default="optimal"
        The rate of step t: η₀/(1 + α η₀ t), 1/(α t), or η₀.
    eta0 : float, optional
        η₀; by default set from the norm of the pairs.
    truncate_every : int, default=1000
        Steps between truncations by the ℓ1 penalty; longer intervals leave fewer features.
    average : bool, optional
        Whether the model is the average of the weights over about the later half of the steps,
        which converges faster. By default it is, unless there is an ℓ1 penalty: an average has no
        zeros.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same model, whatever the order of the rows.
    measure, convention : str, default="ndcg@10", "standard"
        Measure that selects the best pass on validation data.
    patience : int, optional
        Passes without improvement after which to stop; needs validation data.
    warm_start : bool, default=False
        Continue from the state of the last fit, with the same parameters of the steps.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import SPD
    >>> data = make_ranking(n_queries=60, n_features=10, random_state=0)
    >>> ranker = SPD(alpha=0.001, n_steps=20_000).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    l1_ratio: float = 0.0
    truncate_every: int = 1000
    average: bool | None = None

    def _rule(self, block: PairBlock) -> PairRule:
        l1 = self.alpha * self.l1_ratio
        l2 = self.alpha - l1
        if l1 == 0.0:
            parameters.reject_unused(self, ("truncate_every",), "no ℓ1 penalty")
        if l1 > 0.0 and self.average:
            raise InputError("average=True leaves no weight at zero: leave it or l1_ratio out")
        check_pegasos(self, l2)
        return super()._rule(block)._replace(l2=l2, l1=l1, every=int(self.truncate_every))

    def _averages(self) -> bool:
        return not self.alpha * self.l1_ratio > 0.0 if self.average is None else self.average


@dataclass(eq=False, repr=False)
class PAMIR(SampledPairRanker):
    """Passive-aggressive ranking (Grangier & Bengio 2008) in its linear, single-query form.

    Each step draws a query, a document of it and one of a lower level. If the first does not lead
    by 1, the weights change as little as possible so that it does, limited by C: to the minimiser
    of ½‖w − w₀‖² + C·max(0, 1 − w·(x⁺ − x⁻)).

    Parameters
    ----------
    C : float, default=0.01
        Aggressiveness: the largest step for one pair. Use less for noisy labels.
    sampling : {"queries", "pairs"}, default="queries"
        "pairs": every pair is equally likely. "queries": every query is, then each of its pairs.
        "queries" is as published.
    n_steps : int, default=100_000
        Pairs per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each.
    average : bool, default=False
        Whether the model is the average of the weights over about the later half of the steps,
        which depends less on the last pairs. Not in the paper.
    random_state : int, RandomState or None, default=0
        Seed. The same seed gives the same model, whatever the order of the rows.
    measure, convention : str, default="ndcg@10", "standard"
        Measure that selects the best pass on validation data.
    patience : int, optional
        Passes without improvement after which to stop; needs validation data.
    warm_start : bool, default=False
        Continue from the state of the last fit, with the same parameters of the steps.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import PAMIR
    >>> data = make_ranking(n_queries=60, n_features=10, random_state=0)
    >>> ranker = PAMIR(n_steps=20_000).fit(data.X, data.y, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.7)
    True
    """

    _takes_preferences: ClassVar[bool] = True  # indexing the pairs rejects them, with a message

    C: float = 0.01
    _: KW_ONLY
    loss: str = fixed("hinge")
    sampling: str = "queries"
    learning_rate: str = fixed("optimal")
    eta0: None = fixed(None)
    average: bool = False

    def _rule(self, block: PairBlock) -> PairRule:
        return PairRule(loss="hinge", passive_aggressive=True, largest=float(self.C))


@dataclass(eq=False, repr=False)
class RSRank(SampledPairRanker):
    """Robust sparse ranking (Sun et al. 2009): importance-weighted pairs, truncated gradients.

    Pairs are weighed by the change of NDCG when their documents are swapped. Every
    ``truncate_every`` steps, weights of at most ``ceiling`` are soft-thresholded by the ℓ1 penalty
    of these steps.

    Parameters
    ----------
    alpha : float, default=1e-3
        Strength of the ℓ1 penalty (the gravity of the paper), relative to the mean weighted loss of
        a pair.
    importance : "ndcg", None or array of shape (levels, levels), default="ndcg"
        Weight of a pair by its two levels. "ndcg": the change of NDCG when two documents of these
        levels are swapped in the ideal ranking. An array: one row per level of the winner, lowest
        level first.
        The weights are divided by their mean over pairs, so alpha does not depend on their scale.
    loss : str, default="hinge"
        Loss of a pair: "hinge", "squared-hinge", "squared" or "logistic".
    sampling : {"pairs", "queries"}, default="queries"
        "pairs": every pair is equally likely. "queries": every query is, then each of its pairs.
    truncate_every : int, default=1000
        θ, the steps between truncations; longer intervals leave fewer features.
    ceiling : float, default=inf
        τ: larger weights are not truncated.
    n_steps : int, default=100_000
        Pairs per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each.
    learning_rate : {"optimal", "constant"}, default="optimal"
        The rate of step t: η₀/(1 + α η₀ t), or η₀.
    eta0 : float, optional
        η₀; by default set from the norm of the pairs.
    random_state, measure, convention, patience, warm_start, verbose, callback
        As for ``SPD``.

    Examples
    --------
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import RSRank
    >>> data = make_ranking(n_queries=60, n_features=30, n_informative=4, random_state=0)
    >>> ranker = RSRank(alpha=0.1).fit(data.X, data.y, qid=data.qid)
    >>> bool(0 < (ranker.coef_ != 0).sum() < 15)
    True
    """

    alpha: float = 1e-3
    _: KW_ONLY
    importance: Any = "ndcg"
    sampling: str = "queries"
    truncate_every: int = 1000
    ceiling: float = np.inf

    _constraints: ClassVar[Constraints] = {"learning_rate": [one_of("optimal", "constant")]}

    def _rule(self, block: PairBlock) -> PairRule:
        rule, every = super()._rule(block), int(self.truncate_every)
        return rule._replace(l1=float(self.alpha), every=every, ceiling=float(self.ceiling))


@dataclass(eq=False, repr=False)
class LCRA(SampledPairRanker):
    """Large-scale co-regularised ranking (Tsivtsivadze et al. 2012), LCRA-k-l.

    The features are split into views, each with a linear function. Each step draws ``n_labeled``
    pairs of labelled documents, from which every view learns as in ``SPD``, and ``n_unlabeled``
    pairs of unlabelled documents of a query, on which the views are penalised for different scores.
    The model is the mean of the views, again a linear function. ``mu=0`` gives SPD-MV, and a single
    view SPD.

    Unlabelled documents have the label NaN.

    Parameters
    ----------
    alpha : float, default=1e-3
        λ, the strength of the ℓ2² penalty.
    mu : float, default=0.01
        μ, the strength of the penalty on different scores.
    n_labeled, n_unlabeled : int, default=1, 10
        k and l, the numbers of labelled and unlabelled pairs per step.
    views : int or sequence of sequences, default=2
        Number of views, to which features are assigned at random; or the features of each view,
        by name or by number.
    loss : str, default="hinge"
        Loss of a labelled pair: "hinge", "squared-hinge", "squared" or "logistic"; summed over the
        pairs of a step, as published.
    sampling : {"pairs", "queries"}, default="pairs"
        "pairs": every labelled pair is equally likely. "queries": every query is, then each of its
        labelled pairs. Unlabelled pairs are always equally likely.
    n_steps : int, default=100_000
        Steps per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each.
    learning_rate : {"optimal", "pegasos", "constant"}, default="optimal"
        The rate of step t: η₀/(1 + α η₀ t), 1/(α t), or η₀.
    eta0 : float, optional
        η₀; by default set for each view from the norm of its pairs.
    average : bool, default=True
        Whether the model is the average of the weights over about the later half of the steps.
    random_state, measure, convention, patience, warm_start, verbose, callback
        As for ``SPD``.

    Attributes
    ----------
    views_ : list of array
        The features of each view.
    state_ : ViewedState
        Its ``view_weights()`` are the weights of each view after the last step, one per row.

    Examples
    --------
    >>> import numpy as np
    >>> from leanrank import make_ranking
    >>> from leanrank.rankers import LCRA
    >>> data = make_ranking(n_queries=60, n_features=10, random_state=0)
    >>> few = np.where(np.arange(len(data)) % 5 == 0, data.y, np.nan)  # a fifth has labels
    >>> ranker = LCRA(n_steps=20_000).fit(data.X, few, qid=data.qid)
    >>> bool(ranker.score(data.X, data.y, qid=data.qid) > 0.6)
    True
    """

    _takes_unlabeled: ClassVar[bool] = True
    _state_type: ClassVar[type] = ViewedState

    alpha: float = 1e-3
    _: KW_ONLY
    mu: float = 0.01
    n_labeled: int = 1
    n_unlabeled: int = 10
    views: int | Sequence[Sequence[Any]] = 2
    average: bool = True

    def _block(self, data: RankingData, labels: Labels) -> ViewedBlock:
        return coregularised.make_viewed_block(data.X, labels, over=self.sampling)

    def _begin(  # type: ignore[override]  # the block is from _block
        self, block: ViewedBlock, n_features: int, seed: int, n_passes: int
    ) -> ViewedState:
        for name in parameters.changed(self, ["mu", "n_unlabeled"] if block.hidden is None else []):
            if getattr(self, name) > 0:
                warn(f"LCRA: {name} has no effect, since every document has a label: use SPD")
        check_pegasos(self, self.alpha)
        rule = PairRule(self.loss, SCHEDULES.index(self.learning_rate))
        member = self._members(n_features, seed)
        self.views_ = [np.flatnonzero(row) for row in member]
        views = coregularised.Views(
            member=member,
            alpha=np.full(len(member), float(self.alpha)),
            eta0=self._rates(member, block),
            mu=float(self.mu),
            n_labeled=int(self.n_labeled),
            n_unlabeled=int(self.n_unlabeled),
        )
        return coregularised.start_views(rule, views, n_features, seed, average=bool(self.average))

    def _members(self, n_features: int, seed: int) -> FloatArray:
        if not np.iterable(self.views):
            return coregularised.random_views(n_features, int(self.views), seed)
        listed = list(self.views)
        if not listed or any(isinstance(view, str) or not np.iterable(view) for view in listed):
            raise InputError(f"views={self.views!r} must be a number or a list of lists")
        names = getattr(self, "feature_names_in_", None)
        member = np.zeros((len(listed), n_features))
        for row, view in zip(member, listed, strict=True):
            row[[parameters.feature_number(f, n_features, names, "views") for f in view]] = 1.0
        return member

    def _pass(self, state: ViewedState, block: ViewedBlock, order: IntArray) -> float:  # type: ignore[override]
        return coregularised.descend_views(state, block, self.n_steps)

    def _rates(self, members: FloatArray, block: ViewedBlock) -> FloatArray:
        if self.eta0 is not None:
            return np.full(len(members), float(self.eta0))
        out = np.ones(len(members))
        for v, member in enumerate(members):
            size = pair_descent.largest_pair(block, block.index, member)
            size *= pair_loss(self.loss).pair_steepness * self.n_labeled
            if block.hidden is not None and self.mu > 0.0 and len(out) > 1:
                pull = 4.0 * self.mu * self.n_unlabeled * len(out)
                size += pull * pair_descent.largest_pair(block, block.hidden, member)
            out[v] = rate_for(size)
        return out
