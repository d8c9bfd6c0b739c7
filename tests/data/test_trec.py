"""TREC run and qrels files, there and back."""

from __future__ import annotations

import gzip
import io

import numpy as np
import pytest

from leanrank.errors import FileError, InputError, ParseError
from leanrank.metrics import (
    Qrels,
    Run,
    dump_qrels,
    dump_run,
    evaluate_run,
    load_qrels,
    load_run,
)


@pytest.mark.parametrize("suffix", [".txt", ".txt.gz"])
def test_there_and_back(tmp_path, suffix):
    rng = np.random.default_rng(0)
    scores = np.concatenate((rng.normal(size=96), [1e-300, -1e300, 0.1, 1 / 3]))
    qid = np.repeat(["WT04-17", "2", "ü", "q"], 25)
    docs = [f"d{i % 25}" for i in range(100)]
    run = Run(qid, docs, scores, "mine")
    dump_run(run, tmp_path / f"run{suffix}")
    back = load_run(tmp_path / f"run{suffix}")
    assert back.tag == "mine"
    rows = dict(zip(zip(qid, docs, strict=True), scores, strict=True))
    assert dict(zip(zip(back.qid, back.doc_id, strict=True), back.score, strict=True)) == rows
    assert list(dict.fromkeys(back.qid)) == ["WT04-17", "2", "ü", "q"]
    assert (np.diff(back.score[:25]) <= 0).all()
    qrels = Qrels(qid, docs, rng.choice([0, 1, 2, 0.5], 100))
    dump_qrels(qrels, tmp_path / f"qrels{suffix}")
    back = load_qrels(tmp_path / f"qrels{suffix}")
    assert back.label.tolist() == qrels.label.tolist()
    assert back.doc_id.tolist() == docs


def test_what_the_files_look_like(tmp_path):
    dump_run(Run([1, 1, 1], ["a", "b", "c"], [1, 1, 2.5], "t"), tmp_path / "run")
    assert (tmp_path / "run").read_text() == "1 Q0 c 1 2.5 t\n1 Q0 b 2 1.0 t\n1 Q0 a 3 1.0 t\n"
    dump_qrels(Qrels([1, 1], ["a", "b"], [1, 0.5]), tmp_path / "qrels")
    assert (tmp_path / "qrels").read_text() == "1 0 a 1\n1 0 b 0.5\n"
    dump_run(Run([], [], []), tmp_path / "empty")
    assert (tmp_path / "empty").read_text() == ""
    assert len(load_run(tmp_path / "empty").qid) == 0


def test_blank_lines_tabs_and_a_missing_newline(tmp_path):
    (tmp_path / "qrels").write_text("1\t0\ta 1\r\n\n  1 0 b -1")
    assert load_qrels(tmp_path / "qrels").label.tolist() == [1, -1]


@pytest.mark.parametrize(
    ("text", "line", "words"),
    [
        (b"1 Q0 a 1 2.0 t\n1 Q0 b 2 t\n", 2, "expected 6 fields .* found 5"),
        (b"1 Q0 a 1 2.0 t\n\n1 Q0 b 2 high t\n", 3, "the score 'high' is not a finite number"),
        (b"1 Q0 a 1 nan t\n", 1, "not a finite number"),
        (b"1 Q0 a 1 2 t\n1 Q0 b 2 1 t\n1 Q0 a 3 0 t\n", 3, "'a' is listed a second time"),
        (b"1 Q0 \xff 1 2 t\n", 1, "not UTF-8"),
    ],
)
def test_malformed_runs_are_named_by_line(tmp_path, text, line, words):
    path = tmp_path / "run.txt"
    path.write_bytes(text)
    with pytest.raises(ParseError, match=words) as caught:
        load_run(path)
    assert caught.value.line == line
    assert str(caught.value).startswith(f"{path}, line {line}")


def test_malformed_qrels_are_named_by_line(tmp_path):
    (tmp_path / "q").write_text("1 0 a 1\n1 0 b relevant\n")
    with pytest.raises(ParseError, match="line 2: the label 'relevant'"):
        load_qrels(tmp_path / "q")


def test_files_that_cannot_be_read(tmp_path, monkeypatch):
    with pytest.raises(FileError, match="there is no such file"):
        load_run(tmp_path / "missing")
    whole = gzip.compress(b"".join(b"1 Q0 %d 1 2.0 t\n" % row for row in range(1000)))
    (tmp_path / "cut.gz").write_bytes(whole[:-20])
    with pytest.raises(ParseError, match="the gz data are damaged or cut short"):
        load_run(tmp_path / "cut.gz")
    (tmp_path / "not.gz").write_bytes(b"plain text")
    with pytest.raises(ParseError, match="expected 4 fields"):
        load_qrels(tmp_path / "not.gz")
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(b"1 0 a\n")))
    with pytest.raises(ParseError, match="<stdin>, line 1"):
        load_qrels("-")


def test_nothing_half_written(tmp_path):
    path = tmp_path / "run"
    path.write_text("before\n")
    with pytest.raises(InputError, match="the query 'a b' is empty or holds a blank"):
        dump_run(Run(["a b"], ["d"], [1.0]), path)
    with pytest.raises(InputError, match="document id ''"):
        dump_qrels(Qrels(["a"], [""], [1.0]), path)
    assert path.read_text() == "before\n"
    assert [p.name for p in tmp_path.iterdir()] == ["run"]


def test_columns_must_fit():
    with pytest.raises(InputError, match="doc_id has 2 values but there are 1"):
        Run(["a"], ["b", "c"], [1.0])
    with pytest.raises(InputError, match="score is nan in row 0"):
        Run(["a"], ["b"], [np.nan])
    with pytest.raises(InputError, match="label holds something"):
        Qrels(["a"], ["b"], ["x"])


def test_runs_by_hand():
    qrels = Qrels(["q"] * 3 + ["r"], ["a", "b", "c", "a"], [1, 0, 2, 1])
    run = Run(["q", "q", "q", "z"], ["x", "a", "b", "a"], [3, 2, 1, 1])
    found = evaluate_run(qrels, run, ["map", "r@10", "ndcg", "p@2"])
    assert found.query_ids.tolist() == ["q"]
    ideal = 2 + 1 / np.log2(3)
    expected = {"map": 0.25, "r@10": 0.5, "ndcg": 1 / np.log2(3) / ideal, "p@2": 0.5}
    assert found.means == pytest.approx(expected)
    both = evaluate_run(qrels, run, ["map"], complete=True)
    assert both.per_query["map"].tolist() == [0.25, 0]
    every = ["ndcg", "dcg", "mean_ndcg", "map", "p@2", "r@2", "mrr", "err"]
    missed = evaluate_run(qrels, run, every, complete=True, convention="standard")
    assert [values[1] for values in missed.per_query.values()] == [0] * len(every)
    assert evaluate_run(qrels, run, "map(rel=2)").means["map(rel=2)"] == 0
    assert len(evaluate_run(qrels, Run([], [], [])).query_ids) == 0


def test_runs_that_make_no_sense():
    qrels, run = Qrels(["q"], ["a"], [1]), Run(["q"], ["a"], [1])
    for measure in ("auc", "kendall_tau_b"):
        with pytest.raises(InputError, match="needs the score of every document"):
            evaluate_run(qrels, run, measure)
    with pytest.raises(InputError, match="retrieved twice"):
        evaluate_run(qrels, Run(["q", "q"], ["a", "a"], [1, 2]))
    with pytest.raises(InputError, match="judged twice"):
        evaluate_run(Qrels(["q", "q"], ["a", "a"], [1, 2]), run)
