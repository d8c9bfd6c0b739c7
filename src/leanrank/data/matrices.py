"""Dense and sparse matrices alike, and the hashing trick for any number of features.

Feature j goes to one of 2^bits buckets with a sign, both from a hash of j; what meets in a bucket
is added. Scores stay linear, so weights of buckets are weights of features again: the weight of
feature j is its sign times the weight of its bucket (``unhash_weights``).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from leanrank._typing import AnyArray, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError

DENSE_FROM = 0.25
"""Share of non-zeros from which a matrix is dense, unless the caller chooses.

There, CSR takes 0.37 times the memory, and scores of 60,000 × 136 values 2.5 times as long.
"""

MOST_FEATURES = 2**31 - 1
"""So many features have numbers that fit 32 bits."""


def stacked(given: Sequence[Any]) -> Matrix:
    """Return matrices one below the other: dense if all are, and otherwise in CSR form.

    >>> stacked([[[1.0, 1.0]], [[0.0, 2.0]]]).tolist()
    [[1.0, 1.0], [0.0, 2.0]]
    """
    parts = [part if hasattr(part, "tocsr") else np.asarray(part) for part in given]
    if len(parts) == 1:
        return parts[0]
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    from scipy.sparse import vstack

    return vstack(parts, format="csr")


def has_gaps(X: Matrix) -> bool:
    """Return whether a value is missing (NaN).

    >>> has_gaps(np.array([[1.0, np.nan]])), has_gaps(np.array([[1.0, -np.inf]]))
    (True, False)
    """
    values = X if isinstance(X, np.ndarray) else X.data
    return bool(values.size) and bool(np.isnan(values.min()))  # without an array of answers


def csr(
    values: AnyArray, indices: AnyArray, ptr: IntArray, n_features: int, *, sound: bool = True
) -> Matrix:
    """Return a CSR array over these arrays, with 32-bit indices if they fit.

    ``sound`` rows are known to have ascending indices.
    """
    from scipy.sparse import csr_array

    index = np.int32 if len(values) < 2**31 else np.int64
    parts = values, indices.astype(index, copy=False), ptr.astype(index, copy=False)
    matrix = csr_array(parts, shape=(len(ptr) - 1, n_features), copy=False)
    if sound:
        matrix.has_canonical_format = True
    return matrix


MOST_BITS = 30


def hash_features(data: RankingData, bits: int) -> RankingData:
    """Return the same documents with 2^bits features, sparse.

    Examples
    --------
    >>> data = RankingData([[1.0, 0.0, 2.0]], [0])
    >>> hashed = hash_features(data, 4)
    >>> hashed.n_features, hashed.X.nnz
    (16, 2)
    """
    from scipy.sparse import csr_array

    X = csr_array(data.X)
    bucket, sign = buckets(np.asarray(X.indices), bits)
    hashed = csr_array(
        (X.data * sign.astype(X.dtype), bucket.astype(np.int32), X.indptr.copy()),
        shape=(X.shape[0], 1 << bits),
    )
    hashed.sum_duplicates()
    return data.with_fields(X=hashed, feature_names=None)


def unhash_weights(weights: FloatArray, n_features: int) -> FloatArray:
    """Return the weight of each of ``n_features`` features from the weights of the buckets.

    Examples
    --------
    >>> weights = np.arange(16.0)
    >>> data = RankingData([[1.0, 0.0, 2.0]], [0])
    >>> (data.X @ unhash_weights(weights, 3) == hash_features(data, 4).X @ weights).tolist()
    [True]
    """
    bucket, sign = buckets(np.arange(n_features), len(weights).bit_length() - 1)
    return weights[bucket] * sign


def buckets(features: AnyArray, bits: int) -> tuple[IntArray, FloatArray]:
    """Return bucket and sign of each feature."""
    if isinstance(bits, bool) or not 1 <= bits <= MOST_BITS:
        raise InputError(f"{bits} bits are not between 1 and {MOST_BITS}")
    # The finaliser of a 64-bit counter generator: every input bit reaches every output bit.
    x = features.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15)
    x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    x ^= x >> np.uint64(31)
    sign = np.where(x >> np.uint64(63), -1.0, 1.0)
    return (x & np.uint64((1 << bits) - 1)).astype(np.int64), sign
