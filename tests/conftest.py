"""What all tests share: where the public data sets are, and how hard hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from leanrank.errors import WARNED

# The same examples on every run: a test passes or fails for everyone. `make fuzz` explores.
# Compiled kernels make a first example slow, so no example has a deadline.
settings.register_profile(
    "same",
    derandomize=True,
    database=None,
    deadline=None,
    print_blob=True,
    suppress_health_check=[HealthCheck.too_slow],
)
settings.load_profile("same")


@pytest.fixture(autouse=True)
def nothing_warned() -> None:
    """Forget what a process warns of only once."""
    WARNED.clear()


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Return the directory of public data sets, or skip the test with the reason."""
    folder = os.environ.get("LEANRANK_DATA")
    if not folder:
        pytest.skip("LEANRANK_DATA is not set: no public data sets to test on")
    path = Path(folder)
    if not path.is_dir():
        pytest.skip(f"LEANRANK_DATA={folder} is not a directory")
    return path
