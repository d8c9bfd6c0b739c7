"""Kernels of the domination loss over a range of queries.

Shared arguments: query q owns cells ``cell_ptr[q]:cell_ptr[q+1]`` in ascending level, cell c holds
``rows[row_ptr[c]:row_ptr[c+1]]``. In each query E_l is the log mass of level l, Z_k the log mass of
all levels below k, A_k the total probability of being dominated in level k, and D_l the total
gradient that the documents of level l receive from above. Exponentials go by chunks, see
``_smooth``; S_l is what turns the exponentials of level l into shares of its mass.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._smooth import CHUNK, exp_chunk, sigmoid_chunk, softplus_chunk
from leanrank._typing import FloatArray, IntArray


@kernel
def evaluate(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, mass: FloatArray, gain: FloatArray,
    level: IntArray, margin: FloatArray | None, r0: int, r1: int, u: FloatArray, g: FloatArray,
) -> float:  # fmt: skip
    value = 0.0
    E, Z, A, D = _scratch(cell_ptr, r0, r1)
    S = np.empty(len(E))
    chunk, terms = np.empty(CHUNK), np.empty(CHUNK)
    for q in range(r0, r1):
        first = cell_ptr[q]
        n_levels = cell_ptr[q + 1] - first
        # g first holds the exponentials of all levels but the highest
        for k in range(n_levels - 1):
            E[k], S[k] = _level_mass(row_ptr, rows, mass, first + k, u, g, chunk)
        below(E, Z, n_levels, level, margin, first)
        for k in range(n_levels):
            A[k] = 0.0
            begin, end = row_ptr[first + k], row_ptr[first + k + 1]
            for at in range(begin, end, CHUNK):
                n = min(CHUNK, end - at)
                if k == n_levels - 1:
                    for i in range(n):
                        g[rows[at + i]] = 0.0
                if Z[k] == -math.inf:
                    continue
                for i in range(n):
                    chunk[i] = Z[k] - u[rows[at + i]]
                softplus_chunk(chunk, terms, n)
                for i in range(n):
                    weight = gain[rows[at + i]]
                    if weight > 0.0:
                        value += weight * terms[i]
                        A[k] += weight * chunk[i]
                        if k == n_levels - 1:
                            g[rows[at + i]] = -weight * chunk[i]
        from_above(E, Z, A, D, n_levels, level, margin, first)
        for k in range(n_levels - 1):
            received = D[k] * S[k]
            begin, end = row_ptr[first + k], row_ptr[first + k + 1]
            for at in range(begin, end, CHUNK):
                n = min(CHUNK, end - at)
                for i in range(n):
                    g[rows[at + i]] *= received
                if Z[k] == -math.inf:
                    continue
                for i in range(n):
                    chunk[i] = Z[k] - u[rows[at + i]]
                sigmoid_chunk(chunk, n)
                for i in range(n):
                    weight = gain[rows[at + i]]
                    if weight > 0.0:
                        g[rows[at + i]] -= weight * chunk[i]
    return value


@kernel
def curvature(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, mass: FloatArray, gain: FloatArray,
    level: IntArray, margin: FloatArray | None, r0: int, r1: int, u: FloatArray, diag: FloatArray,
    atoms: FloatArray, aux: FloatArray,
) -> None:  # fmt: skip
    E, Z, A, D = _scratch(cell_ptr, r0, r1)
    S, chunk = np.empty(len(E)), np.empty(CHUNK)
    for q in range(r0, r1):
        first = cell_ptr[q]
        n_levels = cell_ptr[q + 1] - first
        for k in range(n_levels):
            E[k], S[k] = _level_mass(row_ptr, rows, mass, first + k, u, diag, chunk)
        below(E, Z, n_levels, level, margin, first)
        for k in range(n_levels):
            A[k] = 0.0
            squares = 0.0
            begin, end = row_ptr[first + k], row_ptr[first + k + 1]
            for at in range(begin, end, CHUNK):
                n = min(CHUNK, end - at)
                for i in range(n):
                    atoms[rows[at + i], 1] = 0.0
                if k == 0:
                    continue
                for i in range(n):
                    chunk[i] = Z[k] - u[rows[at + i]]
                sigmoid_chunk(chunk, n)
                for i in range(n):
                    weight, dominated = gain[rows[at + i]], chunk[i]
                    if weight > 0.0:
                        A[k] += weight * dominated
                        squares += weight * dominated * dominated
                        atoms[rows[at + i], 1] = weight * dominated * (1.0 - dominated)
            aux[first + k, 0] = E[k]
            aux[first + k, 1] = Z[k]
            aux[first + k, 2] = squares
        from_above(E, Z, A, D, n_levels, level, margin, first)
        for k in range(n_levels):
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i = rows[at]
                share = S[k] * diag[i]
                atoms[i, 0] = share
                diag[i] = atoms[i, 1] + D[k] * share


@kernel
def product(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, mass: FloatArray, gain: FloatArray,
    level: IntArray, margin: FloatArray | None, r0: int, r1: int, u: FloatArray, d: FloatArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """Fill the product of the score Hessian with a vector d."""
    E, Z, A, D = _scratch(cell_ptr, r0, r1)
    mean, pull, D2 = np.empty(len(E)), np.empty(len(E)), np.empty(len(E))
    S, chunk = np.empty(len(E)), np.empty(CHUNK)
    for q in range(r0, r1):
        first = cell_ptr[q]
        n_levels = cell_ptr[q + 1] - first
        for k in range(n_levels):
            E[k], S[k] = _level_mass(row_ptr, rows, mass, first + k, u, out, chunk)
            mean[k] = 0.0
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                out[rows[at]] *= S[k]
                mean[k] += out[rows[at]] * d[rows[at]]
        below(E, Z, n_levels, level, margin, first)
        centre = 0.0  # the mean of d under the softmax of the levels below
        for k in range(n_levels):
            A[k] = 0.0
            pull[k] = 0.0
            if Z[k] == -math.inf:
                continue
            centre = mean_below(E, Z, mean, centre, k, level, margin, first)
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i = rows[at]
                if gain[i] > 0.0:
                    dominated = gain[i] * sigmoid(Z[k] - u[i])
                    A[k] += dominated
                    pull[k] += dominated * sigmoid(u[i] - Z[k]) * (d[i] - centre)
            pull[k] += A[k] * centre
        from_above(E, Z, A, D, n_levels, level, margin, first)
        from_above(E, Z, pull, D2, n_levels, level, margin, first)
        centre = 0.0
        for k in range(n_levels):
            if Z[k] > -math.inf:
                centre = mean_below(E, Z, mean, centre, k, level, margin, first)
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i = rows[at]
                out[i] *= D[k] * d[i] - D2[k]
                if Z[k] > -math.inf and gain[i] > 0.0:
                    z = Z[k] - u[i]
                    out[i] += gain[i] * sigmoid(z) * sigmoid(-z) * (d[i] - centre)


@kernel
def fold(
    cell_ptr: IntArray, level: IntArray, margin: FloatArray | None, r0: int, r1: int,
    aux: FloatArray, sums: FloatArray, left: FloatArray, right: FloatArray,
) -> None:  # fmt: skip
    """Fill the two vectors of each level, which are zero before."""
    base = cell_ptr[r0]
    n = sums.shape[2]
    for q in range(r0, r1):
        first = cell_ptr[q]
        n_levels = cell_ptr[q + 1] - first
        for k in range(1, n_levels):
            c = first + k
            Z = aux[c, 1]
            if Z == -math.inf:
                continue
            centre = right[c - base]
            if margin is None:
                new = math.exp(aux[c - 1, 0] - Z)
                previous = right[c - 1 - base]
                for j in range(n):
                    centre[j] = (1.0 - new) * previous[j] + new * sums[c - 1 - base, 0, j]
            else:
                for l in range(k):  # noqa: E741
                    delta = margin[level[c], level[first + l]]
                    share = math.exp(aux[first + l, 0] + delta - Z)
                    for j in range(n):
                        centre[j] += share * sums[first + l - base, 0, j]
            half = 0.5 * aux[c, 2]
            for j in range(n):
                left[c - base, j] = sums[c - base, 1, j] + half * centre[j]


@kernel
def dual(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, mass: FloatArray, gain: FloatArray,
    level: IntArray, margin: FloatArray | None, r0: int, r1: int, u: FloatArray, a: float,
    offset: FloatArray,
) -> float:  # fmt: skip
    value = 0.0
    if not a > 0.0:
        return value
    E, Z, mean, shift = _scratch(cell_ptr, r0, r1)
    chunk, terms, moved, kept = np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK), np.empty(CHUNK)
    log_a, rest = math.log(a), math.log1p(-a) if a < 1.0 else -math.inf
    for q in range(r0, r1):
        first = cell_ptr[q]
        n_levels = cell_ptr[q + 1] - first
        for k in range(n_levels):
            top = _highest(row_ptr, rows, mass, first + k, u)
            total = 0.0
            away = 0.0
            shifted = 0.0
            begin, end = row_ptr[first + k], row_ptr[first + k + 1]
            for at in range(begin, end, CHUNK):
                n = min(CHUNK, end - at)
                for i in range(n):
                    chunk[i] = u[rows[at + i]] - top
                exp_chunk(chunk, n)
                for i in range(n):
                    row = rows[at + i]
                    if mass[row] > 0.0:
                        e = mass[row] * chunk[i]
                        total += e
                        away += e * (u[row] - top)
                        if len(offset) > 0:
                            shifted += e * offset[row]
            E[k] = top + math.log(total) if total > 0.0 else -math.inf
            mean[k] = top + away / total if total > 0.0 else 0.0
            shift[k] = shifted / total if total > 0.0 else 0.0
        below(E, Z, n_levels, level, margin, first)
        centre = 0.0
        s = 0.0
        for k in range(1, n_levels):
            if Z[k] == -math.inf:
                continue
            if margin is None:
                new = math.exp(E[k - 1] - Z[k])
                centre += new * (mean[k - 1] - centre)
                s += new * (shift[k - 1] - s)
            else:
                centre = 0.0
                s = 0.0
                for j in range(k):
                    part = level_share(E, Z, k, j, level, margin, first)
                    centre += part * mean[j]
                    s += part * shift[j]
            begin, end = row_ptr[first + k], row_ptr[first + k + 1]
            for at in range(begin, end, CHUNK):
                n = min(CHUNK, end - at)
                for i in range(n):
                    chunk[i] = Z[k] - u[rows[at + i]]
                    moved[i] = chunk[i] + rest
                softplus_chunk(chunk, terms, n)
                softplus_chunk(moved, kept, n)
                for i in range(n):
                    row = rows[at + i]
                    if gain[row] > 0.0:
                        # the entropy of p = aπ, and p (Z - centre): log(1 - p) = kept - terms
                        p = a * chunk[i]
                        value += gain[row] * (
                            terms[i] - (1.0 - p) * kept[i] - p * (log_a + centre - u[row])
                        )
                        if len(offset) > 0:  # - a <offset, p - e_i>
                            value -= gain[row] * p * (s - offset[row])
    return value


@kernel
def _scratch(
    cell_ptr: IntArray, r0: int, r1: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:  # fmt: skip
    most = 1
    for q in range(r0, r1):
        most = max(most, cell_ptr[q + 1] - cell_ptr[q])
    return np.empty(most), np.empty(most), np.empty(most), np.empty(most)


@kernel
def _level_mass(
    row_ptr: IntArray, rows: IntArray, mass: FloatArray, c: int, u: FloatArray, raised: FloatArray,
    chunk: FloatArray,
) -> tuple[float, float]:  # fmt: skip
    """Return the log mass of a cell, fill its documents' exponentials, and return the factor that
    turns them into shares of the mass.
    """
    top = _highest(row_ptr, rows, mass, c, u)
    total = 0.0
    for at in range(row_ptr[c], row_ptr[c + 1], CHUNK):
        n = min(CHUNK, row_ptr[c + 1] - at)
        for i in range(n):
            chunk[i] = u[rows[at + i]] - top
        exp_chunk(chunk, n)
        for i in range(n):
            row = rows[at + i]
            e = mass[row] * chunk[i] if mass[row] > 0.0 else 0.0
            raised[row] = e
            total += e
    if total == 0.0:
        return -math.inf, 0.0
    return top + math.log(total), 1.0 / total


@kernel
def _highest(row_ptr: IntArray, rows: IntArray, mass: FloatArray, c: int, u: FloatArray) -> float:
    top = -math.inf
    for at in range(row_ptr[c], row_ptr[c + 1]):
        i = rows[at]
        if mass[i] > 0.0 and u[i] > top:
            top = u[i]
    return top


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
