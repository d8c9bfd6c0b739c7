"""What the page is told is what the models do."""

import json
from dataclasses import replace

import numpy as np
import pytest

from leanrank import make_ranking
from leanrank.data import GlobalStandardScaler, QueryMinMaxScaler, to_frame
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.errors import FileError, InputError, MissingDependencyError
from leanrank.metrics import evaluate
from leanrank.model import Levels, Model, Ramps, Steps, Surface
from leanrank.model.writing import as_model
from leanrank.plots.parts import front_models
from leanrank.rankers import DominationRanker, RankRLS
from leanrank.report import contents as contents_module
from leanrank.report import page as page_module
from leanrank.report import queries as queries_module
from leanrank.report import study_of_model, with_path, with_stability, write_report
from leanrank.report.contents import report_contents
from leanrank.report.page import embed_json, make_page
from leanrank.report.studies import is_on_path, known_path
from leanrank.selection import tune
from leanrank.selection.candidate import bootstrap_interval
from tests.report.conftest import make_parts


@pytest.fixture(scope="session")
def contents(study):
    return report_contents(study[0], test=study[1], title="Trial & error")


def test_contents_are_json(contents):
    assert json.loads(json.dumps(contents, allow_nan=False)) == contents


def test_queries_that_judge_have_a_value(study):
    study, _ = study
    values = study.chosen.values[study.measure].copy()
    values[:3] = np.nan  # documents of one label
    chosen = replace(study.chosen, values={study.measure: values}, training_values={})
    said = replace(study, chosen=chosen).judged_on
    n_judged = np.count_nonzero(~np.isnan(values))
    assert said.startswith(f"Judged on {n_judged} queries of the validation part.")


def test_headlines_are_the_measures(contents, study):
    one, test = study
    shown = contents["models"][contents["chosen"]]
    for name in ("ndcg@10", "map"):
        for key, data in (("headline", one.validation), ("test", test)):
            mean, low, high = shown[key][name]
            expected = evaluate(
                data, one.chosen.model.predict(data), measures=name, ties="average"
            ).means[name]
            assert mean == pytest.approx(expected, abs=1e-4)
            assert low <= mean <= high
    assert {each["name"] for each in contents["baselines"]} == {
        "best feature, f3",
        "RankRLS, all features",
    }
    assert all(each["test"] for each in contents["baselines"])
    assert contents["n_queries"] == {"headline": [15, 0], "judged": [15, 0], "test": [15, 0]}


def test_differences_are_paired(study):
    one, _ = study
    contents = report_contents(one)
    for entry, model in zip(contents["models"], front_models(one), strict=True):
        assert entry["score"] == float(f"{model.score('ndcg@10'):.4f}")
        for name, values in one.baselines.items():
            paired = model.values["ndcg@10"] - values["ndcg@10"]
            shown = next(key for key in entry["against"] if key.startswith(name))
            mean, low, high = entry["against"][shown]
            assert mean == float(f"{np.nanmean(paired):.4f}")
            assert low <= mean <= high
            assert (low, high) == pytest.approx(bootstrap_interval(paired), abs=6e-4)


@pytest.mark.parametrize("which", ["study", "boosted_study"])
def test_features_and_orders_are_those_of_the_models(which, request):
    one = request.getfixturevalue(which)
    one = one[0] if isinstance(one, tuple) else one
    contents = report_contents(one)
    data = one.validation
    models = [next(c for c in one.candidates if c.name == m["name"]) for m in contents["models"]]
    assert contents["details"]
    for detail in contents["details"]:
        start, stop = data.query_ptr[detail["position"] : detail["position"] + 2]
        ids = data.doc_ids[start:stop].tolist()
        for candidate, scoring, order in zip(
            models, contents["scoring"], detail["orders"], strict=True
        ):
            scores = candidate.model.predict(data)[start:stop]
            best = np.argsort(-scores, kind="stable")[:10]
            assert [detail["names"][at] for at in order] == [ids[at] for at in best]
            used = {at for part in scoring["parts"] for at in part["at"]}
            assert len(used) == candidate.n_features  # tests in a browser add up what they give


