"""Write the sample set as a search engine and its judges leave it: ``make_engine_logs.py DIR``.

Each part becomes a feature log of the learning-to-rank plugin of Elasticsearch and OpenSearch, with
one response per line, and a Quepid file of ratings. Some documents were not judged, some that were
are not in the log, and some features have no value, as happens.
"""

from __future__ import annotations

import argparse
import csv
import json
from pathlib import Path

from leanrank.data import RankingData, load_sample


def main(folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for name, data in zip(("train", "vali", "test"), load_sample(), strict=True):
        write_log(data, folder / f"{name}.ndjson")
        write_ratings(data, folder / f"{name}.csv")


def write_log(data: RankingData, path: Path) -> None:
    assert data.doc_ids is not None
    with path.open("w", encoding="utf-8") as out:
        for q, query in enumerate(data.query_ids.tolist()):
            rows = range(data.query_ptr[q], data.query_ptr[q + 1])
            hits = [
                {
                    "_id": str(data.doc_ids[row]),
                    "fields": {"_ltrlog": [{"main": _entry(data, row)}]},
                }
                for row in rows
                if row % 97 != 5
            ]
            out.write(json.dumps({"query": f"query {query}", "hits": {"hits": hits}}) + "\n")


def write_ratings(data: RankingData, path: Path) -> None:
    assert data.doc_ids is not None
    with path.open("w", encoding="utf-8", newline="") as out:
        table = csv.writer(out)
        table.writerow(("query", "docid", "rating"))
        rated = zip(data.qid.tolist(), data.doc_ids.tolist(), data.y.tolist(), strict=True)
        for row, (query, document, label) in enumerate(rated):
            if row % 89 != 7:
                table.writerow((f"query {query}", document, f"{label:g}"))


def _entry(data: RankingData, row: int) -> list[dict[str, object]]:
    """List the features as the plugin does: a feature that did not match has no value."""
    assert data.feature_names is not None
    values = zip(data.feature_names, data.X[row].tolist(), strict=True)
    return [{"name": name} | ({"value": value} if value != 0.0 else {}) for name, value in values]


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("folder", type=Path)
    main(**vars(parser.parse_args()))
