"""What all tests share: where the public data sets are, and how hard hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

# Compiled kernels make a first example slow, so no example has a deadline. In CI the examples are
# the same on every run: a failure there can be repeated.
_COMMON = {"deadline": None, "suppress_health_check": [HealthCheck.too_slow]}
settings.register_profile("default", **_COMMON)
settings.register_profile("ci", derandomize=True, print_blob=True, **_COMMON)
settings.load_profile("ci" if os.environ.get("CI") else "default")


@pytest.fixture(scope="session")
def data_dir() -> Path:
    """Give the directory of public data sets, or skip the test with the reason."""
    folder = os.environ.get("LEANRANK_DATA")
    if not folder:
        pytest.skip("LEANRANK_DATA is not set: no public data sets to test on")
    path = Path(folder)
    if not path.is_dir():
        pytest.skip(f"LEANRANK_DATA={folder} is not a directory")
    return path
