from __future__ import annotations

import json
import sys
from xml.etree import ElementTree

import pytest

from leanrank.errors import FileError, InputError
from papers import PAPERS, get_paper
from papers.report import Cell, ComparedTable, Plot, Report, beside


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
    with pytest.raises(FileError, match="cannot create this directory"):
        report.write(tmp_path / "file")


def test_a_plot_is_drawn():
    pytest.importorskip("altair")
    pytest.importorskip("vl_convert")
    svg = Plot("A < B", "x", "y", [1, 2, 3], {"a": [1.0, 2.0, 3.0], "b": [3.0, 2.0, 2.5]}).svg()
    root = ElementTree.fromstring(svg)
    assert "A < B" in "".join(root.itertext())
    drawn = [p for p in root.iter("{http://www.w3.org/2000/svg}path")
             if p.attrib.get("aria-roledescription") == "line mark"]  # fmt: skip
    assert len(drawn) == 2


def test_without_the_packages_that_draw_the_tables_are_written(report, tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "altair", None)
    files = report.write(tmp_path)
    assert sorted(f.name for f in files) == ["report.json", "report.md"]
    assert "not drawn: drawing a chart needs the package 'altair'" in report.notes[-1]


def test_figures_from_other_data_are_not_compared(report):
    table = ComparedTable("T", ("A", "B"), (("1", (beside("0.5", "0.6"), beside(None, "1"))),))
    assert table.n_compared == 0
    assert table.markdown().endswith("|  | A, published | ours | B |\n| --- | --- | --- | --- |\n"
                                     "| 1 | 0.5 | 0.6 | 1 |")  # fmt: skip


def test_finding_papers():
    for name in PAPERS:
        assert callable(get_paper(name).run)
    with pytest.raises(InputError, match="no paper 'knuth1968'"):
        get_paper("knuth1968")
