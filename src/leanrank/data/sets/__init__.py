"""Synthetic ranking data of any size with known sparse weights, and the sample set.

Queries are drawn in blocks, and a block depends only on the seed and its number. So the documents
are the same whether a set is drawn whole or as a stream in constant memory, from any query on.
"""

from __future__ import annotations

import json
import lzma
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from leanrank._numbers import check_number, check_whole
from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.matrices import DENSE_FROM, csr, stacked
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.execution import row_blocks


def make_ranking(
    n_queries: int = 100,
    docs_per_query: int | tuple[int, int] = 50,
    n_features: int = 20,
    *,
    n_informative: int | None = None,
    n_levels: int = 3,
    label_noise: float = 0.5,
    density: float = 1.0,
    correlation: float = 0.0,
    dtype: npt.DTypeLike = np.float64,
    random_state: int | None = 0,
    return_coef: bool = False,
) -> Any:
    """Return a synthetic ranking data set whose best linear ranking function is known.

    A document's hidden relevance is Xw plus noise, with w zero outside ``n_informative`` features;
    its label is the level that the hidden relevance reaches. The same parameters and seed give the
    same documents, and more queries only add to them.

    Parameters
    ----------
    n_queries : int, default=100
        Number of queries.
    docs_per_query : int or (int, int), default=50
        Documents of each query, or the smallest and the largest number.
    n_features : int, default=20
        Number of features.
    n_informative : int, optional
        Features with a weight other than zero; 5 by default, or all if there are fewer.
    n_levels : int, default=3
        Labels are 0, ..., n_levels − 1. Each level has half the share of the one below, about as in
        judged web searches. Some queries have many good documents and some have none.
    label_noise : float, default=0.5
        Standard deviation of the noise; that of Xw is 1.
    density : float, default=1.0
        Share of X that is not zero. X is CSR below 0.25.
    correlation : float, default=0.0
        Correlation of any two features, in [0, 1).
    dtype : {float64, float32}
        Type of X.
    random_state : int or None, default=0
        The seed; None draws one.
    return_coef : bool, default=False
        Return the pair of data and w.

    Returns
    -------
    RankingData or (RankingData, array)

    Examples
    --------
    >>> data, coef = make_ranking(30, 20, n_informative=3, random_state=1, return_coef=True)
    >>> data
    RankingData: 30 queries, 600 documents, 20 features (dense float64), levels {0, 1, 2}...
    >>> int((coef != 0).sum())
    3
    """
    shape = {**locals()}
    del shape["n_queries"], shape["return_coef"]
    recipe = _Recipe(**shape)
    check_whole("n_queries", n_queries)
    data = recipe.queries(0, n_queries)
    return (data, recipe.coef.copy()) if return_coef else data


def stream_ranking(
    n_queries: int | None = None,
    docs_per_query: int | tuple[int, int] = 50,
    n_features: int = 20,
    *,
    queries_per_chunk: int | None = None,
    **shape: Any,
) -> Iterator[RankingData]:
    """Return an iterator over the pieces of a synthetic data set, in constant memory.

    Together, the pieces are the result of ``make_ranking`` for the same parameters.

    Parameters
    ----------
    n_queries : int, optional
        Number of queries; by default the stream does not end.
    docs_per_query, n_features, **shape
        As in ``make_ranking``.
    queries_per_chunk : int, optional
        Queries of each piece; by default a few million numbers' worth.

    Yields
    ------
    RankingData

    Examples
    --------
    >>> [chunk.n_queries for chunk in stream_ranking(25, queries_per_chunk=10)]
    [10, 10, 5]
    """
    recipe = _Recipe(docs_per_query, n_features, **shape)
    if queries_per_chunk is None:
        queries_per_chunk = 8 * recipe.queries_per_block
    step = check_whole("queries_per_chunk", queries_per_chunk)
    if n_queries is not None:
        check_whole("n_queries", n_queries)
    starts = count(0, step) if n_queries is None else range(0, n_queries, step)
    return (recipe.queries(at, min(at + step, n_queries or at + step)) for at in starts)


# Other block sizes would give other data for the same seed.
_CELLS_PER_BLOCK = 1 << 20
_MOST_QUERIES_PER_BLOCK = 1 << 10
_ROWS_PER_DRAW = 1 << 15
_PILOT_ROWS, _PILOT_CELLS = 1 << 14, 1 << 22
_TRUTH, _SIZES, _DOCUMENTS = range(3)  # what a stream of random numbers is used for
_QUERY_SPREAD = 0.5  # standard deviation of how easy a query is


