from __future__ import annotations

import numpy as np
import pytest

from leanrank import dump_letor, make_ranking
from leanrank.errors import FileError
from papers import pahikkala2010, published
from papers.pahikkala2010 import MEASURES


@pytest.fixture
def small_set(tmp_path):
    """MQ2008 in name and shape, but of made-up documents."""
    for fold in range(1, 6):
        folder = tmp_path / "MQ2008" / f"Fold{fold}"
        folder.mkdir(parents=True)
        for at, part in enumerate(("train", "vali", "test")):
            data = make_ranking(
                n_queries=6, n_features=46, n_informative=3, random_state=10 * fold + at
            )
            dump_letor(data, folder / f"{part}.txt")
    return tmp_path


def test_the_published_tables_are_complete():
    for printed in published("pahikkala2010").values():
        assert list(printed["measures"]) == list(MEASURES)
        for methods in printed["measures"].values():
            assert list(methods) == ["GRankRLS", "RankRLS", "RankSVM"]
            for row in methods.values():
                assert len(row) == 6
                folds = [float(v) for v in row[:5]]
                # averages were taken before rounding
                assert abs(np.mean(folds) - float(row[5])) < 1.1e-4
        for size, features in zip(printed["sizes"], printed["selected"], strict=True):
            assert len(features) == min(size, 10)
            assert len(set(features)) == len(features)


def test_the_experiment_runs_and_is_compared(small_set, tmp_path):
    said = []
    report = pahikkala2010.run(small_set, tmp_path / "out", say=said.append)
    assert said == [f"MQ2008, fold {f} of 5" for f in range(1, 6)]
    titles = [table.title for table in report.tables]
    assert titles == [
        "Table 2: selected features on MQ2008, by fold",
        "Table 7: MAP on MQ2008",
        "Table 8: P@10 on MQ2008",
        "Table 9: MeanNDCG on MQ2008",
        "Table 10: NDCG@10 on MQ2008",
    ]
    assert [table.n_compared for table in report.tables[1:]] == [12] * 4
    assert report.n_different > 20  # other data, other figures
    assert "MQ2007" in report.notes[0]
    assert sorted(report.plots) == ["figure3", "figure4"]
    assert len(report.plots["figure3"].lines) == 11
    assert (tmp_path / "out" / "report.md").exists()


def test_the_other_set_has_its_own_tables(small_set):
    (small_set / "MQ2008").rename(small_set / "MQ2007")
    report = pahikkala2010.run(small_set)
    assert [t.title.partition(":")[0] for t in report.tables] == [
        f"Table {number}" for number in (1, 3, 4, 5, 6)
    ]
    assert sorted(report.plots) == ["figure1", "figure2"]
    assert len(report.tables[0].rows) == 2 + 10  # λ, k, and the ten features that are printed


def test_without_any_data_there_is_a_sentence(tmp_path):
    with pytest.raises(FileError, match="none of MQ2008, MQ2007 is there"):
        pahikkala2010.run(tmp_path)


@pytest.mark.realdata
@pytest.mark.slow
def test_every_figure_comes_out(data_dir):
    if not (data_dir / "MQ2008").is_dir():
        pytest.skip("MQ2008 is not in LEANRANK_DATA")
    report = pahikkala2010.run(data_dir, n_jobs=-1)
    tables = {table.title.partition(":")[0]: table for table in report.tables}
    wanted = ["Table 2", "Table 7", "Table 8", "Table 9", "Table 10"]
    assert sum(tables[name].n_compared for name in wanted) == 27 + 4 * 12
    different = [tables[name].markdown() for name in wanted if tables[name].n_different]
    assert not different, "\n\n".join(different)
