"""What a notebook shows of a ranker."""

import numpy as np
import pytest
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from leanrank import make_ranking
from leanrank.rankers import DominationRanker, KernelRankRLS, RankBoost

HOSTILE = "<img src=x onerror=alert(1)>"


@pytest.fixture(scope="module")
def data():
    names = [HOSTILE, "b", "c", "d"]
    return make_ranking(20, 8, n_features=4, random_state=0).replace(feature_names=names)


@pytest.mark.parametrize("ranker", [DominationRanker(alpha=0.01), RankBoost(n_rounds=10)])
def test_a_fitted_ranker_shows_its_weights(ranker, data):
    html = ranker.fit(data)._repr_html_()
    assert "<table" in html
    assert type(ranker).__name__ in html
    assert HOSTILE not in html
    assert "&lt;img" in html
    for name in map(str, ranker.to_model().weights):
        assert name == HOSTILE or f">{name}<" in html
    assert ranker._repr_mimebundle_()["text/html"] == html


def test_before_fit_scikit_learn_shows_the_parameters():
    assert "DominationRanker" in DominationRanker(alpha=0.5)._repr_html_()
    assert "<table" in DominationRanker()._repr_html_() or "sk-" in DominationRanker()._repr_html_()


def test_a_model_without_weights_is_shown_as_before_fit(data):
    html = KernelRankRLS(kernel="rbf").fit(data)._repr_html_()
    assert "sk-" in html


def test_a_pipeline_still_shows_its_diagram(data):
    pipeline = make_pipeline(StandardScaler(), DominationRanker(alpha=0.01))
    pipeline.fit(data.X, data.y, dominationranker__qid=data.qid)
    assert "StandardScaler" in pipeline._repr_html_()


def test_many_weights_are_cut_off():
    data = make_ranking(30, 10, n_features=40, random_state=1)
    html = DominationRanker(alpha=1e-4).fit(data)._repr_html_()
    assert html.count("<tr>") == 1 + 15
    assert "the 15 largest shown" in html
    assert np.isfinite(len(html))
