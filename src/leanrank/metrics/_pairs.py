"""Measures that look at pairs of documents, without ever listing the pairs.

A pair is *comparable* when its labels differ. A pair with equal scores is a tie whatever the
convention: it is half wrong.
"""

from __future__ import annotations

import math

from leanrank._jit import kernel
from leanrank._typing import FloatArray, IntArray
from leanrank.metrics._order import sort_codes
from leanrank.metrics.measures import ALL_PAIRS_ERROR, JOACHIMS, KENDALL

KIND = 0  # column of the table of measures


@kernel
def auc(ranked: IntArray, starts: IntArray, n_groups: int, lowest: int) -> float:
    relevant = irrelevant = 0
    wrong = 0.0
    for g in range(n_groups):
        r = 0
        for i in range(starts[g], starts[g + 1]):
            r += ranked[i] >= lowest
        s = starts[g + 1] - starts[g] - r
        wrong += r * (irrelevant + 0.5 * s)
        relevant += r
        irrelevant += s
    if relevant == 0 or irrelevant == 0:
        return math.nan
    return 1.0 - wrong / relevant / irrelevant


@kernel
def domination_error(ranked: IntArray, n: int, starts: IntArray, n_groups: int) -> float:
    """Share of the dominating documents below some document of a lower level."""
    if n == 0:
        return math.nan
    lowest = ranked[0]
    for i in range(1, n):
        lowest = min(lowest, ranked[i])
    dominating = wrong = 0
    worst_above = ranked[0]  # nothing stands above the first group, and it is no lower than itself
    for g in range(n_groups):
        for i in range(starts[g], starts[g + 1]):
            if ranked[i] > lowest:
                dominating += 1
                wrong += g > 0 and worst_above < ranked[i]
        for i in range(starts[g], starts[g + 1]):
            worst_above = min(worst_above, ranked[i])
    return wrong / dominating if dominating > 0 else math.nan


@kernel
def count_pairs(
    ranked: IntArray,
    n: int,
    starts: IntArray,
    n_groups: int,
    spare: IntArray,
    table: IntArray,
    q: int,
    values: FloatArray,
) -> None:
    """Fill the measures that count pairs; ``ranked`` is sorted by level on return."""
    same_score = same_both = 0
    for g in range(n_groups):
        a, end = starts[g], starts[g + 1]
        if end - a > 1:
            sort_codes(ranked[a:end], end - a, spare)  # so that no tied pair stands in rising order
            same_score += (end - a) * (end - a - 1) // 2
            same_both += _equal_pairs(ranked[a:end], end - a)
    discordant = sort_codes(ranked, n, spare)
    every = n * (n - 1) // 2
    comparable = every - _equal_pairs(ranked, n)
    tied = same_score - same_both
    concordant = comparable - tied - discordant
    for m in range(len(table)):
        kind = table[m, KIND]
        value = math.nan
        if kind == ALL_PAIRS_ERROR:
            if comparable > 0:
                value = (discordant + 0.5 * tied) / comparable
        elif kind == JOACHIMS:
            if comparable > 0:
                value = (concordant - discordant) / comparable
        elif kind == KENDALL:
            if comparable > 0 and every > same_score:
                value = (concordant - discordant) / math.sqrt(comparable)
                value /= math.sqrt(every - same_score)
        else:
            continue
        values[m, q] = value


@kernel
def _equal_pairs(codes: IntArray, n: int) -> int:
    """Count the pairs of equal codes among sorted ones."""
    pairs = run = 0
    for i in range(1, n):
        run = run + 1 if codes[i] == codes[i - 1] else 0
        pairs += run
    return pairs
