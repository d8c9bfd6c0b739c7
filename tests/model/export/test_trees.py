"""Curves, tables and surfaces as trees, run in XGBoost and LightGBM."""

import json

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.errors import InputError
from leanrank.model import Levels, Line, Model, Ramps, Steps, Surface
from leanrank.model.export import export_model, formula_of
from leanrank.model.export.targets import TARGETS, Options
from leanrank.model.export.trees import Split, flattened, forest, solr_threshold
from leanrank.model.verify import emulated_scores, verify_export

NAMES = ("bm25", "steps", "kind", "age", "near", "length")
EXACT = {
    1: Steps((0.2, 0.5, 1.0), (0.0, 1.0, 2.0, 0.3), 0.7),
    2: Levels((0.0, 1.0, 0.1, 3.0), (0.1, 0.2, 0.3, 0.5), -0.2),
}
CURVES = EXACT | {0: Ramps((0.0, 0.5, 1.0), (0.7, -0.2), 0.3), 4: Ramps((0.0, 0.3), (1.0,))}
PAIR = {(0, 5): Surface((0.0, 0.5, 1.0), (0.0, 1.0), ((0, 0.1), (0.3, 0), (-0.2, 0.4)), (1, 2, 3))}
LINE = {3: Line(0.4, missing=0.1)}
RUN = ("lightgbm", "xgboost", "opensearch-ltr", "elasticsearch-ltr", "solr")


@pytest.fixture(scope="module")
def documents():
    rng = np.random.default_rng(0)
    X = rng.uniform(-0.1, 1.1, size=(600, 6))
    X[:, 2] = rng.choice([0.0, 1.0, 0.1, 2.0, 3.0, -1.0], 600)
    X[:90, 1] = rng.choice([0.2, 0.5, 1.0], 90)  # at the thresholds
    for column in (0, 1, 2, 3, 5):
        X[rng.random(600) < 0.1, column] = np.nan
    return RankingData(X, np.zeros(600), qid=np.repeat(np.arange(30), 20), feature_names=NAMES)


def made(curves, pairs=None):
    return Model(6, curves, NAMES, surfaces=pairs or {})


@pytest.mark.parametrize("target", RUN)
def test_steps_and_numeric_levels_are_exact(documents, target):
    found = verify_export(made(EXACT), target, documents)
    assert found.difference < 2e-7
    assert found.model_difference < 2e-7
    assert found.tolerance == 1e-6
    if target in ("lightgbm", "xgboost"):
        assert found.bit_equal == found.documents


@pytest.mark.parametrize("target", RUN)
@pytest.mark.parametrize("error", [0.2, 0.05])
def test_all_terms_are_within_the_stated_error(documents, target, error):
    model = made(CURVES | LINE, PAIR)
    found = verify_export(model, target, documents, max_error=error)
    assert 0 < found.model_difference <= error + 1e-6
    assert found.agrees
    if target in ("lightgbm", "xgboost"):
        assert found.bit_equal == found.documents


def test_levels_of_a_shifted_feature_stay_apart(documents):
    """The number before 0 is 0 once a constant is added to it."""
    model = made({2: EXACT[2]})
    found = verify_export(model, "opensearch-ltr", documents, shifts={"kind": 1.0})
    assert found.model_difference < 2e-7


def test_lightgbm_explains_the_trees(documents):
    lightgbm = pytest.importorskip("lightgbm")
    booster = lightgbm.Booster(model_str=export_model(made(EXACT), "lightgbm"))
    X = documents.X[:, [1, 2]]
    parts = booster.predict(X, pred_contrib=True)
    np.testing.assert_allclose(parts.sum(axis=1), booster.predict(X, raw_score=True), atol=1e-12)
    assert booster.feature_importance().min() > 0


