from __future__ import annotations

import numpy as np
import pytest

from leanrank import load_letor, load_model, make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.metrics import evaluate
from leanrank.model import Model
from leanrank.rankers import AdaRank


@pytest.fixture(scope="module")
def data():
    return make_ranking(n_queries=40, n_features=6, n_informative=3, random_state=5)


def measured(data, scores, measure):
    return evaluate(data, scores, measures=measure).per_query[measure]


def written_out(data, measure, n_rounds):
    """AdaRank as it is written: α by the weak ranker, the update by the combined one."""
    weak = np.array([measured(data, data.X[:, j], measure) for j in range(data.n_features)])
    P = np.full(data.n_queries, 1 / data.n_queries)
    coef, rounds = np.zeros(data.n_features), []
    for _ in range(n_rounds):
        k = int(np.argmax(weak @ P))
        alpha = 0.5 * np.log(np.sum(P * (1 + weak[k])) / np.sum(P * (1 - weak[k])))
        coef[k] += alpha
        E = measured(data, data.X @ coef, measure)
        rounds.append((k, alpha, E.mean()))
        P = np.exp(-E) / np.exp(-E).sum()
    return rounds


@pytest.mark.parametrize("measure", ["map", "ndcg@5", "mrr", "kendall_tau_b"])
def test_rounds_are_those_of_the_paper(data, measure):
    data = data.queries[np.flatnonzero(data.informative & (measured(data, data.y, "map") > 0))]
    ranker = AdaRank(12, measure=measure, repeats="always").fit(data)
    for entry, (k, alpha, mean) in zip(
        ranker.history_, written_out(data, measure, 12), strict=True
    ):
        assert entry["feature"] == k
        assert entry["value"] == pytest.approx(alpha)
        assert entry[measure] == pytest.approx(mean)


def test_the_model_is_that_of_the_best_round(data):
    ranker = AdaRank(40).fit(data)
    curve = [entry["map"] for entry in ranker.history_]
    best = int(np.argmax(curve))
    assert ranker.n_iter_ == best + 1
    coef = np.zeros(6)
    for entry in ranker.history_[: best + 1]:
        coef[entry["feature"]] += entry["value"]
    assert np.allclose(ranker.coef_, coef)
    assert evaluate(data, ranker.predict(data), measures="map")["map"] == pytest.approx(curve[best])


def test_validation_keeps_the_best_round(data):
    train, vali = data.queries[:20], data.queries[20:]
    ranker = AdaRank(40, measure="ndcg@5", signs=0).fit(train, validation=vali)
    curve = [entry["validation"] for entry in ranker.history_]
    assert ranker.n_iter_ == int(np.argmax(curve)) + 1
    found = evaluate(vali, ranker.predict(vali), measures="ndcg@5")["ndcg@5"]
    assert found == pytest.approx(max(curve))
    stopped = AdaRank(40, measure="ndcg@5", signs=0, patience=2).fit(train, validation=vali)
    assert len(stopped.history_) <= stopped.n_iter_ + 2


def test_repeats(data):
    once = AdaRank(50, repeats="never").fit(data)
    taken = [entry["feature"] for entry in once.history_]
    assert sorted(taken) == sorted(set(taken))
    assert len(taken) == 6
    always = AdaRank(50, repeats="always").fit(data)
    assert len(always.history_) == 50
    progress = AdaRank(500).fit(data)
    assert len(progress.history_) < 500  # it ended by itself
    best, since = -1.0, []
    for entry in progress.history_:  # between two steps of progress nobody comes twice
        if entry["map"] > best + 1e-12:
            best, since = entry["map"], []
        else:
            assert entry["feature"] not in since
            since.append(entry["feature"])
    assert len(since) == 6
    assert progress.history_[progress.n_iter_ - 1]["map"] >= max(
        e["map"] for e in always.history_[:2]
    )


