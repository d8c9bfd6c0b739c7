"""Kernels of the domination loss over a range of queries.

Shared arguments: query q owns cells ``cell_ptr[q]:cell_ptr[q+1]`` in ascending level, cell c holds
``rows[row_ptr[c]:row_ptr[c+1]]``. In each query E_l is the log mass of level l, Z_k the log mass of
all levels below k, A_k the sum of the weighted probabilities of being dominated in level k, and D_l
the total gradient of level l from the levels above. S_l is one over the sum of the exponentials of
level l. Exponentials are computed for all documents of a query at once, see ``_smooth``, because a
level may have a single document.
"""

from __future__ import annotations

import math

import numpy as np

from leanrank._jit import kernel
from leanrank._smooth import exp_chunk, softplus_chunk
from leanrank._typing import FloatArray, IntArray

VALUE, CURVATURE, DUAL = 0, 1, 2
"""The results of ``sums``. One kernel for all three takes half the time to compile."""

LINEAR = 600.0
"""Range of log masses up to which they are added as exponentials."""


@kernel
def sums(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, mass: FloatArray, gain: FloatArray,
    r0: int, r1: int, u: FloatArray, want: int, out: FloatArray, atoms: FloatArray, aux: FloatArray,
    a: float, offset: FloatArray,
) -> float:  # fmt: skip
    """Return the value and fill the gradient ``out``; or fill the diagonal ``out``, atoms and aux;
    or return the dual value at a.
    """
    value = 0.0
    levels, e, z, terms = _scratch(cell_ptr, row_ptr, r0, r1)
    E, S, Z, share, rest, A, D = levels
    kept = np.empty(len(e) if want == DUAL else 0)
    log_a, moved = math.log(a), math.log1p(-a) if a < 1.0 else -math.inf
    for q in range(r0, r1):
        first, n_levels = cell_ptr[q], cell_ptr[q + 1] - cell_ptr[q]
        if n_levels == 0:
            continue
        begin, second = row_ptr[first], row_ptr[first + 1]  # the lowest level dominates none
        n = row_ptr[first + n_levels] - second
        _masses(row_ptr, rows, mass, first, n_levels, u, levels, e, terms)
        for k in range(1, n_levels):
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                z[at - second] = Z[k] - u[rows[at]]
        if want == DUAL:
            for i in range(n):
                kept[i] = z[i] + moved
            softplus_chunk(kept, terms, n)
            for i in range(n):
                kept[i] = terms[i]
        softplus_chunk(z, terms, n)
        if want == DUAL:
            centre, shift, mean, shifted = 0.0, 0.0, D, A  # of the levels below, of each level
            for k in range(n_levels):
                if Z[k] > -math.inf:
                    centre += share[k] * (mean[k - 1] - centre)
                    shift += share[k] * (shifted[k - 1] - shift)
                mean[k] = shifted[k] = 0.0
                if S[k] > 0.0:
                    low, high = row_ptr[first + k], row_ptr[first + k + 1]
                    above = 0.0
                    for at in range(low, high):
                        above += e[at - begin] * (u[rows[at]] - E[k])
                    mean[k] = E[k] + S[k] * above
                    for at in range(low, high if len(offset) > 0 else low):
                        shifted[k] += S[k] * e[at - begin] * offset[rows[at]]
                if Z[k] == -math.inf:
                    continue
                for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                    i, row = at - second, rows[at]
                    if gain[row] > 0.0:
                        # the entropy of p = aπ, and p (Z - centre): log(1 - p) = kept - terms
                        p = a * z[i]
                        value += gain[row] * (
                            terms[i] - (1.0 - p) * kept[i] - p * (log_a + centre - u[row])
                        )
                        if len(offset) > 0:  # - a <offset, p - e_i>
                            value -= gain[row] * p * (shift - offset[row])
            continue
        A[0] = 0.0
        if want == CURVATURE:
            aux[first, 0], aux[first, 1], aux[first, 2] = E[0], Z[0], 0.0
        for k in range(1, n_levels):
            A[k] = 0.0
            squares = 0.0
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i, weight = at - second, gain[rows[at]]
                dominated = z[i] if weight > 0.0 else 0.0
                if weight > 0.0:
                    value += weight * terms[i]
                A[k] += weight * dominated
                squares += weight * dominated * dominated
                terms[i] = weight * dominated * (1.0 - dominated)
                z[i] = weight * dominated
            if want == CURVATURE:
                aux[first + k, 0], aux[first + k, 1], aux[first + k, 2] = E[k], Z[k], squares
        from_above(share, rest, A, D, n_levels)
        for k in range(n_levels):
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i, row = at - second, rows[at]
                part = S[k] * e[at - begin] if k < n_levels - 1 else 0.0
                if want == VALUE:
                    out[row] = D[k] * part - (z[i] if k > 0 else 0.0)
                else:
                    bend = terms[i] if k > 0 else 0.0
                    atoms[row, 0], atoms[row, 1] = part, bend
                    out[row] = bend + D[k] * part
    return value