def test_features_say_weight_share_stability_and_cost(contents, study):
    rows = contents["models"][contents["chosen"]]["rows"]
    model = study[0].chosen.model
    assert len(rows) == model.n_nonzero
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-3)
    for row in rows:
        assert row["weight"] == pytest.approx(model.coef[row["index"]], rel=1e-4)
        assert row["frequency"] == pytest.approx(study[0].stability.frequencies[row["index"]])
        assert row["cost"] == 2.0
    assert contents["stability"]["subsamples"] == 4


def test_the_path_is_that_of_the_ranker(study):
    one = study[0]
    path = known_path(one)
    expected = DominationRanker().path(one.training, n_alphas=12)
    used = expected.coefs.any(axis=1)
    kept = path.alphas != 0.1  # the chosen one's
    np.testing.assert_allclose(path.alphas[kept], expected.alphas[used])
    np.testing.assert_allclose(path.coefs[kept], expected.coefs[used])


def test_curves_have_a_path_of_heights(curved_study):
    path = known_path(curved_study)
    alike = [one for one in curved_study.candidates if is_on_path(one, curved_study.chosen)]
    for one in alike:
        heights = np.zeros(8)
        heights[one.model.indices] = one.model.values
        assert np.array_equal(path.coefs[path.alphas == one.parameters["alpha"]][0], heights)
    assert report_contents(curved_study)["charts"]["path"]


def test_a_tuned_study_without_validation_part_is_reported():
    data = make_ranking(24, 8, n_features=5, random_state=1)
    one = tune(data, systems=["domination"], trials=1, measures=("ndcg@10",))
    contents = report_contents(one)
    assert contents["part"] == "cross-validation"
    assert len(contents["baselines"]) == 2
    assert [part["part"] for part in contents["data"]] == ["training"]
    assert contents["charts"]["path"]


def test_many_queries_and_models_are_thinned_out(study, monkeypatch):
    monkeypatch.setattr(contents_module, "MOST_MODELS", 3)
    monkeypatch.setattr(contents_module, "MOST_QUERIES", 6)
    monkeypatch.setattr(queries_module, "MOST_CELLS", 8 * 2 * 10 * 2)
    contents = report_contents(study[0])
    assert len(contents["models"]) == 3
    assert contents["models"][contents["chosen"]]["name"] == study[0].chosen.name
    assert len(contents["queries"]) == len(contents["models"][0]["values"]) == 6
    assert len(contents["details"]) == 2
    front = contents["charts"]["front"]["data"]["values"]
    assert sum(row["model"] >= 0 for row in front) == 3


def test_what_leanness_costs(study):
    smallest = replace(study[0], chosen=study[0].front[0])
    cost = smallest.leanness
    assert cost.other.n_features > smallest.chosen.n_features
    named = str(cost).replace("ndcg@10", "NDCG@10")
    assert named in report_contents(smallest)["judged"]


def test_a_model_with_a_normaliser_is_judged_on_what_it_sees():
    train, vali, _ = make_parts()
    normalizer = make_normalizer("query-standard")
    ranker = DominationRanker(alpha=0.1).fit(normalizer.fit_transform(train))
    model = as_model(ranker, normalizer)
    one = with_stability(study_of_model(model, train, vali), n_subsamples=3)
    expected = evaluate(vali, model.predict(vali), ties="average").per_query["map"]
    np.testing.assert_allclose(one.chosen.values["map"], expected)
    assert one.stability.n_subsamples == 3


@pytest.mark.parametrize("tuned", [True, False])
def test_test_data_are_given_in_their_own_units(tuned):
    parts = make_parts()
    units = 10.0 ** np.arange(-4, 4)
    train, vali, test = (data.replace(X=(data.X + 3.0) * units) for data in parts)
    normalizer = make_normalizer("standard")
    if tuned:
        one = tune(train, vali, systems=["domination"], trials=1, scale="standard")
    else:
        ranker = DominationRanker(alpha=0.1).fit(normalizer.fit_transform(train))
        one = study_of_model(as_model(ranker, normalizer), train, vali)
    assert one.model.normalizer["kind"] == "standard"
    contents = report_contents(one, test=test)
    shown = contents["models"][contents["chosen"]]["test"][one.measure][0]
    truth = evaluate(test, one.model.predict(test), ties="average").means[one.measure]
    assert shown == pytest.approx(truth, abs=1e-4)


