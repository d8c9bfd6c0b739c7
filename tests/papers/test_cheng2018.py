from __future__ import annotations

import json

import numpy as np
import pytest

from leanrank.data import dump_letor, make_ranking
from leanrank.errors import FileError
from leanrank.execution import make_executor
from leanrank.metrics import evaluate
from leanrank.registry import Space
from papers import cheng2018, get_paper, published
from papers.cheng2018 import SETS, learn
from papers.cheng2018_systems import MEANS, PLAIN, TableRow
from papers.public_sets import fetch

PRINTED = published("cheng2018")
SMALL = TableRow("MinBatSRank", "minbatsrank", {"eta0": (1.0, 0.1), "alpha": (0.3, 0.05)}, True)
SYSTEMS = (
    TableRow("SparseRank", "sparserank", {"alpha": (0.1, 0.01)}, about="a few"),
    TableRow("MinBatSRank, plain sums", "minbatsrank", {"eta0": (0.1,), "alpha": (1e9, 20.0)},
           True, {"relative": False, "normalize": "none"}),
    SMALL,
    TableRow("Nonfea", "minbatsrank", {"eta0": (1e9,), "alpha": (0.0,)}, True,
           {"rates": "uniform"}),
    TableRow("ListNet", "listnet", {"alpha": (0.01,)}, fixed={"l1_ratio": 0.0}),
)  # fmt: skip


@pytest.fixture(scope="module")
def public_sets(tmp_path_factory):
    """A tiny OHSUMED, made up."""
    folder = tmp_path_factory.mktemp("data")
    write_set(folder, "OHSUMED", 45, 3)
    return folder


def write_set(folder, name, n_features, n_levels):
    for fold in range(1, 6):
        (folder / name / f"Fold{fold}").mkdir(parents=True)
        data = make_ranking(
            45, 14, n_features, n_informative=3, n_levels=n_levels, random_state=fold
        )
        for at, part in enumerate(("train", "vali", "test")):
            file = folder / name / f"Fold{fold}" / f"{part}.txt"
            dump_letor(data.queries[15 * at : 15 * (at + 1)], file)


@pytest.fixture(scope="module")
def report(public_sets, tmp_path_factory):
    out = tmp_path_factory.mktemp("out")
    said = []
    result = cheng2018.run(public_sets, out, say=said.append, seeds=(0, 1), systems=SYSTEMS)
    assert said == [f"OHSUMED: {s.label}" for s in SYSTEMS]
    return result, out


def test_rows_stand_beside_the_printed_ones(report):
    accuracy, sparsity, seconds = report[0].tables
    rows = {}
    for label, cells in accuracy.rows:
        rows.setdefault(label, cells)
    assert accuracy.columns == ("N@1", "N@3", "N@5", "N@10", "MAP", "MAP ≥2")
    printed = PRINTED["accuracy"]["OHSUMED"]
    for label, name in (("MinBatSRank, plain sums", "MinBatSRank"), ("SparseRank", "SparseRank")):
        assert [c.published for c in rows[label][:5]] == printed[name]
        assert rows[label][5].published is None
    assert all(c.published is None for c in rows["MinBatSRank"])
    assert {c.ours for c in rows["Nonfea"]} == {"diverges"}
    labels = [label for label, _ in accuracy.rows]
    assert labels.count("   over seeds") == 2  # of the two that have chance in them and a model
    assert report[0].n_compared == 0
    for table, figures in ((sparsity, PRINTED["sparsity"]), (seconds, PRINTED["seconds"])):
        assert table.columns == SETS
        found = dict(table.rows)
        assert found["SparseRank"][3].published == figures["SparseRank"][3]
        assert [c.ours is None for c in found["SparseRank"]] == [True, True, True, False]
        assert found["Nonfea"][3].ours is None


def test_what_is_written(report):
    result, out = report
    assert {f.name for f in out.iterdir()} == {
        "report.md",
        "report.json",
        "figure1-ohsumed.svg",
        "figure2-ohsumed.svg",
    }
    text = (out / "report.md").read_text(encoding="utf-8")
    for name in ("TD2004", "NP2004", "HP2004"):
        assert f"Left out: {name}, as {name} is not in" in text
    assert "10 of 20 of MinBatSRank, plain sums" in text  # 2 seeds × 5 folds at λ = 1e9
    assert "10 of 10 of Nonfea" in text
    assert "SparseRank: a few." in text
    lines = json.loads((out / "report.json").read_text(encoding="utf-8"))["plots"]
    assert set(lines["figure1-ohsumed"]["lines"]) == {"MinBatSRank", "ListNet"}
    assert set(lines["figure2-ohsumed"]["lines"]) == {"MinBatSRank", "plain sums"}
    assert "MinBatSRank on OHSUMED: MAP" in result.summary


