"""Running ONNX graphs in ONNX Runtime and PMML documents in JPMML-Evaluator."""

from __future__ import annotations

import json
import tempfile
from pathlib import Path

import numpy as np

from leanrank._typing import FloatArray
from leanrank.model.verify.databases import run_python
from leanrank.model.verify.engines import Job


def onnx(job: Job) -> tuple[str, FloatArray]:
    """Run the graph on the processor."""
    import onnxruntime

    session = onnxruntime.InferenceSession(job.content, providers=["CPUExecutionProvider"])
    inputs = dict(zip(job.names, np.ascontiguousarray(job.X.T), strict=True))
    return f"ONNX Runtime {onnxruntime.__version__}", session.run(None, inputs)[0]


def pmml(job: Job) -> tuple[str, FloatArray]:
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