@kernel
def evaluate(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, mass: FloatArray, gain: FloatArray,
    r0: int, r1: int, u: FloatArray, g: FloatArray,
) -> float:  # fmt: skip
    """Return the value and fill the gradient, for loops inside kernels."""
    none = np.empty((0, 3))
    return sums(cell_ptr, row_ptr, rows, mass, gain, r0, r1, u, VALUE, g, none, none, 1.0, u)


@kernel
def product(
    cell_ptr: IntArray, row_ptr: IntArray, rows: IntArray, mass: FloatArray, gain: FloatArray,
    r0: int, r1: int, u: FloatArray, d: FloatArray, out: FloatArray,
) -> None:  # fmt: skip
    """Fill the product of the score Hessian with a vector d."""
    levels, e, z, terms = _scratch(cell_ptr, row_ptr, r0, r1)
    E, S, Z, share, rest, A, D = levels
    mean, pull, D2 = np.empty(len(E)), np.empty(len(E)), np.empty(len(E))
    for q in range(r0, r1):
        first, n_levels = cell_ptr[q], cell_ptr[q + 1] - cell_ptr[q]
        if n_levels == 0:
            continue
        begin, n = row_ptr[first], row_ptr[first + n_levels] - row_ptr[first]
        _masses(row_ptr, rows, mass, first, n_levels, u, levels, e, terms)
        for k in range(n_levels):
            mean[k] = 0.0
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                e[at - begin] = S[k] * e[at - begin] if S[k] > 0.0 else 0.0
                mean[k] += e[at - begin] * d[rows[at]]
                z[at - begin] = Z[k] - u[rows[at]]
        softplus_chunk(z, terms, n)
        before = 0.0  # the mean of d under the softmax of the levels below
        for k in range(n_levels):
            A[k] = pull[k] = 0.0
            if Z[k] > -math.inf:
                before += share[k] * (mean[k - 1] - before)
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i, weight = at - begin, gain[rows[at]]
                dominated = weight * z[i] if weight > 0.0 else 0.0
                A[k] += dominated
                z[i] = dominated * (1.0 - z[i]) * (d[rows[at]] - before) if weight > 0.0 else 0.0
                pull[k] += z[i]
            pull[k] += A[k] * before
        from_above(share, rest, A, D, n_levels)
        from_above(share, rest, pull, D2, n_levels)
        for k in range(n_levels):
            for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
                i, row = at - begin, rows[at]
                out[row] = e[i] * (D[k] * d[row] - D2[k]) + z[i]


@kernel
def fold(
    cell_ptr: IntArray, r0: int, r1: int, aux: FloatArray, sums: FloatArray, left: FloatArray,
    right: FloatArray,
) -> None:  # fmt: skip
    """Fill the two vectors of each level; they must be zero before."""
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
            new = math.exp(aux[c - 1, 0] - Z)
            previous = right[c - 1 - base]
            for j in range(n):
                centre[j] = (1.0 - new) * previous[j] + new * sums[c - 1 - base, 0, j]
            half = 0.5 * aux[c, 2]
            for j in range(n):
                left[c - base, j] = sums[c - base, 1, j] + half * centre[j]


