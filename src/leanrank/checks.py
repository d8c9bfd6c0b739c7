"""Checks that every ranker must pass.

``check_ranker(ranker)`` runs all of them, like scikit-learn's ``check_estimator`` (which a ranker
passes as well). Each check tests a property of rankers: what must not change if rows are permuted,
queries are renamed, threads are added, and so on.
"""

from __future__ import annotations

import pickle
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.utils import get_tags

from leanrank._typing import FloatArray
from leanrank.data.ranking_data import RankingData
from leanrank.metrics import evaluate

__all__ = ["check_ranker", "ranker_checks"]

Check = Callable[[Any], None]


def check_ranker(ranker: Any) -> None:
    """Run every check on clones of an unfitted ranker; raises AssertionError at the first failure.

    Examples
    --------
    >>> from leanrank.rankers import RankRLS
    >>> check_ranker(RankRLS())
    """
    for check in ranker_checks():
        try:
            check(clone(ranker))
        except AssertionError as error:
            raise AssertionError(f"{check.__name__}: {error}") from error


def ranker_checks() -> list[Check]:
    """Return the checks, for ``pytest.mark.parametrize``."""
    kinds = "check_ranker_is_", "check_ranker_does_"
    return [value for name, value in globals().items() if name.startswith(kinds)]


def check_ranker_is_invariant_to_row_order(ranker: Any) -> None:
    """Rows of the queries in any order, even interleaved, give the same weights."""
    X, y, qid = _problem()
    shuffled = np.random.default_rng(1).permutation(len(y))
    plain = _fit(ranker, X, y, qid)
    mixed = _fit(ranker, X[shuffled], y[shuffled], qid[shuffled])
    _same_weights(plain, mixed)
    assert np.allclose(mixed.predict(X[shuffled]), plain.predict(X)[shuffled], rtol=1e-5, atol=1e-7)


def check_ranker_is_invariant_to_query_names(ranker: Any) -> None:
    """Query identifiers may be integers, strings or tuples."""
    X, y, qid = _problem()
    plain = _fit(ranker, X, y, qid)
    named = np.array([f"topic {q}" for q in qid])
    objects = np.empty(len(qid), dtype=object)
    objects[:] = [("q", int(q)) for q in qid]
    for other in (named, objects):
        _same_bits(plain, _fit(ranker, X, y, other))


def check_ranker_is_the_same_for_group_sizes_and_ranking_data(ranker: Any) -> None:
    """qid, LightGBM's group sizes and a RankingData give the same model."""
    X, y, qid = _problem()
    plain = _fit(ranker, X, y, qid)
    sizes = np.unique(qid, return_counts=True)[1]
    _same_bits(plain, clone(ranker).fit(X, y, group=sizes))
    data = RankingData(X, y, qid)
    held = clone(ranker).fit(data)
    _same_bits(plain, held)
    assert np.array_equal(held.predict(data), plain.predict(X))
    assert np.array_equal(held.rank(data), plain.rank(X, qid))


def check_ranker_is_the_same_for_sparse_and_dense(ranker: Any) -> None:
    """A SciPy sparse X gives the weights of its dense form."""
    from scipy.sparse import coo_array, csc_matrix, csr_matrix

    X, y, qid = _problem()
    X[np.abs(X) < 0.7] = 0.0
    dense = _fit(ranker, X, y, qid)
    for form in (csr_matrix, csc_matrix, coo_array):
        sparse = _fit(ranker, form(X), y, qid)
        _same_weights(dense, sparse)
        assert np.allclose(sparse.predict(form(X)), sparse.predict(X))


def check_ranker_is_nearly_the_same_in_single_precision(ranker: Any) -> None:
    """float32 features give the same model up to their rounding."""
    X, y, qid = _problem()
    single = _fit(ranker, X.astype(np.float32), y, qid)
    _same_weights(_fit(ranker, X, y, qid), single, tolerance=2e-3)
    assert _weights(single).dtype == np.float64


def check_ranker_is_the_same_on_any_number_of_threads(ranker: Any) -> None:
    """1, 2 and 4 threads give the same bits."""
    if "n_jobs" not in ranker.get_params():
        return
    X, y, qid = _problem(n_queries=400, docs=60)
    fits = [_fit(clone(ranker).set_params(n_jobs=jobs), X, y, qid) for jobs in (1, 2, 4)]
    for other in fits[1:]:
        _same_bits(fits[0], other)


def check_ranker_is_unmoved_by_a_constant_within_queries(ranker: Any) -> None:
    """A feature that is constant within each query cannot rank: it must not change the others."""
    X, y, qid = _problem()
    constant = (qid % 7).astype(np.float64)[:, None]
    plain = _fit(ranker, X, y, qid)
    wider = _fit(ranker, np.hstack([X, constant]), y, qid)
    before, after = _weights(plain), _weights(wider)
    scale = np.abs(before).max() + 1e-12
    assert np.allclose(before, after[:-1], rtol=1e-3, atol=1e-4 * scale)
    assert abs(after[-1]) <= 1e-3 * scale, "a feature constant within queries got a weight"


