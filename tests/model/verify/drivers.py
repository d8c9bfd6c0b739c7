"""Engines that are large or slow to start: Spark, ClickHouse, a PMML evaluator, Java, Rust and Go.

They are for the tests of exports (``make test-engines``) and for ``python -m benchmarks engines``;
``leanrank verify --logged`` compares what any engine computed.
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import partial
from pathlib import Path

import numpy as np

from leanrank.errors import InputError
from leanrank.model.verify.databases import columns, select, view
from leanrank.model.verify.engines import Engine
from leanrank.model.verify.runners import run_program


def clickhouse(job):
    """Run the view in chDB, ClickHouse in a process of its own."""
    return _in_process(job, _CLICKHOUSE)


def spark(job):
    """Run the view in a local Spark session, in a process of its own."""
    return _in_process(job, _SPARK)


_CLICKHOUSE = """
import json, sys
from chdb import session
folder = sys.argv[1]
table, view, select = json.load(open(f"{folder}/texts.json"))
with session.Session() as run:
    run.query(f"CREATE DATABASE d; USE d;")
    run.query(f"CREATE TABLE {table} ENGINE = Memory AS SELECT * FROM file('{folder}/in.parquet')")
    run.query(view)
    run.query(f"{select} INTO OUTFILE '{folder}/out.parquet' FORMAT Parquet")
    print("ClickHouse", str(run.query("SELECT version()", "TSV")).strip())
"""

_SPARK = """
import json, sys
from pyspark.sql import SparkSession
folder = sys.argv[1]
table, view, select = json.load(open(f"{folder}/texts.json"))
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


def _in_process(job, script):
    import pyarrow.parquet

    quote = "`" if script is _SPARK else '"'
    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(_arrow(job), f"{folder}/in.parquet")
        table = quote + job.options.table + quote
        texts = table, view(job).rstrip(";"), select(job, quote)
        Path(folder, "texts.json").write_text(json.dumps(texts))  # too long for a command line
        said = run_python(script, folder, cwd=folder)
        scores = pyarrow.parquet.read_table(f"{folder}/out.parquet").column(0).to_numpy()
    return said.strip().split("\n")[-1], scores


def run_python(script, *arguments, cwd):
    """Run a script in another interpreter, which ends with it; return what it printed."""
    words = [sys.executable, "-c", script, *arguments]
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd, env=env)
    if done.returncode != 0:
        last = done.stderr.strip().split("\n")[-1]
        raise InputError(f"the engine failed: {last}")
    return done.stdout


def _arrow(job):
    import pyarrow

    cells = [pyarrow.array(np.arange(len(job.X))), pyarrow.array(job.query)]
    for at, (column, null) in enumerate(zip(job.X.T, job.is_null.T, strict=True)):
        if at in job.words:
            cells.append(pyarrow.array(job.texts(at), pyarrow.string()))
        else:
            cells.append(pyarrow.array(column, mask=null))
    return pyarrow.table(cells, names=columns(job))


def pmml(job):
    """Run the document in Java, in a process of its own."""
    assert isinstance(job.content, str)
    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "m.pmml").write_text(job.content, encoding="utf-8")
        Path(folder, "names.json").write_text(json.dumps(job.names))
        np.save(f"{folder}/in.npy", job.X)
        said = run_python(_PMML, folder, cwd=folder)
        return said.strip().split("\n")[-1], np.load(f"{folder}/out.npy")


_PMML = """
import json, sys
import numpy, pandas
import jpmml_evaluator
folder = sys.argv[1]
names = json.load(open(f"{folder}/names.json"))
frame = pandas.DataFrame(numpy.load(f"{folder}/in.npy"), columns=names)
evaluator = jpmml_evaluator.make_evaluator(f"{folder}/m.pmml", backend="jpype").verify()
found = evaluator.evaluateAll(frame)
numpy.save(f"{folder}/out.npy", found.iloc[:, -1].to_numpy(dtype="float64"))
print("JPMML-Evaluator", jpmml_evaluator.__version__)
"""


