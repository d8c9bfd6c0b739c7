"""Simulated users, rankers that learn from clicks, interleaving, and estimates from old logs."""

from typing import TYPE_CHECKING

from leanrank._lazy import attach

if TYPE_CHECKING:
    from leanrank.online.interleaving import interleaver as interleaver
    from leanrank.online.learners.ranker import OnlineRanker as OnlineRanker
    from leanrank.online.offpolicy import PolicyValue as PolicyValue
    from leanrank.online.offpolicy import evaluate_policy as evaluate_policy
    from leanrank.online.sequential import confidence_sequence as confidence_sequence
    from leanrank.online.simulation import simulate as simulate
    from leanrank.online.trial import try_learners as try_learners
    from leanrank.online.users import ClickModel as ClickModel
    from leanrank.online.users import user as user

__getattr__, __dir__, __all__ = attach(
    "leanrank.online",
    {
        "leanrank.online.interleaving": "interleaver",
        "leanrank.online.learners.ranker": "OnlineRanker",
        "leanrank.online.offpolicy": "PolicyValue evaluate_policy",
        "leanrank.online.sequential": "confidence_sequence",
        "leanrank.online.simulation": "simulate",
        "leanrank.online.trial": "try_learners",
        "leanrank.online.users": "ClickModel user",
    },
)