class _Recipe:
    """The distribution that queries are drawn from; parameters as for ``make_ranking``."""

    def __init__(
        self,
        docs_per_query: int | tuple[int, int],
        n_features: int,
        *,
        n_informative: int | None = None,
        n_levels: int = 3,
        label_noise: float = 0.5,
        density: float = 1.0,
        correlation: float = 0.0,
        dtype: npt.DTypeLike = np.float64,
        random_state: int | None = 0,
    ) -> None:
        pair = docs_per_query if isinstance(docs_per_query, (tuple, list)) else [docs_per_query] * 2
        for number in pair:
            check_whole("docs_per_query", number)
        if len(pair) != 2 or pair[0] > pair[1]:
            raise InputError(f"docs_per_query={docs_per_query} is not a number or (least, most)")
        self.smallest, self.largest = pair
        self.n_features = check_whole("n_features", n_features)
        if n_informative is None:
            n_informative = min(5, n_features)
        check_whole("n_informative", n_informative, low=0, high=n_features)
        check_whole("n_levels", n_levels)
        self.density = check_number("density", density, high=1.0)
        self.correlation = check_number("correlation", correlation, high=1.0)
        self.label_noise = check_number("label_noise", label_noise)
        self.dtype: np.dtype[Any] = np.dtype(dtype)
        if self.dtype not in (np.float32, np.float64):
            raise InputError(f"dtype={self.dtype} is not possible: choose float32 or float64")
        if random_state is None:
            random_state = int(np.random.SeedSequence().generate_state(1)[0])
        self.seed = check_whole("random_state", random_state, low=0)
        self.sparse = density < DENSE_FROM  # X is drawn entry by entry instead of row by row
        share = density if self.sparse else 1.0
        cells = max(1.0, (self.smallest + self.largest) / 2 * n_features * share)
        self.queries_per_block = int(
            min(max(_CELLS_PER_BLOCK // cells, 1), _MOST_QUERIES_PER_BLOCK)
        )
        self.coef, self.thresholds = self._truth(n_informative, n_levels)

    def queries(self, first: int, last: int) -> RankingData:
        """Return the queries ``first:last``, drawing every block that holds one of them."""
        per_block = self.queries_per_block
        blocks = range(first // per_block, -(-last // per_block))
        sizes = np.concatenate([self._sizes(block) for block in blocks])
        sizes = sizes[first - blocks.start * per_block :][: last - first]
        X = None if self.sparse else np.empty((sizes.sum(), self.n_features), self.dtype)
        parts, y = [], np.empty(sizes.sum())
        at = 0
        for block in blocks:
            part, labels = self._documents(block)
            ptr = np.concatenate(([0], np.cumsum(self._sizes(block))))
            inside = slice(*ptr[np.clip(np.array([first, last]) - block * per_block, 0, per_block)])
            rows = slice(at, at := at + inside.stop - inside.start)
            y[rows] = labels[inside]
            if X is None:
                parts.append(part[inside])
            else:
                X[rows] = part[inside]
        ids = np.repeat(np.arange(first, last), sizes)
        return RankingData(stacked(parts) if X is None else X, y, ids)

    def _sizes(self, block: int) -> IntArray:
        """Draw the number of documents of each query of a block."""
        rng = random_stream(self.seed, _SIZES, block)
        return rng.integers(self.smallest, self.largest, self.queries_per_block, endpoint=True)

    def _documents(self, block: int) -> tuple[Matrix, FloatArray]:
        """Draw the documents of a block, and their labels."""
        sizes = self._sizes(block)
        rng = random_stream(self.seed, _DOCUMENTS, block)
        X = self._features(rng, int(sizes.sum()), self.n_features)
        relevance = _scores(X, self.coef)
        relevance += self.label_noise * rng.standard_normal(len(relevance))
        relevance += np.repeat(_QUERY_SPREAD * rng.standard_normal(len(sizes)), sizes)
        return X, np.searchsorted(self.thresholds, relevance, side="right").astype(np.float64)

    def _truth(self, n_informative: int, n_levels: int) -> tuple[FloatArray, FloatArray]:
        """Draw w and find, on a pilot sample, its scale and the hidden relevance of each level."""
        rng = random_stream(self.seed, _TRUTH, 1)
        coef = np.zeros(self.n_features)
        alike = np.full(self.n_features, 1.0 / self.n_features)
        chosen = rng.choice(self.n_features, n_informative, replace=False, p=alike)
        coef[chosen] = rng.choice([-1.0, 1.0], len(chosen)) * rng.uniform(0.5, 1.5, len(chosen))
        # in dense data, features without a weight do not change the scores
        width = self.n_features if self.sparse else max(1, len(chosen))
        cells = self._draws_per_row() if self.sparse else width
        n_rows = int(min(max(_PILOT_CELLS // max(cells, 1), _PILOT_ROWS // 32), _PILOT_ROWS))
        pilot = self._features(rng, n_rows, width)
        scores = _scores(pilot, coef if self.sparse else coef[chosen])
        spread = float(scores.std())
        if spread > 0:
            coef /= spread
            scores /= spread
        scores += np.hypot(self.label_noise, _QUERY_SPREAD) * rng.standard_normal(len(scores))
        shares = 0.5 ** np.arange(n_levels)  # each level has half the share of the one below
        bounds = np.cumsum(shares / shares.sum())[:-1].clip(0, 1)
        return coef, np.quantile(scores, bounds)

    def _features(self, rng: np.random.Generator, n_rows: int, n_features: int) -> Matrix:
        if self.sparse:
            blocks = row_blocks(n_rows, _ROWS_PER_DRAW)
            return stacked([self._entries(rng, b - a) for a, b in blocks])
        X = np.empty((n_rows, n_features), dtype=self.dtype)
        for a, b in row_blocks(n_rows, max(1, _CELLS_PER_BLOCK // n_features)):
            out = X[a:b]
            rng.standard_normal(out=out, dtype=self.dtype)
            if self.correlation:
                self._correlate(out, rng.standard_normal((len(out), 1), dtype=self.dtype))
            if self.density < 1:
                out[rng.random(out.shape, dtype=np.float32) >= self.density] = 0
        return X

    def _entries(self, rng: np.random.Generator, n_rows: int) -> Matrix:
        """Draw a Poisson number of columns per row, with replacement, and a value for each."""
        n_features = self.n_features
        rows = np.repeat(np.arange(n_rows), rng.poisson(self._draws_per_row(), n_rows))
        drawn = (rng.random(len(rows)) * n_features).astype(np.int64)
        cells = np.sort(rows * n_features + drawn)  # np.unique takes fifty times as long
        rows, cols = np.divmod(cells[np.diff(cells, prepend=-1) > 0], n_features)
        values = rng.standard_normal(len(cols), dtype=self.dtype)
        if self.correlation:
            self._correlate(values, rng.standard_normal(n_rows, dtype=self.dtype)[rows])
        return csr(values, cols, np.searchsorted(rows, np.arange(n_rows + 1)), n_features)

    def _correlate(self, values: AnyArray, common: AnyArray) -> None:
        values *= values.dtype.type(np.sqrt(1 - self.correlation))
        values += values.dtype.type(np.sqrt(self.correlation)) * common

    def _draws_per_row(self) -> float:
        """Return the mean number of draws per row that fills a share ``density`` of the columns."""
        return float(-np.log1p(-self.density)) * self.n_features


def _scores(X: Matrix, coef: FloatArray) -> FloatArray:
    """Compute Xw without BLAS, whose sums differ between machines and thread counts."""
    if not isinstance(X, np.ndarray):
        return np.asarray(X @ coef, dtype=np.float64)
    used = np.flatnonzero(coef)
    return np.einsum("ij,j->i", X[:, used].astype(np.float64, copy=False), coef[used])


def random_stream(seed: int, *key: int) -> np.random.Generator:
    """Return a generator for one use of a seed."""
    return np.random.Generator(np.random.SFC64(np.random.SeedSequence(seed, spawn_key=key)))


FOLDER = Path(__file__).with_name("sample_set")
"""Directory of the sample set."""


def load_sample() -> tuple[RankingData, RankingData, RankingData]:
    """Load the training, validation and test part of the sample set.

    It resembles a judged web search: 200 queries of very different size, 28 named features, labels
    0–4 of which most are 0. Eight features determine relevance (see ``sample_weights``); the others
    are near copies of them, correlated features and noise. ``scripts/make_sample.py`` made it.

    Returns
    -------
    (RankingData, RankingData, RankingData)
        120, 40 and 40 queries.

    Examples
    --------
    >>> train, vali, test = load_sample()
    >>> train
    RankingData: 120 queries, 2,378 documents, 28 features (dense float64, 87.5% non-zero),
    levels {0, 1, 2, 3, 4}, 5 queries with one label (ignored), with doc_ids
    >>> train.feature_names[:2], test.query_ids[0].item()
    (('bm25_title', 'bm25_body'), 'q161')
    """
    names = list(sample_weights())
    train, vali, test = (_read(f"{part}.txt.xz", names) for part in ("train", "vali", "test"))
    return train, vali, test


def sample_weights() -> dict[str, float]:
    """Return the true weight of every feature of the sample set, from which labels were drawn.

    Examples
    --------
    >>> weights = sample_weights()
    >>> len(weights), [name for name, weight in weights.items() if weight < 0]
    (28, ['spam_score', 'freshness_days'])
    """
    features = json.loads((FOLDER / "features.json").read_text(encoding="utf-8"))
    return {feature["name"]: float(feature["weight"]) for feature in features}


def _read(name: str, names: list[str]) -> RankingData:
    """Read one file line by line, without compiling the LETOR reader."""
    with lzma.open(FOLDER / name, "rt", encoding="ascii") as lines:
        documents = [line.split() for line in lines]
    X = np.zeros((len(documents), len(names)))
    for row, (_, _, *values, _, _, _) in zip(X, documents, strict=True):  # ends in "#docid = d1"
        for feature, value in (entry.split(":") for entry in values):
            row[int(feature) - 1] = float(value)
    return RankingData(
        X,
        [float(label) for label, *_ in documents],
        [qid.removeprefix("qid:") for _, qid, *_ in documents],
        doc_ids=[document[-1] for document in documents],
        feature_names=names,
    )
