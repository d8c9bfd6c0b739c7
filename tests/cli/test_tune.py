import json
import sys

import pytest

from leanrank import load_letor, load_model
from leanrank.metrics import evaluate

WORDS = ("tune", "train.txt", "--vali", "vali.txt", "-m", "m.json", "-j", 1)
SOME = ("--systems", "domination,greedyrankrls", "--trials", 3)


def left_behind(folder):
    return sorted(p.name for p in folder.iterdir() if not p.name.endswith(".txt"))


def test_the_front_and_the_chosen_model(run, files):
    done = run(*WORDS, *SOME, "--max-features", 3, "--test", "test.txt")
    assert done.code == 0, done.err
    assert "← chosen" in done.out
    assert "interval" in done.out
    assert "Model written to m.json" in done.out
    model = load_model("m.json")
    assert 1 <= model.n_nonzero <= 3
    assert set(model.provenance["measures"]) == {"training", "validation", "test"}
    test = load_letor("test.txt")
    found = evaluate(test, model.predict(test), measures="ndcg@10,map")
    assert model.provenance["measures"]["test"] == pytest.approx(found.means)
    assert model.provenance["data"]["queries"] == 12
    assert left_behind(files) == ["m.json"]


def test_json(run, files):
    done = run(*WORDS, *SOME, "--max-features", 3, "--json", "--measure", "map")
    kept = json.loads(done.out)
    assert kept["measure"] == "map"
    assert kept["chosen"]["n_features"] <= 3
    sizes = [one["n_features"] for one in kept["front"]]
    assert sizes == sorted(sizes)
    for one in kept["front"]:
        assert one["interval"][0] <= one["score"] <= one["interval"][1]
    assert set(kept["measures"]) == {"training", "validation"}


def test_a_journal_is_kept_and_gone_on_from(run, files):
    first = run(*WORDS, *SOME, "--journal", "j", "--json")
    lines = (files / "j").read_text().splitlines()
    assert len(lines) == 4
    (files / "j").write_text("\n".join(lines[:2]) + "\n" + lines[2][:50])
    again = run(*WORDS, *SOME, "--journal", "j", "--json")
    one, two = json.loads(first.out), json.loads(again.out)
    assert two["weights"] == one["weights"]
    assert two["front"] == one["front"]
    other = run(*WORDS, *SOME, "--journal", "j", "--max-features", 2)
    assert other.code == 2
    assert "belongs to another run: not the same max_features" in other.err


def test_wishes_that_nothing_meets(run, files):
    done = run(*WORDS, *SOME, "--max-features", 2, "--min-measure", "ndcg@10=0.999")
    assert done.code == 2
    assert "no model reaches ndcg@10 0.999, max_features=2: the best ndcg@10 is 0." in done.err
    assert left_behind(files) == []


def test_costs(run, files):
    (files / "costs.txt").write_text("0,5\n*,1\n")
    words = (*WORDS, *SOME, "--costs", "costs.txt", "--json")
    done = run(*words, "--max-cost", 3)
    assert done.code == 0, done.err
    assert json.loads(done.out)["chosen"]["cost"] <= 3
    assert 0 not in load_model("m.json").indices
    done = run(*words, "--max-cost", 0.5)
    assert "max_cost=0.5: the smallest has 1 feature at a cost of" in done.err
    assert run(*WORDS, "--max-cost", 3).code == 2
    done = run(*WORDS, *SOME, "--costs", "none.txt")
    assert (done.code, "none.txt: there is no such file" in done.err) == (
        2,
        True,
    )


def test_a_wrong_test_part_is_noticed_before_the_search(run, files):
    (files / "wrong.txt").write_text("1 qid:1 1:0.5\n0 qid:1 99:x\n")
    done = run(*WORDS, *SOME, "--test", "wrong.txt")
    assert done.code == 2
    assert "wrong.txt, line 2, column 9: " in done.err
    assert not (files / "m.json").exists()


def test_scaled_features_travel_in_the_model(run, files):
    done = run(*WORDS, *SOME, "--scale", "query-standard", "--json", "--test", "test.txt")
    assert done.code == 0, done.err
    model = load_model("m.json")
    assert model.normalizer["kind"] == "query-standard"
    test = load_letor("test.txt")
    found = evaluate(test, model.predict(test), measures="ndcg@10")
    assert json.loads(done.out)["measures"]["test"]["means"]["ndcg@10"] == found["ndcg@10"]


