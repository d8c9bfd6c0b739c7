"""The hashing trick: sums by bucket, even spread, and weights that come back to the features."""

import numpy as np
import pytest

from leanrank.data import make_ranking
from leanrank.data.matrices import buckets, hash_features, unhash_weights
from leanrank.errors import InputError


@pytest.mark.parametrize("density", [1.0, 0.1])
@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_features_of_a_bucket_are_added(density, dtype):
    data = make_ranking(5, 10, 60, density=density, dtype=dtype, random_state=0)
    hashed = hash_features(data, 4)  # 60 features in 16 buckets: many meet
    X = data.X.toarray() if data.is_sparse else data.X
    expected = np.zeros((len(data), 16))
    for j in range(60):
        bucket, sign = buckets(np.array([j]), 4)
        expected[:, bucket[0]] += sign[0] * X[:, j]
    np.testing.assert_allclose(hashed.X.toarray(), expected, rtol=1e-5, atol=1e-6)
    assert hashed.X.dtype == dtype
    assert hashed.query_ptr.tolist() == data.query_ptr.tolist()


def test_weights_of_buckets_are_weights_of_features():
    data = make_ranking(5, 10, 300, density=0.1, random_state=0)
    weights = np.random.default_rng(0).normal(size=64)
    np.testing.assert_allclose(
        data.X @ unhash_weights(weights, 300), hash_features(data, 6).X @ weights, atol=1e-12
    )


def test_buckets_and_signs_are_spread_evenly():
    bucket, sign = buckets(np.arange(64_000), 6)
    counts = np.bincount(bucket, minlength=64)
    assert ((counts - 1000) ** 2 / 1000).sum() < 120  # chi-square with 63 degrees of freedom
    assert abs(sign.mean()) < 0.02
    assert abs(np.mean(sign * np.where(bucket % 2, 1, -1))) < 0.02


def test_the_same_buckets_on_every_machine():
    bucket, sign = buckets(np.array([0, 1, 2, 2**31 - 2]), 18)
    assert bucket.tolist() == GOLDEN_BUCKETS
    assert sign.tolist() == GOLDEN_SIGNS


GOLDEN_BUCKETS = [118191, 154817, 218830, 194270]
GOLDEN_SIGNS = [-1.0, -1.0, -1.0, 1.0]


@pytest.mark.parametrize("bits", [0, 31, True])
def test_a_wrong_number_of_bits(bits):
    with pytest.raises(InputError, match="bits are not between 1 and 30"):
        buckets(np.arange(3), bits)
