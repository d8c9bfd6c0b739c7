"""Click models against enumeration of everything a user may do, and against the truth."""

import itertools

import numpy as np
import pytest

from leanrank.data import make_clicks, make_ranking
from leanrank.errors import DataWarning, InputError
from leanrank.online import ClickModel, user
from leanrank.online.kernels import expectations, list_key, uniform
from leanrank.online.users import shown_lists

RNG = np.random.default_rng(7)
BROWSING = np.tril(RNG.uniform(0.2, 0.9, (4, 4)))
BROWSING[0, 0] = 1.0
MODELS = {
    "cascade": ClickModel.cascade([0.2, 0.5, 0.9], [0.1, 0.4, 0.8]),
    "position": ClickModel.position_based([0.2, 0.5, 0.9], eta=1.0),
    "dependent": ClickModel.dependent_click([0.2, 0.5, 0.9], [0.7, 0.5, 0.3, 0.2]),
    "browsing": ClickModel.user_browsing([0.2, 0.5, 0.9], BROWSING),
    "all": ClickModel(
        RNG.uniform(0.2, 0.9, (4, 4)), [0.2, 0.5, 0.9], RNG.uniform(0.1, 0.6, (2, 4, 3))
    ),
}
LISTS = np.array([[2, 0, 1, 1], [0, 1, -1, 2], [1, -1, -1, -1], [0, 0, 2, 2]])


def at(table, *index):
    return table[tuple(min(i, n - 1) for i, n in zip(index, table.shape, strict=True))]


def histories(model, grades):
    """Yield each history of one list: its probability, clicks, and what was decided on the way."""

    def go(r, last, chance, clicks, events):
        if r == len(grades):
            yield chance, tuple(clicks), events
            return
        g = grades[r]
        if g < 0:
            yield from go(r + 1, last, chance, [*clicks, False], events)
            return
        d = 0 if last < 0 else r - last
        e, a = at(model.examine, r, d), model.click[g]
        look = ("examine", (min(r, model.examine.shape[0] - 1), min(d, model.examine.shape[1] - 1)))
        unseen = [*events, (*look, False)]
        yield from go(r + 1, last, chance * (1 - e), [*clicks, False], unseen)
        for hit, p in ((True, a), (False, 1 - a)):
            s = at(model.stop, int(hit), r, g)
            where = int(hit), min(r, model.stop.shape[1] - 1), min(g, model.stop.shape[2] - 1)
            seen = [*events, (*look, True), ("click", (g,), hit)]
            now, then = [*clicks, hit], r if hit else last
            left = [*now, *[False] * (len(grades) - r - 1)]
            yield chance * e * p * s, tuple(left), [*seen, ("stop", where, True)]
            yield from go(
                r + 1, then, chance * e * p * (1 - s), now, [*seen, ("stop", where, False)]
            )

    yield from go(0, -1, 1.0, [], [])


@pytest.mark.parametrize("name", MODELS)
def test_probabilities_and_likelihood_are_those_of_all_histories(name):
    model = MODELS[name]
    for grades in LISTS:
        chance = {}
        for p, clicks, _ in histories(model, grades):
            chance[clicks] = chance.get(clicks, 0.0) + p
        assert np.isclose(sum(chance.values()), 1.0)
        expected = sum(p * np.array(clicks) for clicks, p in chance.items())
        np.testing.assert_allclose(model.probabilities(grades[None])[0], expected, rtol=1e-12)
        for clicks, p in chance.items():
            if p > 0:
                found = model.assess((grades[None], np.array([clicks]))).log_likelihood
                np.testing.assert_allclose(np.exp(found), p, rtol=1e-10)


@pytest.mark.parametrize("name", MODELS)
def test_expected_counts_are_those_of_all_histories(name):
    model = MODELS[name]
    for grades, clicks in itertools.product(LISTS, ([1, 0, 0, 1], [0, 1, 0, 0], [0, 0, 0, 0])):
        clicked = np.array(clicks, dtype=bool) & (grades >= 0)
        counts = model.no_counts()
        expected = {name: np.zeros_like(table) for name, table in counts._asdict().items()}
        total = 0.0
        for p, drawn, events in histories(model, grades):
            if drawn == tuple(clicked):
                total += p
                for table, where, happened in events:
                    expected[table][(0, *where)] += p
                    expected[table][(1, *where)] += p * happened
        value = expectations(model.tables, grades[None], clicked[None], counts)
        np.testing.assert_allclose(value, np.log(total), rtol=1e-12)
        for table, found in counts._asdict().items():
            np.testing.assert_allclose(found, expected[table] / total, atol=1e-12)


