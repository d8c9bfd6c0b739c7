"""What all tests share: which are slow, where public data are, and how hard hypothesis tries."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

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
settings.register_profile("quick", settings.get_profile("same"), max_examples=25)
settings.load_profile("same")

_ENGINES = "tests/model/verify/test_engines.py::test_export_gives_the_scores_of_the_formula"
SLOW = (
    "tests/cli/test_edges.py",
    "tests/cli/test_tune.py::test_printed_figures_are_those_of_the_report",
    "tests/data/letor/test_fuzz.py",
    "tests/data/logs/test_mutations.py",
    "tests/data/tables/test_damaged_tables.py",
    "tests/fuzz/",
    "tests/losses/test_pairs.py::test_levels_in_two_tiers_are_levels",
    "tests/rankers/test_lean.py::test_scikit_learns_battery",
    "tests/model/test_reading.py::test_fuzzed_bytes",
    *(f"{_ENGINES}[{some}" for some in ("None-linear", "None-stepped", "minmax", "query-minmax-b")),
    *(f"{_ENGINES}[{some}" for some in ("query-minmax-l", "query-r", "query-s")),
    *(f"{_ENGINES}[{some}" for some in ("standard-bent", "standard-stepped")),
    "tests/papers/test_cheng2018.py",
    "tests/papers/test_pahikkala2010.py",
    "tests/papers/test_stevens2013.py",
    "tests/papers/test_tsivtsivadze2012.py",
    "tests/papers/test_tsivtsivadze2012_online.py",
    "tests/problem/test_sharded.py::test_every_answer_is_that_of_all_documents_together",
    "tests/rankers/least_squares/test_kernel_rankrls.py::test_leave_query_out_is_training",
    "tests/rankers/newton/test_domination.py::test_the_battery_of_rankers_for_the_one_thread",
    "tests/rankers/newton/test_nonconvex.py::test_the_battery_of_scikit_learn",
    "tests/rankers/test_dask.py::test_a_cluster_without_workers_is_given_up",
    "tests/rankers/test_dask.py::test_data_that_only_a_lost_worker_held",
    "tests/rankers/test_dask.py::test_killed_workers_leave_the_same_bits",
    "tests/rankers/test_lean.py::test_the_battery[check_ranker_is_the_same_on_any_number_of_threads",
    "tests/rankers/test_on_disk.py::test_a_working_set_that_is_not_copied",
    "tests/rankers/test_on_disk.py::test_memory_of_a_fit",
    "tests/report/test_browser.py",
    "tests/solvers/first_order/test_bound_cd.py::test_it_descends_and_meets_newton",
    "tests/solvers/first_order/test_bound_cd.py::test_the_order_of_stored_entries",
    "tests/test_benchmarks.py::test_figures_are_those_of_a_fit",
    "tests/test_benchmarks.py::test_quality_of_a_made_up_world",
    "tests/test_benchmarks.py::test_time_and_memory_of_a_child_process",
    "tests/test_docs.py::test_examples_run[docs/curves.md]",
    "tests/test_docs.py::test_examples_run[docs/gallery.md]",
    "tests/test_docs.py::test_examples_run[docs/online.md]",
    "tests/test_docs.py::test_examples_run[docs/scale.md]",
    "tests/test_docs.py::test_examples_run[docs/selection.md]",
    "tests/test_examples.py",
    "tests/test_jit.py",
    "tests/test_platforms.py::test_a_session_where_the_system_is_another",
)
"""How the names of slow tests begin; ``make test`` leaves them out, and those with a mark."""


def pytest_configure(config: pytest.Config) -> None:
    """Let hypothesis try fewer examples where slow tests are left out."""
    if config.option.markexpr == "not slow":
        settings.load_profile("quick")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the slow tests."""
    for item in items:
        if item.nodeid.startswith(SLOW):
            item.add_marker("slow")


@pytest.fixture(autouse=True)
def _warnings_come_again() -> None:
    """Forget what was warned of once."""
    from leanrank.errors import WARNED

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
