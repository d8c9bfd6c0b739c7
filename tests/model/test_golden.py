"""Files of every schema version must load for ever, and mean the same."""

from pathlib import Path

import numpy as np
import pytest

from leanrank import load_model
from leanrank.model import Levels, Line, Ramps, Steps, Surface

GOLDEN = Path(__file__).parent / "golden"
NAN = float("nan")


@pytest.mark.parametrize("path", sorted(GOLDEN.glob("*-v1.json")), ids=lambda path: path.stem)
def test_a_file_is_written_as_it_was_read(path, tmp_path):
    load_model(path).save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == path.read_bytes()


def test_named_linear_model():
    model = load_model(GOLDEN / "linear-v1.json")
    assert model.n_features == 5
    assert model.feature_names[3] == 'πage rank "x"'
    assert model.coef.tolist() == [0.30000000000000004, 0.0, 2.0, 5e-324, -1.2345678901234567e300]
    assert model.normalizer is None
    parameters = {"alpha": 2.0, "normalize": "none", "random_state": None}
    assert model.provenance["parameters"] == parameters
    assert model.provenance["created"] == "2024-02-29T12:00:00Z"
    X = np.array([[1.0, 9.0, 0.0, 0.0, 0.0], [0.0, 9.0, 0.5, 0.0, 0.0], [2.0, 9.0, 1.0, 0.0, 0.0]])
    assert model.predict(X).tolist() == [0.30000000000000004, 1.0, 2.6]
    assert model.rank(X).tolist() == [3, 2, 1]


def test_curves():
    model = load_model(GOLDEN / "curves-v1.json")
    assert dict(model.curves) == {
        0: Ramps((0.0, 0.30000000000000004, 2.5), (1.0, -0.25), 0.5),
        1: Line(-0.125, 2.0),
        2: Steps((3.0,), (0.0, 1.0), -1.0),
    }
    X = [[0.15000000000000002, 0, 3], [9, 8, 4], [NAN] * 3]
    assert model.predict(X).tolist() == [0.5, 0.75, 1.5]


def test_categories_and_surfaces():
    model = load_model(GOLDEN / "terms-v1.json")
    assert dict(model.curves) == {
        0: Levels(("de", 'it\'s "größe"', ""), (0.5, -0.25, 2.0), 0.125),
        1: Levels((3.0, -1.5), (1.0, 0.30000000000000004)),
    }
    grid = ((0.0, 0.0, 1.0), (0.0, 4.0, 0.0))
    assert dict(model.surfaces) == {
        (2, 3): Surface((0.0, 1.0), (0.0, 2.0, 4.0), grid, (0.5, -0.5, 0.25))
    }
    rows = [["de", 3, 2.0, 1.0], ["", -1.5, 9.0, 9.0], [None, NAN, NAN, 1.0], ["x", 1, NAN, NAN]]
    scores = model.predict(np.array(rows, dtype=object))
    assert scores.tolist() == [0.5 + 1.0 + 1.0, 2.0 + 0.30000000000000004, 0.625, 0.375]
