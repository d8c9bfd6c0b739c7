"""One way to measure: contestants alternate in one run, warmed up, median and spread reported.

A benchmark module has ``run(options) -> list[Table]`` and a docstring that says what is compared.
Speed is given as ratios against a named reference, because seconds do not carry between machines.
"""

from __future__ import annotations

import gc
import json
import os
import platform
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any


@dataclass(frozen=True)
class Options:
    """What the command line decides for every benchmark."""

    data: Path | None
    repeat: int
    quick: bool
    only: str | None = None
    budget: str | None = None
    reports: Path | None = None
    before: Path | None = None
    scratch: Path | None = None


@dataclass(frozen=True)
class Timing:
    """Seconds of one contestant over the repetitions."""

    seconds: list[float]
    result: Any = None

    @property
    def median(self) -> float:
        return statistics.median(self.seconds)

    @property
    def spread(self) -> float:
        """Half the range, relative to the median: what to believe of the last digits."""
        return (max(self.seconds) - min(self.seconds)) / 2 / self.median

    def __str__(self) -> str:
        return f"{show_seconds(self.median)} ±{100 * self.spread:.0f}%"


@dataclass
class Table:
    """Rows to print and to keep; the columns are the keys of the rows."""

    title: str
    rows: list[dict[str, Any]] = field(default_factory=list)
    note: str = ""

    def add(self, **row: Any) -> None:
        self.rows.append(row)

    def markdown(self) -> str:
        columns = list(dict.fromkeys(key for row in self.rows for key in row))
        lines = [f"### {self.title}", ""]
        lines.append("| " + " | ".join(columns) + " |")
        lines.append("| " + " | ".join("---" for _ in columns) + " |")
        for row in self.rows:
            lines.append("| " + " | ".join(_cell(row.get(c, "")) for c in columns) + " |")
        if self.note:
            lines += ["", self.note]
        return "\n".join(lines)


def race(
    contestants: Mapping[str, Callable[[], Any]], *, repeat: int = 5, warm_up: int = 1
) -> dict[str, Timing]:
    """Time several functions in turns, so that a noisy minute hits all of them alike."""
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    results: dict[str, Any] = {}
    for at in range(warm_up + repeat):
        for name, function in contestants.items():
            gc.collect()
            start = time.perf_counter()
            results[name] = function()
            elapsed = time.perf_counter() - start
            if at >= warm_up:
                seconds[name].append(elapsed)
    return {name: Timing(seconds[name], results[name]) for name in contestants}


def run_python(code: str, *, env: Mapping[str, str] | None = None) -> dict[str, Any]:
    """Run code in a fresh interpreter; it prints one JSON object as its last line."""
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, **(env or {})},
        check=False,
    )
    if done.returncode != 0:
        raise RuntimeError(f"benchmark subprocess failed:\n{done.stderr}")
    parsed: dict[str, Any] = json.loads(done.stdout.strip().splitlines()[-1])
    return parsed


class Kept:
    """Results of a long run by name, kept in a file line by line: the next run goes on from it."""

    def __init__(self, path: Path) -> None:
        path.parent.mkdir(parents=True, exist_ok=True)
        self.path = path
        lines = path.read_text().splitlines() if path.exists() else []
        self.results = {tuple(entry["of"]): entry["result"] for entry in map(json.loads, lines)}

    def get(self, of: tuple[Any, ...], make: Callable[[], Any]) -> Any:
        """Return a result, made and written if it is not there yet."""
        if of not in self.results:
            line = json.dumps({"of": of, "result": make()})
            with self.path.open("a") as stream:
                stream.write(line + "\n")
            self.results[of] = json.loads(line)["result"]
        return self.results[of]


def machine() -> dict[str, Any]:
    """What the figures depend on."""
    import numpy

    affinity = getattr(os, "sched_getaffinity", None)
    return {
        "python": platform.python_version(),
        "numpy": numpy.__version__,
        "machine": platform.machine(),
        "cores": len(affinity(0)) if affinity else os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
    }


def save(
    name: str, tables: list[Table], folder: Path, *, about: str, command: str, quick: bool = False
) -> None:
    """Keep the figures as JSON, with what they depend on."""
    folder.mkdir(parents=True, exist_ok=True)
    record = {
        "benchmark": name,
        "about": about,
        "command": command,
        "date": time.strftime("%Y-%m-%d", time.gmtime()),
        "commit": _commit(),
        "quick": quick,
        "machine": machine(),
        "tables": [asdict(t) for t in tables],
    }
    text = json.dumps(record, indent=1, default=str, ensure_ascii=False)
    (folder / f"{name}.json").write_text(text + "\n", encoding="utf-8")


def _commit() -> str:
    """The commit of the program, with a mark if files differ from it."""
    done = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        check=False,
    )
    return done.stdout.strip() or "unknown"


def show_seconds(seconds: float) -> str:
    """Three significant digits with a fitting unit."""
    for factor, unit in ((1.0, "s"), (1e3, "ms"), (1e6, "µs")):
        if seconds * factor >= 1 or unit == "µs":
            return f"{seconds * factor:.3g} {unit}"
    raise AssertionError


def _cell(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)