def check_ranker_is_unmoved_by_queries_of_one_document(ranker: Any) -> None:
    """A query of one document carries no information."""
    X, y, qid = _problem()
    lone = np.random.default_rng(2).normal(size=(3, X.shape[1]))
    more = _fit(
        ranker,
        np.vstack([lone, X]),
        np.concatenate([[0, 1, 2], y]),
        np.concatenate([[-1, -2, -3], qid]),
    )
    _same_weights(_fit(ranker, X, y, qid), more)


def check_ranker_is_saved_and_loaded(ranker: Any) -> None:
    """The model file and pickle give the same scores; a clone is not fitted."""
    from leanrank.model import load_model

    X, y, qid = _problem()
    fitted = _fit(ranker, X, y, qid)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "model.json"
        fitted.save(path)
        loaded = load_model(path)
    assert np.allclose(loaded.predict(X), fitted.predict(X), rtol=1e-12, atol=1e-12)
    assert np.array_equal(pickle.loads(pickle.dumps(fitted)).predict(X), fitted.predict(X))
    assert not hasattr(clone(fitted), "coef_")


def check_ranker_is_better_than_chance(ranker: Any) -> None:
    """On an easy problem the learned order beats every order by chance."""
    X, y, qid = _problem(n_queries=60, noise=0.1)
    fitted = _fit(ranker, X, y, qid)
    chance = X @ np.random.default_rng(0).normal(size=X.shape[1])
    by_chance = evaluate(y, chance, qid, measures="ndcg@10")["ndcg@10"]
    assert fitted.score(X, y, qid) > by_chance + 0.05


def check_ranker_does_not_change_its_input(ranker: Any) -> None:
    """The caller's arrays are not changed, and may be read-only."""
    X, y, qid = _problem()
    copies = X.copy(), y.copy(), qid.copy()
    for writeable in (True, False):
        for array in (X, y, qid):
            array.flags.writeable = writeable
        _fit(ranker, X, y, qid).predict(X)
        for name, array, copy in zip(("X", "y", "qid"), (X, y, qid), copies, strict=True):
            assert np.array_equal(array, copy), f"{name} was changed"


def check_ranker_does_rank_within_queries(ranker: Any) -> None:
    """rank() returns 1..n_q in each query, by descending score."""
    X, y, qid = _problem()
    fitted = _fit(ranker, X, y, qid)
    ranks, scores = fitted.rank(X, qid), fitted.predict(X)
    for q in np.unique(qid):
        mine = np.flatnonzero(qid == q)
        assert sorted(ranks[mine]) == list(range(1, len(mine) + 1))
        assert np.all(np.diff(scores[mine[np.argsort(ranks[mine])]]) <= 0)


def check_ranker_does_refuse_bad_input(ranker: Any) -> None:
    """Bad input raises an error that names the cause."""
    X, y, qid = _problem()
    hole = X.copy()
    hole[3, 1] = np.nan
    if not get_tags(ranker).input_tags.allow_nan:
        _refuses(ranker, "column 1", hole, y, qid)
    hole[3, 1] = np.inf
    _refuses(ranker, "column 1", hole, y, qid)
    _refuses(ranker, "qid", X, y, qid[:-1])
    _refuses(ranker, "y", X, y[:-1], qid)
    if not getattr(ranker, "_takes_unlabeled", False):
        _refuses(ranker, "label", X, np.where(np.arange(len(y)) == 5, np.nan, y), qid)
    _refuses(ranker, "nothing to learn", X, np.ones_like(y), qid)
    _refuses(ranker, "qid", X, y, qid, group=[len(y)])


def _problem(
    n_queries: int = 20, docs: int = 12, noise: float = 0.5
) -> tuple[FloatArray, FloatArray, Any]:
    rng = np.random.default_rng(0)
    n = n_queries * docs
    X = rng.normal(size=(n, 6))
    truth = np.array([1.5, -1.0, 0.0, 0.0, 0.5, 0.0])
    raw = X @ truth + noise * rng.normal(size=n)
    y = np.digitize(raw, [0.5, 1.5]).astype(np.float64)
    return X, y, np.repeat(np.arange(n_queries), docs)


def _fit(ranker: Any, X: Any, y: Any, qid: Any, **more: Any) -> Any:
    return clone(ranker).fit(X, y, qid=qid, **more)


def _weights(ranker: Any) -> FloatArray:
    """Return one number per feature: its weight or, in a boosted model, its importance."""
    linear = hasattr(ranker, "coef_")
    weights: FloatArray = ranker.coef_ if linear else ranker.feature_importances_
    return weights


def _same_bits(one: Any, other: Any) -> None:
    assert np.array_equal(_weights(one), _weights(other)), "the weights differ in their bits"


def _same_weights(one: Any, other: Any, tolerance: float = 1e-4) -> None:
    scale = np.abs(_weights(one)).max() + 1e-12
    away = np.abs(_weights(one) - _weights(other)).max() / scale
    assert away <= tolerance, f"the weights differ by {away:.2g} of the largest"


def _refuses(ranker: Any, word: str, X: Any, y: Any, qid: Any, **more: Any) -> None:
    try:
        _fit(ranker, X, y, qid, **more)
    except ValueError as error:
        assert word in str(error), f"the message does not mention {word!r}: {error}"  # noqa: PT017
    else:
        raise AssertionError(f"bad input ({word}) was accepted")
