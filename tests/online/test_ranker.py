import itertools
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

from leanrank.data import read_clicks
from leanrank.errors import FileError, InputError
from leanrank.online import OnlineRanker, user
from leanrank.online.serving import METHODS
from leanrank.rankers.streaming import state_bytes


def queries(seed=0, n_features=5):
    rng = np.random.default_rng(seed)
    for t in itertools.count():
        X = rng.normal(size=(rng.integers(1, 14), n_features))
        yield t, X, np.digitize(X[:, 0], (0.0, 1.0))


def live(ranker, source, n):
    visitor = user("informational")
    for t, X, grades in itertools.islice(source, n):
        shown = ranker.rank(X)
        ranker.observe(shown, visitor.clicks(grades[shown.documents], rng=t))
    return ranker


def same_state(a, b):
    return all(
        np.array_equal(x[..., : y.shape[-1]], y[..., : x.shape[-1]])
        for x, y in zip(a.state, b.state, strict=True)
    )


@pytest.mark.parametrize("method", METHODS)
def test_lists_have_each_document_once_and_true_propensities(method):
    """Shares of lists over many draws are the products of the propensities."""
    X = np.random.default_rng(0).normal(size=(4, 3))
    ranker = OnlineRanker(method, n_features=3, list_length=2, random_state=1)
    ranker.state.w[:] = ranker.state.member * [0.5, -0.2, 0.1]
    counts, promised = {}, {}
    for _ in range(4000):
        shown = ranker.rank(X)
        key = tuple(shown.documents.tolist())
        assert len(set(key)) == 2
        counts[key] = counts.get(key, 0) + 1
        promised.setdefault(key, []).append(shown.propensities.prod())
    if method == "dbgd":  # lists also depend on the directions that were drawn
        assert all(0 < p <= 1 for values in promised.values() for p in values)
        return
    for key, count in counts.items():
        p = np.mean(promised[key])
        assert abs(count / 4000 - p) < 4.5 * np.sqrt(p * (1 - p) / 4000) + 1e-9


@pytest.mark.parametrize("method", METHODS)
def test_equal_scores_are_shown_in_any_order(method):
    first = [
        OnlineRanker(method, n_features=2, random_state=seed).rank(np.ones((5, 2))).documents[0]
        for seed in range(300)
    ]
    assert np.bincount(first, minlength=5).min() > 30


@pytest.mark.parametrize("method", METHODS)
def test_a_saved_ranker_goes_on_with_the_same_bits(method, tmp_path):
    whole = live(OnlineRanker(method, n_features=5, list_length=6), queries(), 60)
    half, source = OnlineRanker(method, n_features=5, list_length=6), queries()
    live(half, source, 25).save(tmp_path / "state")
    again = OnlineRanker.load(tmp_path / "state")
    assert again.parameters == half.parameters
    assert same_state(live(again, source, 35), whole)
    assert again.n_lists_ == 60


@pytest.mark.parametrize("solver", ["sgd", "ftrl"])
def test_views_and_solvers_are_saved(solver, tmp_path):
    ranker = OnlineRanker("lcra", n_features=5, views=3, solver=solver, alpha=0.1)
    live(ranker, queries(), 30).save(tmp_path / "state")
    again = OnlineRanker.load(tmp_path / "state")
    assert same_state(again, ranker)
    assert again.rule == ranker.rule


def test_ftrl_leaves_weights_at_zero():
    ranker = live(OnlineRanker("spd", n_features=5, solver="ftrl", alpha=2.0), queries(), 300)
    assert 0 < np.count_nonzero(ranker.coef_) < 5
    assert ranker.to_model().n_nonzero == np.count_nonzero(ranker.coef_)


def test_sparse_and_dense_documents_give_the_same_list():
    X = np.random.default_rng(0).normal(size=(6, 4)).round() + 0.0
    lists = [OnlineRanker("pdgd", n_features=4).rank(x) for x in (X, sparse.csr_array(X))]
    np.testing.assert_array_equal(lists[0].documents, lists[1].documents)


def test_lists_may_be_observed_late():
    ranker = OnlineRanker("spd", n_features=5)
    _, X, _ = next(queries(1))
    early, late = ranker.rank(X), ranker.rank(X)
    clicks = np.arange(len(early.documents)) == 1
    ranker.observe(late, clicks)
    ranker.observe(early, clicks)
    assert ranker.n_lists_ == ranker.n_steps_ == 2


def test_a_served_list_is_a_click_log_with_propensities():
    rng = np.random.default_rng(0)
    ranker, table = OnlineRanker("spd", n_features=2, explore=0.5, list_length=3), {}
    features = {"query": [], "document": [], "a": [], "b": []}
    for q in range(4):
        X, names = rng.normal(size=(5, 2)), [f"d{i}" for i in range(5)]
        for name, column in zip(features, ([str(q)] * 5, names, *X.T.tolist()), strict=True):
            features[name] += column
        shown = ranker.rank(X)
        rows = shown.log([0, 1, 0], session=f"s{q}", query=str(q), documents=names)
        table = {name: table.get(name, []) + column for name, column in rows.items()}
    log = read_clicks(table, features, propensity="propensity", keep_unshown=True)
    assert log.n_lists == 4
    np.testing.assert_allclose(log.propensity, table["propensity"])
    before = ranker.coef_
    ranker.learn_from_log(log)
    assert ranker.n_lists_ == ranker.n_steps_ == 4
    live = OnlineRanker("spd", n_features=2, list_length=3)
    for q in range(4):
        X = np.column_stack([features["a"], features["b"]])[5 * q : 5 * q + 5]
        past, rows = live.rank(X), table["document"][3 * q : 3 * q + 3]
        past.slate.documents[:3] = [int(name[1]) for name in rows]
        live.observe(past, [0, 1, 0])
    assert not np.array_equal(ranker.coef_, before)
    np.testing.assert_allclose(ranker.coef_, live.coef_)
    with pytest.raises(InputError, match="only from its own lists"):
        OnlineRanker("pdgd", n_features=2).learn_from_log(log)


