"""Exact fits that go on after an interruption: a state file is replaced before every iteration."""

from __future__ import annotations

import hashlib
import json
import math
import os
from typing import Any

import numpy as np

from leanrank._files import HeldFile
from leanrank._typing import AnyArray
from leanrank._version import __version__
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError
from leanrank.model.provenance import to_json_values
from leanrank.rankers.base import WITHOUT_EFFECT
from leanrank.rankers.newton.linear_ranker import LinearRanker
from leanrank.rankers.sampling.checkpoint import (
    ANOTHER,
    Arrays,
    read_state,
    recovery,
    state_bytes,
    unpack,
)
from leanrank.solvers import get_solver
from leanrank.solvers.newton.solver import Newton, Progress

_MAGIC, _SCHEMA = b"leanrank-fit", 1
_NUMBERS = ("bound", "strength", "best")
_ENTRY = {"iteration", "objective", "gap", "support", "working_set"}


def fit_resumable(ranker: Any, data: RankingData, checkpoint: str | os.PathLike[str]) -> Any:
    """Fit a ranker that Newton's method solves, and keep where it is in a file.

    Parameters
    ----------
    ranker : LinearRanker or a named system with ``solver="newton"``
    data : RankingData
    checkpoint : str or path
        Replaced before every iteration, atomically. If it exists, the run goes on from there; a
        file of another ranker, other parameters or other data is rejected.

    Returns
    -------
    ranker
        The model has the same bits whether or not the run was interrupted. A fit without a
        checkpoint may differ in the last digits: it starts its iterations from running sums.

    Examples
    --------
    >>> import tempfile
    >>> from leanrank import DominationRanker, make_ranking
    >>> data = make_ranking(40, random_state=0)
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     fit_resumable(DominationRanker(alpha=0.05), data, f"{folder}/run").dual_gap_ <= 1e-6
    True
    """
    _check_ranker(ranker)
    made_by = {"version": __version__, **_recipe(ranker), "data": _identity(data)}
    with HeldFile(checkpoint) as file:
        begun = _load(file, made_by, data.n_features if ranker.curves is None else None)

        def keep(progress: Progress) -> None:
            fields = {name: getattr(progress, name) for name in Progress.__dataclass_fields__}
            fields |= {name: float(fields[name]).hex() for name in _NUMBERS}
            content = state_bytes({"made_by": made_by, "progress": fields}, _MAGIC, _SCHEMA)
            file.replace(content)

        ranker.resuming = {"keep": keep, "start": begun}
        try:
            return ranker.fit(data)
        finally:
            del ranker.resuming


def _check_ranker(ranker: Any) -> None:
    solver = ranker.make_solver() if isinstance(ranker, LinearRanker) else None
    own = getattr(ranker, "solver", None)
    if solver is not get_solver("newton") and not isinstance(own, Newton):
        raise InputError(
            f"{type(ranker).__name__} is not solved by Newton's method, whose runs a checkpoint "
            "keeps: leave the checkpoint out, or choose a ranker with solver='newton'"
        )


def _recipe(ranker: Any) -> dict[str, Any]:
    ignored = {*WITHOUT_EFFECT, "warm_start"}
    parameters = {k: v for k, v in ranker.get_params().items() if k not in ignored}
    texts = {k: v if _is_plain(v) else repr(v) for k, v in parameters.items()}
    return {"algorithm": type(ranker).__name__, "parameters": to_json_values(texts)}


def _is_plain(value: Any) -> bool:
    try:
        json.dumps(to_json_values({"value": value}))
    except (TypeError, ValueError):
        return False
    return True


