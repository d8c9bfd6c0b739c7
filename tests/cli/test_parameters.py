import re

import pytest

from leanrank.cli.options import parse_fill, parse_parameters, parse_value
from leanrank.errors import InputError

NO_OBJECT = ' is not a JSON object: write {"NAME": VALUE, …}'
DEFAULTS = {"alpha": 1e-3, "normalize": "query", "max_iter": None}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("3", 3),
        ("-3", -3),
        ("+4", 4),
        ("0.5", 0.5),
        (".5", 0.5),
        ("2.", 2.0),
        ("1e3", 1000.0),
        ("-1E-3", -0.001),
        ("inf", float("inf")),
        ("true", True),
        ("False", False),
        ("None", None),
        ("null", None),
        ("none", None),
        ("nan", "nan"),
        ("1_000", "1_000"),
        ("hinge", "hinge"),
        ("", ""),
        ("'3'", "3"),
        ('"a,b"', "a,b"),
        ("1,2.5,x", [1, 2.5, "x"]),
        ("7,", [7]),
        ("0x10", "0x10"),
        ('{"age": [0, 7.5], "b": 3}', {"age": [0, 7.5], "b": 3}),
    ],
)
def test_values(text, value):
    parsed = parse_value(text)
    assert parsed == value
    assert type(parsed) is type(value)


def test_none_is_a_word_where_the_default_is_a_word():
    assert parse_parameters(["normalize=none", "max_iter=none"], DEFAULTS, "R") == {
        "normalize": "none",
        "max_iter": None,
    }
    assert parse_parameters(["normalize=None"], DEFAULTS, "R") == {"normalize": None}


def test_a_value_may_hold_an_equals_sign():
    assert parse_parameters([" normalize = a=b "], DEFAULTS, "R") == {"normalize": "a=b"}


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (['alpha={"a": [0'], '{"a": [0' + NO_OBJECT),
        (["alpha=" + 20_000 * '{"a":'], 8 * '{"a":' + NO_OBJECT),
        (["alhpa=1"], "RankRLS has no parameter 'alhpa': did you mean 'alpha'?"),
        (["zzz=1"], "RankRLS has no parameter 'zzz': choose from alpha, max_iter, normalize"),
        (["alpha"], "-p alpha: write NAME=VALUE"),
        (["=1"], "-p =1: write NAME=VALUE"),
        (["alpha=1", "alpha=2"], "-p alpha=… is given twice: give it once"),
    ],
)
def test_faults(words, message):
    with pytest.raises(InputError, match=f"^{re.escape(message)}$"):
        parse_parameters(words, DEFAULTS, "RankRLS")


@pytest.mark.parametrize("word", ["no", "1", "off", "maybe"])
def test_a_switch_is_true_or_false(word):
    assert parse_parameters(["relative=false"], {"relative": True}, "R") == {"relative": False}
    with pytest.raises(InputError, match="write true or false"):
        parse_parameters([f"relative={word}"], {"relative": True}, "R")


def test_a_number_of_thousands_of_digits_is_read_as_real():
    assert parse_value("9" * 5000) == float("inf")
    assert parse_value("9" * 30) == 10**30 - 1


@pytest.mark.parametrize("words", [["1", "2"], ["a=1", "a=2"], ["1", "a=2"]])
def test_a_feature_has_one_fill_value(words):
    with pytest.raises(InputError, match=r"^--fill "):
        parse_fill(words)


def test_fill_values_of_all_features_or_by_name():
    assert parse_fill(None) is None
    assert parse_fill(["median"]) == "median"
    assert parse_fill(["a=1", "b=median"]) == {"a": "1", "b": "median"}
