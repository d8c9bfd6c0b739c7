import json

import pytest

from papers import __main__ as front
from papers import pahikkala2010, tsivtsivadze2012
from papers.report import Cell, ComparedTable, Plot, Report
from tests.cli.conftest import Ran


@pytest.fixture
def run(capsys):
    """Run ``python -m papers`` in this process; give exit code, output and errors."""

    def run_command(*words):
        capsys.readouterr()
        code = front.main([str(word) for word in words])
        return Ran(code, *capsys.readouterr())

    return run_command


@pytest.fixture
def small_paper(monkeypatch):
    """The paper with one small table: what is tested here is what people see."""

    def fake(data_dir, out_dir, *, say, n_jobs):
        say("working")
        rows = (
            ("1", (Cell("0.4311", "0.4311"), Cell("0.45"))),
            ("2", (Cell("0.5", "0.6"), Cell("1"))),
        )
        report = Report("pahikkala2010", "T", [ComparedTable("Table 7: MAP", ("G", "SVM"), rows)])
        report.plots["figure3"] = Plot("F", "k", "MAP", [1.0, 2.0], {"a": [0.1, 0.2]})
        report.notes.append(f"Data from {data_dir}.")
        report.write(out_dir)
        return report

    monkeypatch.setattr(pahikkala2010, "run", fake)


def test_tables_and_files(run, small_paper, tmp_path):
    done = run("pahikkala2010", "--data", "here", "--out", tmp_path / "out")
    assert done.code == 0
    assert "Table 7: MAP" in done.out
    assert done.out.split("\n")[4].split() == ["1", "0.4311", "0.4311", "0.45"]
    assert "0.6 (+0.1)" in done.out
    assert "1 of 2 published figures" in done.out
    assert "Data from here." in done.out
    assert sorted(p.name for p in (tmp_path / "out").iterdir()) == [
        "figure3.svg",
        "report.json",
        "report.md",
    ]


def test_json(run, small_paper, tmp_path):
    done = run("pahikkala2010", "--json", "--out", tmp_path)
    kept = json.loads(done.out)
    assert (kept["compared"], kept["different"]) == (2, 1)


def test_unknown_papers_and_missing_data(run, tmp_path):
    done = run("knuth1968")
    assert done.code == 2
    assert "no paper 'knuth1968'" in done.err
    done = run("pahikkala2010", "--data", tmp_path, "--out", tmp_path / "out")
    assert done.code == 2
    assert "none of MQ2008, MQ2007 is there" in done.err
    assert not (tmp_path / "out").exists()


def test_splits_are_for_papers_that_have_them(run, small_paper, tmp_path, monkeypatch):
    done = run("pahikkala2010", "--splits", "3", "--out", tmp_path / "out")
    assert done.code == 2
    assert "has no splits: leave out --splits" in done.err

    def fake(data_dir, out_dir, *, say, n_jobs, splits):
        rows = (("SPD", (Cell(None, f"{splits} splits"),)),)
        return Report("tsivtsivadze2012", "T", [ComparedTable("Own", ("MAP",), rows)])

    monkeypatch.setattr(tsivtsivadze2012, "run", fake)
    done = run("tsivtsivadze2012", "--splits", "3", "--out", tmp_path / "out")
    assert done.code == 0
    lines = [line.split() for line in done.out.split("\n")]
    assert ["MAP"] in lines  # one column where nothing was published
    assert ["SPD", "3", "splits"] in lines


def test_a_table_too_wide_for_the_screen_puts_our_figures_below():
    from rich.console import Console

    columns = tuple(f"measure {n}" for n in range(6))
    cells = tuple(Cell("0.4311", "0.4311" if n else "0.5") for n in range(6))
    alone = tuple(Cell(None, "0.1234") for _ in range(6))
    table = ComparedTable("T", columns, (("RankSVM", cells), ("new", alone)))
    console = Console(width=80, record=True)
    console.print(front.fitting(console, table))
    printed = console.export_text(clear=False)
    labels = [line[:10].strip() for line in printed.splitlines()[2:]]
    assert [label for label in labels if label] == ["RankSVM", "ours", "new"]
    assert "(+0.0689)" in printed
    assert max(map(len, printed.splitlines())) <= 80
    wide = Console(width=200, record=True)
    wide.print(front.fitting(wide, table))
    assert wide.export_text().count("ours") == 6


def test_the_experiment_with_clicks(run, small_paper, tmp_path, monkeypatch):
    from papers import tsivtsivadze2012_online

    def fake(data_dir, out_dir, *, say, n_jobs, seeds=25, queries=10_000):
        rows = (("SPD", (Cell(None, f"{seeds} seeds, {queries} lists"),)),)
        return Report("x", "T", [ComparedTable("Own", ("NDCG",), rows)], conclusion="Not so.")

    monkeypatch.setattr(tsivtsivadze2012_online, "run", fake)
    monkeypatch.chdir(tmp_path)
    done = run("tsivtsivadze2012", "--online", "--seeds", "3")
    assert "3 seeds, 10000 lists" in done.out
    assert "Not so.\nWritten to reproduce-tsivtsivadze2012-online" in done.out
    done = run("tsivtsivadze2012", "--online", "--splits", "3")
    assert "tsivtsivadze2012 --online has no splits: leave out --splits" in done.err
    done = run("tsivtsivadze2012", "--queries", "300")
    assert "tsivtsivadze2012 has no queries: leave out --queries" in done.err
    done = run("pahikkala2010", "--online")
    assert "pahikkala2010 has no experiment with clicks: leave out --online" in done.err
