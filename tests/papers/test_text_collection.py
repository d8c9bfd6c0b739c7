import json
import os
import tarfile
from pathlib import Path

import numpy as np
import pytest

from leanrank.errors import FileError, InputError, ParseError
from papers.public_sets import fetch

REAL = os.environ.get("LEANRANK_DATA")

SGML = """<!DOCTYPE lewis SYSTEM "lewis.dtd">
<REUTERS TOPICS="YES" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5544" NEWID="1">
<DATE>26-FEB-1987</DATE>
<TOPICS><D>cocoa</D><D>sugar</D></TOPICS>
<PLACES><D>brazil</D></PLACES>
<UNKNOWN>&#5;&#5;C T</UNKNOWN>
<TEXT>&#2;
<TITLE>BAHIA COCOA &lt;REVIEW></TITLE>
<DATELINE>    SALVADOR, Feb 26 - </DATELINE><BODY>Showers continued
in the cocoa zone. Reuter
&#3;</BODY></TEXT>
</REUTERS>
<REUTERS TOPICS="NO" LEWISSPLIT="TRAIN" CGISPLIT="TRAINING-SET" OLDID="5545" NEWID="2">
<TOPICS></TOPICS>
<TEXT TYPE="UNPROC">&#2;
Qtly div caf\xe9 &amp; bar
&#3;</TEXT>
</REUTERS>
"""
SECOND = """<REUTERS TOPICS="YES" LEWISSPLIT="TEST" OLDID="1" NEWID="3">
<TOPICS><D>earn</D></TOPICS>
<TEXT TYPE="BRIEF">&#2;
<TITLE>COCOA ZONE NET UP</TITLE>
&#3;</TEXT>
</REUTERS>
"""
ARTICLE = {
    "id": 1,
    "lewissplit": "TRAIN",
    "has_topics": "YES",
    "topics": ["cocoa"],
    "title": "cocoa",
    "body": "showers",
}


def write(folder, *articles):
    text = "".join(json.dumps({**ARTICLE, **changes}) + "\n" for changes in articles)
    (folder / "reuters21578.jsonl").write_text(text)


@pytest.fixture
def archive(tmp_path):
    for name, text in (("reut2-000.sgm", SGML), ("reut2-001.sgm", SECOND)):
        (tmp_path / name).write_text(text, encoding="latin-1")
    folder = tmp_path / "data"
    folder.mkdir()
    with tarfile.open(folder / "reuters21578.tar.gz", "w:gz") as packed:
        for name in ("reut2-001.sgm", "reut2-000.sgm"):
            packed.add(tmp_path / name, name)
    return folder


def test_from_the_published_archive(archive):
    collection = fetch("Reuters-21578", data_dir=archive)
    lines = [
        json.loads(s) for s in (archive / "reuters21578.jsonl").read_text("utf-8").splitlines()
    ]
    assert lines == [
        {
            "id": 1,
            "lewissplit": "TRAIN",
            "has_topics": "YES",
            "topics": ["cocoa", "sugar"],
            "title": "BAHIA COCOA <REVIEW>",
            "body": "Showers continued in the cocoa zone. Reuter",
        },
        {
            "id": 2,
            "lewissplit": "TRAIN",
            "has_topics": "NO",
            "topics": [],
            "title": "",
            "body": "Qtly div café & bar",
        },
        {
            "id": 3,
            "lewissplit": "TEST",
            "has_topics": "YES",
            "topics": ["earn"],
            "title": "COCOA ZONE NET UP",
            "body": "",
        },
    ]
    assert collection.part.tolist() == ["train", "", "test"]
    assert collection.topics == ("cocoa", "earn", "sugar")
    assert "net" not in collection.words  # only in a test article


def test_topics_are_ranking_tasks(tmp_path):
    write(
        tmp_path,
        {},
        {"id": 2, "topics": ["earn"], "title": "net"},
        {"id": 3, "topics": [], "lewissplit": "NOT-USED"},
        {"id": 4, "topics": ["earn", "cocoa"], "lewissplit": "TEST"},
        {"id": 5, "topics": ["earn"], "has_topics": "BYPASS"},
    )
    collection = fetch("reuters", data_dir=tmp_path)
    train, test = collection.topic("earn"), collection.topic("earn", "test")
    assert train.y.tolist() == [0, 1]
    assert train.doc_ids.tolist() == ["1", "2"]
    assert (test.y.tolist(), test.doc_ids.tolist()) == ([1], ["4"])
    assert train.n_queries == 1
    assert train.feature_names == collection.words
    np.testing.assert_allclose(np.sqrt(train.X.multiply(train.X).sum(axis=1)), 1)
    assert "5 documents (2 train, 1 test)" in repr(collection)
    with pytest.raises(InputError, match="no topic 'gold'"):
        collection.topic("gold")
    with pytest.raises(InputError, match="choose from test, train"):
        collection.topic("earn", "vali")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("{", "line 2: not an article"),
        ('{"id": 1}', "line 2: not an article"),
        ("[]", "line 2: not an article"),
        (json.dumps({**ARTICLE, "topics": "cocoa"}), "line 2: topics has the wrong type"),
    ],
)
def test_bad_lines(tmp_path, text, words):
    write(tmp_path, {})
    with open(tmp_path / "reuters21578.jsonl", "a") as stream:
        stream.write(text + "\n")
    with pytest.raises(ParseError, match=words):
        fetch("reuters", data_dir=tmp_path)


def test_nothing_to_train_on(tmp_path):
    write(tmp_path, {"lewissplit": "TEST"})
    with pytest.raises(FileError, match="no training articles"):
        fetch("reuters", data_dir=tmp_path)


def test_an_archive_without_articles(tmp_path):
    (tmp_path / "x").touch()
    with tarfile.open(tmp_path / "reuters21578.tar.gz", "w:gz") as packed:
        packed.add(tmp_path / "x", "x")
    with pytest.raises(FileError, match=r"holds no \.sgm files"):
        fetch("reuters", data_dir=tmp_path)


@pytest.mark.realdata
@pytest.mark.skipif(
    not REAL or not Path(REAL, "reuters21578.jsonl").exists(), reason="LEANRANK_DATA has no Reuters"
)
def test_the_real_reuters():
    collection = fetch("reuters", data_dir=REAL)
    assert (collection.part == "train").sum() == 9603
    assert (collection.part == "test").sum() == 3299
    assert collection.topic("earn").y.sum() == 2877
    assert collection.topic("earn", "test").y.sum() == 1087
