"""Judges that disagree, and what to judge next."""

import json
from itertools import combinations, permutations

import numpy as np
import pytest

from leanrank import LeanRanker
from leanrank.data import RankingData, join_judgments, make_ranking
from leanrank.data.trec import Qrels
from leanrank.errors import InputError
from leanrank.model import Line, Model
from leanrank.service.judgments import (
    Ratings,
    dawid_skene,
    gain_chances,
    judge_next,
    krippendorff_alpha,
    read_ratings,
)


def made_up(seed, n_items=300, skills=(0.9, 0.7, 0.45, 0.4, 0.4), n_levels=3, share=0.8):
    """Judges who are right with a given chance, and otherwise say any level."""
    rng = np.random.default_rng(seed)
    truth = rng.choice(n_levels, n_items, p=[0.6, 0.3, 0.1])
    rows = [
        (
            f"q{i // 10}",
            f"d{i}",
            f"j{j}",
            float(truth[i] if rng.random() < s else rng.integers(n_levels)),
        )
        for i in range(n_items)
        for j, s in enumerate(skills)
        if rng.random() < share or j == 0
    ]
    return truth, Ratings.of(rows)


def alpha_by_pairs(ratings, scale, judge=None, query=None):
    """Observed over expected disagreement, by listing all pairs of ratings."""
    units = {}
    for item, who, level in zip(ratings.item, ratings.judge, ratings.level, strict=True):
        units.setdefault(item, []).append((who, level))
    units = {item: rated for item, rated in units.items() if len(rated) > 1}
    values = [level for rated in units.values() for _, level in rated]
    total = np.bincount(values, minlength=len(ratings.levels))

    def distance(a, b):
        if scale == "nominal":
            return float(a != b)
        if scale == "interval":
            return (ratings.levels[a] - ratings.levels[b]) ** 2
        low, high = min(a, b), max(a, b)
        return (total[low : high + 1].sum() - (total[low] + total[high]) / 2) ** 2

    top = bottom = 0.0
    for item, rated in units.items():
        if query is not None and ratings.items[item][0] != query:
            continue
        for (who, a), (_, b) in permutations(rated, 2):
            if judge is None or who == judge:
                top += distance(a, b) / (len(rated) - 1)
                bottom += 1 / (len(rated) - 1)
    expected = np.mean([distance(a, b) for a, b in combinations(values, 2)])
    return 1 - top / bottom / expected


@pytest.mark.parametrize("scale", ["nominal", "interval", "ordinal"])
def test_alpha_is_that_of_all_pairs(scale):
    _, ratings = made_up(0, n_items=40)
    for part in ({}, {"judge": 1}, {"query": "q2"}):
        slow = alpha_by_pairs(ratings, scale, **part)
        assert krippendorff_alpha(ratings, scale, **part) == pytest.approx(slow, abs=1e-12)


def test_alpha_of_a_published_table():
    """Krippendorff (2011), four observers, twelve units, with gaps."""
    table = ["1 1 _ 1", "2 2 3 2", "3 3 3 3", "3 3 3 3", "2 2 2 2", "1 2 3 4", "4 4 4 4", "1 1 2 1",
             "2 2 2 2", "_ 5 5 5", "_ _ 1 1", "_ _ 3 _"]  # fmt: skip
    rows = [
        ("q", str(unit), str(judge), float(cell))
        for unit, cells in enumerate(table)
        for judge, cell in enumerate(cells.split())
        if cell != "_"
    ]
    ratings = Ratings.of(rows)
    found = [krippendorff_alpha(ratings, scale) for scale in ("nominal", "ordinal", "interval")]
    np.testing.assert_allclose(found, [0.743, 0.815, 0.849], atol=6e-4)


def dawid_skene_by_loops(ratings, smoothing, rounds):
    n_levels = len(ratings.levels)
    rated = list(zip(ratings.item, ratings.judge, ratings.level, strict=True))
    p = np.zeros((len(ratings.items), n_levels))
    for i, _, k in rated:
        p[i, k] += 1
    p /= p.sum(axis=1, keepdims=True)
    for _ in range(rounds):
        tables = np.zeros((len(ratings.judges), n_levels, n_levels))
        for j in range(len(ratings.judges)):
            for k in range(n_levels):
                for m in range(n_levels):
                    said = sum(p[i, k] for i, who, level in rated if who == j and level == m)
                    tables[j, k, m] = said + smoothing * ((k == m) + 1 / n_levels)
                tables[j, k] /= tables[j, k].sum()
        share, new = p.mean(axis=0) + 1e-12, np.zeros_like(p)
        for i in range(len(p)):
            for k in range(n_levels):
                new[i, k] = share[k] * np.prod([tables[j, k, m] for at, j, m in rated if at == i])
        p = new / new.sum(axis=1, keepdims=True)
    return p


