"""The sample set that comes with leanrank: a small web search with a known truth."""

from __future__ import annotations

import json
import lzma
from pathlib import Path

import numpy as np

from leanrank.data.ranking_data import RankingData

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
    levels {0, 1, 2, 3, 4}, 5 queries without information, with doc_ids
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
