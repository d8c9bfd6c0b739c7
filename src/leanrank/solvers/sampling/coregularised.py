"""Stochastic descent on labelled pairs in several views that agree on unlabelled pairs (LCRA).

Each view v has its own features and weights. With P the labelled and P̂ the unlabelled pairs, the
steps minimise Eq. 1 of Tsivtsivadze et al. 2012, where the sums over pairs are means times the
numbers k and l of pairs per step:

    J = Σ_v [ k E_P ℓ(w_vᵀp) + α_v/2 ‖w_v‖² ] + μ l Σ_{v≠u} E_P̂ (w_vᵀp − w_uᵀp)².

The last sum takes each pair of views twice; its gradient in w_v is 4 μ l Σ_u E (w_vᵀp − w_uᵀp) p.
The model is the mean of the views' scores.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np
import numpy.typing as npt

from leanrank._jit import kernel
from leanrank._typing import FloatArray, Matrix
from leanrank.errors import InputError
from leanrank.losses.base import Labels
from leanrank.solvers.sampling import _scaled_weights as scaled
from leanrank.solvers.sampling._pair_rows import dot, fill_differences, make_buffers
from leanrank.solvers.sampling._scaled_weights import new_weights, read_weights
from leanrank.solvers.sampling.pair_descent import (
    PairBlock,
    PairRule,
    PairState,
    check_finite_loss,
    learning_rate,
    make_pair_block,
    pair_weight,
    step_counts,
)
from leanrank.solvers.sampling.pair_sampling import (
    PairIndex,
    document_keys,
    fill_pairs,
    fill_uniform,
    index_all_pairs,
    new_state,
)

_BUFFERED = 64  # pairs drawn at once


@dataclass(frozen=True)
class ViewedBlock(PairBlock):
    """Documents with an index of labelled pairs and, if there are any, of unlabelled pairs."""

    hidden: PairIndex | None = None


@dataclass(frozen=True)
class Views:
    """The features and parameters of each view.

    Attributes
    ----------
    member : array of shape (views, features)
        1 where a feature belongs to a view, else 0.
    alpha, eta0 : array of shape (views,)
        Strength of the penalty and learning rate η₀ of each view.
    mu : float
        Strength of the penalty on different scores.
    n_labeled, n_unlabeled : int
        k and l, the numbers of pairs per step.
    """

    member: FloatArray
    alpha: FloatArray
    eta0: FloatArray
    mu: float
    n_labeled: int
    n_unlabeled: int


@dataclass
class ViewedState(PairState):
    """The state of a run; its weights are the mean over the views."""

    views: Views | None = None
    hidden_generator: npt.NDArray[np.uint64] = field(default_factory=lambda: new_state(0))

    def view_weights(self) -> FloatArray:
        """Return the weights of each view, one per row."""
        return read_weights(self.weights_)

    def grow(self, n_features: int) -> None:
        """Reject new features, since the views are fixed by the first step."""
        raise InputError(
            f"the views are fixed by the first step: fit again to use {n_features} features"
        )


def make_viewed_block(X: Matrix, labels: Labels, *, over: str = "pairs") -> ViewedBlock:
    """Return documents with an index of labelled pairs, and of all pairs with the label NaN."""
    block = make_pair_block(X, labels, over=over)
    among = np.isnan(labels.y)
    if labels.sample_weight is not None:
        among &= labels.sample_weight > 0
    hidden = None
    if among.any():
        hidden = index_all_pairs(labels.query_ptr, among=among, keys=document_keys(X))
    return ViewedBlock(**vars(block), hidden=hidden)


def start_views(
    rule: PairRule, views: Views, n_features: int, seed: int, *, average: bool = False
) -> ViewedState:
    """Return the state of a run before its first step; it draws the pairs of ``start_pairs``."""
    return ViewedState(
        weights_=new_weights(n_features, n_vectors=len(views.member), average=average),
        generator=new_state(seed),
        rule=rule,
        seed=seed,
        views=views,
        hidden_generator=new_state(seed, stream=1),
    )


def descend_views(state: ViewedState, block: ViewedBlock, n_steps: int) -> float:
    """Take steps; return the mean loss of labelled pairs, over views, before each step."""
    views, hidden = state.views, block.hidden
    assert views is not None
    k, n_hidden = views.n_labeled, views.n_unlabeled
    agree = hidden is not None and views.mu > 0.0 and n_hidden > 0 and len(views.member) > 1
    if hidden is None or not agree:
        hidden, n_hidden = block.index, 0
    at_once = max(1, _BUFFERED // (k + n_hidden))
    buffers = make_buffers(block.width, at_once * k)
    hidden_buffers = make_buffers(block.width, max(1, at_once * n_hidden))
    rule, total = state.rule.compiled(), 0.0
    for some in step_counts(n_steps, at_once, 2 * block.width * len(views.member)):
        total += _descend_views(
            block.rows, block.y, block.index, block.weights, hidden, rule, views.member,
            views.alpha, views.eta0, views.mu, k, n_hidden, state.weights_, state.generator,
            state.hidden_generator, state.steps, some, buffers, hidden_buffers,
        )  # fmt: skip
        check_finite_loss(total, state.steps, float(views.eta0.max()))
        state.steps += some
        state.documents += 2 * some * (k + n_hidden)
    return float(total) / (n_steps * k * len(views.member))


def random_views(n_features: int, n_views: int, seed: int) -> FloatArray:
    """Return a random assignment of features: of every ``n_views`` in a row, each view gets one.

    The sizes of views differ by one at most, and more features do not change the views of others.

    >>> random_views(5, 2, seed=0).sum(axis=0).tolist()
    [1.0, 1.0, 1.0, 1.0, 1.0]
    """
    n_rounds = -(-n_features // n_views)
    chance = np.empty(n_rounds * n_views)
    fill_uniform(new_state(seed, stream=2), chance)
    dealt = np.argsort(chance.reshape(n_rounds, n_views), axis=1).ravel()[:n_features]
    return (dealt == np.arange(n_views)[:, None]).astype(np.float64)


@kernel
def _descend_views(  # type: ignore[no-untyped-def]
    rows, y, index, weights, hidden_index, rule, member, alpha, eta0, mu, k, n_hidden, state,
    generator, hidden_generator, done, n_steps, buffers, hidden_buffers,
):  # fmt: skip
    total, t, end = 0.0, done, done + n_steps
    at_once = len(buffers.pairs) // k
    is_dense = rows.dense.shape[0] > 0
    slopes, pulls = np.zeros((len(member), k)), np.zeros((len(member), n_hidden))
    sums = np.zeros(member.shape[1])
    while t < end:
        n = min(at_once, end - t)
        _draw(rows, index, generator, buffers, n * k)
        if n_hidden > 0:
            _draw(rows, hidden_index, hidden_generator, hidden_buffers, n * n_hidden)
        for step in range(n):
            t += 1
            _scores(state, buffers, step * k, is_dense, slopes)
            total += _to_slopes(y, weights, rule.loss, buffers.pairs, step * k, slopes)
            if n_hidden > 0:
                _scores(state, hidden_buffers, step * n_hidden, is_dense, pulls)
                to_pulls(pulls, mu)
            for v in range(len(member)):
                rate = learning_rate(rule.schedule, eta0[v], alpha[v], t)
                factor = max(0.0, 1.0 - rate * alpha[v])
                if factor * state.numbers[v, scaled.SCALE] > scaled.SMALLEST:
                    state.numbers[v, scaled.SCALE] *= factor
                else:
                    scaled.shrink(state, v, factor, np.inf)
                _add_pairs(state, v, member, buffers, step * k, is_dense, slopes, rate, sums)
                if n_hidden > 0:
                    first = step * n_hidden
                    _add_pairs(state, v, member, hidden_buffers, first, is_dense, pulls, rate, sums)
                if state.now.shape[1] > 0:
                    if (t & (t - 1)) == 0:
                        scaled.restart_average(state, v)
                    state.numbers[v, scaled.COUNTED] += state.numbers[v, scaled.SCALE]
                    state.numbers[v, scaled.N_NOW] += 1.0
    return total


@kernel
def _draw(rows, index, generator, buffers, n_pairs):  # type: ignore[no-untyped-def]
    fill_pairs(index, generator, buffers.pairs, n_pairs)
    fill_differences(rows, buffers.pairs, n_pairs, buffers.features, buffers.values, buffers.counts)


@kernel
def _scores(state, buffers, first, is_dense, out):  # type: ignore[no-untyped-def]
    """Fill the scores of the pairs of a step in every view; weights outside a view are zero."""
    features, values, counts = buffers.features, buffers.values, buffers.counts
    for v in range(out.shape[0]):
        weights, scale = state.v[v], state.numbers[v, scaled.SCALE]
        for i in range(out.shape[1]):
            at = first + i
            out[v, i] = scale * dot(is_dense, weights, features, values, at, counts[at])


@kernel
def _to_slopes(y, weights, loss, pairs, first, scores):  # type: ignore[no-untyped-def]
    """Replace the scores of labelled pairs by slopes of the losses; return the sum of losses."""
    total = 0.0
    is_weighted, has_offset = len(weights.gain) > 0, len(weights.offset) > 0
    for i in range(scores.shape[1]):
        a, b = pairs[first + i, 0], pairs[first + i, 1]
        c = pair_weight(weights, a, b) if is_weighted else 1.0
        away = weights.offset[a] - weights.offset[b] if has_offset else 0.0
        for v in range(scores.shape[0]):
            value, slope = loss(scores[v, i] - away, y[a] - y[b])
            total += c * value
            scores[v, i] = c * slope
    return total


@kernel
def to_pulls(scores, mu):  # type: ignore[no-untyped-def]
    """Replace the scores of unlabelled pairs by the slopes of the penalty on differences."""
    n_views = scores.shape[0]
    for i in range(scores.shape[1]):
        together = 0.0
        for v in range(n_views):
            together += scores[v, i]
        for v in range(n_views):
            scores[v, i] = 4.0 * mu * (n_views * scores[v, i] - together)


@kernel
def _add_pairs(state, v, member, buffers, first, is_dense, slopes, rate, total):  # type: ignore[no-untyped-def]
    """Move the weights of one view against the slopes of some pairs."""
    weights, late, mine = state.v[v], state.late[v], member[v]
    features, values, counts = buffers.features, buffers.values, buffers.counts
    factor, counted = -rate / state.numbers[v, scaled.SCALE], state.numbers[v, scaled.COUNTED]
    average, n_pairs = len(late) > 0, slopes.shape[1]
    if is_dense:  # all pairs have all features: add up the pairs first
        total[:] = 0.0
        for i in range(n_pairs):
            slope = slopes[v, i]
            if slope != 0.0:
                for j in range(len(total)):
                    total[j] += slope * values[first + i, j]
        for j in range(len(total)):
            weights[j] += factor * mine[j] * total[j]
        if average:
            for j in range(len(total)):
                late[j] += factor * counted * mine[j] * total[j]
        return
    for i in range(n_pairs):
        step = factor * slopes[v, i]
        if step != 0.0:
            for at in range(counts[first + i]):
                j = features[first + i, at]
                move = step * mine[j] * values[first + i, at]
                weights[j] += move
                if average:
                    late[j] += counted * move
