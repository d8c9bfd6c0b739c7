"""Is it still right: figures by definition, alarms where something broke, none elsewhere."""

import json

import numpy as np
import pytest
from scipy.stats import norm, rankdata

import leanrank
from leanrank import LeanRanker
from leanrank.data import RankingData, make_clicks, make_ranking
from leanrank.errors import InputError, ModelError
from leanrank.metrics import evaluate
from leanrank.model import Levels, Line, Model, Ramps, load_model
from leanrank.model.summary import Columns, summarize, with_summary
from leanrank.service import check as module
from leanrank.service.check import check, held_out_gain
from leanrank.service.drift import largest_by_chance
from leanrank.service.refit import Today


@pytest.fixture(scope="module")
def halves():
    rng = np.random.default_rng(0)
    data = make_ranking(n_queries=160, n_features=6, random_state=5)
    X = np.array(data.X)
    X[:, 1] = np.exp(X[:, 1])
    X[:, 2] += rng.normal(size=data.n_queries)[
        np.searchsorted(data.query_ptr, np.arange(len(X)), side="right") - 1
    ]
    X[:, 3] += 2 * X[:, 0]
    X[:, 5] = np.round(np.abs(X[:, 5]) * 2)
    data = data.replace(X=X)
    return data.queries[:80], data.queries[80:]


@pytest.fixture(scope="module")
def model(halves):
    return LeanRanker(max_pairs=0, n_folds=2, n_strengths=8).fit(halves[0]).to_model()


def test_figures_are_their_definitions(monkeypatch):
    monkeypatch.setattr("leanrank.model.summary.FEWEST_QUERIES", 0)
    rng = np.random.default_rng(1)
    sizes = [1, 5, 3, 8, 2, 6]
    qid = np.repeat(np.arange(len(sizes)), sizes)
    X = np.column_stack((rng.normal(size=len(qid)), rng.integers(0, 4, len(qid))))
    X[[2, 9], 0] = np.nan
    data = RankingData(X, qid=qid)
    curves = {0: Ramps((-0.5, 0.5), (1.0,), 0.2), 1: Levels((0.0, 1.0, 2.0), (0.3, 0.1, -0.2))}
    columns = Columns.of(Model(2, curves), data)
    entry = {"cuts": [-0.3, 0.1, 0.4]}
    figures = columns.figures(0, entry)
    known = ~np.isnan(X[:, 0])

    def slow(rows):
        x, q = X[rows, 0], np.concatenate([[k] * len(r) for k, r in enumerate(groups)])[: len(rows)]
        here = ~np.isnan(x)
        shares = [np.mean(x[here] <= cut) for cut in entry["cuts"]]
        rank = (
            np.array(
                [sum(c < v for c in entry["cuts"]) + sum(c <= v for c in entry["cuts"]) for v in x]
            )
            / 2
        )
        t = np.where(here, rank - rank[here].mean(), 0)
        v = rankdata(curves[1](X[rows, 1])) / len(rows)
        centred = [np.zeros(len(x)), np.zeros(len(x))]
        for k in np.unique(q):
            inside = (q == k) & here
            if inside.any():
                for out, one in zip(centred, (t, v), strict=True):
                    out[inside] = one[inside] - one[inside].mean()
        within = (centred[0] ** 2).sum() / (t**2).sum()
        r = np.corrcoef(centred[0][here], centred[1][here])[0, 1]
        beyond = np.mean((x[here] < -0.5) | (x[here] > 0.5))
        return np.array([*shares, np.mean(~here), beyond, within, r])

    groups = [np.flatnonzero(qid == k) for k in range(len(sizes))]
    np.testing.assert_allclose(figures.values, slow(np.arange(len(qid))), atol=1e-12)
    np.testing.assert_allclose(figures.influence.sum(axis=0), 0, atol=1e-12)
    # shares: the change when one query counts twice, to first order
    for k, rows in enumerate(groups):
        for at in range(3):
            hits = X[:, 0] <= entry["cuts"][at]
            top = (hits & known)[rows].sum() - figures.values[at] * known[rows].sum()
            assert figures.influence[k, at] == pytest.approx(top / known.sum())
    levels = columns.figures(1, {"levels": [0.0, 2.0]})
    expected = [np.mean(X[:, 1] == 0), np.mean(X[:, 1] == 2), 0.0, np.mean(X[:, 1] == 3)]
    np.testing.assert_allclose(levels.values[:4], expected)


