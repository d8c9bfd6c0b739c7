from __future__ import annotations

import json

import numpy as np
import pytest
from scipy.sparse import csr_array

from leanrank.data import dump_letor, make_ranking
from leanrank.metrics import evaluate
from leanrank.rankers import DominationRanker
from papers import get_paper, published
from papers.stevens2013_images import ImageSizes, make_clicks
from papers.stevens2013_letor import VARIANTS, fit_variant
from papers.stevens2013_text import l1_logistic
from papers.stevens2013_topics import MEASURES, cut, measure

SMALL = ImageSizes(n_documents=300, n_features=150, n_queries=3, density=0.1)


@pytest.fixture
def public_sets(tmp_path):
    """A tiny MQ2008 and a tiny Reuters-21578, made up."""
    for fold in range(1, 6):
        folder = tmp_path / "MQ2008" / f"Fold{fold}"
        folder.mkdir(parents=True)
        data = make_ranking(45, 12, 46, n_informative=3, n_levels=3, random_state=fold)
        for at, part in enumerate(("train", "vali", "test")):
            dump_letor(data.queries[15 * at : 15 * (at + 1)], folder / f"{part}.txt")
    rng = np.random.default_rng(0)
    words = {"grain": "wheat corn harvest", "oil": "crude barrel opec", "money": "bank rate yen"}
    with open(tmp_path / "reuters21578.jsonl", "w", encoding="utf-8") as stream:
        for number in range(160):
            topics = [t for t in words if rng.random() < 0.35] if number % 8 else []
            said = [w for t in topics for w in rng.choice(words[t].split(), 3)]
            said += rng.choice(["the", "of", "and", "said", "market", "year"], 6).tolist()
            article = {
                "id": number,
                "lewissplit": "TRAIN" if number % 3 else "TEST",
                "has_topics": "YES",
                "topics": topics,
                "title": "",
                "body": " ".join(rng.permutation(said).tolist()),
            }
            stream.write(json.dumps(article) + "\n")
    return tmp_path


def test_all_tables(public_sets, tmp_path):
    said = []
    report = get_paper("stevens2013").run(
        public_sets, tmp_path / "out", say=said.append, shape=SMALL
    )
    ranks, images, text = report.tables
    assert report.n_compared == 0  # other data: nothing to match
    assert "1.1" in ranks.title
    for _, cells in ranks.rows:
        assert sum(float(cell.ours) for cell in cells) == pytest.approx(21.0, abs=0.03)
    assert [row for row, _ in images.rows] == list(published("stevens2013")["images"])
    assert all(cell.ours for _, cells in images.rows for cell in cells)
    assert [row for row, _ in text.rows] == [
        "PAMIR",
        "Domination Rank",
        "ℓ1 logistic",
    ]
    for _, cells in text.rows:
        values = [float(cell.ours) for cell in cells]
        assert values[0] > 0.9  # each topic has words of its own
        assert values[3] < 0.05
    assert any("fold 5 of 5" in text for text in said)
    assert any("OHSUMED" in note for note in report.notes)
    written = (tmp_path / "out" / "report.md").read_text(encoding="utf-8")
    assert "figures agree" not in written
    assert "Table 1.3" in written
    assert json.loads((tmp_path / "out" / "report.json").read_text())["paper"] == "stevens2013"


def test_what_is_missing_is_left_out_with_a_note(tmp_path):
    report = get_paper("stevens2013").run(tmp_path, shape=SMALL)
    assert len(report.tables) == 1
    assert any(note.startswith("Table 1.1 leaves out") for note in report.notes)
    assert any(note.startswith("Table 1.3 is left out") for note in report.notes)


def test_parts_are_random_disjoint_and_whole():
    rng = np.random.default_rng(0)
    X = csr_array(np.arange(1.0, 101.0)[:, None])
    Y = csr_array((rng.random((100, 6)) < [0.5, 0.3, 0.01, 0.2, 0.0, 0.4]).astype(float))
    parts, kept = cut(X, Y, least=4)
    rows = [part[0].toarray().ravel() for part in (parts.train, parts.vali, parts.test)]
    assert [len(r) for r in rows] == [50, 25, 25]
    assert np.array_equal(np.sort(np.concatenate(rows)), np.arange(1.0, 101.0))
    assert {0, 5} <= set(kept.tolist()) <= {0, 1, 3, 5}
    for (matrix, labels), r in zip((parts.train, parts.vali, parts.test), rows, strict=True):
        assert (labels.sum(axis=0) >= 4).all()
        assert np.array_equal(labels.toarray(), Y.toarray()[r.astype(int) - 1][:, kept])
        assert matrix.shape[0] == labels.shape[0]
    again, _ = cut(X, Y, least=4)
    assert np.array_equal(again.train[0].toarray(), parts.train[0].toarray())


def test_measures_are_those_of_each_topic():
    rng = np.random.default_rng(1)
    X, Y = rng.normal(size=(80, 5)), rng.integers(0, 3, (80, 2))
    coef = rng.normal(size=(2, 5))
    coef[0, :3] = 0.0
    found = measure(coef, csr_array(X), csr_array(Y))
    assert list(found) == list(MEASURES)
    for name in list(MEASURES)[:4]:
        one_by_one = [
            evaluate(Y[:, t] > 0, X @ coef[t], measures=[name]).means[name] for t in range(2)
        ]
        assert found[name] == pytest.approx(np.mean(one_by_one))
    assert found["percent_zero"] == pytest.approx(30.0)


def test_clicks_have_the_shape_asked_for():
    X, counts = make_clicks(SMALL)
    assert X.shape == (300, 150)
    assert counts.shape == (300, 3)
    assert X.nnz / (300 * 150) == pytest.approx(0.1, abs=0.02)
    clicked = (counts > 0).sum(axis=0)
    assert ((clicked > 8) & (clicked <= 16)).all()
    assert counts.max() > 2  # more than yes and no
    again = make_clicks(SMALL)
    assert np.array_equal(again[1].toarray(), counts.toarray())


def test_validation_chooses_among_settings(public_sets):
    from leanrank.data import load_letor

    train, vali = (load_letor(public_sets / f"MQ2008/Fold1/{p}.txt") for p in ("train", "vali"))
    for name, variant in VARIANTS.items():
        chosen = fit_variant(variant, train, vali, "letor4")
        scores = chosen.model.predict(vali)
        found = evaluate(vali, scores, measures=["ndcg@10"], convention="letor4")
        assert found.means["ndcg@10"] == pytest.approx(chosen.value, abs=2e-3), name
        for key, values in variant.grid.items():
            assert chosen.parameters[key] in values
        data = train.replace(y=(train.y > 0) * 1.0) if variant.binary else train
        again = DominationRanker(**chosen.parameters).fit(data)
        assert np.allclose(again.coef_, chosen.model.coef), name


def test_published_figures_are_the_papers():
    printed = published("stevens2013")
    assert printed["text"]["Domination Rank"] == ["0.670", "0.918", "0.976", "0.024", "98.8"]
    assert printed["letor"]["Margin"] == ["2.75", "2.38", "3.62"]


def test_the_peer_is_sparse_in_every_release_of_scikit_learn():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(200, 30))
    model = l1_logistic(0.1).fit(X, X[:, 0] > 0)
    assert np.count_nonzero(model.coef_) < 10
