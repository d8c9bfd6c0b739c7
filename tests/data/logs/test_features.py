"""Feature logs of Elasticsearch, OpenSearch and Solr."""

import gzip
import json

import pytest

from leanrank.data.logs import feature_log
from leanrank.errors import FileError, ParseError
from tests.data.logs.conftest import ltr_hit, ltr_response

EXPECTED = [
    ("jazz", "a", {"bm25": 1.5, "age": 3.0}),
    ("jazz", "b", {"bm25": 0.5, "age": None}),
    ("rock", "a", {"bm25": 0.25, "age": 1.0}),
    ("rock", "c", {"bm25": 2.0, "age": 9.0}),
]


def test_one_response_per_line(ltr_log):
    assert list(feature_log(ltr_log)) == EXPECTED
    packed = ltr_log.with_suffix(".ndjson.gz")
    packed.write_bytes(gzip.compress(ltr_log.read_bytes()))
    assert list(feature_log(packed)) == EXPECTED


@pytest.mark.parametrize("indent", [None, 2])
def test_other_shapes_of_the_same_log(ltr_log, write, indent):
    records = [json.loads(line) for line in ltr_log.read_text().splitlines()]
    listed = write("list.json", records, indent=indent)
    wrapped = [{"qid": r.pop("query"), "response": r} for r in map(dict, records)]
    several = {"responses": [{"query": r["query"], "hits": r["hits"]} for r in records]}
    for file in (
        listed,
        write("wrapped.ndjson", *wrapped),
        write("msearch.json", several, indent=indent),
    ):
        assert list(feature_log(file)) == EXPECTED
    hits = [{"query": q, **ltr_hit(d, **f)} for q, d, f in EXPECTED]
    assert list(feature_log(write("hits.ndjson", *hits))) == EXPECTED


def test_a_directory_of_responses_is_named_by_its_files(write, tmp_path):
    for query, *hits in (("rock", ltr_hit("c", bm25=1)), ("jazz", ltr_hit("a", bm25=2))):
        response = ltr_response(query, *hits)
        del response["query"]
        write(f"answers/{query}.json", response, indent=1)
    found = list(feature_log(tmp_path / "answers"))
    assert [(q, d) for q, d, _ in found] == [("jazz", "a"), ("rock", "c")]
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileError, match="holds no \\*\\.json"):
        list(feature_log(tmp_path / "empty"))


def test_solr_dense_and_sparse(write):
    documents = [
        {"id": "d1", "[features]": "bm25_title=0.255,spam=0.1"},
        {"id": ["d2"], "[features]": "spam=1.0E-4"},
        {"id": 7, "[features]": ""},
    ]
    answer = {
        "responseHeader": {"status": 0, "params": {"q": "jazz"}},
        "response": {"numFound": 3, "docs": documents},
    }
    found = list(feature_log(write("solr.json", answer, indent=2)))
    assert found == [
        ("jazz", "d1", {"bm25_title": 0.255, "spam": 0.1}),
        ("jazz", "d2", {"spam": 1e-4}),
        ("jazz", "7", {}),
    ]
    renamed = [{"q": "x", "docs": [{"id": "d", "fv": "a=1"}]}]
    found = list(feature_log(write("fv.ndjson", *renamed), feature_field="fv"))
    assert found == [("x", "d", {"a": 1.0})]


def test_fields_by_path(write):
    hit = ltr_hit("1", bm25=1.0) | {"_source": {"sku": "s-1"}}
    record = {"request": {"params": {"keywords": "jazz"}}, "hits": {"hits": [hit]}}
    found = feature_log(
        write("log.ndjson", record),
        query_field="request.params.keywords",
        document_field="_source.sku",
    )
    assert list(found) == [("jazz", "s-1", {"bm25": 1.0})]


FINE = json.dumps(ltr_response("q", ltr_hit("d", a=1.0)))


@pytest.mark.parametrize(
    ("record", "problem"),
    [
        ('{"query": "q", "hits"', "line 2, column 22: this is not JSON (Expecting ':' delimiter)"),
        ("[1]", "line 2: expected a JSON object, found a list"),
        ("[" * 100_000, "line 2: this JSON cannot be used"),
        ({"query": "q"}, "line 2: this is no search response: it has neither hits.hits"),
        (
            {"error": {"reason": "no such index [shop]"}, "status": 404},
            "line 2: the engine answered with an error: no such index [shop]",
        ),
        (
            {"hits": {"hits": [ltr_hit("d", a=1)]}},
            "line 2: no query is named (looked at query, qid,",
        ),
        (ltr_response({"match": 1}, ltr_hit("d", a=1)), "line 2: no query is named"),
        (ltr_response("q", {"fields": {"_ltrlog": []}}), "line 2: no document is named"),
        (ltr_response("q", {"_id": "d"}), "line 2: document 'd' has no features that can be read"),
        (ltr_response("q", "d"), "line 2: no document is named"),
        (ltr_response("q", ltr_hit(1.5, a=1)), "line 2: the document (_id) is 1.5: an identif"),
        (
            ltr_response("q", ltr_hit("d", a=[3])),
            "line 2: the feature 'a' of document 'd' is a list",
        ),
        (
            ltr_response("q", ltr_hit("d", a="1e999")),
            "line 2: the feature 'a' of document 'd' is '1e999'",
        ),
        (
            {"q": "q", "docs": [{"id": "d", "[features]": "a=1,b"}]},
            "line 2: the name of a feature of document 'd' is ''",
        ),
        (
            {"q": "q", "docs": [{"id": "d", "[features]": "a=1,a=2"}]},
            "line 2: document 'd' has the feature 'a' twice, with other values",
        ),
    ],
)
def test_bad_records_are_named_by_line(write, record, problem):
    file = write("log.ndjson", FINE, record)
    with pytest.raises(ParseError) as caught:
        list(feature_log(file))
    assert str(caught.value).startswith(f"{file}, {problem}")
    assert len(str(caught.value).removeprefix(str(file))) <= 300


def test_bad_records_of_a_document_are_named_by_number(write):
    file = write("log.json", [ltr_response("q", ltr_hit("d", a=1)), {"took": 1}], indent=2)
    with pytest.raises(ParseError, match="record 2: this is no search response"):
        list(feature_log(file))


def test_a_log_is_read_lazily(write):
    file = write("log.ndjson", FINE, "not JSON")
    assert next(feature_log(file)) == ("q", "d", {"a": 1.0})
