"""``leanrank train -p curves=…``."""

from __future__ import annotations

import numpy as np
import pytest

from leanrank import load_letor, load_model
from leanrank.rankers import DominationRanker


def test_the_model_is_the_one_that_the_library_learns(run, files):
    words = (
        "train train.txt --vali vali.txt -a domination -p curves=3 -p alpha=0.001 --model m.json"
    )
    ran = run(*words.split(), "-p", 'monotone={"f1": 1, "f2": -1}')
    assert ran.code == 0, ran.err
    assert "curves need no scaling" in ran.out
    data, model = load_letor("train.txt"), load_model("m.json")
    own = DominationRanker(alpha=0.001, curves=3, monotone={"f1": 1, "f2": -1}).fit(data)
    assert np.array_equal(model.predict(data), own.predict(data))
    assert model.normalizer is None
    assert not model.is_linear
    assert model.provenance["parameters"]["monotone"] == {"f1": 1, "f2": -1}


@pytest.mark.parametrize(
    ("words", "text"),
    [
        ('-p curves=3 -p monotone={"f9999":1}', "monotone has the feature 'f9999'"),
        ("-p curves=3 --scale standard", "scale='standard' has no effect on curves"),
        ("-a rankrls -p curves=3", "RankRLS has no parameter 'curves'"),
    ],
)
def test_what_has_no_meaning_is_refused(words, text, run, files):
    ran = run("train", "train.txt", "--model", "m.json", *words.split())
    assert ran.code == 2
    assert text in ran.err.replace("\n", " ")


def test_a_scale_per_query_is_kept(run, files):
    words = "train train.txt -a domination -p curves=3 --scale query-minmax --model m.json"
    assert run(*words.split()).code == 0
    assert load_model("m.json").normalizer["kind"] == "query-minmax"
