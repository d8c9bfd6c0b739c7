"""Dask collections, and the cluster that computes them.

Dask is loaded when a Dask object is given, and not before.
"""

from __future__ import annotations

import logging
import time
from concurrent.futures import CancelledError
from typing import Any

import numpy as np

from leanrank.errors import ClusterError, InputError, MissingDependencyError

log = logging.getLogger("leanrank.dask")

LONGEST_WITHOUT_WORKERS = 60.0
"""Seconds without any worker after which waiting ends with an error."""


def is_dask(value: Any) -> bool:
    """Return whether a value is a Dask collection, or a list of delayed objects or futures.

    >>> is_dask([[1.0, 2.0]]), is_dask(None)
    (False, False)
    """
    if isinstance(value, (list, tuple)):
        return len(value) > 0 and all(is_lazy(each) for each in value)
    module = type(value).__module__.partition(".")[0]
    return module in ("dask", "dask_expr") and hasattr(value, "__dask_graph__")


def refuse_dask(X: Any, who: str) -> None:
    """Reject documents on Dask where all are needed in memory, instead of loading them silently."""
    if is_dask(X):
        raise InputError(f"{who} needs all documents in memory: give X.compute() if they fit")


def is_lazy(value: Any) -> bool:
    """Return whether a value is a delayed object or a future."""
    module, name = type(value).__module__.partition(".")[0], type(value).__name__
    return module in ("dask", "distributed") and name.startswith(("Delayed", "Future"))


def current_client() -> Any:
    """Return the active Dask client, or start a cluster in this process with a warning."""
    try:
        from distributed import Client, get_client
    except ImportError as error:
        raise MissingDependencyError("distributed", "dask", "fitting on Dask") from error
    try:
        return get_client()
    except ValueError:
        # Threads of this process: kernels run without the GIL, and documents are not copied. Only
        # this machine can reach the pages about it.
        here = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
        client = Client(processes=False, silence_logs=logging.CRITICAL, **here)
        log.warning(
            "no Dask client is active: started a cluster in this process, dashboard %s; make a "
            "Client before the fit to use another",
            f"http://127.0.0.1:{client.cluster.scheduler.http_server.port}/status",
        )
        return client


def partition_list(value: Any) -> list[Any]:
    """Return the partitions of a collection as delayed objects or futures."""
    if isinstance(value, (list, tuple)):
        return list(value)
    if getattr(value, "ndim", 1) == 2 and hasattr(value, "numblocks") and value.numblocks[1] > 1:
        value = value.rechunk({1: -1})
    # Optimised, columns of one file may be cut into different partitions, and are read twice.
    return list(np.ravel(np.array(value.to_delayed(optimize_graph=False), dtype=object)))


def wait_for(client: Any, futures: list[Any], patience: float = LONGEST_WITHOUT_WORKERS) -> None:
    """Wait for futures; raise a ClusterError after ``patience`` seconds without any worker."""
    from distributed import wait
    from distributed.client import FutureCancelledError

    seen = time.monotonic()  # a worker
    while True:
        try:
            wait(futures, timeout=5)
            return
        except TimeoutError:
            if client.nthreads():
                seen = time.monotonic()
            elif time.monotonic() - seen > patience:
                raise ClusterError(
                    f"the Dask cluster has had no worker for {patience:.0f} seconds: "
                    "start workers and fit again"
                ) from None
        except (CancelledError, FutureCancelledError) as error:
            why = (
                "a worker died with data that only its memory held, so they cannot be read again: "
                "give a collection that is read from files, or fit on a new one"
            )
            if client.status != "running":
                why = "the connection to the Dask scheduler is lost: make a new client, fit again"
            raise ClusterError(why) from error
