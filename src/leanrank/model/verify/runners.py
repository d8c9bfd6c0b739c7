"""Running exports: Polars, ONNX graphs, trees and plain code.

A driver of plain code reads float64 numbers and writes scores. The number of a text is its place
in a list of all texts.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.model.export.code import LANGUAGES
from leanrank.model.verify.engines import Job


def polars(job: Job) -> tuple[str, FloatArray]:
    """Run the expression on a frame."""
    import polars as engine

    names = [job.options.qid, *job.names]
    columns = [engine.Series(job.query)]
    for at, (column, null) in enumerate(zip(job.X.T, job.is_null.T, strict=True)):
        if at in job.words:
            columns.append(engine.Series(job.texts(at), dtype=engine.String))
        else:
            columns.append(engine.Series(column).set(engine.Series(null), None))
    frame = engine.DataFrame(dict(zip(names, columns, strict=True)))
    module: dict[str, Any] = {}
    exec(compile(job.content, "<export>", "exec"), module)  # what was just written
    score = frame.select(score=module[f"{job.options.name}_score"]())
    return f"Polars {engine.__version__}", score["score"].to_numpy()


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
        points = []
        for row in rows:
            known = zip(job.names, job.X[row].tolist(), strict=True)
            vector: Any = {name: [x] for name, x in known if x == x}
            points.append(models.PointStruct(id=row, vector=vector))
        client.upsert(str(query), points)
        prefetch = [
            models.Prefetch(query=[1.0], using=one["using"], limit=len(rows))
            for one in request["prefetch"]
        ]
        how = {"prefetch": prefetch, "query": kind(**request["query"]), "limit": len(rows)}
        for point in client.query_points(str(query), **how).points:
            scores[point.id] = point.score
    return f"Qdrant client {version('qdrant-client')}", scores


def run_program(
    target: str,
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
    X, texts = job.coded()
    language = LANGUAGES[target]
    written = [language.some.format(text=language.element(text)) for text in texts]
    words = {
        "NAME": name,
        "CLASS": name[:1].upper() + name[1:],
        "COLUMNS": str(len(job.names)),
        "N": str(len(texts)),
        "WORDS": ", ".join([*written, language.null]),
        "T": ", t" if texts else "",
    }

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
        said = called(version, cwd=folder).decode("utf-8", "replace").strip().split("\n")[0]
        if build:
            called([filled(word) for word in build], cwd=folder)
        out = called(run, np.ascontiguousarray(X, dtype="<f8").tobytes(), cwd=folder)
    return said, np.frombuffer(out, dtype="<f8").astype(np.float64)


def called(words: Sequence[str], given: bytes = b"", **how: Any) -> bytes:
    """Run a program and return what it writes, or raise with the first line of what it says."""
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    done = subprocess.run(words, input=given, **(pipes | how))
    if done.returncode != 0:
        said = (done.stderr or done.stdout or b"").decode("utf-8", "replace").strip()
        first = said.split("\n")[0] if said else f"exit code {done.returncode}"
        raise InputError(f"{Path(words[0]).name} failed: {first}")
    return done.stdout


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

_PYTHON = """\
import struct
import sys
import model

if not model.test():
    sys.exit(3)
words = dict(enumerate([@WORDS@]))
for x in struct.iter_unpack("<@COLUMNS@d", sys.stdin.buffer.read()):
    t = [words.get(k) for k in x]
    sys.stdout.buffer.write(struct.pack("<d", model.score(x@T@)))
"""

c = partial(
    run_program, "c", "model.c", "main.c", _C, run=["./run"], version=["cc", "--version"],
    build=["cc", "-O2", "-ffp-contract=off", "-o", "run", "main.c"],
)  # fmt: skip
javascript = partial(
    run_program, "javascript", "model.js", "main.js", _JAVASCRIPT, run=["node", "main.js"],
    version=["node", "-p", "'node ' + process.version"],
)  # fmt: skip
python = partial(
    run_program, "python", "model.py", "main.py", _PYTHON,
    run=[sys.executable, "main.py"], version=[sys.executable, "--version"],
)  # fmt: skip
