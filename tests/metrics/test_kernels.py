"""Every measure against a slow twin that lists orders and pairs."""

from __future__ import annotations

import itertools
import math

import numpy as np
import pytest

from leanrank.metrics import CONVENTIONS, evaluate
from leanrank.metrics._kernels import _rank

LIST_MEASURES = [
    "ndcg", "ndcg@1", "ndcg@3", "ndcg@10", "dcg", "dcg@2", "mean_ndcg", "map", "map@2",
    "map(rel=2)", "p@1", "p@3", "p@10", "p@3(rel=2)", "r@2", "r@10", "mrr", "mrr@2", "err", "err@2",
    "err@3(max=6)",
]  # fmt: skip
PAIR_MEASURES = [
    "auc", "auc(rel=2)", "all_pairs_error", "domination_error", "kendall_tau_b", "joachims_tau",
]  # fmt: skip


def slow_list_measure(name, order, convention, top):
    """One measure of labels in ranked order, straight from its definition."""
    base, _, rest = name.partition("@")
    base, _, option = base.partition("(")
    cut, _, option = rest.partition("(") if rest else ("", "", option)
    k = int(cut) if cut else None
    value = float(option.rstrip(")").split("=")[1]) if option else None
    n = len(order)
    upto = n if k is None else min(k, n)
    empty = {0: 0.0, 1: 1.0, "skip": math.nan}[convention.no_relevant]
    if base in ("ndcg", "dcg", "mean_ndcg"):

        def gain(label):
            return max(2.0**label - 1, 0) if convention.gain == "exp2" else max(label, 0)

        def discount(rank):
            if convention.discount == "letor":
                return 1 / math.log2(max(rank, 2))
            return 1 / math.log2(1 + rank)

        def dcg(labels, at):
            return sum(gain(r) * discount(i) for i, r in enumerate(labels[:at], 1))

        best = sorted(order, reverse=True)
        if dcg(best, n) == 0:
            return 0.0 if base == "dcg" and empty == 1 else empty
        if base == "dcg":
            return dcg(order, upto)
        if base == "mean_ndcg":
            return sum(dcg(order, i) / dcg(best, i) for i in range(1, n + 1)) / n
        if k is not None and n < k and convention.short_lists != "as_is":
            return 0.0
        return dcg(order, upto) / dcg(best, upto)
    if base == "err":
        scale = top if value is None else value
        stops = [max(2.0**r - 1, 0) / 2.0**scale for r in order]
        if not any(stops):
            return 0.0 if empty == 1 else empty
        return sum(stops[i] * math.prod(1 - s for s in stops[:i]) / (i + 1) for i in range(upto))
    hits = [r >= (convention.rel if value is None else value) for r in order]
    ranks = [i for i, hit in enumerate(hits, 1) if hit]
    if not ranks:
        return 0.0 if base in ("p", "mrr") and empty == 1 else empty
    if base == "map":
        within = [i for i in ranks if k is None or i <= k]
        total = sum(sum(hits[:i]) / i for i in within)
        reachable = k is not None and convention.ap_cut == "reachable"
        return total / (min(len(ranks), k) if reachable else len(ranks))
    if base == "p":
        return 0.0 if n < k and convention.short_lists == "zero" else sum(hits[:k]) / k
    if base == "r":
        return sum(hits[:k]) / len(ranks)
    assert base == "mrr"
    return 1 / ranks[0] if k is None or ranks[0] <= k else 0.0


def slow_value(name, labels, scores, convention, top):
    """One measure of one query, ties as the convention has them."""
    ties = [
        [label for label, s in zip(labels, scores, strict=True) if s == score]
        for score in sorted(set(scores), reverse=True)
    ]
    if convention.ties == "input":
        choices = [[tuple(tie)] for tie in ties]
    elif convention.ties == "pessimistic":
        choices = [[tuple(sorted(tie))] for tie in ties]
    else:
        choices = [list(itertools.permutations(tie)) for tie in ties]
    values = [
        slow_list_measure(name, list(itertools.chain(*orders)), convention, top)
        for orders in itertools.product(*choices)
    ]
    return sum(values) / len(values)