def test_choice_and_measures_against_brute_force(public_sets):
    from leanrank.rankers import MinBatSRank

    folds = list(fetch("OHSUMED", data_dir=public_sets, download=False).folds())
    outcome = learn(SMALL, folds, (3, 4), make_executor(2))
    assert (outcome.n_models, outcome.n_unusable) == (5 * 2 * 4, 0)
    for at, seed in enumerate((3, 4)):
        maps, strict, used = [], [], []
        for train, vali, test in folds:
            best, quality = None, -1.0
            for gamma in (1.0, 0.1):
                for alpha in (0.3, 0.05):
                    r = MinBatSRank(alpha, eta0=gamma, random_state=seed).fit(train)
                    names = ["map", "ndcg@10"]
                    found = evaluate(vali, r.predict(vali), measures=names, convention="letor3")
                    if sum(found.means.values()) > quality:
                        best, quality = r, sum(found.means.values())
            scores = best.predict(test)
            maps.append(evaluate(test, scores, measures="map", convention="letor3")["map"])
            strict.append(evaluate(test, scores, measures="map", convention="letor3", rel=2)["map"])
            used.append(best.sparsity_)
        assert outcome.measures["map"][at] == pytest.approx(np.mean(maps), abs=1e-12)
        assert outcome.measures["map, label 2"][at] == pytest.approx(np.mean(strict), abs=1e-12)
        assert outcome.sparsity[at] == pytest.approx(np.mean(used))
    assert outcome.seconds > 0
    assert set(outcome.chosen_by) == {"map", "ndcg@10"}


def test_the_grids_are_the_papers(public_sets):
    cells = [{**PLAIN.fixed, **point} for point in Space("", {}, PLAIN.grid).settings()]
    assert {c["eta0"] for c in cells} == {2.0**e for e in range(-10, 2)}
    assert {c["alpha"] for c in cells} == {2.0**e for e in range(-2, 16)}
    assert len(cells) == 12 * 18
    assert all(c["normalize"] == "none" and not c["relative"] for c in cells)
    assert {s.label for s in cheng2018.SYSTEMS} >= {
        "SparseRank",
        "FenchelRank",
        "RSRank",
        "ListNet",
        "AdaRank-NDCG",
        "RankSVM-struct",
    }


def test_a_set_of_two_levels(tmp_path):
    write_set(tmp_path, "TD2004", 64, 2)
    report = cheng2018.run(tmp_path, seeds=(0, 1), systems=[SMALL])
    accuracy, sparsity, _ = report.tables
    assert accuracy.title == "Table 2: ranking accuracy on TD2004, mean of five folds"
    (_, cells), (_, spread) = accuracy.rows
    assert float(cells[4].ours) > 0.3
    assert cells[5].ours is spread[5].ours is None  # no label of 2
    assert [c.ours is None for c in dict(sparsity.rows)["MinBatSRank"]] == [True, True, False, True]
    assert set(report.plots) == {"figure1-td2004", "figure2-td2004"}
    assert not any("On OHSUMED" in note for note in report.notes)


def test_no_data(tmp_path):
    with pytest.raises(FileError, match="none of HP2004, NP2004, TD2004, OHSUMED is there"):
        get_paper("cheng2018").run(tmp_path)


def test_ohsumed_reaches_the_expected_figures(data_dir):
    try:
        folds = list(fetch("OHSUMED", data_dir=data_dir, download=False).folds())
    except FileError as error:
        pytest.skip(str(error))
    few = TableRow(
        MEANS.label,
        MEANS.ranker,
        {"eta0": (0.5, 0.125), "alpha": (0.5, 0.35, 0.25, 0.18)},
        True,
    )
    outcome = learn(few, folds, (0, 1, 2), make_executor(2))
    assert outcome.measures["map"].mean() >= 0.445
    assert outcome.measures["ndcg@10"].mean() >= 0.445
    assert outcome.sparsity.mean() <= 0.40
