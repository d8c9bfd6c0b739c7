"""Running exports in Python: Polars, ONNX graphs, trees, Qdrant and code."""

from __future__ import annotations

import importlib.util
import json
import platform
import shutil
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.errors import InputError
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
        Of a feature that is a category of texts, those that the numbers in X stand for; the last
        is no level.
    query : array of int
        The query of each document.
    options : Options
        What the export was written with.
    kinds : mapping
        Of a feature in a table with types, what its column holds; others are doubles.
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
        null: BoolArray = np.isnan(self.X) & (np.indices(self.X.shape).sum(axis=0) % 2 == 0)
        return null


@dataclass(frozen=True)
class Engine:
    """What runs an export, and the packages and programs that it needs."""

    function: Callable[[Job], tuple[str, FloatArray]]
    packages: tuple[str, ...] = ()
    programs: tuple[str, ...] = ()

    def lacks(self) -> str | None:
        """Return what is missing, if anything."""
        absent = [name for name in self.packages if importlib.util.find_spec(name) is None]
        if absent:
            return f"{' and '.join(absent)}: pip install {' '.join(absent)}"
        for program in self.programs:
            if shutil.which(program) is None:
                return f"the program {program}: install it and put it on the path"
        return None

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
    """Return the documents as an Arrow table; a gap of a column that is no double is NULL."""
    import pyarrow

    cells = [pyarrow.array(np.arange(len(job.X))), pyarrow.array(job.query)]
    for at, column in enumerate(job.X.T):
        if at in job.words:
            cells.append(pyarrow.array(job.texts(at), pyarrow.string()))
        else:
            null = np.isnan(column) if at in job.kinds else job.is_null[:, at]
            cells.append(pyarrow.array(column, mask=null))
    return pyarrow.table(cells, names=columns(job))


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
