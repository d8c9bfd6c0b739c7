"""Files and Dask clusters for the commands that take ``--cluster``."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterator, Sequence
from typing import Any

HERE = "127.0.0.1:0"
"""Where a local cluster shows its pages: to this machine only."""


def find_files(patterns: Sequence[str]) -> list[str]:
    """Return the files that names and patterns stand for, in order."""
    from leanrank.errors import FileError

    found: list[str] = []
    for pattern in patterns:
        matching = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not matching:
            raise FileError(f"no file matches {pattern!r}: check the pattern, and quote it")
        found += matching
    return found


def delayed_files(
    files: Sequence[str], format: str | None, given: Sequence[str] | None
) -> list[Any]:
    """Return a partition for each file, which a worker reads when it is asked for."""
    import dask

    from leanrank.cli.datafiles import read_data

    return [dask.delayed(read_data)(file, format, given) for file in files]


@contextlib.contextmanager
def connect(where: str, say: Any) -> Iterator[Any]:
    """Connect to a scheduler, or start processes on this machine that end with the command.

    The link to the dashboard is printed.
    """
    from leanrank.cli.entry import say as print_line
    from leanrank.errors import ClusterError, InputError, MissingDependencyError

    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingDependencyError("distributed", "dask", "--cluster") from error
    kind, _, count = where.partition(":")
    if kind == "local" and (not count or (count.isdecimal() and int(count) > 0)):
        from leanrank.execution import available_cores

        n_workers = int(count) if count else available_cores()
        say(f"Starting {n_workers} worker{'s' * (n_workers != 1)}")
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=HERE,
                worker_dashboard_address=HERE,
                silence_logs=50,
            ) as cluster,
            Client(cluster) as client,
        ):
            print_line(f"Dask dashboard at {client.dashboard_link}")
            yield client
        return
    if "://" not in where:
        raise InputError(
            f"--cluster {where} is not known: use local, local:N or an address such as "
            "tcp://host:8786"
        )
    try:
        client = Client(where, timeout=10)
    except (OSError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {where}: {error}") from error
    with client:
        print_line(f"Dask dashboard at {client.dashboard_link}")
        yield client
