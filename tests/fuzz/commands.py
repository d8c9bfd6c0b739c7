"""Commands with wrong files, odd options and words left out."""

from __future__ import annotations

import io
import random
import re
import sys
import tempfile
from contextlib import chdir, redirect_stderr, redirect_stdout
from functools import lru_cache
from pathlib import Path

from tests.fuzz.harness import LONGEST, target
from tests.fuzz.mutations import mutated
from tests.fuzz.readers import LOGGED, NAMES, QRELS, RUN, written

COMMANDS = (
    "train in.txt -m out.json -a domination -p alpha=0.01",
    "train in.csv --vali in.txt -m out.json -a rankrls --scale standard",
    "train in.txt -m out.json -p curves=2 -p monotone=1",
    "train in.txt -m out.json -a ranksvm -p alpha=0.1",
    "train in.csv -m out.json -a listnet -p curves=auto -p penalty_factors=0,1,1,2,inf",
    "train in.arrow -m out.json -a minbatsrank -p alpha=0.01",
    "train --stream in.txt -m out.json -a spd -p n_steps=20 --checkpoint out.ckpt",
    "predict in.json in.txt -o out.txt",
    "predict in.json in.csv -o -",
    "evaluate in.txt in.scores --measures ndcg@3,map --per-query out.csv",
    "evaluate --clicks in.log.csv --policy in.one.json --depth 2",
    "evaluate in.docs.csv --clicks in.shown.csv --policy in.one.json --depth 1",
    "warmup rankrls",
    "compare in.txt in.csv in.txt --systems rankrls --choose-by ndcg@5 --markdown out.md -j 1",
    "join --features in.named.txt --judgments in.qrels -o out.csv --unjudged 0",
    "tune in.txt --vali in.csv --trials 1 --systems domination -m out.json --journal out.jsonl",
    "export in.json --to sql:duckdb -o out.sql --names in.names.csv",
    "export in.curves.json --to python -o out.py",
    "convert in.txt out.csv",
    "convert in.csv out.parquet",
    "convert in.csv out.arrow",
    "convert in.arrow out.txt",
    "verify in.json in.txt --to python",
    "systems domination --json",
    "systems",
    "fuse in.run in2.run --qrels in.qrels -o out.json --folds 2 --no-curve",
)
VALUES = (
    *("", "-", "--", "0", "-1", "1e400", "nan", "inf", "x", "٣", "=", "a=b=c", ",", "1,2", "{}"),
    *("in.json", "in.txt", "in.csv", "in.missing", "in.folder", "in.empty", "out.json"),
    *("/dev/full", "/dev/null", "../..", "alpha=0", "alpha=1e9", "alpha=x", "curves=auto"),
    *(
        "9" * 5000,
        "f1=up,f1=down",
        "f1=up",
        "curves=1000",
        "curves=3.5",
        "spd,spd",
        "lcra",
        "perfect",
    ),
    *("curves=0", "n_jobs=-1", "query-minmax", "standard", "domination", "listnet", "f9=up"),
)
OPTIONS = (
    *("-p", "--scale", "--vali", "--read", "-f", "-a", "-m", "-o", "--measures", "--convention"),
    *("--stream", "--json", "--vali", "-j", "--to", "--names", "--checkpoint"),
    *("--trials", "--max-features", "--rule", "--costs", "--top", "--depth", "--odd", "-h"),
    *(
        "--learners",
        "--users",
        "--seeds",
        "--query",
        "--test",
        "--every",
    ),
    *("--discount", "--clicks", "--policy", "--features", "--unjudged"),
)


NAMED = b"".join(
    b"0 qid:q%d 1:%d 2:0.5 # docid = d%d\n" % (q, d, d) for q in (0, 1) for d in (1, 2)
)
DOCUMENTS = b"query,document,bm25\n" + b"".join(
    b"q%d,d%d,%d\n" % (q, d, q + d) for q in (0, 1) for d in (1, 2, 3)
)


