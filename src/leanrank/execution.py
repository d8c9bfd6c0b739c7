"""Mapping kernels over ranges, and adding up their results in a fixed order.

The ranges depend on the data only, never on the number of workers, and partial results are combined
in the order of the ranges. So one thread, many threads and a cluster give the same bits.
"""

from __future__ import annotations

import functools
import os
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from functools import lru_cache
from itertools import pairwise
from typing import Any, TypeVar

import numpy as np

from leanrank._numbers import is_whole
from leanrank.errors import InputError

T = TypeVar("T")
R = TypeVar("R")

ROWS_PER_RANGE = 16_384
"""Documents per unit of work: many against the cost of a call, few against idle threads."""


class Executor:
    """Applies a function to items in the calling thread, or in a pool of several threads.

    Threads run in parallel because the kernels release the GIL.
    """

    def __init__(self, n_workers: int = 1) -> None:
        self.n_workers = n_workers

    def map(self, function: Callable[[T], R], items: Iterable[T]) -> list[R]:
        """Return the results of ``function`` for all items, in their order."""
        listed = list(items)
        # a worker must not wait for workers
        if self.n_workers == 1 or len(listed) < 2 or getattr(_worker, "busy", False):
            return [function(item) for item in listed]
        settings = np.geterr()  # they are those of a thread

        def as_here(item: T) -> R:
            with np.errstate(**settings):
                return function(item)

        return list(_pool(self.n_workers, os.getpid()).map(as_here, listed))


def make_executor(n_jobs: int | None) -> Executor:
    """Return the executor for scikit-learn's ``n_jobs`` (None is 1, -1 is every core).

    >>> make_executor(2).map(abs, [-3, 2, -1])
    [3, 2, 1]
    """
    return Executor(count_workers(n_jobs))


def count_workers(n_jobs: int | None) -> int:
    """Return the number of threads for ``n_jobs``.

    >>> count_workers(None), count_workers(3)
    (1, 3)
    """
    if n_jobs is None:
        return 1
    if not is_whole(n_jobs) or n_jobs == 0:
        raise InputError(
            f"n_jobs={n_jobs!r} is not a number of threads: use a positive integer, or -1 for all "
            "cores"
        )
    if n_jobs > 0:
        return int(n_jobs)
    return max(1, available_cores() + 1 + int(n_jobs))


def available_cores() -> int:
    """Return the number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def query_ranges(
    query_ptr: np.ndarray[Any, Any], rows_per_range: int = ROWS_PER_RANGE
) -> list[tuple[int, int]]:
    """Cut the queries into consecutive ranges of about ``rows_per_range`` documents.

    >>> query_ranges(np.array([0, 3, 5, 9, 10]), rows_per_range=5)
    [(0, 2), (2, 4)]
    """
    ptr = np.asarray(query_ptr)
    n_queries = len(ptr) - 1
    if n_queries == 0:
        return []
    n_ranges = max(1, -(-int(ptr[-1] - ptr[0]) // rows_per_range))
    targets = ptr[0] + np.arange(1, n_ranges) * rows_per_range
    cuts = sorted({0, *np.searchsorted(ptr, targets).tolist(), n_queries})
    return list(pairwise(cuts))


def row_blocks(n_rows: int, rows_per_block: int = ROWS_PER_RANGE) -> list[tuple[int, int]]:
    """Cut rows into consecutive blocks, regardless of queries.

    >>> row_blocks(10, 4)
    [(0, 4), (4, 8), (8, 10)]
    """
    return [(at, min(at + rows_per_block, n_rows)) for at in range(0, n_rows, rows_per_block)]


def add_up(parts: Sequence[Any]) -> Any:
    """Return the sum of partial results, added in their order."""
    total = parts[0].copy() if isinstance(parts[0], np.ndarray) else parts[0]
    for part in parts[1:]:
        total += part
    return total


@contextmanager
def single_threaded_blas() -> Iterator[None]:
    """Limit BLAS to one thread: its sums depend on their number, and kernels have own threads.

    The limit is that of the process: of several concurrent fits, the first sets it and the last
    restores it, in any threads.
    """
    with _blas_lock:
        if not _blas_limits:
            _take_blas_control()
            _blas_limits.append(_blas_controller().limit(limits=1, user_api="blas"))
        else:
            _blas_limits.append(None)
    try:
        yield
    finally:
        with _blas_lock:
            if len(_blas_limits) > 1:
                _blas_limits.pop()
            else:
                _take_blas_control()
                _blas_limits.pop().restore_original_limits()
                _take_blas_control()


_blas_lock = threading.RLock()
_blas_limits: list[Any] = []  # one per block in use; the first can restore the limit
if hasattr(os, "register_at_fork"):  # in a child, no thread could release the lock
    os.register_at_fork(
        before=_blas_lock.acquire,
        after_in_parent=_blas_lock.release,
        after_in_child=_blas_lock.release,
    )


class cached_property(functools.cached_property[R]):  # noqa: N801
    """functools.cached_property without its lock, which a fork may copy locked (Python 3.11)."""

    def __init__(self, function: Callable[[Any], R]) -> None:
        super().__init__(function)
        self.lock = nullcontext()


def _take_blas_control() -> None:
    """Let this thread set the limit: threadpoolctl from 3.7 on ignores all threads but the first.

    The first may be the main thread, which is idle while a pool fits.
    """
    from threadpoolctl import OpenBLASController

    if hasattr(OpenBLASController, "clear_controlling_thread"):
        OpenBLASController.clear_controlling_thread(force=True)


@lru_cache(maxsize=1)
def _blas_controller() -> Any:
    import scipy.linalg  # noqa: F401  (its BLAS must be loaded to be controlled)
    from threadpoolctl import ThreadpoolController

    return ThreadpoolController()


@lru_cache(maxsize=8)
def _pool(n_workers: int, pid: int) -> ThreadPoolExecutor:
    """Return the pool of a size and process: a forked child has none of its parent's threads."""
    del pid
    return ThreadPoolExecutor(
        n_workers,
        thread_name_prefix="leanrank",
        initializer=lambda: setattr(_worker, "busy", True),
    )


_worker = threading.local()
