"""``python -m tests.fuzz.kills``: end commands at random moments, run them again, compare bytes.

Whenever SIGKILL, SIGTERM or SIGINT comes, no visible file but the command's own is left behind, and
the same command afterwards writes the bytes that it writes when nobody interrupts it.
"""

from __future__ import annotations

import argparse
import importlib
import os
import random
import shutil
import signal
import sys
import tempfile
import time
import traceback
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT)
STREAM = "train --stream a.txt b.txt -p eta0=0.5 -p epochs=2 --read chunk_bytes=20000 --every 100"
COMMANDS = {
    "train": "train a.txt --vali b.txt -a domination -p alpha=0.01 -m out.json",
    "train --stream": f"{STREAM} --checkpoint run.ckpt -m out.json",
    "tune": "tune a.txt --vali b.txt --trials 3 --systems domination --journal j.jsonl -m out.json",
    "convert": "convert a.txt out.parquet",
    "predict": "predict in.json a.txt -o out.txt",
    "report": "report in.json --train b.txt --vali b.txt --alphas 3 --subsamples 2 -o out.html",
    "export": "export in.json --to sql:duckdb -o out.sql",
}
MODULES = (
    *("leanrank.cli.app", "leanrank.rankers.systems", "leanrank.selection.tuning"),
    *("leanrank.rankers.streaming", "leanrank.report", "pyarrow.parquet", "altair"),
)
STATE = {"run.ckpt", "j.jsonl"}
"""Files whose bytes hold times; they must be there alike, and no more."""


@dataclass
class Whole:
    """What a command does when nobody interrupts it."""

    seconds: float
    files: dict[str, bytes]
    names: set[str]


def prepare(folder: Path) -> Path:
    """Import what the commands need, and write the data and the model that they read."""
    for module in MODULES:
        importlib.import_module(module)
    from leanrank.data import dump_letor, make_ranking
    from leanrank.model import Model

    inputs = folder / "inputs"
    inputs.mkdir()
    dump_letor(make_ranking(1200, (5, 15), 12, random_state=8), inputs / "a.txt")
    dump_letor(make_ranking(300, (5, 15), 12, random_state=9), inputs / "b.txt")
    Model.from_coef([0.5, -1.0] + [0.0] * 9 + [2.0]).save(inputs / "in.json")
    return inputs


class Running:
    """A command in a process of its own, forked from this one so that nothing is imported anew."""

    def __init__(self, command: str, folder: Path) -> None:
        self.said = tempfile.TemporaryFile()  # noqa: SIM115
        sys.stdout.flush()
        self.pid = os.fork()
        if self.pid == 0:
            self._run(command, folder)

    def _run(self, command: str, folder: Path) -> None:
        code = 1
        try:
            from leanrank.cli import main

            # where this process was started in the background, it ignores Ctrl-C
            signal.signal(signal.SIGINT, signal.default_int_handler)
            os.chdir(folder)
            os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
            os.dup2(self.said.fileno(), 2)
            code = main(command.split())
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(code)

    def end(self) -> tuple[int, str]:
        """Wait for the end; return the exit code (of a signal, minus its number) and stderr."""
        _, status = os.waitpid(self.pid, 0)
        self.said.seek(0)
        text = self.said.read().decode()
        self.said.close()
        return os.waitstatus_to_exitcode(status), text


def finish(command: str, folder: Path) -> None:
    """Run a command to its end."""
    code, said = Running(command, folder).end()
    assert code == 0, f"{command}: exit code {code}: {said}"


def uninterrupted(command: str, inputs: Path, folder: Path) -> Whole:
    """Run a command three times and take the time of the quickest."""
    seconds = []
    for name in ("warm", "second", "whole"):
        shutil.copytree(inputs, folder / name)
        began = time.monotonic()
        finish(command, folder / name)
        seconds.append(time.monotonic() - began)
    names = {path.name for path in (folder / "whole").iterdir()}
    files = {name: (folder / "whole" / name).read_bytes() for name in names - STATE}
    warm = {name: (folder / "warm" / name).read_bytes() for name in names - STATE}
    assert warm == files, f"{command}: two runs differ"
    return Whole(min(seconds), files, names)


def kill_once(
    command: str,
    whole: Whole,
    inputs: Path,
    folder: Path,
    sent: signal.Signals,
    rng: random.Random,
) -> bool:
    """End a command at some moment and run it again; return whether the signal came in time."""
    shutil.copytree(inputs, folder)
    process = Running(command, folder)
    time.sleep(rng.uniform(0.0, 1.1) * whole.seconds)
    os.kill(process.pid, sent)
    code, said = process.end()
    moment = f"{sent.name} gave exit code {code}"
    assert code in (0, -sent, 130 if sent == signal.SIGINT else 0), f"{moment}: {said}"
    assert "Traceback" not in said, f"{moment}: {said}"
    left = {path.name for path in folder.iterdir() if path.name[0] != "."}
    assert left <= whole.names, f"{moment} and left {left - whole.names}"
    finish(command, folder)
    names = {path.name for path in folder.iterdir() if path.name[0] != "."}
    assert names == whole.names, f"{moment}, then there are {names ^ whole.names}"
    for name, content in whole.files.items():
        assert (folder / name).read_bytes() == content, f"{moment}, then {name} differs"
    shutil.rmtree(folder)
    return code != 0


def main() -> int:
    """Spread the kills over the commands and the signals."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=100)
    parser.add_argument("--command", action="append", choices=COMMANDS)
    parser.add_argument("--seed", type=int, default=0)
    given = parser.parse_args()
    rng = random.Random(given.seed)
    findings = 0
    with tempfile.TemporaryDirectory(prefix="leanrank-kills-") as name:
        folder = Path(name)
        inputs = prepare(folder)
        titles = given.command or list(COMMANDS)
        for at, title in enumerate(titles):
            command = COMMANDS[title]
            place = folder / f"{at}"
            place.mkdir()
            whole = uninterrupted(command, inputs, place)
            sent: Counter[str] = Counter()
            in_time: Counter[str] = Counter()
            n_kills = given.kills // len(titles) + (at < given.kills % len(titles))
            for kill in range(n_kills):
                each = SIGNALS[kill % len(SIGNALS)]
                sent[each.name] += 1
                try:
                    if kill_once(command, whole, inputs, place / f"kill{kill}", each, rng):
                        in_time[each.name] += 1
                except AssertionError as error:
                    findings += 1
                    print(f"  {title}, kill {kill}: {error}", file=sys.stderr, flush=True)
            counts = ", ".join(f"{count} {name} ({in_time[name]})" for name, count in sent.items())
            print(f"{title:16} {whole.seconds:>6.1f} s  {counts}", flush=True)
    print(f"{given.kills} kills (those in time in parentheses), {findings} findings")
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
