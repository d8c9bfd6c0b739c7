"""Engines that only tests run: C, JavaScript, and Spark, ClickHouse, PMML, Java, Rust and Go.

The large ones are for ``make test-engines`` and ``python -m benchmarks engines``; ``leanrank verify
--logged`` compares what any engine computed.
"""

import json
import os
import subprocess
import sys
import tempfile
from functools import cache, partial
from pathlib import Path

import numpy as np

from leanrank.errors import InputError
from leanrank.model.export.code import LANGUAGES
from leanrank.model.verify.runners import Engine, arrow_table, called, select, view


def clickhouse(job):
    """Run the view in chDB, ClickHouse in a process of its own."""
    return _on_files(job, '"', lambda folder: run_python(_CLICKHOUSE, folder, cwd=folder))


def spark(job):
    """Run the view in one local Spark session for all jobs: it takes long to start."""

    def ask(folder):
        session = _spark_session()
        session.stdin.write(f"{folder}\n")
        session.stdin.flush()
        said = session.stdout.readline()
        if not said.startswith("Spark"):
            raise InputError(f"the engine failed: {said.strip()}")
        return said

    return _on_files(job, "`", ask)


@cache
def _spark_session():
    words = [sys.executable, "-c", _SPARK]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    env = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1"}
    return subprocess.Popen(words, text=True, cwd=tempfile.gettempdir(), env=env, **pipes)


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
import pyarrow, pyarrow.parquet
from pyspark.sql import SparkSession
local = SparkSession.builder.master("local[1]").config("spark.ui.enabled", "false")
local = local.config("spark.driver.bindAddress", "127.0.0.1")
local = local.config("spark.driver.host", "127.0.0.1")
local = local.config("spark.sql.shuffle.partitions", "1").config("spark.log.level", "ERROR")
run = local.getOrCreate()
for folder in map(str.strip, sys.stdin):
    table, view, select = json.load(open(f"{folder}/texts.json"))
    try:
        run.read.parquet(f"{folder}/in.parquet").createOrReplaceTempView(table.strip("`"))
        run.sql(view)
        scores = [row[0] for row in run.sql(select).collect()]
        pyarrow.parquet.write_table(pyarrow.table({"score": scores}), f"{folder}/out.parquet")
        print("Spark", run.version, flush=True)
    except Exception as error:
        print(str(error).replace("\\n", " "), flush=True)
run.stop()
"""


def _on_files(job, quote, run):
    import pyarrow.parquet

    with tempfile.TemporaryDirectory() as folder:
        pyarrow.parquet.write_table(arrow_table(job), f"{folder}/in.parquet")
        table = quote + job.options.table + quote
        texts = table, view(job).rstrip(";"), select(job, quote)
        Path(folder, "texts.json").write_text(json.dumps(texts))  # too long for a command line
        said = run(folder)
        scores = pyarrow.parquet.read_table(f"{folder}/out.parquet").column(0).to_numpy()
    return said.strip().split("\n")[-1], scores


def run_python(script, *arguments, cwd):
    """Run a script in another interpreter, which ends with it; return what it printed."""
    words = [sys.executable, "-c", script, *arguments]
    done = subprocess.run(words, capture_output=True, text=True, cwd=cwd)
    if done.returncode != 0:
        last = done.stderr.strip().split("\n")[-1]
        raise InputError(f"the engine failed: {last}")
    return done.stdout


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


def run_program(
    target,
    export,
    main,
    driver,
    job,
    *,
    run,
    version,
    build=(),
    more=(),
):
    """Write an export and its driver to files, build and run them; return version and scores."""
    name = job.options.name
    X, texts = coded(job)
    language = LANGUAGES[target]
    written = [language.templates["some"].format(text=language.text(text)) for text in texts]
    words = {
        "NAME": name,
        "CLASS": name[:1].upper() + name[1:],
        "COLUMNS": str(len(job.names)),
        "N": str(len(texts)),
        "WORDS": ", ".join([*written, language.templates["null"]]),
        "T": ", t" if texts else "",
    }

    def filled(text):
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        return text

    with tempfile.TemporaryDirectory() as folder:
        for file, text in ((export, job.content), (main, filled(driver)), *more):
            path = Path(folder, filled(file))
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        said = called(version, cwd=folder).decode("utf-8", "replace").strip().split("\n")[0]
        if build:
            called([filled(word) for word in build], cwd=folder)
        out = called(run, np.ascontiguousarray(X, dtype="<f8").tobytes(), cwd=folder)
    return said, np.frombuffer(out, dtype="<f8").astype(np.float64)


def coded(job):
    """Return the features with texts as places in one list, and the list."""
    X, words = job.X.copy(), []
    for at, own in job.words.items():
        X[:, at] += len(words)
        words += own
    return X, words


# Each driver fails if the test in the export does.
_C = """\
#include <stdio.h>
#include "model.c"

int main(void) {
    static const char *const words[] = {@WORDS@};
    const char *t[@COLUMNS@];
    double x[@COLUMNS@], s;
    int j;
    if (!@NAME@_test()) return 3;
    while (fread(x, sizeof(double), @COLUMNS@, stdin) == @COLUMNS@) {
        for (j = 0; j < @COLUMNS@; j++) t[j] = words[x[j] >= 0 && x[j] < @N@ ? (int)x[j] : @N@];
        s = @NAME@_score(x@T@);
        fwrite(&s, sizeof(double), 1, stdout);
    }
    return 0;
}
"""

_JAVASCRIPT = """\
const fs = require("fs");
const model = require("./model.js");
if (!model.test()) process.exit(3);
const words = [@WORDS@];
const bytes = fs.readFileSync(0);
const rows = bytes.length / 8 / @COLUMNS@;
const out = Buffer.alloc(rows * 8);
for (let i = 0; i < rows; i++) {
  const x = [];
  for (let j = 0; j < @COLUMNS@; j++) x.push(bytes.readDoubleLE(8 * (i * @COLUMNS@ + j)));
  const t = x.map((k) => (k in words ? words[k] : null));
  out.writeDoubleLE(model.score(x@T@), 8 * i);
}
fs.writeFileSync(1, out);
"""

c = partial(
    run_program, "c", "model.c", "main.c", _C, run=["./run"], version=["cc", "--version"],
    build=["cc", "-O2", "-ffp-contract=off", "-o", "run", "main.c"],
)  # fmt: skip
javascript = partial(
    run_program, "javascript", "model.js", "main.js", _JAVASCRIPT, run=["node", "main.js"],
    version=["node", "-p", "'node ' + process.version"],
)  # fmt: skip

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

OTHERS = {
    "c": Engine(c, (), ("cc",)),
    "javascript": Engine(javascript, (), ("node",)),
}
HEAVY = {
    "sql:clickhouse": Engine(clickhouse, ("chdb", "pyarrow")),
    "sql:spark": Engine(spark, ("pyspark", "pyarrow"), ("java",)),
    "pmml": Engine(pmml, ("jpmml_evaluator", "pandas"), ("java",)),
    "java": Engine(java, (), ("javac", "java")),
    "rust": Engine(rust, (), ("rustc",)),
    "go": Engine(go, (), ("go",)),
}
"""What is run by the tests and benchmarks only."""