def test_without_validation_data(run, files):
    done = run("tune", "train.txt", "-m", "m.json", "-j", 1, *SOME, "--max-features", 2)
    assert done.code == 0, done.err
    assert "each by a model that was fitted without it" in " ".join(done.out.split())


def test_a_report_is_written(run, files):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    done = run(*WORDS, *SOME, "--report", "r.html", "--test", "test.txt")
    assert done.code == 0, done.err
    assert "<html" in (files / "r.html").read_text()[:500]
    assert "Report written to r.html" in done.out


def test_a_report_that_cannot_be_written_is_noticed_before_the_search(run, files, monkeypatch):
    from leanrank.report.page import chart_library

    pytest.importorskip("vl_convert")
    monkeypatch.setitem(sys.modules, "altair", None)
    chart_library.cache_clear()
    done = run(*WORDS, "--report", "r.html")
    assert done.code != 0
    assert "drawing a chart needs the package 'altair'" in done.err
    assert left_behind(files) == []


def test_a_refitted_model_has_a_report_too(run, files):
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    done = run(*WORDS, *SOME, "--refit", "both", "--max-features", 2, "--report", "r.html")
    assert done.code == 0, done.err
    assert 1 <= load_model("m.json").n_nonzero <= 2


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("--budget", "soon"), "--budget: 'soon' is no length of time"),
        (("--budget", "1s", "--trials", 2), "both a budget and a number of trials were given"),
        (("--systems", "lightgbm"), "only leanrank compare runs this"),
        (("--systems", "dominaton"), "did you mean 'domination'"),
        (("--min-measure", "map"), "--min-measure map: write NAME=VALUE"),
        (("--min-measure", "mapp=0.3"), "mapp"),
        (
            ("--min-measure", "ndcg@10=0.1", "--min-measure", "ndcg@10=0.2"),
            "is given twice",
        ),
        (("--measure", "mapp"), "mapp"),
        (("--refit", "test"), "refit='test' is not known"),
        (("--rule", "2se", "--trials", 1, "--systems", "rankrls"), "rule='2se' is not known"),
        (("--report", "no/r.html"), "the directory no does not exist"),
        (("--journal", "no/j"), "the directory no does not exist"),
        (("--costs", "none.csv"), "none.csv: there is no such file"),
    ],
)
def test_mistakes_are_one_sentence(run, files, words, message):
    done = run(*WORDS, *words)
    assert done.code == 2 or "cannot be read" in message
    assert done.code != 0
    assert message in done.err
    assert len(done.err.strip().splitlines()) == 1
    assert left_behind(files) == []


def test_an_interrupt_writes_the_best_so_far(run, files, monkeypatch):
    from leanrank.selection.search import Search

    once = Search._run

    def interrupted(self, *what):
        if self.n_done == 2:
            raise KeyboardInterrupt
        return once(self, *what)

    monkeypatch.setattr(Search, "_run", interrupted)
    done = run(*WORDS, "--systems", "domination,greedyrankrls,rankrls", "--trials", 9, "--json")
    assert done.code == 130, done.err
    assert json.loads(done.out)["interrupted"] is True
    assert json.loads(done.out)["not_tried"] == ["rankrls"]
    assert load_model("m.json").n_nonzero


def test_systems_that_were_not_tried(run, files):
    done = run(*WORDS, "--systems", "domination,rankrls", "--trials", 1)
    assert "not tried" in done.out


def test_printed_figures_are_those_of_the_report(run, files, monkeypatch):
    pytest.importorskip("altair")
    from leanrank import report

    seen = {}
    monkeypatch.setattr(
        report, "write_report", lambda study, path, test, **how: seen.update(study=study, test=test)
    )
    more = ("--scale", "standard", "--convention", "letor4", "--test", "test.txt")
    done = run(*WORDS, *SOME, *more, "--report", "r.html", "--json")
    assert done.code == 0, done.err
    printed = json.loads(done.out)
    shown = report.contents.report_contents(seen["study"], test=seen["test"])
    for one, other in zip(printed["front"], shown["models"], strict=True):
        assert f"{one['score']:.4f}" == f"{other['score']:.4f}"
        for end, shown_end in zip(one["interval"], other["interval"], strict=True):
            assert f"{end:.3f}" == f"{shown_end:.3f}"
    chosen = shown["models"][shown["chosen"]]
    for part, key in (("test", "test"), ("validation", "headline")):
        for name, mean in printed["measures"][part]["means"].items():
            assert f"{mean:.4f}" == f"{chosen[key][name][0]:.4f}", (part, name)
