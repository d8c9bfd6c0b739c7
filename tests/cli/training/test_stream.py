"""``leanrank train --stream``: files of any size, kills, and what is refused."""

import io
import json
import os
import random
import re
import signal
import subprocess
import sys
import time

import pytest

from leanrank import load_letor, load_model
from leanrank.data import dump_letor, dump_parquet, make_ranking
from leanrank.data.streams import open_stream
from leanrank.metrics import evaluate
from leanrank.rankers import MinBatSRank
from leanrank.rankers.streaming import fit_stream

SMALL = ("--read", "chunk_bytes=600")
N_KILLS = int(os.environ.get("LEANRANK_KILLS", "2"))  # more take longer


def test_the_model_is_what_the_library_learns(run, files):
    ran = run("train", "--stream", "train.txt", "test.txt", *SMALL, "--model", "m.json")
    assert ran.code == 0, ran.err
    stream = open_stream(["train.txt", "test.txt"], chunk_bytes=600)
    expected = fit_stream(MinBatSRank(l1="per_step"), stream)
    model = load_model("m.json")
    assert model.coef.tolist() == expected.coef_.tolist()
    assert model.provenance["data"] == {"queries": 18, "documents": 900, "features": 6}
    assert model.provenance["parameters"]["epochs"] == 1
    assert "2 files, 18 queries, 900 documents, 6 features" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_warning_of_units_names_a_scale_that_a_stream_takes(run, files):
    data = load_letor("train.txt")
    dump_letor(data.replace(X=data.X * ([1e5] + [1.0] * (data.n_features - 1))), "raw.txt")
    words = ("train", "--stream", "raw.txt", "-m", "m.json")
    ran = run(*words)
    assert ran.code == 0
    assert ran.err.count("the spread of 'f1' is") == 1
    scale = re.search(r"--scale ([\w-]+)", ran.err)[1]
    again = run(*words, "--scale", scale)
    assert (again.code, again.err) == (0, "")


def test_validation_json_and_scale(run, files):
    ran = run(
        *("train", "--stream", "train.txt", "--vali", "vali.txt", "--scale", "query-minmax"),
        *("-p", "epochs=3", "-p", "l1=total", "-m", "m.json", "--json", *SMALL),
    )
    assert (ran.code, ran.err) == (0, "")
    result = json.loads(ran.out)
    vali = load_letor("vali.txt")
    means = evaluate(vali, load_model("m.json").predict(vali), measures="ndcg@10,map").means
    assert result["measures"]["validation"]["means"] == pytest.approx(means)
    assert result["parameters"]["l1"] == "total"
    assert result["data"]["training"]["queries"] == 12  # passes do not add up
    assert result["normalizer"]["kind"] == "query-minmax"


def test_parquet(run, files, data):
    dump_parquet(data, "a.parquet")
    ran = run("train", "--stream", "a.parquet", "-m", "m.json")
    assert ran.code == 0, ran.err
    assert load_model("m.json").n_features == 6


def test_standard_input(run, files, monkeypatch):
    with open("train.txt", "rb") as file:
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(file.read())))
    assert run("train", "--stream", "-", "--model", "a.json").code == 0
    assert run("train", "--stream", "train.txt", "--model", "b.json").code == 0
    assert load_model("a.json").coef.tolist() == load_model("b.json").coef.tolist()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("train.txt", "test.txt"), "2 training files were given: give one, or add --stream"),
        (("train.txt", "--every", "5"), "--every is for streams: add --stream"),
        (
            ("--stream", "train.txt", "--fill", "median"),
            "--fill median needs all data in memory: give numbers",
        ),
        (("--stream", "train.txt", "-a", "rankrls"), "rankrls needs all data at once"),
        (("--stream", "train.txt", "--scale", "minmax"), "--scale minmax needs all data at once"),
        (("--stream", "-", "--checkpoint", "c"), "cannot be resumed"),
        (("--stream", "train.txt", "none.txt"), "none.txt: there is no such file"),
        (("--stream", "train.txt", "--checkpoint", "no/c"), "the directory no does not exist"),
    ],
)
def test_what_is_refused(run, files, words, message):
    ran = run("train", *words, "--model", "m.json")
    assert ran.code == 2
    assert message in ran.err
    assert len(ran.err.strip().splitlines()) == 1
    assert not (files / "m.json").exists()