def test_the_emulator_has_the_bits_of_xgboost(documents):
    pytest.importorskip("xgboost")
    formula = formula_of(made(CURVES, PAIR))
    X = np.nan_to_num(documents.X[:, [0, 1, 2, 4, 5]])
    ltr = emulated_scores(formula, X, Options(featureset="main", max_error=0.1))
    found = verify_export(
        made(CURVES, PAIR),
        "xgboost",
        documents.replace(X=np.nan_to_num(documents.X)),
        max_error=0.1,
    )
    assert found.bit_equal == found.documents
    trees = forest(formula, Options(max_error=0.1), TARGETS["xgboost"])
    np.testing.assert_array_equal(ltr, trees.scores(X, np.float32))


def test_the_error_is_reached_nowhere_and_stated():
    formula = formula_of(made(CURVES, PAIR))
    for error in (None, 0.3, 0.03):
        trees = forest(formula, Options(max_error=error), TARGETS["lightgbm"])
        assert trees.error == error or (error is None and trees.error > 0)
        X = np.random.default_rng(1).uniform(-1, 2, size=(20_000, 5))
        gap = np.abs(trees.scores(X) - formula.scores(X)).max()
        assert 0.2 * trees.error < gap <= trees.error
        assert f"{trees.error:g}" in trees.note


def test_a_small_error_that_needs_too_many_leaves_is_refused():
    with pytest.raises(InputError, match="leaves"):
        forest(formula_of(made(CURVES, PAIR)), Options(max_error=1e-7), TARGETS["lightgbm"])


def test_monotone_curves_stay_monotone():
    formula = formula_of(Model(1, {0: Ramps((0.0, 0.1, 3.0), (1.0, 0.01))}))
    trees = forest(formula, Options(max_error=0.013), TARGETS["lightgbm"])
    scores = trees.scores(np.linspace(-1, 4, 999)[:, None])
    assert (np.diff(scores) >= 0).all()


def test_a_line_needs_its_range(documents):
    model = made({3: Line(0.5, 0.0), 1: EXACT[1]})
    with pytest.raises(InputError, match="range of 'age'"):
        export_model(model, "opensearch-ltr")
    text = export_model(model, "opensearch-ltr", data=documents)
    assert json.loads(text)["model"]["body"]["model"]["model"]["type"] == "model/xgboost+json"


def test_texts_have_no_numbers_in_a_plugin():
    model = Model(1, {0: Levels(("de", "en"), (1.0, 2.0))})
    with pytest.raises(InputError, match=r"solr cannot look up texts.* lightgbm"):
        export_model(model, "solr")


def test_missing_stored_fields_have_a_number_of_their_own():
    text = json.loads(export_model(made(EXACT), "elasticsearch-ltr"))
    features = text["featureset"]["body"]["featureset"]["features"]
    factors = [one["template"]["function_score"]["functions"][0] for one in features]
    assert [one["field_value_factor"]["missing"] for one in factors] == [3e38, 3e38]
    assert "stored fields" in text["notes"][0]
    assert "steps, kind" in text["notes"][0]


def test_an_existing_feature_set_is_used(documents):
    model = made(EXACT)
    text = json.loads(export_model(model, "opensearch-ltr", featureset="web"))
    assert "featureset" not in text
    assert "store" not in text
    assert text["model"]["request"] == "POST _ltr/_featureset/web/_createmodel"
    filled = documents.replace(X=np.nan_to_num(documents.X))
    assert verify_export(model, "opensearch-ltr", filled, featureset="web").difference < 2e-7
    solr = json.loads(export_model(model, "solr", featureset="web"))
    for made_for in (text, solr):
        assert any("count as 0: steps, kind" in note for note in made_for["notes"])
    assert "count as 0" not in export_model(Model(1, {0: Line(2.0)}), "solr", featureset="web")
    gaps = verify_export(model, "solr", documents, featureset="web")
    assert gaps.model_difference > 0.1
    assert not gaps.agrees
    assert "features" not in solr
    assert solr["model"]["body"]["store"] == "web"


