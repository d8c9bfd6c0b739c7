"""The problem in shards: the same optimum as in memory, and nothing depends on a shard's memory."""

from __future__ import annotations

import itertools
import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank import make_ranking
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, NoLevelsError
from leanrank.losses import get_loss
from leanrank.losses.base import Labels, query_shares
from leanrank.losses.domination import DominationLoss
from leanrank.losses.hinge import SquaredHingeLoss
from leanrank.losses.listnet import SoftmaxLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.penalties.groups import GroupPenalty
from leanrank.problem.memory import MemoryProblem
from leanrank.problem.shard import Shard
from leanrank.problem.sharded import ShardedProblem, Shards, add_along_tree
from leanrank.solvers.base import Solution
from leanrank.solvers.newton.solver import Newton

CERTIFIED = ["domination", "squared-hinge", "logistic", "listnet"]


def data_of(seed: int = 0, **options: int) -> RankingData:
    sizes = {"n_queries": 30, "n_features": 12, "n_informative": 4} | options
    return make_ranking(random_state=seed, **sizes)


class LocalShards(Shards):
    """Shards in this process, one after the other."""

    def __init__(self, shards) -> None:
        self.shards = list(shards)
        self.n_shards = len(self.shards)
        self.n_rows = sum(len(shard.data) for shard in self.shards)
        self.n_features = self.shards[0].data.n_features
        self.levels = np.unique(np.concatenate([shard.data.levels for shard in self.shards]))

    def sums(self, *request):
        found = {(0, at): shard.sums(*request) for at, shard in enumerate(self.shards)}
        (sums,) = add_along_tree(found, self.n_shards).values()
        return sums

    def map(self, function, *arguments, each=None):
        own = [()] * self.n_shards if each is None else [(value,) for value in each]
        both = zip(self.shards, own, strict=True)
        return [function(shard, *before, *arguments) for shard, before in both]


def in_parts(data: RankingData, cuts: list[int]) -> LocalShards:
    edges = [0, *cuts, data.n_queries]
    pieces = [data.queries[a:b] for a, b in itertools.pairwise(edges)]
    return LocalShards(Shard(piece) for piece in pieces)


def in_memory(data: RankingData, loss, normalize: str) -> MemoryProblem:
    labels = Labels(
        data.y,
        data.query_ptr,
        sample_weight=data.sample_weight,
        query_weight=data.query_weight,
        offset=data.offset,
        normalize=normalize,
    )
    return MemoryProblem(data.X, loss, loss.prepare(labels))


@pytest.mark.parametrize("normalize", ["query", "term", "none"])
@pytest.mark.parametrize("name", [*CERTIFIED, "squared"])
def test_every_answer_is_that_of_all_documents_together(name, normalize):
    rng = np.random.default_rng(1)
    data = data_of()
    data = data.replace(
        sample_weight=rng.integers(0, 3, len(data)),
        query_weight=rng.uniform(0.5, 2.0, data.n_queries),
        offset=rng.normal(size=len(data)),
    )
    loss = get_loss(name)
    whole, parted = (
        in_memory(data, loss, normalize),
        ShardedProblem(in_parts(data, [3, 4, 19]), loss, normalize),
    )
    w, features = rng.normal(size=12), np.array([1, 4, 7])
    step = rng.normal(size=3)

    def told(problem):
        yield problem.at(w)
        yield problem.gradient()
        yield problem.gradient_scale()
        yield problem.rounding(w, 1.0)
        yield problem.value_at_zero
        yield problem.dual(0.5) if loss.offers("dual") else 0.0
        problem.focus(features)
        yield problem.focused_gradient()
        yield problem.focused_hessian()
        yield problem.try_step(step, 0.5)
        yield problem.directional_derivative()
        yield problem.curvature_along_step()
        yield problem.try_step(step, 0.25)
        problem.accept()
        yield problem.focused_gradient()
        yield problem.gradient()
        yield problem.dual(0.9) if loss.offers("dual") else 0.0

    for ours, theirs in zip(told(parted), told(whole), strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-12)


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("largest_gram", [2_048, 0])
def test_the_same_optimum_as_in_memory(name, largest_gram):
    data, loss = data_of(2), get_loss(name)
    parted = ShardedProblem(in_parts(data, [5, 12]), loss, largest_gram=largest_gram)
    penalty = ElasticNet.build(alpha=0.02, l1_ratio=0.8, n_features=12)
    ours = Newton(tol=1e-8).solve(parted, penalty)
    theirs = Newton(tol=1e-8).solve(in_memory(data, loss, "query"), penalty)
    assert ours.converged
    assert ours.gap <= 1e-8
    assert ours.objective == pytest.approx(theirs.objective, rel=2e-8)
    np.testing.assert_allclose(ours.w, theirs.w, atol=1e-3)


