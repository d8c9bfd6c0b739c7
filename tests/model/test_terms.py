"""Look-up tables of categories and surfaces of two features."""

import pickle
from typing import ClassVar

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.data import RankingData
from leanrank.errors import InputError, ModelError
from leanrank.model import Levels, Line, Model, Ramps, Surface, load_model
from leanrank.model.export import TARGETS, export_model
from leanrank.model.export.formula import in_units_of_data

NAN = float("nan")
GRID = ((0.0, 1.0, -1.0), (2.0, 0.5, 0.25))
PAIR = Surface((-1.0, 1.0), (0.0, 2.0, 3.0), GRID, (0.5, -0.5, 0.125))
LANG = Levels(("de", "en"), (0.5, -0.25), 0.0625)


def bilinear(surface, x, y):
    """The surface by its definition."""
    if np.isnan(x) or np.isnan(y):
        return surface.missing[2 if np.isnan(x) and np.isnan(y) else 0 if np.isnan(x) else 1]
    total = 0.0
    for i, a in enumerate(hats(surface.first, x)):
        for j, b in enumerate(hats(surface.second, y)):
            total += a * b * surface.values[i][j]
    return total


def hats(knots, x):
    """The share of each knot in a piecewise linear function at x."""
    x = min(max(x, knots[0]), knots[-1])
    return [float(np.interp(x, knots, np.eye(len(knots))[at])) for at in range(len(knots))]


def test_a_surface_is_bilinear_between_its_knots_and_constant_outside():
    rng = np.random.default_rng(0)
    for _ in range(20):
        first, second = (np.sort(rng.normal(size=rng.integers(2, 6))) for _ in range(2))
        values = rng.normal(size=(len(first), len(second)))
        surface = Surface(first, second, values, rng.normal(size=3))
        x, y = rng.choice([*first, *second, *rng.normal(size=9), 50.0, -50.0, NAN], (2, 200))
        slow = [bilinear(surface, a, b) for a, b in zip(x, y, strict=True)]
        np.testing.assert_allclose(surface(x, y), slow, atol=1e-12)


@pytest.mark.parametrize("storage", ["dense", "float32", "sparse", "frame"])
def test_all_terms_add_up(storage):
    rng = np.random.default_rng(1)
    X = rng.choice([0.0, 1.0, 2.0, 0.5, -1.5], (300, 5))
    X[:, 2] = rng.integers(0, 2, 300)
    ramps = Ramps((0.0, 2.0), (1.0,), 0.3)
    pairs = {(0, 3): PAIR, (1, 4): PAIR}
    model = Model(5, {0: Line(2.0), 1: ramps, 2: LANG}, surfaces=pairs)
    assert model.indices.tolist() == [0, 1, 2, 3, 4]
    assert not model.is_linear
    parts = [2 * X[:, 0], ramps(X[:, 1]), np.array(LANG.values)[X[:, 2].astype(int)]]
    parts += [PAIR(X[:, 0], X[:, 3]), PAIR(X[:, 1], X[:, 4])]
    given = X.astype(np.float32) if storage == "float32" else X
    if storage == "sparse":
        given = csr_array(X)
    if storage == "frame":
        frame = pytest.importorskip("pandas").DataFrame(X)
        given = frame.assign(**{"2": np.array(LANG.levels)[X[:, 2].astype(int)]})
        given = given.drop(columns=2)[[0, 1, "2", 3, 4]]
    np.testing.assert_allclose(model.predict(given), np.sum(parts, axis=0), atol=1e-12)
    explained = model.explain(given)
    assert explained.features == ("f1", "f2", "f3", "f1 × f4", "f2 × f5")
    np.testing.assert_allclose(explained.contributions, np.transpose(parts), atol=1e-12)
    why = explained.why(0, 1)
    assert sum(why.differences.values()) == pytest.approx(why.scores[0] - why.scores[1])


def test_files_copies_and_equality(tmp_path):
    model = Model(3, {1: LANG}, ("a", "lang", "b"), surfaces={(0, 2): PAIR})
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    assert again == model == pickle.loads(pickle.dumps(model))
    assert again != model.replace(surfaces={})
    assert again.weights == {"a × b": 3.0, "lang": 0.75}


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
def test_columns_of_frames_are_read_by_their_levels(kind):
    pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    texts = ["en", None, "de", "fr"]
    series = {
        "pandas": [
            pandas.Series(texts),
            pandas.Series(texts, dtype="category"),
            pandas.Series(texts, dtype="string"),
        ],
        "polars": [polars.Series(texts), polars.Series(texts, dtype=polars.Categorical)],
        "arrow": [pyarrow.array(texts), pyarrow.array(texts).dictionary_encode()],
    }[kind]
    make = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "arrow": pyarrow.table}[kind]
    model = Model(2, {1: LANG, 0: Line(1.0)}, ("x", "lang"))
    for column in series:
        frame = make({"other": texts, "lang": column, "x": [1.0, 2.0, 3.0, 4.0]})
        assert model.predict(frame).tolist() == [0.75, 2.0625, 3.5, 4.0625]


def test_levels_that_are_numbers_are_matched_by_value():
    table = Levels((3, -1, 0), (1.0, 2.0, 4.0), 8.0)
    assert table(np.array([0.0, -0.0, 3.0, -1.0, 2.0, NAN, np.inf])).tolist() == [
        4.0, 4.0, 1.0, 2.0, 8.0, 8.0, 8.0,
    ]  # fmt: skip
    frame = pytest.importorskip("pandas").DataFrame({"shop": [3, 0, 7]})
    assert Model(1, {0: table}, ("shop",)).predict(frame).tolist() == [1.0, 4.0, 8.0]


