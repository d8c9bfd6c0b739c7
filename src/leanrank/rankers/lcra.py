"""LCRA: views of the features, learned from labelled pairs to agree on unlabelled ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

import numpy as np
from sklearn.utils.validation import check_is_fitted

from leanrank._typing import FloatArray, IntArray
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, warn
from leanrank.losses import pair_loss
from leanrank.losses.base import Labels
from leanrank.rankers.pairs import SampledPairRanker, check_pegasos, rate_for
from leanrank.rankers.parameters import changed, feature_number
from leanrank.solvers.sampling.coregularised import (
    ViewedBlock,
    ViewedState,
    Views,
    descend_views,
    listed_views,
    make_viewed_block,
    random_views,
    start_views,
)
from leanrank.solvers.sampling.pair_descent import PairRule, largest_pair, schedule_code


@dataclass(eq=False, repr=False)
class LCRA(SampledPairRanker):
    """Large-scale co-regularised ranking (Tsivtsivadze et al. 2012), LCRA-k-l.

    The features are split into views. Each step draws ``n_labeled`` pairs of labelled documents, on
    which every view learns by itself as in ``SPD``, and ``n_unlabeled`` pairs of unlabelled
    documents of a query, on which the views' scores are pulled together. Prediction is the mean
    over the views, and so one linear function. With ``mu=0`` it is SPD-MV, with one view SPD.

    Unlabelled documents have the label NaN.

    Parameters
    ----------
    alpha : float, default=1e-3
        λ, the strength of the ℓ2² penalty.
    mu : float, default=0.01
        μ, the strength of the agreement.
    n_labeled, n_unlabeled : int
        k and l: pairs per step.
    views : int or sequence of sequences, default=2
        Number of views, to which features are assigned at random; or the features of each view,
        by name or by number.
    loss : {"hinge", "squared", "squared-hinge", "logistic"}, default="hinge"
        Loss of labelled pairs, summed over the pairs of a step, as published.
    sampling : {"pairs", "queries"}, default="pairs"
        How labelled pairs are drawn; unlabelled ones are all equally likely.
    n_steps : int, default=100_000
        Steps per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each.
    learning_rate : {"optimal", "pegasos", "invscaling", "constant"}, default="optimal"
        The rate of step t: η₀/(1 + α η₀ t), 1/(α t), η₀/tᵖ, or η₀.
    eta0 : float, optional
        η₀; by default set from the norm of the pairs of each view.
    power_t : float, default=0.5
        p of "invscaling".
    average : bool, default=True
        Whether the model is the average over about the later half of the steps.
    random_state, measure, convention, patience, warm_start, verbose, callback
        As for ``SPD``.

    Attributes
    ----------
    views_ : list of array
        The features of each view.
    view_coefs_ : array of shape (views, features)
        The weights of each view after the last step.

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

    @property
    def view_coefs_(self) -> FloatArray:
        """The weights of each view after the last step, one view per row."""
        check_is_fitted(self, "coef_")
        weights: FloatArray = self.state_.view_weights()
        return weights

    def _block(self, data: RankingData, labels: Labels) -> ViewedBlock:
        return make_viewed_block(data.X, labels, over=self.sampling)

    def _begin(  # type: ignore[override]  # the block is the one that _block made
        self, block: ViewedBlock, n_features: int, seed: int, n_passes: int
    ) -> ViewedState:
        del n_passes
        for name in changed(self, ["mu", "n_unlabeled"] if block.hidden is None else []):
            if getattr(self, name) > 0:
                warn(
                    f"LCRA: {name} has no effect, since every document has a label: give "
                    "unlabelled ones too, or use SPD"
                )
        check_pegasos(self.learning_rate, self.alpha)
        schedule = schedule_code(self.learning_rate)
        rule = PairRule(loss=self.loss, schedule=schedule, power=float(self.power_t))
        member = self._members(n_features, seed)
        self.views_ = [np.flatnonzero(row) for row in member]
        views = Views(
            member=member,
            alpha=np.full(len(member), float(self.alpha)),
            eta0=self._rates(member, block),
            mu=float(self.mu),
            n_labeled=int(self.n_labeled),
            n_unlabeled=int(self.n_unlabeled),
        )
        return start_views(rule, views, n_features, seed, average=bool(self.average))

    def _pass(self, state: ViewedState, block: ViewedBlock, order: IntArray) -> float:  # type: ignore[override]
        del order
        return descend_views(state, block, self.n_steps)

    def _members(self, n_features: int, seed: int) -> FloatArray:
        if not np.iterable(self.views):
            return random_views(n_features, int(self.views), seed)
        listed = list(self.views)
        if not listed or any(isinstance(v, str) or not np.iterable(v) for v in listed):
            raise InputError(
                f"views={self.views!r} must be a number of views, or a list of lists of features"
            )
        names = getattr(self, "feature_names_in_", None)
        return listed_views(
            [[feature_number(f, n_features, names, "views") for f in view] for view in listed],
            n_features,
        )

    def _rates(self, members: FloatArray, block: ViewedBlock) -> FloatArray:
        if self.eta0 is not None:
            return np.full(len(members), float(self.eta0))
        out = np.ones(len(members))
        for v, member in enumerate(members):
            size = largest_pair(block.rows, block.index, block.width, member)
            size *= pair_loss(self.loss).pair_steepness * self.n_labeled
            if block.hidden is not None and self.mu > 0.0 and len(out) > 1:
                pull = 4.0 * self.mu * self.n_unlabeled * len(out)
                size += pull * largest_pair(block.rows, block.hidden, block.width, member)
            out[v] = rate_for(size)
        return out
