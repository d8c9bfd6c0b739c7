"""Made-up ranking data with a known sparse truth, of any size; and the sample set.

Queries are drawn in blocks, and a block depends on the seed and on its own number only. So a set
can be made whole or as a stream in constant memory, in any number of threads, from any query
onwards, and the documents are always the same.
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

from leanrank._numbers import check_whole
from leanrank._typing import FloatArray
from leanrank.data.matrices import stacked
from leanrank.data.ranking_data import RankingData
from leanrank.data.sets.recipe import Recipe, block_sizes, draw_block, make_recipe
from leanrank.execution import make_executor


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
    n_jobs: int | None = None,
) -> Any:
    """Make up a ranking data set whose best linear ranking function is known.

    A document's hidden relevance is Xw plus noise, with w zero outside ``n_informative`` features;
    its label is the level that the hidden relevance reaches. The same parameters and seed give the
    same documents for any ``n_jobs``, and more queries only add to them.

    Parameters
    ----------
    n_queries : int, default=100
        How many queries.
    docs_per_query : int or (int, int), default=50
        Documents of each query, or the least and the most there may be.
    n_features : int, default=20
        How many features.
    n_informative : int, optional
        Features with a weight other than zero; 5 by default, or all if there are fewer.
    n_levels : int, default=3
        Labels are 0, ..., n_levels − 1. Each level has half the share of the one below, which is
        about what judged web searches look like. Some queries have many good documents and some
        have none.
    label_noise : float, default=0.5
        Standard deviation of the noise; that of Xw is 1.
    density : float, default=1.0
        Share of X that is not zero. X is CSR below 0.25.
    correlation : float, default=0.0
        Correlation of any two features, in [0, 1).
    dtype : {float64, float32}
        How X is stored.
    random_state : int or None, default=0
        The seed; None is another one each time.
    return_coef : bool, default=False
        Give the pair of data and w.
    n_jobs : int, optional
        Number of threads.

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
    recipe = make_recipe(
        docs_per_query=docs_per_query,
        n_features=n_features,
        n_informative=n_informative,
        n_levels=n_levels,
        label_noise=label_noise,
        density=density,
        correlation=correlation,
        dtype=dtype,
        random_state=random_state,
    )
    check_whole("n_queries", n_queries)
    data = _queries(recipe, 0, n_queries, n_jobs)
    return (data, recipe.coef.copy()) if return_coef else data


def stream_ranking(
    n_queries: int | None = None,
    docs_per_query: int | tuple[int, int] = 50,
    n_features: int = 20,
    *,
    queries_per_chunk: int | None = None,
    n_jobs: int | None = None,
    **shape: Any,
) -> Iterator[RankingData]:
    """Make up a ranking data set piece by piece, in constant memory.

    The pieces put together are what ``make_ranking`` gives for the same parameters.

    Parameters
    ----------
    n_queries : int, optional
        Where to stop; by default the stream does not end.
    docs_per_query, n_features, n_jobs, **shape
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
    recipe = make_recipe(docs_per_query=docs_per_query, n_features=n_features, **shape)
    if queries_per_chunk is None:
        queries_per_chunk = 8 * recipe.queries_per_block
    check_whole("queries_per_chunk", queries_per_chunk)
    if n_queries is not None:
        check_whole("n_queries", n_queries)
    return _chunks(recipe, n_queries, queries_per_chunk, n_jobs)


def _chunks(
    recipe: Recipe, n_queries: int | None, step: int, n_jobs: int | None
) -> Iterator[RankingData]:
    for first in count(0, step):
        last = first + step if n_queries is None else min(first + step, n_queries)
        if first >= last:
            return
        yield _queries(recipe, first, last, n_jobs)


def _queries(recipe: Recipe, first: int, last: int, n_jobs: int | None) -> RankingData:
    """Make the queries ``first:last``, drawing every block that holds one of them."""
    per_block = recipe.queries_per_block
    blocks = range(first // per_block, -(-last // per_block))
    sizes = np.concatenate([block_sizes(recipe, block) for block in blocks])
    block_ptr = np.concatenate(([0], np.cumsum(sizes)))
    skipped = first - blocks.start * per_block
    query_ptr = block_ptr[skipped : skipped + last - first + 1]
    row0, n_rows = int(query_ptr[0]), int(query_ptr[-1] - query_ptr[0])
    X = None if recipe.sparse else np.empty((n_rows, recipe.n_features), dtype=recipe.dtype)

    def draw(block: int) -> tuple[Any, FloatArray]:
        at = (block - blocks.start) * per_block
        rows0, rows1 = int(block_ptr[at]) - row0, int(block_ptr[at + per_block]) - row0
        inside = slice(max(0, -rows0), min(rows1, n_rows) - rows0)
        part, y = draw_block(recipe, block)
        if X is None:
            return part[inside], y[inside]
        X[rows0 + inside.start : rows0 + inside.stop] = part[inside]
        return None, y[inside]

    parts = make_executor(n_jobs).map(draw, blocks)
    if X is None:
        X = stacked([part for part, _ in parts])
    return RankingData(
        X,
        np.concatenate([y for _, y in parts]),
        np.repeat(np.arange(first, last), np.diff(query_ptr)),
    )


FOLDER = Path(__file__).with_name("sample_set")
"""Where the files of the sample set are."""


def load_sample() -> tuple[RankingData, RankingData, RankingData]:
    """Load the training, validation and test part of the embedded sample set.

    It has the shape of a judged web search: 200 queries of very different size, 28 named features,
    labels 0–4 of which most are 0. Eight features make a document relevant (see
    ``sample_weights``); the others are near copies of them, relatives and noise.
    ``scripts/make_sample.py`` made it.

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
    """Return the weight of every feature of the sample set in the truth that made its labels.

    Examples
    --------
    >>> weights = sample_weights()
    >>> len(weights), [name for name, weight in weights.items() if weight < 0]
    (28, ['spam_score', 'freshness_days'])
    """
    features = json.loads((FOLDER / "features.json").read_text(encoding="utf-8"))
    return {feature["name"]: float(feature["weight"]) for feature in features}


def _read(name: str, names: list[str]) -> RankingData:
    """Read one file line by line: a first look need not wait until the reader is compiled."""
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