def test_test_data_may_be_a_frame_with_its_columns_in_any_order():
    train, vali, test = (part.replace(feature_names=[*"abcdefgh"]) for part in make_parts())
    one = tune(train, vali, systems=["domination"], trials=1)
    frame = to_frame(test, "pandas")
    mixed = frame[[*reversed(frame.columns)]]
    assert report_contents(one, test=mixed) == report_contents(one, test=test)
    with pytest.raises(InputError, match="test data have no feature 'c'"):
        report_contents(one, test=frame.drop(columns="c"))


def test_studies_that_cannot_grow_stay_as_they_are():
    train, vali, _ = make_parts()
    by_hand = study_of_model(Model.from_coef(np.arange(8.0)), train, vali)
    assert with_path(by_hand) is by_hand
    assert with_stability(by_hand) is by_hand
    ridge = study_of_model(RankRLS(alpha=1.0).fit(train).to_model(), train, vali)
    assert with_path(ridge) is ridge
    some = ridge.chosen.model.coef * (np.arange(8) < 3)  # a ridge on features chosen otherwise
    model = Model.from_coef(some, provenance=ridge.chosen.model.provenance)
    on_some = study_of_model(model, train, vali)
    assert with_stability(on_some) is on_some


def test_models_that_do_not_fit_the_data_are_refused():
    train, vali, _ = make_parts()
    with pytest.raises(InputError, match="uses no feature"):
        study_of_model(Model.from_coef(np.zeros(8)), train, vali)
    with pytest.raises(InputError, match="the model has 3 features but the data have 8"):
        study_of_model(Model.from_coef(np.ones(3)), train, vali)
    named = train.replace(feature_names=list("abcdefgh"))
    with pytest.raises(InputError, match="other names or another order"):
        study_of_model(Model.from_coef(np.ones(8), feature_names=list("hgfedcba")), named, vali)


def test_the_page_holds_names_as_text_only(monkeypatch, hostile_study):
    monkeypatch.setattr(page_module, "chart_library", lambda: "window.vegaEmbed = null")
    contents = report_contents(hostile_study[0], title="<script>window.hacked = 9</script>")
    page = make_page(contents)
    assert page.count("<script") == 3
    assert page.count("</script>") == 3
    assert "<img" not in page
    assert "<title>&lt;script&gt;" in page
    inside = page.split('id="report-contents">')[1].split("</script>")[0]
    assert json.loads(inside) == contents
    assert "script-src 'unsafe-eval' 'sha256-" in page.replace("&#x27;", "'")


def test_json_with_half_a_character_can_be_written():
    assert json.loads(embed_json({"name": "a\ud800b"}))["name"].encode("utf-8")


def test_nothing_is_left_of_a_report_that_fails(tmp_path, study, monkeypatch):
    monkeypatch.setattr(page_module, "chart_library", lambda: "")
    with pytest.raises(FileError):
        write_report(study[0], tmp_path / "missing" / "report.html")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize("package", ["vl_convert", "altair"])
def test_a_missing_package_is_named(monkeypatch, package):
    monkeypatch.setitem(__import__("sys").modules, package, None)
    page_module.chart_library.cache_clear()
    with pytest.raises(MissingDependencyError, match=r"pip install 'leanrank\[report\]'"):
        page_module.chart_library()


def test_models_refitted_to_some_features_are_no_points_of_a_path(study):
    one = study[0]
    refitted = replace(one.chosen, name="refitted", parameters={"alpha": 0.11})
    grown = replace(one, candidates=[*one.candidates, refitted])
    np.testing.assert_array_equal(known_path(one).alphas, known_path(grown).alphas)
    assert not is_on_path(refitted, one.chosen)


