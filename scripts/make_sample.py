"""Make the sample set that is embedded in leanrank: a small web search with a known truth.

    python scripts/make_sample.py [FOLDER]

A document's hidden relevance is linear in its features, as written to the files: ``WEIGHTS`` below,
plus a shift a query and noise. The other features are copies with noise, relatives and plain noise,
as they pile up in a real search engine. The result is the same on every run: NumPy's legacy
generator never changes its streams, and all values are rounded to a few decimals.
"""

from __future__ import annotations

import argparse
import json
import lzma
from pathlib import Path

import numpy as np

FOLDER = Path(__file__).resolve().parent.parent / "src/leanrank/data/sets/sample_set"
SPLIT = {"train": 120, "vali": 40, "test": 40}
LEVEL_SHARES = (0.54, 0.25, 0.12, 0.06, 0.03)
NOISE = 0.8
QUERY_SPREAD = 0.6
SEED = 20130704

WEIGHTS = {
    "bm25_title": 0.12,
    "bm25_body": 0.06,
    "bm25_anchor": 0.08,
    "embedding_similarity": 2.2,
    "click_rate_30d": 5.0,
    "pagerank": 0.16,
    "spam_score": -1.2,
    "freshness_days": -0.0008,
}


def main(folder: Path = FOLDER) -> None:
    """Write the three parts and the list of features."""
    folder.mkdir(parents=True, exist_ok=True)
    for name, text in make_files().items():
        data = text.encode()
        if name.endswith(".xz"):
            data = lzma.compress(data, preset=9 | lzma.PRESET_EXTREME)
        (folder / name).write_bytes(data)
        print(f"{folder / name}: {len(data):,} bytes")


def make_files() -> dict[str, str]:
    """Give the text of every file by its name (before compression)."""
    rng = np.random.RandomState(SEED)
    n_queries = sum(SPLIT.values())
    sizes = np.clip(rng.poisson(11, n_queries) + rng.geometric(0.11, n_queries), 4, 60)
    qid = np.repeat(np.arange(n_queries), sizes)
    columns = make_features(rng, qid, n_queries)
    hidden = sum(weight * columns[name] for name, weight in WEIGHTS.items())
    hidden = hidden / hidden.std()
    hidden = hidden + NOISE * rng.randn(len(qid)) + QUERY_SPREAD * rng.randn(n_queries)[qid]
    bounds = np.quantile(hidden, np.cumsum(LEVEL_SHARES)[:-1])
    labels = np.searchsorted(bounds, hidden)
    ends = np.cumsum(list(SPLIT.values()))
    files = {}
    for part, first, last in zip(SPLIT, [0, *ends[:-1]], ends, strict=True):
        rows = np.flatnonzero((qid >= first) & (qid < last))
        files[f"{part}.txt.xz"] = "".join(line(columns, labels, qid, row) for row in rows)
    features = [{"name": name, "weight": WEIGHTS.get(name, 0.0)} for name in columns]
    rows_of_json = ",\n".join("  " + json.dumps(feature) for feature in features)
    files["features.json"] = f"[\n{rows_of_json}\n]\n"
    return files


def line(columns: dict[str, np.ndarray], labels: np.ndarray, qid: np.ndarray, row: int) -> str:
    """Write one document in LETOR's text format; zeros are left out."""
    values = (
        f"{at}:{values[row]:g}" for at, values in enumerate(columns.values(), 1) if values[row]
    )
    return f"{labels[row]} qid:q{qid[row] + 1} {' '.join(values)} #docid = d{row + 1}\n"