def test_dawid_skene_is_its_definition():
    _, ratings = made_up(1, n_items=20)
    found = dawid_skene(ratings, n_iter=4, tol=0.0)
    np.testing.assert_allclose(found.posterior, dawid_skene_by_loops(ratings, 1.0, 4), atol=1e-12)
    gains = [
        sum(p * (2**k - 1) for k, p in zip(ratings.levels, row, strict=True))
        for row in found.posterior
    ]
    np.testing.assert_allclose(found.gains(), gains)


def test_expected_gains_beat_the_majority_and_trusted_ones_help():
    errors = {"majority": [], "expected": [], "trusted": []}
    for seed in range(5):
        truth, ratings = made_up(seed)
        gain = 2.0**truth - 1
        place = {item: at for at, item in enumerate(ratings.items)}
        order = [place[f"q{i // 10}", f"d{i}"] for i in range(len(truth))]
        trusted = {(f"q{i // 10}", f"d{i}"): float(truth[i]) for i in range(60)}
        rest = slice(60, None)
        found = {
            "majority": 2.0 ** ratings.levels[ratings.counts().argmax(axis=1)] - 1,
            "expected": dawid_skene(ratings).gains(),
            "trusted": dawid_skene(ratings, trusted=trusted).gains(),
        }
        for name, values in found.items():
            errors[name].append(np.mean((values[order] - gain)[rest] ** 2))
    means = {name: np.mean(each) for name, each in errors.items()}
    assert means["expected"] < 0.8 * means["majority"]
    assert means["trusted"] < 1.02 * means["expected"]


@pytest.mark.filterwarnings("error")
def test_a_ranker_learns_from_expected_gains_as_they_are():
    truth, ratings = made_up(0, share=1.0)
    queries, documents = zip(*ratings.items, strict=True)
    gains = dawid_skene(ratings).gains()
    rng, level = np.random.default_rng(0), [truth[int(name[1:])] for name in documents]
    X = np.column_stack((level + rng.normal(size=300), rng.normal(size=(300, 3))))
    features = RankingData(X, qid=queries, doc_ids=documents)
    data = join_judgments(features, Qrels(queries, documents, gains))
    found = dict(zip(zip(data.qid, data.doc_ids, strict=True), data.y, strict=True))
    assert found == dict(zip(ratings.items, gains, strict=True))
    ranker = LeanRanker(gain="linear", max_pairs=0, curves=None).fit(data)
    w, total = ranker.to_model().coef, 0.0
    for q in range(data.n_queries):  # the softmax loss with these gains
        rows = slice(*data.query_ptr[q : q + 2])
        if np.ptp(data.y[rows]):
            u, target = data.X[rows] @ w, data.y[rows] / data.y[rows].sum()
            total += np.log(np.exp(u).sum()) - target @ u
    training = ranker.to_model().provenance["training"]
    penalty = training["objective"] - total / np.sum(data.informative)
    assert 0 < penalty < 0.1
    assert abs(w[0]) == np.abs(w).max()


def test_files_with_judges(tmp_path):
    long, wide = tmp_path / "long.csv", tmp_path / "wide.csv"
    long.write_text("query,docid,judge,rating\njazz,d1,ann,3\njazz,d1,bob,1\njazz,d2,bob,0\n")
    wide.write_text("query,docid,ann,bob\njazz,d1,3,1\njazz,d2,,0\n")
    a, b = read_ratings(long), read_ratings(wide)
    for one in (a, b):
        assert (one.judges, one.items) == (["ann", "bob"], [("jazz", "d1"), ("jazz", "d2")])
        assert one.levels[one.level].tolist() == [3.0, 1.0, 0.0]
    model, trec = tmp_path / "model.json", tmp_path / "ann.qrels"
    rated = {"query": "jazz", "ratings": [{"docId": "d1", "rating": "2.0"}]}
    model.write_text(json.dumps({"judgmentRatings": [rated]}))
    trec.write_text("jazz 0 d1 1\njazz 0 d2 0\n")
    several = read_ratings(model, trec)
    assert (several.judges, several.items) == (["model", "ann"], [("jazz", "d1"), ("jazz", "d2")])
    assert several.levels[several.level].tolist() == [2.0, 1.0, 0.0]
    long.write_text("query,docid,rating\njazz,d1,3\n")
    with pytest.raises(InputError, match="judge"):
        read_ratings(long)
    wide.write_text("query,docid,ann\njazz,d1,good\n")
    with pytest.raises(InputError, match="good"):
        read_ratings(wide)
    wide.write_text("query,docid,ann,bob\n =jazz,d1,3,\n")  # as Quepid guards against formulas
    assert read_ratings(wide).items == [("=jazz", "d1")]
    wide.write_text("query,docid,ann,bob\njazz,d1,3\n")
    with pytest.raises(InputError, match="3 cells, and the header 4"):
        read_ratings(wide)
    with pytest.raises(InputError, match="twice"):
        Ratings.of([("q", "d", "ann", 1), ("q", "d", "ann", 2)])
    with pytest.raises(InputError, match="trusted"):
        dawid_skene(a, trusted={("jazz", "d1"): 7.0})


