from __future__ import annotations

import subprocess
import sys
import threading
import time

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from leanrank import execution
from leanrank.errors import InputError
from leanrank.execution import (
    Executor,
    add_up,
    available_cores,
    count_workers,
    make_executor,
    query_ranges,
    row_blocks,
    single_threaded_blas,
)


@pytest.mark.parametrize("workers", [1, 2, 4])
def test_results_come_in_the_order_of_the_items(workers: int) -> None:
    def slow_first(item: int) -> int:
        time.sleep(0.002 * (10 - item))
        return item * item

    assert make_executor(workers).map(slow_first, range(10)) == [i * i for i in range(10)]


def test_threads_are_used_and_limited() -> None:
    both = threading.Barrier(2, timeout=20)
    Executor(2).map(lambda _: both.wait(), range(2))  # would time out on one thread
    names: set[str] = set()

    def note(_: int) -> None:
        names.add(threading.current_thread().name)
        time.sleep(0.001)

    Executor(2).map(note, range(40))
    assert len(names) <= 2
    assert threading.current_thread().name not in names


@pytest.mark.parametrize("executor", [Executor(), Executor(3)])
def test_empty_single_and_failing_maps(executor: execution.Executor) -> None:
    assert executor.map(abs, []) == []
    assert executor.map(abs, iter([-1])) == [1]
    with pytest.raises(ZeroDivisionError):
        executor.map(lambda i: 1 // i, [1, 2, 0, 3])
    assert executor.map(abs, [-1, -2]) == [1, 2]  # the pool is still of use


def test_maps_inside_maps_do_not_wait_for_each_other() -> None:
    done: list[list[list[int]]] = []
    executor = Executor(2)

    def outer(i: int) -> list[int]:
        return executor.map(lambda j: i * j, range(5))

    thread = threading.Thread(
        target=lambda: done.append(executor.map(outer, range(6))), daemon=True
    )
    thread.start()
    thread.join(20)
    assert done == [[[i * j for j in range(5)] for i in range(6)]]


@pytest.mark.parametrize("n_jobs", [0, True, 1.5, "2"])
def test_senseless_n_jobs(n_jobs: object) -> None:
    with pytest.raises(InputError, match=r"n_jobs=.* is not a number of threads"):
        count_workers(n_jobs)  # type: ignore[arg-type]


def test_n_jobs_counts_as_in_scikit_learn(monkeypatch: pytest.MonkeyPatch) -> None:
    assert available_cores() >= 1
    monkeypatch.setattr(execution, "available_cores", lambda: 4)
    asked = (None, 1, 7, np.int64(3), -1, -2, -4, -9)
    assert [count_workers(n) for n in asked] == [1, 1, 7, 3, 4, 3, 1, 1]
    assert isinstance(make_executor(None), Executor)
    assert make_executor(-1).n_workers == 4


@given(st.lists(st.integers(0, 9), max_size=60), st.integers(1, 12), st.integers(0, 5))
def test_query_ranges_cover_all_queries_in_order(
    sizes: list[int], rows_per_range: int, start: int
) -> None:
    ptr = start + np.concatenate(([0], np.cumsum(sizes, dtype=np.int64)))
    ranges = query_ranges(ptr, rows_per_range)
    assert [q for r0, r1 in ranges for q in range(r0, r1)] == list(range(len(sizes)))
    assert all(r0 < r1 for r0, r1 in ranges)
    for r0, r1 in ranges:  # at most one query more than asked for
        assert ptr[r1 - 1] - ptr[r0] < 2 * rows_per_range
    if sizes:
        assert len(ranges) <= max(1, -(-sum(sizes) // rows_per_range))


@given(st.integers(0, 100), st.integers(1, 17))
def test_row_blocks_cover_all_rows(n_rows: int, size: int) -> None:
    blocks = row_blocks(n_rows, size)
    assert [i for a, b in blocks for i in range(a, b)] == list(range(n_rows))
    assert all(0 < b - a <= size for a, b in blocks)


def test_add_up_is_sequential_and_leaves_the_parts() -> None:
    values = [1e16, 1.0, -1e16, 1.0]
    assert add_up(values) == 1.0  # left to right: the first 1.0 is lost, the second is not
    parts = [np.array([v]) for v in values]
    assert add_up(parts).tolist() == [1.0]
    assert [p.item() for p in parts] == values


def _blas_threads() -> list[int]:
    from threadpoolctl import threadpool_info

    return [lib["num_threads"] for lib in threadpool_info() if lib["user_api"] == "blas"]


def test_blas_is_held_to_one_thread_until_the_last_is_out() -> None:
    import scipy.linalg  # noqa: F401
    from threadpoolctl import threadpool_limits

    with threadpool_limits(2, user_api="blas"):
        before = _blas_threads()
        assert before
        if max(before) < 2:
            pytest.skip("this BLAS cannot use two threads here")
        first, second = single_threaded_blas(), single_threaded_blas()
        first.__enter__()
        second.__enter__()
        assert set(_blas_threads()) == {1}
        first.__exit__(None, None, None)  # the first to come leaves first, as threads may
        assert set(_blas_threads()) == {1}
        second.__exit__(None, None, None)
        assert _blas_threads() == before
        with pytest.raises(KeyError), single_threaded_blas():
            raise KeyError("inside")
        assert _blas_threads() == before


def test_blas_is_held_to_one_thread_in_a_pool_too() -> None:
    with single_threaded_blas():
        pass  # this thread was the first to set a limit, and lives
    before = _blas_threads()

    def inside(_: int) -> list[int]:
        with single_threaded_blas():
            return _blas_threads()

    assert {n for found in Executor(2).map(inside, range(8)) for n in found} == {1}
    assert _blas_threads() == before


@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_a_forked_child_has_its_own_pool() -> None:
    program = """
import os, sys, warnings
warnings.simplefilter("ignore")
from leanrank.execution import Executor
pool = Executor(2)
assert pool.map(abs, [-1, -2, -3]) == [1, 2, 3]
child = os.fork()
if child == 0:
    os._exit(0 if pool.map(abs, [-1, -2, -3]) == [1, 2, 3] else 1)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=60).returncode == 0


@pytest.mark.slow
@pytest.mark.skipif(not hasattr(__import__("os"), "fork"), reason="needs fork")
def test_a_child_forked_while_other_threads_fit_can_fit() -> None:
    program = """
import os, signal, sys, threading, time, warnings
warnings.simplefilter("ignore")
from numba.core.compiler_lock import global_compiler_lock
from leanrank import make_ranking
from leanrank.rankers import DominationRanker
from leanrank.designs.base import make_design
from leanrank.execution import Executor, single_threaded_blas
from leanrank import execution

class Slow(Executor):
    def map(self, function, items):
        time.sleep(1.0)
        return super().map(function, items)

class Limiting:
    def limit(self, **_):
        time.sleep(1.0)
        return self

    def restore_original_limits(self):
        pass

data = make_ranking(n_queries=10, n_features=3, n_informative=2, random_state=0)
DominationRanker().fit(data)

def compile_():
    with global_compiler_lock:
        time.sleep(1.0)

def limit():
    with single_threaded_blas():
        pass

design = make_design(data.X, Slow(), data.query_ptr)
execution._blas_controller = Limiting
held = {
    "compiler": compile_,
    "blas": limit,
    "property": lambda: design.column_norms,
}
for name, hold in held.items():
    holder = threading.Thread(target=hold, daemon=True)
    holder.start()
    time.sleep(0.3)
    child = os.fork()
    if child == 0:
        signal.alarm(20)
        if name == "compiler":
            with global_compiler_lock:
                pass
        DominationRanker().fit(data)
        os._exit(0)
    if os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]):
        sys.exit(name)
    holder.join()
"""
    assert subprocess.run([sys.executable, "-c", program], timeout=90).returncode == 0