def test_errors_are_those_of_queries_drawn_again(halves):
    data, _ = halves
    columns = Columns.of(Model.from_coef(np.ones(6)), data)
    entry = columns.described(2)
    figures = columns.figures(2, entry)
    rng = np.random.default_rng(0)
    drawn = []
    for _ in range(300):
        some = data.queries[rng.integers(0, data.n_queries, data.n_queries)]
        some = RankingData(
            some.X, qid=np.repeat(np.arange(some.n_queries), np.diff(some.query_ptr))
        )
        drawn.append(Columns.of(Model.from_coef(np.ones(6)), some).figures(2, entry).values)
    spread = np.std(drawn, axis=0)
    told = spread > 0
    np.testing.assert_allclose(figures.errors[told], spread[told], rtol=0.25)


def test_nothing_changed(model, halves):
    found = check(model, halves[1])
    assert found.alarms == []
    assert found.verdict.startswith("still right")
    values = evaluate(halves[1], model.predict(halves[1])).per_query["ndcg@10"]
    assert found.measures["ndcg@10"].now == pytest.approx(np.nanmean(values))
    one = found.measures["ndcg@10"]
    training = model.provenance["training"]["held_out"]
    assert (one.then, one.then_error) == (training["ndcg@10"], training["ndcg@10_error"])
    known = values[~np.isnan(values)]
    error = np.sqrt(np.var(known, ddof=1) / len(known))
    assert one.now_error == pytest.approx(error)
    z = (np.mean(known) - one.then) / np.sqrt(error**2 + one.then_error**2)
    assert one.p == pytest.approx(norm.cdf(z))
    assert "no need" in found.refit_text
    assert check(model, halves[1]).to_dict() == found.to_dict()
    unlabelled = check(model, halves[1].replace(y=np.full(len(halves[1]), np.nan)))
    assert unlabelled.bound is None
    assert "labels" in unlabelled.notes[0]
    assert unlabelled.verdict.startswith("nothing wrong in what could be checked")


def test_one_query_is_too_few_to_say_that_a_refit_is_not_needed(model, halves):
    informative = int(np.flatnonzero(halves[1].informative)[0])
    found = check(model, halves[1].queries[[informative]])
    assert found.bound.gain > module.MIN_GAIN
    assert "no need" not in found.verdict
    assert "too few to measure what a refit gains" in found.notes[-1]
    with pytest.raises(InputError, match="no documents"):
        check(model, halves[1].queries[:0])


def heaviest(model):
    return max(model.curves, key=lambda at: abs(model.curves[at].size))


DAMAGE = {
    "shift": (lambda x, rng: x + 1.5 * x.std(), "moved", "another distribution"),
    "scale": (lambda x, rng: 1000 * x, "moved", "1000"),
    "minutes": (lambda x, rng: x / 60, "moved", "1/60"),
    "gaps": (lambda x, rng: np.where(rng.random(len(x)) < 0.3, np.nan, x), "missing", "missing"),
    "constant": (lambda x, rng: np.full(len(x), 3.5), "moved", "one value"),
}  # fmt: skip


@pytest.mark.parametrize("kind", DAMAGE)
def test_damage_is_named(kind, model, halves):
    change, what, text = DAMAGE[kind]
    at = heaviest(model)
    X = np.array(halves[1].X)
    X[:, at] = change(X[:, at], np.random.default_rng(0))
    found = check(model, halves[1].replace(X=X))
    first = found.findings[0]
    assert (first.feature, first.kind) == (f"f{at + 1}", what)
    assert text in first.text
    if kind == "shift":
        entry = next(each for each in model.summary if each["feature"] == at)
        shares = [np.mean(X[:, at] <= cut) for cut in entry["cuts"]]
        apart = max(abs(a - b) for a, b in zip(shares, entry["values"], strict=False))
        assert first.text.endswith(f"distance {apart:.2f}")


@pytest.mark.parametrize("factor", [10, 60, 100, 1000, 1024, 3600])
def test_units_are_recognised(factor, halves):
    model = with_summary(Model(6, {0: Line(1.0), 1: Line(0.1)}), halves[0])
    for times, text in ((factor, f"{factor} times"), (1 / factor, f"1/{factor}")):
        X = np.array(halves[1].X)
        X[:, 0] *= times
        bare = halves[1].replace(X=X, y=np.full(len(X), np.nan))
        (found,) = check(model, bare).findings
        assert (found.feature, found.kind) == ("f1", "moved")
        assert text in found.text


def test_values_beyond_the_last_knot(halves):
    x = halves[0].X[:, 0]
    knots = tuple(np.quantile(x, [0.05, 0.5, 0.99]))
    model = with_summary(Model(6, {0: Ramps(knots, (1.0, 1.0))}), halves[0])
    X = np.array(halves[1].X)
    X[X[:, 0] > np.quantile(x, 0.9), 0] += 10  # above all cuts of the summary
    (found,) = check(model, halves[1].replace(X=X, y=np.full(len(X), np.nan))).findings
    assert (found.feature, found.kind) == ("f1", "beyond")
    assert found.now == pytest.approx(np.mean((X[:, 0] < knots[0]) | (X[:, 0] > knots[-1])))
    assert "beyond the knots" in found.text


