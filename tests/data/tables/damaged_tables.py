"""Damage files of tables at random and load them, in child processes.

``python -m tests.data.tables.damaged_tables FORMAT COUNT [SEED]`` prints what became of how many
files: refused with one short sentence, or accepted. Anything else is a fault: another exception,
infinite features, a dead child.
"""

from __future__ import annotations

import collections
import json
import os
import signal
import sys
import tempfile
from pathlib import Path

import numpy as np
import pyarrow as pa
from pyarrow import feather, parquet

from leanrank.data import RankingData, dump, load
from leanrank.errors import LeanrankError

WORDS = [b"\xff", b"\0", b"nan", b"inf", b"-1", b"9" * 20, b"1e999", b"\xd9\xa1", b'"', b",", b"\n"]
WORDS += [b"\r", b":", b"#", b"qid:", b"\x80\x80", b"\xef\xbb\xbf", b"\x1f\x8b"]
NUMBERS = [0, 1, -1, 2**31 - 1, -(2**31), 2**63 - 1, -(2**63), 2**40, 2**20, 255]
SUFFIXES = {
    "csv": [".csv", ".csv.gz"],
    "parquet": [".parquet"],
    "arrow": [".arrow"],
    "letor": [".txt", ".txt.gz", ".txt.xz", ".txt.bz2"],
}


def sound_files(kind: str, folder: Path) -> list[bytes]:
    """Write small files of a format: dense, sparse, named, compressed."""
    from scipy.sparse import random as random_matrix

    rng = np.random.default_rng(0)
    X, y, q = rng.normal(size=(40, 5)), rng.integers(0, 3, 40), np.repeat(np.arange(8), 5)
    words = {"doc_ids": [f"d{i}" for i in range(40)], "feature_names": list("abcde")}
    named = [f"q{i}" for i in q]
    sets = [
        RankingData(X, y, q),
        RankingData(X.astype(np.float32), y, named, sample_weight=np.ones(40), **words),
    ]
    if kind == "arrow":
        sets.append(RankingData(random_matrix(40, 30, 0.1, random_state=0, format="csr"), y, q))
    files = []
    for data in sets:
        for suffix in SUFFIXES[kind]:
            dump(data, folder / f"sound{suffix}")
            files.append((folder / f"sound{suffix}").read_bytes())
    table = pa.table({"label": y.astype(float), "qid": pa.array(named).dictionary_encode()})
    table = table.append_column("doc_id", [[f"d{i}" for i in range(40)]])
    table = table.append_column("u", [pa.array(q)]).append_column("b", [pa.array(y > 1)])
    file = folder / "table"
    if kind == "parquet":
        for packed in ("zstd", "snappy", "lz4", "gzip"):
            parquet.write_table(table, file, compression=packed, row_group_size=13)
            files.append(file.read_bytes())
    if kind == "arrow":
        for packed in ("zstd", "lz4", "uncompressed"):
            feather.write_feather(table, file, compression=packed)
            files.append(file.read_bytes())
    return files


def damage(rng: np.random.Generator, sound: bytes) -> bytes:
    """Change a few places, mostly anywhere and often near the end, where footers are."""
    data = bytearray(sound)
    for _ in range(rng.integers(1, 5)):
        at = int(rng.integers(len(data) + 1))
        if rng.random() < 0.4:
            at = max(0, len(data) - 1 - int(rng.integers(1200)))
        kind, few = rng.integers(7), int(rng.integers(1, 40))
        if kind == 0 and at < len(data):
            data[at] ^= 1 << int(rng.integers(8))
        elif kind == 1:
            number, width = NUMBERS[rng.integers(len(NUMBERS))], int(rng.choice([4, 8]))
            data[at : at + width] = (number % 256**width).to_bytes(width, "little")
        elif kind == 2:
            del data[at : at + few]
        elif kind == 3:
            data[at:at] = rng.bytes(few)
        elif kind == 4 and rng.random() < 0.3:
            del data[at:]
        elif kind == 5:
            data[at:at] = data[at : at + few]
        else:
            data[at:at] = WORDS[rng.integers(len(WORDS))]
    return bytes(data)


def outcome(file: Path) -> tuple[str, str]:
    """Load a file and say what happened."""
    try:
        data = load(file)
    except LeanrankError as error:
        short = len(str(error)) <= 300 and str(error).isprintable()
        return ("refused" if short else "bad message"), str(error)
    except BaseException as error:
        return type(error).__name__, str(error)[:200]
    values = data.X.data if data.is_sparse else data.X
    return ("infinite" if np.isinf(values).any() else "accepted"), ""


def run(kind: str, count: int, seed: int = 0) -> tuple[dict[str, int], list[str]]:
    """Load so many damaged files; return the counts, and the faults with their numbers."""
    counts: collections.Counter[str] = collections.Counter()
    faults = []
    with tempfile.TemporaryDirectory() as name:
        files = sound_files(kind, Path(name))
        at = 0
        while at < count:
            for number, what, message in _child(kind, files, Path(name), seed, at, count):
                at = number + 1
                counts[what] += 1
                if what not in ("refused", "accepted"):
                    faults.append(f"{kind} {number}: {what} {message}")
    return dict(counts), faults


def _child(kind, files, folder, seed, first, count):
    """Yield number, outcome and message of each file from one child, which may die."""
    get, put = os.pipe()
    child = os.fork()
    if child == 0:
        os.close(get)
        os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
        with os.fdopen(put, "w", buffering=1) as out:
            for number in range(first, min(first + 2000, count)):
                signal.alarm(30)
                rng = np.random.default_rng([seed, number])
                data = damage(rng, files[rng.integers(len(files))])
                file = folder / f"damaged{SUFFIXES[kind][0]}"
                file.write_bytes(data)
                out.write(json.dumps([number, *outcome(file)]) + "\n")
        os._exit(0)
    os.close(put)
    last = first - 1
    with os.fdopen(get) as lines:
        for line in lines:
            last, what, message = json.loads(line)
            yield last, what, message
    status = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    if status:
        yield last + 1, "died", f"with {status}"


if __name__ == "__main__":
    kind, count = sys.argv[1], int(sys.argv[2])
    counts, faults = run(kind, count, *map(int, sys.argv[3:4]))
    print(kind, count, counts, *faults, sep="\n")
