"""Messages of the readers name what can be typed."""

import pytest

from leanrank.cli.entry import in_options


@pytest.mark.parametrize(
    ("said", "shown"),
    [
        ("with `label=…`, or `label=None` if", "with `--read label=…`, or `--read label=none` if"),
        ("load with `zero_based=True`", "load with `--read zero_based=true`"),
        ("use `dtype=numpy.float64`", "use `--read dtype=float64`"),
        ("use `storage='sparse'`", "use `--read storage=sparse`"),
        ("as in `doc_id='the url'`", "as in `--read doc_id='the url'`"),
        ("with `data_dir=…` or", "with `--data …` or"),
        ("label=1/part.parquet: no such file", "label=1/part.parquet: no such file"),
        ("`pip install 'a[b]'` or `other=1`", "`pip install 'a[b]'` or `other=1`"),
    ],
)
def test_arguments_become_options(said, shown):
    assert in_options(said) == shown


@pytest.mark.parametrize(
    ("name", "text", "words", "shown"),
    [
        (
            "a.csv",
            "grade,qid,x\n1,1,2\n",
            [],
            "a.csv has no column 'label' for label: name the right one with `--read label=…`, or "
            "`--read label=none` if there is none (columns: 'grade', 'qid', 'x')",
        ),
        (
            "a.csv",
            "label,qid,url\n1,1,x.org\n",
            [],
            "column 'url' of a.csv holds string, not numbers: correct it, or say what it is, "
            "as in `--read doc_id=url`, or list those to use with `--read features=…`",
        ),
        (
            "a.csv",
            "1,1,2\n",
            [],
            "a.csv: the first line holds numbers: put a line with the names of the columns above "
            "it",
        ),
        (
            "a.txt",
            "1 qid:1 0:1\n",
            [],
            "a.txt, line 1, column 9: feature index 0 in a file read as one-based: load it with "
            "`--read zero_based=true`",
        ),
        (
            "a.txt",
            "1 qid:1 1:1e300\n",
            ["--read", "dtype=float32"],
            "a.txt, line 1, column 11: '1e300' is beyond the range of float32: rescale it, or use "
            "`--read dtype=float64`",
        ),
    ],
)
def test_messages_of_readers(run, tmp_path, monkeypatch, name, text, words, shown):
    monkeypatch.chdir(tmp_path)
    (tmp_path / name).write_text(text)
    for command in (["train", name, "-m", "m.json"], ["convert", name, "out.parquet"]):
        assert run(*command, *words) == (2, "", f"leanrank: error: {shown}\n")
    assert list(tmp_path.iterdir()) == [tmp_path / name]
