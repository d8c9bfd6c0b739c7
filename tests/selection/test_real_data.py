"""Published figures of a system that is in every comparison."""

import pytest

from leanrank.selection import compare_systems
from papers.public_sets import fetch


@pytest.mark.realdata
def test_ranksvm_comes_near_its_published_figures(data_dir):
    """Tables 7 and 9 of Pahikkala et al. (2010), from the distribution of LETOR 4.0."""
    folds = fetch("MQ2008", data_dir=data_dir, download=False)
    how = {"convention": "letor4", "measures": ("map", "mean_ndcg")}
    means = compare_systems("MQ2008", folds.folds(), ["ranksvm"], **how).rows[0].means
    assert means["map"] == pytest.approx(0.4696, abs=0.003)
    assert means["mean_ndcg"] == pytest.approx(0.4832, abs=0.003)
