"""Running SQL: SQLite and DuckDB in memory, PostgreSQL and MariaDB in servers of their own.

Columns have the types of the table that was given, and doubles otherwise.
"""

from __future__ import annotations

import contextlib
import glob
import importlib.util
import os
import shutil
import subprocess
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.export.sql import DIALECTS, added_column, qualified
from leanrank.model.export.text import unused
from leanrank.model.verify.engines import Job

TYPES = {"boolean": "BOOLEAN", "integer": "BIGINT", "decimal": "DECIMAL(38, 10)", "text": "TEXT"}
"""What columns are declared as, in every database; all others are doubles."""


def sqlite(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a database in memory."""
    import sqlite3

    listed = ", ".join(f"{name} {kind}" for name, kind in _declared(job, "sqlite"))
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        for schema in job.options.table.split(".")[:-1]:
            connection.execute(f"ATTACH ':memory:' AS {_quoted(schema)}")
        table = qualified(job.options.table, DIALECTS["sqlite"])
        connection.execute(f"CREATE TABLE {table} ({listed})")
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

    given: dict[str, Any] = {"row": np.arange(len(job.X)), "query": job.query}
    (row, _), (query, _), *features = _declared(job, "duckdb")
    cells = [f"row AS {row}", f"query AS {query}"]
    for at, (name, kind) in enumerate(features):
        null = job.is_null[:, at]
        if at in job.words:
            given[f"x{at}"] = np.array([*job.texts(at), None], dtype=object)[:-1]
            cells.append(f"CAST(x{at} AS VARCHAR) AS {name}")
            continue
        # DuckDB takes NaN of an array for NULL, and only doubles can be NaN
        given[f"x{at}"] = np.nan_to_num(job.X[:, at], nan=0.0, posinf=np.inf, neginf=-np.inf)
        given[f"k{at}"] = np.where(null, 1, np.where(np.isnan(job.X[:, at]), 2, 0))
        gap = "'nan'::DOUBLE" if at not in job.kinds else "NULL"
        known = f"CASE k{at} WHEN 1 THEN NULL WHEN 2 THEN {gap} ELSE x{at} END"
        cells.append(f"CAST({known} AS {kind}) AS {name}")
    with contextlib.closing(engine.connect(":memory:")) as connection:
        connection.register("leanrank_given", given)
        for schema in job.options.table.split(".")[:-1]:
            connection.execute(f"CREATE SCHEMA {_quoted(schema)}")
        table = qualified(job.options.table, DIALECTS["duckdb"])
        connection.execute(f"CREATE TABLE {table} AS SELECT {', '.join(cells)} FROM leanrank_given")
        connection.execute(view(job))
        found = connection.execute(select(job)).fetchall()
    return f"DuckDB {engine.__version__}", np.array([row[0] for row in found], dtype=np.float64)


def postgres(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a server that is started for it and listens on a local socket only."""
    listed = ", ".join(f"{name} {kind}" for name, kind in _declared(job, "postgres"))
    text = "".join(",".join(map(_cell, row)) + "\n" for row in _rows(job))
    table = qualified(job.options.table, DIALECTS["postgres"])
    schemas = (f"CREATE SCHEMA {_quoted(one)};\n" for one in job.options.table.split(".")[:-1])
    script = (
        f"{''.join(schemas)}CREATE TABLE {table} ({listed});\n"
        f"COPY {table} FROM STDIN (FORMAT csv);\n{text}\\.\n{view(job)}\n"
        f"COPY (SELECT current_setting('server_version')) TO STDOUT;\n"
        f"COPY ({select(job)}) TO STDOUT;\n"
    )
    with postgres_server() as psql:
        version, *scores = _call(psql, script)
    return f"PostgreSQL {version}", np.array(list(map(float, scores)))


def mysql(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a MariaDB that is started for it and listens on a local socket only."""
    listed = ", ".join(f"{name} {kind}" for name, kind in _declared(job, "mysql"))
    schemas = (f"CREATE DATABASE `{one}`;\n" for one in job.options.table.split(".")[:-1])
    table = qualified(job.options.table, DIALECTS["mysql"])
    rows = [", ".join(map(_literal, row)) for row in _rows(job, nan=None)]
    groups = (rows[at : at + 500] for at in range(0, len(rows), 500))
    inserts = (f"INSERT INTO {table} VALUES ({'),('.join(group)});\n" for group in groups)
    script = (
        "CREATE DATABASE leanrank_verify CHARACTER SET utf8mb4; USE leanrank_verify;\n"
        f"SET NAMES utf8mb4;\n{''.join(schemas)}CREATE TABLE {table} ({listed});\n"
        f"{''.join(inserts)}{view(job)}\nSELECT VERSION();\n{select(job, '`')};\n"
    )
    with mariadb_server() as client:
        version, *scores = _call(client, script)
    return f"MariaDB {version.partition('-')[0]}", np.array(list(map(float, scores)))


@contextlib.contextmanager
def postgres_server() -> Iterator[list[str]]:
    """Start PostgreSQL, of Debian or of the package pgserver; yield the words of its client."""
    programs = postgres_programs()
    if programs is None:
        raise InputError(
            "PostgreSQL is not installed: apt install postgresql, or pip install pgserver"
        )
    root = os.geteuid() == 0
    who: dict[str, Any] = {"user": "postgres" if programs.startswith("/usr") else "nobody"}
    with tempfile.TemporaryDirectory() as folder:
        if root:  # the server refuses to run as root
            shutil.chown(folder, who["user"])
        how: dict[str, Any] = {"capture_output": True, "cwd": folder, **(who if root else {})}
        setup = [f"{programs}/initdb", "-D", f"{folder}/data", "-A", "trust", "-U", "leanrank"]
        _finished(subprocess.run([*setup, "-E", "UTF8", "--no-sync"], **how))
        options = f"-c listen_addresses='' -c unix_socket_directories='{folder}' -c fsync=off"
        control = [f"{programs}/pg_ctl", "-D", f"{folder}/data", "-w", "-l", f"{folder}/log"]
        # a pipe would stay open as long as the server
        quiet = how | {"capture_output": False, "stdout": subprocess.DEVNULL}
        _finished(subprocess.run([*control, "-o", options, "start"], **quiet))
        try:
            yield [
                f"{programs}/psql", "-q", "-v", "ON_ERROR_STOP=1", "-h", folder, "-U", "leanrank",
                "postgres",
            ]  # fmt: skip
        finally:
            subprocess.run([*control, "-m", "immediate", "stop"], **how)


def postgres_programs() -> str | None:
    """Return the folder of PostgreSQL's programs, if there is one."""
    found = importlib.util.find_spec("pgserver")
    own = [] if found is None or not found.origin else [Path(found.origin).parent / "pginstall/bin"]
    folders = [*sorted(glob.glob("/usr/lib/postgresql/*/bin"), reverse=True), *map(str, own)]
    return next((one for one in folders if Path(one, "initdb").exists()), None)


@contextlib.contextmanager
def mariadb_server() -> Iterator[list[str]]:
    """Start MariaDB; yield the words of its client."""
    with tempfile.TemporaryDirectory() as folder:
        own = ["--no-defaults", f"--datadir={folder}/data"]
        setup = ["mariadb-install-db", *own, "--auth-root-authentication-method=normal"]
        who = ["--user=root"] if os.geteuid() == 0 else []
        _finished(subprocess.run([*setup, "--skip-test-db", *who], capture_output=True))
        socket = f"--socket={folder}/s"
        path = os.pathsep.join([os.environ.get("PATH", ""), "/usr/sbin"])
        program = shutil.which("mariadbd", path=path) or "mariadbd"
        words = [program, *own, socket, "--skip-networking", "--innodb-flush-log-at-trx-commit=0"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        server = subprocess.Popen([*words, *who], **quiet)  # type: ignore[call-overload]
        try:
            client = ["mariadb", "--no-defaults", socket, "-uroot", "-N", "-B"]
            client.append("--default-character-set=utf8mb4")
            for _ in range(300):
                if subprocess.run([*client, "-e", "SELECT 1"], capture_output=True).returncode == 0:
                    break
                time.sleep(0.1)
            yield client
        finally:
            server.terminate()
            server.wait()


def _call(words: list[str], script: str) -> list[str]:
    done = subprocess.run(words, input=script.encode(), capture_output=True)
    _finished(done)
    return done.stdout.decode().strip().split("\n")


def _finished(done: subprocess.CompletedProcess[bytes]) -> None:
    if done.returncode != 0:
        said = (done.stderr or b"").decode("utf-8", "replace").strip()
        raise InputError(said.split("\n")[0] if said else f"{done.args[0]} failed")


def view(job: Job) -> str:
    """Return the first statement of the export, the view."""
    assert isinstance(job.content, str)
    return job.content[: job.content.index("\n\n--")]


def select(job: Job, quote: str = '"') -> str:
    """Return the query for the scores in the order of the documents."""
    row, score = columns(job)[0], added_column("score", job.names, job.options)
    return f"SELECT {score} FROM {quote}{job.options.name}{quote} ORDER BY {row}"


def columns(job: Job) -> list[str]:
    """Return the columns of the table: a number, the query and the features."""
    row = unused("leanrank_row", [*job.names, job.options.qid])
    return [row, job.options.qid, *job.names]


def _declared(job: Job, dialect: str) -> list[tuple[str, str]]:
    kinds = ["BIGINT", "BIGINT", *["DOUBLE PRECISION"] * len(job.names)]
    for at, kind in {**job.kinds, **dict.fromkeys(job.words, "text")}.items():
        kinds[at + 2] = TYPES.get(kind, kinds[at + 2])
    names = (qualified_column(name, dialect) for name in columns(job))
    return list(zip(names, kinds, strict=True))


def qualified_column(name: str, dialect: str) -> str:
    quote = DIALECTS[dialect].quote
    return quote + name.replace(quote, quote * 2) + quote


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


def _cell(value: Any) -> str:
    """Write a cell of CSV: NULL is empty, and an empty text is not."""
    return "" if value is None else _quoted(value) if isinstance(value, str) else repr(value)


def _literal(value: Any) -> str:
    if value is None:
        return "NULL"
    if isinstance(value, str):
        return "'" + value.replace("\\", "\\\\").replace("'", "''") + "'"
    return repr(value)


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
