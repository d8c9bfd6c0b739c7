"""One sweep down the scores of a query, with running sums by level.

On the way down, the set of losers that violate a winner only grows, and so does every
h = margin − (u_i − u_j). The sums of 1, h and h² over them are updated by adding positive numbers,
so nothing cancels, however large the scores are. There is one sum per level: in a Fenwick tree,
with which a document takes time logarithmic in the number of levels, or, if pairs of levels have
different weights, in an array. The sums of the losers come from the same sweep in reverse;
``reverse`` selects the order of the table of weights.
"""

from __future__ import annotations

import numpy as np

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray

MANY_LEVELS = 8_192
"""Number of levels above which the sweep has two tiers, each of which fits a cache."""


LEVEL_GROUPS = 256
"""Groups of the upper tier; with more, memory accesses would be scattered over too many pages."""


@kernel
def sweep_levels(
    x: FloatArray, level: IntArray, adds: FloatArray, reads: FloatArray, n: int, n_levels: int,
    weights: FloatArray, reverse: bool, margin: float, power: int, nodes: FloatArray,
    sums: FloatArray,
) -> float:  # fmt: skip
    """Sweep any number of levels: with many, first between groups of levels, then within each."""
    if n_levels <= MANY_LEVELS or len(weights) > 0:
        return sweep(
            x, level, adds, reads, n, n_levels, weights, reverse, margin, power, nodes, sums
        )
    group, starts, position, part_level = _level_groups(level, n, n_levels)
    n_groups = len(starts) - 1
    total = sweep(x, group, adds, reads, n, n_groups, weights, reverse, margin, power, nodes, sums)
    part_x, part_adds, part_reads, part_sums = np.empty(n), np.empty(n), np.empty(n), np.empty(n)
    for at in range(n):
        to = position[at]
        part_x[to], part_adds[to], part_reads[to] = x[at], adds[at], reads[at]
    for g in range(n_groups):
        low, high = starts[g], starts[g + 1]
        levels = _lowest(g + 1, n_levels, n_groups) - _lowest(g, n_levels, n_groups)
        total += sweep(
            part_x[low:high],
            part_level[low:high],
            part_adds[low:high],
            part_reads[low:high],
            high - low,
            levels,
            weights,
            reverse,
            margin,
            power,
            nodes,
            part_sums[low:high],
        )
    for at in range(n):
        sums[at] += part_sums[position[at]]
    return total


@kernel
def _level_groups(
    level: IntArray, n: int, n_levels: int,
) -> tuple[IntArray, IntArray, IntArray, IntArray]:  # fmt: skip
    """Divide many levels into groups, and sort documents by group; scores stay sorted in a group.

    Return the group of each document, the start of each group, the position of each document, and
    by position the document's level minus the lowest level of its group.
    """
    n_groups = min(LEVEL_GROUPS, n_levels)
    group = np.empty(n, np.int64)
    starts = np.zeros(n_groups + 1, np.int64)
    for at in range(n):
        group[at] = level[at] * n_groups // n_levels
        starts[group[at] + 1] += 1
    for g in range(n_groups):
        starts[g + 1] += starts[g]
    position, within, fill = np.empty(n, np.int64), np.empty(n, np.int64), starts.copy()
    for at in range(n):
        g = group[at]
        to = fill[g]
        fill[g] += 1
        position[at] = to
        within[to] = level[at] - _lowest(g, n_levels, n_groups)
    return group, starts, position, within