def make_features(
    rng: np.random.RandomState, qid: np.ndarray, n_queries: int
) -> dict[str, np.ndarray]:
    """Draw all features, in the order of the files, rounded as they are written."""
    n = len(qid)
    topical = rng.randn(n)  # what the text fields have in common
    fame = rng.randn(n)  # what links and visits have in common
    rarity = rng.gamma(4.0, 0.25, n_queries)[qid]  # rare words score higher in every text feature

    def text(scale: float, share: float, missing: float) -> np.ndarray:
        raw = np.sqrt(share) * topical + np.sqrt(1 - share) * rng.randn(n)
        score = scale * (0.6 + 0.4 * rarity) * np.logaddexp(0.0, 1.2 * raw + 0.4)
        return np.where(rng.rand(n) < missing, 0.0, score)

    def like(column: np.ndarray, noise: float) -> np.ndarray:
        return np.where(column > 0, column * np.exp(noise * rng.randn(n)), 0.0)

    title = text(6.0, 0.35, 0.15)
    body = text(9.0, 0.5, 0.0)
    anchor = text(5.0, 0.25, 0.45)
    url = text(3.0, 0.2, 0.6)
    pagerank = np.clip(3.0 + 1.1 * fame + 0.6 * rng.randn(n), 0.0, 10.0)
    visited = rng.rand(n) < 0.7
    clicks = np.where(visited, rng.beta(1.2, 9.0, n) * np.exp(0.25 * topical + 0.2 * fame), 0.0)
    clicks = np.clip(clicks, 0.0, 1.0)
    age = rng.exponential(400.0, n)
    depth = rng.poisson(np.clip(3.0 - 0.7 * fame, 0.3, None))
    length = rng.lognormal(6.3, 0.9, n)
    return {
        "bm25_title": title.round(1),
        "bm25_body": body.round(1),
        "bm25_anchor": anchor.round(1),
        "bm25_url": url.round(1),
        "tfidf_title": like(title, 0.12).round(1),
        "tfidf_body": like(body, 0.10).round(1),
        "language_model_body": (-14 + 0.5 * body + 1.0 * rng.randn(n)).round(1),
        "query_terms_in_title": np.minimum(1.0, (title / 9 + 0.1 * rng.rand(n)).round(1)),
        "query_terms_in_body": np.minimum(1.0, (body / 12 + 0.2 * rng.rand(n)).round(1)),
        "embedding_similarity": (0.45 + 0.09 * topical + 0.12 * rng.randn(n)).round(2),
        "click_rate_30d": clicks.round(3),
        "click_rate_7d": like(clicks, 0.35).clip(0.0, 1.0).round(2),
        "dwell_time_s": np.where(visited, rng.gamma(2.0, 20.0 + 60.0 * clicks), 0.0).round(),
        "bounce_rate": np.where(visited, rng.beta(3.0, 3.0 + 6.0 * clicks), 0.0).round(2),
        "impressions_log": np.where(visited, 2.0 + 0.5 * fame + rng.gamma(2.0, 0.5, n), 0.0)
        .clip(0.0)
        .round(1),
        "pagerank": pagerank.round(1),
        "inlinks_log": np.clip(0.9 * pagerank + 0.7 * rng.randn(n), 0.0, None).round(1),
        "site_visits_log": np.clip(4.0 + 1.2 * fame + 1.0 * rng.randn(n), 0.0, None).round(1),
        "spam_score": rng.beta(1.3, 5.0, n).round(2),
        "freshness_days": np.minimum(age, 2000.0).round(),
        "url_depth": depth.astype(float),
        "url_length": (18.0 + 9.0 * depth + rng.poisson(12.0, n)).round(),
        "title_words": (2.0 + rng.poisson(6.0, n)).astype(float),
        "body_words_log": np.log10(length).round(1),
        "image_count": np.minimum(rng.geometric(0.15, n) - 1, 40).astype(float),
        "load_time_ms": (rng.lognormal(6.0, 0.5, n) / 10).round() * 10,
        "is_mobile_friendly": (rng.rand(n) < 0.75).astype(float),
        "server_shard": rng.randint(1, 9, n).astype(float),
    }


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path, nargs="?", default=FOLDER)
    main(**vars(parser.parse_args()))