def test_whole_numbers_and_booleans_of_a_frame_are_texts_if_the_levels_are():
    table = Levels(("1", "True", "2.5"), (1.0, 2.0, 4.0))
    cells = [1, 1.0, True, 2.5, NAN, None, "1.0"]
    assert table(table.encoded(cells)).tolist() == [1.0, 1.0, 2.0, 4.0, 0.0, 0.0, 0.0]


def test_data_that_know_their_levels_are_translated():
    class Coded(RankingData):
        categories: ClassVar = {0: ("en", "fr", "de")}

    data = Coded([[0.0, 1.0], [1.0, 1.0], [2.0, 1.0], [NAN, 1.0]])
    model = Model(2, {0: LANG, 1: Line(1.0)})
    assert model.predict(data).tolist() == [0.75, 1.0625, 1.5, 1.0625]


def test_a_scaler_leaves_categories_alone_and_moves_surfaces():
    scaler = {"kind": "standard", "mean": [9.0, 1.0, 2.0], "scale": [9.0, 2.0, 0.5]}
    model = Model(3, {0: LANG}, normalizer=scaler, surfaces={(1, 2): PAIR})
    X = np.array([[1.0, 2.0, 3.0], [0.0, -7.0, 2.25], [NAN, NAN, 2.5]])
    expected = LANG(X[:, 0]) + PAIR((X[:, 1] - 1) / 2, (X[:, 2] - 2) / 0.5)
    np.testing.assert_allclose(model.predict(X), expected)
    plain = in_units_of_data(model)
    assert plain.normalizer is None
    np.testing.assert_allclose(plain.predict(X), expected)


def test_a_document_without_a_finite_score_is_named():
    model = Model(2, {}, ("a", "b"), surfaces={(0, 1): PAIR})
    with pytest.raises(InputError, match=r"feature 'b' is inf in row 1"):
        model.predict([[1.0, 1.0], [1.0, np.inf]])


@pytest.mark.parametrize("target", [t.name for t in TARGETS.values() if not t.levels])
def test_targets_that_cannot_look_up_levels_name_some_that_can(target):
    with pytest.raises(InputError, match=rf"^{target} cannot look up .*(sql:duckdb|polars|onnx)"):
        export_model(Model(1, {0: LANG}), target)


@pytest.mark.parametrize("target", [t.name for t in TARGETS.values() if not t.curves])
def test_targets_that_cannot_express_surfaces_name_some_that_can(target):
    with pytest.raises(InputError, match=rf"^{target} cannot .*(sql:duckdb|polars|onnx)"):
        export_model(Model(2, {}, surfaces={(0, 1): PAIR}), target)


def test_a_surface_of_the_score_of_a_query_in_a_script():
    pair = Model(2, {}, ("_score", "age"), surfaces={(0, 1): PAIR})
    for target in ("painless", "lucene-expression"):
        text = export_model(pair, target)
        assert "doc['_score']" not in text
        assert "_score" in text
        age = "x1" if target == "painless" else "doc['age'].value"
        assert f"({age} - 0.0) * 0.5" in text


def test_a_card_lists_categories_and_surfaces():
    odd = Levels(("a|b", "<i>"), (1.0, 2.0))
    card = export_model(Model(3, {0: odd}, ("x", "y", "z"), surfaces={(1, 2): PAIR}), "markdown")
    assert "| `x` | `1.0 for 'a\\|b', 2.0 for '<i>'; 0.0 otherwise` |" in card
    assert "| `y × z` | 0.0 at (-1.0, 0.0), 1.0 at (-1.0, 2.0)" in card


def test_levels_that_cannot_be_written_are_refused():
    with pytest.raises(InputError, match="level"):
        export_model(Model(1, {0: Levels(("a\nb",), (1.0,))}), "sql:duckdb")


def test_a_model_of_some_columns_keeps_its_terms_among_all():
    from leanrank.selection.trials import placed

    model = placed(Model(3, {0: LANG}, surfaces={(1, 2): PAIR}), np.array([1, 2, 4]), 5)
    model = model.replace(feature_names=tuple("abcde"))
    assert model.terms == {(1,): LANG, (2, 4): PAIR}
    assert model.weights == {"c × e": 3.0, "b": 0.75}


@pytest.mark.parametrize(
    "make",
    [
        lambda: Levels(("a", "a"), (1.0, 2.0)),
        lambda: Levels(("a", 1.0), (1.0, 2.0)),
        lambda: Levels(("a",), (1.0, 2.0)),
        lambda: Levels(("a",), (NAN,)),
        lambda: Levels((NAN,), (1.0,)),
        lambda: Surface((0.0,), (0.0, 1.0), ((1.0, 1.0),)),
        lambda: Surface((0.0, 1.0), (1.0, 0.0), ((1.0, 1.0), (1.0, 1.0))),
        lambda: Surface((0.0, 1e-320), (0.0, 1.0), ((1.0, 1.0), (1.0, 1.0))),
        lambda: Surface((0.0, 1.0), (0.0, 1.0), ((1.0, 1.0),)),
        lambda: Surface((0.0, 1.0), (0.0, 1.0), ((1.0, 1.0), (1.0, np.inf))),
        lambda: Model(1, {0: Levels(("a",), (0.0,))}),
        lambda: Model(2, {}, surfaces={(1, 0): PAIR}),
        lambda: Model(2, {}, surfaces={(0, 0): PAIR}),
        lambda: Model(1, {}, surfaces={(0, 1): PAIR}),
        lambda: Model(2, {0: LANG}, surfaces={(0, 1): PAIR}),
    ],
)
def test_terms_that_cannot_be_used(make):
    with pytest.raises(ModelError):
        make()
