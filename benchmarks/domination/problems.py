"""What the parts share: problems built once, and how busy the machine is."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from leanrank.data.ranking_data import RankingData
from leanrank.designs.base import make_design
from leanrank.execution import Executor
from leanrank.losses.base import Labels
from leanrank.losses.domination import DominationLoss
from leanrank.penalties.elastic_net import ElasticNet
from leanrank.problem.memory import MemoryProblem as Problem

LOSS = DominationLoss()


def make_problem(data: RankingData, executor: Executor, design: Any = None) -> Problem:
    """Prepare the loss on a data set; with a design, its column form is not made again."""
    plan = LOSS.prepare(Labels(data.y, data.query_ptr))
    return Problem(
        make_design(data.X, executor) if design is None else design, LOSS, plan, executor
    )


def alpha_max(problem: Problem) -> float:
    """Give the smallest ℓ1 strength with an empty model."""
    _, g = problem.evaluate(problem.scores(np.zeros(problem.n_features)))
    return float(np.abs(problem.design.rmatvec(g)).max())


def lasso(alpha: float, problem: Problem) -> ElasticNet:
    return ElasticNet.build(alpha, 1.0, problem.n_features)


def load() -> str:
    """Say how busy the machine is, beside the figures it explains."""
    one, five, _ = os.getloadavg()
    return f"Load average {one:.1f} (1 min), {five:.1f} (5 min)."
