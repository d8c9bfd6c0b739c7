"""Charts hold what they should show, and names are data in them, never code."""

import json
import re
import sys
import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest

from leanrank import make_ranking, plots
from leanrank.data.ranking_data import RankingData
from leanrank.errors import InputError, MissingDependencyError
from leanrank.model import Levels, Line, Model, Ramps, Steps, Surface
from leanrank.plots.curve_charts import curve_parts
from leanrank.plots.parts import feature_rows, front_rows, history_rows, path_rows, query_rows
from leanrank.plots.term_charts import level_parts, surface_parts
from leanrank.rankers import DominationRanker
from leanrank.selection import Candidate, Study, bootstrap_models

alt = pytest.importorskip("altair")
HOSTILE = "datum['x'];</script>'\"\\"


def made(value, n_features, n_queries=20, **fields):
    values = {"ndcg@10": np.clip(value + np.linspace(-0.2, 0.2, n_queries), 0, 1)}
    model = Model.from_coef(np.ones(n_features))
    return Candidate(
        f"{HOSTILE} {n_features}", "none", {}, model, values, n_features, n_features, **fields
    )


@pytest.fixture(scope="module")
def data():
    names = [HOSTILE, *"bcdef"]
    return make_ranking(30, 10, n_features=6, random_state=0).replace(feature_names=names)


@pytest.fixture(scope="module")
def path(data):
    return DominationRanker().path(data, n_alphas=15)


CANDIDATES = [made(0.5, 1), made(0.6, 4), made(0.55, 6), made(0.3, 2)]


def study_of(data, candidates, chosen, **more):
    return Study("ndcg@10", "standard", candidates, candidates[chosen], data, data, **more)


def checked(chart):
    """Validate against Altair's schema, and keep hostile names out of everything but data."""
    spec = chart.to_dict()
    stripped = json.loads(json.dumps(spec))

    def without_data(node):
        if isinstance(node, dict):
            node.pop("values", None)
            for each in node.values():
                without_data(each)
        elif isinstance(node, list):
            for each in node:
                without_data(each)

    without_data(stripped)
    assert "datum['x']" not in json.dumps(stripped)
    return spec


def values_of(spec, name):
    found = [spec.get("data", {}), *(layer.get("data", {}) for layer in spec.get("layer", []))]
    return next(each["values"] for each in found if each.get("name") == name)


def test_the_front_holds_every_candidate_and_marks_the_chosen_one(data):
    spec = checked(plots.front(study_of(data, CANDIDATES, 1)))
    rows = values_of(spec, "front")
    assert [row["features"] for row in rows if row["model"] >= 0] == [1, 4]
    assert [row["features"] for row in rows if row["model"] < 0] == [6, 2]
    assert all(row["low"] < row["value"] < row["high"] for row in rows if row["model"] >= 0)
    assert spec["params"] == [{"name": "chosen", "value": 1}]


def test_the_front_of_a_study_marks_its_choice_and_draws_its_baselines(data):
    other = {"other": {"ndcg@10": np.full(20, 0.4)}}
    study = study_of(data, CANDIDATES, 2, baselines=other)
    spec = checked(plots.front(study))
    assert values_of(spec, "baselines")[0]["value"] == pytest.approx(0.4)
    shown = {row["model"]: row["features"] for row in values_of(spec, "front")}
    assert shown[spec["params"][0]["value"]] == 6


def test_baselines_of_other_queries_are_not_drawn(data):
    judged = [made(0.5, 1, training_values={"ndcg@10": np.full(5, 0.9)})]
    other = {"other": {"ndcg@10": np.full(20, 0.4)}}
    study = study_of(data, judged, 0, baselines=other)
    rows, baselines, _, _ = front_rows(study)
    assert baselines == []
    assert rows[0]["value"] == pytest.approx(judged[0].score("ndcg@10"), abs=1e-4)


def test_wide_ranges_have_a_logarithmic_axis_with_whole_marks_inside(data):
    spec = checked(plots.front(study_of(data, [made(0.5, 3), made(0.6, 480)], 1)))
    axis = spec["layer"][0]["encoding"]["x"]
    assert axis["scale"]["type"] == "log"
    assert axis["scale"]["nice"] is False
    assert axis["axis"]["values"] == [5, 10, 20, 50, 100, 200]


def test_a_long_list_of_losers_is_thinned_out(data):
    many = [made(0.9, 1), *(made(0.1 + 1e-4 * at, 5) for at in range(700))]
    rows, *_ = front_rows(study_of(data, many, 0))
    assert sum(row["model"] < 0 for row in rows) == 400


