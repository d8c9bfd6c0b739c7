"""Compiling and running plain code: a driver reads float64 numbers and writes scores."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.verify.engines import Job


def _ran(
    export: str,
    main: str,
    driver: str,
    job: Job,
    *,
    run: Sequence[str],
    version: Sequence[str],
    build: Sequence[str] = (),
    more: Sequence[tuple[str, str]] = (),
) -> tuple[str, FloatArray]:
    """Write an export and its driver to files, build and run them; return version and scores."""
    name = job.options.name
    words = {"NAME": name, "CLASS": name[:1].upper() + name[1:], "COLUMNS": str(len(job.names))}

    def filled(text: str) -> str:
        for word, value in words.items():
            text = text.replace(f"@{word}@", value)
        return text

    assert isinstance(job.content, str)
    with tempfile.TemporaryDirectory() as folder:
        for file, text in ((export, job.content), (main, filled(driver)), *more):
            path = Path(folder, filled(file))
            path.parent.mkdir(exist_ok=True)
            path.write_text(text, encoding="utf-8")
        said = _call(version, folder).decode("utf-8", "replace").strip().split("\n")[0]
        if build:
            _call([filled(word) for word in build], folder)
        out = _call(run, folder, np.ascontiguousarray(job.X, dtype="<f8").tobytes())
    return said, np.frombuffer(out, dtype="<f8").astype(np.float64)


def _call(words: Sequence[str], folder: str, given: bytes = b"") -> bytes:
    done = subprocess.run(words, input=given, capture_output=True, cwd=folder)
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip()
        last = said.split("\n")[0] if said else f"exit code {done.returncode}"
        raise InputError(f"{words[0]} failed: {last}")
    return done.stdout


# Each driver fails if the test in the export does.
_C = """\
#include <stdio.h>
#include "model.c"

int main(void) {
    double x[@COLUMNS@], s;
    if (!@NAME@_test()) return 3;
    while (fread(x, sizeof(double), @COLUMNS@, stdin) == @COLUMNS@) {
        s = @NAME@_score(x);
        fwrite(&s, sizeof(double), 1, stdout);
    }
    return 0;
}
"""

_JAVA = """\
import java.nio.ByteBuffer;
import java.nio.ByteOrder;

class Main {
    public static void main(String[] words) throws Exception {
        if (!@CLASS@.test()) System.exit(3);
        ByteBuffer in = ByteBuffer.wrap(System.in.readAllBytes()).order(ByteOrder.LITTLE_ENDIAN);
        ByteBuffer out = ByteBuffer.allocate(in.limit() / @COLUMNS@).order(ByteOrder.LITTLE_ENDIAN);
        double[] x = new double[@COLUMNS@];
        while (in.hasRemaining()) {
            for (int j = 0; j < x.length; j++) x[j] = in.getDouble();
            out.putDouble(@CLASS@.score(x));
        }
        System.out.write(out.array());
        System.out.flush();
    }
}
"""

_JAVASCRIPT = """\
const fs = require("fs");
const model = require("./model.js");
if (!model.test()) process.exit(3);
const bytes = fs.readFileSync(0);
const rows = bytes.length / 8 / @COLUMNS@;
const out = Buffer.alloc(rows * 8);
for (let i = 0; i < rows; i++) {
  const x = [];
  for (let j = 0; j < @COLUMNS@; j++) x.push(bytes.readDoubleLE(8 * (i * @COLUMNS@ + j)));
  out.writeDoubleLE(model.score(x), 8 * i);
}
fs.writeFileSync(1, out);
"""

_PYTHON = """\
import struct
import sys
import model

if not model.test():
    sys.exit(3)
for x in struct.iter_unpack("<@COLUMNS@d", sys.stdin.buffer.read()):
    sys.stdout.buffer.write(struct.pack("<d", model.score(x)))
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
    let mut out = Vec::new();
    for row in x.chunks_exact(@COLUMNS@) {
        out.extend_from_slice(&model::score(row).to_le_bytes());
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
	out := make([]byte, 8)
	for len(in) > 0 {
		for j := range x {
			x[j] = math.Float64frombits(binary.LittleEndian.Uint64(in[8*j:]))
		}
		in = in[8*len(x):]
		binary.LittleEndian.PutUint64(out, math.Float64bits(model.Score(x)))
		os.Stdout.Write(out)
	}
}
"""

c = partial(
    _ran, "model.c", "main.c", _C, run=["./run"], version=["cc", "--version"],
    build=["cc", "-O2", "-ffp-contract=off", "-o", "run", "main.c"],
)  # fmt: skip
java = partial(
    _ran, "@CLASS@.java", "Main.java", _JAVA,
    run=["java", "-cp", ".", "Main"], version=["java", "--version"],
    build=["javac", "-encoding", "UTF-8", "@CLASS@.java", "Main.java"],
)  # fmt: skip
javascript = partial(
    _ran, "model.js", "main.js", _JAVASCRIPT, run=["node", "main.js"],
    version=["node", "-p", "'node ' + process.version"],
)  # fmt: skip
python = partial(
    _ran, "model.py", "main.py", _PYTHON,
    run=[sys.executable, "main.py"], version=[sys.executable, "--version"],
)  # fmt: skip
rust = partial(
    _ran, "model.rs", "main.rs", _RUST, run=["./run"], version=["rustc", "--version"],
    build=["rustc", "--edition", "2021", "-O", "-A", "warnings", "-o", "run", "main.rs"],
)  # fmt: skip
go = partial(
    _ran, "model/@NAME@.go", "main.go", _GO, run=["./run"], version=["go", "version"],
    build=["go", "build", "-o", "run", "."], more=[("go.mod", "module check\n\ngo 1.20\n")],
)  # fmt: skip
