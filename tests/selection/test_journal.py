import json

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.errors import FileError, InputError
from leanrank.model import LinearModel
from leanrank.rankers import RankBoost
from leanrank.selection.journal import Journal, pack, read_model, unpack

SETTINGS = {"measure": "map", "systems": ["domination"], "max_features": 3}


def written(path, *entries):
    with Journal(path, SETTINGS) as journal:
        for entry in entries:
            journal.add(entry)
    return path.read_bytes()


def test_a_line_that_was_cut_off_is_done_again(tmp_path):
    path = tmp_path / "j.jsonl"
    whole = written(path, {"trial": 0}, {"trial": 1})
    second = whole.rindex(b"{")
    header = whole.index(b"\n") + 1
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with Journal(path, SETTINGS) as journal:
            n_whole = 0 if end <= second - 1 else 1
            assert len(journal.entries) == n_whole
            for trial in range(n_whole, 2):
                journal.add({"trial": trial})
        assert path.read_bytes() == whole, f"cut at {end}"
    assert header < second


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("measure", "ndcg@10", 'whose measure is "map" and not "ndcg@10"'),
        ("max_features", None, "whose max_features is 3 and not null"),
        ("new", 1, "whose new is null and not 1"),
    ],
)
def test_a_journal_of_another_search_is_refused(tmp_path, name, value, message):
    path = tmp_path / "j.jsonl"
    before = written(path, {"trial": 0})
    with pytest.raises(InputError, match=message):
        Journal(path, {**SETTINGS, name: value})
    assert path.read_bytes() == before


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"1 qid:1 1:0.5\n", "line 1: this is no line of a journal"),
        (b'{"a": 1}\n', "line 1: this is no journal of leanrank tune"),
        (b"[1]\n", "line 1: this is no journal"),
        (b'{"format": "leanrank-tune-journal", "version": 9}\n', "has version 9"),
    ],
)
def test_other_files_are_refused_and_left_alone(tmp_path, content, message):
    path = tmp_path / "j.jsonl"
    path.write_bytes(content)
    with pytest.raises(InputError, match=message):
        Journal(path, SETTINGS)
    assert path.read_bytes() == content


def test_a_file_without_a_whole_line_that_is_no_journal_is_left_alone(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_bytes(b"my notes, without an end of line")
    with pytest.raises(InputError, match="no journal"):
        Journal(path, SETTINGS)
    assert path.read_bytes() == b"my notes, without an end of line"


def test_a_place_where_nothing_can_be_written(tmp_path):
    with pytest.raises(FileError, match="cannot be used"):
        Journal(tmp_path / "no" / "j.jsonl", SETTINGS)


def test_numbers_and_models_survive_exactly():
    values = np.array([0.1, 1 / 3, np.nan, -0.0, 5e-324])
    again = unpack(json.loads(json.dumps(pack(values))))
    assert again.tobytes() == values.tobytes()
    model = LinearModel.from_coef([0.1, 0.0, 1 / 3], feature_names=["a", "b", "c"])
    assert read_model(json.loads(json.dumps(model.to_dict())), "here") == model
    data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 1])
    boosted = RankBoost(n_rounds=2).fit(data).to_model()
    assert read_model(json.loads(json.dumps(boosted.to_dict())), "here") == boosted