@pytest.mark.parametrize(
    "curve", [Ramps((1.0, 37.5, 60.0), (1.0, -2.0)), Steps((50.0,), (0.0, 1.0))]
)
def test_documents_stand_on_curves_far_from_zero(curve):
    """The page computes heights from rounded numbers."""
    offset = 1.7e9
    cuts = tuple(offset + cut for cut in curve.cuts)
    moved = Ramps(cuts, curve.rises) if isinstance(curve, Ramps) else Steps(cuts, curve.levels)
    x = offset + 100 * np.random.default_rng(0).random(200)
    data = RankingData(x[:, None], np.arange(200) % 2, np.arange(200) // 10)
    model = Model(1, {0: moved})
    contents = report_contents(study_of_model(model, data, data))
    (part,) = contents["scoring"][0]["parts"]
    written = (
        Ramps(part["cuts"], np.diff(part["heights"]))
        if part["ramps"]
        else Steps(part["cuts"], part["heights"])
    )
    for detail in contents["details"]:
        rows = data.query_ptr[detail["position"]] + np.array(
            [int(name.split()[1]) - 1 for name in detail["names"]]
        )
        shown = np.array(detail["values"][0])[:, 0]
        assert np.allclose(written(shown), moved(x[rows]), atol=1e-6)


@pytest.mark.parametrize(
    ("scaler", "said"), [(GlobalStandardScaler(), None), (QueryMinMaxScaler(), "query-minmax")]
)
def test_only_axes_in_other_units_than_the_data_are_called_scaled(scaler, said):
    train, vali, _ = make_parts()
    curve = {0: Ramps((0.0, 0.5, 1.0), (1.0, 2.0))}
    model = Model(8, curve, normalizer=scaler.fit(train).to_dict())
    contents = report_contents(study_of_model(model, train, vali))
    drawn = [part for one in contents["models"] for part in one["curves"]["parts"]]
    assert {part["scaled"] for part in drawn} == {said}
    assert "scaled" not in contents  # what the study was fitted to says nothing of the axes


def test_categories_and_pairs_are_written_as_they_score():
    train, vali, _ = make_parts()
    codes = np.arange(len(vali)) % 3
    X = vali.X.copy()
    X[:, 0], X[::7, 1] = codes, np.nan
    table = Levels((0.0, 2.0), (0.5, -1.0), missing=0.25)
    pair = Surface((-1.0, 0.0, 1.0), (-0.5, 0.5), ((0.0, 1.0), (2.0, -1.0), (0.5, 0.0)))
    model = Model(8, {0: table, 2: Ramps((0.0, 1.0), (2.0,))}, surfaces={(1, 3): pair})
    contents = report_contents(study_of_model(model, train, vali.replace(X=X)))
    category, curve, surface = contents["scoring"][0]["parts"]
    assert contents["scoring"][0]["names"] == ["f1", "f3", "f2 × f4"]
    written = {
        (category["at"][0],): Levels(category["levels"], category["values"], category["missing"]),
        (curve["at"][0],): Ramps(curve["cuts"], np.diff(curve["heights"])),
        tuple(surface["at"]): Surface(*surface["knots"], surface["values"], surface["missing"]),
    }
    assert list(written.values()) == [table, model.curves[2], pair]
    shown = [chart["title"] for chart in contents["models"][0]["curves"]["others"]]
    assert shown[:2] == ["f1", "f2 × f4"]
    for detail in contents["details"]:
        values = np.array(detail["values"][0], dtype=float)
        total = sum(term(*values[:, at].T) for at, term in written.items())
        order = detail["orders"][0]
        assert (np.diff(total[order]) <= 1e-9).all()


def test_the_foot_says_how_the_page_was_made(study, monkeypatch):
    monkeypatch.setenv("SOURCE_DATE_EPOCH", "86400")
    contents = report_contents(study[0], command="leanrank tune a.txt", files={"training": "a.txt"})
    assert contents["made"]["date"] == "1970-01-02"
    assert contents["made"]["command"] == "leanrank tune a.txt"
    assert [part["file"] for part in contents["data"]] == ["a.txt", None]
