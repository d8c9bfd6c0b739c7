"""What is odd about data is found, and nothing else."""

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank import RankingData, make_ranking
from leanrank.report import check_data


@pytest.fixture
def data():
    return make_ranking(40, (5, 20), 6, random_state=0)


def found(*parts, **options):
    return {one.kind: one for one in check_data(*parts, **options)}


def with_column(data, column):
    return data.replace(X=np.column_stack([data.X, column]))


def test_ordinary_data_are_not_complained_about(data):
    assert check_data(data.queries[:20], data.queries[20:]) == []


@pytest.mark.parametrize("sign", [1.0, -1.0])
@pytest.mark.parametrize("sparse", [False, True])
def test_a_feature_made_from_the_labels_is_a_leak(data, sign, sparse):
    noise = np.random.default_rng(1).normal(size=len(data))
    leaky = with_column(data, sign * data.y + 1e-3 * noise)
    if sparse:
        leaky = leaky.replace(X=csr_array(leaky.X))
    one = found(leaky)["leak"]
    assert one.grave
    assert one.features == (6,)
    assert one.title.startswith("f7 ")


def test_a_good_feature_is_no_leak(data):
    noise = np.random.default_rng(1).normal(size=len(data))
    assert "leak" not in found(with_column(data, data.y + 0.7 * noise))


def test_easy_measures_do_not_make_leaks(data):
    """With one label per query nearly everywhere, any order is nearly perfect."""
    y = np.ones(len(data))
    y[data.query_ptr[:-1]] = 0
    assert "leak" not in found(data.replace(y=y), measure="map")


def test_queries_in_both_parts_are_named(data):
    one = found(data.queries[:20], data.queries[15:])["overlap"]
    assert one.grave
    assert one.title.startswith("5 query ids")
    assert "20%" in one.text
    assert "overlap" not in found(data, data)  # one part that judges itself


@pytest.mark.parametrize("sparse", [False, True])
def test_features_that_do_not_vary_within_queries(data, sparse):
    per_query = np.repeat(np.arange(data.n_queries, dtype=float), np.diff(data.query_ptr))
    X = np.column_stack([data.X, per_query, np.zeros(len(data)), np.full(len(data), 3.0)])
    one = found(data.replace(X=csr_array(X) if sparse else X))["constant"]
    assert one.features == (6, 7, 8)
    assert not one.grave


def test_idle_queries(data):
    y = np.zeros(len(data))
    y[0] = 1
    kinds = found(data.replace(y=y))
    assert kinds["idle"].title.startswith("39 of 40 training queries")


def test_nothing_to_look_at_is_no_error():
    empty = RankingData(np.zeros((0, 3)), [], qid=[])
    assert check_data(empty) == []
    assert "idle" in found(RankingData([[1.0]], [0], qid=["a"]))


def test_the_gravest_come_first(data):
    leaky = with_column(with_column(data, np.ones(len(data))), data.y)
    assert [one.kind for one in check_data(leaky)] == ["leak", "constant"]