@pytest.mark.parametrize(
    ("given", "word"),
    [
        ({"method": "sdp"}, "spd"),
        ({"method": "pdgd", "explore": 0.1}, "no effect"),
        ({"method": "dbgd", "alpha": 0.1}, "no effect"),
        ({"solver": "adam"}, "adam"),
        ({"explore": 1.5}, "at most 1"),
        ({"eta0": 0.0}, "above 0"),
        ({"method": "lcra", "views": 0}, "at least 1"),
        ({"list_length": 0}, "at least 1"),
        ({"random_state": -1}, "at least 0"),
    ],
)
def test_what_has_no_effect_or_no_sense_is_refused(given, word):
    with pytest.raises(InputError, match=word):
        OnlineRanker(**{"n_features": 3, **given})


def test_wrong_documents_and_clicks_are_refused():
    ranker = OnlineRanker(n_features=3)
    for X in (np.ones((2, 4)), np.ones(3), np.empty((0, 3))):
        with pytest.raises(InputError, match="3 features"):
            ranker.rank(X)
    with pytest.raises(InputError, match="not finite"):
        ranker.rank([[1.0, np.nan, 0.0]])
    shown = ranker.rank(np.eye(3))
    for clicks in ([1, 0], [1, 0, 2]):
        with pytest.raises(InputError, match="one 0 or 1"):
            ranker.observe(shown, clicks)


@pytest.mark.parametrize("method", ["spd", "lcra", "pdgd", "ips"])
def test_a_step_that_leaves_the_numbers_is_refused_and_not_taken(method):
    ranker = OnlineRanker(method, n_features=2, eta0=1e300)
    large, small = (ranker.rank(size * np.eye(2)) for size in (1e20, 1.0))
    ranker.observe(small, [0, 1])
    before = ranker.coef_
    with pytest.raises(InputError, match=r"no longer finite: .*scale the features"):
        ranker.observe(large, [0, 1])
    np.testing.assert_array_equal(ranker.coef_, before)
    with pytest.raises(InputError, match="scores of the documents are not finite"):
        ranker.rank(1e100 * np.eye(2))


def test_damaged_states_are_refused(tmp_path):
    path = tmp_path / "state"
    ranker = live(OnlineRanker("lcra", n_features=5), queries(), 10)
    ranker.save(path)
    content = path.read_bytes()
    with pytest.raises(FileError, match="no such file"):
        OnlineRanker.load(tmp_path / "none")
    for changed, word in (
        (b"{}", "this is no"),
        (content[:-1], "checksum"),
        (content.replace(b"online 2", b"online 9", 1), "version 2"),
        (content[:200] + b"x" + content[201:], "checksum"),
    ):
        path.write_bytes(changed)
        with pytest.raises(InputError, match=word):
            OnlineRanker.load(path)
    made = {**ranker.parameters, "method": "lcra"}
    narrow = ranker.state._replace(member=ranker.state.member[:, :2])
    for state, parameters, word in (
        (narrow, made, "damaged"),
        (ranker.state, {**made, "views": 3}, "parameters"),
        (ranker.state, {**made, "solver": "adam"}, "adam"),
        (None, made, "damaged"),
    ):
        parts = {"parameters": parameters, "random_state": 0, "list_length": 10, "state": state}
        path.write_bytes(state_bytes(parts, b"leanrank-online", 2))
        with pytest.raises(InputError, match=word):
            OnlineRanker.load(path)


SERVICE = """
import sys
sys.path.insert(0, {root!r})
from tests.online.test_ranker import live, queries
from leanrank.online import OnlineRanker
import itertools, os, signal
path, kill_at = sys.argv[1], int(sys.argv[2])
ranker = OnlineRanker.load(path) if os.path.exists(path) else OnlineRanker("lcra", n_features=5)
source = itertools.islice(queries(), ranker.n_lists_, None)
while ranker.n_lists_ < 60:
    live(ranker, source, 1)
    if ranker.n_lists_ == kill_at:
        os.kill(os.getpid(), signal.SIGKILL)
    ranker.save(path)
"""


@pytest.mark.slow
def test_a_killed_service_goes_on_to_the_same_bits(tmp_path):
    root = str(Path(__file__).parents[2])
    path = tmp_path / "state"
    for kill_at in (13, 37, 99):
        subprocess.run(
            [sys.executable, "-c", SERVICE.format(root=root), str(path), str(kill_at)],
            check=False,
        )
    whole = live(OnlineRanker("lcra", n_features=5), queries(), 60)
    assert same_state(OnlineRanker.load(path), whole)
