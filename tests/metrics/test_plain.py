"""Measuring without compiled code: the same bits, and only while there is little to measure."""

from __future__ import annotations

import os
import subprocess
import sys
from functools import partial

import numpy as np
import pytest

from leanrank.data.trec import Qrels, Run
from leanrank.errors import DataWarning
from leanrank.metrics import CONVENTIONS, _plain, evaluate, evaluate_run
from leanrank.metrics.measures import AP, ERR, NDCG

MEASURES = ["ndcg@1", "ndcg@5", "ndcg", "dcg@3", "map", "map@4", "p@5", "r@3", "mrr", "mrr@2"]
LABELS = {
    "few": lambda rng, n: rng.integers(0, 4, n),
    "whole": lambda rng, n: rng.integers(0, 3, n).astype(float),
    "many": lambda rng, n: rng.integers(0, 200, n).astype(float),
    "real": lambda rng, n: np.abs(rng.normal(size=n)).round(1),
    "none": lambda rng, n: np.zeros(n),
}


@pytest.fixture
def both_ways(monkeypatch):
    """Run something with and without compiled code."""

    def both(run):
        compiled = run()
        with monkeypatch.context() as patch:
            patch.setattr(_plain, "LIMIT", 10**9)
            patch.setattr(_plain, "is_compiled", lambda _: False)
            patch.setattr("leanrank.metrics._kernels.measure_queries", None)
            return compiled, run()

    return both


def assert_same(one, other):
    assert one.means == other.means
    for name in one.per_query:
        np.testing.assert_array_equal(one.per_query[name], other.per_query[name])


@pytest.mark.filterwarnings("ignore::leanrank.errors.DataWarning")
@pytest.mark.parametrize("ties", ["input", "average"])
@pytest.mark.parametrize("convention", ["standard", "letor3", "mslr", "trec", "lightgbm"])
@pytest.mark.parametrize("labels", LABELS)
def test_same_bits(both_ways, labels, convention, ties):
    choices = {"measures": MEASURES, "convention": convention, "ties": ties}
    for seed in range(4):
        rng = np.random.default_rng(seed)
        sizes = rng.integers(1, 30, 20)
        y = LABELS[labels](rng, sizes.sum())
        scores = rng.normal(size=len(y)).round(seed)
        run = partial(evaluate, y, scores, group=sizes, no_relevant=0, **choices)
        assert_same(*both_ways(run))


@pytest.mark.parametrize("ties", ["input", "average"])
def test_same_bits_of_runs_that_miss_documents(both_ways, ties):
    rng = np.random.default_rng(0)
    query, doc = np.divmod(np.arange(400), 20)
    qrels = Qrels(query, doc, rng.integers(0, 3, 400))
    kept = rng.permutation(380)[:200]  # the last query is not answered
    run = Run(query[kept], doc[kept], rng.normal(size=200).round(1))
    choices = {"complete": True, "convention": CONVENTIONS["trec"].replace(ties=ties)}
    assert_same(*both_ways(partial(evaluate_run, qrels, run, MEASURES, **choices)))


def test_ties_that_carry_the_order_are_told(both_ways):
    def run():
        with pytest.warns(DataWarning, match="in 4 of 5 queries") as told:
            evaluate([1, 0] * 5, [2, 2, 1, 1, 1, 1, 3, 2, 1, 1], group=[2] * 5, ties="input")
        return str(told[0].message)

    one, other = both_ways(run)
    assert one == other


def test_much_is_measured_by_compiled_code(monkeypatch):
    monkeypatch.setattr(_plain, "_counted", [0])
    monkeypatch.setattr(_plain, "LIMIT", 100)
    monkeypatch.setattr(_plain, "is_compiled", lambda _: False)
    assert _plain.is_plain({NDCG}, "average", 60)
    assert not _plain.is_plain({NDCG}, "average", 60)
    assert _plain.is_plain({NDCG, AP}, "input", 40)
    assert not _plain.is_plain({NDCG}, "average", 1)


def test_what_is_rare_is_measured_by_compiled_code(monkeypatch):
    monkeypatch.setattr(_plain, "LIMIT", 10**9)
    monkeypatch.setattr(_plain, "is_compiled", lambda _: False)
    assert not _plain.is_plain({NDCG, ERR}, "average", 10)
    assert not _plain.is_plain({NDCG}, "docid", 10)
    monkeypatch.setattr(_plain, "is_compiled", lambda _: True)
    assert not _plain.is_plain({NDCG}, "average", 10)


FIRST = """
from leanrank._jit import compile_seconds
from leanrank.metrics import evaluate
assert evaluate([1.0, 0.0], [2.0, 1.0], [0, 0], measures="ndcg@10,map,mrr,p@1").means["map"] == 1.0
assert compile_seconds() == 0, compile_seconds()
"""


def test_a_first_look_compiles_nothing(tmp_path):
    environment = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path)}
    subprocess.run([sys.executable, "-c", FIRST], check=True, env=environment)
