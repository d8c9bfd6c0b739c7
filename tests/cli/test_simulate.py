import json

import pytest


def small(run, *words):
    return run(
        "simulate", "train.txt", "--learners", "spd,pdgd", "--queries", "60", "--seeds", "2", *words
    )


def test_table_and_page(run, files):
    done = small(run, "--users", "perfect,informational", "--report", "r.html", "--jobs", "1")
    assert done.code == 0, done.err
    assert "perfect users" in done.out
    assert "informational users" in done.out.replace("\n", " ")
    assert "Report written to r.html" in done.out
    assert "<h2>Perfect users</h2>" in (files / "r.html").read_text()


def test_json_and_parameters(run, files):
    plain, changed, same = (
        json.loads(small(run, "--json", "--test", "vali.txt", *words).out)
        for words in ((), ("-p", "spd.eta0=1.0"), ("-p", "explore=0.1"))
    )
    assert plain == same  # its default; pdgd has none
    assert [one["learner"] for one in plain["results"]] == ["spd", "pdgd"]
    assert plain["results"][0] != changed["results"][0]
    assert plain["results"][1] == changed["results"][1]
    assert plain["results"][0]["at"][-1] == 60


def test_the_page_on_standard_output(run, files):
    done = small(run, "--report", "-")
    assert done.out.startswith("<!doctype html>")
    assert "cumulative" in done.err


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--learners", "sdp"], "--learners has no 'sdp': did you mean 'spd'?"),
        (["--learners", "spd,spd"], "--learners names spd twice"),
        (["--users", "angry"], "--users has no 'angry'"),
        (["-p", "delta=1"], "spd has no parameter 'delta'"),
        (["-p", "lcra.mu=1"], "lcra is none of --learners spd,pdgd"),
        (["-p", "explore=2"], "explore"),
        (["-p", "alpha=1", "-p", "alpha=2"], "spd has got this parameter already: give it once"),
        (["-p", "spd.alpha=1", "-p", "alpha=2"], "spd has got this parameter already"),
        (["--query", "none"], "train.txt has no query 'none'"),
        (["--scale", "big"], "no normaliser 'big'"),
        (["--report", "missing/r.html"], "the directory missing does not exist"),
        (["--report", "-", "--json"], "both go to standard output"),
    ],
)
def test_wrong_words_are_refused(run, files, words, message):
    done = small(run, *words)
    assert done.code == 2
    assert message in done.err


@pytest.mark.parametrize(
    ("label", "feature", "message"),
    [
        ("0", "{d}", "no query with documents at two levels"),
        ("{g}000", "{d}", "the data have grade 3000"),
        ("{g}", "{d}e300", "beyond double precision: bring features to a scale near 1"),
    ],
)
def test_odd_data(run, files, label, feature, message):
    lines = (
        f"{label} qid:{{q}} 1:{feature} 2:{{q}}\n".format(q=q, d=d, g=min(d, 3))
        for q in range(3)
        for d in range(4)
    )
    (files / "odd.txt").write_text("".join(lines))
    how = ["--learners", "spd,pdgd", "--scale", "none", "--queries", "20", "--seeds", "1"]
    done = run("simulate", "odd.txt", *how)
    assert done.code == 2
    assert message in done.err
    assert len(done.err.splitlines()) == 1  # and no warning of NumPy's
