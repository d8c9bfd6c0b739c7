import pickle

import numpy as np
import pytest
from scipy.sparse import csr_array, random_array

from leanrank.data import RankingData
from leanrank.errors import InputError, ModelError
from leanrank.model import Line, Model, load_model

NAMES = ["bm25", "length", "clicks", "spam"]
COEF = [0.5, 0.0, 1.25, -2.0]


@pytest.fixture
def model():
    return Model.from_coef(COEF, feature_names=NAMES)


@pytest.fixture
def X():
    return np.random.default_rng(0).normal(size=(40, 4))


def test_zeros_are_left_out(model):
    assert model.indices.tolist() == [0, 2, 3]
    assert model.n_nonzero == 3
    assert model.sparsity == 0.75
    assert model.coef.tolist() == COEF
    assert model.weights == {"spam": -2.0, "clicks": 1.25, "bm25": 0.5}
    assert list(model.weights) == ["spam", "clicks", "bm25"]


def test_is_immutable(model):
    with pytest.raises(AttributeError):
        model.n_features = 3
    with pytest.raises(ValueError, match="read-only"):
        model.values[0] = 1.0


def test_numpy_sizes_can_be_written(tmp_path):
    Model(np.int64(3), {np.int32(1): Line(np.float64(1.0))}).save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").coef.tolist() == [0.0, 1.0, 0.0]


def test_construction_copies_what_the_caller_may_change():
    values = np.array([1.0, 0.0])
    model = Model.from_coef(values)
    values[0] = 7.0
    assert model.coef.tolist() == [1.0, 0.0]


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("sparse", [False, True])
def test_predict_is_the_dot_product(model, X, dtype, sparse):
    given = X.astype(dtype)
    expected = [sum(float(x) * w for x, w in zip(row, COEF, strict=True)) for row in given]
    scores = model.predict(csr_array(given) if sparse else given)
    assert scores.dtype == np.float64
    np.testing.assert_allclose(scores, expected, rtol=1e-14, atol=1e-15)


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n_features", [1, 3, 8, 46, 137])
def test_a_score_does_not_depend_on_the_rows_beside_it(sparse, n_features):
    rng = np.random.default_rng(n_features)
    model = Model.from_coef(rng.normal(size=n_features))
    X = rng.normal(size=(17_000, n_features)).astype(np.float32)
    X[5] = X[16_999] = X[8_000]
    X = csr_array(X) if sparse else X
    scores = model.predict(X)
    assert scores[5] == scores[8_000] == scores[16_999]
    for row in (0, 1, 2, 3, 16_383, 16_384, 16_999):
        assert model.predict(X[[row]])[0] == scores[row]
    assert model.predict(X[7:90]).tolist() == scores[7:90].tolist()


def test_ranking_data_is_scored_in_its_own_order(model, X):
    data = RankingData(X, np.zeros(40), qid=np.arange(40) % 3)
    assert data.restore(model.predict(data)).tolist() == model.predict(X).tolist()
    assert data.restore(model.rank(data)).tolist() == model.rank(X, np.arange(40) % 3).tolist()


def test_columns_are_found_by_name(model, X):
    shuffled = [2, 0, 3, 1]
    data = RankingData(X[:, shuffled], feature_names=[NAMES[at] for at in shuffled])
    assert model.predict(data).tolist() == model.predict(X).tolist()
    sparse = RankingData(csr_array(X[:, shuffled]), feature_names=[NAMES[at] for at in shuffled])
    np.testing.assert_allclose(model.predict(sparse), model.predict(X), rtol=1e-14)


def test_only_features_with_a_weight_are_needed(model, X):
    data = RankingData(X[:, [3, 2, 0]], feature_names=["spam", "clicks", "bm25"])
    assert model.predict(data).tolist() == model.predict(X).tolist()
    extra = RankingData(np.c_[X, X[:, :1]], feature_names=[*NAMES, "new"])
    assert model.predict(extra).tolist() == model.predict(X).tolist()


@pytest.mark.parametrize("library", ["pandas", "polars", "pyarrow"])
def test_frames(model, X, library):
    frames = pytest.importorskip(library)
    columns = {"label": ["x"] * 40} | {name: X[:, NAMES.index(name)] for name in reversed(NAMES)}
    frame = frames.table(columns) if library == "pyarrow" else frames.DataFrame(columns)
    assert model.predict(frame).tolist() == model.predict(X).tolist()
    by_index = Model.from_coef(COEF[::-1])
    plain = {name: values for name, values in columns.items() if name != "label"}
    frame = frames.table(plain) if library == "pyarrow" else frames.DataFrame(plain)
    np.testing.assert_allclose(by_index.predict(frame), model.predict(X), rtol=1e-13, atol=1e-14)


