"""Compiled parts of Greedy RankRLS.

Write x for a candidate, S for the features chosen so far. Everything needed is two residuals of x:

c   of the regression of x on S over all queries                  (C = alpha·G X̂ᵀ in the paper)
u   for each query, of the regression over the other queries      (U in the paper)

With a the residual of the labels, p its leave-query-out twin, and sums over a query q written with
a subscript, x added to S has, when q is left out, the weight

    theta_q = (c·b − c_q·p_q) / (alpha + x·c − c_q·u_q)

and the residual p_q − theta_q u_q. These are lines 14, 15, 24 and 25 of Algorithm 1 with γ and d
worked out: numerator and denominator are sums over the other queries, so no more digits cancel than
in training without q. A feature that varies in query q only is the exception (both are then
rounding errors): its theta_q is 0.

Features are adjacent in a row, so that loops vectorise; the sums over a query's rows are kept for
WIDTH features at a time in one small buffer (one, because the compiler must prove that arrays do
not overlap, and fails with many).
"""

from __future__ import annotations

from functools import partial

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import AnyArray, FloatArray, IntArray

# Lets the compiler split a sum over vector lanes; the split is the same in every thread.
_sums = partial(kernel, fastmath={"reassoc", "contract"})

WIDTH = 256  # measured by ``benchmarks greedy``
# regions of the buffer, WIDTH numbers each
_TAU, _CP, _CU, _PU, _UU, _KAPPA, _Z, _ENERGY, _GAIN, _NEXT_Z = (WIDTH * at for at in range(10))


@kernel
def step_and_measure(
    C: FloatArray, U: FloatArray, query_ptr: IntArray, r0: int, r1: int, p: FloatArray,
    b: FloatArray, alpha: float, step_c: FloatArray, step_u: FloatArray, inverse_rest: FloatArray,
    t: FloatArray, kappa: FloatArray, z: FloatArray, energy: FloatArray, only: IntArray,
    out: FloatArray,
) -> None:  # fmt: skip
    """Bring the rows of queries [r0, r1) up to date with the last chosen feature, and measure.

    ``t`` is x·c of the chosen and each other feature, ``kappa`` that over alpha + x·c of the chosen
    one, ``inverse_rest`` the inverse of the latter without each query (0: it varies in that query
    only); zeros are no step. ``z`` (c·b) and ``energy`` (x·c) are of each feature after the step,
    ``only`` is the only query in which it varies.
    ``out`` gets the sums over these queries of the decrease and of c·b, which is more exact than
    the z carried along.
    """
    n = C.shape[1]
    work = np.zeros(10 * WIDTH)
    for f0 in range(0, n, WIDTH):
        w = min(WIDTH, n - f0)
        for k in range(w):
            work[_KAPPA + k] = kappa[f0 + k]
            work[_Z + k] = z[f0 + k]
            work[_ENERGY + k] = energy[f0 + k]
            work[_GAIN + k] = 0.0
            work[_NEXT_Z + k] = 0.0
        for q in range(r0, r1):
            begin, end = query_ptr[q], query_ptr[q + 1]
            _left_out_weights(U, begin, end, f0, w, step_c, t, inverse_rest[q], q, only, work)
            _step_and_sum(C, U, begin, end, f0, w, step_c, step_u, p, b, work)
            _add_gain(f0, w, alpha, q, only, work)
        for k in range(w):
            out[0, f0 + k] += work[_GAIN + k]
            out[1, f0 + k] += work[_NEXT_Z + k]


