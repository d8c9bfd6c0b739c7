"""How a model was made: algorithm, parameters, data, versions, measures."""

from __future__ import annotations

import hashlib
import json
import math
import platform
from collections.abc import Mapping
from typing import Any

import numpy as np

from leanrank._version import __version__
from leanrank.data import RankingData
from leanrank.errors import ModelError
from leanrank.execution import row_blocks

FINGERPRINT = "sha256:"


def make_provenance(
    *,
    algorithm: str | None = None,
    parameters: Mapping[str, Any] | None = None,
    data: RankingData | None = None,
    measures: Mapping[str, Any] | None = None,
    training: Mapping[str, Any] | None = None,
    created: str | None = None,
) -> dict[str, Any]:
    """Return a description of how a model was made, in JSON values.

    It has no time stamp unless one is given, so that the same input gives the same file.

    Parameters
    ----------
    algorithm : str, optional
        The estimator's name.
    parameters : mapping, optional
        Its parameters; values that are not JSON become text.
    data : RankingData, optional
        The training data, of which sizes and a ``fingerprint`` are stored.
    measures : mapping, optional
        Values of measures, for instance ``{"vali": {"ndcg@10": 0.47}}``.
    training : mapping, optional
        The report of the solver: iterations, duality gap.
    created : str, optional
        A time, if files need not be reproducible.

    Examples
    --------
    >>> made = make_provenance(algorithm="RankRLS", parameters={"alpha": np.float64(2)})
    >>> made["algorithm"], made["parameters"], sorted(made["versions"])
    ('RankRLS', {'alpha': 2.0}, ['leanrank', 'numpy', 'python'])
    """
    python = platform.python_version()
    given = {
        "versions": {"leanrank": __version__, "numpy": np.__version__, "python": python},
        "algorithm": algorithm,
        "parameters": parameters,
        "measures": measures,
        "training": training,
        "created": created,
    }
    made = {name: to_json_values(value) for name, value in given.items() if value is not None}
    if data is not None:
        made["data"] = {
            "queries": data.n_queries,
            "documents": len(data),
            "features": data.n_features,
            "fingerprint": fingerprint(data),
        }
    return made


def fingerprint(data: RankingData) -> str:
    """Return a SHA-256 digest of the features, labels, queries and weights of a data set.

    It depends on storage (dense or sparse, float32 or float64), and not on names, document ids and
    query ids. The same data give the same text on every machine.

    Examples
    --------
    >>> fingerprint(RankingData([[1.0], [2.0]], [0, 1]))
    'sha256:...'
    """
    if data.is_sparse:
        arrays = {"X.data": data.X.data, "X.indices": data.X.indices, "X.indptr": data.X.indptr}
    else:
        arrays = {"X": data.X}
    arrays |= {"y": data.y, "query_ptr": data.query_ptr}
    more = {name: getattr(data, name) for name in ("sample_weight", "query_weight", "offset")}
    arrays |= {name: array for name, array in more.items() if array is not None}
    wide = {"X.indices": np.dtype(np.int64), "X.indptr": np.dtype(np.int64)}
    kinds = {name: wide.get(name, a.dtype).newbyteorder("<") for name, a in arrays.items()}
    header = {
        "shape": list(data.X.shape),
        "arrays": [[name, kinds[name].str, list(a.shape)] for name, a in arrays.items()],
    }
    digest = hashlib.sha256(json.dumps(header, sort_keys=True).encode())
    for name, array in arrays.items():
        flat = array.reshape(-1)
        for low, high in row_blocks(len(flat), 1 << 20):
            part = np.ascontiguousarray(flat[low:high], dtype=kinds[name])
            digest.update(part.view(np.uint8).data)
    return FINGERPRINT + digest.hexdigest()


def plain_json(value: Any, what: str) -> Any:
    """Return a copy of JSON data; raise a ModelError for anything else."""
    try:
        text = json.dumps(value, ensure_ascii=False, allow_nan=False)
        text.encode("utf-8")
        return json.loads(text)
    except (TypeError, ValueError, RecursionError) as error:  # a lone surrogate, NaN, an object
        raise ModelError(f"{what} cannot be written as JSON: {error}") from error


def to_json_values(value: Any) -> Any:
    """Return a value as JSON data; other objects become descriptive text.

    >>> to_json_values({"a": np.int64(3), "b": (1, None), "c": float("inf"), "d": abs})
    {'a': 3, 'b': [1, None], 'c': 'inf', 'd': 'builtins.abs'}
    """
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool):
        return value
    if isinstance(value, int):  # JSON numbers are doubles to most readers
        return value if abs(value) <= 2**53 else str(value)
    if isinstance(value, str):
        return value.encode("utf-8", "replace").decode("utf-8")
    if isinstance(value, float):
        return value if math.isfinite(value) else repr(value)
    if isinstance(value, Mapping):
        return {to_json_values(str(key)): to_json_values(item) for key, item in value.items()}
    if isinstance(value, np.ndarray) and value.size <= 1000:
        return to_json_values(value.tolist())
    if isinstance(value, (list, tuple)):
        return [to_json_values(item) for item in value]
    named = value if hasattr(value, "__qualname__") else type(value)
    text = f"{named.__module__}.{named.__qualname__}" if named is value else repr(value)
    if " at 0x" in text:  # an address would differ from run to run
        text = f"{type(value).__module__}.{type(value).__qualname__}"
    return to_json_values(text)