@kernel
def _scratch(
    cell_ptr: IntArray, row_ptr: IntArray, r0: int, r1: int,
) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:  # fmt: skip
    """Return arrays of seven numbers per level and three per document, for any of some queries."""
    levels, longest = 1, 1
    for q in range(r0, r1):
        levels = max(levels, cell_ptr[q + 1] - cell_ptr[q])
        longest = max(longest, row_ptr[cell_ptr[q + 1]] - row_ptr[cell_ptr[q]])
    return np.empty((7, levels)), np.empty(longest), np.empty(longest), np.empty(longest)


@kernel
def _masses(
    row_ptr: IntArray, rows: IntArray, mass: FloatArray, first: int, n_levels: int, u: FloatArray,
    levels: FloatArray, e: FloatArray, spare: FloatArray,
) -> None:  # fmt: skip
    """Fill the exponentials e of documents, and E, S and Z of levels; the highest has no E and S.

    ``share`` gets the share of level k − 1 in the mass below level k, ``rest`` one minus it.
    """
    E, S, Z, share, rest = levels[0], levels[1], levels[2], levels[3], levels[4]
    begin = row_ptr[first]
    E[n_levels - 1], S[n_levels - 1] = -math.inf, 0.0
    for k in range(n_levels - 1):
        top = -math.inf
        for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
            if mass[rows[at]] > 0.0 and u[rows[at]] > top:
                top = u[rows[at]]
        for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
            e[at - begin] = u[rows[at]] - top if mass[rows[at]] > 0.0 else -math.inf
        E[k] = top
    exp_chunk(e, row_ptr[first + n_levels - 1] - begin)
    high, low = -math.inf, math.inf
    for k in range(n_levels - 1):
        total = 0.0
        for at in range(row_ptr[first + k], row_ptr[first + k + 1]):
            e[at - begin] *= mass[rows[at]]
            total += e[at - begin]
        S[k] = 1.0 / total if total > 0.0 else 0.0
        E[k] = E[k] + math.log(total) if total > 0.0 else -math.inf
        if E[k] > -math.inf:
            high, low = max(high, E[k]), min(low, E[k])
    Z[0], share[0], rest[0] = -math.inf, 0.0, 0.0
    if high - low <= LINEAR:
        for k in range(n_levels):
            spare[k] = E[k] - high
        exp_chunk(spare, n_levels)
        total = 0.0
        for k in range(1, n_levels):
            before, total = total, total + spare[k - 1]
            Z[k] = high + math.log(total) if total > 0.0 else -math.inf
            share[k] = spare[k - 1] / total if total > 0.0 else 0.0
            rest[k] = before / total if total > 0.0 else 0.0
    else:
        for k in range(1, n_levels):
            Z[k] = log_add(Z[k - 1], E[k - 1])
            share[k] = math.exp(E[k - 1] - Z[k]) if Z[k] > -math.inf else 0.0
            rest[k] = math.exp(Z[k - 1] - Z[k]) if Z[k] > -math.inf else 0.0


@kernel
def from_above(
    share: FloatArray, rest: FloatArray, A: FloatArray, D: FloatArray, n_levels: int,
) -> None:  # fmt: skip
    """Fill D_l = Σ_{k>l} A_k × (share of level l in the mass below k)."""
    D[n_levels - 1] = 0.0
    carried = 0.0  # relative to the mass below level l + 1, so that no factor exceeds 1
    for j in range(n_levels - 2, -1, -1):
        carried = A[j + 1] + (carried * rest[j + 2] if j < n_levels - 2 else 0.0)
        D[j] = carried * share[j + 1]


@kernel
def log_add(x: float, y: float) -> float:
    if x < y:
        x, y = y, x
    if y == -math.inf:
        return x
    return x + math.log1p(math.exp(y - x))
