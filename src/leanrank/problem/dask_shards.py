"""Shards on the workers of a Dask cluster.

A shard is the value of a future, and what it knows of a problem lives in that value: it goes with
the data when the future is released. A request goes through the scheduler to each worker, which
asks the shards that it holds in its own threads and sends their sum. That is one trip of two
milliseconds; a task of a graph takes five times as long. If a worker dies, Dask reads its shards
again elsewhere, and these are sent the request again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Sequence
from typing import Any
from uuid import uuid4

from leanrank.data.dask import LONGEST_WITHOUT_WORKERS, Partitions, Rows, wait_for
from leanrank.errors import ClusterError, InputError
from leanrank.problem.shard import Shard, Sums
from leanrank.problem.sharded import Node, Shards, add_along_tree

MAX_WORKER_FAILURES = 3
"""Consecutive worker failures that one request survives, as one task of Dask does."""

WATCH = 0.5
"""Seconds after which the scheduler is asked whether a worker that has not answered is there."""


class DaskShards(Shards):
    """Shards on the workers of a Dask cluster.

    Parameters
    ----------
    partitions : Partitions
    patience : float
        Seconds to wait for a worker while there is none.

    Attributes
    ----------
    trips : int
        Requests so far, those that had to be repeated included.
    """

    def __init__(self, partitions: Partitions, patience: float = LONGEST_WITHOUT_WORKERS) -> None:
        self.client = partitions.client
        self.patience = patience
        self.n_shards = len(partitions.rows)
        self.n_rows = sum(facts.n_rows for facts in partitions.facts)
        self.n_features = partitions.facts[0].n_features
        self.levels = partitions.levels
        self.trips = 0
        self.name = _new_name()
        self.futures = [
            self.client.submit(_make_shard, rows, key=_key(self.name, at))
            for at, rows in enumerate(partitions.rows)
        ]
        self._places: dict[str, list[int]] = {}

    def sums(self, *request: Any) -> Sums:
        """Return the sum of all shards' answers."""
        nodes = self._all(_answers, (request, self.n_shards))
        (sums,) = add_along_tree(nodes, self.n_shards).values()
        assert sums is not None  # some shard has informative queries
        return sums

    def map(
        self, function: Callable[..., Any], *arguments: Any, each: Sequence[Any] | None = None
    ) -> list[Any]:
        """Apply a function to all shards, where they are."""
        found = self._all(_applied, (function, arguments, each))
        return [found[0, at] for at in range(self.n_shards)]

    def _all(self, function: Callable[..., Any], arguments: tuple[Any, ...]) -> dict[Node, Any]:
        """Call a function for all shards where they are, until each has answered."""
        found: dict[Node, Any] = {}
        missing, failures = list(range(self.n_shards)), 0
        while missing:
            places = self._placed()
            chosen = {
                worker: numbers
                for worker, held in places.items()
                if (numbers := [at for at in held if at in set(missing)])
            }
            self.trips += 1
            answers, error = self.client.sync(self._trip, function, chosen, arguments)
            for nodes in answers:
                found |= nodes
            missing = _missing(found, self.n_shards)
            failures = 0 if error is None else failures + 1
            if failures > MAX_WORKER_FAILURES:
                raise ClusterError(_failed_again(error)) from error
            if missing:
                self._places = {}  # shards have moved
        return found

    async def _trip(
        self, function: Callable[..., Any], places: dict[str, list[int]], arguments: tuple[Any, ...]
    ) -> tuple[list[dict[Node, Any]], Exception | None]:
        """Call a function on workers; return what came back, and why something did not."""
        calls = {
            asyncio.ensure_future(
                self.client.run(
                    function, self.name, numbers, *arguments, workers=[worker], on_error="return"
                )
            ): worker
            for worker, numbers in places.items()
        }
        answers: list[dict[Node, Any]] = []
        error: Exception | None = None
        waiting = set(calls)
        while waiting:
            done, waiting = await asyncio.wait(
                waiting, timeout=WATCH, return_when=asyncio.FIRST_COMPLETED
            )
            for call in done:
                answer = call.exception() or next(iter(call.result().values()))
                if isinstance(answer, OSError):  # the worker is gone
                    error = answer
                elif isinstance(answer, BaseException):
                    raise answer
                else:
                    answers.append(answer)
            if waiting and not done:
                alive = await self.client.nthreads()
                for call in [call for call in waiting if calls[call] not in alive]:
                    call.cancel()
                    waiting.remove(call)
                    error = OSError(f"{calls[call]} has left the cluster")
        return answers, error

    def _placed(self) -> dict[str, list[int]]:
        """Return for each worker the shards to ask there, once all are somewhere."""
        places = self._places
        while not places:
            self._wait()
            holders = self.client.who_has(self.futures)
            held = [min(holders.get(future.key, ()), default="") for future in self.futures]
            if all(held):
                places = {worker: [] for worker in held}
                for at, worker in enumerate(held):
                    places[worker].append(at)
                self._places = places
        return places

    def _wait(self) -> None:
        """Wait for the shards."""
        wait_for(self.client, self.futures, self.patience)
        for at, future in enumerate(self.futures):
            if future.status == "error":
                _raise_for(at, future.exception())


def _new_name() -> str:
    return f"leanrank-shard-{uuid4().hex}"


def _key(name: str, at: int) -> str:
    return f"{name}-{at}"


def _missing(found: Iterable[Node], n_shards: int) -> list[int]:
    """Return the shards that no node covers.

    >>> _missing([(1, 0), (0, 3)], 5)
    [2, 4]
    """
    covered = {at for level, i in found for at in range(i << level, (i + 1) << level)}
    return [at for at in range(n_shards) if at not in covered]


def _raise_for(at: int, error: BaseException) -> None:
    """Raise an error that says why a shard could not be made."""
    from distributed import KilledWorker

    if isinstance(error, KilledWorker):
        raise ClusterError(_failed_again(f"{error.last_worker.address} was the last")) from error
    if isinstance(error, InputError):
        raise error
    raise ClusterError(
        f"partition {at} could not be read again ({type(error).__name__}: {error}): fit again"
    ) from error


def _failed_again(why: Any) -> str:
    return (
        f"workers died again and again at one task ({why}), probably for lack of memory: use "
        "smaller partitions or larger workers"
    )


# on a worker


def _make_shard(rows: Rows) -> Shard:
    return Shard(*rows)


async def _applied(
    name: str,
    numbers: list[int],
    function: Callable[..., Any],
    arguments: tuple[Any, ...],
    each: Sequence[Any] | None = None,
    *,
    dask_worker: Any,
) -> dict[Node, Any]:
    """Apply a function to the shards that are here, in the worker's threads."""
    data = dask_worker.data
    here = {at: data[key] for at in numbers if (key := _key(name, at)) in data}
    loop = asyncio.get_running_loop()
    try:
        calls = []
        for at, shard in here.items():
            own = arguments if each is None else (each[at], *arguments)
            calls.append(loop.run_in_executor(dask_worker.executor, function, shard, *own))
    except RuntimeError:  # the worker is shutting down
        return {}
    found = await asyncio.gather(*calls)
    return {(0, at): value for at, value in zip(here, found, strict=True)}


async def _answers(
    name: str, numbers: list[int], request: tuple[Any, ...], n_shards: int, *, dask_worker: Any
) -> dict[Node, Sums | None]:
    """Return the sums of answers of the shards that are here."""
    found = await _applied(name, numbers, Shard.sums, request, dask_worker=dask_worker)
    return add_along_tree(found, n_shards)
