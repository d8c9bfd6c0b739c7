"""Fill values: what a missing feature counts as, in the model, its file and every export."""

import pickle

import numpy as np
import pytest
import sklearn
from sklearn.impute import SimpleImputer
from sklearn.pipeline import Pipeline, make_pipeline

from leanrank.data import RankingData, make_ranking
from leanrank.data.scaling.normalizers import GlobalStandardScaler
from leanrank.errors import InputError, ModelError
from leanrank.model import Levels, Line, Model, Ramps, Surface, fill_values, load_model, save_model
from leanrank.model.export import formula_of
from leanrank.model.verify import engines, verify_export
from leanrank.model.writing import as_model
from leanrank.rankers import RankSVM
from tests.model.verify.drivers import OTHERS

SURFACE = Surface((0.0, 0.5, 1.0), (0.0, 1.0), ((0, 0.1), (0.3, 0), (-0.2, 0.4)), (1, 2, 3))
STANDARD = {"kind": "standard", "mean": [0.1, 0.2, 0.3, 0.4, 0.5], "scale": [2.0, 1, 1, 1, 1]}
MINMAX = {"kind": "query-minmax"}


def mixed(normalizer=None, fill=None):
    curves = {0: Line(0.3), 1: Ramps((0.0, 1.0), (1.0,)), 2: Line(-0.7)}
    fill = {0: 0.5, 1: 0.25, 2: 0.0, 3: 0.7, 4: 1 / 3} if fill is None else fill
    pairs = {(3, 4): SURFACE, (0, 4): SURFACE}
    return Model(5, curves, surfaces=pairs, fill=fill, normalizer=normalizer)


def with_gaps(seed=0, n=200):
    rng = np.random.default_rng(seed)
    X = rng.uniform(-0.2, 1.2, (n, 5))
    X[rng.random(X.shape) < 0.2] = np.nan
    return X


@pytest.mark.parametrize(
    ("normalizer", "sparse"),
    [(None, False), (None, True), (STANDARD, False), (STANDARD, True), (MINMAX, False)],
)
def test_a_gap_scores_as_its_number(normalizer, sparse):
    model, X, qid = mixed(normalizer), with_gaps(), np.arange(200) // 10
    if sparse:
        from scipy.sparse import csr_array

        X = np.maximum(X, 0)
    known = np.where(np.isnan(X), [model.fill[at] for at in range(5)], X)
    plain = model.replace(fill={})
    given = csr_array(X) if sparse else X
    expected = plain.predict(csr_array(known) if sparse else known, qid)
    np.testing.assert_array_equal(model.predict(given, qid), expected)
    if not sparse:
        np.testing.assert_allclose(formula_of(model).scores(X, qid), expected, atol=1e-14)
    with pytest.raises(InputError):
        plain.predict(given, qid)


