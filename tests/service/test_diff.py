from itertools import pairwise

import numpy as np
import pytest

import leanrank
from leanrank.data import ClickLog, RankingData, make_ranking, read_clicks
from leanrank.errors import InputError
from leanrank.metrics import compare, evaluate
from leanrank.metrics.comparison import rank_biased_overlap
from leanrank.model import Levels, Line, Model, Ramps, Surface
from leanrank.service.diff import diff, parse_gate


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=30, n_features=5, random_state=3)


@pytest.fixture(scope="module")
def models(data):
    knots = np.quantile(data.X[:, 0], [0.1, 0.5, 0.9])
    old = Model(5, {0: Ramps(tuple(knots), (1.0, 0.5)), 1: Line(0.7), 2: Line(-0.2)})
    ends = tuple(np.quantile(data.X[:, 3], [0.2, 0.8]))
    surface = Surface(ends, ends, ((0.0, 0.3), (0.1, 0.9)))
    new = Model(5, {0: Line(2.0), 1: Line(1.4)}, surfaces={(3, 4): surface})
    return old, new


@pytest.fixture(scope="module")
def found(models, data):
    return leanrank.diff(*models, data, n_queries=4, k=3)


def orders(models, data):
    """The documents of each query, best first, by both models."""
    for begin, end in zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True):
        rows = np.arange(begin, end)
        yield [
            [
                r
                for _, r in sorted(
                    (-s, r) for s, r in zip(m.predict(data)[rows], rows, strict=True)
                )
            ]
            for m in models
        ]


def overlap_by_definition(a, b, p, depth=2_000):
    total = 0.0
    for d in range(1, depth + 1):
        shared = len(set(a[:d]) & set(b[:d])) / min(d, len(a))
        total += p ** (d - 1) * shared
    return (1 - p) * total


def test_overlap_is_its_definition(found, models, data):
    slow = [overlap_by_definition(a, b, 0.9) for a, b in orders(models, data)]
    np.testing.assert_allclose(found.overlap, slow, atol=1e-12)
    ptr = np.array([0, 0, 1])
    assert rank_biased_overlap(np.array([[1], [1]]), ptr).tolist() == [1.0, 1.0]


@pytest.mark.parametrize("k", [1, 3, 10])
def test_shares_of_changed_queries_and_replaced_documents(found, models, data, k):
    pairs = list(orders(models, data))
    assert found.changed(k) == np.mean([a[:k] != b[:k] for a, b in pairs])
    replaced = [len(set(b[:k]) - set(a[:k])) / len(a[:k]) for a, b in pairs]
    assert found.replaced(k) == pytest.approx(np.mean(replaced))
    assert found.value(f"changed@{k}") == found.changed(k)


def test_measures_are_those_of_compare(found, models, data):
    expected = compare(data, *(m.predict(data) for m in models), measure="map")
    assert found.measures["map"].to_dict() == expected.to_dict()


def scaled(model, data):
    """Contributions by name, in standard deviations of the scores within queries."""
    told = model.explain(data)
    scores = told.scores
    inside = np.concatenate([scores[a:b] - scores[a:b].mean() for a, b in pairwise(data.query_ptr)])
    return {n: told.contributions[:, k] / inside.std() for k, n in enumerate(told.features)}


def test_terms_explain_every_move(found, models, data):
    old, new = (scaled(m, data) for m in models)
    names = {*old, *new}
    zero = np.zeros(len(data))
    change = {n: new.get(n, zero) - old.get(n, zero) for n in names}
    for one in found.queries:
        (at,) = np.flatnonzero(data.query_ids == one.query)
        rows = range(data.query_ptr[at], data.query_ptr[at + 1])
        shown = [int(each["document"].removeprefix("row ")) for each in one.documents]
        assert set(shown) <= set(rows)
        for row, each in zip(shown, one.documents, strict=True):
            assert each["label"] == data.y[row]
            assert each["terms"].keys() == names
            for name, value in each["terms"].items():
                slow = change[name][row] - np.mean([change[name][other] for other in shown])
                assert value == pytest.approx(slow, abs=1e-12)
            assert each["rise"] == pytest.approx(sum(each["terms"].values()))
    assert [one.overlap for one in found.queries] == sorted(found.overlap)[:4]


def test_shares_of_the_terms(found, models, data):
    assert sum(term.change_share for term in found.terms) == pytest.approx(1.0)
    assert sum(term.old_share for term in found.terms) == pytest.approx(1.0)
    by_name = {term.name: term for term in found.terms}
    assert by_name["f3"].new is None
    assert by_name["f4 × f5"].old is None
    assert by_name["f2"].old == 0.7
    old, new = (scaled(m, data) for m in models)
    total = sum(new.values()) - sum(old.values())
    moved = new["f2"] - old["f2"]
    covariance, variance = 0.0, 0.0
    for a, b in pairwise(data.query_ptr):
        t, m = total[a:b], moved[a:b]
        covariance += float((t - t.mean()) @ (m - m.mean()))
        variance += float((t - t.mean()) @ (t - t.mean()))
    assert by_name["f2"].change_share == pytest.approx(covariance / variance)


