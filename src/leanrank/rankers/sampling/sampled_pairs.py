"""The base of rankers that take one step per drawn pair."""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from typing import Any, ClassVar

from leanrank._typing import IntArray
from leanrank.errors import InputError
from leanrank.losses import pair_loss
from leanrank.rankers.base import check_number
from leanrank.rankers.inputs import check_whole, refuse_idle
from leanrank.rankers.sampling.stochastic import StochasticRanker
from leanrank.solvers.sampling.pair_descent import (
    PairBlock,
    PairRule,
    PairState,
    descend,
    largest_pair,
    start_pairs,
)


@dataclass(eq=False, repr=False)
class SampledPairRanker(StochasticRanker):
    """A ranker whose pass is ``n_steps`` steps, each on one drawn pair.

    A subclass defines the pairs (``_block``) and the step (``_rule``).
    """

    state_type: ClassVar[type] = PairState

    _: KW_ONLY
    n_steps: int = 100_000

    def _rule(self, block: PairBlock) -> PairRule:
        """Return the parameters of a step."""
        raise AssertionError(f"{type(self).__name__} must define _rule")

    def _averages(self) -> bool:
        """Whether the model is the average of the weights over the later steps."""
        return False

    def _begin(self, block: PairBlock, n_features: int, seed: int, n_passes: int) -> PairState:
        del n_passes
        return start_pairs(self._rule(block), n_features, seed, average=self._averages())

    def _pass(self, state: PairState, block: PairBlock, order: IntArray) -> float:
        del order
        return descend(state, block, check_whole("n_steps", self.n_steps))


def chosen_rate(eta0: Any, block: PairBlock, loss: str) -> float:
    """Return η₀: as given, or the one with which a step about settles the largest pair."""
    steepness = pair_loss(loss).pair_steepness
    if eta0 is not None:
        return check_number("eta0", eta0, open_low=True)
    size = largest_pair(block.rows, block.index, block.width)
    return rate_for(steepness * size)


def rate_for(size: float) -> float:
    """Return the rate for pairs of a squared norm, finite even for the smallest features."""
    return 1.0 / max(size, 1e-300) if size > 0.0 else 1.0


def refuse_idle_rates(ranker: Any) -> None:
    """Reject parameters of the rate that its schedule does not use."""
    schedule = f"learning_rate={ranker.learning_rate!r}"
    if ranker.learning_rate != "invscaling":
        refuse_idle(ranker, ("power_t",), schedule)
    if ranker.learning_rate == "pegasos":
        refuse_idle(ranker, ("eta0",), schedule)


def check_pegasos(learning_rate: str, l2: float) -> None:
    """Reject a schedule that would divide by zero."""
    if learning_rate == "pegasos" and not l2 > 0.0:
        raise InputError(
            "learning_rate='pegasos' divides by the strength of the ℓ2 penalty, which is 0: give "
            "a positive alpha and l1_ratio=0, or choose learning_rate='optimal'"
        )