def test_judge_next_for_a_difference_by_hand():
    data = make_ranking(n_queries=5, n_features=3, random_state=0)
    y = np.where(np.random.default_rng(0).random(len(data)) < 0.5, np.nan, data.y)
    pool = data.replace(y=y)
    models = Model.from_coef([1.0, 0.5, 0.0]), Model.from_coef([0.2, 1.0, 0.3])
    rows, worth, _ = judge_next(models[0], pool, n=8, against=models[1])
    chances, gains = gain_chances(pool, models[0].predict(pool))
    slow = {}
    for row in np.flatnonzero(np.isnan(y)):
        mean = sum(p * g for p, g in zip(chances[row], gains, strict=True))
        variance = sum(p * (g - mean) ** 2 for p, g in zip(chances[row], gains, strict=True))
        parts = []
        for model in models:
            scores = model.predict(pool)
            rank = 1 + np.sum(scores[pool.qid == pool.qid[row]] > scores[row])
            parts.append(1 / np.log2(1 + rank) if rank <= 10 else 0.0)
        slow[row] = variance * (parts[0] - parts[1]) ** 2
    best = sorted(slow, key=lambda row: -slow[row])[:8]
    np.testing.assert_allclose(worth, [slow[row] for row in best])
    assert set(rows) == set(best)


def test_judge_next_for_a_model_by_hand():
    data = make_ranking(n_queries=4, n_features=3, random_state=1)
    y = np.where(np.arange(len(data)) % 2, np.nan, data.y)
    pool = data.replace(y=y)
    model = Model(3, {0: Line(1.0), 2: Line(-0.4)})
    rows, worth, _ = judge_next(model, pool, n=3)
    scores = model.predict(pool)
    added = np.column_stack((pool.X[:, 0], -0.4 * pool.X[:, 2]))
    chances, gains = gain_chances(pool, scores)
    H = np.zeros((2, 2))
    z, factor = np.zeros((len(y), 2)), np.zeros(len(y))
    for q in range(pool.n_queries):
        part = slice(*pool.query_ptr[q : q + 2])
        p = np.exp(scores[part]) / np.exp(scores[part]).sum()
        H += (added[part].T * p) @ added[part] - np.outer(p @ added[part], p @ added[part])
        gain = 2.0 ** np.nan_to_num(y[part]) - 1
        total = gain.sum()
        target = gain / total if total else p
        z[part] = added[part] - target @ added[part]
        for row in range(part.start, part.stop):
            factor[row] = sum(
                c * (g / (total + g)) ** 2 if g else 0.0
                for c, g in zip(chances[row], gains, strict=True)
            )
    H += 1e-6 * np.trace(H) / 2 * np.eye(2)
    left = set(np.flatnonzero(np.isnan(y)))
    for row, value in zip(rows, worth, strict=True):
        slow = {r: 0.5 * factor[r] * z[r] @ np.linalg.solve(H, z[r]) for r in left}
        assert value == pytest.approx(max(slow.values()), rel=1e-6)
        assert slow[row] == pytest.approx(value, rel=1e-6)
        H += factor[row] * np.outer(z[row], z[row])
        left.remove(row)


def test_a_pool_with_labels_only_is_refused():
    data = RankingData([[1.0], [0.0]], [1, 0], ["a", "a"])
    with pytest.raises(InputError, match="label"):
        judge_next(Model.from_coef([1.0]), data)