@lru_cache(maxsize=1)
def _inputs() -> dict[str, bytes]:
    from leanrank.model import Model

    golden = Path(__file__).parents[1] / "model" / "golden"
    with tempfile.TemporaryDirectory() as folder:
        Model.from_coef([0.5, -1.0, 0.0, 0.0, 2.0]).save(f"{folder}/m")
        Model.from_coef([1.0]).save(f"{folder}/n")
        models = [Path(folder, name).read_bytes() for name in "mn"]
    sized = {"in.arrow": written(".arrow"), "in.named.txt": NAMED, "in.docs.csv": DOCUMENTS}
    log = LOGGED.replace(b"propensity\n", b"propensity,bm25\n")
    return {
        **sized,
        "in.shown.csv": LOGGED,
        **{f"in{suffix}": written(suffix) for suffix in (".txt", ".csv")},
        **{"in.json": models[0], "in.one.json": models[1], "in.names.csv": NAMES},
        "in.curves.json": (golden / "curves-v1.json").read_bytes(),
        **{"in.run": RUN, "in2.run": RUN.replace(b".000", b".5"), "in.qrels": QRELS},
        "in.log.csv": re.sub(rb"(0\.\d+)\n", rb"\1,2.5\n", log),
        "in.scores": b"".join(b"%d\n" % (at % 5) for at in range(24)),
        "in.empty": b"",
    }


def _run(words: list[str], folder: Path) -> tuple[int, str]:
    from leanrank.cli import main

    said, out = io.StringIO(), io.TextIOWrapper(io.BytesIO(), encoding="utf-8")
    (folder / "in.folder").mkdir(exist_ok=True)
    for name, content in _inputs().items():
        (folder / name).write_bytes(content)
    stdin = sys.stdin
    sys.stdin = io.TextIOWrapper(io.BytesIO(_inputs()["in.txt"]))
    try:
        with redirect_stderr(said), redirect_stdout(out):
            code = main(words)
    finally:
        sys.stdin = stdin
    return code, said.getvalue()


def _run_all() -> None:
    for command in COMMANDS:
        with tempfile.TemporaryDirectory() as folder, chdir(folder):
            code, said = _run(command.split(), Path(folder))
            assert code == 0, f"{command}: {said}"


@target("commands", limit=60.0, share=4.0, prepare=_run_all)
def commands(rng: random.Random, folder: Path) -> None:
    """A command does its work, or says one sentence and leaves nothing half-written."""
    from leanrank.errors import InputError

    words = rng.choice(COMMANDS).split()
    for _ in range(rng.choice((1, 1, 2, 3))):
        at, kind = rng.randrange(1, len(words) + 1), rng.randrange(5)
        if kind == 0:
            del words[at : at + 1]
        elif kind == 1:
            words[at : at + 1] = [rng.choice(VALUES)]
        elif kind == 2:
            words[at:at] = [rng.choice(OPTIONS), rng.choice(VALUES)]
        elif kind == 3:
            words[at:at] = [rng.choice(OPTIONS)]
        elif at < len(words) and words[at].startswith("in."):
            content = _inputs().get(words[at], b"")
            words[at] = words[at].replace("in.", "in.bad.", 1)
            (folder / words[at]).write_bytes(mutated(rng, content))
    code, said = _run(words, folder)
    assert code in (0, 1, 2), f"{words}: exit code {code}: {said}"
    assert "Traceback" not in said, f"{words}: {said}"
    assert "error: unexpected" not in said, f"{words}: {said}"
    made = [name for name in ("out.json", "out.txt", "out.csv", "out.sql") if Path(name).exists()]
    for path in folder.iterdir():  # a word that was taken for the name of a file to write
        if path.is_file() and path.name in words:
            path.unlink()
    sentences = [line for line in said.splitlines() if line.startswith("leanrank: error: ")]
    assert all(len(line) <= LONGEST + 60 for line in sentences), f"{words}: {said}"
    if code == 2:
        assert not made, f"{words}: wrote {made}, then {said}"
        assert len(sentences) == 1 or "Usage" in said, f"{words}: {said}"
        raise InputError("refused")
