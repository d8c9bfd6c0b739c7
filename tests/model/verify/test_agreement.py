"""Orders that change, against brute force."""

from itertools import pairwise

import numpy as np
import pytest

from leanrank.model.verify.engines import compare_scores, disorder


def by_pairs(model, found):
    worst = 0.0
    for i in range(len(model)):
        for j in range(len(model)):
            if model[i] > model[j] and not found[i] > found[j]:
                worst = max(worst, model[i] - model[j])
    return worst


@pytest.mark.parametrize("seed", range(20))
def test_disorder_is_that_of_all_pairs(seed):
    rng = np.random.default_rng(seed)
    ptr = np.array([0, 1, 9, 9, 30])
    model = rng.integers(-4, 5, 30) / 2  # many ties
    found = np.where(rng.uniform(size=30) < 0.7, model, rng.integers(-4, 5, 30) / 2)
    expected = [by_pairs(model[a:b], found[a:b]) for a, b in pairwise(ptr)]
    assert disorder(model, found, ptr).tolist() == expected


def test_a_tie_where_the_model_has_none_is_a_change():
    model, ptr = np.array([1.0, 2.0]), np.array([0, 2])
    assert compare_scores(np.zeros(2), model, model, ptr).orders_changed == 1
    assert compare_scores(model, model, np.zeros(2), ptr).orders_changed == 0


def test_scores_that_are_not_numbers_are_a_change():
    model, ptr = np.array([1.0, 2.0]), np.array([0, 2])
    found = compare_scores(np.array([1.0, np.nan]), model, model, ptr)
    assert not found.agrees