def slow_pair_measure(name, labels, scores):
    rel = 2 if "rel=2" in name else 1
    n = range(len(labels))
    if name.startswith("auc"):
        labels = [label >= rel for label in labels]
    better = [(i, j) for i in n for j in n if labels[i] > labels[j]]
    if not better:
        return math.nan
    wrong = sum(scores[i] < scores[j] for i, j in better)
    tied = sum(scores[i] == scores[j] for i, j in better)
    error = (wrong + tied / 2) / len(better)
    if name.startswith("auc"):
        return 1 - error
    if name == "all_pairs_error":
        return error
    if name == "domination_error":
        dominating = {i for i, _ in better}
        return len({i for i, j in better if scores[j] > scores[i]}) / len(dominating)
    right = len(better) - wrong - tied
    if name == "joachims_tau":
        return (right - wrong) / len(better)
    distinct = sum(scores[i] != scores[j] for i in n for j in n if i < j)
    return (right - wrong) / math.sqrt(len(better) * distinct) if distinct else math.nan


def random_lists(rng, n_queries, longest, labels, n_scores):
    sizes = rng.integers(0, longest + 1, n_queries)
    y = rng.choice(labels, sizes.sum())
    scores = rng.integers(0, n_scores, sizes.sum()) / 4 - 1
    return sizes, y, scores


@pytest.mark.filterwarnings("ignore::leanrank.errors.DataWarning")
@pytest.mark.parametrize("ties", ["input", "average", "pessimistic"])
@pytest.mark.parametrize("name", [name for name in CONVENTIONS if name != "trec"])
@pytest.mark.parametrize("labels", [[0, 1, 2, 4], [0], [-1, 0, 0.5, 1, 2.25]], ids=str)
def test_list_measures_equal_their_definitions(name, ties, labels):
    rng = np.random.default_rng(len(labels))
    convention = CONVENTIONS[name].replace(ties=ties)
    sizes, y, scores = random_lists(rng, 60, 6, labels, 3)
    found = evaluate(y, scores, group=sizes, measures=LIST_MEASURES, convention=name, ties=ties)
    ends = np.cumsum(sizes)
    for measure in LIST_MEASURES:
        slow = [
            slow_value(
                measure,
                y[end - size : end].tolist(),
                scores[end - size : end].tolist(),
                convention,
                max(y.max(), 0),
            )
            for size, end in zip(sizes, ends, strict=True)
        ]
        np.testing.assert_allclose(found.per_query[measure], slow, rtol=1e-12, err_msg=measure)
        defined = [value for value in slow if not math.isnan(value)]
        assert found.undefined[measure] == len(slow) - len(defined)
        if defined:
            assert found.means[measure] == pytest.approx(np.mean(defined), rel=1e-12)
        else:
            assert math.isnan(found.means[measure])


def test_linear_gain_and_other_choices():
    rng = np.random.default_rng(5)
    sizes, y, scores = random_lists(rng, 60, 5, [0, 1, 3], 3)
    choices = {"gain": "linear", "discount": "letor", "rel": 3, "no_relevant": 1}
    convention = CONVENTIONS["standard"].replace(**choices)
    found = evaluate(y, scores, group=sizes, measures=LIST_MEASURES, **choices)
    ends = np.cumsum(sizes)
    for measure in LIST_MEASURES:
        slow = [
            slow_value(measure, y[e - s : e].tolist(), scores[e - s : e].tolist(), convention, 3)
            for s, e in zip(sizes, ends, strict=True)
        ]
        np.testing.assert_allclose(found.per_query[measure], slow, rtol=1e-12, err_msg=measure)


@pytest.mark.parametrize("n_scores", [1, 2, 5, 1000])
@pytest.mark.parametrize(
    "labels", [[0, 1, 2], [0, 1], [3], np.linspace(-5, 5, 300).tolist()], ids=len
)
def test_pair_measures_equal_their_definitions(labels, n_scores):
    rng = np.random.default_rng(n_scores)
    sizes, y, scores = random_lists(rng, 80, 25, labels, n_scores)
    found = evaluate(y, scores, group=sizes, measures=PAIR_MEASURES)
    ends = np.cumsum(sizes)
    for measure in PAIR_MEASURES:
        slow = [
            slow_pair_measure(measure, y[e - s : e].tolist(), scores[e - s : e].tolist())
            for s, e in zip(sizes, ends, strict=True)
        ]
        np.testing.assert_allclose(found.per_query[measure], slow, atol=1e-14, err_msg=measure)


def test_many_levels_and_long_lists_sort_the_ideal():
    rng = np.random.default_rng(2)
    y, scores = rng.normal(size=500), rng.normal(size=500)
    found = evaluate(y, scores, measures="ndcg,ndcg@7,mean_ndcg", gain="linear")
    convention = CONVENTIONS["standard"].replace(gain="linear")
    order = y[np.argsort(-scores)].tolist()
    for measure, mean in found.means.items():
        assert mean == pytest.approx(slow_list_measure(measure, order, convention, 0), rel=1e-12)


