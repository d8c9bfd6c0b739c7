"""A problem that is solved again: the same columns, a bound, the same optimum from anywhere."""

import numpy as np
import pytest

from leanrank import LeanRanker
from leanrank.data import RankingData, make_clicks, make_ranking
from leanrank.errors import InputError, ModelError
from leanrank.model import Model, load_model
from leanrank.service.refit import Today, refit, refit_bound


def small(**options):
    return LeanRanker(n_folds=2, n_strengths=6, **options)


def divided(seed, **options):
    data = make_ranking(n_queries=60, n_features=6, random_state=seed, **options)
    return data.queries[:30], data.queries[30:]


def with_gaps(data, seed=0):
    rng = np.random.default_rng(seed)
    X = np.array(data.X)
    X[rng.random(X.shape) < 0.2] = np.nan
    return data.replace(X=X)


def paired(data):
    """Labels that depend on a product."""
    x = data.X[:, 0] * data.X[:, 1] + 0.3 * data.X[:, 2]
    return data.replace(y=np.digitize(x, np.quantile(x, [0.6, 0.85])))


def coded(data):
    rng = np.random.default_rng(3)
    X = np.array(data.X)
    X[:, 5] = rng.integers(0, 4, len(X))
    X[:3, 5] = 17  # a rare level
    y = np.clip(data.y + (X[:, 5] == 2), 0, None)
    return data.replace(X=X, y=y)


CASES = {
    "plain": ({}, lambda data: data),
    "gaps": ({}, with_gaps),
    "weights": ({"curves": None}, lambda data: data),
    "pairs": ({"max_pairs": 4, "heredity": False}, paired),
    "float32": ({}, lambda data: data.replace(X=data.X.astype(np.float32))),
    "category": ({"categories": [5], "penalty_factors": {5: 0.05}}, coded),
    "monotone": ({"monotone": [1, 0, 0, 0, 0, 0]}, lambda data: data),
    "other loss": ({"loss": "logistic"}, lambda data: data),
}


def objective(today):
    return today.problem().at(today.w) + today.penalty.value(today.w)


@pytest.mark.parametrize("case", CASES)
def test_columns_of_a_file_are_those_of_the_fit(case, tmp_path):
    options, change = CASES[case]
    data = change(make_ranking(n_queries=60, n_features=6, random_state=1))
    ranker = small(**options).fit(data)
    ranker.save(tmp_path / "m.json")
    model = load_model(tmp_path / "m.json")
    today = Today(model, data)
    apart = today.problem().scores(today.w) - model.predict(data)
    ends = zip(data.query_ptr[:-1], data.query_ptr[1:], strict=True)
    assert max(np.ptp(apart[a:b]) for a, b in ends) < 1e-5
    assert objective(today) == pytest.approx(ranker.objective_, rel=1e-9)
    again = refit(model, data)  # it is there already
    np.testing.assert_allclose(again.predict(data), model.predict(data), atol=1e-4)


def brute_gain(model, data):
    """What a refit gains, minimised without our solver: proximal gradient on the columns."""
    today = Today(model, data)
    block = today.structure.design.take(np.arange(today.structure.design.n_features))
    X = block.columns((0, len(data)), 0, len(today.w))
    problem = today.problem()

    def value(w):
        return problem.evaluate(X @ w)[0] + today.penalty.value(w)

    w, step = today.w.copy(), 1.0
    for _ in range(3_000):
        u = X @ w
        loss, g = problem.evaluate(u)
        c = X.T @ g
        while True:
            new = today.penalty.prox(w - step * c, 1.0 / step)
            move = new - w
            if problem.evaluate(X @ new)[0] <= loss + c @ move + move @ move / (2 * step) + 1e-15:
                break
            step /= 2
        w, step = new, step * 1.2
    return value(today.w) - value(w)


@pytest.mark.parametrize("seed", range(4))
def test_bound_is_above_a_refit_by_another_method(seed):
    old, new = divided(seed)
    model = small(curves=3, max_pairs=0).fit(old).to_model()
    gain = brute_gain(model, new)
    bound = refit_bound(Today(model, new))
    assert bound.objective - bound.lower >= gain - 1e-10
    assert bound.objective - bound.lower <= gain + 2e-3 * bound.objective
    assert refit_bound(Today(model, new), tol=1.0).gain >= bound.gain - 1e-12


def test_moves_are_distances_from_the_slopes():
    old, new = divided(2)
    model = small(curves=None).fit(old).to_model()
    today = Today(model, new)
    X = new.X[:, model.indices]
    g = today.problem().evaluate(X @ today.w)[1]
    slopes = X.T @ g + today.record.alpha * np.sign(today.w)
    expected = np.sort(np.abs(slopes) / today.record.alpha)[::-1]
    np.testing.assert_allclose(list(refit_bound(today).moves.values()), expected, rtol=1e-6)


