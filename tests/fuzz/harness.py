"""Running targets in child processes, so that a crash or a hang is a finding like any other."""

from __future__ import annotations

import faulthandler
import json
import mmap
import os
import random
import resource
import shutil
import signal
import struct
import sys
import tempfile
import time
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

MEMORY = 12 * 2**30
"""Bytes of address space of a child: absurd sizes must be refused, not allocated."""

LONGEST = 300
"""Characters of a message."""


@dataclass(frozen=True)
class Target:
    """A way in for inputs.

    Attributes
    ----------
    name : str
    run : callable
        Takes a random generator and an empty folder, where its files begin with "in" or "out".
    limit : float
        Seconds of processor time that one input may take, the first one (which may compile) ten
        times as many; ten times as long by the clock, as the machine may be busy.
    share : float
        Of the time, beside the other targets.
    prepare : callable, optional
        Makes what all inputs begin with, before the time is taken.
    """

    name: str
    run: Callable[[random.Random, Path], None]
    limit: float
    share: float
    prepare: Callable[[], Any] | None


TARGETS: dict[str, Target] = {}


def target(
    name: str,
    *,
    limit: float = 10.0,
    share: float = 1.0,
    prepare: Callable[[], Any] | None = None,
) -> Callable[[Callable[[random.Random, Path], None]], Callable[[random.Random, Path], None]]:
    """Register a target."""

    def register(
        run: Callable[[random.Random, Path], None],
    ) -> Callable[[random.Random, Path], None]:
        TARGETS[name] = Target(name, run, limit, share, prepare)
        return run

    return register


@dataclass
class Outcome:
    """What a run of one target gave."""

    accepted: int = 0
    refused: int = 0
    seconds: float = 0.0
    findings: list[dict[str, Any]] = field(default_factory=list)

    @property
    def inputs(self) -> int:
        """How many were tried."""
        return self.accepted + self.refused + len(self.findings)


def explore(
    one: Target, *, seed: int, seconds: float, first: int = 0, inputs: int = 10**12
) -> Outcome:
    """Try inputs number ``first`` and on, until time is over or so many have been tried."""
    if one.prepare is not None:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            one.prepare()
    outcome, began = Outcome(), time.monotonic()
    case, stop = first, first + inputs
    while case < stop and time.monotonic() - began < seconds and len(outcome.findings) < 20:
        case = _in_child(one, seed, case, stop, began + seconds, outcome)
    outcome.seconds = time.monotonic() - began
    return outcome


def run_case(one: Target, seed: int, case: int, folder: Path) -> bool:
    """Run one input; tell whether it was accepted, or raise what was wrong."""
    from leanrank.errors import LeanrankError

    rng = random.Random(f"{seed}/{one.name}/{case}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        try:
            one.run(rng, folder)
            accepted = True
        except LeanrankError as error:
            message = str(error)
            assert "\n" not in message, f"a message of several lines: {message!r}"
            assert 0 < len(message) <= LONGEST, f"a message of {len(message)} characters: {message}"
            accepted = False
    odd = [name for name in os.listdir(folder) if not name.startswith(("in", "out"))]
    assert not odd, f"left behind: {odd}"
    return accepted


_RECORD = struct.Struct("<qqq")  # case, accepted, refused


def _in_child(
    one: Target, seed: int, case: int, stop: int, deadline: float, outcome: Outcome
) -> int:
    """Try inputs in a child process until it ends; return where to go on."""
    shared = mmap.mmap(-1, _RECORD.size)
    shared[:] = _RECORD.pack(case, 0, 0)
    place = "/dev/shm" if os.path.isdir("/dev/shm") else None
    folder = Path(tempfile.mkdtemp(prefix="leanrank-fuzz-", dir=place))
    report = folder.with_name(folder.name + ".report")
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = 1
        try:
            _work(one, seed, case, stop, deadline, shared, folder, report)
            code = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)
    first, ended = case, None
    seen, since, used = case, time.monotonic(), 0.0
    hung = False
    while ended is None:
        pid, status = os.waitpid(child, os.WNOHANG)
        if pid:
            ended = status
            break
        now, (at, _, _) = time.monotonic(), _RECORD.unpack(shared[:])
        if at != seen:
            seen, since, used = at, now, _processor_seconds(child)
        limit = one.limit * (10 if at == first else 1)
        if now - since > 10 * limit or _processor_seconds(child) - used > limit:
            os.kill(child, signal.SIGKILL)
            hung = True
        time.sleep(0.1)
        late = time.monotonic() - now
        if late > 1.0:  # this process was stopped, and so was the child
            since += late
    at, accepted, refused = _RECORD.unpack(shared[:])
    outcome.accepted += accepted
    outcome.refused += refused
    if report.exists():
        outcome.findings.append(json.loads(report.read_text()))
        report.unlink()
    elif hung:
        outcome.findings.append({"case": at, "what": f"took more than {one.limit:g} s"})
    elif os.WIFSIGNALED(ended):
        name = signal.Signals(os.WTERMSIG(ended)).name
        outcome.findings.append({"case": at, "what": f"the process died of {name}"})
    elif os.WEXITSTATUS(ended):
        outcome.findings.append({"case": at, "what": f"exit code {os.WEXITSTATUS(ended)}"})
    else:
        at -= 1  # nothing was wrong with it: it is the next
    shutil.rmtree(folder, ignore_errors=True)
    return at + 1


def _processor_seconds(pid: int) -> float:
    """Return the processor time of a running child, from the 14th and 15th field of its state."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def _work(
    one: Target,
    seed: int,
    case: int,
    stop: int,
    deadline: float,
    shared: mmap.mmap,
    folder: Path,
    report: Path,
) -> None:
    faulthandler.disable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    os.chdir(folder)
    accepted = refused = 0
    while case < stop and time.monotonic() < deadline:
        shared[:] = _RECORD.pack(case, accepted, refused)
        try:
            if run_case(one, seed, case, folder):
                accepted += 1
            else:
                refused += 1
        except (KeyboardInterrupt, SystemExit):
            raise
        except BaseException as error:
            lines = traceback.format_exception(error)
            what = f"{type(error).__name__}: {str(error)[:300]}"
            report.write_text(
                json.dumps({"case": case, "what": what, "trace": "".join(lines)[-3000:]})
            )
            shared[:] = _RECORD.pack(case, accepted, refused)
            return
        for name in os.listdir(folder):
            path = folder / name
            if path.is_dir() and not path.is_symlink():
                shutil.rmtree(path)
            else:
                path.unlink()
        case += 1
    shared[:] = _RECORD.pack(case, accepted, refused)
