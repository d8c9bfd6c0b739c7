import json

import pytest

from leanrank.report import page as page_module


@pytest.fixture
def model(run, files, monkeypatch):
    monkeypatch.setattr(page_module, "chart_library", lambda: "")
    assert (
        run("train", "train.txt", "-a", "domination", "-p", "alpha=0.05", "-m", "m.json").code == 0
    )
    return "m.json"


PARTS = ("--train", "train.txt", "--vali", "vali.txt", "-o", "r.html")


def contents(file):
    text = file.read_text(encoding="utf-8")
    return json.loads(text.split('id="report-contents">')[1].split("</script>")[0])


def test_a_page_is_written(run, model, files):
    ran = run("report", model, *PARTS, "--subsamples", "3", "--title", "My <title>")
    assert (ran.code, ran.err) == (0, "")
    assert ran.out.splitlines()[-1] == "Report written to r.html"
    shown = contents(files / "r.html")
    assert shown["title"] == "My <title>"
    assert shown["models"][shown["chosen"]]["name"] == "DominationRanker alpha=0.05"
    assert len(shown["models"]) > 2
    assert shown["stability"]["subsamples"] == 3
    assert shown["models"][0]["test"] is None


def test_a_test_part_costs_and_no_extras(run, model, files):
    (files / "costs.csv").write_text("0,2\n*,1\n")
    more = ("--test", "test.txt", "--costs", "costs.csv", "--alphas", "0", "--subsamples", "0")
    ran = run("report", model, *PARTS, *more, "--json")
    assert ran.code == 0
    result = json.loads(ran.out)
    assert (result["report"], result["models_shown"]) == ("r.html", 1)
    shown = contents(files / "r.html")
    assert shown["models"][0]["test"]["map"]
    assert shown["models"][0]["cost"] > 2
    assert shown["stability"] is None


def test_the_page_does_not_depend_on_threads(run, model, files):
    pages = []
    for jobs in ("1", "3"):
        assert run("report", model, *PARTS, "--subsamples", "4", "--jobs", jobs).code == 0
        page = (files / "r.html").read_text()
        assert f"--jobs {jobs}" in page  # the command, at the foot
        pages.append(page.replace(f"--jobs {jobs}", ""))
    assert pages[0] == pages[1]


def test_a_scaled_model_is_reported(run, model, files):
    assert (
        run(
            "train", "train.txt", "-a", "domination", "--scale", "query-minmax", "-m", "m.json"
        ).code
        == 0
    )
    assert run("report", "m.json", *PARTS, "--test", "test.txt", "--subsamples", "0").code == 0


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--subsamples", "1"), "--subsamples 1 does not show stability"),
        (("--alphas", "-1"), "--alphas"),
        (("--measures", "nonsense"), "nonsense"),
        (("--costs", "missing.csv"), "missing.csv"),
        (("-o", "nowhere/r.html"), "nowhere"),
    ],
)
def test_bad_wishes_are_one_sentence(run, model, files, words, message):
    ran = run("report", model, *PARTS, *words)
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("leanrank: error: ")
    assert message in ran.err
    assert not (files / "r.html").exists()