def test_warm_and_cold_meet_and_terms_come_back():
    old, new = divided(4)
    model = small(curves=4, max_pairs=0).fit(old).to_model()
    today = Today(model, new)
    warm, cold = today.solve(1e-9), today.solve(1e-9, np.zeros_like(today.w))
    assert warm.objective == pytest.approx(cold.objective, rel=1e-8)
    next_day = refit(model, new.replace(y=np.random.default_rng(0).permutation(new.y)), tol=1e-9)
    assert set(next_day.indices) <= set(model.indices)
    back = refit(next_day, old, tol=1e-9)  # also those that the day between left out
    np.testing.assert_allclose(back.predict(old), model.predict(old), atol=2e-3)


def test_refit_of_a_ranker():
    old, new = divided(5)
    ranker = small(max_pairs=0).fit(old)
    kept = ranker.to_model()
    names = kept.term_names
    assert ranker.refit(new) is ranker
    assert set(ranker.to_model().term_names) <= set(names)
    assert ranker.dual_gap_ <= ranker.tol
    assert ranker.to_model() == refit(kept, new)


def test_structure_again_is_a_fit_with_the_parameters_of_the_model(tmp_path):
    old, new = (coded(part) for part in divided(5))
    ranker = small(categories=[5], penalty_factors={5: 0.05}, max_features=3).fit(old)
    ranker.save(tmp_path / "m.json")
    expected = small(categories=[5], penalty_factors={5: 0.05}, max_features=3).fit(new).to_model()
    again = refit(load_model(tmp_path / "m.json"), new, structure="again")
    assert again.to_dict()["curves"] == expected.to_dict()["curves"]
    assert ranker.refit(new, structure="again").to_model() == expected
    with pytest.raises(InputError, match="structure"):
        ranker.refit(new, structure="other")
    with pytest.raises(ModelError, match="LeanRanker"):
        refit(Model.from_coef(np.ones(6)), new, structure="again")


def test_clicks_are_learned_from_again():
    documents = make_ranking(n_queries=30, n_features=6, docs_per_query=10, random_state=1)
    log = make_clicks(documents, n_sessions=2_000, swaps="shuffle", random_state=0)
    ranker = small(max_pairs=0).fit(log)
    labels, gains = log.labelled(None)
    today = Today(ranker.to_model(), labels, gain_weight=gains)
    assert objective(today) == pytest.approx(ranker.objective_, rel=1e-9)
    model = refit(ranker, log)
    np.testing.assert_allclose(model.predict(labels), ranker.predict(labels.X), atol=1e-3)
    assert model.provenance["training"]["clicks"]
    assert model.provenance["training"]["held_out"]
    judged = refit(ranker, documents)  # judgments are other labels
    assert not {"clicks", "held_out"} & set(judged.provenance["training"])


def test_frames_with_texts():
    pandas = pytest.importorskip("pandas")
    rng = np.random.default_rng(0)
    n = 600
    frame = pandas.DataFrame({"x": rng.normal(size=n), "lang": rng.choice(["de", "en", "fr"], n)})
    y = (frame["x"] + (frame["lang"] == "en") > 0.8).astype(int)
    qid = np.arange(n) // 10
    model = small().fit(frame, y, qid=qid).to_model()
    new = frame.assign(lang=frame["lang"].replace("fr", "pl"))
    today = refit(model, new, y, qid)
    assert today.predict(new).shape == (n,)
    assert today.curves[1].levels == model.curves[1].levels


def test_what_cannot_be_solved_again_is_said():
    old, new = divided(6)
    with pytest.raises(ModelError, match="LeanRanker"):
        refit(Model.from_coef(np.ones(6)), new)
    model = small(max_pairs=0).fit(old).to_model()
    with pytest.raises(InputError, match="labels"):
        refit(model, new.replace(y=np.zeros(len(new))))
    made = dict(model.provenance)
    made["training"] = {**made["training"], "columns": [{"feature": 0}]}
    with pytest.raises(ModelError, match="train it again"):
        refit(model.replace(provenance=made), new)


def test_data_set_without_rows_of_a_level():
    """One document per query, one level: they count for nothing."""
    old, new = divided(7)
    model = small(max_pairs=0).fit(old).to_model()
    one = new.queries[[0]]
    X = np.vstack((new.X, one.X[:1]))
    more = RankingData(X, np.append(new.y, 1.0), np.append(new.qid, 999))
    a, b = Today(model, new), Today(model, more)
    assert objective(a) == pytest.approx(objective(b), rel=1e-12)
