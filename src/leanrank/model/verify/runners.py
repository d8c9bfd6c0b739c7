"""Running exports: Polars, ONNX graphs, trees, Qdrant and code in Python, and SQL in databases.

SQLite and DuckDB run in memory, PostgreSQL and MariaDB in servers of their own. Columns have the
types of the table that was given, and are doubles otherwise.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import json
import os
import platform
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.errors import InputError
from leanrank.model.export import sql
from leanrank.model.export.targets import Options
from leanrank.model.export.text import unused


@dataclass(frozen=True)
class Job:
    """An export and the documents to run it on.

    Attributes
    ----------
    content : str or bytes
        The export.
    names : list of str
        The names of the features in it.
    X : array
        Documents × those features; NaN is missing.
    words : mapping
        The texts of each feature that is a category of texts: X has positions in them, and the last
        is no level.
    query : array of int
        The query of each document.
    options : Options
        What the export was written with.
    kinds : mapping
        The kinds of columns of a table with types; others are doubles.
    """

    content: str | bytes
    names: list[str]
    X: FloatArray
    query: IntArray
    options: Options
    words: Mapping[int, tuple[str, ...]] = field(default_factory=dict)
    kinds: Mapping[int, str] = field(default_factory=dict)

    def texts(self, at: int) -> list[str | None]:
        """Return a feature that is a category of texts; None is missing."""
        words = self.words[at]
        return [None if x != x else words[int(x)] for x in self.X[:, at].tolist()]

    @property
    def is_null(self) -> BoolArray:
        """Documents × features: every other gap, which is NULL where an engine knows it."""
        return np.asarray(np.isnan(self.X) & (np.indices(self.X.shape).sum(axis=0) % 2 == 0))

    def rows(self, nan: float | None = float("nan")) -> Iterator[list[Any]]:
        """Yield a number, the query and the features of each document, as its columns hold them."""
        cells = self.X.astype(object)
        cells[np.isnan(self.X)] = nan
        cells[self.is_null] = None
        write: dict[str, Callable[[float], Any]] = {
            "boolean": bool,
            "integer": int,
            "decimal": "{:.10f}".format,
            "text": repr,
        }
        for at, kind in self.kinds.items():
            change = write.get(kind, float)
            # only doubles can be NaN
            cells[:, at] = [None if x is None or x != x else change(x) for x in cells[:, at]]
        for at in self.words:
            cells[:, at] = self.texts(at)
        for at, (query, x) in enumerate(zip(self.query.tolist(), cells.tolist(), strict=True)):
            yield [at, query, *x]


@dataclass(frozen=True)
class Engine:
    """An engine that runs exports, and the packages and programs that it needs."""

    function: Callable[[Job], tuple[str, FloatArray]]
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def lacks(self) -> str | None:
        """Return the missing packages or program, or None."""
        absent = [name for name in self.packages if importlib.util.find_spec(name) is None]
        if absent:
            return f"{' and '.join(absent)}: pip install {' '.join(absent)}"
        absent = [program for program in self.programs if shutil.which(program) is None]
        return f"the program {absent[0]}: install it and put it on the path" if absent else None

    def run(self, job: Job) -> tuple[str, FloatArray]:
        """Run the export; return the engine with its version, and the scores."""
        try:
            version, scores = self.function(job)
        except Exception as error:  # whatever an engine raises about what it was given
            raise InputError(f"the engine refused the export or the documents: {error}") from error
        return version, np.asarray(scores, dtype=np.float64)


def columns(job: Job) -> list[str]:
    """Return the columns of a table: a number, the query and the features."""
    row = unused("leanrank_row", [*job.names, job.options.qid])
    return [row, job.options.qid, *job.names]


def arrow_table(job: Job) -> Any:
    """Return the documents as an Arrow table."""
    import pyarrow

    return pyarrow.table(list(map(pyarrow.array, zip(*job.rows(), strict=True))), columns(job))


def polars(job: Job) -> tuple[str, FloatArray]:
    """Run the expression on a frame."""
    import polars as engine

    frame: Any = engine.from_arrow(arrow_table(job))
    score = frame.select(score=_module(job)[f"{job.options.name}_score"]())
    return f"Polars {engine.__version__}", score["score"].to_numpy()


def python(job: Job) -> tuple[str, FloatArray]:
    """Run the function, after the test that is in the file."""
    module = _module(job)
    if not module["test"]():
        raise InputError("the test in the file fails")
    texts = [
        job.texts(at) if at in job.words else [None] * len(job.X) for at in range(job.X.shape[1])
    ]
    rows = zip(job.X.tolist(), zip(*texts, strict=True), strict=True)
    scores = [module["score"](x, t) if job.words else module["score"](x) for x, t in rows]
    return f"Python {platform.python_version()}", np.array(scores)


def _module(job: Job) -> dict[str, Any]:
    module: dict[str, Any] = {}
    exec(compile(job.content, "<export>", "exec"), module)  # what was just written
    return module


def onnx(job: Job) -> tuple[str, FloatArray]:
    """Run the graph on the processor."""
    import onnxruntime

    session = onnxruntime.InferenceSession(job.content, providers=["CPUExecutionProvider"])
    inputs: dict[str, Any] = dict(zip(job.names, np.ascontiguousarray(job.X.T), strict=True))
    for at, words in job.words.items():  # no text is missing there: what is no level stands for it
        texts = [words[-1] if text is None else text for text in job.texts(at)]
        inputs[job.names[at]] = np.array(texts, dtype=object)
    return f"ONNX Runtime {onnxruntime.__version__}", session.run(None, inputs)[0]


def lightgbm(job: Job) -> tuple[str, FloatArray]:
    """Run the trees in LightGBM."""
    import lightgbm as engine

    booster = engine.Booster(model_str=job.content)
    return f"LightGBM {engine.__version__}", np.asarray(booster.predict(job.X, raw_score=True))


def xgboost(job: Job) -> tuple[str, FloatArray]:
    """Run the trees in XGBoost, which takes features in float32."""
    import xgboost as engine

    assert isinstance(job.content, str)
    booster = engine.Booster(model_file=bytearray(job.content.encode()))
    documents = engine.DMatrix(job.X.astype(np.float32))
    scores = booster.predict(documents, output_margin=True, validate_features=False)
    return f"XGBoost {engine.__version__}", scores


def qdrant(job: Job) -> tuple[str, FloatArray]:
    """Run the request in Qdrant's own client in memory, a feature being the score of a retriever.

    Each document is a vector of one number per retriever; where it is missing, the retriever does
    not return the document.
    """
    from importlib.metadata import version

    from qdrant_client import QdrantClient, models

    request = json.loads(job.content)
    kind: Any = models.RrfQuery if "rrf" in request["query"] else models.FormulaQuery
    client: Any = QdrantClient(":memory:")
    scores = np.zeros(len(job.X))
    size = models.VectorParams(size=1, distance=models.Distance.DOT)
    for query in np.unique(job.query).tolist():
        rows = np.flatnonzero(job.query == query).tolist()
        client.create_collection(str(query), dict.fromkeys(job.names, size))
        for row in rows:
            known = zip(job.names, job.X[row].tolist(), strict=True)
            vector: Any = {name: [x] for name, x in known if x == x}
            client.upsert(str(query), [models.PointStruct(id=row, vector=vector)])
        prefetch = [
            models.Prefetch(query=[1.0], using=one["using"], limit=len(rows))
            for one in request["prefetch"]
        ]
        how = {"prefetch": prefetch, "query": kind(**request["query"]), "limit": len(rows)}
        for point in client.query_points(str(query), **how).points:
            scores[point.id] = point.score
    return f"Qdrant client {version('qdrant-client')}", scores


TYPES = {"boolean": "BOOLEAN", "integer": "BIGINT", "decimal": "DECIMAL(38, 10)", "text": "TEXT"}
"""Declared types of columns in all databases; others are doubles."""


def sqlite(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a database in memory."""
    import sqlite3 as engine

    marks = ", ".join("?" * len(columns(job)))
    with contextlib.closing(engine.connect(":memory:")) as connection:
        for statement in _created(job, "sqlite", "ATTACH ':memory:' AS"):
            connection.execute(statement)
        connection.executemany(f"INSERT INTO {_table(job, 'sqlite')} VALUES ({marks})", job.rows())
        # a view of the main database sees no other
        connection.execute(view(job).replace("CREATE VIEW", "CREATE TEMPORARY VIEW", 1))
        found = connection.execute(select(job)).fetchall()
    return f"SQLite {engine.sqlite_version}", np.array(found, dtype=np.float64).ravel()


