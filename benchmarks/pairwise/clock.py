"""Processor time: everything here runs on one thread, and other work should not count."""

from __future__ import annotations

import gc
import time
from collections.abc import Callable
from typing import Any

from benchmarks.harness import Timing

now = time.process_time


def measure(function: Callable[[], Any], *, repeat: int, warm_up: int = 1) -> Timing:
    """Time a function several times, after calls that compile and fill caches."""
    seconds = []
    result = None
    for at in range(warm_up + repeat):
        gc.collect()
        start = now()
        result = function()
        if at >= warm_up:
            seconds.append(now() - start)
    return Timing(seconds, result)
