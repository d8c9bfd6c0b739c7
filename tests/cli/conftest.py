"""Small files to work on, and a way to run a command in this process."""

from typing import NamedTuple

import pytest

from leanrank.cli import main
from leanrank.data import make_ranking


class Ran(NamedTuple):
    code: int
    out: str
    err: str


@pytest.fixture
def run(capsys):
    """Run a command line in this process; give exit code, standard output and standard error."""

    def run_command(*words):
        capsys.readouterr()
        code = main([str(word) for word in words])
        return Ran(code, *capsys.readouterr())

    return run_command


@pytest.fixture(scope="session")
def data():
    return make_ranking(n_queries=24, n_features=6, random_state=1)


def letor_lines(data):
    """Write a data set as LETOR text, with nothing but what the format's description says."""
    for label, query, features in zip(data.y, data.qid, data.X, strict=True):
        cells = " ".join(f"{at + 1}:{value!r}" for at, value in enumerate(features.tolist()))
        yield f"{label:g} qid:{query} {cells}\n"


@pytest.fixture
def files(data, tmp_path, monkeypatch):
    """A folder to work in, with train.txt, vali.txt and test.txt."""
    monkeypatch.chdir(tmp_path)
    parts = {"train": slice(0, 12), "vali": slice(12, 18), "test": slice(18, 24)}
    for name, queries in parts.items():
        (tmp_path / f"{name}.txt").write_text("".join(letor_lines(data.queries[queries])))
    return tmp_path
