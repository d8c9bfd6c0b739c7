"""Click logs of UBI and Metarank become the click log that preferences are made of."""

import json
from itertools import pairwise

import numpy as np
import pytest

from leanrank.data import (
    RankingData,
    click_preferences,
    estimate_propensities,
    make_clicks,
    make_ranking,
    read_clicks,
)
from leanrank.data.logs.clicks import COLUMNS, load_engine_clicks, read_engine_clicks
from leanrank.errors import DataWarning, FileError, InputError, ParseError

FEATURES = {
    "query": ["jazz"] * 3 + ["rock"] * 2,
    "document": list("abcxy"),
    "bm25": [1.0, 2, 3, 4, 5],
}


def ubi_query(query_id, text, *hits, time="2024-05-01T10:00:00Z"):
    listed = {"query_id": query_id, "user_query": text, "query_response_hit_ids": list(hits)}
    return listed | {"timestamp": time}


def ubi_event(query_id, object_id=None, ordinal=None, action="click"):
    attributes = {"object": {"object_id": object_id}, "position": {"ordinal": ordinal}}
    return {
        "action_name": action,
        "query_id": query_id,
        "timestamp": 1714557601000,
        "event_attributes": attributes,
    }


@pytest.fixture
def ubi(write, tmp_path):
    write(
        "ubi/ubi_queries.ndjson",
        ubi_query("u1", "jazz", "a", "b", "c"),
        {"_index": "ubi_queries", "_source": ubi_query("u2", "rock", "y", "x")},
        ubi_query("u3", "jazz", "b", "a", "c", time="2024-05-01T12:00:00.5+02:00"),
    )
    write(
        "ubi/ubi_events.ndjson",
        ubi_event("u1", "b", 2),
        ubi_event("u1", "c", 3, action="hover"),
        ubi_event("u2", "sku-9", 2),
    )
    return tmp_path / "ubi"


def rows(log):
    return list(zip(*log.table.to_pydict().values(), strict=True))


def test_ubi_rows(ubi):
    log = load_engine_clicks(ubi)
    first, second = "2024-05-01T10:00:00Z", "2024-05-01T12:00:00.5+02:00"
    assert rows(log) == [
        ("u1", "jazz", "a", 1, 0, first),
        ("u1", "jazz", "b", 2, 1, first),
        ("u1", "jazz", "c", 3, 0, first),
        ("u2", "rock", "y", 1, 0, first),
        ("u2", "rock", "x", 2, 1, first),
        ("u3", "jazz", "b", 1, 0, second),
        ("u3", "jazz", "a", 2, 0, second),
        ("u3", "jazz", "c", 3, 0, second),
    ]
    assert list(log.notes) == [
        f"{ubi}: 1 click on an object that is not in its list placed by its ordinal (the first: "
        "'sku-9')"
    ]


def test_ubi_to_preferences(ubi):
    with pytest.warns(DataWarning, match="placed by its ordinal"):
        clicks = read_engine_clicks(ubi, FEATURES)
    assert (clicks.n_lists, clicks.n_without_clicks) == (3, 1)
    ids = clicks.data.doc_ids
    winner, loser, _ = click_preferences(clicks)
    assert set(zip(ids[winner], ids[loser], strict=True)) == {("b", "a"), ("b", "c"), ("x", "y")}


def test_a_whole_log_through_ubi_gives_the_same_preferences_and_propensities(write, tmp_path):
    made = make_ranking(n_queries=10, docs_per_query=4, random_state=0)
    ids = [f"d{row}" for row in range(len(made))]
    documents = RankingData(made.X, made.y, [f"q{q}" for q in made.qid], doc_ids=ids)
    direct = make_clicks(documents, 3000, eta=1.0, swaps="adjacent", random_state=0)
    shown, clicked = [], []
    for at, (start, stop) in enumerate(pairwise(direct.list_ptr)):
        rows = direct.row[start:stop]
        hits = direct.data.doc_ids[rows].tolist()
        shown.append(ubi_query(f"u{at}", str(direct.qid[rows[0]]), *hits))
        clicked += [
            ubi_event(f"u{at}", hits[k]) for k in np.flatnonzero(direct.clicked[start:stop])
        ]
    write("ubi/ubi_queries.ndjson", *shown)
    write("ubi/ubi_events.ndjson", *reversed(clicked))
    back = read_engine_clicks(tmp_path / "ubi", documents)
    for name in ("winner", "loser", "weight"):
        ours, theirs = click_preferences(back), click_preferences(direct)
        np.testing.assert_array_equal(getattr(ours, name), getattr(theirs, name))
    np.testing.assert_array_equal(estimate_propensities(back), estimate_propensities(direct))


