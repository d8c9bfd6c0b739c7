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
from leanrank.selection.candidate import Candidate
from leanrank.selection.journal import Journal, from_entry, to_entry
from leanrank.selection.trials import OutOfTimeError, Task, run_trial


@dataclass(frozen=True)
class Progress:
    """The state of a search.

    Attributes
    ----------
    doing : str
    share : float
        How much of the budget is used, 0 to 1.
    trials : int
    best : Candidate or None
        What would be chosen now.
    """

    doing: str
    share: float
    trials: int
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
        self.task = replace(task, check_time=self._check_time)
        self.systems = tuple(systems)
        self.plan = list(round_robin({name: get_system(name).tuned_space for name in systems}))
        self.journal = journal
        self.trials = np.inf if trials is None else trials
        self.budget = budget or (60.0 if trials is None else np.inf)
        self.candidates: list[Candidate] = []
        self.history: list[dict[str, Any]] = []
        self.problems: dict[str, str] = {}
        self.interrupted = False
        self.last_seconds: dict[str, float] = {}
        self.too_large: set[str] = set()  # systems whose models all exceed the limits
        self.at = 0  # in the plan
        self.n_done = 0
        self.seconds_done = 0.0
        source = str(journal.path)
        try:
            for entry in journal.entries:
                found = [from_entry(one, source, task.costs) for one in entry["candidates"]]
                self._take(entry, found)
        except (LookupError, TypeError, ValueError, AttributeError) as error:
            raise journal.refusal(f"a trial cannot be read ({error})") from error
        self.started = _fitting_clock() - self.seconds_done

    def run(self, progress: Callable[[Progress], None]) -> None:
        """Run trials until the budget or everything to try is used up, or until Ctrl-C."""
        try:
            while not self._is_over() and (job := self._next()) is not None:
                self._run(*job, progress)
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
        return tuple(name for name in self.systems if name not in self.last_seconds)

    def _run(
        self, name: str, space: Space, setting: dict[str, Any], progress: Callable[[Progress], None]
    ) -> None:
        """Run a trial; one that fails must not end the search."""
        best = self.task.best(self.candidates)
        progress(Progress(name, self._share(), self.n_done, best))
        entry = {"trial": self.n_done, "name": name, "at": self.at}
        entry["setting"] = to_json_values(setting)
        started, found = _fitting_clock(), []
        try:
            found = run_trial(self.task, space, setting)
        except OutOfTimeError:
            raise
        except Exception as error:
            entry["problem"] = problem_of(error)
        entry["seconds"] = _fitting_clock() - started
        both = self.task.validation is not None and bool(self.task.folds)
        complete = not both or all(one.training_values for one in found)
        if complete and self.journal.path is not None:  # else repeated when the search goes on
            self.journal.add({**entry, "candidates": list(map(to_entry, found))})
        self._take(entry, found)

    def _take(self, entry: Mapping[str, Any], found: Sequence[Candidate]) -> None:
        """Add the result of a trial."""
        name, seconds = entry["name"], float(entry["seconds"])
        self.candidates += found
        self.n_done += 1
        self.seconds_done += seconds
        self.at = entry["at"] + 1
        self.last_seconds[name] = seconds
        if found and not any(map(self.task.allows, found)):
            self.too_large.add(name)
        if "problem" in entry:
            self.problems[name] = entry["problem"]
        best = self.task.best(self.candidates)
        if best is not None:
            means = {measure: best.score(measure) for measure in self.task.training_measures}
            self.history.append({"trial": self.n_done, "seconds": self.seconds_done, **means})

    def _next(self) -> tuple[str, Space, dict[str, Any]] | None:
        """Return what to do next: what is too large or takes too long is left out."""
        while self.at < len(self.plan):
            name = self.plan[self.at][0]
            in_time = self._seconds() + self.last_seconds.get(name, 0.0) <= self.budget
            if name not in self.too_large and (in_time or not self.candidates):
                return self.plan[self.at]
            self.at += 1
        return None

    def _seconds(self) -> float:
        return _fitting_clock() - self.started

    def _share(self) -> float:
        return min(1.0, max(self.n_done / self.trials, self._seconds() / self.budget))

    def _is_over(self) -> bool:
        late = self._seconds() >= self.budget and bool(self.candidates)  # the first may take longer
        return late or self.n_done >= self.trials

    def _check_time(self, needed: bool) -> None:
        """End a trial when time is over; the first one only if it leaves a model."""
        may_end = bool(self.candidates) or not (needed or self.task.validation is None)
        if may_end and self._seconds() >= self.budget:
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
