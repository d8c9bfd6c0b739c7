"""The systems that Cheng et al. 2018 compare, and what validation chooses from for each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

PAPER_GAMMAS = tuple(2.0**e for e in range(1, -11, -1))
PAPER_LAMBDAS = tuple(2.0**e for e in range(15, -3, -1))
GAMMAS = tuple(2.0**e for e in range(1, -11, -2))
SHARES = (0.7, 0.5, 0.35, 0.25, 0.18, 0.12, 0.08, 0.05, 0.03)
MORE_SHARES = (*SHARES, 0.02, 0.01, 0.005)
SUMS = {"relative": False, "normalize": "none", "epochs": 1}


@dataclass(frozen=True)
class TableRow:
    """A row of the tables.

    Attributes
    ----------
    label : str
    ranker : str
        Its name on the command line.
    grid : mapping of str to tuple
        Parameters to choose from.
    seeded : bool
        Whether the result depends on a seed.
    fixed : mapping
        Other parameters.
    shares : tuple of float
        Strengths to choose from, as shares of alpha_max.
    about : str
        Meaning of the row.
    """

    label: str
    ranker: str
    grid: Mapping[str, tuple[Any, ...]] = field(default_factory=dict)
    seeded: bool = False
    fixed: Mapping[str, Any] = field(default_factory=dict)
    shares: tuple[float, ...] = ()
    about: str = ""


PLAIN = TableRow(
    "MinBatSRank, plain sums",
    "minbatsrank",
    {"eta0": PAPER_GAMMAS, "alpha": PAPER_LAMBDAS},
    seeded=True,
    fixed=SUMS,
    about="the loss of a query summed over its pairs, γ and λ from the paper's grids, ρ = 1; one "
    "pass, as it speaks of a stream",
)
MEANS = TableRow(
    "MinBatSRank",
    "minbatsrank",
    {"eta0": GAMMAS, "alpha": SHARES},
    seeded=True,
    about="the loss of a query averaged over its pairs, λ as a share of λ_max, ten passes",
)
NONFEA_PLAIN = TableRow(
    "Nonfea, plain sums",
    "minbatsrank",
    {"eta0": (1.0, *PAPER_GAMMAS[3::2]), "alpha": PAPER_LAMBDAS[::2]},
    seeded=True,
    fixed={**SUMS, "rates": "uniform"},
    about="rates γ/√t for all features; γ = 1 is the paper's",
)
NONFEA_MEANS = TableRow(
    "Nonfea",
    "minbatsrank",
    {"eta0": GAMMAS, "alpha": SHARES},
    seeded=True,
    fixed={"rates": "uniform"},
    about="rates γ/√t for all features, losses averaged over pairs",
)
LISTWISE = TableRow(
    "MinBatSRank, ListNet loss",
    "minbatsrank",
    {"eta0": GAMMAS, "alpha": SHARES},
    seeded=True,
    fixed={"loss": "listnet"},
    about="the sparse stochastic listwise ranker that the paper leaves to the future",
)
SPARSE = (
    TableRow(
        "SparseRank",
        "sparserank",
        fixed={"tol": 1e-4},
        shares=MORE_SHARES,
        about="to a duality gap of 1e-4",
    ),
    TableRow(
        "FenchelRank",
        "fenchelrank",
        {"radius": (1, 2, 5, 10, 20, 50)},
        fixed={"tol": 1e-4},
        about="the corrective variant, to a duality gap of 1e-4; the published rounds, one corner "
        "of the ball each, take many times longer",
    ),
    TableRow("RSRank", "rsrank", {"alpha": (0.3, 0.1, 0.05, 0.03, 0.02, 0.01, 0.003)}, seeded=True),
    TableRow("ℓ1 RankSVM", "ranksvm", fixed={"l1_ratio": 1.0, "tol": 1e-4}, shares=MORE_SHARES),
)
DENSE = (
    TableRow(
        "ListNet",
        "listnet",
        {"alpha": tuple(10.0**-e for e in range(1, 7))},
        fixed={"l1_ratio": 0.0},
    ),
    TableRow(
        "AdaRank-NDCG",
        "adarank",
        {"measure": ("ndcg@10", "ndcg@5")},
        fixed={"convention": "standard"},
    ),
    TableRow(
        "RankSVM-struct",
        "ranksvm",
        {"alpha": tuple(10.0**-e for e in range(-1, 5))},
        fixed={"loss": "hinge", "solver": "struct", "tol": 1e-3},
    ),
)
