"""Every model that leaves our hands scores rows as they come, wherever it is taken from."""

import json

import numpy as np
import pytest

from leanrank import load_model, make_ranking
from leanrank.cli.entry import main
from leanrank.data import dump, make_normalizer
from leanrank.metrics.judge import Judge
from leanrank.model import Model
from leanrank.model.writing import as_model
from leanrank.rankers import DominationRanker
from leanrank.report import study_of_model, with_bands, with_path
from leanrank.selection import Split, choose, compare_systems, fit_system, pareto_front, tune

MEASURE = "ndcg@10"
UNITS = 10.0 ** np.arange(-4, 4)


@pytest.fixture(scope="module")
def parts():
    """Three parts whose features are on scales of their own."""
    data = make_ranking(n_queries=90, n_features=8, n_informative=5, random_state=4)
    data = data.replace(X=data.X * UNITS + 3 * UNITS, feature_names=[f"x{j}" for j in range(8)])
    return data.queries[:40], data.queries[40:60], data.queries[60:]


def judged_alike(one, data):
    """Return whether raw rows give the values that the candidate was judged by."""
    again = Judge(MEASURE).per_query(data, one.model.predict(data))[MEASURE]
    return np.allclose(again, one.values[MEASURE], equal_nan=True)


@pytest.fixture(scope="module", params=["auto", "query-standard"])
def study(request, parts):
    systems = ["domination", "greedyrankrls", "domination-curves", "rankboost"]
    found = tune(*parts[:2], systems=systems, trials=6, scale=request.param)
    assert found.normalizer is not None
    return found


def test_a_study_and_all_that_is_taken_from_it(study, parts):
    vali = parts[1]
    assert {one.algorithm for one in study.candidates} >= {"domination", "rankboost"}
    taken = [
        study.chosen,
        *study.candidates,
        *study.front,
        *pareto_front(study.candidates, measure=MEASURE),
        choose(study.front, measure=MEASURE, max_features=3),
        *([study.leanness.other] if study.leanness else []),
    ]
    assert all(judged_alike(one, vali) for one in taken)
    assert study.model == study.chosen.model
    assert np.array_equal(study.validation.X, vali.X)
    assert np.array_equal(study.training.X, parts[0].X)


def test_a_model_refitted_to_both_parts(parts):
    how = {"systems": ["domination"], "trials": 1, "scale": "standard"}
    one, both = tune(*parts[:2], **how), tune(*parts[:2], **how, refit="both")
    scores = [study.model.predict(parts[2]) for study in (one, both)]
    assert np.corrcoef(scores)[0, 1] > 0.95
    assert both.chosen.model == both.model


def test_a_journal(parts, tmp_path):
    path = tmp_path / "j"
    how = {"systems": ["domination", "rankboost"], "trials": 2, "journal": path}
    tune(*parts[:2], **how)
    entries = [json.loads(line)["entry"] for line in path.read_text().splitlines()[1:]]
    models = [Model.from_dict(one["model"]) for entry in entries for one in entry["candidates"]]
    again = tune(*parts[:2], **how)
    assert [one.model for one in again.candidates] == models
    assert all(judged_alike(one, parts[1]) for one in again.candidates)


def test_a_report_about_a_model(parts):
    train, vali, test = parts
    normalizer = make_normalizer("standard").fit(train)
    for curves in (None, 4):
        ranker = DominationRanker(alpha=0.05, curves=curves).fit(normalizer.transform(train))
        model = as_model(ranker, normalizer)
        study = with_bands(with_path(study_of_model(model, train, vali), n_alphas=6), n_draws=3)
        expected = ranker.predict(normalizer.transform(test))
        assert study.model.predict(test) == pytest.approx(expected)
        assert len(study.candidates) > 3
        assert all(judged_alike(one, vali) for one in study.candidates)
        for one in study.candidates[1:]:
            again = ranker.set_params(alpha=one.parameters["alpha"])
            scores = again.fit(normalizer.transform(train)).predict(normalizer.transform(test))
            assert one.model.predict(test) == pytest.approx(scores, abs=1e-3)
        assert bool(study.draws) == (curves is not None)
        for draw in study.draws:
            assert np.corrcoef(draw.predict(test), expected)[0, 1] > 0.9


@pytest.mark.parametrize("system", ["domination", "rankboost", "bestfeature", "lightgbm"])
def test_a_system_fitted_to_a_split(parts, system):
    if system == "lightgbm":
        pytest.importorskip("lightgbm")
    normalizer = make_normalizer("standard").fit(parts[0])
    one = fit_system(system, Split(*parts[:2], MEASURE, normalizer=normalizer))
    assert one.value > 0.4
    again = Judge(MEASURE).per_query(parts[1], one.model.predict(parts[1]))[MEASURE]
    assert np.nanmean(again) == pytest.approx(one.value, abs=2e-3)


def test_a_comparison(parts):
    how = {"measures": [MEASURE], "scale": "auto"}
    found = compare_systems("made", [parts], ["domination", "rankrls"], **how)
    for outcome in found.outcomes:
        assert outcome.scaled
        model = outcome.chosen.model
        again = Judge(MEASURE).per_query(parts[2], model.predict(parts[2].X))[MEASURE]
        assert np.allclose(again, outcome.per_query[MEASURE], equal_nan=True)


def test_the_model_file_of_the_command(parts, tmp_path):
    files = [tmp_path / f"{name}.txt" for name in ("train", "vali", "test")]
    for part, file in zip(parts, files, strict=True):
        dump(part, file)
    model = tmp_path / "m.json"
    words = ["tune", files[0], "--vali", files[1], "--systems", "domination", "--trials", 1]
    assert main([*map(str, words), "-m", str(model)]) == 0
    study = tune(*parts[:2], systems=["domination"], trials=1)
    assert load_model(model).predict(parts[2].X) == pytest.approx(study.model.predict(parts[2]))