def test_columns_of_other_documents_and_swapped_ones(halves):
    first, second = halves
    terms = {0: Line(1.0), 3: Line(1.0), 1: Line(0.1)}
    model = with_summary(Model(6, terms), first)
    X = np.array(second.X)
    X[:, 3] = np.random.default_rng(0).permutation(X[:, 3])
    found = check(model, second.replace(X=X, y=np.full(len(X), np.nan)))
    assert {each.kind for each in found.findings} == {"agreement"}
    swapped = np.array(second.X)
    swapped[:, [0, 1]] = swapped[:, [1, 0]]
    told = {each.feature: each.text for each in check(model, second.replace(X=swapped)).findings}
    assert "f2 looks as it did" in told["f1"]
    assert "f1 looks as it did" in told["f2"]


def test_new_levels_and_shares_of_levels(halves):
    rng = np.random.default_rng(0)
    data = halves[0]
    names = np.array(["de", "en", "fr"])
    column = names[rng.integers(0, 3, len(data))]
    model = Model(2, {0: Line(1.0), 1: Levels(tuple(names), (0.1, 0.2, 0.3))}, ("x", "lang"))

    def rows(column):
        codes = [float(np.flatnonzero(names == c)[0]) if c in names else -1.0 for c in column]
        return RankingData(np.column_stack((data.X[:, 0], codes)), qid=data.qid)

    model = with_summary(model, rows(column))
    assert sorted(model.summary[1]["levels"]) == sorted(names)
    assert check(model, rows(column)).findings == []
    new = check(model, rows(np.where(rng.random(len(data)) < 0.02, "pl", column))).findings
    assert [(each.feature, each.kind) for each in new] == [("lang", "new levels")]
    assert new[0].now == pytest.approx(0.02, abs=0.01)
    more = check(model, rows(np.where(rng.random(len(data)) < 0.5, "de", column))).findings
    assert more[0].kind == "moved"
    assert "is de in" in more[0].text


def test_labels_that_turned_ask_for_a_refit(model, halves):
    second = halves[1]
    turned = second.replace(y=second.y.max() - second.y)
    found = check(model, turned)
    assert found.needs_refit
    assert "learn again" in found.verdict
    assert any("worse" in text for text in found.alarms)
    assert found.bound.gain >= found.held_out.value
    X = np.array(turned.X)
    X[:, heaviest(model)] *= 1000
    broken = check(model, turned.replace(X=X))
    assert broken.findings
    assert "learn again" not in " ".join([broken.verdict, *broken.alarms])


def test_held_out_gain_by_hand(model, halves):
    today = Today(model, halves[1])
    gain = held_out_gain(today, seed=4)
    queries = np.flatnonzero(today.plan.scale > 0)
    first = np.isin(
        np.arange(len(today.plan.scale)), np.random.default_rng(4).permutation(queries)[::2]
    )
    total, saved, gains = 0.0, 0.0, np.zeros(len(first))
    for half in (first, ~first):
        w = today.solve(1e-3, queries=~half).w
        u0, u1 = (today.problem().scores(each) for each in (today.w, w))
        for q in np.flatnonzero(half):
            rows = slice(*halves[1].query_ptr[q : q + 2])
            target = today.plan.target[rows]
            losses = [
                np.log(np.exp(u[rows]).sum()) * target.sum() - target @ u[rows] for u in (u0, u1)
            ]
            total += losses[0]
            saved += losses[0] - losses[1]
            gains[q] = losses[0] - losses[1]
    assert gain.value == pytest.approx(saved / total, rel=1e-9)
    rng = np.random.default_rng(4)
    rng.permutation(queries)
    times = rng.multinomial(len(queries), [1 / len(queries)] * len(queries), size=1_000)
    drawn = [sum(t * g for t, g in zip(row, gains[queries], strict=True)) for row in times]
    expected = np.quantile(drawn, [0.01, 0.99]) / total
    np.testing.assert_allclose([gain.low, gain.high], expected, atol=1e-9)