def test_a_file_changed_far_behind_its_beginning_is_another(run, tmp_path, monkeypatch):
    """Same name and size, and the first 64 kB as they were."""
    monkeypatch.chdir(tmp_path)
    data = make_ranking(n_queries=100, n_features=8, docs_per_query=15, random_state=0)
    dump_letor(data, "big.txt")
    text = (tmp_path / "big.txt").read_bytes()
    assert len(text) > 100_000
    words = ("train", "--stream", "big.txt", "--checkpoint", "c.ckpt", "-p", "alpha=0.01")
    assert run(*words, "-m", "m.json").code == 0
    tail = text[70_000:].replace(b"\n0 qid", b"\n9 qid").replace(b"\n1 qid", b"\n0 qid")
    (tmp_path / "big.txt").write_bytes(text[:70_000] + tail)
    ran = run(*words, "-m", "m.json")
    assert ran.code == 2
    assert "c.ckpt" in ran.err
    assert "big.txt" in ran.err


def test_a_checkpoint_of_other_parameters_or_files(run, files):
    words = ("train", "--stream", "train.txt", "--checkpoint", "c.ckpt", "--model", "m.json")
    assert run(*words).code == 0
    ran = run(*words, "-p", "alpha=0.3")
    assert ran.code == 2
    assert "c.ckpt: this checkpoint was made with alpha=0.1, not alpha=0.3" in ran.err
    ran = run("train", "--stream", "test.txt", *words[3:])
    assert ran.code == 2
    assert "sources=train.txt, not sources=test.txt" in ran.err


def test_an_error_names_file_and_line(run, files):
    with open("train.txt", "a") as file:
        file.write("1 qid:999 1:oops\n")
    n_lines = len((files / "train.txt").read_text().splitlines())
    ran = run("train", "--stream", "test.txt", "train.txt", *SMALL, "--model", "m.json")
    assert ran.code == 2
    assert f"train.txt, line {n_lines}, column 13" in ran.err


@pytest.mark.slow
def test_killed_at_random_moments_it_ends_with_the_same_bits(tmp_path):
    """Real processes, real SIGKILL: whenever it comes, the model is the same file."""
    dump_letor(make_ranking(1500, (5, 15), 12, random_state=8), tmp_path / "a.txt")
    dump_letor(make_ranking(500, (5, 15), 16, random_state=9), tmp_path / "b.txt")
    words = [sys.executable, "-m", "leanrank", "train", "--stream", "a.txt", "b.txt", "-p"]
    words += ["eta0=0.5", "-p", "epochs=2", "--read", "chunk_bytes=8000", "--every", "20"]

    def start(model, checkpoint):
        command = [*words, "--checkpoint", checkpoint, "--model", model]
        return subprocess.Popen(
            command, cwd=tmp_path, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
        )

    whole = start("whole.json", "whole.ckpt")
    assert whole.wait(timeout=120) == 0, whole.stderr.read()
    draw = random.Random(0)
    checkpoint, kept = tmp_path / "c.ckpt", []
    for _ in range(N_KILLS):
        before = checkpoint.stat().st_mtime_ns if checkpoint.exists() else 0
        process = start("killed.json", "c.ckpt")
        # Some moment after the first checkpoint of this process: it learns, reads or writes.
        while process.poll() is None:
            at = checkpoint.stat() if checkpoint.exists() else None
            if at is not None and at.st_size and at.st_mtime_ns != before:
                time.sleep(draw.uniform(0, 0.1))
                break
            time.sleep(0.002)
        process.send_signal(signal.SIGKILL)
        if process.wait() == 0:
            break  # it was at its end already
        assert process.returncode == -signal.SIGKILL, process.stderr.read()
        kept.append(checkpoint.read_bytes())
    assert len(kept) >= 2
    assert len(set(kept)) == len(kept)  # each process got further than the one before
    last = start("killed.json", "c.ckpt")
    assert last.wait(timeout=120) == 0, last.stderr.read()
    assert (tmp_path / "killed.json").read_bytes() == (tmp_path / "whole.json").read_bytes()
    # a kill may leave a hidden temporary file
    names = {p.name for p in tmp_path.iterdir() if not p.name.startswith(".")}
    both = {"whole.ckpt", "c.ckpt"}
    assert names == {"a.txt", "b.txt", "whole.json", "killed.json"} | both


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (("--checkpoint", "./m.json"), "m.json is given for two results"),
        (("--checkpoint", "-"), "--checkpoint - cannot be read by a later run"),
        (("-p", "shuffle=true"), "-p shuffle=true cannot be used with --stream"),
        (("-p", "patience=2"), "patience has no effect with a stream"),
    ],
)
def test_what_would_have_no_effect_is_refused(run, files, words, sentence):
    ran = run("train", "--stream", "train.txt", "--vali", "vali.txt", *words, "-m", "m.json")
    assert ran.code == 2
    assert sentence in ran.err
    assert not os.path.exists("m.json")


def test_a_model_without_features_is_mentioned(run, files):
    words = ("train", "--stream", "train.txt", "-p", "alpha=9", "-m", "m.json")
    ran = run(*words)
    assert ran.code == 1
    assert "learned a model without features from the stream" in ran.err
    assert "m.json was not written: the model uses no feature" in ran.err
