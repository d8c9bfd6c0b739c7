"""Significance tests of the difference between two rankers."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._display import html_table
from leanrank._numbers import check_number, check_whole, defined
from leanrank._typing import FloatArray, IntArray
from leanrank.data.grouping import as_floats
from leanrank.errors import InputError
from leanrank.metrics.conventions import Convention
from leanrank.metrics.evaluation import evaluate
from leanrank.metrics.judge import better_sign
from leanrank.metrics.measures import Measure, parse_measures

EXACT_UP_TO = 16
"""Largest number of differing queries for the exact randomisation test."""

PERSISTENCE = 0.9
"""Probability, in rank-biased overlap, that a reader continues to the next document."""


@dataclass(frozen=True, repr=False)
class Comparison:
    """A comparison of ranker b with ranker a on the same queries.

    Attributes
    ----------
    measure : str
    mean_a, mean_b : float
        Means over the queries on which both are defined.
    difference : float
        ``mean_b − mean_a``.
    interval : (float, float)
        Confidence interval of the difference, from Student's t.
    confidence : float
    p_randomization : float
        Two-sided p-value of Fisher's paired randomisation test.
    p_t_test : float
        Two-sided p-value of the paired t-test.
    t : float
    effect_size : float
        Cohen's d_z: mean difference over the standard deviation of the differences.
    wins, ties, losses : int
        Numbers of queries on which b is better than, equal to or worse than a.
    differences : array
        ``b − a``, one per query; NaN where either is undefined.
    n_permutations : int
        Number of sign patterns.
    exact : bool
        Whether these are all patterns.
    """

    measure: str
    mean_a: float
    mean_b: float
    difference: float
    interval: tuple[float, float]
    confidence: float
    p_randomization: float
    p_t_test: float
    t: float
    effect_size: float
    wins: int
    ties: int
    losses: int
    differences: FloatArray
    n_permutations: int
    exact: bool

    def to_dict(self) -> dict[str, Any]:
        """Return plain Python values without the differences, ready for JSON."""
        out: dict[str, Any] = defined({**vars(self), "differences": None})
        del out["differences"]
        return out

    def __repr__(self) -> str:
        low, high = self.interval
        kind = "exact" if self.exact else f"{self.n_permutations:,} draws"
        return "\n".join(
            (
                f"Comparison: {self.measure} on {self.wins + self.ties + self.losses:,} queries",
                f"  a {self.mean_a:.4f}, b {self.mean_b:.4f}, difference {self.difference:+.4f} "
                f"({100 * self.confidence:g}% interval {low:+.4f} to {high:+.4f})",
                f"  b wins {self.wins:,}, ties {self.ties:,}, loses {self.losses:,}; "
                f"effect size {self.effect_size:+.3f}",
                f"  p = {self.p_randomization:.4g} (randomisation, {kind}), "
                f"{self.p_t_test:.4g} (t-test, t = {self.t:.3f})",
            )
        )

    def _repr_html_(self) -> str:
        head, *lines = repr(self).splitlines()
        rows = [["a", f"{self.mean_a:.4f}"], ["b", f"{self.mean_b:.4f}"]]
        return html_table(head, "; ".join(map(str.strip, lines[1:])), ["", self.measure], rows)


def compare(
    y: Any,
    scores_a: Any,
    scores_b: Any,
    qid: Any = None,
    *,
    group: Any = None,
    measure: str | Measure = "ndcg@10",
    convention: str | Convention = "standard",
    n_permutations: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
    n_jobs: int | None = -1,
    **choices: Any,
) -> Comparison:
    """Compare two rankers on the same documents.

    Parameters
    ----------
    y, qid, group
        As for ``evaluate``; a RankingData in place of y includes its queries.
    scores_a, scores_b : array-like
        The scores of the two rankers.
    measure : str
        One measure, as for ``evaluate``.
    convention : str or Convention
        As for ``evaluate``.
    n_permutations : int
        Draws of the randomisation test, which is exact for up to 16 differing queries.
    confidence : float
        Confidence level of the interval.
    random_state : int, Generator or None
        Seed or generator of the draws.
    n_jobs : int, optional
        Threads; the result does not depend on it.
    **choices
        Other parameters of ``evaluate``: ``ties``, ``rel``, ``doc_ids``, …

    Examples
    --------
    >>> y, qid = [1, 0, 0, 1, 1, 0], ["a", "a", "b", "b", "c", "c"]
    >>> compare(y, [1, 2, 2, 1, 1, 2], [2, 1, 1, 2, 2, 1], qid, measure="mrr")
    Comparison: mrr on 3 queries
      a 0.5000, b 1.0000, difference +0.5000 (95% interval +0.5000 to +0.5000)
      b wins 3, ties 0, loses 0; effect size +inf
      p = 0.25 (randomisation, exact), 0 (t-test, t = inf)
    """
    parsed = parse_measures((measure,))[0]
    choices |= {"group": group, "measures": parsed, "convention": convention, "n_jobs": n_jobs}
    a = evaluate(y, scores_a, qid, **choices).per_query[parsed.name]
    b = evaluate(y, scores_b, qid, **choices).per_query[parsed.name]
    return compare_values(
        a,
        b,
        measure=parsed,
        n_permutations=n_permutations,
        confidence=confidence,
        random_state=random_state,
    )


def compare_values(
    a: Any,
    b: Any,
    *,
    measure: str | Measure | None = None,
    n_permutations: int = 10_000,
    confidence: float = 0.95,
    random_state: int | np.random.Generator | None = 0,
) -> Comparison:
    """Compare two rankers by their values of a measure on the same queries, NaN where undefined.

    ``measure`` determines whether higher or lower values are better; by default, higher.

    >>> compare_values([0.2, 0.4, 0.3, 0.6], [0.3, 0.6, 0.3, 0.7]).wins
    3
    """
    parsed = None if measure is None else parse_measures((measure,))[0]
    check_number("confidence", confidence, open_low=True, high=1.0 - 2**-53)
    check_whole("n_permutations", n_permutations)
    first, second = _values(a, "a"), _values(b, "b")
    if len(first) != len(second):
        raise InputError(f"a has {len(first)} values and b has {len(second)}: give one per query")
    differences = second - first
    defined = ~np.isnan(differences)
    d = differences[defined]
    if len(d) == 0:
        raise InputError("there is no query on which both rankers are defined: nothing to compare")
    mean = float(d.mean())
    t, p_t, effect, interval = _t_test(d, mean, confidence)
    p, n_looked_at, exact = _randomization(d, n_permutations, random_state)
    better, worse = int((d > 0).sum()), int((d < 0).sum())
    if parsed is not None and better_sign(parsed.name) < 0:
        better, worse = worse, better
    return Comparison(
        measure="values" if parsed is None else parsed.name,
        mean_a=float(first[defined].mean()),
        mean_b=float(second[defined].mean()),
        difference=mean,
        interval=interval,
        confidence=confidence,
        p_randomization=p,
        p_t_test=p_t,
        t=t,
        effect_size=effect,
        wins=better,
        ties=len(d) - better - worse,
        losses=worse,
        differences=differences,
        n_permutations=n_looked_at,
        exact=exact,
    )


def rank_biased_overlap(
    ranks: IntArray, query_ptr: IntArray, persistence: float = PERSISTENCE
) -> FloatArray:
    """Return the rank-biased overlap of two rankings of the same documents, for each query.

    With A_d the share of documents among the first d of both, it is (1 − p) Σ p^{d−1} A_d (Webber,
    Moffat and Zobel 2010). A_d is 1 from the length of the list on.

    >>> rank_biased_overlap(np.array([[1, 2], [2, 1]]), np.array([0, 2])).round(3).tolist()
    [0.9]
    """
    sizes = np.diff(query_ptr)
    depth = np.arange(1, int(sizes.max(initial=0)) + 1)
    weight = np.concatenate(([0.0], np.cumsum(persistence ** (depth - 1.0) / depth)))
    query, length = np.repeat(np.arange(len(sizes)), sizes), np.repeat(sizes, sizes)
    # a document is in both prefixes from the larger of its two ranks on
    shared = weight[length] - weight[ranks.max(axis=0) - 1]
    total = np.bincount(query, shared, minlength=len(sizes))
    moved = np.bincount(query, ranks[0] != ranks[1], minlength=len(sizes)) > 0
    out = (1.0 - persistence) * total + persistence ** sizes.astype(np.float64)
    return np.where(moved, out, 1.0)


def _values(values: Any, name: str) -> FloatArray:
    array = as_floats(values, name).astype(np.float64, copy=False)
    if array.ndim != 1 or np.isinf(array).any():
        raise InputError(f"{name} must hold one finite value (or NaN) per query")
    return array


def _t_test(
    d: FloatArray, mean: float, confidence: float
) -> tuple[float, float, float, tuple[float, float]]:
    """Return t, the p-value, Cohen's d_z and the interval of the mean."""
    from scipy.special import stdtr, stdtrit

    n = len(d)
    if n < 2:
        return math.nan, math.nan, math.nan, (math.nan, math.nan)
    deviation = float(d.std(ddof=1))
    if deviation <= 1e-14 * abs(mean):  # the same difference on every query, up to rounding
        sure = math.copysign(math.inf, mean) if mean else 0.0
        return sure, 0.0 if mean else 1.0, sure, (mean, mean)
    error = deviation / math.sqrt(n)
    t = mean / error
    reach = float(stdtrit(n - 1, 0.5 + confidence / 2)) * error
    p = 2.0 * float(stdtr(n - 1, -abs(t)))
    return t, p, mean / deviation, (mean - reach, mean + reach)