def test_expected_err_of_a_long_tie_is_the_mean_over_random_orders():
    rng = np.random.default_rng(3)
    y = rng.choice([0, 0, 0, 1, 2, 4], 150)
    found = evaluate(y, np.zeros(150), measures="err,err@10,mrr,map")
    convention = CONVENTIONS["standard"]
    for measure in ("err", "err@10", "mrr", "map"):
        drawn = [
            slow_list_measure(measure, rng.permutation(y).tolist(), convention, 4)
            for _ in range(300)
        ]
        assert abs(found[measure] - np.mean(drawn)) < 5 * np.std(drawn) / math.sqrt(300)


def test_a_long_tie_takes_no_quadratic_time():
    # quadratic work on 400,000 tied documents would take minutes
    y = np.tile([0, 1, 2, 0, 0], 80_000)
    everything = [*LIST_MEASURES, *PAIR_MEASURES]
    found = evaluate(y, np.zeros(len(y)), np.zeros(len(y)), measures=everything)
    assert found["auc"] == 0.5


@pytest.mark.parametrize("average", [False, True])
@pytest.mark.parametrize("sizes", [[], [0], [1], [0, 3, 0, 0, 5], [40, 1, 300, 0], [1] * 300])
def test_ranks_are_stable_and_descending_in_every_query(sizes, average):
    rng = np.random.default_rng(0)
    ptr = np.append(0, np.cumsum(np.array(sizes, dtype=np.int64)))
    for spread in (1, 3, 10**6):
        scores = rng.integers(0, spread, ptr[-1]) - 0.5
        rows = np.arange(ptr[-1])
        lists, ties = _rank(ptr, scores, rows, average)
        for (_, order, starts, n_groups), tied in ((lists, average), (ties, True)):
            for q, (begin, end) in enumerate(itertools.pairwise(ptr)):
                own = -scores[begin:end]
                assert (
                    order[begin:end].tolist() == (begin + np.argsort(own, kind="stable")).tolist()
                )
                first = np.unique(np.sort(own), return_index=True)[1]
                if not tied:
                    first = np.arange(len(own))
                at = begin + q
                assert n_groups[q] == len(first)
                assert starts[at : at + len(first) + 1].tolist() == [*first, len(own)]


@pytest.mark.parametrize("n_levels", [2, 5, 40, 1000])
def test_pairs_are_counted_as_if_they_were_listed(n_levels):
    """Lists one after the other: what is counted for one must not stay for the next."""
    rng = np.random.default_rng(n_levels)
    qid = np.repeat(np.arange(4), [1, 2, 30, 50])
    y, scores = rng.integers(0, n_levels, 83) - 0.5, rng.integers(0, 20, 83)
    found = evaluate(y, scores, qid, measures="all_pairs_error,joachims_tau,kendall_tau_b")
    for q in range(4):
        labels, values = y[qid == q], scores[qid == q]
        pairs = [(i, j) for i in range(len(labels)) for j in range(i)]
        turns = [np.sign((labels[i] - labels[j]) * (values[i] - values[j])) for i, j in pairs]
        differ = [labels[i] != labels[j] for i, j in pairs]
        wrong = sum(0.5 * (1 - turn) for turn, one in zip(turns, differ, strict=True) if one)
        apart = sum(values[i] != values[j] for i, j in pairs)
        expected = [np.nan] * 3
        if any(differ):
            tau = np.nan if not apart else sum(turns) / np.sqrt(float(sum(differ)) * apart)
            expected = [wrong / sum(differ), sum(turns) / sum(differ), tau]
        assert [row[q] for row in found.per_query.values()] == pytest.approx(expected, nan_ok=True)


@pytest.mark.parametrize("n_levels", [3, 64, 65, 1000])
def test_ideal_order_by_counting_and_by_sorting(n_levels):
    rng = np.random.default_rng(1)
    qid, scores = np.repeat([0, 1, 2], [40, 3, 37]), rng.normal(size=80)
    y = rng.integers(0, n_levels, 80)
    y[0] = n_levels - 1
    discounts = 1 / np.log2(np.arange(40) + 2)
    for k in (40, 7):
        found = evaluate(y, scores, qid, measures=f"ndcg@{k}", gain="linear").per_query[f"ndcg@{k}"]
        for q in range(3):
            own, n = y[qid == q], min(k, int((qid == q).sum()))
            ranked, best = own[np.argsort(-scores[qid == q])], np.sort(own)[::-1]
            expected = ranked[:n] @ discounts[:n] / (best[:n] @ discounts[:n])
            assert found[q] == pytest.approx(expected, rel=1e-12)
