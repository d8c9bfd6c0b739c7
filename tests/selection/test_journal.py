import json

import numpy as np
import pytest

from leanrank.data import RankingData, make_ranking
from leanrank.errors import FileError, InputError
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
    for end in [*range(0, len(whole), 7), second - 1, second, len(whole) - 1]:
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
        ("measure", "ndcg@10", "not the same measure"),
        ("max_features", None, "not the same max_features"),
        ("new", 1, "not the same new"),
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
        (b"1 qid:1 1:0.5\n", "line 1"),
        (b'{"a": 1}\n', "line 1"),
        (b"[1]\n", "line 1"),
        (b"[" * 100_000 + b"\n", "line 1"),
        (b'{"entry": {"format": "leanrank-tune-journal", "version": 9}}\n', "line 1"),
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
    with pytest.raises(InputError, match="line 1"):
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
        whole[:at] + bytes([whole[at] ^ 1]) + whole[at + 1 :] for at in range(0, len(whole) - 1, 3)
    ]
    header, first, second, third = lines
    damaged += [header + second + third, header + second + first, header + first + first]
    for content in damaged:
        path.write_bytes(content)
        with pytest.raises(InputError, match=r"j\.jsonl: .*") as caught:
            Journal(path, SETTINGS)
        assert "\n" not in str(caught.value)
        assert path.read_bytes() == content
    path.write_bytes(header + first + b"{}\n" + third)
    with pytest.raises(InputError, match="line 3 does not fit its checksum"):
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
    "change",
    [
        {"seconds": None},
        {"candidates": [{}]},
        {"candidates": 3},
        {"values": {"ndcg@10": "AAAA"}},
        {"model": {}},
    ],
)
def test_a_trial_that_cannot_be_used_is_named(tmp_path, change):
    data = make_ranking(12, 6, n_features=4, random_state=0)
    file = tmp_path / "j.jsonl"
    how = {"systems": ["domination"], "trials": 1, "measures": ("ndcg@10",), "journal": file}
    tune(data, **how)
    header, trial = (json.loads(line)["entry"] for line in file.read_text().splitlines())
    file.unlink()
    if not change.keys() & {"seconds", "candidates"}:
        change = {"candidates": [{**trial["candidates"][0], **change}]}
    with Journal(file, header["settings"]) as journal:
        journal.add({**trial, **change})
    with pytest.raises(InputError, match=r"j\.jsonl: .* a trial cannot be read"):
        tune(data, **how)