@pytest.mark.parametrize("name", MODELS)
def test_drawn_clicks_have_their_probabilities(name):
    model, n = MODELS[name], 40_000
    for grades in LISTS:
        chance = {}
        for p, clicks, _ in histories(model, grades):
            chance[clicks] = chance.get(clicks, 0.0) + p
        drawn = model.simulate(np.repeat(grades[None], n, axis=0), seed=3)
        patterns, counts = np.unique(drawn, axis=0, return_counts=True)
        found = {tuple(map(bool, row)): c for row, c in zip(patterns, counts, strict=True)}
        assert all(chance[pattern] > 0 for pattern in found)
        for pattern, p in chance.items():
            assert abs(found.get(pattern, 0) - n * p) < 5 * np.sqrt(n * p * (1 - p)) + 1


def test_a_stream_does_not_depend_on_threads_or_parts():
    model = user("informational")
    lists = np.random.default_rng(0).integers(3, size=(50_000, 10))
    drawn = model.simulate(lists, seed=5)
    np.testing.assert_array_equal(drawn, model.simulate(lists, seed=5, n_jobs=3))
    parts = [model.simulate(lists[a : a + 7_001], seed=5, first=a) for a in range(0, 50_000, 7_001)]
    np.testing.assert_array_equal(drawn, np.concatenate(parts))
    assert (drawn != model.simulate(lists, seed=6)).any(axis=1).mean() > 0.5


def test_random_numbers_are_uniform_and_independent():
    draws = np.array(
        [[uniform(np.uint64(list_key(0, n)), r) for r in range(4)] for n in range(5_000)]
    )
    assert draws.min() >= 0
    assert draws.max() < 1
    assert np.abs(np.histogram(draws, 20, (0, 1))[0] - 1_000).max() < 160
    assert np.abs(np.corrcoef(draws.T) - np.eye(4)).max() < 0.07
    assert np.abs(np.corrcoef(draws[1:, 0], draws[:-1, 0])[0, 1]) < 0.07


def test_users_by_grade():
    assert user("perfect", 5).click.tolist() == [0, 0.2, 0.4, 0.8, 1]
    assert user("navigational", 2).stop[1, 0].tolist() == [0.2, 0.9]
    once = ClickModel.cascade([0.5, 0.9]).simulate(np.ones((500, 10), dtype=int), seed=0)
    assert once.sum(axis=1).max() == 1
    rng = np.random.default_rng(0)
    a, b = (user("informational").clicks([0, 1, 2] * 3, rng) for _ in range(2))
    assert a.tolist() != b.tolist()
    assert user("perfect").clicks([2.0, 0.0], np.int64(3)).tolist() == [True, False]
    for name in ("perfect", "navigational", "informational", "almost-random"):
        three, five = user(name), user(name, 5)
        assert three.click[[0, 2]].tolist() == five.click[[0, 4]].tolist()


