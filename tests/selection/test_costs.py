import numpy as np
import pytest

from leanrank.errors import FileError, InputError
from leanrank.selection import Costs
from leanrank.selection.costs import read_seconds

NAMES = ["bm25", "clicks"]


def test_files_and_tables_agree(tmp_path):
    (tmp_path / "c.csv").write_text("feature,cost\nbm25,0.2ms\n\nclicks,1.5ms\n")
    table = Costs.from_table({"bm25": "0.2ms", "clicks": "1.5ms"}, NAMES)
    for costs in (Costs.read(tmp_path / "c.csv", NAMES), table):
        assert costs.unit == "ms"
        assert costs.each.tolist() == [0.2, 1.5]
        assert costs.of(np.array([0, 1])) == pytest.approx(1.7)
        assert costs.amount("1000ms") == 1000
        assert costs.amount("2") == 2
        with pytest.raises(InputError, match="'1s' is not in ms"):
            costs.amount("1s")
        assert costs.show(1.7) == "1.7ms"


def test_plain_numbers_and_numbers_for_names():
    costs = Costs.from_table({0: 3, "*": 1}, n_features=3)
    assert costs.each.tolist() == [3, 1, 1]
    assert costs.unit == ""
    assert Costs.from_table({"bm25": "3eur", "clicks": 0}, NAMES).amount("4eur") == 4


@pytest.mark.parametrize(
    ("table", "message"),
    [
        ({"bm25": 1}, "'clicks' has no cost .1 have none.: add it"),
        ({"bm25": 1, "clicks": 1, "pagerank": 1}, "no feature has the name 'pagerank'"),
        ({"bm25": "1ms", "clicks": "2eur"}, "costs in eur and ms cannot be compared"),
        ({"bm25": "1ms", "clicks": 2}, "costs in plain numbers and ms cannot be compared"),
        ({"bm25": -1, "clicks": 1}, "'bm25': -1 is no amount"),
        ({"bm25": "cheap", "clicks": 1}, "'cheap' is no amount"),
        ({"bm25": "nan", "clicks": 1}, "is no amount"),
        ({"bm25": "1.5.2", "clicks": 1}, "is no amount"),
    ],
)
def test_tables_that_cannot_be_used(table, message):
    with pytest.raises(InputError, match=message):
        Costs.from_table(table, NAMES)


def test_files_that_cannot_be_used(tmp_path):
    file = tmp_path / "c.csv"
    with pytest.raises(FileError, match="cannot be read"):
        Costs.read(file, NAMES)
    file.write_text("bm25,1\nbm25,2\n")
    with pytest.raises(InputError, match=r"c.csv, line 2: 'bm25' has a cost already"):
        Costs.read(file, NAMES)
    file.write_text("bm25,1,3\n")
    with pytest.raises(InputError, match=r"c.csv, line 1: write a feature, a comma"):
        Costs.read(file, NAMES)


def test_lengths_of_time():
    assert read_seconds("60s") == 60
    assert read_seconds("1h") == 3600
    for wrong in ("0", "soon", "-3s", "3eur", "", "inf"):
        with pytest.raises(InputError, match=r"is no (length of time|amount)"):
            read_seconds(wrong)