_JAVA = """\
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

class Main {
    public static void main(String[] arguments) throws Exception {
        if (!@CLASS@.test()) System.exit(3);
        ByteBuffer in = ByteBuffer.wrap(System.in.readAllBytes()).order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer out = ByteBuffer.allocate(in.limit() / @COLUMNS@).order(ByteOrder.LITTLE_ENDIAN);
        double[] x = new double[@COLUMNS@];
        String[] words = {@WORDS@};
        String[] t = new String[@COLUMNS@];
        while (in.hasRemaining()) {
            for (int j = 0; j < x.length; j++) {
                x[j] = in.getDouble();
                t[j] = words[x[j] >= 0 && x[j] < @N@ ? (int) x[j] : @N@];
            }
            out.putDouble(@CLASS@.score(x@T@));
        }
        System.out.write(out.array());
        System.out.flush();
    }
}
"""

_RUST = """\
mod model;
use std::io::{Read, Write};

fn main() {
    if !model::test() {
        std::process::exit(3);
    }
    let mut bytes = Vec::new();
    std::io::stdin().read_to_end(&mut bytes).unwrap();
    let x: Vec<f64> =
        bytes.chunks_exact(8).map(|b| f64::from_le_bytes(b.try_into().unwrap())).collect();
    let words: Vec<Option<&str>> = vec![@WORDS@];
    let mut out = Vec::new();
    for row in x.chunks_exact(@COLUMNS@) {
        let texts: Vec<Option<&str>> = row
            .iter()
            .map(|&k| words[if k >= 0.0 && k < @N@ as f64 { k as usize } else { @N@ }])
            .collect();
        let t = &texts[..];
        out.extend_from_slice(&model::score(row@T@).to_le_bytes());
    }
    std::io::stdout().write_all(&out).unwrap();
}
"""

_GO = """\
package main

import (
	"encoding/binary"
	"io"
	"math"
	"os"

	model "check/model"
)

func main() {
	if !model.Test() {
		os.Exit(3)
	}
	in, _ := io.ReadAll(os.Stdin)
	x := make([]float64, @COLUMNS@)
	words := []any{@WORDS@}
	t := make([]any, @COLUMNS@)
	out := make([]byte, 8)
	for len(in) > 0 {
		for j := range x {
			x[j] = math.Float64frombits(binary.LittleEndian.Uint64(in[8*j:]))
			t[j] = words[@N@]
			if x[j] >= 0 && x[j] < @N@ {
				t[j] = words[int(x[j])]
			}
		}
		in = in[8*len(x):]
		binary.LittleEndian.PutUint64(out, math.Float64bits(model.Score(x@T@)))
		os.Stdout.Write(out)
	}
}
"""

java = partial(
    run_program, "java", "@CLASS@.java", "Main.java", _JAVA,
    run=["java", "-cp", ".", "Main"], version=["java", "--version"],
    build=["javac", "-encoding", "UTF-8", "@CLASS@.java", "Main.java"],
)  # fmt: skip
rust = partial(
    run_program, "rust", "model.rs", "main.rs", _RUST,
    run=["./run"], version=["rustc", "--version"],
    build=["rustc", "--edition", "2021", "-O", "-A", "warnings", "-o", "run", "main.rs"],
)  # fmt: skip
go = partial(
    run_program, "go", "model/@NAME@.go", "main.go", _GO, run=["./run"], version=["go", "version"],
    build=["go", "build", "-o", "run", "."], more=[("go.mod", "module check\n\ngo 1.20\n")],
)  # fmt: skip

HERE = __name__
HEAVY = {
    "sql:clickhouse": Engine(HERE, "clickhouse", ("chdb", "pyarrow"), nulls=True),
    "sql:spark": Engine(HERE, "spark", ("pyspark", "pyarrow"), ("java",), nulls=True),
    "pmml": Engine(HERE, "pmml", ("jpmml_evaluator", "pandas"), ("java",)),
    "java": Engine(HERE, "java", (), ("javac", "java")),
    "rust": Engine(HERE, "rust", (), ("rustc",)),
    "go": Engine(HERE, "go", (), ("go",)),
}
"""What is run by the tests and benchmarks only."""