def test_the_path_holds_the_weights(path, data):
    spec = checked(plots.coefficient_path(path, data.feature_names, most=2))
    rows = values_of(spec, "path")
    for row in rows:
        at = np.argmin(np.abs(path.alphas - row["alpha"]))
        assert row["weight"] == pytest.approx(path.coefs[at, row["line"]], rel=1e-4, abs=1e-12)
    assert {row["line"] for row in rows} == set(np.flatnonzero(path.coefs.any(axis=0)).tolist())
    labels = values_of(spec, "labels")
    assert len(labels) == 2
    gap = 0.9 * np.ptp(path.coefs) / 18
    assert abs(labels[0]["place"] - labels[1]["place"]) >= gap


def test_lines_begin_where_weights_leave_zero(path):
    rows, _ = path_rows(path, None)
    for line in {row["line"] for row in rows}:
        weights = [row["weight"] for row in rows if row["line"] == line]
        assert sum(weight == 0 for weight in weights[:-1]) <= 1 + np.sum(
            path.coefs[:, line][np.flatnonzero(path.coefs[:, line])[0] :] == 0
        )


def test_an_empty_path_says_so(path):
    empty = type(path)(
        path.alphas, np.zeros_like(path.coefs), path.dual_gaps, path.objectives, path.n_iters
    )
    with pytest.raises(InputError, match="no model of the path uses a feature"):
        plots.coefficient_path(empty)


def test_features_are_ordered_by_share(data):
    model = DominationRanker(alpha=0.01).fit(data).to_model()
    spec = checked(plots.features(model, data))
    shares = [row["share"] for row in values_of(spec, "features")]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1, abs=1e-3)


def test_wins_and_losses_are_sorted_and_know_errors_from_gains():
    values, other = np.array([0.5, np.nan, 0.9, 0.1]), np.array([0.2, 0.3, 0.9, 0.4])
    spec = checked(plots.wins_and_losses(values, other, query_ids=[HOSTILE, "b", "c", "d"]))
    rows = values_of(spec, "queries")
    assert [row["query"] for row in rows] == [HOSTILE, "c", "d"]
    assert [row["gain"] for row in rows] == pytest.approx([0.3, 0, -0.3])
    flipped = query_rows(values, other, measure="all_pairs_error")
    assert [row["gain"] for row in flipped] == pytest.approx([0.3, 0, -0.3])
    assert [row["position"] for row in flipped] == [3, 2, 0]
    with pytest.raises(InputError, match=r"values has shape \(4,\) and baseline \(2,\)"):
        plots.wins_and_losses(values, other[:2])


def test_a_learning_curve_finds_its_axes():
    history = [{"loss": 1 / at, "round": at, "ndcg@10": 0.5 + at / 20} for at in range(1, 6)]
    across, rows = history_rows(history)
    assert across == "round"
    assert [row["at"] for row in rows] == [1, 2, 3, 4, 5]
    assert {row["measure"] for row in rows} == {"ndcg@10"}
    checked(plots.learning_curve(history))
    flat = plots.learning_curve([{"round": at, "ndcg@10": 0.7077} for at in (1, 2)])
    low, high = flat.to_dict()["encoding"]["y"]["scale"]["domain"]
    assert low < 0.7077 < high  # no axis with one tick that says 1
    assert history_rows([{"objective": 2.0}, {"objective": 1.0}])[1][1]["at"] == 2
    for bad in ([], [{"note": "x"}]):
        with pytest.raises(InputError, match="the history"):
            plots.learning_curve(bad)


@pytest.mark.parametrize("dark", [False, True])
def test_colours_have_contrast(dark):
    page = "#14181d" if dark else "#fdfdfc"
    config = plots.theme(dark=dark)
    colours = {name: style["color"] for name, style in config["style"].items()}
    for name, colour in colours.items():
        least = 1.5 if name == "context" else 4.5  # context is drawn to be overlooked
        assert contrast(colour, page) >= least, name
    assert contrast(config["axis"]["labelColor"], page) >= 4.5


def contrast(one, two):
    """The contrast ratio of the Web Content Accessibility Guidelines."""

    def luminance(colour):
        parts = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
        linear = [p / 12.92 if p <= 0.04045 else ((p + 0.055) / 1.055) ** 2.4 for p in parts]
        return np.dot([0.2126, 0.7152, 0.0722], linear)

    low, high = sorted((luminance(one), luminance(two)))
    return (high + 0.05) / (low + 0.05)


def test_without_altair_the_message_says_how_to_get_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    with pytest.raises(MissingDependencyError, match=r"pip install 'leanrank\[report\]'"):
        plots.learning_curve([{"round": 1, "loss": 1.0}])


