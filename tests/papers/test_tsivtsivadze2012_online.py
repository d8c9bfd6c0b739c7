import numpy as np
import pytest

from leanrank.data import make_ranking
from leanrank.errors import FileError, InputError
from leanrank.online.simulation import make_collection
from papers import tsivtsivadze2012_online as paper
from papers import tsivtsivadze2012_online_tables as tables

SYSTEMS = tuple(
    paper.Learner(each.name, each.method, each.settings[:2], each.explore, each.most_seeds and 2)
    for each in paper.SYSTEMS
    if each.name in ("SPD", "SPD-MV", "LCRA", "DBGD")
)


@pytest.fixture
def small(monkeypatch):
    """Two folds of made-up data in place of MQ2008; OHSUMED is missing."""

    def read(name, data_dir):
        if name != "MQ2008":
            raise FileError(f"{name} is not here")
        folds = []
        for seed in (0, 1):
            data = make_ranking(n_queries=15, n_features=4, n_levels=3, random_state=seed)
            parts = [data.queries[i : i + 5] for i in (0, 5, 10)]
            folds.append(paper.Fold(make_collection(parts[0]), *parts[1:]))
        return folds

    monkeypatch.setattr(paper, "read_folds", read)
    few = {"seeds": 3, "queries": 150, "systems": SYSTEMS, "tuning_lists": (10, 30)}
    few["users"] = ("perfect", "informational")
    return lambda out=None, **more: paper.run(None, out, **{**few, **more})


def test_a_report_from_the_runs(small, tmp_path):
    said = []
    report = small(tmp_path, say=said.append)
    assert report.notes[0] == "Left out: OHSUMED, as OHSUMED is not here."
    assert "3 seeds, 150 lists per run, five folds; DBGD 2 seeds." in report.notes
    assert len(report.tables) == 1 + 2 * (3 + 3) + 3
    assert [len(table.rows) for table in report.tables[:7]] == [12, 8, 8, 8, 2, 2, 2]
    assert {"report.md", "report.json", "runs.jsonl"} < {path.name for path in tmp_path.iterdir()}
    assert len(said) == 2 * (3 * 4 + 1)
    plot = report.plots["online-mq2008-perfect-0.5"]
    assert list(plot.lines) == ["SPD", "SPD-MV", "LCRA", "DBGD"]
    for name, line in plot.lines.items():
        assert all(low <= y <= high for y, (low, high) in zip(line, plot.bands[name], strict=True))


def test_runs_are_kept_and_not_repeated(small, tmp_path):
    whole = small(tmp_path / "a")
    journal = (tmp_path / "a" / "runs.jsonl").read_bytes().splitlines(keepends=True)
    (tmp_path / "b").mkdir()
    (tmp_path / "b" / "runs.jsonl").write_bytes(b"".join(journal[:9]) + journal[9][:50])
    said = []
    again = small(tmp_path / "b", say=said.append)
    assert len(said) == len(journal) - 9
    assert again.to_dict() == whole.to_dict()
    with pytest.raises(InputError, match="belongs to another run: not the same seeds"):
        small(tmp_path / "a", seeds=4)


def test_lcra_without_agreement_is_spd_mv(small, monkeypatch):
    """The two differ in the agreement only: with none, every difference is zero."""
    same = paper.Learner("LCRA", "lcra", ({"eta0": 0.01, "mu": 0.0},), paper.EXPLORE)
    mv = paper.Learner("SPD-MV", "lcra", ({"eta0": 0.01, "mu": 0.0},), paper.EXPLORE)
    report = small(systems=(SYSTEMS[0], mv, same))
    for table in report.tables[1:7]:
        for _, cells in table.rows:
            assert float(cells[2].ours) == 0.0
            assert cells[4].ours == "1.000"


def test_the_decision():
    rng = np.random.default_rng(0)

    def verdict(shifts):
        cells = {}
        for at, shift in enumerate(shifts):
            noise = rng.normal(size=(2, 25)) * 0.01
            cells[str(at)] = tables._compare(noise[0], noise[1] + shift)
        return tables.decide(cells)

    assert verdict([1, 1, 1, 0]) == (3, 0, 4)
    assert verdict([1, 1, 1, 0]).words == "yes"
    assert verdict([-1, -1, -1, 0]).words == "no, the contrary"
    assert verdict([1, 1, 0, 0]).words == "not in general"
    assert verdict([1, 1, 1, -1]).words == "not in general"


def test_runs_whose_weights_overflow_count_as_zero(small):
    wild = paper.Learner("LCRA", "lcra", ({"eta0": 1e6, "mu": 1e6},), paper.EXPLORE)
    report = small(systems=(*SYSTEMS[:2], wild))
    assert "Runs whose weights overflowed count as zero: of LCRA." in report.notes
    spd, lcra, *_ = report.tables[1].rows[0][1]
    assert float(lcra.ours) < 0.2 * float(spd.ours)


def test_too_little_is_refused(small, monkeypatch):
    with pytest.raises(InputError, match="seeds=1"):
        small(seeds=1)
    with pytest.raises(InputError, match="queries=50"):
        small(queries=50)

    def nothing(name, data_dir):
        raise FileError("not here")

    monkeypatch.setattr(paper, "read_folds", nothing)
    with pytest.raises(FileError, match="neither MQ2008 nor OHSUMED"):
        small()
