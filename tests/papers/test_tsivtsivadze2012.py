from __future__ import annotations

import numpy as np
import pytest

from leanrank import dump_letor, make_ranking
from leanrank.errors import FileError, InputError
from papers import tsivtsivadze2012 as paper
from papers import tsivtsivadze2012_protocol as protocol
from papers.tsivtsivadze2012_protocol import LCRA, SPD, SPD_MV, SYSTEMS, Grid, run_split

QUICK = Grid(eta0=(0.1,), alpha=(1e-3, 1e-1), pull=(1e-2, 1.0), labelled_pairs=200)


@pytest.fixture
def small_set(tmp_path):
    """OHSUMED in name and shape, but of made-up documents."""
    for fold in range(1, 6):
        folder = tmp_path / "OHSUMED" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for part in ("train", "vali", "test"):
            data = make_ranking(
                n_queries=6, n_features=45, n_informative=5, docs_per_query=40, random_state=fold
            )
            qid = [f"{fold}{q}" for q in data.qid]
            dump_letor(data.__class__(data.X, data.y, qid), folder / f"{part}.txt")
    return tmp_path


def test_the_grids_are_those_that_were_stated():
    assert [len(s.settings()) for s in SYSTEMS] == [3 * 4, 3 * 4] + [3 * 4 * 4] * 4
    assert [s.name for s in SYSTEMS] == [
        "SPD",
        "SPD-MV",
        "LCRA-1-1",
        "LCRA-1-5",
        "LCRA-1-10",
        "LCRA-5-50",
    ]


def test_the_experiment_runs(small_set, tmp_path):
    said = []
    report = paper.run(small_set, tmp_path / "out", say=said.append, splits=2, grid=QUICK)
    assert len(said) == 2 * len(paper.CURVE)
    assert report.tables[0].title.startswith("MAP on OHSUMED")
    rows = {label: [cell.ours for cell in cells] for label, cells in report.tables[0].rows}
    assert list(rows) == [system.name for system in SYSTEMS]
    for texts in rows.values():
        assert 0.3 < float(texts[0]) <= 1.0
    assert rows["SPD"][2:] == ["", "", "", ""]
    assert float(rows["LCRA-1-1"][3]) <= 1.0
    assert "MQ2008" in report.notes[0]
    assert (tmp_path / "out" / "labelled-ohsumed.svg").exists()
    text = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "| LCRA-5-50 |" in text
    assert "OHSUMED: " in report.summary
    again = paper.run(small_set, splits=2, n_jobs=2, grid=QUICK)
    assert again.to_dict() == report.to_dict()  # whatever the threads


def test_hidden_labels_are_hidden():
    """Change the labels that were taken away: nothing may change."""
    data = make_ranking(n_queries=30, n_features=8, docs_per_query=20, random_state=0)
    seen = []
    kept = protocol._block

    def spy(train, labelled, queries):
        seen.append((train.query_ids, labelled))
        return kept(train, labelled, queries)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(protocol, "_block", spy)
        before = run_split(data, "letor4", 0.3, 0, SYSTEMS, QUICK)
    ids, labelled = seen[0]
    y = data.y.copy()
    at = 0
    for name in ids:
        rows = np.flatnonzero(data.qid == name)
        mine = labelled[at : at + len(rows)]
        y[rows[~mine]] = 2.0 - y[rows[~mine]]
        at += len(rows)
    assert not np.array_equal(y, data.y)
    assert at == len(labelled)
    after = run_split(data.replace(y=y), "letor4", 0.3, 0, SYSTEMS, QUICK)
    assert before == after
    assert abs(labelled.mean() - 0.3) < 0.01


def test_labels_that_make_no_pair_give_no_figure():
    data = make_ranking(n_queries=10, n_features=4, docs_per_query=5, random_state=0)
    assert run_split(data, "letor4", 0.02, 0, (SPD,), QUICK) == {}


def test_systems_differ_only_by_what_they_say():
    data = make_ranking(n_queries=30, n_features=8, docs_per_query=20, random_state=0)
    found = run_split(data, "letor4", 0.2, 1, (SPD, SPD_MV, LCRA[1, 1]), QUICK)
    alone = run_split(data, "letor4", 0.2, 1, (LCRA[1, 1],), QUICK)
    assert found["LCRA-1-1"] == alone["LCRA-1-1"]
    assert found["SPD"].setting[2] == found["SPD-MV"].setting[2] == 0.0


def test_a_model_without_order_is_never_chosen():
    data = make_ranking(n_queries=5, n_features=3, random_state=0)
    for w in (None, np.zeros(3), np.array([np.nan, 1.0, 1.0])):
        assert protocol._map(w, data, "letor3") == -1.0


def test_the_paired_test_is_careful():
    d = np.random.default_rng(0).normal(0.01, 0.02, 20)
    t, p = paper.paired_test(d)
    plain = d.mean() / (d.std(ddof=1) / np.sqrt(20))
    assert t == pytest.approx(plain / np.sqrt(1 + 20 * 3 / 7))
    from scipy.stats import t as student

    assert p == pytest.approx(2 * student.sf(abs(t), 19))
    assert paper.paired_test(np.zeros(4)) == (0.0, 1.0)


def test_without_data_or_splits_there_is_a_sentence(tmp_path):
    with pytest.raises(FileError, match="none of OHSUMED, MQ2008 is there"):
        paper.run(tmp_path)
    with pytest.raises(InputError, match="at least 2"):
        paper.run(tmp_path, splits=1)
