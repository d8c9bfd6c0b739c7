"""What a notebook and the Python prompt show of results."""

import numpy as np
import pytest

import leanrank
from leanrank.errors import InputError
from leanrank.metrics import compare
from leanrank.model import Model
from leanrank.rankers.path import Path
from leanrank.selection import ComparedSet
from leanrank.selection.candidate import Candidate
from leanrank.selection.compare import Outcome
from leanrank.selection.study import Study


@pytest.fixture(scope="module")
def data():
    return leanrank.make_ranking(n_queries=20, n_features=40, n_informative=4, random_state=0)


@pytest.fixture(scope="module")
def path(data):
    ranker = leanrank.rankers.DominationRanker()
    return ranker.path(data.X, data.y, qid=data.qid, n_alphas=30, validation=data)


@pytest.fixture(scope="module")
def study(data):
    candidates = [
        Candidate(
            name=f"<model {size}>",
            algorithm="domination",
            parameters={},
            model=Model.from_coef(np.r_[np.ones(size), np.zeros(40 - size)]),
            values={"ndcg@10": np.full(20, worth)},
            n_features=size,
            cost=float(size),
        )
        for size, worth in ((2, 0.5), (7, 0.75), (9, 0.6))
    ]
    return Study("ndcg@10", "standard", candidates, candidates[1], data, data, ("ndcg@10",))


def test_a_path_is_short_whatever_its_size(path):
    best = path.best()
    head, line = repr(path).splitlines()
    assert head == f"Path: 30 models of 40 features, 0 to {path.n_selected.max()} used"
    assert f"ndcg@10 {path.measures['ndcg@10'][best]:.4f}" in line
    assert f"with {path.n_selected[best]} features" in line


def test_a_path_without_a_usable_model_can_be_shown():
    one = np.ones(1)
    path = Path(one, np.zeros((1, 3)), one, one, one.astype(int), {"map": np.array([np.nan])})
    assert repr(path) == "Path: 1 model of 3 features, 0 to 0 used"


def test_a_comparison_shows_both_means_and_the_test(data):
    result = compare(data, data.y, -data.y)
    html = result._repr_html_()
    for text in (f"{result.mean_a:.4f}", f"{result.mean_b:.4f}", "randomisation"):
        assert text in html


def test_compared_systems_are_one_table():
    outcomes = [
        Outcome(
            system, 1, Candidate.of(system, {}, Model.from_coef(np.ones(n)), {}, seconds=1.0),
            {"map": np.array(values)}, 0.1,
        )
        for system, values, n in (("domination", [0.5, 0.25], 3), ("ranksvm", [0.5, 0.75], 9))
    ]  # fmt: skip
    compared = ComparedSet("made up", "standard", "map", ("map",), outcomes)
    assert repr(compared) == "ComparedSet: made up, 2 systems on 1 split; best by map: ranksvm"
    html = compared._repr_html_()
    for text in ("Domination Rank", "0.3750", "0.6250"):
        assert text in html


def test_plot_draws_each_result(data, path, study):
    pytest.importorskip("altair")
    ranker = leanrank.rankers.DominationRanker(alpha=0.05).fit(data)
    history = [{"epoch": 1, "ndcg@10": 0.4}, {"epoch": 2, "ndcg@10": 0.5}]
    drawn = [
        leanrank.plot(study), leanrank.plot(path), leanrank.plot(ranker, data),
        leanrank.plot(ranker.to_model(), data), leanrank.plot(history),
    ]  # fmt: skip
    titles = [str(chart.to_dict()) for chart in drawn]
    assert len(set(titles)) == 4
    assert titles[2] == titles[3]


@pytest.mark.parametrize(
    ("thing", "sentence"),
    [
        (3, "an object of type int cannot be drawn: give a study, a path"),
        ([], "an object of type list cannot be drawn"),
        (Model.from_coef([1.0]).explain([[1.0]]), "of type Explanation cannot be drawn: give"),
        (Model.from_coef([1.0]), "drawn on documents"),
    ],
)
def test_what_cannot_be_drawn_is_one_sentence(thing, sentence):
    with pytest.raises(InputError, match=sentence):
        leanrank.plot(thing)


def test_a_study_shows_its_front_and_marks_the_choice(study):
    html = study._repr_html_()
    assert html.count("<tr>") == 1 + len(study.front) == 3
    assert "→ &lt;model 7&gt;" in html
    assert "→ &lt;model 2&gt;" not in html
