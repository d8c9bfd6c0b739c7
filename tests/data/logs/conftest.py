"""Small logs as engines write them."""

import json

import pytest


def ltr_hit(document, **features):
    entries = [{"name": name} | ({} if v is None else {"value": v}) for name, v in features.items()]
    return {"_index": "shop", "_id": document, "fields": {"_ltrlog": [{"log_entry1": entries}]}}


def ltr_response(query, *hits):
    return {"query": query, "took": 2, "hits": {"total": {"value": len(hits)}, "hits": list(hits)}}


@pytest.fixture
def write(tmp_path):
    """Write records to a file, one per line, or one document with ``indent``."""

    def write_file(name, *records, indent=None):
        file = tmp_path / name
        texts = [r if isinstance(r, str) else json.dumps(r, indent=indent) for r in records]
        file.parent.mkdir(exist_ok=True)
        file.write_text("\n".join(texts) + "\n", encoding="utf-8")
        return file

    return write_file


@pytest.fixture
def ltr_log(write):
    return write(
        "log.ndjson",
        ltr_response("jazz", ltr_hit("a", bm25=1.5, age=3), ltr_hit("b", bm25=0.5, age=None)),
        ltr_response("rock", ltr_hit("a", bm25=0.25, age=1), ltr_hit("c", bm25=2.0, age=9)),
    )
