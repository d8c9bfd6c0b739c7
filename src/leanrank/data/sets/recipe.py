"""How a block of made-up queries is drawn."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from leanrank._numbers import check_number, check_whole
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.matrices import DENSE_FROM, stacked
from leanrank.errors import InputError, check_choice
from leanrank.execution import row_blocks

# What a seed stands for: other sizes of blocks would be other data.
_CELLS_PER_BLOCK = 1 << 20
_MOST_QUERIES_PER_BLOCK = 1 << 10
_ROWS_PER_DRAW = 1 << 15
_PILOT_ROWS, _PILOT_CELLS = 1 << 14, 1 << 22
_ZIPF_SHIFT = 10.0  # Mandelbrot's: what is more common than this in a language is a stop word
_TRUTH, _SIZES, _DOCUMENTS = range(3)  # what a stream of random numbers is used for


@dataclass(frozen=True)
class Recipe:
    """All that a block is drawn from."""

    seed: int
    smallest: int
    largest: int
    n_features: int
    density: float
    correlation: float
    words: bool
    unit_rows: bool
    sparse: bool
    dtype: np.dtype[Any]
    level_bounds: FloatArray  # shares of the documents under level 1, 2, ...
    label_noise: float
    query_spread: float
    queries_per_block: int
    popularity: FloatArray  # cumulative chance of each column in one draw
    draws_per_row: float
    idf: FloatArray
    coef: FloatArray
    thresholds: FloatArray  # hidden relevance that reaches level 1, 2, ...

    @property
    def by_entry(self) -> bool:
        """Whether X is drawn entry by entry instead of row by row."""
        return self.words or self.density < DENSE_FROM


def make_recipe(
    *,
    docs_per_query: int | tuple[int, int],
    n_features: int,
    random_state: Any,
    n_informative: int | None = None,
    n_levels: int | None = None,
    level_shares: Sequence[float] | None = None,
    label_noise: float = 0.5,
    query_spread: float = 0.5,
    density: float = 1.0,
    correlation: float = 0.0,
    columns: str = "uniform",
    unit_rows: bool = False,
    sparse: bool | None = None,
    dtype: npt.DTypeLike = np.float64,
) -> Recipe:
    """Check the parameters of ``leanrank.data.make_ranking`` and draw the truth."""
    smallest, largest = _size_range(docs_per_query)
    check_whole("n_features", n_features)
    if n_informative is None:
        n_informative = min(5, n_features)
    check_whole("n_informative", n_informative, low=0, high=n_features)
    check_choice("columns", columns, ("uniform", "zipf"))
    for name, value, high in (
        ("density", density, 1.0),
        ("correlation", correlation, 1.0),
        ("label_noise", label_noise, np.inf),
        ("query_spread", query_spread, np.inf),
    ):
        check_number(name, value, high=high)
    words = columns == "zipf"
    if words and (correlation or sparse is False or not density < 1):
        raise InputError(
            "columns='zipf' draws independent words into a sparse X: leave correlation and sparse "
            "out and give a density below 1, such as 0.001"
        )
    storage = np.dtype(dtype)
    if storage not in (np.float32, np.float64):
        raise InputError(f"dtype={storage} cannot be made up: choose float32 or float64")
    seed = _seed(random_state)
    popularity = np.full(n_features, 1.0 / n_features)
    if words:
        by_rank = 1.0 / (np.arange(n_features) + _ZIPF_SHIFT)
        popularity = _rng(seed, _TRUTH, 0).permutation(by_rank / by_rank.sum())
    by_entry = words or density < DENSE_FROM
    draws = _draws_for_density(popularity, density) if by_entry else 0.0
    present = -np.expm1(-draws * popularity) if by_entry else np.full(n_features, density)
    cells = max(1.0, (smallest + largest) / 2 * n_features * (density if by_entry else 1.0))
    recipe = Recipe(
        seed=seed,
        smallest=smallest,
        largest=largest,
        n_features=n_features,
        density=density,
        correlation=correlation,
        words=words,
        unit_rows=unit_rows,
        sparse=words or (density < DENSE_FROM if sparse is None else bool(sparse)),
        dtype=storage,
        level_bounds=_level_bounds(n_levels, level_shares),
        label_noise=label_noise,
        query_spread=query_spread,
        queries_per_block=int(min(max(_CELLS_PER_BLOCK // cells, 1), _MOST_QUERIES_PER_BLOCK)),
        popularity=np.cumsum(popularity),
        draws_per_row=draws,
        idf=1.0 - np.log(np.maximum(present, np.finfo(float).tiny)),
        coef=np.zeros(n_features),
        thresholds=np.zeros(0),
    )
    return _with_truth(recipe, n_informative, present)


def block_sizes(recipe: Recipe, block: int) -> IntArray:
    """Draw the number of documents of each query of a block."""
    return _rng(recipe.seed, _SIZES, block).integers(
        recipe.smallest, recipe.largest, size=recipe.queries_per_block, endpoint=True
    )


def draw_block(recipe: Recipe, block: int) -> tuple[Matrix, FloatArray]:
    """Draw the documents of a block, and their labels."""
    sizes = block_sizes(recipe, block)
    rng = _rng(recipe.seed, _DOCUMENTS, block)
    X = _draw_features(recipe, rng, int(sizes.sum()))
    relevance = _scores(X, recipe.coef)
    relevance += recipe.label_noise * rng.standard_normal(len(relevance))
    relevance += np.repeat(recipe.query_spread * rng.standard_normal(len(sizes)), sizes)
    return X, np.searchsorted(recipe.thresholds, relevance, side="right").astype(np.float64)


def _with_truth(recipe: Recipe, n_informative: int, present: FloatArray) -> Recipe:
    """Draw w and find, on a pilot sample, its scale and where the levels begin."""
    rng = _rng(recipe.seed, _TRUTH, 1)
    coef = np.zeros(recipe.n_features)
    # A feature that hardly ever varies cannot inform: choose by variance of presence.
    chance = present * (1 - present) + (0.0 if recipe.by_entry else 1.0)
    usable = int(np.count_nonzero(chance))
    chosen = rng.choice(
        recipe.n_features,
        min(n_informative, usable),
        replace=False,
        p=chance / chance.sum() if usable else None,
    )
    coef[chosen] = rng.choice([-1.0, 1.0], len(chosen)) * rng.uniform(0.5, 1.5, len(chosen))
    pilot = recipe
    if not recipe.by_entry:  # its features are alike: the informative ones will do
        pilot = replace(recipe, n_features=max(1, len(chosen)), sparse=False)
    cells = recipe.draws_per_row if recipe.by_entry else pilot.n_features
    n_rows = int(min(max(_PILOT_CELLS // max(cells, 1), _PILOT_ROWS // 32), _PILOT_ROWS))
    X = _draw_features(pilot, rng, n_rows)
    if recipe.unit_rows and not recipe.by_entry:
        X *= np.sqrt(pilot.n_features / recipe.n_features)
    scores = _scores(X, coef if recipe.by_entry else coef[chosen])
    spread = float(scores.std())
    if spread > 0:
        coef /= spread
        scores /= spread
    scores += np.hypot(recipe.label_noise, recipe.query_spread) * rng.standard_normal(len(scores))
    return replace(recipe, coef=coef, thresholds=np.quantile(scores, recipe.level_bounds))


def _draw_features(recipe: Recipe, rng: np.random.Generator, n_rows: int) -> Matrix:
    if recipe.by_entry:
        parts = [_draw_entries(recipe, rng, b - a) for a, b in row_blocks(n_rows, _ROWS_PER_DRAW)]
        entries = stacked(parts)
        return entries if recipe.sparse else entries.toarray()
    X = np.empty((n_rows, recipe.n_features), dtype=recipe.dtype)
    for a, b in row_blocks(n_rows, max(1, _CELLS_PER_BLOCK // recipe.n_features)):
        _draw_rows(recipe, rng, X[a:b])
    if not recipe.sparse:
        return X
    from scipy.sparse import csr_array

    return csr_array(X)


def _draw_rows(recipe: Recipe, rng: np.random.Generator, out: AnyArray) -> None:
    rng.standard_normal(out=out, dtype=recipe.dtype)
    if recipe.correlation:
        common = rng.standard_normal((len(out), 1), dtype=recipe.dtype)
        out *= out.dtype.type(np.sqrt(1 - recipe.correlation))
        out += out.dtype.type(np.sqrt(recipe.correlation)) * common
    if recipe.density < 1:
        out[rng.random(out.shape, dtype=np.float32) >= recipe.density] = 0
    if recipe.unit_rows:
        length = np.sqrt(np.einsum("ij,ij->i", out, out))
        out /= np.where(length > 0, length, 1)[:, None]


def _draw_entries(recipe: Recipe, rng: np.random.Generator, n_rows: int) -> Matrix:
    """Draw columns with replacement, a Poisson number per row.

    Each column then occurs a Poisson number of times, independently of the others: the counts are a
    text's word counts, and the columns that occur at all are the sparsity pattern.
    """
    from scipy.sparse import csr_array

    n_draws = rng.poisson(recipe.draws_per_row, n_rows)
    rows = np.repeat(np.arange(n_rows), n_draws)
    drawn = np.searchsorted(recipe.popularity[:-1], rng.random(len(rows)), side="right")
    keys = rows * recipe.n_features + drawn
    keys.sort()
    first = np.flatnonzero(np.concatenate((np.ones(min(1, len(keys)), bool), np.diff(keys) > 0)))
    rows, cols = np.divmod(keys[first], recipe.n_features)
    if recipe.words:
        counts = np.diff(np.append(first, len(keys)))
        values = ((1 + np.log(counts)) * recipe.idf[cols]).astype(recipe.dtype)
    else:
        values = rng.standard_normal(len(cols), dtype=recipe.dtype)
        if recipe.correlation:
            common = rng.standard_normal(n_rows, dtype=recipe.dtype)
            values *= values.dtype.type(np.sqrt(1 - recipe.correlation))
            values += values.dtype.type(np.sqrt(recipe.correlation)) * common[rows]
    if recipe.unit_rows:
        length = np.sqrt(np.bincount(rows, values.astype(np.float64) ** 2, n_rows))
        values /= length[rows].astype(recipe.dtype)
    indptr = np.searchsorted(rows, np.arange(n_rows + 1)).astype(np.int32)
    return csr_array((values, cols.astype(np.int32), indptr), shape=(n_rows, recipe.n_features))


def _scores(X: Matrix, coef: FloatArray) -> FloatArray:
    """Compute Xw without BLAS, whose sums differ between machines and thread counts."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ coef, dtype=np.float64)
    used = np.flatnonzero(coef)
    return np.einsum("ij,j->i", X[:, used].astype(np.float64, copy=False), coef[used])


