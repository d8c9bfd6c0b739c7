"""Running SQL in SQLite, DuckDB, PostgreSQL, ClickHouse and Spark, and Polars expressions."""

from __future__ import annotations

import contextlib
import csv
import io
import os
import subprocess
import sys
import tempfile
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.export.sql import added_column
from leanrank.model.export.text import unused
from leanrank.model.verify.engines import Job


def sqlite(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a database in memory."""
    import sqlite3

    names, rows = _columns(job), _rows(job)
    listed = ", ".join(map(_quoted, names))
    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE {_quoted(job.options.table)} ({listed})")
        marks = ", ".join("?" * len(names))
        connection.executemany(f"INSERT INTO {_quoted(job.options.table)} VALUES ({marks})", rows)
        connection.execute(_view(job))
        found = connection.execute(_select(job)).fetchall()
    return f"SQLite {sqlite3.sqlite_version}", np.array([row[0] for row in found], dtype=np.float64)


def duckdb(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a database in memory."""
    import duckdb as engine

    with contextlib.closing(engine.connect(":memory:")) as connection:
        connection.register(job.options.table, _arrow(job))
        connection.execute(_view(job).replace("CREATE VIEW", "CREATE TEMPORARY VIEW", 1))
        found = connection.execute(_select(job)).fetchnumpy()
    return f"DuckDB {engine.__version__}", np.asarray(next(iter(found.values())), dtype=np.float64)


def polars(job: Job) -> tuple[str, FloatArray]:
    """Run the expression on a frame."""
    import polars as engine

    names = _columns(job)[1:]
    columns = [engine.Series(job.query)]
    for column, null in zip(job.X.T, job.is_null.T, strict=True):
        columns.append(engine.Series(column).set(engine.Series(null), None))
    frame = engine.DataFrame(dict(zip(names, columns, strict=True)))
    module: dict[str, Any] = {}
    exec(compile(job.content, "<export>", "exec"), module)  # what was just written
    score = frame.select(score=module[f"{job.options.name}_score"]())
    return f"Polars {engine.__version__}", score["score"].to_numpy()


def postgres(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a server that is started for it and listens on a local socket only."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        import pgserver

    names = _columns(job)
    table = _quoted(job.options.table)
    types = ", ".join(
        f"{_quoted(name)} {'bigint' if at < 2 else 'double precision'}"
        for at, name in enumerate(names)
    )
    text = io.StringIO()
    csv.writer(text, lineterminator="\n").writerows(_rows(job))
    with tempfile.TemporaryDirectory() as folder:
        server = pgserver.get_server(folder, cleanup_mode="delete")
        try:
            script = (
                f"CREATE TEMPORARY TABLE {table} ({types});\n"
                f"COPY {table} FROM STDIN (FORMAT csv);\n{text.getvalue()}\\.\n"
                f"{_view(job).replace('CREATE OR REPLACE VIEW', 'CREATE TEMPORARY VIEW', 1)}\n"
                "COPY (SELECT current_setting('server_version')) TO STDOUT;\n"
                f"COPY ({_select(job).rstrip(';')}) TO STDOUT;\n"
            )
            # not its psql(), which leaves errors to the terminal and goes on after them
            psql = str(Path(pgserver.__file__).parent / "pginstall" / "bin" / "psql")
            words = [psql, "-q", "-v", "ON_ERROR_STOP=1", server.get_uri()]
            done = subprocess.run(words, input=script.encode(), capture_output=True)
        finally:
            server.cleanup()
    if done.returncode != 0:
        raise InputError(done.stderr.decode("utf-8", "replace").strip().split("\n")[0])
    version, *scores = done.stdout.decode().strip().split("\n")
    return f"PostgreSQL {version}", np.array(list(map(float, scores)))


def clickhouse(job: Job) -> tuple[str, FloatArray]:
    """Run the view in chDB, ClickHouse in a process of its own."""
    return _in_process(job, _CLICKHOUSE)


def spark(job: Job) -> tuple[str, FloatArray]:
    """Run the view in a local Spark session, in a process of its own."""
    return _in_process(job, _SPARK)


_CLICKHOUSE = """
import sys
from chdb import session
folder, table, view, select = sys.argv[1:]
with session.Session() as run:
    run.query(f"CREATE DATABASE d; USE d;")
    run.query(f"CREATE TABLE {table} ENGINE = Memory AS SELECT * FROM file('{folder}/in.parquet')")
    run.query(view)
    run.query(f"{select} INTO OUTFILE '{folder}/out.parquet' FORMAT Parquet")
    print("ClickHouse", str(run.query("SELECT version()", "TSV")).strip())
"""

_SPARK = """
import sys
from pyspark.sql import SparkSession
folder, table, view, select = sys.argv[1:]
local = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
local = local.config("spark.driver.bindAddress", "127.0.0.1")
local = local.config("spark.driver.host", "127.0.0.1")
local = local.config("spark.sql.shuffle.partitions", "1").config("spark.log.level", "ERROR")
run = local.getOrCreate()
run.read.parquet(f"{folder}/in.parquet").createOrReplaceTempView(table.strip("`"))
run.sql(view)
import pyarrow, pyarrow.parquet
scores = [row[0] for row in run.sql(select).collect()]
pyarrow.parquet.write_table(pyarrow.table({"score": scores}), f"{folder}/out.parquet")
print("Spark", run.version)
run.stop()
"""


def _in_process(job: Job, script: str) -> tuple[str, FloatArray]:
    import pyarrow.parquet

    quote = "`" if script is _SPARK else '"'
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(_arrow(job), f"{folder}/in.parquet")
        table = quote + job.options.table + quote
        view, select = _view(job).rstrip(";"), _select(job, quote)
        said = run_python(script, folder, table, view, select, cwd=folder)
        scores = pyarrow.parquet.read_table(f"{folder}/out.parquet").column(0).to_numpy()
    return said.strip().split("\n")[-1], scores


def run_python(script: str, *arguments: str, cwd: str) -> str:
    """Run a script in another interpreter, which ends with it; return what it printed."""
    words = [sys.executable, "-c", script, *arguments]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env)
    if done.returncode != 0:
        last = done.stderr.strip().split("\n")[-1]
        raise InputError(f"the engine failed: {last}")
    return done.stdout


def _view(job: Job) -> str:
    """Return the first statement of the export, the view."""
    assert isinstance(job.content, str)
    return job.content[: job.content.index("\n\n--")]


def _select(job: Job, quote: str = '"') -> str:
    row, score = _columns(job)[0], added_column("score", job.names, job.options)
    return f"SELECT {score} FROM {quote}{job.options.name}{quote} ORDER BY {row}"


def _columns(job: Job) -> list[str]:
    row = unused("leanrank_row", [*job.names, job.options.qid])
    return [row, job.options.qid, *job.names]


def _rows(job: Job) -> Iterator[list[Any]]:
    cells = job.X.astype(object)
    cells[job.is_null] = None
    for at, (query, x) in enumerate(zip(job.query.tolist(), cells.tolist(), strict=True)):
        yield [at, query, *x]


def _arrow(job: Job) -> Any:
    import pyarrow

    columns = [pyarrow.array(np.arange(len(job.X))), pyarrow.array(job.query)]
    columns += [
        pyarrow.array(column, mask=null)
        for column, null in zip(job.X.T, job.is_null.T, strict=True)
    ]
    return pyarrow.table(columns, names=_columns(job))


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
