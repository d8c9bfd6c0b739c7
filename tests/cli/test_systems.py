import json
import os
import subprocess
import sys

import pytest

from leanrank import rankers
from leanrank.cli.options import make_ranker
from leanrank.cli.systems import describe
from leanrank.registry import SYSTEMS, ranker_names

FITTED = [name for name, system in SYSTEMS.items() if system.space is not None]


def test_every_system_is_listed(run):
    ran = run("systems")
    assert ran.code == 0
    lines = [line.split(maxsplit=1) for line in ran.out.splitlines() if line.strip()]
    rows = {line[0]: line[-1].strip() for line in lines}
    assert list(rows)[2] == "lean"  # below the head and its rule
    for name in FITTED:  # in one line what it is for
        assert rows[name] == SYSTEMS[name].purpose != ""
    listed = json.loads(run("systems", "--json").out)["systems"]
    assert [entry["name"] for entry in listed] == FITTED


@pytest.mark.parametrize("name", sorted(ranker_names()))
def test_every_parameter_has_a_meaning(name):
    ranker = rankers.get_ranker(name)
    parameters = {entry["name"]: entry for entry in describe(ranker)}
    assert set(parameters) == set(ranker._get_param_names())
    bare = {"", "int", "float", "str", "bool"}
    assert [n for n, entry in parameters.items() if entry["meaning"] in bare] == []
    assert not any(entry["meaning"].startswith("As for ") for entry in parameters.values())


def test_one_system_is_explained_with_what_makes_it_so(run):
    ran = run("systems", "ranksvm-l1")
    assert "leanrank train DATA -a ranksvm-l1 -m FILE" in " ".join(ran.out.split())
    assert "Strength of the penalty" in ran.out
    explained = json.loads(run("systems", "ranksvm-l1", "--json").out)
    assert explained["fixed"] == {"l1_ratio": 1.0}
    defaults = {entry["name"]: entry["default"] for entry in explained["parameters"]}
    assert defaults["tol"] == 1e-6
    assert defaults["l1_ratio"] == 1.0


def test_an_unknown_system_is_one_sentence(run):
    ran = run("systems", "rnksvm")
    assert (ran.code, ran.out) == (2, "")
    assert ran.err == "leanrank: error: there is no system 'rnksvm': did you mean 'ranksvm'?\n"


@pytest.mark.parametrize(
    ("words", "expected"),
    [
        ("leanrank tr", ["train"]),
        ("leanrank train --chec", ["--checkpoint"]),
    ],
)
def test_the_shell_completes_names(words, expected):
    environment = os.environ | {
        "_LEANRANK_COMPLETE": "complete_bash",
        "COMP_WORDS": words,
        "COMP_CWORD": str(len(words.split()) - 1),
    }
    code = "from leanrank.cli import main; main([])"
    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, capture_output=True, text=True, timeout=60,
        check=False,
    )  # fmt: skip
    assert done.stdout.split() == expected


def test_train_takes_every_name_that_is_listed(run, files):
    listed = [one["name"] for one in json.loads(run("systems", "--json").out)["systems"]]
    assert len(listed) >= 26
    for name in listed:
        system = SYSTEMS[name]
        ranker = make_ranker(name, [], jobs=1)
        assert type(ranker).__name__ == system.ranker
        assert {key: getattr(ranker, key) for key in system.own_parameters} == system.own_parameters
    for name in ("ranksvm-l1", "domination-curves", "minbatsrank-nonfea"):
        assert run("train", "train.txt", "-a", name, "-m", "m.json").code == 0
    assert type(make_ranker("ranksvm-l1", ["l1_ratio=0.5"], jobs=1)).__name__ == "RankSVM"
    ran = run("train", "train.txt", "-a", "ranksvm-l3", "-m", "m.json")
    assert (ran.code, "ranksvm-l1" in ran.err) == (2, True)
