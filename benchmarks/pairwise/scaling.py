"""What badly scaled features cost: each system on standardised features, and in wild units.

The second data set is the first with every feature multiplied and moved by random powers of ten
between 10⁻³ and 10³, as lengths, counts and probabilities side by side. The models differ, because
a penalty knows units. What must not differ much is the time to the same accuracy: a relative
duality gap of the same size, at a strength that is the same share of the strongest (ℓ1), or the
same (ridge). Systems without a stopping accuracy, such as those that take a fixed number of steps,
are left out.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.domination.problems import load
from benchmarks.harness import Options, Table, race
from leanrank import make_ranking
from leanrank.data import GlobalStandardScaler
from leanrank.data.ranking_data import RankingData
from leanrank.execution import single_threaded_blas
from leanrank.rankers import (
    DominationRanker,
    FenchelRank,
    GreedyRankRLS,
    ListNet,
    NonconvexRankSVM,
    RankNet,
    RankRLS,
    RankSVM,
    SparseRank,
)

MOST = 2.0
SHARE = 0.02
"""Strength of ℓ1 penalties, as a share of that of an empty model."""


def badly_scaled_features(options: Options) -> Table:
    """Time each system on both data sets, in turns."""
    n_queries = 20 if options.quick else 65
    table = Table(f"{n_queries * 40:,} × 40 in wild units against standardised, one thread")
    plain, wild = _two_scales(n_queries)
    with warnings.catch_warnings(), single_threaded_blas():
        warnings.simplefilter("ignore")
        for name, make in _systems().items():
            fits = {
                "standardised": _fit(make, plain),
                "wild units": _fit(make, wild),
            }
            timings = race(fits, repeat=max(3, options.repeat))
            ratio = timings["wild units"].median / timings["standardised"].median
            found = {kind: timing.result for kind, timing in timings.items()}
            table.add(
                system=name,
                **{kind: str(timing) for kind, timing in timings.items()},
                ratio=f"{ratio:.1f}" + f" (ABOVE {MOST:.0f})" * (ratio > MOST),
                iterations=" · ".join(str(getattr(r, "n_iter_", "")) for r in found.values()),
                gaps=" · ".join(_gap(r) for r in found.values()),
            )
    table.note = (
        "Iterations and gaps: standardised, then wild units. Cutting planes and the published "
        f"proximal steps do not see units; their warning says so. {load()}"
    )
    return table


def _systems() -> dict[str, Callable[[RankingData], Any]]:
    def sparse(ranker: Any, **options: Any) -> Callable[[RankingData], Any]:
        def make(data: RankingData) -> Any:
            top = ranker(**options).alpha_max(data)
            return ranker(alpha=SHARE * top, **options)

        return make

    def ball(data: RankingData) -> Any:
        radius = float(np.abs(sparse(RankSVM, l1_ratio=1.0)(data).fit(data).coef_).sum())
        return FenchelRank(radius=radius, solver="corrective", tol=1e-3)

    return {
        "Domination Rank": sparse(DominationRanker, l1_ratio=1.0),
        "RankSVM ℓ1": sparse(RankSVM, l1_ratio=1.0),
        "RankNet ℓ1": sparse(RankNet, l1_ratio=1.0),
        "ListNet ℓ1": sparse(ListNet, l1_ratio=1.0),
        "Non-convex SVM": lambda data: NonconvexRankSVM(
            alpha=SHARE * RankSVM(l1_ratio=1.0).alpha_max(data)
        ),
        "SparseRank, Newton": sparse(SparseRank),
        "SparseRank, proximal, gap 1e-3": sparse(SparseRank, solver="proximal", tol=1e-3),
        "FenchelRank, corrective, gap 1e-3": ball,
        "RankSVM": lambda data: RankSVM(),
        "RankNet": lambda data: RankNet(),
        "RankSVM hinge, cutting planes, gap 1e-3": lambda data: RankSVM(loss="hinge", tol=1e-3),
        "RankRLS": lambda data: RankRLS(),
        "Greedy RankRLS, 10 features": lambda data: GreedyRankRLS(10),
    }


def _fit(make: Callable[[RankingData], Any], data: RankingData) -> Callable[[], Any]:
    ranker = make(data)
    return lambda: ranker.fit(data)


def _gap(ranker: Any) -> str:
    gap = getattr(ranker, "dual_gap_", None)
    return "" if gap is None else f"{gap:.0e}"


def _two_scales(n_queries: int) -> tuple[RankingData, RankingData]:
    data = make_ranking(n_queries, 40, 40, n_informative=10, random_state=0)
    plain = GlobalStandardScaler().fit(data).transform(data)
    rng = np.random.default_rng(1)
    spread, offset = 10.0 ** rng.uniform(-3.0, 3.0, (2, plain.n_features))
    wild = RankingData(np.asarray(plain.X) * spread + offset, plain.y, plain.qid)
    return plain, wild
