"""What one query of the domination loss needs of its levels, in logarithms.

E_l is the log mass of level l, Z_k that of all levels below k; see ``_domination_kernels``.
"""

from __future__ import annotations

import math

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray


@kernel
def below(
    E: FloatArray, Z: FloatArray, n_levels: int, level: IntArray, margin: FloatArray | None,
    first: int,
) -> None:  # fmt: skip
    """Fill Z_k, the log mass of the levels below k, margins included."""
    Z[0] = -math.inf
    for k in range(1, n_levels):
        if margin is None:
            Z[k] = log_add(Z[k - 1], E[k - 1])
        else:
            Z[k] = -math.inf
            for j in range(k):
                Z[k] = log_add(Z[k], E[j] + margin[level[first + k], level[first + j]])


@kernel
def from_above(
    E: FloatArray, Z: FloatArray, A: FloatArray, D: FloatArray, n_levels: int, level: IntArray,
    margin: FloatArray | None, first: int,
) -> None:  # fmt: skip
    """Fill D_l = Σ_{k>l} A_k × (share of level l in the mass below k)."""
    D[n_levels - 1] = 0.0
    if margin is None:
        # per unit of mass, relative to Z_{l+1}, so that no factor exceeds one
        carried = 0.0
        for j in range(n_levels - 2, -1, -1):
            if j < n_levels - 2 and Z[j + 1] > -math.inf:
                carried *= math.exp(Z[j + 1] - Z[j + 2])
            elif j < n_levels - 2:
                carried = 0.0
            carried += A[j + 1]
            D[j] = carried * math.exp(E[j] - Z[j + 1]) if E[j] > -math.inf else 0.0
    else:
        for j in range(n_levels - 1):
            D[j] = 0.0
            for k in range(j + 1, n_levels):
                D[j] += A[k] * level_share(E, Z, k, j, level, margin, first)


@kernel
def mean_below(
    E: FloatArray, Z: FloatArray, mean: FloatArray, before: float, k: int, level: IntArray,
    margin: FloatArray | None, first: int,
) -> float:  # fmt: skip
    """Average the levels' means under the softmax of those below k.

    ``before`` is the average of level k − 1.
    """
    if margin is None:
        return before + math.exp(E[k - 1] - Z[k]) * (mean[k - 1] - before)
    total = 0.0
    for j in range(k):
        total += level_share(E, Z, k, j, level, margin, first) * mean[j]
    return total


@kernel
def level_share(
    E: FloatArray, Z: FloatArray, k: int, j: int, level: IntArray, margin: FloatArray, first: int,
) -> float:  # fmt: skip
    """Return the share of level j in the mass below level k, with a margin table."""
    if E[j] == -math.inf:
        return 0.0
    return math.exp(E[j] + margin[level[first + k], level[first + j]] - Z[k])


@kernel
def log_add(x: float, y: float) -> float:
    if x < y:
        x, y = y, x
    if y == -math.inf:
        return x
    return x + math.log1p(math.exp(y - x))


@kernel
def sigmoid(z: float) -> float:
    if z > 0.0:
        return 1.0 / (1.0 + math.exp(-z))
    e = math.exp(z)
    return e / (1.0 + e)