@pytest.mark.parametrize("target", RUN)
def test_curves_that_differ_in_gaps_alone(documents, target):
    """Their ramps do not rise, and need no steps."""
    flat = {0: Ramps((0.0, 1.0), (0.0,), 0.5), 1: EXACT[1]}
    surface = {(0, 5): Surface((0.0, 1.0), (0.0, 1.0), ((0, 0), (0, 0)), (1, 2, 3))}
    found = verify_export(made(flat, surface), target, documents, max_error=0.1)
    assert found.model_difference < 1e-6


def test_levels_that_float32_cannot_tell_apart_are_refused():
    given = Model(1, {0: Levels((2.0**24, 2.0**24 + 1), (1.0, 2.0))})
    assert "leaf_value" in export_model(given, "lightgbm")
    for target in ("opensearch-ltr", "solr", "xgboost"):
        with pytest.raises(InputError, match="one number in float32"):
            export_model(given, target)


def test_a_plugin_reads_conditions_as_below():
    text = export_model(Model(1, {0: Steps((0.5,), (0.0, 1.0))}), "opensearch-ltr")
    [tree] = json.loads(json.loads(text)["model"]["body"]["model"]["model"]["definition"])
    assert np.float32(tree["split_condition"]) == np.nextafter(np.float32(0.5), np.float32(1))
    assert [child["leaf"] for child in tree["children"]] == [0.0, 1.0]
    assert [tree["yes"], tree["no"]] == [child["nodeid"] for child in tree["children"]]


def test_solr_adds_its_slack_again():
    rng = np.random.default_rng(0)
    numbers = rng.normal(size=500) * 10.0 ** rng.integers(-9, 9, 500)
    for number in np.append(numbers, [0.0, 1e-20]).astype(np.float32):
        reached = np.float32(solr_threshold(number)) + np.float32(1e-6)
        assert reached <= number
        assert number - reached <= 2e-13 + 1.2e-7 * abs(number)


def test_elastic_inference_is_an_ensemble_of_trees(documents):
    text = json.loads(export_model(made(CURVES, PAIR), "elasticsearch-inference", max_error=0.1))
    body = text["model"]["body"]
    ensemble = body["definition"]["trained_model"]["ensemble"]
    X = documents.X[:, [0, 1, 2, 4, 5]].astype(np.float32).astype(float)
    names = ensemble["feature_names"]
    assert names == body["input"]["field_names"] == ["bm25", "steps", "kind", "near", "length"]
    total = np.zeros(len(X))
    for one in ensemble["trained_models"]:
        nodes = one["tree"]["tree_structure"]
        for row, x in enumerate(X):
            node = nodes[0]
            while "leaf_value" not in node:
                value = x[node["split_feature"]]
                left = node["default_left"] if np.isnan(value) else value <= node["threshold"]
                node = nodes[node["left_child" if left else "right_child"]]
            total[row] += node["leaf_value"]
    expected = made(CURVES, PAIR).predict(documents)
    assert np.abs(total - expected).max() <= 0.1 + 1e-6


def test_scores_are_positive_with_typical_documents(documents):
    for curves in (EXACT, {0: Line(-3.0, 0.0), 4: Line(1.0)}):
        model = made(curves)
        text = json.loads(export_model(model, "opensearch-ltr", data=documents))
        given = text["model"]["body"]["model"]["model"]
        lowest = model.predict(documents).min()
        definition = json.loads(given["definition"])
        if given["type"] == "model/linear":
            assert definition["leanrank_constant"] > -lowest
        else:
            assert definition[-1]["leaf"] > -lowest


def test_flattened_trees_keep_their_shape():
    tree = Split(0, 1.0, Split(1, None, 1.0, 2.0), 3.0)
    nodes = flattened(tree)
    assert nodes == [Split(0, 1.0, 1, 2), Split(1, None, 3, 4), 3.0, 1.0, 2.0]