def test_threshold_allows_for_the_number_of_figures(halves):
    columns = Columns.of(Model.from_coef(np.ones(6)), halves[0])
    figures = [columns.figures(at, columns.described(at)) for at in range(6)]
    errors = [one.errors for one in figures]
    few = largest_by_chance(figures[:1], errors[0], 0)
    many = largest_by_chance(figures, np.concatenate(errors), 0)
    assert 2.3 < few < many < 8
    influence, n = figures[0].influence, len(figures[0].influence)
    rng, largest = np.random.default_rng(0), []
    for _ in range(10):
        times = rng.multinomial(n, np.full(n, 1 / n), size=100)
        noise = rng.standard_normal((100, influence.shape[1])) * errors[0]
        for counts, luck in zip(times, noise, strict=True):
            drawn = np.repeat(influence, counts, axis=0)  # queries, some several times
            error = np.maximum(np.sqrt(n * np.var(drawn, axis=0, ddof=1)), 1 / n)
            z = (drawn.sum(axis=0) + luck) / np.sqrt(error**2 + errors[0] ** 2)
            largest.append(np.abs(z).max())
    assert few == pytest.approx(np.quantile(largest, 0.98), rel=1e-9)


def test_summary_is_small_and_optional(model, halves, tmp_path):
    model.save(tmp_path / "m.json")
    again = load_model(tmp_path / "m.json")
    assert again == model
    assert again.summary == model.summary
    bare = model.replace(summary=None)
    assert "summary" not in bare.to_dict()
    assert "no summary" in check(bare, halves[1]).notes[0]
    wide = RankingData(np.random.default_rng(0).normal(size=(60, 300)), qid=np.arange(60) // 6)
    entries = summarize(Model.from_coef(np.arange(1.0, 301.0)), wide)
    assert len(entries) == 200
    assert entries[0]["feature"] == 100
    assert len(json.dumps(entries)) < 110_000
    few = check(model, halves[1].queries[:5])
    assert few.findings == []
    assert "too few" in few.notes[0]


def test_a_broken_summary_is_said(model, halves):
    entry = {**model.summary[0], "values": [0.1]}
    with pytest.raises(ModelError, match="summary"):
        check(model.replace(summary=[entry]), halves[1])


def test_clicks(model, halves):
    from leanrank.data import read_clicks

    data = halves[1].queries[:3]
    rows = []
    for q in range(3):
        begin, end = data.query_ptr[q : q + 2]
        for at, row in enumerate(range(begin, min(end, begin + 3))):
            rows.append(
                (
                    f"s{q}",
                    str(data.query_ids[q]),
                    f"d{row}",
                    at + 1,
                    int(at == 0),
                    1.0,
                    *data.X[row],
                )
            )
    names = [
        "session",
        "query",
        "document",
        "position",
        "clicked",
        "propensity",
        *(f"f{k + 1}" for k in range(6)),
    ]
    pandas = pytest.importorskip("pandas")
    log = read_clicks(pandas.DataFrame(rows, columns=names), propensity="propensity")
    found = check(model.replace(feature_names=tuple(names[6:])), log, depth=3)
    assert {"logged", "doubly-robust"} <= set(found.clicks)
    assert found.clicks["logged"].value == 1.0
    assert any("of 3 lists are effective" in note for note in found.notes)


def test_measures_and_the_gain_of_a_refit_by_clicks(model, halves):
    old, new = (
        make_clicks(half, n_sessions=4_000, list_length=20, swaps="shuffle", random_state=seed)
        for seed, half in enumerate(halves)
    )
    clicked = LeanRanker(max_pairs=0, n_folds=2, n_strengths=5).fit(old).to_model()
    found = check(clicked, new)
    held_out = clicked.provenance["training"]["held_out"]
    one, (labels, gains) = found.measures["ndcg@10"], new.labelled(None)
    assert (one.then, one.then_error) == (held_out["ndcg@10"], held_out["ndcg@10_error"])
    assert one.now == evaluate(labels, clicked.predict(labels))["ndcg@10"]
    assert 0 < one.p < 1
    assert found.clicks == {}
    assert "propensities" in found.notes[0]
    today = Today(clicked, labels, gain_weight=gains)
    assert found.bound.objective == today.problem().at(today.w) + today.penalty.value(today.w)
    judged = check(model, new)  # other labels than it learned from
    assert judged.measures["ndcg@10"].then is None
    assert judged.bound is not None


def test_page(model, halves, tmp_path):
    X = np.array(halves[1].X)
    X[:, heaviest(model)] *= 1000
    found = leanrank.check(model, halves[1].replace(X=X))
    found.write(tmp_path / "c.html")
    page = (tmp_path / "c.html").read_text()
    assert found.alarms[0] in page
    assert "<script" not in page
    assert module.LEVEL == 0.02  # which the page names


def test_weights_and_offsets_of_labelled_documents_count(halves, model):
    data = halves[1]
    rng = np.random.default_rng(3)
    weighted = data.replace(
        query_weight=rng.uniform(1, 9, data.n_queries), offset=rng.normal(size=len(data))
    )
    y = data.y.copy()
    y[data.query_ptr[-2] :] = np.nan  # the last query
    found = check(model, weighted.replace(y=y)).bound
    assert found == check(model, weighted.queries[:-1]).bound
