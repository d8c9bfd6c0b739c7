"""Damaged files are refused with one sentence: no crash, no other exception, no infinity."""

from __future__ import annotations

import subprocess
import sys

import pytest


@pytest.mark.parametrize("kind", ["csv", "arrow", "parquet", "letor"])
def test_damaged_files(kind):
    pytest.importorskip("pyarrow")
    done = subprocess.run(
        [sys.executable, "-m", "tests.data.tables.damaged_tables", kind, "400"],
        capture_output=True,
        text=True,
        check=True,
        timeout=200,
    )
    name, count, counts, *faults = done.stdout.splitlines()
    assert (name, count) == (kind, "400")
    assert not faults
    assert "refused" in counts
