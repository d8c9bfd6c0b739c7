"""Random damage to logs: every reader gives data or one sentence, never a raw exception.

``LEANRANK_FUZZ`` sets the number of mutations (default 4,000, shared by the readers); ``make fuzz``
has a target for them.
"""

import json
import os
import random
import warnings

import pytest

from leanrank.data.logs import feature_log
from leanrank.data.logs.clicks import load_engine_clicks
from leanrank.data.logs.judgments import match_judgments, read_judgments
from leanrank.data.trec import Qrels
from leanrank.errors import LeanrankError
from tests.data.logs.conftest import ltr_hit, ltr_response
from tests.data.logs.test_clicks import metarank_click, metarank_ranking, ubi_event, ubi_query

N_MUTATIONS = int(os.environ.get("LEANRANK_FUZZ", "4000")) // 20
WORDS = b'" { } [ ] : , null NaN 1e999 \\ud800 \\u0000 true - {} "" 1.5 = \xff \xc2\xa0'.split()
WORDS += [b"9" * 400, b"\n", b"\r", b"\0", b"\t", "٣".encode()]


def lines(*records, indent=None):
    return "\n".join(json.dumps(record, indent=indent) for record in records).encode()


LTR = [ltr_response("jazz", ltr_hit("a", f=1.5, g=None)), ltr_response("q", ltr_hit("b", f=2))]
SOLR = {"responseHeader": {"params": {"q": "jazz"}}, "response": {"docs": [
    {"id": "a", "[features]": "f=1.5,g=2"}, {"id": "b", "[features]": "g=0.5"}]}}  # fmt: skip
RATED = {"judgmentRatings": [{"query": "jazz", "ratings": [{"docId": "a", "rating": "3"}]}]}
UBI_QUERIES = lines(ubi_query("u1", "jazz", "a", "b"), ubi_query("u2", "rock", "c"))
UBI_EVENTS = lines(ubi_event("u1", "a", 1), ubi_event("u2", "zz", 1))
METARANK = lines(metarank_ranking("r", "a", "b", query="q"), metarank_click("r", "a"))


def join(file):
    return match_judgments(file, Qrels(["jazz", "q"], ["a", "b"], [1, 0])).notes


def clicks(file):
    log = load_engine_clicks(file)
    json.dumps(log.table.to_pydict()).encode()
    return log.notes


CASES = {
    "ltr.ndjson": (lines(*LTR), join),
    "ltr.json": (lines(LTR, indent=1), join),
    "solr.json": (lines(SOLR, indent=1), lambda file: list(feature_log(file))),
    "quepid.csv": (b'query,docid,rating\njazz,a,3\n"a, b",b,\nrock,c,0.5\n', read_judgments),
    "workbench.json": (lines(RATED, indent=1), read_judgments),
    "qrels.txt": (b"jazz 0 a 1\nrock 0 b 0\n", read_judgments),
    "metarank.jsonl": (METARANK, clicks),
    "ubi_queries.ndjson": (UBI_QUERIES, clicks),
    "ubi_events.ndjson": (UBI_EVENTS, clicks),
}


def mutate(content, rng):
    content = bytearray(content)
    for _ in range(rng.choice((1, 1, 1, 2, 3))):
        at = rng.randrange(len(content) + 1)
        kind = rng.randrange(5)
        if kind == 0:
            content[at:at] = rng.choice(WORDS)
        elif kind == 1:
            content[at : at + 1] = rng.choice(WORDS)
        elif kind == 2:
            content[at : at + 1] = bytes([rng.randrange(256)])
        elif kind == 3:
            del content[at : at + rng.choice((1, 1, 2, 9))]
        else:
            piece = content[at : at + rng.randrange(1, 30)]
            to = rng.randrange(len(content) + 1)
            content[to:to] = piece
    return bytes(content)


@pytest.mark.parametrize("name", CASES)
def test_damage_is_one_sentence(name, tmp_path):
    content, read = CASES[name]
    rng = random.Random(name)
    ubi = {"ubi_queries.ndjson": UBI_QUERIES, "ubi_events.ndjson": UBI_EVENTS}
    for other, fine in ubi.items() if name in ubi else []:
        (tmp_path / other).write_bytes(fine)
    target = tmp_path if name in ubi else tmp_path / name
    complaints = []
    for _ in range(N_MUTATIONS):
        (tmp_path / name).write_bytes(mutate(content, rng))
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            complaints.append(complaint(read, target))
    told = [text.replace(str(tmp_path), "") for text in complaints if text]
    assert N_MUTATIONS // 20 < len(told) < N_MUTATIONS - N_MUTATIONS // 20
    assert all(len(text) <= 300 and "\n" not in text for text in told)


def complaint(read, target):
    """Return the sentence that a reader raises, or nothing."""
    try:
        read(target)
    except LeanrankError as error:
        return str(error)
    return ""
