"""How a block of made-up queries is drawn."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leanrank._numbers import check_number, check_whole
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.matrices import DENSE_FROM, stacked
from leanrank.errors import InputError
from leanrank.execution import row_blocks

# What a seed stands for: other sizes of blocks would be other data.
_CELLS_PER_BLOCK = 1 << 20
_MOST_QUERIES_PER_BLOCK = 1 << 10
_ROWS_PER_DRAW = 1 << 15
_PILOT_ROWS, _PILOT_CELLS = 1 << 14, 1 << 22
_TRUTH, _SIZES, _DOCUMENTS = range(3)  # what a stream of random numbers is used for
_QUERY_SPREAD = 0.5  # standard deviation of how easy a query is


@dataclass(frozen=True)
class Recipe:
    """All that a block is drawn from."""

    seed: int
    smallest: int
    largest: int
    n_features: int
    density: float
    correlation: float
    dtype: np.dtype[Any]
    label_noise: float
    queries_per_block: int
    coef: FloatArray
    thresholds: FloatArray  # hidden relevance that reaches level 1, 2, ...

    @property
    def sparse(self) -> bool:
        """Whether X is drawn entry by entry instead of row by row, and stored so."""
        return self.density < DENSE_FROM


def make_recipe(
    *,
    docs_per_query: int | tuple[int, int],
    n_features: int,
    random_state: int | None = 0,
    n_informative: int | None = None,
    n_levels: int = 3,
    label_noise: float = 0.5,
    density: float = 1.0,
    correlation: float = 0.0,
    dtype: npt.DTypeLike = np.float64,
) -> Recipe:
    """Check the parameters of ``leanrank.data.make_ranking`` and draw the truth."""
    smallest, largest = _size_range(docs_per_query)
    check_whole("n_features", n_features)
    if n_informative is None:
        n_informative = min(5, n_features)
    check_whole("n_informative", n_informative, low=0, high=n_features)
    check_whole("n_levels", n_levels)
    check_number("density", density, high=1.0)
    check_number("correlation", correlation, high=1.0)
    check_number("label_noise", label_noise)
    storage = np.dtype(dtype)
    if storage not in (np.float32, np.float64):
        raise InputError(f"dtype={storage} cannot be made up: choose float32 or float64")
    if random_state is None:
        random_state = int(np.random.SeedSequence().generate_state(1)[0])
    check_whole("random_state", random_state, low=0)
    share = density if density < DENSE_FROM else 1.0
    cells = max(1.0, (smallest + largest) / 2 * n_features * share)
    recipe = Recipe(
        seed=random_state,
        smallest=smallest,
        largest=largest,
        n_features=n_features,
        density=density,
        correlation=correlation,
        dtype=storage,
        label_noise=label_noise,
        queries_per_block=int(min(max(_CELLS_PER_BLOCK // cells, 1), _MOST_QUERIES_PER_BLOCK)),
        coef=np.zeros(n_features),
        thresholds=np.zeros(0),
    )
    return _with_truth(recipe, n_informative, n_levels)


def block_sizes(recipe: Recipe, block: int) -> IntArray:
    """Draw the number of documents of each query of a block."""
    return random_stream(recipe.seed, _SIZES, block).integers(
        recipe.smallest, recipe.largest, size=recipe.queries_per_block, endpoint=True
    )


def draw_block(recipe: Recipe, block: int) -> tuple[Matrix, FloatArray]:
    """Draw the documents of a block, and their labels."""
    sizes = block_sizes(recipe, block)
    rng = random_stream(recipe.seed, _DOCUMENTS, block)
    X = _draw_features(recipe, rng, int(sizes.sum()))
    relevance = _scores(X, recipe.coef)
    relevance += recipe.label_noise * rng.standard_normal(len(relevance))
    relevance += np.repeat(_QUERY_SPREAD * rng.standard_normal(len(sizes)), sizes)
    return X, np.searchsorted(recipe.thresholds, relevance, side="right").astype(np.float64)


def _with_truth(recipe: Recipe, n_informative: int, n_levels: int) -> Recipe:
    """Draw w and find, on a pilot sample, its scale and where the levels begin."""
    rng = random_stream(recipe.seed, _TRUTH, 1)
    n_features = recipe.n_features
    coef = np.zeros(n_features)
    alike = np.full(n_features, 1.0 / n_features)
    chosen = rng.choice(n_features, n_informative, replace=False, p=alike)
    coef[chosen] = rng.choice([-1.0, 1.0], len(chosen)) * rng.uniform(0.5, 1.5, len(chosen))
    pilot, used = recipe, coef
    if not recipe.sparse:  # its features are alike: the informative ones will do
        pilot, used = replace(recipe, n_features=max(1, len(chosen))), coef[chosen]
    cells = _draws_per_row(recipe) if recipe.sparse else pilot.n_features
    n_rows = int(min(max(_PILOT_CELLS // max(cells, 1), _PILOT_ROWS // 32), _PILOT_ROWS))
    scores = _scores(_draw_features(pilot, rng, n_rows), used)
    spread = float(scores.std())
    if spread > 0:
        coef /= spread
        scores /= spread
    scores += np.hypot(recipe.label_noise, _QUERY_SPREAD) * rng.standard_normal(len(scores))
    shares = 0.5 ** np.arange(n_levels)  # each level has half the share of the one below
    bounds = np.cumsum(shares / shares.sum())[:-1].clip(0, 1)
    return replace(recipe, coef=coef, thresholds=np.quantile(scores, bounds))


def _draw_features(recipe: Recipe, rng: np.random.Generator, n_rows: int) -> Matrix:
    if recipe.sparse:
        blocks = row_blocks(n_rows, _ROWS_PER_DRAW)
        return stacked([_draw_entries(recipe, rng, b - a) for a, b in blocks])
    X = np.empty((n_rows, recipe.n_features), dtype=recipe.dtype)
    for a, b in row_blocks(n_rows, max(1, _CELLS_PER_BLOCK // recipe.n_features)):
        _draw_rows(recipe, rng, X[a:b])
    return X


def _draw_rows(recipe: Recipe, rng: np.random.Generator, out: AnyArray) -> None:
    rng.standard_normal(out=out, dtype=recipe.dtype)
    if recipe.correlation:
        common = rng.standard_normal((len(out), 1), dtype=recipe.dtype)
        out *= out.dtype.type(np.sqrt(1 - recipe.correlation))
        out += out.dtype.type(np.sqrt(recipe.correlation)) * common
    if recipe.density < 1:
        out[rng.random(out.shape, dtype=np.float32) >= recipe.density] = 0


def _draw_entries(recipe: Recipe, rng: np.random.Generator, n_rows: int) -> Matrix:
    """Draw columns with replacement, a Poisson number per row; those that occur get a value."""
    from scipy.sparse import csr_array

    n_features = recipe.n_features
    rows = np.repeat(np.arange(n_rows), rng.poisson(_draws_per_row(recipe), n_rows))
    drawn = (rng.random(len(rows)) * n_features).astype(np.int64)
    rows, cols = np.divmod(np.unique(rows * n_features + drawn), n_features)
    values = rng.standard_normal(len(cols), dtype=recipe.dtype)
    if recipe.correlation:
        common = rng.standard_normal(n_rows, dtype=recipe.dtype)
        values *= values.dtype.type(np.sqrt(1 - recipe.correlation))
        values += values.dtype.type(np.sqrt(recipe.correlation)) * common[rows]
    indptr = np.searchsorted(rows, np.arange(n_rows + 1)).astype(np.int32)
    return csr_array((values, cols.astype(np.int32), indptr), shape=(n_rows, n_features))


def _draws_per_row(recipe: Recipe) -> float:
    """Return how many draws per row, on average, fill the wanted share of the columns."""
    return float(-np.log1p(-recipe.density)) * recipe.n_features


def _scores(X: Matrix, coef: FloatArray) -> FloatArray:
    """Compute Xw without BLAS, whose sums differ between machines and thread counts."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ coef, dtype=np.float64)
    used = np.flatnonzero(coef)
    return np.einsum("ij,j->i", X[:, used].astype(np.float64, copy=False), coef[used])


def _size_range(docs_per_query: int | tuple[int, int]) -> tuple[int, int]:
    pair = docs_per_query if isinstance(docs_per_query, (tuple, list)) else (docs_per_query,) * 2
    for number in pair:
        check_whole("docs_per_query", number)
    if len(pair) != 2 or pair[0] > pair[1]:
        raise InputError(
            f"docs_per_query={docs_per_query} must be a number or a pair (least, most)"
        )
    return int(pair[0]), int(pair[1])


def random_stream(seed: int, *place: int) -> np.random.Generator:
    """Return the random numbers for one use of a seed."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=place)))
