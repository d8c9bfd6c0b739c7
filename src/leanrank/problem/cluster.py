"""Parts on the workers of a Dask cluster.

A part is the value of a future, and what it knows of a problem lives in that value: it goes with
the data when the future is released. A question is one task for each thread of a worker, with the
parts that the worker holds as its inputs. If a worker dies, Dask reads its parts again elsewhere;
they say that they do not know the point, and are told the trail (see ``parts``).
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable
from concurrent.futures import CancelledError
from itertools import pairwise
from typing import Any

import numpy as np

from leanrank.data.partitions import Partitions, Rows
from leanrank.errors import ClusterError
from leanrank.problem.parts import Lost, Node, Part, Parts, Question, Setup, Share, add_along_tree

LONGEST_WITHOUT_WORKERS = 60.0
"""Seconds after which a cluster without any worker is given up."""


class ClusterParts(Parts):
    """Parts on the workers of a Dask cluster.

    Parameters
    ----------
    partitions : Partitions
    patience : float
        Seconds to wait for a worker while there is none.

    Attributes
    ----------
    trips : int
        Questions so far, those that had to be repeated included.
    """

    def __init__(self, partitions: Partitions, patience: float = LONGEST_WITHOUT_WORKERS) -> None:
        self.client = partitions.client
        self.patience = patience
        self.n_parts = len(partitions.rows)
        self.n_rows = sum(facts.n_rows for facts in partitions.facts)
        self.n_features = partitions.facts[0].n_features
        self.levels = partitions.levels
        self.trips = 0
        self.futures = [
            self.client.submit(_make_part, rows, pure=False) for rows in partitions.rows
        ]
        self._groups: list[tuple[str, list[int]]] = []
        self._finished: list[str] = []

    def ask(self, question: Question, whole: Callable[[], Question]) -> Share:
        """Return the sum of all parts' answers."""
        nodes, lost = self._ask(question, range(self.n_parts))
        while lost:
            self._groups = []  # parts have moved
            found, lost = self._ask(whole(), lost)
            nodes |= found
        (share,) = add_along_tree(nodes, self.n_parts).values()
        return share

    def _ask(self, question: Question, which: Iterable[int]) -> tuple[dict[Node, Share], list[int]]:
        self.trips += 1
        asked, finished = set(which), tuple(self._finished)
        del self._finished[: len(finished)]
        tasks = [
            self._submit(worker, chosen, _answer, question, self.n_parts, finished)
            for worker, parts in self._placed()
            if (chosen := [at for at in parts if at in asked])
        ]
        nodes: dict[Node, Share] = {}
        lost: list[int] = []
        for known, forgotten in self._gather(tasks):
            nodes |= known
            lost += forgotten
        return nodes, lost

    def total(self, setup: Setup) -> float:
        """Return S of an objective."""
        tasks = [self._submit(w, parts, _totals, setup) for w, parts in self._placed()]
        summands = {(0, at): (t,) for found in self._gather(tasks) for at, t in found.items()}
        ((total,),) = add_along_tree(summands, self.n_parts).values()
        return float(total)

    def map(self, function: Callable[..., Any], *arguments: Any) -> list[Any]:
        """Apply a function to the data of each part, where it is; results in order."""
        tasks = [self._submit(w, parts, _apply, function, arguments) for w, parts in self._placed()]
        found: dict[int, Any] = {}
        for results in self._gather(tasks):
            found |= results
        return [found[at] for at in range(self.n_parts)]

    def release(self, key: str) -> None:
        """Let the parts forget a problem; they are told with the next question.

        A problem may be collected in any thread, where a task should not be submitted.
        """
        self._finished.append(key)

    def _submit(self, worker: str, parts: list[int], function: Any, *arguments: Any) -> Any:
        return self.client.submit(
            function,
            parts,
            [self.futures[at] for at in parts],
            *arguments,
            workers=[worker] if worker else None,
            allow_other_workers=bool(worker),
            pure=False,
        )

    def _placed(self) -> list[tuple[str, list[int]]]:
        """Return for each thread of each worker the parts to ask there."""
        if not self._groups:
            self._gather(self.futures, values=False)
            holders = self.client.who_has(self.futures)
            threads = self.client.nthreads()
            by_worker: dict[str, list[int]] = {}
            for at, future in enumerate(self.futures):
                held = sorted(holders.get(future.key, ()))
                by_worker.setdefault(held[0] if held else "", []).append(at)
            for worker, parts in sorted(by_worker.items()):
                lanes = min(len(parts), threads.get(worker, 1))
                cuts = np.linspace(0, len(parts), lanes + 1).astype(int).tolist()
                self._groups += [(worker, parts[low:high]) for low, high in pairwise(cuts)]
        return self._groups

    def _gather(self, futures: list[Any], *, values: bool = True) -> list[Any]:
        """Wait for results, but not for a cluster that has no workers left."""
        from distributed import KilledWorker, wait
        from distributed.client import FutureCancelledError

        lonely = 0.0
        while True:
            try:
                wait(futures, timeout=5)
            except TimeoutError:
                lonely = lonely or time.monotonic()
                if self.client.nthreads():
                    lonely = 0.0
                elif time.monotonic() - lonely > self.patience:
                    raise ClusterError(
                        f"the Dask cluster has had no worker for {self.patience:.0f} seconds: "
                        "start workers and fit again"
                    ) from None
            except (CancelledError, FutureCancelledError):
                break
            else:
                break
        try:
            return self.client.gather(futures) if values else []
        except KilledWorker as error:
            raise ClusterError(
                f"workers died again and again at one task ({error.last_worker.address} was the "
                "last), probably for lack of memory: use smaller partitions or larger workers"
            ) from error
        except (CancelledError, FutureCancelledError) as error:
            raise ClusterError(
                "a worker died with data that only its memory held, so they cannot be read again: "
                "give a collection that is read from files, or fit on a new one"
            ) from error


def _make_part(rows: Rows) -> Part:
    return Part(*rows)


def _answer(
    numbers: list[int],
    parts: list[Part],
    question: Question,
    n_parts: int,
    finished: tuple[str, ...] = (),
) -> tuple[dict[Node, Share], list[int]]:
    """Return the sums of some parts' answers, and who did not know the point."""
    known: dict[Node, Share] = {}
    lost = []
    for at, part in zip(numbers, parts, strict=True):
        for key in finished:
            part.release(key)
        try:
            known[0, at] = part.answer(question)
        except Lost:
            lost.append(at)
    return add_along_tree(known, n_parts), lost


def _totals(numbers: list[int], parts: list[Part], setup: Setup) -> dict[int, float]:
    return {at: part.total(setup) for at, part in zip(numbers, parts, strict=True)}


def _apply(
    numbers: list[int], parts: list[Part], function: Callable[..., Any], arguments: tuple[Any, ...]
) -> dict[int, Any]:
    return {at: function(part.data, *arguments) for at, part in zip(numbers, parts, strict=True)}