def _draws_for_density(popularity: FloatArray, density: float) -> float:
    """Find how many draws per row, on average, fill the wanted share of the columns."""
    from scipy.optimize import brentq

    if density == 0:
        return 0.0
    wanted = density * len(popularity)

    def excess(log_draws: float) -> float:
        return float(-np.expm1(-np.exp(log_draws) * popularity).sum() - wanted)

    return float(np.exp(brentq(excess, np.log(wanted), np.log(wanted) + 60)))


def _level_bounds(n_levels: int | None, shares: Sequence[float] | None) -> FloatArray:
    if shares is None:
        n_levels = 3 if n_levels is None else n_levels
        check_whole("n_levels", n_levels)
        given = 0.5 ** np.arange(n_levels)
    else:
        given = np.asarray(shares, dtype=np.float64)
        if given.ndim != 1 or not (np.isfinite(given).all() and (given >= 0).all() and given.any()):
            raise InputError("level_shares must be non-negative numbers that are not all zero")
        if n_levels is not None and n_levels != len(given):
            raise InputError(
                f"level_shares has {len(given)} values but n_levels is {n_levels}: give one of them"
            )
    return np.cumsum(given / given.sum())[:-1].clip(0, 1)


def _size_range(docs_per_query: int | tuple[int, int]) -> tuple[int, int]:
    pair = docs_per_query if isinstance(docs_per_query, (tuple, list)) else (docs_per_query,) * 2
    if len(pair) != 2:
        raise InputError("docs_per_query must be a number or a pair (least, most)")
    for number in pair:
        check_whole("docs_per_query", number)
    if pair[0] > pair[1]:
        raise InputError(f"docs_per_query={docs_per_query} must be a pair (least, most)")
    return int(pair[0]), int(pair[1])


def _rng(seed: int, *place: int) -> np.random.Generator:
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=place)))


def _seed(random_state: Any) -> int:
    if random_state is None:
        return int(np.random.SeedSequence().generate_state(1)[0])
    if isinstance(random_state, np.random.Generator):
        return int(random_state.integers(2**32))
    if isinstance(random_state, np.random.RandomState):
        return int(random_state.randint(2**32, dtype=np.uint64))
    check_whole("random_state", random_state, low=0)
    return int(random_state)
