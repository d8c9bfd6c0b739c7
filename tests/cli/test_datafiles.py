"""What is checked of files and of ``--read`` before any work."""

import pytest

from leanrank.cli.datafiles import check_files
from leanrank.errors import InputError
from leanrank.model import Model


@pytest.mark.parametrize(
    "words",
    [
        "train train.txt -m train.txt",
        "train train.txt -m ./vali.txt --vali vali.txt",
        "tune train.txt -m vali.txt --vali vali.txt --trials 1",
        "tune train.txt -m m.json --test test.txt --report test.txt --trials 1",
        "predict model.json test.txt -o test.txt",
        "predict model.json test.txt -o model.json",
        "evaluate test.txt scores.txt --per-query scores.txt",
        "export model.json --to json -o model.json",
        "report model.json --train train.txt --vali vali.txt -o model.json",
    ],
)
def test_no_command_writes_over_what_it_reads(run, files, words):
    Model.from_coef([1.0] * 6).save("model.json")
    (files / "scores.txt").write_text("1\n")
    before = {path.name: path.read_bytes() for path in files.iterdir()}
    ran = run(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert " is read, and would be overwritten: write to another file\n" in ran.err
    assert {path.name: path.read_bytes() for path in files.iterdir()} == before


def test_results_that_share_a_name(run, files):
    ran = run("tune", "train.txt", "--vali", "vali.txt", "-m", "m", "--report", "./m")
    assert (ran.code, ran.out) == (2, "")
    assert "./m is given for two results: write them to two files" in ran.err


def test_a_link_is_the_file_that_it_names(tmp_path):
    (tmp_path / "a").write_text("")
    (tmp_path / "b").symlink_to(tmp_path / "a")
    with pytest.raises(InputError, match="is read"):
        check_files([str(tmp_path / "a")], str(tmp_path / "b"))
    check_files(["-", None, "d"], "-", None, "c")


def test_features_count_from_zero_or_not(run, files):
    ran = run("convert", "train.txt", "b.csv", "--read", "zero_based=maybe")
    assert ran == (2, "", "leanrank: error: --read zero_based=maybe: write true or false\n")


def test_test_data_are_looked_for_before_the_search(run, files):
    ran = run("tune", "train.txt", "-m", "m.json", "--test", "none.txt", "--journal", "j")
    assert ran == (2, "", "leanrank: error: none.txt: there is no such file\n")
    assert not (files / "j").exists()


@pytest.mark.parametrize(
    ("words", "option"),
    [
        ("tune train.txt -m m.json --trials 0", "--trials"),
        ("tune train.txt -m m.json --max-features 0", "--max-features"),
    ],
)
def test_numbers_out_of_range_name_the_option(run, files, words, option):
    ran = run(*words.split())
    assert (ran.code, ran.out) == (2, "")
    assert f"Invalid value for '{option}'" in ran.err


@pytest.mark.parametrize(
    "words", ["demo -o --help", "train train.txt -m --help", "export m.json --to python -o --list"]
)
def test_an_option_is_no_name_of_a_file(run, files, words):
    Model.from_coef([1.0] * 6).save("m.json")
    before = sorted(files.iterdir())
    ran = run(*words.split())
    option = words.split()[-1]
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {option} is an option, not a file: ")
    assert sorted(files.iterdir()) == before
