"""Dask collections as partitions of whole queries, and the cluster that computes them.

A collection is in partitions of rows, and the rows of a query may be in several of them. Workers
read and check each partition, and bring the rows of such a query together in one partition. Only
query ids and counts come back to the client.

Dask is imported when a Dask object is given, and not before.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Mapping, Sequence
from concurrent.futures import CancelledError
from dataclasses import dataclass
from operator import getitem
from typing import Any, NamedTuple

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.grouping import Grouping, one_per_row
from leanrank.data.ranking_data import RankingData, concatenated, counted
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
        # Threads of this process: kernels run without the GIL, and documents are not copied. The
        # dashboard is for this machine only.
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
    # The optimisation may cut columns of one file into different partitions and read them twice.
    return list(np.ravel(np.array(value.to_delayed(optimize_graph=False), dtype=object)))


def wait_for(client: Any, futures: list[Any], patience: float = LONGEST_WITHOUT_WORKERS) -> None:
    """Wait for futures; raise a ClusterError after ``patience`` seconds without any worker."""
    from distributed import wait
    from distributed.client import FutureCancelledError

    last_worker = time.monotonic()
    while True:
        try:
            wait(futures, timeout=5)
            return
        except TimeoutError:
            if client.nthreads():
                last_worker = time.monotonic()
            elif time.monotonic() - last_worker > patience:
                raise ClusterError(
                    f"the Dask cluster has had no worker for {patience:.0f} seconds: "
                    "start workers and fit again"
                ) from None
        except (CancelledError, FutureCancelledError) as error:
            why = (
                "a worker died with data that were only in its memory: give a collection that is "
                "read from files, or make a new one"
            )
            if client.status != "running":
                why = "the connection to the Dask scheduler is lost: make a new client, fit again"
            raise ClusterError(why) from error


MOST_LEVELS = 1_024
"""Distinct labels of a partition beyond which they are not collected."""


class Rows(NamedTuple):
    """A partition of documents, grouped by query."""

    data: RankingData
    gain_weight: FloatArray | None


class Facts(NamedTuple):
    """Facts about a partition for the client; their size does not grow with its features."""

    n_rows: int
    n_features: int
    names: tuple[str, ...] | None
    n_informative: int
    levels: FloatArray | None
    query_ids: AnyArray
    query_sizes: IntArray

    def __str__(self) -> str:
        names = "" if self.names is None else f" ({', '.join(self.names)})"
        kind = "numbers" if self.query_ids.dtype.kind in "biuf" else "text"
        return f"{self.n_features} features{names} and {kind} as qid"


def read_rows(
    at: int,
    checks: tuple[Any, ...],
    X: Any,
    y: Any = None,
    qid: Any = None,
    gain_weight: Any = None,
    **columns: Any,
) -> Rows | InputError:
    """Return one partition, checked and grouped by query, or its error.

    Dask would log the traceback of an error that is raised.
    """
    names, query_weight, check = checks
    data = X
    try:
        if not isinstance(X, RankingData):
            names = tuple(map(str, X.columns)) if hasattr(X, "columns") else names
            columns |= {"y": y, "qid": qid}
            columns = {name: None if v is None else np.asarray(v) for name, v in columns.items()}
            data = RankingData(_numbers(X), feature_names=names, **columns)
            if query_weight is not None:
                weights = {each: query_weight.get(each, 1.0) for each in data.query_ids.tolist()}
                data = data.replace(query_weight=weights)
        if check is not None:
            check(data)
        grouping = Grouping(data.query_ids, data.query_ptr, data.order)
        gains = one_per_row(gain_weight, "gain_weight", grouping, len(data), low=0.0)
    except ValueError as error:
        return InputError(f"partition {at}: {error}")
    return Rows(data.with_fields(order=None), gains)


def _numbers(X: Any) -> Any:
    """Return a partition of a data frame or an array as a matrix."""
    if getattr(X, "ndim", 2) == 1:
        raise InputError("X has one dimension: give documents × features, such as X[:, None]")
    if not hasattr(X, "dtypes"):
        return X
    for name, dtype in zip(X.columns, X.dtypes, strict=True):
        if getattr(dtype, "kind", "O") not in "biuf":
            raise InputError(f"the column {name!r} holds {dtype} values: features are numbers")
    if any(not isinstance(dtype, np.dtype) for dtype in X.dtypes):  # nullable types
        return X.to_numpy(dtype=np.float64, na_value=np.nan)
    return X.to_numpy()


def facts_of(rows: Rows | InputError) -> Facts | InputError:
    """Return the facts about a partition, or its error."""
    if isinstance(rows, InputError):
        return rows
    data = rows.data
    levels = data.levels if len(data.levels) <= MOST_LEVELS else None
    n_informative, sizes = int(data.informative.sum()), np.diff(data.query_ptr)
    shape = len(data), data.n_features, data.feature_names
    return Facts(*shape, n_informative, levels, data.query_ids, sizes)


def split_rows(rows: Rows, home: IntArray) -> dict[int, Rows]:
    """Return the rows of a partition by the partition that each query goes to."""
    query_of = np.repeat(np.arange(rows.data.n_queries), np.diff(rows.data.query_ptr))
    out = {}
    for goal in np.unique(home).tolist():
        chosen = home == goal
        gains = None if rows.gain_weight is None else rows.gain_weight[chosen[query_of]]
        out[goal] = Rows(rows.data.queries[chosen], gains)
    return out


def merge_rows(pieces: list[Rows]) -> Rows:
    """Return pieces as one, in the order of their partitions, grouped by query."""
    data = concatenated([piece.data for piece in pieces])
    gains = None
    if pieces[0].gain_weight is not None:
        given = np.concatenate([piece.gain_weight for piece in pieces])
        gains = given if data.order is None else given[data.order]
    return Rows(data.with_fields(order=None), gains)


@dataclass(frozen=True)
class Partitions:
    """Rows on a cluster, every query within one partition.

    Attributes
    ----------
    client : distributed.Client
    rows : list of futures of Rows
        The partitions that are not empty, in order.
    facts : list of Facts
        Facts about each of them.
    how : str
        A sentence on queries across partitions.
    """

    client: Any
    rows: list[Any]
    facts: list[Facts]
    how: str

    @property
    def levels(self) -> FloatArray | None:
        """The distinct labels; None if there are too many to collect."""
        found = [facts.levels for facts in self.facts]
        if any(levels is None for levels in found):
            return None
        return np.unique(np.concatenate([np.asarray(levels) for levels in found]))


def read_partitions(
    X: Any,
    columns: Mapping[str, Any],
    *,
    query_weight: Any = None,
    check: Callable[[RankingData], None] | None = None,
) -> Partitions:
    """Read a collection into partitions of whole queries.

    Parameters
    ----------
    X : Dask DataFrame or Array, or list of delayed objects or futures
        A list may also hold RankingData, and then ``columns`` is empty.
    columns : mapping of str to collection or None
        ``y``, ``qid``, ``sample_weight``, ``gain_weight``, ``offset``, partitioned as X is.
    query_weight : mapping, optional
        From query id to weight.
    check : callable, optional
        Called with each partition on its worker, to reject data that cannot be used.
    """
    if query_weight is not None and not isinstance(query_weight, Mapping):
        raise InputError("query_weight must be a mapping from qid to weight where X is on Dask")
    from dask import delayed

    client = current_client()
    X = [X] if is_lazy(X) else X
    columns = {name: [each] if is_lazy(each) else each for name, each in columns.items()}
    pieces = _aligned(X, columns)
    names = tuple(map(str, X.columns)) if hasattr(X, "columns") else None
    checks = (names, query_weight, check)
    given = [dict(zip(pieces, each, strict=True)) for each in zip(*pieces.values(), strict=True)]
    tasks = [delayed(read_rows, pure=False)(at, checks, **own) for at, own in enumerate(given)]
    rows = client.compute(tasks)
    facts = _gathered(client, [client.submit(facts_of, each, pure=False) for each in rows])
    _agree(facts)
    filled = [at for at, each in enumerate(facts) if each.n_rows]
    if not filled:
        raise InputError(f"all {counted(len(rows), 'partition')} are empty: nothing to learn from")
    return _arranged(client, [rows[at] for at in filled], [facts[at] for at in filled])


def _gathered(client: Any, futures: list[Any]) -> list[Any]:
    """Return the facts, or raise the error of the first bad partition."""
    wait_for(client, futures)
    for at, future in enumerate(futures):
        if future.status == "error":
            error = future.exception()
            if isinstance(error, InputError):
                raise error
            raise InputError(
                f"partition {at} could not be read ({type(error).__name__}: {error}): compute it "
                "by itself to see where it fails"
            ) from error
    found = list(client.gather(futures))
    if (wrong := next((each for each in found if isinstance(each, InputError)), None)) is not None:
        raise wrong
    return found


def _aligned(X: Any, columns: Mapping[str, Any]) -> dict[str, list[Any]]:
    """Cut all columns into the partitions of X."""
    pieces = {"X": partition_list(X)}
    for name, value in columns.items():
        if value is None:
            continue
        if not is_dask(value):
            raise InputError(
                f"X is on Dask but {name} is {type(value).__name__}: give {name} as a Dask "
                "collection with the partitions of X"
            )
        if getattr(value, "ndim", 1) != 1:
            raise InputError(f"{name} has {value.ndim} dimensions: give one value per document")
        if hasattr(value, "rechunk") and hasattr(X, "chunks") and value.shape[0] == X.shape[0]:
            value = value.rechunk((X.chunks[0],))
        pieces[name] = partition_list(value)
        if len(pieces[name]) != len(pieces["X"]):
            raise InputError(
                f"{name} has {counted(len(pieces[name]), 'partition')} but X has "
                f"{len(pieces['X'])}: take both from one collection, or repartition one of them"
            )
    return pieces


def _agree(facts: Sequence[Facts]) -> None:
    """Reject partitions that differ in their columns or in the type of their queries."""
    filled = [(at, each) for at, each in enumerate(facts) if each.n_rows]
    for at, here in filled[1:]:
        base, first = filled[0]
        if None in (here.names, first.names):  # columns have no names in one of them
            here, first = here._replace(names=None), first._replace(names=None)
        if str(here) != str(first):
            raise InputError(
                f"partition {at} has {here} but partition {base} has {first}: give all partitions "
                "the same columns and one type of qid"
            )


def _arranged(client: Any, rows: list[Any], facts: list[Facts]) -> Partitions:
    """Move rows so that each query is in one partition."""
    homes, n_shared = _assign(facts)
    how = f"no query lies across the {counted(len(rows), 'partition')}: they are used unchanged"
    if n_shared:
        arriving: list[list[Any]] = [[] for _ in rows]
        for at, home in enumerate(homes):
            if (home == at).all():
                arriving[at].append(rows[at])
                continue
            pieces = client.submit(split_rows, rows[at], home, pure=False)
            for goal in np.unique(home).tolist():
                arriving[goal].append(client.submit(getitem, pieces, goal, pure=False))
        rows = [client.submit(merge_rows, pieces, pure=False) for pieces in arriving if pieces]
        facts = client.gather([client.submit(facts_of, each, pure=False) for each in rows])
        across = counted(n_shared, "query lies", "queries lie")
        how = f"{across} across partitions: the rows of each are brought together in one of them"
    log.info("%s", how)
    return Partitions(client, rows, facts, how)


def _assign(facts: list[Facts]) -> tuple[list[IntArray], int]:
    """Return the partition that each query of each partition goes to, and how many are shared.

    A shared query goes to the one of its partitions with the fewest rows so far.
    """
    places: dict[Any, dict[int, int]] = {}
    listed = [part.query_ids.tolist() for part in facts]
    for at, (ids, part) in enumerate(zip(listed, facts, strict=True)):
        for each, size in zip(ids, part.query_sizes.tolist(), strict=True):
            places.setdefault(each, {})[at] = size
    load = [0] * len(facts)
    home: dict[Any, int] = {}
    for each, found in sorted(places.items(), key=lambda item: len(item[1])):
        home[each] = min(found, key=load.__getitem__)
        load[home[each]] += sum(found.values())
    n_shared = sum(len(found) > 1 for found in places.values())
    return [np.array([home[each] for each in ids], np.int64) for ids in listed], n_shared