def bent_data():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(400, 3))
    X[:100, 0] = np.nan
    y = (np.minimum(np.nan_to_num(X[:, 0]), 0.5) + X[:, 1] > 0).astype(int)
    return RankingData(X, y, np.arange(400) // 10, feature_names=[HOSTILE, "b", "c"])


def layer_of(part, name):
    return part["rows"][name]


def test_a_curve_is_drawn_less_its_mean_over_the_density_with_its_straight_line():
    data = bent_data()
    curve = Ramps((-1.0, 0.0, 1.0), (1.0, 3.0), missing=2.0)
    model = Model(3, {0: curve, 1: Line(0.1)}, feature_names=data.feature_names)
    parts = curve_parts(model, data)
    assert [part["feature"] for part in parts] == [HOSTILE, "b"]
    x = np.asarray(data.X)[:, 0]
    added = curve(x)
    rows = layer_of(parts[0], "curve")
    assert [row["x"] for row in rows[1:-1]] == [-1.0, 0.0, 1.0]
    expected = curve(np.array([row["x"] for row in rows])) - added.mean()
    assert np.allclose([row["y"] for row in rows], expected, atol=1e-4)
    assert layer_of(parts[0], "missing") == [
        {"y": pytest.approx(2.0 - added.mean(), abs=1e-4), "share": 0.25}
    ]
    there = ~np.isnan(x)
    slope, level = np.polyfit(x[there], added[there] - added.mean(), 1)
    ends = layer_of(parts[0], "straight")
    assert np.allclose(
        [row["y"] for row in ends], [slope * row["x"] + level for row in ends], atol=1e-3
    )
    assert sum(row["documents"] for row in layer_of(parts[0], "density")) > 0.97
    assert layer_of(parts[1], "straight") == []  # it is one
    assert layer_of(parts[1], "missing") == []


def test_a_band_holds_most_of_the_curves_that_were_drawn():
    data = bent_data()
    ranker = DominationRanker(alpha=0.02, curves=4)
    model = ranker.fit(data).to_model()
    draws = bootstrap_models(ranker, data, n_draws=12)
    again = bootstrap_models(ranker, data, n_draws=12, n_jobs=2)
    assert [one.to_dict()["curves"] for one in draws] == [one.to_dict()["curves"] for one in again]
    for part in curve_parts(model, data, draws):
        x = np.asarray(data.X)[:, part["index"]]
        for row in layer_of(part, "band")[::12]:
            values = [
                float((one.curves[part["index"]](np.array([row["x"]]))
                       - one.curves[part["index"]](x).mean())[0])
                if part["index"] in one.curves else 0.0
                for one in draws
            ]  # fmt: skip
            inside = [row["low"] - 1e-3 <= value <= row["high"] + 1e-3 for value in values]
            assert sum(inside) >= 10
            assert row["low"] <= np.median(values) <= row["high"]


def test_curves_of_steps_jump_and_a_model_draws_itself():
    data = bent_data().replace(X=np.nan_to_num(bent_data().X))
    model = Model(3, {1: Steps((0.0,), (0.0, 1.0))}, feature_names=data.feature_names)
    rows = layer_of(curve_parts(model, data)[0], "curve")
    assert len(rows) == 4
    assert rows[2]["y"] - rows[1]["y"] == pytest.approx(1.0)
    checked(model.plot(data))
    checked(plots.plot(model))  # without documents: the curve alone
    alone = curve_parts(model, None)[0]
    assert layer_of(alone, "density") == layer_of(alone, "straight") == []
    bars = Model.from_coef([0.0, 1.0, 2.0], feature_names=data.feature_names).plot(data)
    assert checked(bars)["data"]["name"] == "features"
    with pytest.raises(InputError, match="no curve to draw"):
        plots.curves(Model(3, {}), data)


def test_outliers_leave_room_for_the_curve():
    X = np.r_[np.linspace(0, 1, 999), 1e9][:, None]
    data = RankingData(X, np.arange(1000) % 2, np.arange(1000) // 10)
    part = curve_parts(Model(1, {0: Ramps((0.0, 1.0), (1.0,))}), data)[0]
    assert part["range"][1] < 1.5


def test_a_scaler_is_drawn_in_the_units_of_the_data():
    data = bent_data()
    raw = data.replace(X=np.asarray(data.X) * [100.0, 1.0, 1.0] + [5000.0, 0.0, 0.0])
    curve = Ramps((-1.0, 0.0, 1.0), (1.0, 3.0), missing=2.0)
    names = data.feature_names
    plain = Model(3, {0: curve, 1: Line(0.1)}, feature_names=names)
    scaler = {"kind": "standard", "mean": [5000.0, 0.0, 0.0], "scale": [100.0, 1.0, 1.0]}
    scaled = plain.replace(normalizer=scaler)
    expected, found = curve_parts(plain, data, [plain]), curve_parts(scaled, raw, [plain, scaled])
    for layer in ("curve", "straight", "missing", "band", "density"):
        for one, other in zip(layer_of(expected[0], layer), layer_of(found[0], layer), strict=True):
            for key, value in one.items():
                moved = 5000 + 100 * value if key in ("x", "x2") else value
                assert other[key] == pytest.approx(moved, rel=1e-4, abs=1e-3)
    assert found[0]["scaled"] is None
    alone = layer_of(curve_parts(scaled, None)[0], "curve")
    assert all(4900 <= row["x"] <= 5100 for row in alone)


def test_a_scaler_per_query_is_named_on_the_axis():
    X = np.asarray(bent_data().X)[:, 1:] * 1000.0
    data = RankingData(X, np.arange(400) % 2, np.arange(400) // 10)
    curve = Ramps((0.2, 0.8), (1.0,))
    model = Model(2, {1: curve}, normalizer={"kind": "query-minmax"})
    part = curve_parts(model, data)[0]
    assert part["range"] == [0.0, 1.0]
    assert part["scaled"] == "query-minmax"
    assert [row["x"] for row in layer_of(part, "curve")] == [0.0, 0.2, 0.8, 1.0]
    assert "scaled (query-minmax)" in json.dumps(checked(model.plot(data)))


def test_a_scaler_that_cannot_be_folded_is_named_on_the_axis():
    data = RankingData(np.linspace(0, 1, 100)[:, None], np.arange(100) % 2, np.arange(100) // 10)
    huge = {"kind": "standard", "mean": [1e300], "scale": [1.0]}
    model = Model(1, {0: Ramps((-1.0, 1.0), (1.0,))}, normalizer=huge)
    assert curve_parts(model, data)[0]["scaled"] == "standard"


def test_features_are_found_by_name():
    data = bent_data()
    ranker = DominationRanker(alpha=0.02, curves=4)
    model = ranker.fit(data).to_model()
    order = [2, 0, 1]
    names = [data.feature_names[at] for at in order]
    moved = data.replace(X=np.asarray(data.X)[:, order], feature_names=names)
    draws = bootstrap_models(ranker, data, n_draws=3)
    assert curve_parts(model, data, draws) == curve_parts(model, moved, draws)


@pytest.mark.parametrize("offset", [0.0, 1e6, 1.7e9, -1e12])
def test_an_offset_takes_no_digits_from_a_chart(offset):
    x = offset + np.linspace(0.0, 100.0, 1001)
    data = RankingData(x[:, None], np.arange(1001) % 2, np.arange(1001) // 10)
    knots = offset + np.array([10.0, 37.5, 60.0])
    part = curve_parts(Model(1, {0: Ramps(knots, (1.0, -2.0))}), data)[0]
    assert np.allclose(
        [row["x"] for row in layer_of(part, "curve")][1:-1], knots, rtol=0, atol=0.01
    )
    assert all(row["x2"] - row["x"] > 4 for row in layer_of(part, "density"))
    checked(Model(1, {0: Ramps(knots, (1.0, -2.0))}).plot(data))


@pytest.mark.parametrize("largest", [1e300, 1.7e308])
@pytest.mark.parametrize(
    "curve", [Ramps((0.0, 1e300), (1.0,)), Steps((0.0,), (0.0, 1.0)), Line(2.0)]
)
def test_the_largest_numbers_are_drawn_quietly(largest, curve):
    x = largest * np.linspace(-1, 1, 100)
    data = RankingData(np.c_[x, np.full(100, largest)], np.arange(100) % 2, np.arange(100) // 10)
    model = Model(2, {0: curve, 1: Ramps((0.0, 1.0), (1.0,))})
    for part in curve_parts(model, data, [model, model]):
        low, high = part["range"]
        assert low < high < np.inf
        assert np.isfinite(high - low)
    checked(model.plot(data))
    checked(Model(2, {0: Line(1e-10), 1: Line(1e-10)}).plot(data))


def paired():
    data = bent_data()
    surface = Surface(
        (-1.0, 1.0), (0.0, 0.5, 2.0), ((0.0, 1.0, 0.0), (3.0, -1.0, 2.0)), (0.5, 0.0, 0.25)
    )
    curves = {1: Line(0.1), 2: Ramps((-1.0, 1.0), (2.0,))}
    return data, Model(3, curves, data.feature_names, surfaces={(0, 2): surface}), surface


def test_a_pair_is_a_heat_map_over_the_documents_with_the_curves_beside_it():
    data, model, surface = paired()
    (part,) = surface_parts(model, data)
    assert part["features"] == [HOSTILE, "c"]
    assert part["feature"] == f"{HOSTILE} × c"
    X = np.asarray(data.X)
    cells = {key: np.array([cell[key] for cell in part["cells"]]) for key in part["cells"][0]}
    half = [(high - low) / 40 for low, high in part["ranges"]]
    x, y = cells["x"] + half[0], cells["y"] + half[1]
    expected = surface(x, y) - surface(X[:, 0], X[:, 2]).mean()
    assert np.allclose(cells["pair"], expected, atol=2e-3)
    ramp = model.curves[2]
    assert np.allclose(cells["curves"], ramp(y) - ramp(X[:, 2]).mean(), atol=2e-3)
    there = ~np.isnan(X[:, 0])
    for j, (low, high) in zip((0, 2), part["ranges"], strict=True):
        there &= (X[:, j] >= low) & (X[:, j] <= high)
    assert cells["share"].sum() == pytest.approx(there.mean(), abs=1e-2)
    panels = checked(model.plot(data))["vconcat"][-1]["hconcat"]
    names = [each["data"]["name"] for each in panels]
    assert names == ["pair_cells_pair_0", "curves_cells_pair_0"]
    alone = surface_parts(model)[0]
    assert alone["ranges"][1] == pytest.approx([0.0, 2.0], abs=0.03)
    assert not any(cell["share"] for cell in alone["cells"])


def test_the_table_of_terms_lists_a_pair_with_its_share_of_the_variance():
    data, model, _ = paired()
    costs = np.array([1.0, 2.0, 4.0])
    stability = SimpleNamespace(frequencies=[0.5, 0.25, 1.0])
    rows = feature_rows(model, data, costs=costs, stability=stability)
    by_name = {row["feature"]: row for row in rows}
    assert set(by_name) == {"b", "c", f"{HOSTILE} × c"}
    assert sum(row["share"] for row in rows) == pytest.approx(1, abs=1e-3)
    pair = by_name[f"{HOSTILE} × c"]
    assert (pair["index"], pair["frequency"], pair["cost"]) == (None, None, None)
    assert pair["weight"] == 4.0
    assert (by_name["c"]["index"], by_name["c"]["frequency"]) == (2, 1.0)
    checked(plots.features(model, data))


def test_a_category_has_a_bar_per_level_of_most_documents():
    frame = {"shop": [f"s{at % 20}" for at in range(400)], "age": np.arange(400.0)}
    levels = tuple(f"s{at}" for at in range(15))
    table = Levels(levels, tuple(np.linspace(-1, 1, 15)), missing=0.5)
    model = Model(2, {0: table, 1: Line(1.0)}, ("shop", "age"))
    (part,) = level_parts(model, pd.DataFrame(frame))
    added = {row["level"]: row["adds"] for row in part["rows"]}
    assert len(added) == 12
    mean = np.mean(
        [dict(zip(levels, table.values, strict=True)).get(one, 0.5) for one in frame["shop"]]
    )
    assert added["other"] == pytest.approx(0.5 - mean, abs=1e-4)
    assert added["s0"] == pytest.approx(-1.0 - mean, abs=1e-4)
    assert [row["adds"] for row in part["rows"]] == sorted(added.values(), reverse=True)
    spec = checked(model.plot(pd.DataFrame(frame)))
    assert "shop (and 4 more levels)" in json.dumps(spec)
    assert [row["level"] for row in level_parts(Model(1, {0: Levels((3.0, 0.5), (1.0, 0.0))}))[0][
        "rows"
    ]] == ["3", "0.5", "other"]  # fmt: skip


@pytest.mark.parametrize("draw", [Model.plot, plots.features])
def test_a_saved_page_loads_nothing(draw, tmp_path):
    data = make_ranking(5, 4, 3, random_state=0)
    chart = draw(Model(3, {0: Ramps((0.0, 1.0), (1.0,))}, ("a", "b", "c")), data)
    for one in (chart, chart.properties(background="white")):
        one.save(str(tmp_path / "chart.html"))
        page = (tmp_path / "chart.html").read_text(encoding="utf-8")
        assert not re.search(r"<script[^>]*\bsrc\b|<link\b", page)
        assert "vega-embed" in page
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # only pages take the option that holds the scripts
        chart.save(str(tmp_path / "chart.svg"))
    assert (tmp_path / "chart.svg").read_text(encoding="utf-8").startswith("<svg")