@kernel
def _lowest(g: int, n_levels: int, n_groups: int) -> int:
    """Return the lowest level of a group."""
    return -(-g * n_levels // n_groups)


@kernel
def sweep(
    x: FloatArray, level: IntArray, adds: FloatArray, reads: FloatArray, n: int, n_levels: int,
    weights: FloatArray, reverse: bool, margin: float, power: int, nodes: FloatArray,
    sums: FloatArray,
) -> float:  # fmt: skip
    """Fill ``sums`` with read·Σ add·h^(power−1), and return the total of read·add·h^power.

    For each document, Σ is over the documents of lower levels that it leads by less than the
    margin. Scores x descend. A node holds the sums of 1, h and h², and the score x for which they
    are valid.
    """
    nodes[:n_levels] = 0.0
    total = 0.0
    ahead = 0
    for at in range(n):
        here = x[at]
        while ahead < n:
            h = margin - (here - x[ahead])
            if not h > 0.0:
                break
            k = level[ahead]
            if adds[ahead] != 0.0 and k < n_levels - 1:
                if len(weights) > 0:
                    _add(nodes[k], here, adds[ahead], h)
                else:
                    k += 1
                    while k < n_levels:
                        _add(nodes[k], here, adds[ahead], h)
                        k += k & -k
            ahead += 1
        sums[at] = 0.0
        if reads[at] != 0.0 and level[at] > 0:
            s0, s1, s2 = 0.0, 0.0, 0.0
            k = level[at]
            if len(weights) > 0:
                for j in range(k):
                    c = _weight(weights, n_levels, k, j, reverse)
                    a0, a1, a2 = _moved(nodes[j], here)
                    s0 += c * a0
                    s1 += c * a1
                    s2 += c * a2
            else:
                while k > 0:
                    a0, a1, a2 = _moved(nodes[k], here)
                    s0 += a0
                    s1 += a1
                    s2 += a2
                    k -= k & -k
            sums[at] = reads[at] * (s1 if power == 2 else s0)
            total += reads[at] * (s2 if power == 2 else s1)
    return total


@kernel
def _moved(node: FloatArray, here: float) -> tuple[float, float, float]:
    """Return the sums of 1, h and h² at the score ``here``."""
    down = node[3] - here
    return node[0], node[1] + down * node[0], node[2] + down * (2.0 * node[1] + down * node[0])


@kernel
def _add(node: FloatArray, here: float, weight: float, h: float) -> None:
    s0, s1, s2 = _moved(node, here)
    if s0 == 0.0:
        s1 = s2 = 0.0
    node[0] = s0 + weight
    node[1] = s1 + weight * h
    node[2] = s2 + weight * h * h
    node[3] = here


@kernel
def _weight(weights: FloatArray, n_levels: int, k: int, j: int, reverse: bool) -> float:
    """Return the weight of a pair of levels; k is the level of the reading document."""
    if reverse:
        return weights[(n_levels - 1 - j) * n_levels + n_levels - 1 - k]
    return weights[k * n_levels + j]


@kernel
def sweep_columns(
    x: FloatArray, level: IntArray, adds: FloatArray, reads: FloatArray, n: int, n_levels: int,
    weights: FloatArray, reverse: bool, margin: float, nodes: FloatArray, d: FloatArray,
    sums: FloatArray,
) -> None:  # fmt: skip
    """Add read·Σ add·(d_i − d_j) over violated pairs to ``sums``; scores x descend."""
    nodes[:n_levels] = 0.0
    width = d.shape[1]
    found = np.empty(width)
    ahead = 0
    for at in range(n):
        while ahead < n:
            if not margin - (x[at] - x[ahead]) > 0.0:
                break
            k = level[ahead]
            if adds[ahead] != 0.0 and k < n_levels - 1:
                row = d[ahead]
                if len(weights) > 0:
                    _add_columns(nodes[k], adds[ahead], row)
                else:
                    k += 1
                    while k < n_levels:
                        _add_columns(nodes[k], adds[ahead], row)
                        k += k & -k
            ahead += 1
        if reads[at] != 0.0 and level[at] > 0:
            found[:] = 0.0
            count = read_columns(nodes, level[at], n_levels, weights, reverse, found)
            for f in range(width):
                sums[at, f] += reads[at] * (count * d[at, f] - found[f])


@kernel
def read_columns(
    nodes: FloatArray, k: int, n_levels: int, weights: FloatArray, reverse: bool, found: FloatArray,
) -> float:  # fmt: skip
    """Add the columns of the levels below k to ``found``, and return their weight."""
    width = len(found)
    count = 0.0
    if len(weights) > 0:
        for j in range(k):
            c = _weight(weights, n_levels, k, j, reverse)
            count += c * nodes[j, width]
            for f in range(width):
                found[f] += c * nodes[j, f]
    else:
        while k > 0:
            count += nodes[k, width]
            for f in range(width):
                found[f] += nodes[k, f]
            k -= k & -k
    return count


@kernel
def _add_columns(node: FloatArray, weight: float, d: FloatArray) -> None:
    for f in range(len(d)):
        node[f] += weight * d[f]
    node[len(d)] += weight
