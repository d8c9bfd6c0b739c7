"""A few kills; ``make kill`` sends a hundred."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from tests.fuzz.kills import COMMANDS, SIGNALS, kill_once, prepare, uninterrupted


@pytest.mark.parametrize("title", ["convert", "predict"])
def test_the_same_bytes_after_a_kill_and_nothing_left_behind(title: str, tmp_path: Path) -> None:
    inputs = prepare(tmp_path)
    whole = uninterrupted(COMMANDS[title], inputs, tmp_path)
    rng = random.Random(0)
    for sent in SIGNALS:
        kill_once(COMMANDS[title], whole, inputs, tmp_path / sent.name, sent, rng)
