from __future__ import annotations

import json
from xml.etree import ElementTree

import numpy as np
import pytest

from leanrank.errors import FileError, InputError
from leanrank.reproduce import PAPERS, get_paper
from leanrank.reproduce.plots import Plot
from leanrank.reproduce.report import Cell, ComparedTable, Report


@pytest.fixture
def report():
    table = ComparedTable(
        title="Table 1",
        columns=("A", "B"),
        rows=(
            ("1", (Cell("0.10", "0.10"), Cell("0.5"))),
            ("2", (Cell("0.20", "0.23"), Cell("0.6"))),
            ("3", (Cell(), Cell())),
        ),
    )
    plot = Plot(
        "A < B & C", "k", "MAP", [1, 2, 3], {"one": [0.1, 0.2, 0.3], "two": [0.3, 0.3, 0.2]}
    )
    return Report("paper", "A paper", [table], {"figure1": plot}, ["Left out: nothing."])


def test_counting_what_agrees(report):
    assert (report.n_compared, report.n_different) == (2, 1)
    assert "1 of 2 published figures" in report.summary


def test_differences_stand_out(report):
    text = report.markdown()
    assert "| 2 | 0.20 | **0.23 (+0.03)** | 0.6 |" in text
    assert "| 1 | 0.10 | 0.10 | 0.5 |" in text
    assert "|  | A, published | ours | B, published |" in text
    assert Cell("39", "none").texts() == ("39", "none (differs)")


def test_what_is_written(report, tmp_path):
    files = report.write(tmp_path / "new" / "folder")
    assert sorted(f.name for f in files) == ["figure1.svg", "report.json", "report.md"]
    kept = json.loads((tmp_path / "new" / "folder" / "report.json").read_text())
    assert kept["tables"][0]["rows"][1] == {
        "row": "2",
        "published": ["0.20", "0.6"],
        "ours": ["0.23", None],
    }
    assert kept["plots"]["figure1"]["lines"]["one"] == [0.1, 0.2, 0.3]
    (tmp_path / "file").write_text("")
    with pytest.raises(FileError, match="cannot be made a directory"):
        report.write(tmp_path / "file")


@pytest.mark.parametrize("low", [0.0, 0.45, -3.0, 1e-7])
@pytest.mark.parametrize("span", [0.0, 1e-4, 0.03, 7.0])
def test_a_plot_is_valid_and_inside_its_frame(low, span):
    values = (low + span * np.linspace(0, 1, 5)).tolist()
    svg = Plot("t", "x", "y", [1, 2, 3, 4, 5], {"a": values, "b": values[::-1]}).svg()
    root = ElementTree.fromstring(svg)
    lines = root.findall("{http://www.w3.org/2000/svg}polyline")
    assert len(lines) == 2
    points = [tuple(map(float, p.split(","))) for p in lines[0].attrib["points"].split()]
    assert len(points) == 5
    assert all(60 <= x <= 620 and 35 <= y <= 375 for x, y in points)
    assert [y for _, y in points] == sorted((y for _, y in points), reverse=True)  # up is more


def test_finding_papers():
    for name in PAPERS:
        assert callable(get_paper(name).run)
    with pytest.raises(InputError, match="no paper 'knuth1968'"):
        get_paper("knuth1968")
