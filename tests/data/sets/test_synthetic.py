import numpy as np
import pytest
import scipy.sparse as sp

from leanrank.data import make_ranking, stream_ranking
from leanrank.errors import InputError

SPARSE = {"density": 0.1, "n_features": 300, "docs_per_query": (40, 120)}
SHAPES = {
    "dense": {},
    "float32": {"dtype": np.float32, "correlation": 0.4},
    "holes": {"density": 0.5},
    "sparse": SPARSE,
    "sparse, correlated": {**SPARSE, "correlation": 0.4},
}  # all are drawn in several blocks


def same(a, b):
    assert a.X.dtype == b.X.dtype
    assert a.is_sparse == b.is_sparse
    X, Z = (d.X.toarray() if d.is_sparse else d.X for d in (a, b))
    np.testing.assert_array_equal(X, Z)
    np.testing.assert_array_equal(a.y, b.y)
    np.testing.assert_array_equal(a.qid, b.qid)


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_the_stream_put_together_is_the_whole(shape):
    settings = {"docs_per_query": (300, 900), "n_features": 40, **shape}
    whole = make_ranking(60, **settings)
    at = 0
    for chunk in stream_ranking(60, queries_per_chunk=23, **settings):
        same(chunk, whole.queries[at : at + chunk.n_queries])
        at += chunk.n_queries
    assert at == 60


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_prefixes_change_nothing(shape):
    settings = {"docs_per_query": (300, 900), "n_features": 40, **shape}
    whole = make_ranking(60, **settings)
    same(make_ranking(37, **settings), whole.queries[:37])


def test_an_endless_stream_goes_on():
    stream = stream_ranking(queries_per_chunk=3)
    assert [next(stream).query_ids.tolist() for _ in range(3)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8]]


def test_seeds_differ():
    assert not np.array_equal(make_ranking(random_state=1).X, make_ranking(random_state=2).X)
    assert not np.array_equal(make_ranking(random_state=None).X, make_ranking(random_state=None).X)


def test_the_truth_is_sparse_scaled_and_there():
    data, coef = make_ranking(300, n_informative=4, label_noise=0.0, return_coef=True)
    assert np.count_nonzero(coef) == 4
    scores = data.X @ coef
    assert scores.std() == pytest.approx(1, abs=0.03)
    for query in range(5):  # without noise, labels never contradict the scores within a query
        rows = slice(*data.query_ptr[query : query + 2])
        by_score = data.y[rows][np.argsort(scores[rows])]
        assert (np.diff(by_score) >= 0).all()


def test_noise_hides_the_truth():
    agreement = []
    for noise in (0.1, 1.0, 5.0):
        data, coef = make_ranking(200, label_noise=noise, return_coef=True)
        agreement.append(np.corrcoef(data.X @ coef, data.y)[0, 1])
    assert agreement[0] > agreement[1] + 0.1 > agreement[2] + 0.2


def test_default_levels_halve():
    data = make_ranking(500, n_levels=5)
    shares = np.bincount(data.y.astype(int)) / len(data)
    np.testing.assert_allclose(shares, np.array([16, 8, 4, 2, 1]) / 31, atol=0.02)


@pytest.mark.parametrize("density", [0.001, 0.05, 0.2, 0.6])
def test_density(density):
    data = make_ranking(20, 50, 1000, density=density)
    assert data.density == pytest.approx(density, rel=0.06)
    if density < 0.25:
        assert sp.issparse(data.X)
        assert data.X.indices.dtype == np.int32
        assert data.X.has_canonical_format


def test_correlation():
    X = make_ranking(400, n_features=4, correlation=0.6).X
    off = np.corrcoef(X.T)[np.triu_indices(4, 1)]
    np.testing.assert_allclose(off, 0.6, atol=0.03)


def test_extremes():
    assert make_ranking(1, 1, 1, n_informative=1).X.shape == (1, 1)
    assert make_ranking(3, density=0.0).X.nnz == 0
    assert make_ranking(3, n_informative=0).n_queries == 3
    assert make_ranking(3, n_levels=1).levels.tolist() == [0]
    assert make_ranking(3, 10, density=0.01).X.shape == (30, 20)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"n_queries": 0}, "n_queries"),
        ({"n_queries": 2.5}, "n_queries"),
        ({"docs_per_query": (9, 3)}, "docs_per_query"),
        ({"docs_per_query": (1, 2, 3)}, "docs_per_query"),
        ({"n_informative": 21}, "n_informative=21 must be a whole number, from 0 to 20"),
        ({"density": 1.5}, "density=1.5 must be a finite number, at least 0 and at most 1"),
        ({"density": float("nan")}, "density"),
        ({"correlation": -0.1}, "correlation"),
        ({"label_noise": float("inf")}, "label_noise"),
        ({"n_levels": 0}, "n_levels"),
        ({"dtype": np.int32}, "float32 or float64"),
        ({"random_state": -1}, "random_state"),
    ],
)
def test_bad_parameters_are_named(settings, words):
    with pytest.raises(InputError, match=words):
        make_ranking(**settings)
    with pytest.raises(InputError, match=words):
        stream_ranking(**settings)  # at once, not at the first chunk
