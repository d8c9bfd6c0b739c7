"""Files of every schema version must load for ever, and mean the same."""

from pathlib import Path

import numpy as np

from leanrank import load_model
from leanrank.model import Line, Ramps, Steps

GOLDEN = Path(__file__).parent / "golden"
NAN = float("nan")


def test_named_linear_model_of_version_1():
    model = load_model(GOLDEN / "linear-v1.json")
    assert model.n_features == 5
    assert model.feature_names[3] == 'πage rank "x"'
    assert model.coef.tolist() == [0.30000000000000004, 0.0, 2.0, 5e-324, -1.2345678901234567e300]
    assert model.normalizer is None
    assert model.provenance["parameters"] == {
        "alpha": 2.0,
        "normalize": "none",
        "random_state": None,
    }
    assert model.provenance["created"] == "2024-02-29T12:00:00Z"
    X = np.array([[1.0, 9.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.5, 0.0, 0.0], [2.0, 9.0, 1.0, 0.0, 0.0]])
    assert model.predict(X).tolist() == [0.30000000000000004, 1.0, 2.6]
    assert model.rank(X).tolist() == [3, 2, 1]


def test_minimal_linear_model_of_version_1():
    model = load_model(GOLDEN / "linear-v1-by-index.json")
    assert model.n_features == 46
    assert model.weights == {"f46": 0.1, "f4": -4.5e-05}
    X = np.zeros((1, 46))
    X[0, 45] = 3.0
    assert model.predict(X).tolist() == [0.30000000000000004]


def test_what_was_linear_of_version_1_is_written_as_lines(tmp_path):
    model = load_model(GOLDEN / "linear-v1.json")
    model.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (GOLDEN / "linear-v2.json").read_bytes()
    assert load_model(GOLDEN / "linear-v2.json") == model


def test_boosted_model_of_version_1():
    model = load_model(GOLDEN / "boosted-v1.json")
    assert dict(model.curves) == {
        0: Steps((0.30000000000000004, 2.5), (0.0, 0.5, 0.75), 0.25),
        2: Steps((), (-0.125,), 0.0),
    }
    assert model.provenance["training"] == {"n_iter": 4}
    X = [[0.3, 9, NAN], [1.0, 9, 0.0], [3.0, NAN, -5.0], [NAN, 9, NAN]]
    assert model.predict(X).tolist() == [0.0, 0.375, 0.625, 0.25]
    assert model.rank(X).tolist() == [4, 2, 1, 3]


def test_curves_of_version_2(tmp_path):
    model = load_model(GOLDEN / "curves-v2.json")
    assert dict(model.curves) == {
        0: Ramps((0.0, 0.30000000000000004, 2.5), (1.0, -0.25), 0.5),
        1: Line(-0.125, 2.0),
        2: Steps((3.0,), (0.0, 1.0), -1.0),
    }
    assert model.predict([[0.15000000000000002, 0, 3], [9, 8, 4], [NAN] * 3]).tolist() == [
        0.5,
        0.75,
        1.5,
    ]
    model.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (GOLDEN / "curves-v2.json").read_bytes()


def test_global_normaliser_of_version_1():
    model = load_model(GOLDEN / "linear-v1-standard.json")
    assert model.predict([[3.0, 1.0, 9.0], [1.0, 0.5, 9.0]]).tolist() == [-1.5, 0.0]


def test_query_normaliser_of_version_1():
    model = load_model(GOLDEN / "linear-v1-query-minmax.json")
    X = [[0.0, 4.0], [10.0, 1.0], [4.0, 2.0], [5.0, 1.0]]
    assert model.predict(X, ["a", "b", "a", "b"]).tolist() == [-1.0, 0.5, 0.5, 0.0]