@pytest.mark.parametrize(
    ("name", "start"),
    [
        ("cascade", ClickModel.cascade([0.5, 0.5, 0.5], 0.5)),
        ("position", ClickModel.position_based([0.5, 0.5, 0.5], examine=[1, 0.5, 0.5, 0.5])),
        ("dependent", ClickModel.dependent_click([0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 0.5])),
        (
            "browsing",
            ClickModel.user_browsing([0.5, 0.5, 0.5], np.where(BROWSING % 1 > 0, 0.5, BROWSING)),
        ),
    ],
)
def test_em_finds_the_truth(name, start):
    truth = MODELS[name]
    shown = np.random.default_rng(1).integers(3, size=(60_000, 4))
    clicked = truth.simulate(shown, seed=2)
    found = start.fit((shown, clicked), smoothing=0.0)
    np.testing.assert_allclose(found.click, truth.click, atol=0.02)
    depth = found.examine.shape[0]
    np.testing.assert_allclose(found.examine, truth.examine[:depth], atol=0.04)
    reached = 3 if name == "dependent" else None  # no one sees what comes after the last rank
    np.testing.assert_allclose(found.stop[:, :reached], truth.stop[:, :reached], atol=0.04)
    held_out = np.random.default_rng(3).integers(3, size=(20_000, 4))
    test = held_out, truth.simulate(held_out, seed=4)
    best, fitted = truth.assess(test), found.assess(test)
    assert abs(best.log_likelihood - fitted.log_likelihood) < 5e-4
    assert abs(best.perplexity - fitted.perplexity) < 2e-3
    assert fitted.log_likelihood > start.assess(test).log_likelihood + 0.01
    assert fitted.perplexity < start.assess(test).perplexity


def test_em_never_loses_likelihood():
    shown = np.random.default_rng(1).integers(3, size=(500, 4))
    log = shown, MODELS["all"].simulate(shown, seed=2)
    values = [-np.inf]
    model = ClickModel(np.full((4, 4), 0.6), np.full(3, 0.5), np.full((2, 4, 3), 0.3))
    for _ in range(30):
        with pytest.warns(DataWarning, match="did not converge in 1 iterations"):
            model = model.fit(log, smoothing=0.0, max_iter=1)
        values.append(model.assess(log).log_likelihood)
    assert np.diff(values).min() >= -1e-12


def test_a_click_log_has_one_attraction_per_document_or_per_grade():
    data = make_ranking(n_queries=5, docs_per_query=4, n_levels=3, random_state=0)
    log = make_clicks(data, 40_000, eta=1.0, noise=0.2, swaps="shuffle", random_state=0)
    start = ClickModel.position_based([0.5], examine=[1, 0.5, 0.5, 0.5])
    found = start.fit(log)
    np.testing.assert_allclose(found.examine[:, 0], [1, 1 / 2, 1 / 3, 1 / 4], atol=0.03)
    grade = data.y / data.y.max()
    np.testing.assert_allclose(found.click, 0.2 + 0.8 * grade, atol=0.05)
    by_grade = start.fit(log, data.y)
    np.testing.assert_allclose(by_grade.click, [0.2, 0.6, 1.0], atol=0.02)
    assert by_grade.assess(log, data.y).perplexity < 2


def test_a_gap_in_the_positions_is_an_empty_place():
    log = make_clicks(make_ranking(n_queries=2, docs_per_query=3, random_state=0), n_sessions=4)
    moved = type(log)(log.data, log.row, 2 * log.position, log.clicked, log.list_ptr, 0)
    shown, clicked = shown_lists(moved)
    assert shown.shape == (4, 6)
    assert (shown[:, ::2] == -1).all()
    np.testing.assert_array_equal(clicked[:, 1::2].ravel(), log.clicked)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: user("expert"), "name='expert' is not known"),
        (lambda: user("perfect", 4), "tables for 2, 3 and 5 grades"),
        (lambda: ClickModel.cascade([0.5, 1.5]), "click has a value outside"),
        (lambda: user("perfect").simulate([[3]], 0), "has grade 3, but the click model has 3"),
        (lambda: MODELS["browsing"].simulate([[0] * 5], 0), "have 5 ranks, but the click model"),
        (lambda: user("perfect").simulate([[0.5]], 0), "a grade is not a whole number"),
        (lambda: user("perfect").simulate([1, 2], 0), "an array of shape"),
        (lambda: user("perfect").fit(([[0]], [[True]])), "impossible in the initial model"),
        (lambda: user("perfect").fit(([[0]], [[True, True]])), "two arrays of one shape"),
        (lambda: ClickModel([0.5], [0.5], [[[0.5]]]), "examine must be an array with 2"),
        (lambda: ClickModel([[0.5]], [0.5], [[[0.5]]]), "stop needs two tables"),
    ],
)
def test_what_cannot_be_is_refused(call, message):
    with pytest.raises(InputError, match=message):
        call()
