"""Measures are tested as compiled; ``test_plain`` compares what is interpreted with that."""

from __future__ import annotations

from collections.abc import Iterator

import pytest


@pytest.fixture(autouse=True, scope="module")
def compiled() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("leanrank.metrics._plain.LIMIT", 0)
        yield
