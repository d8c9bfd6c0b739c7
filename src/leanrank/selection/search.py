"""One search: its next trial within the budget, and resuming after a kill."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._jit import compile_seconds
from leanrank.errors import InputError, problem_of
from leanrank.model.provenance import to_json_values
from leanrank.registry import Space, get_system
from leanrank.selection.candidate import Candidate, pareto_front
from leanrank.selection.journal import Journal, from_entry, to_entry
from leanrank.selection.local_search import find_pool, improve, refitting
from leanrank.selection.trials import OutOfTimeError, Task, run_trial

SHARE = 0.6
"""Of the budget, for rankers and their parameters; the rest is for the local search, once every
system has had its first trial."""


@dataclass(frozen=True)
class Progress:
    """The state of a search.

    Attributes
    ----------
    doing : str
    share : float
        How much of the budget is used, 0 to 1.
    trials : int
    seconds : float
        Used so far without compiling, runs before a restart included.
    best : Candidate or None
        What would be chosen now.
    """

    doing: str
    share: float
    trials: int
    seconds: float
    best: Candidate | None


class Search:
    """The trials of one search, done and to do."""

    def __init__(
        self,
        task: Task,
        systems: Sequence[str],
        journal: Journal,
        *,
        budget: float | None,
        trials: int | None,
    ) -> None:
        self.task = replace(task, beat=self._beat)
        self.systems = tuple(systems)
        self.plan = list(round_robin({name: get_system(name).tuned_space for name in systems}))
        self.journal = journal
        self.trials = trials
        self.budget = 60.0 if budget is None and trials is None else budget
        self.candidates: list[Candidate] = []
        self.history: list[dict[str, Any]] = []
        self.expanded: set[tuple[int, ...]] = set()
        self.problems: dict[str, str] = {}
        self.interrupted = False
        self.slow: dict[str, float] = {}
        self.too_large: set[str] = set()  # systems whose models all exceed the limits
        self.at = 0  # in the plan
        self.n_systems = 0
        self.n_done = 0
        self.earlier = 0.0
        source = str(journal.path)
        try:
            for entry in journal.entries:
                found = [from_entry(one, source, task.costs) for one in entry["candidates"]]
                if not entry.get("incomplete"):  # repeated, now in full if time allows
                    self._take(entry, found)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise journal.refusal(f"a trial cannot be read ({error})") from error
        self.started = _fitting_clock() - self.earlier

    def run(self, progress: Callable[[Progress], None]) -> None:
        """Run trials until the budget or everything to try is used up, or until Ctrl-C."""
        try:
            while not self._is_over() and (job := self._next()) is not None:
                self._run(job, progress)
        except OutOfTimeError:
            pass
        except KeyboardInterrupt:
            if not self.candidates:
                raise
            self.interrupted = True
        if not self.candidates:
            reason = next(iter(self.problems.values()), "nothing was tried")
            raise InputError(f"no system gave a model that ranks anything: {reason}")

    @property
    def not_tried(self) -> tuple[str, ...]:
        """The systems that no trial was made of."""
        return tuple(name for name in self.systems if name not in self.slow)

    def _run(self, job: tuple[str, str, Any], progress: Callable[[Progress], None]) -> None:
        kind, name, what = job
        doing, best = "near " * (kind == "local") + name, self.task.best(self.candidates)
        progress(Progress(doing, self._share(), self.n_done, self._seconds(), best))
        started = _fitting_clock()
        entry, found = self._do(kind, name, what)
        entry["seconds"] = _fitting_clock() - started
        if self.journal.path is not None:
            self.journal.add({**entry, "candidates": list(map(to_entry, found))})
        self._take(entry, found)

    def _do(self, kind: str, name: str, what: Any) -> tuple[dict[str, Any], list[Candidate]]:
        """Run a trial; one that fails must not end the search."""
        entry: dict[str, Any] = {"trial": self.n_done, "kind": kind, "name": name}
        found: list[Candidate] = []
        try:
            if kind == "system":
                space, setting = what
                entry |= {"at": self.at, "setting": to_json_values(setting)}
                found = run_trial(self.task, space, setting)
            else:
                entry["support"] = what.model.indices.tolist()
                found = improve(self.task, what, find_pool(self.candidates, self.task.choose_by))
        except OutOfTimeError:
            raise
        except Exception as error:
            entry["problem"] = problem_of(error)
        can_judge = self.task.validation is not None and self.task.folds
        if can_judge and any(not one.training_values for one in found):
            entry["incomplete"] = True
        return entry, found

    def _take(self, entry: Mapping[str, Any], found: Sequence[Candidate]) -> None:
        """Add the result of a trial."""
        self.candidates += found
        self.n_done += 1
        self.earlier += float(entry["seconds"])
        if entry["kind"] == "system":
            self.at = entry["at"] + 1
            self.n_systems += 1
            self.slow[entry["name"]] = float(entry["seconds"])
            if found and not any(map(self.task.allows, found)):
                self.too_large.add(entry["name"])
            if "problem" in entry:
                self.problems[entry["name"]] = entry["problem"]
        else:
            self.expanded.add(tuple(entry["support"]))
        best = self.task.best(self.candidates)
        if best is not None:
            means = {name: best.score(name) for name in self.task.kept}
            self.history.append({"trial": self.n_done, "seconds": self.earlier, **means})

    def _next(self) -> tuple[str, str, Any] | None:
        """Return what to do next: rankers first, and the local search with the rest."""
        system = self._next_system()
        used = self._share() if self.trials is None else self.n_systems / self.trials
        turn = used < SHARE or bool(self.not_tried)
        if system is not None and (turn or not self.candidates):
            return system
        parent = self._next_parent()
        return system if parent is None else ("local", parent.name, parent)

    def _next_system(self) -> tuple[str, str, Any] | None:
        while self.at < len(self.plan):
            name, space, setting = self.plan[self.at]
            left = np.inf if self.budget is None else self.budget - self._seconds()
            in_time = self.trials is not None or self.slow.get(name, 0.0) <= left
            if name not in self.too_large and (in_time or not self.candidates):
                return "system", name, (space, setting)
            self.at += 1
        return None

    def _next_parent(self) -> Candidate | None:
        """Return the best model of the front whose neighbours have not been tried."""
        allowed = filter(self.task.allows, self.candidates)
        front = pareto_front(allowed, measure=self.task.choose_by)
        new = [one for one in front if tuple(one.model.indices.tolist()) not in self.expanded]
        return self.task.best(one for one in new if refitting(one) is not None)

    def _seconds(self) -> float:
        return _fitting_clock() - self.started

    def _share(self) -> float:
        if self.trials is not None:
            return min(1.0, self.n_done / self.trials)
        assert self.budget is not None
        return min(1.0, self._seconds() / self.budget)

    def _is_over(self) -> bool:
        if self.trials is not None and self.n_done >= self.trials:
            return True
        late = self.budget is not None and self._seconds() >= self.budget
        return late and bool(self.candidates)  # the first model may take longer

    def _beat(self, needed: bool) -> None:
        """End a trial when time is over; the first one only if it leaves a model."""
        if self.budget is None or self._seconds() < self.budget:
            return
        if self.candidates or not (needed or self.task.validation is None):
            raise OutOfTimeError


def _fitting_clock() -> float:
    """Return a time that stands still while kernels are compiled."""
    return time.perf_counter() - compile_seconds()


def round_robin(spaces: Mapping[str, Space]) -> Iterator[tuple[str, Space, dict[str, Any]]]:
    """Return every system's first setting, then every second one, and so on."""
    settings = {name: space.settings() for name, space in spaces.items()}
    for turn in range(max(map(len, settings.values()), default=0)):
        for name, mine in settings.items():
            if turn < len(mine):
                yield name, spaces[name], mine[turn]
