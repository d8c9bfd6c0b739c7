"""A stream of lists on which two rankers are compared, in compiled loops."""

from __future__ import annotations

import itertools
from dataclasses import dataclass

import numpy as np

from benchmarks.harness import Options
from leanrank import make_ranking
from leanrank._jit import kernel
from leanrank.data import GlobalStandardScaler, RankingData, load_letor
from leanrank.online import ClickModel, kernels
from leanrank.online.interleaving import (
    fair_lists,
    mixture,
    team_draft,
)
from leanrank.rankers import DominationRanker
from leanrank.solvers.sampling.pair_sampling import mix_bits

METHODS = ("balanced", "team-draft", "probabilistic", "optimised")
AB_TESTS = ("A/B, discounted clicks", "A/B, reciprocal rank")
DEPTH = 10


def judged(options: Options) -> tuple[str, RankingData]:
    """Return the name of a judged set and the set, with standardised features."""
    if options.data is not None:
        name, data = "MQ2008 Fold1 train", load_letor(options.data / "MQ2008/Fold1/train.txt")
        data = data.queries[np.flatnonzero(data.informative & (np.diff(data.query_ptr) >= DEPTH))]
    else:
        name = "made-up"
        data = make_ranking(150, 20, n_levels=3, label_noise=1.0, random_state=0)
    return name, GlobalStandardScaler().fit(data).transform(data)


def weights(data: RankingData) -> np.ndarray:
    return DominationRanker(alpha=0.01).fit(data.X, data.y, qid=data.qid).coef_


@dataclass
class Pair:
    """Two rankers on a set of queries, as the compiled loop reads them."""

    ptr: np.ndarray
    ranking: np.ndarray  # (2, documents): rows within their query, best first
    rank: np.ndarray
    grades: np.ndarray
    lists: np.ndarray  # of optimised interleaving, with their cumulative probabilities
    chance: np.ndarray
    lists_ptr: np.ndarray

    @classmethod
    def of(cls, data: RankingData, a: np.ndarray, b: np.ndarray) -> Pair:
        ptr = np.array(data.query_ptr)
        ranking = np.empty((2, len(a)), dtype=np.int64)
        rank = np.empty_like(ranking)
        lists, chances = [], []
        for p0, p1 in itertools.pairwise(ptr):
            for j, scores in enumerate((a, b)):
                ranking[j, p0:p1] = np.argsort(-scores[p0:p1], kind="stable")
                rank[j, p0:p1] = np.argsort(ranking[j, p0:p1])
            k = min(DEPTH, p1 - p0)
            top = np.ascontiguousarray(ranking[:, p0 : p0 + k])
            table, chance = fair_lists(top.tobytes(), int(k))
            some = chance > 1e-9
            lists.append(np.pad(table[some], ((0, 0), (0, DEPTH - k)), constant_values=-1))
            chances.append(np.cumsum(chance[some]) / chance[some].sum())
        lists_ptr = np.concatenate([[0], np.cumsum([len(c) for c in chances])])
        grades = data.y.astype(np.int64)
        packed = np.concatenate(lists), np.concatenate(chances)
        return cls(ptr, ranking, rank, grades, *packed, lists_ptr)

    def credits(self, method: str, user: ClickModel, n: int, seed: int) -> np.ndarray:
        """Return credit a − credit b per click, at most 1 in size."""
        out = np.empty(n)
        args = (self.ptr, self.ranking, self.rank, self.grades)
        optimised = (self.lists, self.chance, self.lists_ptr)
        code = METHODS.index(method)
        _stream(code, *args, *optimised, user.tables, np.uint64(seed), out)
        return out

    def paired(self, user: ClickModel, n: int, seed: int) -> dict[str, np.ndarray]:
        """Return a − b in discounted clicks and in reciprocal rank, for n pairs of lists."""
        clicks, reciprocal = np.empty(n), np.empty(n)
        args = (self.ptr, self.ranking, self.grades)
        _ab_stream(*args, user.tables, np.uint64(seed), clicks, reciprocal)
        return dict(zip(AB_TESTS, (clicks, reciprocal), strict=True))


@kernel
def _stream(method, ptr, ranking, rank, grades, lists, chance, lists_ptr, tables, seed, out):
    for n in range(len(out)):
        key = kernels.list_key(seed, 2 * n)
        query = int(kernels.uniform(kernels.list_key(seed, 2 * n + 1), 0) * (len(ptr) - 1))
        p0, p1 = ptr[query], ptr[query + 1]
        size = p1 - p0
        k = min(10, size)
        shown = np.empty(k, dtype=np.int64)
        share = np.zeros((2, k))
        mine, at = ranking[:, p0:p1].copy(), rank[:, p0:p1].copy()
        if method == 0:
            first = int(kernels.uniform(key, 0) < 0.5)
            placed = np.zeros(size, dtype=np.bool_)
            r = turn = 0
            while r < k:
                d = mine[first if turn % 2 == 0 else 1 - first, turn // 2]
                if not placed[d]:
                    placed[d] = True
                    shown[r] = d
                    r += 1
                turn += 1
        elif method == 1:
            team_draft(mine, key, shown, share)
        elif method == 2:
            weight = (at + 1.0) ** -3.0
            mixture(weight, key, shown, share)
        else:
            u = kernels.uniform(key, 0)
            i = lists_ptr[query]
            while i < lists_ptr[query + 1] - 1 and chance[i] <= u:
                i += 1
            shown[:] = lists[i, :k]
            for r in range(k):
                share[0, r] = (min(at[1, shown[r]], k) - min(at[0, shown[r]], k)) / k
        clicked = np.empty(k, dtype=np.bool_)
        kernels.draw_clicks(tables, grades[p0:p1][shown], mix_bits(key), clicked)
        value, count = 0.0, max(clicked.sum(), 1)
        if method == 0:
            lowest = -1
            for r in range(k):
                if clicked[r]:
                    lowest = min(at[0, shown[r]], at[1, shown[r]])
            for r in range(k):
                if clicked[r]:
                    value += int(at[0, shown[r]] <= lowest) - int(at[1, shown[r]] <= lowest)
        else:
            for r in range(k):
                if clicked[r]:
                    value += share[0, r] - share[1, r]
        out[n] = 0.0 if abs(value) < 1e-9 else value / count


@kernel
def _ab_stream(ptr, ranking, grades, tables, seed, clicks, reciprocal):
    for n in range(len(clicks)):
        query = int(kernels.uniform(kernels.list_key(seed, 3 * n), 0) * (len(ptr) - 1))
        p0, p1 = ptr[query], ptr[query + 1]
        k = min(10, p1 - p0)
        clicked = np.empty(k, dtype=np.bool_)
        clicks[n] = reciprocal[n] = 0.0
        for j in range(2):
            shown = grades[p0:p1][ranking[j, p0 : p0 + k]]
            key = kernels.list_key(seed, 3 * n + 1 + j)
            kernels.draw_clicks(tables, shown, key, clicked)
            side = 1.0 if j == 0 else -1.0
            most = np.sum(1.0 / np.log2(np.arange(k) + 2.0))
            for r in range(k):
                if clicked[r]:
                    clicks[n] += side / np.log2(r + 2.0) / most
            for r in range(k):
                if clicked[r]:
                    reciprocal[n] += side / (r + 1.0)
                    break