def test_the_scale_of_a_model_does_not_matter(data):
    one = Model.from_coef([1.0, -0.5, 0.0, 0.2, 0.0])
    ten = Model.from_coef(10 * one.coef)
    found = diff(one, ten, data)
    assert found.changed() == 0
    assert (found.overlap == 1).all()
    assert not found.queries
    assert found.measures["ndcg@10"].difference == 0


def test_without_labels_rankings_are_compared(models, data):
    bare = diff(*models, RankingData(data.X, np.full(len(data), np.nan), data.qid), k=3)
    assert not bare.measures
    assert bare.changed() == diff(*models, data, k=3).changed()
    assert "queries change" in bare.verdict
    with pytest.raises(InputError, match="ndcg@10"):
        bare.failures(["ndcg@10 < 0"])


def test_documents_without_a_label_are_left_out_of_measures(models, data):
    y = data.y.copy()
    y[::7] = np.nan
    known = ~np.isnan(y)
    found = diff(*models, RankingData(data.X, y, data.qid), measures="map")
    slow = [
        evaluate(y[known], m.predict(data)[known], data.qid[known], measures="map")["map"]
        for m in models
    ]
    assert found.measures["map"].difference == pytest.approx(slow[1] - slow[0])


def test_gates(found):
    assert not found.failures(["changed@3 > 100%", "overlap < 0", "ndcg@10 < -1"])
    value = found.changed(3)
    assert found.failures([f"changed@3 > {100 * value - 1}%"])
    assert not found.failures([f"changed@3 > {100 * value + 1}%"])
    assert found.failures([f"map > {found.measures['map'].difference - 1e-9}"])
    assert parse_gate("ndcg@10<-.5e-2") == ("ndcg@10", False, -0.005)


@pytest.mark.parametrize("gate", ["ndcg@10", "changed@10 ~ 3", "nothing < 1", "ndcg@10 < -1%"])
def test_wrong_gates(gate):
    with pytest.raises(InputError):
        parse_gate(gate)


def test_clicks_give_expected_clicks():
    n = 300
    rng = np.random.default_rng(0)
    swap = rng.random(n) < 0.5
    shown = np.where(swap[:, None], ["b", "a"], ["a", "b"])
    clicked = ((shown == "a") & (rng.random((n, 2)) < 0.6)).astype(int)
    log = {
        "session": np.repeat(np.arange(n), 2),
        "query": ["q"] * (2 * n),
        "document": shown.ravel(),
        "position": [1, 2] * n,
        "clicked": clicked.ravel(),
        "propensity": [0.5, 1.0] * n,
        "quality": np.where(shown == "a", 1.0, 0.0).ravel(),
    }
    clicks = read_clicks(log, propensity="propensity")
    up, down = Model.from_coef([1.0]), Model.from_coef([-1.0])
    found = diff(down, up, clicks, k=1)
    # at rank 1, a list counts twice if it agrees
    a = np.mean(2 * clicked[:, 0] * (shown[:, 0] == "a"))
    b = np.mean(2 * clicked[:, 0] * (shown[:, 0] == "b"))
    assert found.measures["ips"].difference == pytest.approx(a - b)
    assert found.value("clicks") == found.measures["doubly-robust"].difference
    assert found.verdict.startswith("better: clicks")
    assert not found.failures(["clicks < 0"])
    assert not found.notes
    few = clicks.data, clicks.row[:40], clicks.position[:40], clicks.clicked[:40]
    short = ClickLog(*few, clicks.list_ptr[:21], clicks.propensity[:40])
    told = diff(down, up, short, k=1)
    assert all("of 20 lists are effective" in note for note in told.to_dict()["notes"])
    assert len(told.notes) == 2  # one per model
    assert told.notes[0] in repr(told)


def test_frames_with_categories():
    pandas = pytest.importorskip("pandas")
    frame = pandas.DataFrame({"lang": ["de", "en", "fr", "de"], "age": [1.0, 2.0, 3.0, 4.0]})
    names = ("lang", "age")
    old = Model(2, {0: Levels(("de", "en"), (1.0, 2.0)), 1: Line(0.1)}, names)
    new = Model(2, {0: Levels(("en", "fr"), (1.0, 5.0)), 1: Line(0.1)}, names)
    found = diff(old, new, frame, y=[0, 0, 1, 0], qid=[1, 1, 1, 1])
    assert found.ranks.tolist() == [[3, 1, 4, 2], [4, 2, 1, 3]]


def test_the_page_loads_nothing_and_shows_names_as_text(models, data, tmp_path):
    pytest.importorskip("vl_convert")
    names = ("<b>bm25</b>", "b", "c", "d", "e")
    renamed = [m.replace(feature_names=names) for m in models]
    found = diff(*renamed, data, n_queries=2)
    found.write(tmp_path / "d.html")
    page = (tmp_path / "d.html").read_text()
    assert "<b>bm25" not in page
    assert "&lt;b&gt;bm25" in page
    assert "<script" not in page
    assert page.count("<svg") >= 3
    assert "http://" not in page.replace("http://www.w3.org", "")
