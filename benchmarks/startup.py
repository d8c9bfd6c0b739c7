"""What a start costs: ``--help`` and ``import`` beside the bare interpreter, a first run ever
(nothing compiled yet) beside the next one.
"""

from __future__ import annotations

import os
import resource
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping
from pathlib import Path

from benchmarks.harness import Options, Table, Timing, race


def run(options: Options) -> list[Table]:
    return [_light(options), _demo(options)]


def _light(options: Options) -> Table:
    """Starts in which nothing is learned; the limit is 1.3 times what the toolkit itself needs."""
    contestants: dict[str, list[str]] = {
        "python -c pass": ["-c", "pass"],
        "import leanrank": ["-c", "import leanrank"],
        "import typer, rich": ["-c", "import typer, rich"],
        "leanrank --version": ["-m", "leanrank", "--version"],
        "leanrank --help": ["-m", "leanrank", "--help"],
        "leanrank train --help": ["-m", "leanrank", "train", "--help"],
    }
    repeat = 5 if options.quick else max(25, options.repeat)
    seconds: dict[str, list[float]] = {name: [] for name in contestants}

    def counted(name: str) -> Callable[[], None]:
        start = _python(contestants[name])

        def run_once() -> None:
            before = _processor_seconds()
            start()
            seconds[name].append(_processor_seconds() - before)

        return run_once

    elapsed = race({name: counted(name) for name in contestants}, repeat=repeat, warm_up=1)
    timings = {name: Timing(taken[1:]) for name, taken in seconds.items()}
    table = Table(
        "Light starts",
        note=f"Whole processes, {repeat} rounds in turns. Ratios are of processor time, which "
        "other work on the machine disturbs less. `leanrank --help` may cost 1.3 × "
        "`import typer, rich`.",
    )
    for name, timing in timings.items():
        table.add(
            start=name,
            elapsed=str(elapsed[name]),
            processor=str(timing),
            **{
                "× python": timing.median / timings["python -c pass"].median,
                "× import typer, rich": timing.median / timings["import typer, rich"].median,
            },
        )
    return table


def _demo(options: Options) -> Table:
    """The demonstration with an empty cache of compiled code, and with a filled one."""
    repeat = 1 if options.quick else min(3, options.repeat)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        demo = ["-m", "leanrank", "demo", "--out", str(folder / "out")]

        def cold() -> None:
            with tempfile.TemporaryDirectory() as empty:
                _python(demo, {"NUMBA_CACHE_DIR": empty})()

        warm = _python(demo, {"NUMBA_CACHE_DIR": str(folder / "cache")})
        warm()
        timings = race(
            {
                "import numba, scipy, sklearn": _python(
                    ["-c", "import numba, scipy.sparse, scipy.linalg, sklearn.base"]
                ),
                "leanrank demo, warm": warm,
                "leanrank demo, cold": cold,
            },
            repeat=repeat,
            warm_up=0,
        )
    reference = timings["import numba, scipy, sklearn"].median
    table = Table(
        "Cold and warm start",
        note="Cold: no compiled code on disk (an empty NUMBA_CACHE_DIR). Warm: the second run and "
        "every one after it.",
    )
    for label, timing in timings.items():
        table.add(start=label, time=str(timing), **{"× bare imports": timing.median / reference})
    return table


def _processor_seconds() -> float:
    """Processor time of all processes that this one has started and waited for."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def _python(words: list[str], env: Mapping[str, str] | None = None) -> Callable[[], None]:
    def start() -> None:
        subprocess.run(
            [sys.executable, *words],
            check=True,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            env={**os.environ, **(env or {})},
        )

    return start
