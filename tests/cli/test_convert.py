import json

import numpy as np
import pytest

from leanrank.data import load
from leanrank.model import Model


def same(a, b):
    np.testing.assert_array_equal(a.X, b.X)
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.query_ptr, b.query_ptr)
    assert [str(q) for q in a.query_ids] == [str(q) for q in b.query_ids]


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".arrow", ".letor.gz"])
def test_there_and_back(run, files, suffix):
    if suffix != ".letor.gz":
        pytest.importorskip("pyarrow")
    ran = run("convert", "train.txt", f"copy{suffix}")
    assert (ran.code, ran.err) == (0, "")
    assert f"Data written to copy{suffix}" in ran.out
    assert run("convert", f"copy{suffix}", "back.txt").code == 0
    same(load("train.txt"), load("back.txt"))


def test_standard_output_holds_nothing_but_the_data(run, files):
    ran = run("convert", "train.txt", "-")
    assert (ran.code, ran.err) == (0, "")
    (files / "copy.txt").write_text(ran.out)
    same(load("train.txt"), load("copy.txt"))


def test_formats_by_name(run, files):
    (files / "train.data").write_bytes((files / "train.txt").read_bytes())
    assert run("convert", "train.data", "copy.dat2", "--format", "letor", "--to", "letor").code == 0
    same(load("train.txt"), load("copy.dat2", format="letor"))


def test_json(run, files):
    ran = run("convert", "train.txt", "copy.letor", "--json")
    result = json.loads(ran.out)
    assert (result["target"], result["queries"], result["features"]) == ("copy.letor", 12, 6)


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["none.txt", "b.txt"], "none.txt: there is no such file"),
        (["train.txt", "b.xyz"], "b.xyz: the suffix names no known format"),
        (["train.txt", "no/b.txt"], "no/b.txt: the directory no does not exist"),
        (["train.txt", "-", "--json"], "--json and a result both go to standard output"),
    ],
)
def test_faults(run, files, words, message):
    before = sorted(files.iterdir())
    ran = run("convert", *words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {message}")
    assert ran.err.count("\n") == 1
    assert sorted(files.iterdir()) == before


def test_a_click_log_becomes_a_table(run, tmp_path, monkeypatch):
    pytest.importorskip("pyarrow")
    monkeypatch.chdir(tmp_path)
    (tmp_path / "ubi").mkdir()
    shown = {"query_id": "u", "user_query": "jazz", "query_response_hit_ids": ["a", "b"]}
    click = {"action_name": "tap", "query_id": "u", "event_attributes": {"object": {}}}
    click["event_attributes"] = {"object": {"object_id": "b"}}
    (tmp_path / "ubi" / "ubi_queries.ndjson").write_text(json.dumps(shown))
    (tmp_path / "ubi" / "ubi_events.ndjson").write_text(json.dumps(click))
    ran = run("convert", "ubi", "clicks.csv")
    assert ran.code == 2
    assert "no event is a click (click): name the actions that count as one" in ran.err
    ran = run("convert", "ubi", "clicks.csv", "--actions", "click,tap")
    assert (ran.code, ran.err) == (0, "")
    assert "1 lists, 1 clicks, 2 documents shown" in ran.out
    assert (tmp_path / "clicks.csv").read_text().splitlines()[1:] == [
        '"u","jazz","a",1,0,""',
        '"u","jazz","b",2,1,""',
    ]


@pytest.mark.parametrize("target", ["train.txt", "link.txt", "parts/b.parquet"])
def test_the_source_is_not_overwritten(run, files, target):
    (files / "link.txt").symlink_to(files / "train.txt")
    source = "train.txt"
    if target.startswith("parts"):
        pytest.importorskip("pyarrow")
        (files / "parts").mkdir()
        assert run("convert", "train.txt", target).code == 0
        source = "parts"
    before = (files / target).read_bytes()
    ran = run("convert", source, target)
    assert (ran.code, ran.out) == (2, "")
    assert target in ran.err
    assert (files / target).read_bytes() == before


@pytest.mark.parametrize("suffix", [".parquet", ".csv", ".letor"])
def test_scores_of_a_copy_are_those_of_the_source_line_by_line(run, files, suffix):
    pytest.importorskip("pyarrow")
    lines = (files / "train.txt").read_text().splitlines()
    (files / "mixed.txt").write_text("\n".join(lines[::2] + lines[1::2]) + "\n")
    Model.from_coef(np.arange(6.0)).save("m.json")
    assert run("convert", "mixed.txt", f"copy{suffix}").code == 0
    scores = [run("predict", "m.json", name).out for name in ("mixed.txt", f"copy{suffix}")]
    assert scores[0] == scores[1]


def test_a_copy_in_csv_trains_the_same_model(run, files):
    pytest.importorskip("pyarrow")
    lines = (files / "train.txt").read_text().splitlines()
    numbered = "".join(f"{line} #docid = {at}\n" for at, line in enumerate(lines))
    (files / "digits.txt").write_text(numbered)
    assert run("convert", "digits.txt", "digits.csv").code == 0
    assert load("digits.csv").n_features == load("digits.txt").n_features
    assert load("digits.csv").doc_ids.tolist() == [str(at) for at in range(len(lines))]