def test_signs(data):
    X = np.array(data.X)
    X[:, 0] *= -1
    turned = data.replace(X=X)
    up, down = AdaRank(30).fit(data), AdaRank(30, signs=[-1, 1, 1, 1, 1, 1]).fit(turned)
    assert np.allclose(up.coef_, down.coef_ * np.array([-1, 1, 1, 1, 1, 1]))
    assert (up.coef_ >= 0).all()
    both = AdaRank(30, signs=0).fit(turned)
    assert both.score(turned) >= AdaRank(30).fit(turned).score(turned)
    for signs in ([1, 1], 2):
        with pytest.raises(InputError, match="signs must be 6 numbers"):
            AdaRank(signs=signs).fit(data)


def test_ties_do_not_leak_the_order_of_the_file():
    """A constant feature keeps the order of the file, here that of the labels; it is not taken."""
    rng = np.random.default_rng(0)
    y = np.tile([2.0, 1, 1, 0, 0, 0], 30)
    X = np.column_stack([np.zeros(len(y)), y + 2 * rng.normal(size=len(y))])
    qid = np.repeat(np.arange(30), 6)
    assert AdaRank(1).fit(X, y, qid).coef_[0] == 0
    assert AdaRank(1, convention="letor4").fit(X, y, qid).coef_[0] > 0


def test_query_weight(data):
    weight = np.zeros(data.n_queries)
    weight[:15] = 2.0
    some = AdaRank(20).fit(data.X, data.y, data.qid, query_weight=weight)
    assert np.allclose(some.coef_, AdaRank(20).fit(data.queries[:15]).coef_)


def test_whole_sample_weights_repeat_documents(data):
    weight = np.random.default_rng(2).integers(0, 3, size=len(data))
    rows = np.repeat(np.arange(len(data)), weight)
    weighed = AdaRank(20).fit(data.X, data.y, data.qid, sample_weight=weight)
    assert np.allclose(
        weighed.coef_, AdaRank(20).fit(data.X[rows], data.y[rows], data.qid[rows]).coef_
    )
    with pytest.raises(InputError, match="give whole sample_weight"):
        AdaRank().fit(data.X, data.y, data.qid, sample_weight=np.full(len(data), 0.5))


@pytest.mark.parametrize("name", ["gain_weight", "offset"])
def test_what_has_no_meaning_is_refused(data, name):
    with pytest.raises(InputError, match=f"so {name} has no effect"):
        AdaRank().fit(data.X, data.y, data.qid, **{name: np.ones(len(data))})


@pytest.mark.parametrize("measure", ["dcg@5", "all_pairs_error"])
def test_measures_that_cannot_be_boosted(data, measure):
    with pytest.raises(InputError, match="cannot be boosted"):
        AdaRank(measure=measure).fit(data)


def test_undefined_measures_and_unknown_words(data):
    low = data.replace(y=data.y - 10)  # nothing is relevant
    with pytest.raises(InputError, match="map is not defined on any query"):
        AdaRank().fit(low)
    with pytest.raises(InputError, match="repeats='often'"):
        AdaRank(repeats="often").fit(data)
    with pytest.warns(DataWarning, match="AdaRank learned a model without features"):
        AdaRank(measure="kendall_tau_b").fit(-np.c_[data.y, data.y], data.y, data.qid)


def test_a_perfect_feature_ends_it(data):
    ranker = AdaRank().fit(np.c_[data.X, data.y], data.y, data.qid)
    assert ranker.n_iter_ == 1
    assert np.flatnonzero(ranker.coef_).tolist() == [6]
    assert np.isfinite(ranker.coef_).all()


def test_it_is_a_linear_model(data, tmp_path):
    ranker = AdaRank(20).fit(data)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    assert isinstance(model, Model)
    assert model.predict(data).tolist() == ranker.predict(data).tolist()
    assert ranker.sparsity_ == model.sparsity


def test_quality_on_public_data(data_dir):
    """MQ2008 is published at a MAP of about 0.476; on OHSUMED ties alone would give 0.427."""
    for name, convention, least in (("MQ2008", "letor4", 0.464), ("OHSUMED", "letor3", 0.441)):
        found = []
        for fold in range(1, 6):
            train, vali, test = (
                load_letor(data_dir / f"{name}/Fold{fold}/{part}.txt")
                for part in ("train", "vali", "test")
            )
            ranker = AdaRank().fit(train, validation=vali)
            found.append(
                evaluate(test, ranker.predict(test), measures="map", convention=convention)["map"]
            )
        assert np.mean(found) > least