def duckdb(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a database in memory."""
    import duckdb as engine

    with contextlib.closing(engine.connect(":memory:")) as connection:
        connection.register("leanrank_given", arrow_table(job))
        fill = f"INSERT INTO {_table(job, 'duckdb')} FROM leanrank_given"
        for statement in [*_created(job, "duckdb", "CREATE SCHEMA"), fill, view(job)]:
            connection.execute(statement)
        found = connection.execute(select(job)).fetchall()
    return f"DuckDB {engine.__version__}", np.array(found, dtype=np.float64).ravel()


def postgres(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a server that is started for it and listens on a local socket only."""
    script = f"{_script(job, 'postgres', 'CREATE SCHEMA')}SHOW server_version;\n{select(job)};\n"
    with postgres_server() as client:
        return _version_and_scores("PostgreSQL", client, script)


def mysql(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a MariaDB that is started for it and listens on a local socket only."""
    script = (
        "CREATE DATABASE leanrank_verify CHARACTER SET utf8mb4; USE leanrank_verify;\n"
        f"SET NAMES utf8mb4;\n{_script(job, 'mysql', 'CREATE DATABASE', nan=None)}"
        f"SELECT VERSION();\n{select(job, '`')};\n"
    )
    with mariadb_server() as client:
        return _version_and_scores("MariaDB", client, script)


def _version_and_scores(name: str, client: list[str], script: str) -> tuple[str, FloatArray]:
    version, *scores = called(client, script.encode()).decode().split("\n")
    number = re.match(r"[\d.]*", version)
    return f"{name} {number and number[0]}", np.array(list(map(float, filter(None, scores))))


def _script(job: Job, name: str, schema: str, nan: float | None = float("nan")) -> str:
    """Return the statements that make the table and the view."""
    dialect = sql.DIALECTS[name]

    def cell(value: Any) -> str:
        if isinstance(value, str) or value != value or value in (np.inf, -np.inf):
            return dialect.quoted(str(value), "'")
        return "NULL" if value is None else repr(value)

    rows = [", ".join(map(cell, row)) for row in job.rows(nan)]
    groups = ("),\n(".join(rows[at : at + 500]) for at in range(0, len(rows), 500))
    filled = (f"INSERT INTO {_table(job, name)} VALUES ({group})" for group in groups)
    made = [*_created(job, name, schema), *filled]
    return "".join(f"{statement};\n" for statement in made) + view(job) + "\n"


def _created(job: Job, name: str, schema: str) -> list[str]:
    """Return the statements that make the empty table, and what it is in."""
    dialect = sql.DIALECTS[name]
    kinds = {**job.kinds, **dict.fromkeys(job.words, "text")}
    declared = ["BIGINT", "BIGINT"]
    declared += [TYPES.get(kinds.get(at, ""), "DOUBLE PRECISION") for at in range(len(job.names))]
    listed = zip(map(dialect.quoted, columns(job)), declared, strict=True)
    inside = [f"{schema} {dialect.quoted(one)}" for one in job.options.table.split(".")[:-1]]
    return [*inside, f"CREATE TABLE {_table(job, name)} ({', '.join(map(' '.join, listed))})"]


def _table(job: Job, name: str) -> str:
    return sql.DIALECTS[name].qualified(job.options.table)


@contextlib.contextmanager
def postgres_server() -> Iterator[list[str]]:
    """Start PostgreSQL, of Debian or of the package pgserver; yield the words of its client."""
    programs = postgres_programs()
    if programs is None:
        raise InputError(
            "PostgreSQL is not installed: apt install postgresql, or pip install pgserver"
        )
    who = "postgres" if programs.startswith("/usr") else "nobody"
    with tempfile.TemporaryDirectory() as folder:
        how: dict[str, Any] = {"cwd": folder}
        if os.geteuid() == 0:  # the server refuses to run as root
            shutil.chown(folder, who)
            how["user"] = who
        data = ["-D", f"{folder}/data"]
        setup = [f"{programs}/initdb", *data, "-A", "trust", "-U", "leanrank", "-E", "UTF8"]
        server = [f"{programs}/postgres", *data, "-h", "", "-k", folder, "-F"]
        client = [f"{programs}/psql", "-qAt", "-v", "ON_ERROR_STOP=1", "-h", folder]
        client += ["-U", "leanrank", "postgres"]
        with _served([*setup, "--no-sync"], server, [*client, "-c", "SELECT 1"], **how):
            yield client


def postgres_programs() -> str | None:
    """Return the folder of PostgreSQL's programs, if there is one."""
    found = importlib.util.find_spec("pgserver")
    own = [] if found is None or not found.origin else [Path(found.origin).parent / "pginstall/bin"]
    folders = [*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), *map(str, own)]
    return next((one for one in folders if Path(one, "initdb").exists()), None)


@contextlib.contextmanager
def mariadb_server() -> Iterator[list[str]]:
    """Start MariaDB; yield the words of its client."""
    path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
    program = shutil.which("mariadbd", path=path) or "mariadbd"
    with tempfile.TemporaryDirectory() as folder:
        own = ["--no-defaults", f"--datadir={folder}/data"]
        own += ["--user=root"] if os.geteuid() == 0 else []
        setup = ["mariadb-install-db", *own, "--auth-root-authentication-method=normal"]
        socket = f"--socket={folder}/s"
        server = [program, *own, socket, "--skip-networking", "--innodb-flush-log-at-trx-commit=0"]
        client = ["mariadb", "--no-defaults", socket, "-uroot", "-N", "-B"]
        client.append("--default-character-set=utf8mb4")
        env = os.environ | {"TMPDIR": folder}  # servers side by side name temporary tables alike
        with _served([*setup, "--skip-test-db"], server, [*client, "-e", "SELECT 1"], env=env):
            yield client


@contextlib.contextmanager
def _served(setup: list[str], server: list[str], ready: list[str], **how: Any) -> Iterator[None]:
    """Set a server up, start it, wait until it answers, and stop it in the end."""
    called(setup, **how)
    with subprocess.Popen(
        server, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, **how
    ) as running:
        try:
            for _ in range(300):
                stopped = running.poll() is not None
                if stopped or subprocess.run(ready, capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
            yield
        finally:
            running.terminate()


def view(job: Job) -> str:
    """Return the first statement of the export, the view."""
    assert isinstance(job.content, str)
    return job.content[: job.content.index("\n\n--")]


def select(job: Job, quote: str = '"') -> str:
    """Return the query for the scores in the order of the documents."""
    row, score = columns(job)[0], sql.added_column("score", job.names, job.options)
    return f"SELECT {score} FROM {quote}{job.options.name}{quote} ORDER BY {row}"


def called(words: Sequence[str], given: bytes = b"", **how: Any) -> bytes:
    """Run a program and return what it writes, or raise with the first line of what it says."""
    done = subprocess.run(words, input=given, capture_output=True, **how)
    if done.returncode != 0:
        said = (done.stderr or done.stdout or b"").decode("utf-8", "replace").strip()
        first = said.split("\n")[0] if said else f"exit code {done.returncode}"
        raise InputError(f"{Path(words[0]).name} failed: {first}")
    return done.stdout