def test_groups_of_features_enter_together():
    data, loss = data_of(3), get_loss("domination")
    penalty = GroupPenalty.build(0.03, 1.0, 12, np.arange(12) // 3, group_ratio=0.5)
    ours = Newton().solve(ShardedProblem(in_parts(data, [9]), loss), penalty)
    theirs = Newton().solve(in_memory(data, loss, "query"), penalty)
    assert ours.objective == pytest.approx(theirs.objective, rel=2e-6)


class Forgetful(LocalShards):
    """Shards that lose what they know, one or all, before some requests."""

    def __init__(self, parts: LocalShards, losses: dict[int, int | None]) -> None:
        super().__init__(parts.shards)
        self.losses, self.asked = losses, 0

    def sums(self, *request):
        lost = self.losses.get(self.asked, -1)
        self.asked += 1
        for at in range(self.n_shards):
            if lost is None or lost == at:
                self.shards[at] = pickle.loads(pickle.dumps(self.shards[at]))
        return super().sums(*pickle.loads(pickle.dumps(request)))


def fitted(parts: LocalShards, seed_data: RankingData) -> Solution:
    penalty = ElasticNet.build(alpha=0.005, l1_ratio=1.0, n_features=seed_data.n_features)
    return Newton().solve(ShardedProblem(parts, DominationLoss()), penalty)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_shard_that_lost_its_memory_returns_the_same_bits(sparse):
    data = data_of(4, n_queries=40)
    if sparse:
        data = data.replace(X=csr_array(np.where(data.X > 0.3, data.X, 0.0)))
    cuts = [7, 8, 21, 30]
    undisturbed = Forgetful(in_parts(data, cuts), {})
    expected = fitted(undisturbed, data)
    assert undisturbed.asked > 12
    for at in range(undisturbed.asked):
        parts = Forgetful(in_parts(data, cuts), {at: None if at % 6 == 5 else at % 5})
        found = fitted(parts, data)
        assert found.w.tobytes() == expected.w.tobytes(), at
        assert found.history == expected.history


def test_whoever_adds_neighbours_first_finds_the_same_sum():
    rng = np.random.default_rng(0)
    for n in (1, 2, 3, 5, 8, 13):
        shares = {(0, at): (rng.normal(), rng.normal(size=3)) for at in range(n)}
        ((value, array),) = add_along_tree(shares, n).values()
        assert value == pytest.approx(sum(share[0] for share in shares.values()))
        for holders in (2, 3):
            owner = rng.integers(0, holders, n)
            gathered = {}
            for holder in range(holders):
                own = {key: share for key, share in shares.items() if owner[key[1]] == holder}
                gathered |= add_along_tree(own, n)
            ((other, other_array),) = add_along_tree(gathered, n).values()
            assert other == value
            assert other_array.tobytes() == array.tobytes()


def test_a_holder_of_a_run_of_shards_sends_few_sums():
    shares = {(0, at): (1.0,) for at in range(16, 32)}
    assert list(add_along_tree(shares, 64)) == [(4, 1)]


def test_shards_without_information_add_nothing():
    data = data_of(6)
    silent = RankingData(np.ones((3, 12)), [1.0, 1.0, 0.0], qid=["x", "x", "y"])
    parts = LocalShards([Shard(silent), *in_parts(data, [9]).shards, Shard(silent)])
    problem = ShardedProblem(parts, get_loss("squared-hinge"))
    plain = ShardedProblem(in_parts(data, [9]), get_loss("squared-hinge"))
    assert problem.at(np.ones(12)) == plain.at(np.ones(12))
    for each in (problem, plain):
        each.focus(np.array([2, 3]))
    np.testing.assert_array_equal(problem.focused_hessian(), plain.focused_hessian())
    with pytest.raises(NoLevelsError):
        ShardedProblem(LocalShards([Shard(silent)]), get_loss("squared-hinge"))


def test_tables_by_level_refer_to_the_levels_of_all_shards():
    rng = np.random.default_rng(7)
    X = rng.normal(size=(40, 3))
    y = np.concatenate([rng.integers(0, 2, 20), rng.integers(1, 4, 20)]).astype(float)
    data = RankingData(X, y, np.repeat(np.arange(8), 5))
    table = rng.uniform(size=(4, 4))
    loss = SquaredHingeLoss(importance=table)
    whole = in_memory(data, loss, "query")
    assert ShardedProblem(in_parts(data, [4]), loss).at(np.ones(3)) == pytest.approx(
        whole.at(np.ones(3))
    )


def test_shares_of_queries_rebuild_the_scale_of_a_plan():
    data, loss = data_of(8), get_loss("logistic")
    labels = Labels(data.y, data.query_ptr, normalize="query")
    shares, total = query_shares(loss, labels)
    np.testing.assert_allclose(shares / total, loss.prepare(labels).scale, rtol=1e-14)


def test_a_shard_serves_one_problem_after_the_other():
    shards = in_parts(data_of(10), [3])
    one, other = (ShardedProblem(shards, DominationLoss()) for _ in range(2))
    first = one.at(np.zeros(12))
    assert other.at(np.zeros(12)) == first
    one.focus(np.array([1]))
    assert one.try_step(np.array([0.0]), 1.0) == first


def test_coordinate_descent_is_refused_in_a_sentence():
    problem = ShardedProblem(in_parts(data_of(11), [3]), DominationLoss())
    with pytest.raises(InputError, match="needs all documents in memory"):
        problem.curvature_bounds()


def test_a_loss_that_weighs_queries_itself_weighs_them_once():
    data, loss = data_of(), SoftmaxLoss(emphasis=0.5)
    whole = in_memory(data, loss, "query")
    parted = ShardedProblem(in_parts(data, [3, 4, 19]), loss, "query")
    w = np.random.default_rng(2).normal(size=12)
    assert parted.at(w) == pytest.approx(whole.at(w), rel=1e-12)
    assert np.allclose(parted.gradient(), whole.gradient(), rtol=1e-10, atol=1e-14)