@pytest.mark.parametrize("target", ["python", "javascript", "c", "onnx", "polars", "sql:duckdb"])
@pytest.mark.parametrize("normalizer", [None, STANDARD])
def test_exports_write_them(target, normalizer, monkeypatch):
    known = engines.ENGINES | OTHERS
    monkeypatch.setattr(engines, "ENGINES", known)
    if known[target].lacks():
        pytest.skip(f"{target} needs {known[target].lacks()}")
    data = RankingData(with_gaps(), np.zeros(200), qid=np.arange(200) // 10)
    assert verify_export(mixed(normalizer), target, data).bit_equal == 200


@pytest.mark.parametrize("target", ["lightgbm", "xgboost", "opensearch-ltr", "solr"])
@pytest.mark.parametrize("some", [(0, 1, 2, 3, 4), (0, 1, 2, 4)])
def test_trees_send_a_gap_where_its_number_goes(target, some):
    if target in ("lightgbm", "xgboost"):
        pytest.importorskip(target)
    fill = {at: value for at, value in mixed().fill.items() if at in some}
    data = RankingData(with_gaps(), np.zeros(200), qid=np.arange(200) // 10)
    found = verify_export(mixed(fill=fill), target, data, max_error=0.05)
    assert found.model_difference <= 0.05 + 1e-6
    assert found.agrees


def test_the_file_keeps_them(tmp_path):
    for names in (None, ("a", "b", "c", "d", "e")):
        model = mixed().replace(feature_names=names)
        model.save(tmp_path / "m.json")
        assert load_model(tmp_path / "m.json") == model == pickle.loads(pickle.dumps(model))
    document = model.to_dict()
    assert document["fill"][0] == {"feature": "a", "value": 0.5}
    document["fill"][0]["feature"] = "z"
    with pytest.raises(ModelError, match=r"fill\[0\].feature"):
        Model.from_dict(document)


def test_bad_fill_values():
    with pytest.raises(ModelError, match="cannot be used"):
        mixed(fill={0: np.inf})
    with pytest.raises(ModelError, match="category"):
        Model(1, {0: Levels((1.0,), (2.0,))}, fill={0: 1.0})
    data = RankingData([[1.0], [2.0]], [0, 1])
    with pytest.raises(InputError, match="'bm25'"):
        fill_values(data, {"bm25": 1.0})
    with pytest.raises(InputError, match="median or a number"):
        fill_values(data, "mean")


def test_a_pipeline_with_an_imputer(tmp_path):
    data = make_ranking(n_queries=20, n_features=6, random_state=0)
    X = np.array(data.X)
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    with sklearn.config_context(enable_metadata_routing=True):
        steps = (SimpleImputer(strategy="median"), GlobalStandardScaler(), RankSVM())
        fitted = make_pipeline(*steps).fit(X, data.y, qid=data.qid)
    model = save_model(fitted, tmp_path / "m.json")
    assert model.fill == dict(enumerate(np.nanmedian(X, axis=0)))
    np.testing.assert_array_equal(model.predict(X), fitted.predict(X))
    fitted.steps[0][1].add_indicator = True
    with pytest.raises(InputError, match="SimpleImputer that adds"):
        save_model(fitted, tmp_path / "m.json")


def test_an_imputer_fills_what_only_a_scaler_reads():
    X = np.array([[1.0, np.nan], [2.0, 5.0], [4.0, 7.0]])
    ranker = RankSVM().fit(np.array([[0.0, 0.0], [1.0, 0.0], [2.0, 0.0]]), [0, 1, 2])
    imputer, scaler = SimpleImputer().fit(X), GlobalStandardScaler().fit(np.nan_to_num(X))
    steps = [("fill", imputer), ("scale", scaler), ("rank", ranker)]
    assert as_model(Pipeline(steps)).fill == {0: 7 / 3, 1: 6.0}


def test_a_model_learned_on_dask_keeps_them():
    """As the page says: the collection is filled, and the model gets the same numbers."""
    dask = pytest.importorskip("dask.array")
    data = make_ranking(n_queries=20, n_features=4, random_state=0)
    X, fill = np.array(data.X), {0: 1.5, 1: 0.0, 2: -1.0, 3: 2.0}
    X[np.random.default_rng(0).random(X.shape) < 0.2] = np.nan
    known = np.where(np.isnan(X), list(fill.values()), X)
    parts = [dask.from_array(each, chunks=(len(X) // 2, *each.shape[1:])) for each in (X, data.y)]
    filled = dask.where(dask.isnan(parts[0]), np.array(list(fill.values())), parts[0])
    qid = dask.from_array(np.asarray(data.qid), chunks=len(X) // 2)
    model = RankSVM().fit(filled, parts[1], qid=qid).to_model().replace(fill=fill)
    assert model.predict(X).tolist() == model.replace(fill={}).predict(known).tolist()
    plain = RankSVM().fit(known, data.y, qid=data.qid)
    np.testing.assert_allclose(model.predict(X), plain.predict(known), atol=1e-3)
