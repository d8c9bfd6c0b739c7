"""Published figures of a system that is in every comparison."""

import pytest

from leanrank.selection import compare_systems
from papers.public_sets import fetch


@pytest.mark.realdata
def test_ranksvm_comes_near_its_published_figures(data_dir):
    """Tables 7 and 9 of Pahikkala et al. (2010), from the distribution of LETOR 4.0."""
    folds = fetch("MQ2008", data_dir=data_dir, download=False)
    sets = {"MQ2008": ("letor4", folds.folds())}
    found = compare_systems(sets, ["ranksvm"], measures=("map", "mean_ndcg"))
    means = found[0].rows[0].means
    assert means["map"] == pytest.approx(0.4696, abs=0.003)
    assert means["mean_ndcg"] == pytest.approx(0.4832, abs=0.003)