def test_what_does_not_fit_is_counted(write, tmp_path):
    write(
        "ubi/ubi_queries.ndjson",
        ubi_query("u1", "jazz", "a", "b", "a"),
        ubi_query("u1", "jazz", "c"),
        ubi_query("u2", "", "a"),
        ubi_query("u3", "jazz"),
    )
    write(
        "ubi/ubi_events.ndjson",
        ubi_event("u1", "a"),
        ubi_event("u1", "zz"),
        ubi_event("u9", "a"),
        ubi_event(None, "b"),
    )
    log = load_engine_clicks(tmp_path / "ubi")
    assert [row[2:5] for row in rows(log)] == [("a", 1, 1), ("b", 2, 0)]
    told = [sentence.partition(": ")[2] for sentence in log.notes]
    assert told == [
        "1 click without the id of a list left out (the first: 'b')",
        "1 document repeated in a list left out at the lower place (the first: 'a')",
        "1 click on a document that is not in its list left out (the first: 'zz')",
        "1 list with the id of another left out (the first: 'u1')",
        "1 list without query text left out (the first: 'u2')",
        "1 list without documents left out (the first: 'u3')",
        "1 click on a list that is not in the log left out (the first: 'u9')",
    ]


def metarank_ranking(ranking, *items, query=None):
    fields = [] if query is None else [{"name": "query", "value": query}]
    listed = [{"id": i, "fields": [{"name": "relevancy", "value": 2.0}]} for i in items]
    return {
        "event": "ranking",
        "id": ranking,
        "timestamp": "1599391467000",
        "items": listed,
        "fields": fields,
    }


def metarank_click(ranking, item, kind="click"):
    event = {"event": "interaction", "id": "e", "type": kind, "item": item}
    return event | {"ranking": ranking, "timestamp": "1599391468000"}


def test_metarank(write):
    file = write(
        "events.jsonl",
        {"event": "item", "id": "m", "item": "a", "timestamp": "1599391467000", "fields": []},
        metarank_ranking("r1", "a", "b", "c", query="jazz"),
        metarank_click("r1", "b"),
        metarank_click("r1", "c", kind="purchase"),
        metarank_ranking("r2", "b", "a"),
    )
    log = load_engine_clicks(file)
    time = "1599391467000"
    assert rows(log) == [
        ("r1", "jazz", "a", 1, 0, time),
        ("r1", "jazz", "b", 2, 1, time),
        ("r1", "jazz", "c", 3, 0, time),
        ("r2", "r2", "b", 1, 0, time),
        ("r2", "r2", "a", 2, 0, time),
    ]
    assert "1 list without a query taken as a query of its own" in log.notes[0]
    bought = load_engine_clicks(file, actions=["click", "purchase"])
    assert [row[4] for row in rows(bought)] == [0, 1, 1, 0, 0]


@pytest.mark.parametrize("suffix", [".parquet", ".csv"])
def test_the_written_table_reads_back_the_same(ubi, tmp_path, suffix):
    pytest.importorskip("pyarrow")
    target = tmp_path / f"clicks{suffix}"
    log = load_engine_clicks(ubi)
    log.write(target)
    assert log.sizes == {"lists": 3, "clicks": 2, "rows": 8}
    back, direct = read_clicks(target, FEATURES), read_clicks(log.table, FEATURES)
    for name in ("row", "position", "clicked", "list_ptr"):
        np.testing.assert_array_equal(getattr(back, name), getattr(direct, name))


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        ({"event": "rank"}, "line 2: the event is 'rank': Metarank has ranking, interaction, item"),
        (metarank_click("r", None), "line 2: the item is missing"),
        ({"event": "ranking", "id": "r"}, "line 2: items is missing, not a list"),
        ({"event": "ranking", "id": "r", "items": [{}]}, "line 2: the id of an item is missing"),
    ],
)
def test_bad_events(write, event, problem):
    file = write("e.jsonl", metarank_click("r", "a"), event)
    with pytest.raises(ParseError) as caught:
        rows(load_engine_clicks(file))
    assert str(caught.value).startswith(f"{file}, {problem}")


@pytest.mark.parametrize(
    ("event", "problem"),
    [
        (ubi_event("u1", "a", "2"), "the ordinal is '2'"),
        (ubi_event("u1"), "a click has an object.object_id, or a position.ordinal"),
        (ubi_event({}, "a"), "the query_id is an object: an identifier"),
    ],
)
def test_bad_ubi_events(write, ubi, event, problem):
    write("ubi/ubi_events.ndjson", event)
    with pytest.raises(ParseError, match=problem):
        rows(load_engine_clicks(ubi))


def test_logs_that_are_not_there(tmp_path, ubi, write):
    with pytest.raises(FileError, match="there is no such file"):
        load_engine_clicks(tmp_path / "none")
    with pytest.raises(InputError, match=r"written as \.parquet or \.csv"):
        load_engine_clicks(ubi).write(tmp_path / "clicks.txt")
    (ubi / "ubi_events.ndjson").unlink()
    with pytest.raises(FileError, match=r"holds no ubi_events\*\.json"):
        load_engine_clicks(ubi)
    write("ubi/ubi_events.ndjson", ubi_event("u1", "a"))
    with pytest.raises(InputError, match="no event is a click \\(buy\\)"):
        rows(load_engine_clicks(ubi, actions="buy"))
    write("ubi/ubi_queries.ndjson", json.dumps(ubi_query("u1", "jazz")))
    with pytest.raises(InputError, match="there is no list with a query and documents"):
        rows(load_engine_clicks(ubi))
    assert tuple(COLUMNS[:5]) == ("session", "query", "document", "position", "clicked")
