import json

import numpy as np
import pytest

from leanrank.data import RankingData, make_ranking
from leanrank.errors import FileError, InputError, ModelError
from leanrank.model import Model
from leanrank.rankers import RankBoost
from leanrank.selection import tune
from leanrank.selection.journal import Journal, pack, unpack

SETTINGS = {"measure": "map", "systems": ["domination"], "max_features": 3}


def written(path, *entries):
    with Journal(path, SETTINGS) as journal:
        for entry in entries:
            journal.add(entry)
    return path.read_bytes()


def test_a_line_that_was_cut_off_is_done_again(tmp_path):
    path = tmp_path / "j.jsonl"
    whole = written(path, {"trial": 0}, {"trial": 1})
    second = whole.rindex(b'{"sha256')
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
        (b"1 qid:1 1:0.5\n", "line 1: this is no journal of leanrank tune"),
        (b'{"a": 1}\n', "line 1: this is no journal of leanrank tune"),
        (b"[1]\n", "line 1: this is no journal"),
        (b"[" * 100_000 + b"\n", "line 1: this is no journal"),
        (b'{"entry": {"format": "leanrank-tune-journal", "version": 9}}\n', "has version 9"),
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
    model = Model.from_coef([0.1, 0.0, 1 / 3], feature_names=["a", "b", "c"])
    assert Model.from_dict(json.loads(json.dumps(model.to_dict())), "here") == model
    data = RankingData([[1.0], [2.0], [3.0]], [0, 1, 1])
    boosted = RankBoost(n_rounds=2).fit(data).to_model()
    assert Model.from_dict(json.loads(json.dumps(boosted.to_dict())), "here") == boosted


def test_every_damage_is_found(tmp_path):
    """No byte can change, and no line can go, move or come twice, without a sentence."""
    path = tmp_path / "j.jsonl"
    whole = written(path, {"trial": 0}, {"trial": 1}, {"trial": 2})
    lines = whole.splitlines(keepends=True)
    damaged = [
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(len(whole) - 1)
    ]
    header, first, second, third = lines
    damaged += [header + second + third, header + second + first, header + first + first]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"j\.jsonl(, line [1-4])?: ") as caught:
            Journal(path, SETTINGS)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == content
    path.write_bytes(header + first + b"{}\n" + third)
    with pytest.raises(InputError, match=r"line 3: .* damaged .* keep the 2 lines before it to go"):
        Journal(path, SETTINGS)
    path.write_bytes(header + first)
    with Journal(path, SETTINGS) as journal:
        assert journal.entries == [{"trial": 0}]


def test_a_second_search_on_one_journal_is_refused(tmp_path):
    path = tmp_path / "j.jsonl"
    with Journal(path, SETTINGS) as journal:
        journal.add({"trial": 0})
        with pytest.raises(FileError, match=r"j\.jsonl: another process is using this file"):
            Journal(path, SETTINGS)
    with Journal(path, SETTINGS) as journal:
        assert len(journal.entries) == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"seconds": -1}, "seconds is -1: a number from 0"),
        ({"kind": "other"}, "kind is 'other': 'system' or 'local'"),
        ({"at": 10_000}, "at is 10000: a whole number from 0 to"),
        ({"more": 1}, "the document has the unknown key 'more'"),
        ({"incomplete": 1}, "incomplete is 1: true or false"),
        ({"candidates": [{}]}, r"candidates\[0\] lacks the key 'name'"),
    ],
)
def test_trials_with_a_right_checksum_are_checked_all_the_same(tmp_path, change, message):
    data = make_ranking(12, 6, n_features=4, random_state=0)
    file = tmp_path / "j.jsonl"
    how = {"systems": ["domination"], "trials": 1, "measures": ("ndcg@10",), "journal": file}
    tune(data, **how)
    header, trial = (json.loads(line)["entry"] for line in file.read_text().splitlines())
    file.unlink()
    with Journal(file, header["settings"]) as journal:
        journal.add({**trial, **change})
    with pytest.raises(ModelError, match=rf"j\.jsonl, line 2: {message}"):
        tune(data, **how)
    one = trial["candidates"][0]
    for inner, sentence in [
        ({"values": {"ndcg@10": "AAAA"}}, "is not a list of numbers in base 64"),
        ({"values": {"ndcg@10": pack(np.zeros(3))}}, "has 3 values: one per query, 12"),
        ({"model": Model.from_coef([1.0]).to_dict()}, "has 1 features: 4 are expected"),
        ({"model": {}}, "lacks the key 'format'"),
    ]:
        file.unlink()
        with Journal(file, header["settings"]) as journal:
            journal.add({**trial, "candidates": [{**one, **inner}]})
        with pytest.raises(ModelError, match=sentence):
            tune(data, **how)