def _randomization(
    d: FloatArray,
    n_permutations: int,
    random_state: int | np.random.Generator | None,
) -> tuple[float, int, bool]:
    """Return p of the test that the signs of the differences are random, and how it was computed.

    Each difference gets a random sign; p is the share of sign patterns whose sum is at least as far
    from zero as the observed one. The observed pattern is added to drawn ones. For few differences,
    all patterns are used.
    """
    d = d[d != 0]
    observed = abs(float(d.sum())) - 1e-12 * float(np.abs(d).sum())  # equal sums may round apart
    if len(d) <= EXACT_UP_TO:
        sums = np.zeros(1)
        for value in d.tolist():
            sums = np.concatenate((sums + value, sums - value))
        return float(np.mean(np.abs(sums) >= observed)), len(sums), True
    rng = np.random.default_rng(random_state)
    total = float(d.sum())
    extreme = 0
    rows = max(1, 4_000_000 // len(d))
    for start in range(0, n_permutations, rows):
        flips = rng.random((min(rows, n_permutations - start), len(d)), dtype=np.float32) < 0.5
        # the order of additions of einsum does not depend on BLAS threads
        flipped = np.einsum("ij,j->i", flips, d)
        extreme += int(np.count_nonzero(np.abs(total - 2.0 * flipped) >= observed))
    return (extreme + 1) / (n_permutations + 1), n_permutations, False
