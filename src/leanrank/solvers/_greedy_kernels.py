"""Compiled parts of Greedy RankRLS, for one feature at a time.

Write x for a candidate, S for the features chosen so far. Everything needed is two residuals of x:

c   what regression on S over all queries leaves of x            (C = alpha·G X̂ᵀ in the paper)
u   for each query, what regression on S over the others leaves  (U in the paper)

With a the residual of the labels, p its leave-query-out twin, and sums over a query q written with
a subscript, adding x to S gives it, when q is left out, the weight

    theta_q = (c·b − c_q·p_q) / (alpha + x·c − c_q·u_q)

and the residual p_q − theta_q u_q. These are lines 14, 15, 24 and 25 of Algorithm 1 with γ and d worked
out: numerator and denominator are sums over the other queries, so nothing cancels that a training
without q would have kept. A feature that lives in query q only is the exception (both are then rounding
errors): its theta_q is 0.
"""

# mypy: disable-error-code="no-untyped-def, no-untyped-call"

from __future__ import annotations

import numba
import numpy as np

from leanrank._jit import kernel

# Lets the compiler split sums over vector lanes. A feature's numbers come from one call on its own
# arrays, so they are the same on any number of threads.
_sums = numba.njit(cache=True, nogil=True, error_model="numpy", fastmath={"reassoc", "contract"})


@kernel
def step_and_measure(
    C, U, features, wanted, query_ptr, p, b, alpha, energy, only, step_x, step_c, step_u,
    total, rest, decrease,
):  # fmt: skip
    """Bring features up to date with the last chosen one, and measure those wanted.

    ``total`` is alpha + x·c of the chosen feature (0: none was chosen yet), ``rest`` the same
    without each query (inf: the chosen feature lives in that query only).
    """
    n_queries = len(query_ptr) - 1
    sums = np.empty((n_queries, 4))
    for k in range(len(features)):
        i = features[k]
        c, u = C[i], U[i]
        if total > 0.0:
            t = _dot(step_x, c)
            energy[i] = max(0.0, energy[i] - t * (t / total))
            _subtract(c, step_c, t / total)
            for q in range(n_queries):
                begin, end = query_ptr[q], query_ptr[q + 1]
                if q != only[i]:
                    tau = (t - _dot(step_c[begin:end], u[begin:end])) / rest[q]
                    if tau != 0.0:
                        _subtract(u[begin:end], step_u[begin:end], tau)
        if wanted[k]:
            decrease[k] = _measure(c, u, query_ptr, p, b, alpha, energy[i], only[i], sums)


@kernel
def replay_and_measure(
    columns, query_ptr, p, b, alpha, energy, only, steps_c, steps_u, totals, rests, n_steps,
    decrease,
):  # fmt: skip
    """Measure features given as plain columns, repeating every step for them; columns are spent."""
    n_queries = len(query_ptr) - 1
    sums = np.empty((n_queries, 4))
    u = np.empty(columns.shape[1])
    for k in range(len(columns)):
        c = columns[k]
        left = replay(c, u, query_ptr, only[k], energy[k], steps_c, steps_u, totals, rests, n_steps)
        decrease[k] = _measure(c, u, query_ptr, p, b, alpha, left, only[k], sums)


@kernel
def replay(c, u, query_ptr, only, energy, steps_c, steps_u, totals, rests, n_steps):
    """Turn a column into its residual c, fill u, and return x·c; all steps of a query at once."""
    t = np.empty(n_steps)
    for j in range(n_steps):
        t[j] = _dot(steps_c[j], c)  # c is still the column itself
        energy = max(0.0, energy - t[j] * (t[j] / totals[j]))
    for q in range(len(query_ptr) - 1):
        begin, end = query_ptr[q], query_ptr[q + 1]
        for i in range(begin, end):
            u[i] = c[i]
        for j in range(n_steps):
            if q != only:
                tau = (t[j] - _dot(steps_c[j, begin:end], u[begin:end])) / rests[j, q]
                if tau != 0.0:
                    _subtract(u[begin:end], steps_u[j, begin:end], tau)
            _subtract(c[begin:end], steps_c[j, begin:end], t[j] / totals[j])
    return energy