def _identity(data: RankingData) -> dict[str, Any]:
    """Identify data by their sizes, all labels and queries, and some features."""
    digest = hashlib.sha256()
    features = [data.X.data, data.X.indices] if data.is_sparse else [data.X]
    arrays: list[AnyArray | None] = [each[:: max(1, len(each) // 1024)] for each in features]
    arrays += [data.y, data.query_ptr, data.sample_weight, data.query_weight, data.offset]
    for array in arrays:
        digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
    sizes = {"documents": len(data), "queries": data.n_queries, "features": data.n_features}
    return {**sizes, "digest": digest.hexdigest()}


def _load(file: HeldFile, made_by: dict[str, Any], width: int | None) -> Progress | None:
    content = file.read()
    if not content and not os.path.exists(file.previous):
        return None

    def read(header: Any, arrays: Arrays) -> tuple[Any, Progress]:
        if not isinstance(header, dict) or set(header) != {"made_by", "progress"}:
            raise ValueError("the header has not the entries that it should have")
        return header["made_by"], _checked(unpack(header["progress"], arrays), width)

    try:
        begun_by, progress = read_state(content, read, _MAGIC, _SCHEMA)
    except ValueError as error:
        if str(error):
            raise InputError(f"{file.path}: {error}{recovery(file)}") from None
        raise InputError(
            f"{file.path}: this is no checkpoint of an exact fit: give another file"
        ) from None
    now = json.loads(json.dumps(made_by))
    for part in ("version", "algorithm", "parameters", "data"):
        if not isinstance(begun_by, dict) or begun_by.get(part) != now[part]:
            raise InputError(
                f"{file.path}: this checkpoint is of {_difference(begun_by, now, part)}: {ANOTHER}"
            )
    if progress.n_iter > now["parameters"]["max_iter"]:
        raise InputError(
            f"{file.path}: this checkpoint is damaged (it is beyond the last iteration): {ANOTHER}"
        )
    return progress


def _difference(then: Any, now: dict[str, Any], part: str) -> str:
    before = then.get(part) if isinstance(then, dict) else None
    if part == "data":
        return "other data"
    if part == "version":
        return f"leanrank {before}, and this is {now[part]}"
    if part == "algorithm" or not isinstance(before, dict):
        return f"{before}, not of {now[part]}"
    after = now[part]
    for name in sorted({*before, *after}):
        if before.get(name) != after.get(name):
            return f"{name}={before.get(name)!r}, not {name}={after.get(name)!r}"
    return "other parameters"


def _checked(fields: Any, width: int | None) -> Progress:
    """Check what a file holds before it is used: indices reach kernels that look at no bounds."""
    if not isinstance(fields, dict) or set(fields) != set(Progress.__dataclass_fields__):
        raise ValueError("the progress has not the entries that it should have")
    w, scale = (_vector(fields[name], np.float64) for name in ("w", "free_scale"))
    features = _vector(fields["features"], np.int64)
    if len(w) != len(scale) or (width or len(w)) != len(w):
        raise ValueError("its arrays are of another shape")
    if not (np.isfinite(w).all() and np.isfinite(scale).all() and (scale > 0).all()):
        raise ValueError("its weights are not finite")
    if np.any((features < 0) | (features >= len(w))):
        raise ValueError("its working set has features that are not there")
    if np.any(features[1:] <= features[:-1]):
        raise ValueError("its working set is not in order")
    n_iter, improved, history = (fields[name] for name in ("n_iter", "improved", "history"))
    if type(n_iter) is not int or type(improved) is not int or not 1 <= improved <= n_iter:
        raise ValueError("it is at no iteration")
    numbers = {name: _number(fields[name]) for name in _NUMBERS}
    if not numbers["strength"] >= 1.0 or not -math.inf < numbers["best"]:
        raise ValueError("a number is not in its range")
    if not numbers["bound"] <= numbers["best"] + 1e-6 * abs(numbers["best"]):
        raise ValueError("its bound is above its objective")
    if not isinstance(history, list) or len(history) != n_iter - 1:
        raise ValueError("its history is of another length")
    if not all(isinstance(entry, dict) and set(entry) == _ENTRY for entry in history):
        raise ValueError("its history is none")
    if not all(type(v) in (int, float) for entry in history for v in entry.values()):
        raise ValueError("its history is none")
    return Progress(**{**fields, **numbers})


def _vector(value: Any, dtype: Any) -> AnyArray:
    if not isinstance(value, np.ndarray) or value.dtype != dtype or value.ndim != 1:
        raise ValueError("its arrays are of another shape")
    return value


def _number(value: Any) -> float:
    try:
        return float.fromhex(value)
    except (TypeError, OverflowError):
        raise ValueError("a number is none") from None