@kernel
def replay_and_measure(
    C: FloatArray, U: FloatArray, query_ptr: IntArray, p: FloatArray, b: FloatArray, alpha: float,
    steps_c: FloatArray, steps_u: FloatArray, inverse_rests: FloatArray, t: FloatArray,
    z: FloatArray, energy: FloatArray, only: IntArray, n_steps: int, gain: FloatArray,
) -> None:  # fmt: skip
    """Measure features given by their residuals C and their plain columns U, which are changed."""
    w = C.shape[1]
    work = np.zeros(10 * WIDTH)
    for k in range(w):
        work[_Z + k] = z[k]
        work[_ENERGY + k] = energy[k]
    for q in range(len(query_ptr) - 1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        for j in range(n_steps):
            inverse_rest = inverse_rests[j, q]
            _left_out_weights(U, begin, end, 0, w, steps_c[j], t[j], inverse_rest, q, only, work)
            _step_left_out(U, begin, end, w, steps_u[j], work)
        for k in range(w):  # C and U are there: a step of zero
            work[_TAU + k] = 0.0
        _step_and_sum(C, U, begin, end, 0, w, p, p, p, b, work)
        _add_gain(0, w, alpha, q, only, work)
    for k in range(w):
        gain[k] = work[_GAIN + k]


@kernel
def frozen_and_measure(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, features: IntArray, query_ptr: IntArray,
    mass: FloatArray, root: FloatArray, p: FloatArray, a: FloatArray, alpha: float,
    energy: FloatArray, only: IntArray, steps_c: FloatArray, totals: FloatArray, held: FloatArray,
    n_steps: int, decrease: FloatArray,
) -> None:  # fmt: skip
    """Measure sparse features with the other weights frozen, from their own non-zeros.

    ``held`` is c_q·p_q of each step and query. Sums need no centring where the other factor is
    centred, which all but x itself are.
    """
    share = np.empty(n_steps)
    for k in range(len(features)):
        i = features[k]
        decrease[k] = 0.0
        if energy[i] == 0.0:
            continue
        first, last = indptr[i], indptr[i + 1]
        z = 0.0
        for at in range(first, last):
            row = indices[at]
            z += data[at] * root[row] * a[row]
        for j in range(n_steps):
            t = 0.0
            for at in range(first, last):
                row = indices[at]
                t += data[at] * root[row] * steps_c[j, row]
            share[j] = t / totals[j]
        gain = 0.0
        at = first
        q = 0
        while at < last:
            q = _query_at(query_ptr, indices[at], q)
            end = query_ptr[q + 1]
            weighted = 0.0
            squares = 0.0
            product = 0.0
            while at < last and indices[at] < end:
                row = indices[at]
                scaled = data[at] * root[row]
                weighted += scaled * root[row]
                squares += scaled * scaled
                product += scaled * p[row]
                at += 1
            if mass[q] > 0.0:
                squares = max(0.0, squares - weighted * weighted / mass[q])
            if q != only[i] and squares > 0.0:
                top = z - product
                for j in range(n_steps):
                    top += share[j] * held[j, q]
                theta = top / (alpha + max(0.0, energy[i] - squares))
                gain += theta * (2.0 * product - theta * squares)
        decrease[k] = gain


@kernel
def sparse_energy(
    data: AnyArray, indices: AnyArray, indptr: AnyArray, query_ptr: IntArray, mass: FloatArray,
    root: FloatArray, features: IntArray, energy: FloatArray, only: IntArray,
) -> None:  # fmt: skip
    """Compute ‖x‖² of centred sparse features, and the only query in which each varies (or −1)."""
    for k in range(len(features)):
        i = features[k]
        at, last = indptr[i], indptr[i + 1]
        total = 0.0
        lives = -1
        q = 0
        while at < last:
            q = _query_at(query_ptr, indices[at], q)
            begin, end = query_ptr[q], query_ptr[q + 1]
            mean = 0.0
            start = at
            zero_mass = mass[q]
            while at < last and indices[at] < end:
                row = indices[at]
                zero_mass -= root[row] * root[row]
                at += 1
            # without implicit zeros, subtract the first value: a constant gives exactly 0
            full = at - start == end - begin
            anchor = np.float64(data[start]) if full else 0.0
            for here in range(start, at):
                mean += (data[here] - anchor) * root[indices[here]] * root[indices[here]]
            if mass[q] > 0.0:
                mean /= mass[q]
            squares = 0.0
            for here in range(start, at):
                away = root[indices[here]] * ((data[here] - anchor) - mean)
                squares += away * away
            if not full:
                squares += max(0.0, zero_mass) * mean * mean
            if squares > 0.0:
                lives = q if lives == -1 else -2
            total += squares
        energy[k] = total
        only[k] = lives if lives >= 0 else -1


@_sums
def query_sums(left: FloatArray, right: FloatArray, query_ptr: IntArray) -> FloatArray:
    """Sum the products of two vectors over each query."""
    out = np.empty(len(query_ptr) - 1)
    for q in range(len(out)):
        total = 0.0
        for i in range(query_ptr[q], query_ptr[q + 1]):
            total += left[i] * right[i]
        out[q] = total
    return out


@kernel
def _left_out_weights(
    U: FloatArray, begin: int, end: int, f0: int, w: int, step_c: FloatArray, t: FloatArray,
    inverse_rest: float, q: int, only: IntArray, work: FloatArray,
) -> None:  # fmt: skip
    """Compute the weight that the chosen feature gets in each other one, without query q."""
    for k in range(w):
        work[_TAU + k] = 0.0
    for i in range(begin, end):
        factor = step_c[i]
        row = U[i, f0 : f0 + w]
        for k in range(w):
            work[_TAU + k] += factor * row[k]
    for k in range(w):
        tau = (t[f0 + k] - work[_TAU + k]) * inverse_rest
        work[_TAU + k] = 0.0 if only[f0 + k] == q else tau


@kernel
def _step_left_out(
    U: FloatArray, begin: int, end: int, w: int, step_u: FloatArray, work: FloatArray
) -> None:
    for i in range(begin, end):
        u = U[i, :w]
        factor = step_u[i]
        for k in range(w):
            u[k] -= work[_TAU + k] * factor


@kernel
def _step_and_sum(
    C: FloatArray, U: FloatArray, begin: int, end: int, f0: int, w: int, step_c: FloatArray,
    step_u: FloatArray, p: FloatArray, b: FloatArray, work: FloatArray,
) -> None:  # fmt: skip
    for k in range(w):
        work[_CP + k] = work[_CU + k] = work[_PU + k] = work[_UU + k] = 0.0
    for i in range(begin, end):
        c, u = C[i, f0 : f0 + w], U[i, f0 : f0 + w]
        sc, su, pi, bi = step_c[i], step_u[i], p[i], b[i]
        for k in range(w):
            ck = np.float64(c[k]) - work[_KAPPA + k] * sc
            uk = np.float64(u[k]) - work[_TAU + k] * su
            c[k] = ck
            u[k] = uk
            work[_CP + k] += ck * pi
            work[_CU + k] += ck * uk
            work[_PU + k] += uk * pi
            work[_UU + k] += uk * uk
            work[_NEXT_Z + k] += ck * bi


@kernel
def _add_gain(f0: int, w: int, alpha: float, q: int, only: IntArray, work: FloatArray) -> None:
    for k in range(w):
        rest = alpha + max(0.0, work[_ENERGY + k] - work[_CU + k])
        theta = 0.0 if only[f0 + k] == q else (work[_Z + k] - work[_CP + k]) / rest
        # the decrease itself, not a difference of two nearly equal errors
        work[_GAIN + k] += theta * (2.0 * work[_PU + k] - theta * work[_UU + k])


@kernel
def _query_at(query_ptr: IntArray, row: int, q: int) -> int:
    """Find the query of a row, from query q on."""
    if query_ptr[q + 1] > row:
        return q
    low, high = q + 1, len(query_ptr) - 2
    while low < high:
        middle = (low + high) // 2
        if query_ptr[middle + 1] > row:
            high = middle
        else:
            low = middle + 1
    return low
