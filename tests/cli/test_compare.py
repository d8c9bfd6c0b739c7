import json

import pytest

from leanrank.selection import systems

SOME = "rankrls,bestfeature"
FILES = ("train.txt", "vali.txt", "test.txt")


def test_own_files(run, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "120")
    done = run("compare", *FILES, "--systems", SOME, "-j", 1)
    assert done.code == 0
    lines = done.out.split("\n")
    assert lines[1] == "test.txt: 6 test queries"
    row = next(line for line in lines if line.startswith("RankRLS"))
    assert len(row.split()) == 1 + 7 + 4
    assert max(map(len, lines)) <= 120
    assert "Convention standard" in done.out


def test_a_narrow_screen_gets_two_tables(run, files, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    done = run("compare", *FILES, "--systems", SOME, "-j", 1)
    assert done.out.count("RankRLS") == 2
    assert "…" not in done.out
    assert max(map(len, done.out.split("\n"))) <= 80


def test_every_file_is_written(run, files):
    done = run("compare", *FILES, "--systems", SOME, "-j", 1, "--json", "--markdown", "c.md")
    kept = json.loads(done.out)
    first = kept["sets"][0]["systems"][0]
    assert first["system"] == "rankrls"
    value = f"{first['means']['map']:.4f}"
    assert value in (files / "c.md").read_text()


def test_what_is_not_installed_is_left_out_with_a_sentence(run, files, monkeypatch):
    monkeypatch.setattr(systems, "find_spec", lambda name: None)
    done = run("compare", *FILES, "--systems", "lightgbm,rankrls", "-j", 1)
    assert done.code == 0
    assert "LightGBM is left out because it is not installed: pip install lightgbm" in done.out
    assert "RankRLS" in done.out


def test_scaled_and_in_other_words(run, files):
    done = run(
        "compare", *FILES, "--systems", "rankrls", "-j", 1, "--scale", "query-minmax",
        "--choose-by", "ndcg@5", "--convention", "letor4", "--json",
    )  # fmt: skip
    one = json.loads(done.out)["sets"][0]
    assert (one["convention"], one["choose_by"]) == ("letor4", "ndcg@5")


@pytest.mark.parametrize(
    ("words", "sentence"),
    [
        (["train.txt"], "Missing argument 'VALI'"),
        (["train.txt", "vali.txt", "none.txt"], "none.txt: there is no such file"),
        ([*FILES, "--systems", "rankrsl"], "did you mean 'rankrls'?"),
        ([*FILES, "--systems", "rankrls,rankrls"], "given twice"),
        ([*FILES, "--choose-by", "mapp"], "mapp"),
        ([*FILES, "--scale", "huge"], "huge"),
        ([*FILES, "--markdown", "-", "--json"], "both go to standard output"),
        ([*FILES, "--markdown", "no/where.md"], "does not exist"),
    ],
)
def test_bad_input_is_one_sentence(run, files, words, sentence):
    done = run("compare", *words)
    assert done.code == 2
    assert sentence in done.err
    assert done.err.count("\n") == 1


def test_help_loads_nothing_heavy():
    import subprocess
    import sys

    code = (
        "import sys; from leanrank.cli import main; main(['compare', '--help']); "
        "assert not {'numba', 'scipy', 'sklearn', 'lightgbm'} & set(sys.modules), sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True, capture_output=True)
