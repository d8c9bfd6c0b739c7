import numpy as np
import pytest

from papers.words import make_words


def test_words_follow_zipf_and_rows_have_unit_length():
    data = make_words(3000, 5000, 0.01)
    np.testing.assert_allclose(np.sqrt(data.X.multiply(data.X).sum(axis=1)), 1)
    popularity = np.sort(np.bincount(data.X.indices, minlength=5000))[::-1]
    assert popularity[0] > 20 * popularity[2000]
    assert (data.X.data > 0).all()
    assert data.density == pytest.approx(0.01, rel=0.06)


def test_levels_have_their_shares():
    shares = [0.9, 0.1]
    drawn = [make_words(4000, 500, 0.02, level_shares=shares, seed=seed) for seed in range(8)]
    share = np.mean([np.mean(data.y == 1) for data in drawn])  # one query is easier than another
    assert share == pytest.approx(0.1, abs=0.03)
