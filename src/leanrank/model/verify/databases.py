"""Running SQL: SQLite and DuckDB in memory, PostgreSQL and MariaDB in servers of their own.

Columns have the types of the table that was given, and doubles otherwise.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import re
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.export import sql
from leanrank.model.verify.runners import Job, arrow_table, columns

TYPES = {"boolean": "BOOLEAN", "integer": "BIGINT", "decimal": "DECIMAL(38, 10)", "text": "TEXT"}
"""What columns are declared as, in every database; all others are doubles."""


def sqlite(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a database in memory."""
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for schema in _schemas(job, "sqlite"):
            connection.execute(f"ATTACH ':memory:' AS {schema}")
        table = sql.qualified(job.options.table, sql.DIALECTS["sqlite"])
        connection.execute(f"CREATE TABLE {table} ({_listed(job, 'sqlite')})")
        marks = ", ".join("?" * len(columns(job)))
        connection.executemany(f"INSERT INTO {table} VALUES ({marks})", _rows(job))
        # a view of the main database sees no other
        temporary = view(job).replace("CREATE VIEW", "CREATE TEMPORARY VIEW", 1)
        connection.execute(temporary)
        found = connection.execute(select(job)).fetchall()
    return f"SQLite {sqlite3.sqlite_version}", np.array([row[0] for row in found], dtype=np.float64)


def duckdb(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a database in memory."""
    import duckdb as engine

    cells = (f"CAST({name} AS {kind}) AS {name}" for name, kind in _declared(job, "duckdb"))
    with contextlib.closing(engine.connect(":memory:")) as connection:
        connection.register("leanrank_given", arrow_table(job))
        for schema in _schemas(job, "duckdb"):
            connection.execute(f"CREATE SCHEMA {schema}")
        table = sql.qualified(job.options.table, sql.DIALECTS["duckdb"])
        connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(cells)} FROM leanrank_given")
        connection.execute(view(job))
        found = connection.execute(select(job)).fetchall()
    return f"DuckDB {engine.__version__}", np.array([row[0] for row in found], dtype=np.float64)


def postgres(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a server that is started for it and listens on a local socket only."""
    script = f"{_made(job, 'postgres', 'SCHEMA')}SHOW server_version;\n{select(job)};\n"
    with postgres_server() as client:
        return _version_and_scores("PostgreSQL", client, script)


def mysql(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a MariaDB that is started for it and listens on a local socket only."""
    script = (
        "CREATE DATABASE leanrank_verify CHARACTER SET utf8mb4; USE leanrank_verify;\n"
        f"SET NAMES utf8mb4;\n{_made(job, 'mysql', 'DATABASE', nan=None)}"
        f"SELECT VERSION();\n{select(job, '`')};\n"
    )
    with mariadb_server() as client:
        return _version_and_scores("MariaDB", client, script)


def _version_and_scores(name: str, client: list[str], script: str) -> tuple[str, FloatArray]:
    version, *scores = called(client, script.encode()).decode().split("\n")
    number = re.match(r"[\d.]*", version)
    return f"{name} {number and number[0]}", np.array(list(map(float, filter(None, scores))))


def _made(job: Job, name: str, schema: str, nan: float | None = float("nan")) -> str:
    """Return the statements that make the table and the view."""
    dialect, table = sql.DIALECTS[name], sql.qualified(job.options.table, sql.DIALECTS[name])

    def cell(value: Any) -> str:
        if isinstance(value, str) or value != value or value in (np.inf, -np.inf):
            return sql.text_literal(str(value), dialect)
        return "NULL" if value is None else repr(value)

    rows = [", ".join(map(cell, row)) for row in _rows(job, nan)]
    groups = ("),\n(".join(rows[at : at + 500]) for at in range(0, len(rows), 500))
    return "".join(
        [
            *(f"CREATE {schema} {one};\n" for one in _schemas(job, name)),
            f"CREATE TABLE {table} ({_listed(job, name)});\n",
            *(f"INSERT INTO {table} VALUES ({group});\n" for group in groups),
            f"{view(job)}\n",
        ]
    )


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


def _declared(job: Job, dialect: str) -> list[tuple[str, str]]:
    kinds = ["BIGINT", "BIGINT", *["DOUBLE PRECISION"] * len(job.names)]
    for at, kind in {**job.kinds, **dict.fromkeys(job.words, "text")}.items():
        kinds[at + 2] = TYPES.get(kind, kinds[at + 2])
    names = (sql.quoted_name(name, sql.DIALECTS[dialect]) for name in columns(job))
    return list(zip(names, kinds, strict=True))


def _listed(job: Job, dialect: str) -> str:
    return ", ".join(f"{name} {kind}" for name, kind in _declared(job, dialect))


def _schemas(job: Job, dialect: str) -> list[str]:
    """Return the quoted names of what the table is in."""
    return [
        sql.quoted_name(one, sql.DIALECTS[dialect]) for one in job.options.table.split(".")[:-1]
    ]


def _rows(job: Job, nan: float | None = float("nan")) -> Iterator[list[Any]]:
    cells = job.X.astype(object)
    cells[np.isnan(job.X)] = nan
    cells[job.is_null] = None
    write: dict[str, Callable[[float], Any]] = {
        "boolean": bool,
        "integer": int,
        "decimal": "{:.10f}".format,
        "text": repr,
    }
    for at, kind in job.kinds.items():
        change = write.get(kind, float)
        # only doubles can be NaN
        cells[:, at] = [None if x is None or x != x else change(x) for x in cells[:, at]]
    for at in job.words:
        cells[:, at] = job.texts(at)
    for at, (query, x) in enumerate(zip(job.query.tolist(), cells.tolist(), strict=True)):
        yield [at, query, *x]


def called(words: Sequence[str], given: bytes = b"", **how: Any) -> bytes:
    """Run a program and return what it writes, or raise with the first line of what it says."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run(words, input=given, **(pipes | how))
    if done.returncode != 0:
        said = (done.stderr or done.stdout or b"").decode("utf-8", "replace").strip()
        first = said.split("\n")[0] if said else f"exit code {done.returncode}"
        raise InputError(f"{Path(words[0]).name} failed: {first}")
    return done.stdout