@kernel
def frozen_and_measure(
    data, indices, indptr, features, query_ptr, root, p, a, alpha, energy, only, steps_c, totals,
    held, n_steps, decrease,
):  # fmt: skip
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
            begin, end = query_ptr[q], query_ptr[q + 1]
            mass = 0.0
            for row in range(begin, end):
                mass += root[row] * root[row]
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
            if mass > 0.0:
                squares = max(0.0, squares - weighted * weighted / mass)
            if q != only[i] and squares > 0.0:
                top = z - product
                for j in range(n_steps):
                    top += share[j] * held[j, q]
                theta = top / (alpha + max(0.0, energy[i] - squares))
                gain += theta * (2.0 * product - theta * squares)
        decrease[k] = gain


@kernel
def sparse_energy(data, indices, indptr, query_ptr, root, features, energy, only):
    """Compute ‖x‖² of centred sparse features, and the only query that each lives in (or −1)."""
    for k in range(len(features)):
        i = features[k]
        at, last = indptr[i], indptr[i + 1]
        total = 0.0
        lives = -1
        q = 0
        while at < last:
            q = _query_at(query_ptr, indices[at], q)
            begin, end = query_ptr[q], query_ptr[q + 1]
            mass = 0.0
            mean = 0.0
            for row in range(begin, end):
                mass += root[row] * root[row]
            start = at
            zero_mass = mass
            while at < last and indices[at] < end:
                row = indices[at]
                zero_mass -= root[row] * root[row]
                at += 1
            # where no zero is left out, less the first value: a constant must come out as 0
            full = at - start == end - begin
            anchor = np.float64(data[start]) if full else 0.0
            for here in range(start, at):
                mean += (data[here] - anchor) * root[indices[here]] * root[indices[here]]
            if mass > 0.0:
                mean /= mass
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


@kernel
def dense_energy(columns, query_ptr, energy, only):
    """Compute ‖x‖² of centred columns, and the only query that each lives in (or −1)."""
    for k in range(len(columns)):
        lives = -1
        total = 0.0
        for q in range(len(query_ptr) - 1):
            part = columns[k, query_ptr[q] : query_ptr[q + 1]]
            squares = _dot(part, part)
            if squares > 0.0:
                lives = q if lives == -1 else -2
            total += squares
        energy[k] = total
        only[k] = lives if lives >= 0 else -1


@kernel
def query_sums(left, right, query_ptr):
    """Sum the products of two vectors over each query."""
    out = np.empty(len(query_ptr) - 1)
    for q in range(len(out)):
        begin, end = query_ptr[q], query_ptr[q + 1]
        out[q] = _dot(left[begin:end], right[begin:end])
    return out


@kernel
def _measure(c, u, query_ptr, p, b, alpha, energy, only, sums):
    """Compute by how much the leave-query-out error falls if the feature is added."""
    n_queries = len(query_ptr) - 1
    for q in range(n_queries):
        begin, end = query_ptr[q], query_ptr[q + 1]
        sums[q] = _four_sums(c[begin:end], u[begin:end], p[begin:end])
    z = _dot(c, b)
    gain = 0.0
    for q in range(n_queries):
        if q != only:
            theta = (z - sums[q, 0]) / (alpha + max(0.0, energy - sums[q, 1]))
            # the decrease itself, not a difference of two nearly equal errors
            gain += theta * (2.0 * sums[q, 2] - theta * sums[q, 3])
    return gain


@_sums
def _four_sums(c, u, p):
    cp, cu, pu, uu = 0.0, 0.0, 0.0, 0.0
    for i in range(len(c)):
        ci, ui = np.float64(c[i]), np.float64(u[i])
        cp += ci * p[i]
        cu += ci * ui
        pu += p[i] * ui
        uu += ui * ui
    return cp, cu, pu, uu


@_sums
def _dot(left, right):
    total = 0.0
    for i in range(len(left)):
        total += np.float64(left[i]) * np.float64(right[i])
    return total


@kernel
def _subtract(vector, direction, factor):
    for i in range(len(vector)):
        vector[i] -= factor * direction[i]


@kernel
def _query_at(query_ptr, row, q):
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
