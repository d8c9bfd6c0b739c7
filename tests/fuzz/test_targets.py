"""A few inputs for every target, the same on every run, and what the harness finds."""

from __future__ import annotations

import os
import random
import re
import signal
from pathlib import Path

import pytest

from leanrank.errors import InputError
from tests.fuzz import commands, rankers, readers, states  # noqa: F401  (they register targets)
from tests.fuzz.harness import TARGETS, Target, explore

FEW = {"rankers": 12, "commands": 30, "online": 100}


@pytest.mark.parametrize("name", sorted(TARGETS))
def test_some_inputs(name: str) -> None:
    result = explore(TARGETS[name], seed=0, seconds=600.0, inputs=FEW.get(name, 200))
    assert not result.findings, result.findings[0]
    assert result.inputs == FEW.get(name, 200)
    assert result.refused


def test_what_security_names_exists() -> None:
    root = Path(__file__).parents[2]
    page = (root / "SECURITY.md").read_text(encoding="utf-8")
    words = set(re.findall(r"`([^`]+)`", page))
    assert set(TARGETS) <= words
    places = [word.partition("::") for word in words if word.startswith("tests/")]
    assert len(places) > 20
    for path, _, name in places:
        assert (root / path).exists(), path
        assert not name or f"def {name}(" in (root / path).read_text(encoding="utf-8"), name


def broken(rng: random.Random, folder: Path) -> None:
    kind = rng.randrange(8)
    if kind == 0:
        os.kill(os.getpid(), signal.SIGABRT)
    elif kind == 1:
        while True:
            pass
    elif kind == 2:
        raise KeyError("raw")
    elif kind == 3:
        (folder / ".left").touch()
    elif kind == 4:
        raise InputError("a sentence")


def test_the_harness_finds_crashes_hangs_raw_errors_and_files_left_behind() -> None:
    one = Target("broken", broken, 0.3, 1.0, None)
    result = explore(one, seed=1, seconds=60.0, inputs=40)
    found = " ".join(each["what"] for each in result.findings)
    for part in ("died of SIGABRT", "took more than 0.3 s", "KeyError: 'raw'", "left behind"):
        assert part in found
    assert result.inputs <= 40
    assert result.accepted
    assert result.refused
    first = result.findings[0]
    again = explore(one, seed=1, seconds=60.0, first=first["case"], inputs=1)
    assert [each["what"] for each in again.findings] == [first["what"]]