def test_a_frame_column_that_is_text_is_refused(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({name: ["a", "b"] for name in NAMES})
    with pytest.raises(ModelError, match="the column 'bm25' holds something that is not a number"):
        model.predict(frame)


def test_frames_that_cannot_be_scored(model):
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame(np.zeros((2, 5)), columns=[*NAMES, "bm25"])
    with pytest.raises(ModelError, match="the column 'bm25' occurs twice"):
        model.predict(frame)
    polars = pytest.importorskip("polars")
    with pytest.raises(ModelError, match="LazyFrame holds no data yet: collect it first"):
        model.predict(polars.LazyFrame({name: [1.0] for name in NAMES}))


def test_missing_names_are_named(model, X):
    data = RankingData(X[:, :2], feature_names=NAMES[:2])
    with pytest.raises(
        ModelError, match="the data lack 2 features: 'clicks', 'spam', which the model needs"
    ):
        model.predict(data)


def test_wrong_width(model, X):
    with pytest.raises(ModelError, match="the model has 4 features but the data have 3"):
        model.predict(X[:, :3])


def test_what_cannot_be_scored_is_named(model, X):
    X[7, 3] = np.nan
    with pytest.raises(InputError, match="feature 'spam' is nan in row 7 "):
        model.predict(X)
    with pytest.raises(InputError, match="feature 'spam' is nan in row 7"):
        model.predict(csr_array(X))
    X[7] = [0, np.nan, 0, 0]
    assert model.predict(X)[7] == 0  # a feature without weight is not looked at
    X[7, 3] = 1.7e308
    with pytest.raises(InputError, match="the score of row 7 is too large for a number"):
        model.predict(X)


def test_qid_beside_ranking_data(model, X):
    with pytest.raises(InputError, match="leave qid out"):
        model.predict(RankingData(X), qid=np.zeros(40))


def test_rank_breaks_ties_by_row_order():
    model = Model.from_coef([1.0])
    X = [[1.0], [3.0], [1.0], [3.0], [2.0]]
    assert model.rank(X).tolist() == [4, 1, 5, 2, 3]
    assert model.rank(X, ["a", "b", "a", "b", "a"]).tolist() == [2, 1, 3, 2, 1]


def test_nothing_to_score(model):
    assert model.predict(np.zeros((0, 4))).tolist() == []
    assert model.rank(np.zeros((0, 4))).tolist() == []
    empty = Model.from_coef([0.0, 0.0])
    assert empty.predict([[1.0, 2.0]]).tolist() == [0.0]
    assert empty.sparsity == 0.0
    assert repr(empty) == "Model: 0 of 2 features"


@pytest.mark.parametrize(
    ("build", "message"),
    [
        (lambda: Model.from_coef([[1.0]]), "coef has 2 dimensions"),
        (lambda: Model.from_coef([1.0, np.inf]), "a number of a line is not finite"),
        (lambda: Model.from_coef([1.0], feature_names=["a", "b"]), "2 names were given"),
        (lambda: Model.from_coef([1.0, 2.0], feature_names=["a", "a"]), "'a' occurs twice"),
        (lambda: Model.from_coef([1.0], feature_names=["\ud800"]), "cannot be written"),
        (lambda: Model(2, {2: Line(1.0)}), "there is a curve of 2"),
        (lambda: Model(2, {0: Line(0.0)}), "the weight of feature f1 is zero"),
    ],
)
def test_impossible_models(build, message):
    with pytest.raises(ModelError, match=message):
        build()


def test_round_trip_keeps_every_bit(tmp_path):
    rng = np.random.default_rng(3)
    coef = rng.normal(size=300) * 10.0 ** rng.integers(-300, 300, size=300)
    coef[rng.random(300) < 0.5] = 0
    model = Model.from_coef(coef, provenance={"parameters": {"alpha": 0.1, "list": (1, 2)}})
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    assert again == model
    assert hash(again) == hash(model)
    assert again.coef.tobytes() == coef.tobytes()
    again.save(tmp_path / "again.json")
    assert (tmp_path / "again.json").read_bytes() == (tmp_path / "m.json").read_bytes()


def test_pickle(model, X):
    again = pickle.loads(pickle.dumps(model))
    assert again == model
    assert again.predict(X).tolist() == model.predict(X).tolist()
    assert not again.values.flags.writeable


def test_models_differ(model):
    assert model != Model.from_coef(COEF)
    assert model != "model"


def test_repr_lists_the_largest_weights():
    model = Model.from_coef(np.arange(12.0), provenance={})
    lines = repr(model).splitlines()
    assert lines[:2] == ["Model: 11 of 12 features", "  f12   11"]
    assert lines[-1] == "  … and 1 more"


def test_large_sparse_input_is_not_made_dense():
    X = random_array((50, 2_000_000), density=1e-6, format="csr", rng=1)
    coef = np.zeros(2_000_000)
    coef[X.indices[:20]] = 1.0
    model = Model.from_coef(coef)
    np.testing.assert_allclose(model.predict(X), X @ coef)
