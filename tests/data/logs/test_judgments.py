"""Judgments of Quepid, of the search relevance workbench, and of TREC."""

import gzip

import pytest

from leanrank.data.logs.judgments import read_judgments
from leanrank.errors import DataWarning, InputError, ParseError


def rated(qrels):
    return list(zip(qrels.qid.tolist(), qrels.doc_id.tolist(), qrels.label.tolist(), strict=True))


EXPECTED = [("blue, jazz", "a", 3.0), ("blue, jazz", "b", 0.0), ("rock", "a", 1.5)]


def test_three_formats(write):
    files = [
        write("q.csv", "query,docid,rating", '"blue, jazz",a,3', '"blue, jazz",b,0', "rock,a,1.5"),
        write(
            "long.csv",
            "\ufeffTeam Name,Query Text,Doc ID,Doc Position,Rating",
            'we,"blue, jazz",a,1,3',
            'we,"blue, jazz",b,2,0',
            "",
            "we,rock,a,1,1.5",
        ),
    ]
    ratings = [{"docId": "a", "rating": "3"}, {"docId": "b", "rating": 0}]
    workbench = {
        "judgmentRatings": [
            {"query": "blue, jazz", "ratings": ratings},
            {"query": "rock", "ratings": [{"docId": "a", "rating": "1.5"}]},
        ]
    }
    files.append(write("w.json", workbench, indent=2))
    files.append(write("hits.json", {"hits": {"hits": [{"_id": "1", "_source": workbench}]}}))
    for file in files:
        assert rated(read_judgments(file)) == EXPECTED
        packed = file.with_name(file.name + ".gz")
        packed.write_bytes(gzip.compress(file.read_bytes()))
        assert rated(read_judgments(packed)) == EXPECTED
    assert rated(read_judgments(write("q.txt", "rock 0 a 2"))) == [("rock", "a", 2.0)]
    assert rated(read_judgments(write("q.dat", "query,docid,rating", "q,d,1"), format="quepid"))


def test_blank_and_repeated_ratings_are_counted(write):
    file = write("q.csv", "query,docid,rating", "q,a,1", "q,b,", "q,a,1.0", "q,c,", "q,d,2")
    with pytest.warns(DataWarning) as caught:
        qrels = read_judgments(file)
    assert [str(w.message) for w in caught] == [
        f"{file}: 2 entries without a rating left out (the first: line 3)",
        f"{file}: 1 entry of a document rated before left out (the first: line 4)",
    ]
    assert rated(qrels) == [("q", "a", 1.0), ("q", "d", 2.0)]


@pytest.mark.parametrize(
    ("name", "lines", "problem"),
    [
        ("q.csv", ["q,a,1"], "line 1: the header has no column for the query"),
        ("q.csv", ["", "q,a,1"], "line 1: the header has no column for the query"),
        ("q.csv", ["query,docid,rating", "q,a"], "line 2: the line has fewer cells"),
        (
            "q.csv",
            ["query,docid,rating", "q,a,high"],
            "line 2: the rating of document 'a' is 'high'",
        ),
        ("q.csv", ["query,docid,rating", "q,a,٣"], "line 2: the rating of document 'a'"),
        ("q.csv", ["query,docid,rating", 'q,"a,1'], "line 2: this is not CSV"),
        ("q.csv", ["query,docid,rating", ",a,1"], "line 2: the query is '': an identifier"),
        (
            "q.csv",
            ["query,docid,rating", "q,a,1", "", "q,a,2"],
            "line 4: document 'a' of query 'q' is rated 2, and 1 in line 2: keep one rating",
        ),
        ("w.json", ['{"ratings": 1}'], "line 1: expected {"),
        ("w.json", ['{"query": "q", "ratings": [3]}'], "line 1: the docId is missing"),
        ("w.json", ['{"query": "q", "ratings": [{"docId": "a", "rating": "x"}]}'], "line 1: the"),
    ],
)
def test_bad_judgments(write, name, lines, problem):
    file = write(name, *lines)
    with pytest.raises(ParseError) as caught:
        read_judgments(file)
    assert str(caught.value).startswith(f"{file}, {problem}")


def test_nothing_to_read(write):
    for file in (write("q.csv", "query,docid,rating"), write("w.json"), write("q.txt")):
        with pytest.raises(InputError, match="there is no judgment in this file"):
            read_judgments(file)
    with pytest.raises(InputError, match="format='trec' is not known"):
        read_judgments("q.csv", format="trec")
