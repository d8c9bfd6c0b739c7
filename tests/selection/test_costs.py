import numpy as np
import pytest

from leanrank.errors import FileError, InputError
from leanrank.selection.costs import feature_costs, read_costs, read_seconds

NAMES = ["bm25", "clicks"]


def test_files_and_tables_agree(tmp_path):
    (tmp_path / "c.csv").write_text("feature,cost\nbm25,0.2\n\nclicks,1.5\n")
    assert read_costs(tmp_path / "c.csv") == {"bm25": 0.2, "clicks": 1.5}
    assert feature_costs({"bm25": 0.2, "clicks": 1.5}, NAMES, 2).tolist() == [0.2, 1.5]
    assert feature_costs(np.array([0.2, 1.5]), NAMES, 2).tolist() == [0.2, 1.5]


def test_numbers_for_names(tmp_path):
    assert feature_costs(None, None, 3) is None
    assert feature_costs({0: 3, "*": 1}, None, 3).tolist() == [3, 1, 1]
    (tmp_path / "c.csv").write_text("0,3\n*,1\n")
    assert feature_costs(read_costs(tmp_path / "c.csv"), None, 3).tolist() == [3, 1, 1]


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"bm25": 1}, "'clicks' has no cost .1 have none.: add it"),
        ({"bm25": 1, "clicks": 1, "pagerank": 1}, "has the feature 'pagerank'"),
        ({"bm25": -1, "clicks": 1}, "costs must be 2 numbers, at least 0"),
        ({"bm25": "1ms", "clicks": 1}, "'1ms' for the feature 'bm25': give a number"),
        ([1.0], "costs must be 2 numbers, at least 0"),
    ],
)
def test_tables_that_cannot_be_used(table, message):
    with pytest.raises(InputError, match=message):
        feature_costs(table, NAMES, 2)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("bm25,1\nbm25,2\n", r"c.csv, line 2: 'bm25' has a cost already"),
        ("bm25,1,3\n", r"c.csv, line 1: write a feature, a comma"),
        ("bm25,1ms\n*,2\n", r"c.csv, line 1: the cost '1ms' is not a finite number"),
        ("bm25,1\n*,nan\n", r"c.csv, line 2: the cost 'nan' is not a finite number"),
    ],
)
def test_files_that_cannot_be_used(tmp_path, text, message):
    file = tmp_path / "c.csv"
    file.write_text(text)
    with pytest.raises(InputError, match=message):
        read_costs(file)
    with pytest.raises(FileError, match=r"c2\.csv: there is no such file"):
        read_costs(tmp_path / "c2.csv")


def test_lengths_of_time():
    assert read_seconds("60s") == 60
    assert read_seconds("1h") == 3600
    for wrong in ("0", "soon", "-3s", "3eur", "", "inf"):
        with pytest.raises(InputError, match=r"is no length of time"):
            read_seconds(wrong)
