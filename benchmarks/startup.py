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
    return [_light(options), _first_runs(options)]


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
    seconds: dict[str, list[float]] = {}
    counted = {name: _counted(_python(words), seconds, name) for name, words in contestants.items()}
    elapsed = race(counted, repeat=repeat, warm_up=1)
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


def _first_runs(options: Options) -> Table:
    """Commands with an empty cache of compiled code, and with a filled one."""
    repeat = 1 if options.quick else min(3, options.repeat)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        commands = {
            "leanrank demo": ["demo", "--out", str(folder / "out")],
            "leanrank tune --trials 1": _tune(folder),
        }
        contestants: dict[str, Callable[[], None]] = {
            "import numba, scipy, sklearn": _python(
                ["-c", "import numba, scipy.sparse, scipy.linalg, sklearn.base"]
            )
        }
        for command, words in commands.items():
            whole = ["-m", "leanrank", *words]
            warm = _python(whole, {"NUMBA_CACHE_DIR": str(folder / "cache")})
            warm()
            contestants[f"{command}, warm"] = warm
            contestants[f"{command}, cold"] = _cold(whole)
        seconds: dict[str, list[float]] = {}
        counted = {name: _counted(start, seconds, name) for name, start in contestants.items()}
        elapsed = race(counted, repeat=repeat, warm_up=0)
    timings = {name: Timing(taken) for name, taken in seconds.items()}
    reference = timings["import numba, scipy, sklearn"].median
    table = Table(
        "Cold and warm start",
        note="Cold: no compiled code on disk (an empty NUMBA_CACHE_DIR). Warm: the second run and "
        "every one after it. Tuning reads the sample set from text files. Ratios are of processor "
        "time. Cold, the demonstration may take 13 s and the first trial 15 s.",
    )
    for label, timing in timings.items():
        table.add(
            start=label,
            elapsed=str(elapsed[label]),
            processor=str(timing),
            **{"× bare imports": timing.median / reference},
        )
    return table


def _tune(folder: Path) -> list[str]:
    """Write the sample set as text; return the words of a search of one trial on it."""
    from leanrank.data import dump_letor, load_sample

    train, vali, _ = load_sample()
    paths = [str(folder / "train.txt"), str(folder / "vali.txt")]
    for part, path in zip((train, vali), paths, strict=True):
        dump_letor(part, path)
    model = str(folder / "model.json")
    return ["tune", paths[0], "--vali", paths[1], "--trials", "1", "-m", model]


def _cold(words: list[str]) -> Callable[[], None]:
    def start() -> None:
        with tempfile.TemporaryDirectory() as empty:
            _python(words, {"NUMBA_CACHE_DIR": empty})()

    return start


def _counted(
    start: Callable[[], None], seconds: dict[str, list[float]], name: str
) -> Callable[[], None]:
    """Note the processor time of each start under its name."""

    def run_once() -> None:
        before = _processor_seconds()
        start()
        seconds.setdefault(name, []).append(_processor_seconds() - before)

    return run_once


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
