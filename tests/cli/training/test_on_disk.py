"""``--on-disk`` of ``leanrank train``, and ``convert`` to a store."""

import pytest

pytest.importorskip("pyarrow")

from leanrank import RankingData, load_model
from leanrank._mapped import is_mapped
from leanrank.data import dump, load

TRAIN = ("-a", "domination", "-p", "alpha=0.01", "--model")


def weights(file):
    return load_model(file).weights


def test_a_file_beside_the_data(run, files):
    assert run("train", "train.txt", *TRAIN, "a.json").code == 0
    ran = run("train", "train.txt", "--on-disk", *TRAIN, "b.json")
    assert (ran.code, ran.err) == (0, "")
    assert "written to train.txt.arrow" in ran.out
    assert is_mapped(RankingData.open("train.txt.arrow").X)
    assert weights(files / "b.json") == weights(files / "a.json")
    ran = run("train", "train.txt", "--on-disk", *TRAIN, "c.json")
    assert "train.txt.arrow, made before" in ran.out
    (files / "train.txt").write_text((files / "train.txt").read_text() + "1 qid:zz 1:3\n")
    ran = run("train", "train.txt", "--on-disk", *TRAIN, "c.json")
    assert "written to train.txt.arrow" in ran.out
    assert RankingData.open("train.txt.arrow").query_ids[-1] == "zz"


def test_train_evaluate_and_predict_a_store(run, files):
    ran = run("convert", "train.txt", "train.arrow")
    assert (ran.code, ran.err) == (0, "")
    assert "documents" in ran.out
    for source in ("train.txt", "train.arrow"):
        assert run("train", source, "--scale", "standard", *TRAIN, f"{source}.json").code == 0
        assert run("predict", f"{source}.json", source, "-o", f"{source}.scores").code == 0
    one, other = ((files / f"{name}.scores").read_text() for name in ("train.txt", "train.arrow"))
    assert one == other
    ran = [run("evaluate", name, "train.txt.scores") for name in ("train.txt", "train.arrow")]
    assert ran[0].code == ran[1].code == 0
    assert ran[0].out.splitlines()[-4:] == ran[1].out.splitlines()[-4:]


def test_rows_of_a_query_that_are_not_together(run, files):
    lines = (files / "train.txt").read_text().splitlines()
    (files / "mixed.txt").write_text("\n".join(lines[::2] + lines[1::2]) + "\n")
    for words in (
        ("convert", "mixed.txt", "mixed.arrow"),
        ("train", "mixed.txt", "--on-disk", *TRAIN, "m.json"),
    ):
        ran = run(*words)
        assert (ran.code, ran.out) == (2, "")
        assert "ORDER BY qid" in ran.err
    assert not (files / "mixed.arrow").exists()


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("-", "--on-disk"), "--on-disk writes a file beside the data"),
        (("train.arrow", "--on-disk"), "train.arrow is mapped as it is"),
        (("none.txt", "--on-disk"), "none.txt: there is no such file"),
        (("train.txt", "--on-disk"), "train.txt.arrow is in the way"),
        (("train.txt", "--checkpoint", "run"), "--checkpoint is for streams"),
    ],
)
def test_faults(run, files, words, message):
    dump(load("train.txt"), "train.arrow")
    dump(load("train.txt"), "train.txt.arrow")
    before = sorted(files.iterdir())
    ran = run("train", *words, "--model", "m.json")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith(f"leanrank: error: {message}")
    assert sorted(files.iterdir()) == before
