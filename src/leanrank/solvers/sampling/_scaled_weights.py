"""Weights that shrink in constant time, with an optional average or truncation.

Weights are stored as w = s·v, so that a factor changes one number, and a step changes only the
features of its pair. Two updates are deferred until a feature is used:

*Average.* Let S be the running sum of s over steps. A change δ of v when that sum is S_k does not
count in the first part of the sum, so Σ w = S·v − Σ δ·S_k, and the last sum is stored beside v. The
sums restart when the number of steps has doubled; together with the previous ones they cover the
last half to three quarters of all steps.

*Truncation.* The soft threshold due for all weights, in units of v, is one running sum; ``taken``
is the part that has been applied to each weight.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray

SCALE, COUNTED, N_NOW, N_BEFORE, DUE, PENDING = range(6)
SMALLEST = 1e-5
"""Scale below which it is multiplied into the weights, to keep precision."""


class ScaledWeights(NamedTuple):
    """Arrays with one row per weight vector; those that are not needed have no columns.

    Attributes
    ----------
    v : array
        Weights divided by their scale.
    numbers : array
        Scale, running sum of scales, steps in ``now`` and in ``before``, threshold due for all
        weights, threshold pending until the next truncation.
    late, now, before : array
        For the average: Σ δ·S_k, the sum of w since the last restart, and the previous such sum.
    taken : array
        Threshold applied to each weight so far.
    """

    v: FloatArray
    numbers: FloatArray
    late: FloatArray
    now: FloatArray
    before: FloatArray
    taken: FloatArray


def new_weights(
    n_features: int, *, n_vectors: int = 1, average: bool = False, truncate: bool = False
) -> ScaledWeights:
    """Return weights of zero."""
    numbers = np.zeros((n_vectors, 6))
    numbers[:, SCALE] = 1.0
    kept = n_features if average else 0
    return ScaledWeights(
        v=np.zeros((n_vectors, n_features)),
        numbers=numbers,
        late=np.zeros((n_vectors, kept)),
        now=np.zeros((n_vectors, kept)),
        before=np.zeros((n_vectors, kept)),
        taken=np.zeros((n_vectors, n_features if truncate else 0)),
    )


def read_weights(state: ScaledWeights, ceiling: float = np.inf) -> FloatArray:
    """Return the weights, or their average if there is one; the state does not change."""
    copy = ScaledWeights(*(part.copy() for part in state))
    for r in range(len(copy.v)):
        if copy.taken.shape[1]:
            copy.numbers[r, DUE] += copy.numbers[r, PENDING] / copy.numbers[r, SCALE]
            settle(copy, r, ceiling)
        elif copy.now.shape[1] and copy.numbers[r, N_NOW]:
            flush(copy, r)
            total = copy.before[r] + copy.now[r]
            copy.v[r] = total / (copy.numbers[r, N_BEFORE] + copy.numbers[r, N_NOW])
            copy.numbers[r, SCALE] = 1.0
    return np.asarray(copy.v * copy.numbers[:, [SCALE]] + 0.0)  # + 0.0: no negative zeros


def grow_weights(state: ScaledWeights, n_features: int) -> ScaledWeights:
    """Return the same weights with more features, whose weights are zero."""
    more = n_features - state.v.shape[1]

    def wider(name: str, part: FloatArray) -> FloatArray:
        if name == "numbers" or part.shape[1] == 0:
            return part
        return np.pad(part, ((0, 0), (0, more)))

    grown = ScaledWeights(*(wider(*field) for field in state._asdict().items()))
    if grown.taken.shape[1]:  # no threshold is due for a weight of zero
        grown.taken[:, n_features - more :] = grown.numbers[:, [DUE]]
    return grown


@kernel
def shrink(state, r, factor, ceiling):  # type: ignore[no-untyped-def]
    """Multiply a vector by a factor of at least 0."""
    numbers = state.numbers[r]
    scale = numbers[SCALE] * factor
    if scale <= SMALLEST:
        settle(state, r, ceiling)
        if state.now.shape[1] > 0:
            flush(state, r)
        v = state.v[r]
        for j in range(len(v)):
            v[j] *= scale
        scale = 1.0
    numbers[SCALE] = scale


@kernel
def restart_average(state, r):  # type: ignore[no-untyped-def]
    """Move the sums to ``before``, and start new ones."""
    flush(state, r)
    numbers = state.numbers[r]
    numbers[N_BEFORE] = numbers[N_NOW]
    numbers[N_NOW] = 0.0
    for j in range(state.now.shape[1]):
        state.before[r, j] = state.now[r, j]
        state.now[r, j] = 0.0


@kernel
def flush(state, r):  # type: ignore[no-untyped-def]
    """Add the steps so far to the sum of weights."""
    counted = state.numbers[r, COUNTED]
    for j in range(state.now.shape[1]):
        state.now[r, j] += counted * state.v[r, j] - state.late[r, j]
        state.late[r, j] = 0.0
    state.numbers[r, COUNTED] = 0.0


@kernel
def take_threshold(v, taken, features, n, numbers, ceiling):  # type: ignore[no-untyped-def]
    """Apply the threshold that is due to some weights, except to those above the ceiling."""
    due, highest = numbers[DUE], ceiling / numbers[SCALE]
    for k in range(n):
        j = features[k]
        left_due, size = due - taken[j], abs(v[j])
        if size <= highest:
            v[j] = math.copysign(max(size - left_due, 0.0), v[j])
        taken[j] = due


@kernel
def settle(state, r, ceiling):  # type: ignore[no-untyped-def]
    """Apply the threshold that is due to every weight, and reset it."""
    n = state.taken.shape[1]
    if n > 0:
        take_threshold(state.v[r], state.taken[r], np.arange(n), n, state.numbers[r], ceiling)
        state.taken[r, :] = 0.0
        state.numbers[r, DUE] = 0.0
