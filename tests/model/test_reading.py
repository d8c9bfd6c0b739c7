import copy
import io
import json
import re
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from leanrank.errors import FileError, ModelError
from leanrank.model import Line, Model, Ramps, Steps, load_model, make_provenance
from leanrank.model.writing import layout

VALID = Model.from_coef(
    [0.5, 0.0, -0.25],
    feature_names=["bm25", "length", "spam"],
    provenance={"algorithm": "RankRLS", "parameters": {"alpha": 2.0, "deep": [1, {"a": None}]}},
).to_dict()
GOLDEN = Path(__file__).parent / "golden"
LINEAR, TERMS = (
    json.loads((GOLDEN / f"{kind}-v1.json").read_text(encoding="utf-8"))
    for kind in ("linear", "terms")
)
BENT = Model(
    3,
    {0: Ramps((0.0, 1.0, 4.0), (2.0, -0.5), 0.25), 1: Steps((2.0,), (0.0, 1.0)), 2: Line(1.0, 3.0)},
    ("bm25", "length", "spam"),
).to_dict()


def with_change(*path, value, of=VALID):
    document = copy.deepcopy(of)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    return document


def without(*path):
    document = copy.deepcopy(VALID)
    inner = document
    for key in path[:-1]:
        inner = inner[key]
    del inner[path[-1]]
    return document


@pytest.mark.parametrize(
    ("number", "message"),
    [
        ("9007199254740993", "is not a finite number that a double can hold"),
        ("1e-400", "the weight of feature f1 is zero"),
        ("9" * 5_000, "not a model: "),
        ("-0.0000e-999", "the weight of feature f1 is zero"),
    ],
)
def test_a_number_that_a_double_cannot_hold_is_refused(tmp_path, number, message):
    text = layout(VALID).replace("0.5", number)
    assert number in text
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ModelError, match=message):
        load_model(tmp_path / "m.json")


def test_a_large_seed_survives_in_the_provenance(tmp_path):
    made = make_provenance(parameters={"random_state": 2**60 + 1})
    Model.from_coef([1.0], provenance=made).save(tmp_path / "m.json")
    assert load_model(tmp_path / "m.json").provenance["parameters"] == {
        "random_state": "1152921504606846977"
    }


WEIGHT = {"feature": "bm25", "weight": 1.0}


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ([], "the document is a list: an object is expected"),
        (without("format"), "the document lacks the key 'format'"),
        (with_change("format", value="onnx"), "format is 'onnx': 'leanrank-model' is expected"),
        (without("schema_version"), "the document lacks the key 'schema_version'"),
        (
            with_change("schema_version", value=7),
            "schema_version is 7, but this release reads version 1: use a release of "
            "leanrank that knows it",
        ),
        (with_change("schema_version", value=True), "schema_version is true: a whole number is"),
        (with_change("schema_version", value=1.0), "schema_version is 1.0: a whole number is"),
        (without("curves"), "the document lacks the key 'curves'"),
        (
            with_change("weigths", value=[]),
            "the document has the unknown key 'weigths': the keys here are format, schema_version, "
            "n_features, curves, feature_names, normalizer, fill, surfaces, provenance",
        ),
        (with_change("n_features", value=-1), "n_features is -1: a whole number from 0 to"),
        (
            with_change("n_features", value=10**40),
            "n_features is 10000000000000000000000000000000000000…0: a whole",
        ),
        (with_change("n_features", value="3"), "n_features is '3': a whole number is expected"),
        (
            with_change("n_features", value=4),
            "the document cannot be used: 3 names were given for 4 features",
        ),
        (with_change("feature_names", value="abc"), "feature_names is 'abc': a list is expected"),
        (with_change("feature_names", 1, value=3), "feature_names[1] is 3: a text is expected"),
        (
            with_change("feature_names", 1, value="bm25"),
            "the document cannot be used: the feature name 'bm25' occurs twice",
        ),
        (
            with_change("feature_names", 1, value="\ud800"),
            "the document cannot be written as JSON: 'utf-8' codec",
        ),
        (with_change("curves", value={}), "curves is an object: a list is expected"),
        (with_change("curves", 1, value=3), "curves[1] is 3: an object is expected"),
        (without("curves", 1, "weight"), "curves[1] lacks the key 'weight'"),
        (
            with_change("curves", 1, "note", value=""),
            "curves[1] has the unknown key 'note': the keys here are feature, weight, missing",
        ),
        (with_change("curves", 1, "weight", value="1"), "curves[1].weight is '1': a number is"),
        (with_change("curves", 1, "weight", value=True), "curves[1].weight is true: a number is"),
        (with_change("curves", 1, "weight", value=None), "curves[1].weight is null: a number is"),
        (
            with_change("curves", 1, "weight", value=0.0),
            "the document cannot be used: the weight of feature f3 is zero",
        ),
        (
            with_change("curves", 1, "weight", value=float("nan")),
            "curves[1].weight is not a finite number",
        ),
        (
            with_change("curves", 1, "weight", value=10**400),
            "curves[1].weight is not a finite number",
        ),
        (
            with_change("curves", 1, "feature", value="anchor"),
            "curves[1].feature is 'anchor', which is not in feature_names",
        ),
        (with_change("curves", 1, "feature", value=2), "curves[1].feature is 2: a text is"),
        (
            with_change("curves", value=[WEIGHT, WEIGHT]),
            "curves has two terms of the same features, 0 counted from 0",
        ),
        (with_change("feature_names", value=None), "curves[0].feature is 'bm25': a whole number"),
        (
            with_change("curves", 0, "knots", 1, value=0.0, of=BENT),
            "curves[0] cannot be used: the knots of a curve of ramps do not increase",
        ),
        (
            with_change("curves", 0, "knots", value=[0.0, 1.0], of=BENT),
            "curves[0] cannot be used: a curve of ramps has 2 knots and 2 rises: give at least",
        ),
        (
            with_change("curves", 0, "knots", value=[-1.5e308, 0.0, 1.5e308], of=BENT),
            "curves[0] cannot be used: a curve of ramps is too wide, narrow or high for a number",
        ),
        (
            with_change("curves", 0, "rises", value=[1.5e308, 1.5e308], of=BENT),
            "curves[0] cannot be used: a curve of ramps is too wide, narrow or high for a number",
        ),
        (with_change("curves", 0, "rises", value=2.0, of=BENT), "curves[0].rises is 2.0: a list"),
        (
            with_change("curves", 0, "rises", 1, value=None, of=BENT),
            "curves[0].rises[1] is null: a number is expected",
        ),
        (
            with_change("curves", 0, "missing", value=None, of=BENT),
            "curves[0].missing is null: a number is expected",
        ),
        (
            with_change("curves", 0, "levels", value=[], of=BENT),
            "curves[0] has the unknown key 'levels': the keys here are feature, knots, rises, miss",
        ),
        (
            with_change("curves", 1, "levels", value=[1.0], of=BENT),
            "curves[1] cannot be used: a curve of steps has 1 thresholds and 1 levels: give one",
        ),
        (
            with_change("curves", 1, "levels", 0, value="a", of=BENT),
            "curves[1].levels[0] is 'a': a number is expected",
        ),
        (
            with_change("curves", 0, "levels", 1, value="de", of=TERMS),
            "curves[0] cannot be used: the level 'de' occurs twice",
        ),
        (
            with_change("curves", 0, "levels", 1, value=1.0, of=TERMS),
            "curves[0] cannot be used: the levels of a category are texts and numbers",
        ),
        (
            with_change("curves", 0, "values", value=[1.0], of=TERMS),
            "curves[0] cannot be used: a category has 3 levels and 1 values",
        ),
        (
            with_change("surfaces", 0, "knots", 0, 1, value=0.0, of=TERMS),
            "surfaces[0] cannot be used: the knots of a surface do not increase",
        ),
        (
            with_change("surfaces", 0, "values", value=[[1.0]], of=TERMS),
            "surfaces[0] cannot be used: a surface has 2 × 3 knots",
        ),
        (
            with_change("surfaces", 0, "missing", value=[1.0], of=TERMS),
            "surfaces[0] cannot be used: a surface needs two knots",
        ),
        (
            with_change("surfaces", 0, "values", value=[[9e307] * 3, [-9e307] * 3], of=TERMS),
            "surfaces[0] cannot be used: two values of a surface are too far apart",
        ),
        (
            with_change("surfaces", 0, "features", value=["age", "bm25"], of=TERMS),
            "the document cannot be used: the features (3, 2) of a surface do not ascend",
        ),
        (
            with_change("surfaces", 0, "features", value=["lang", "bm25"], of=TERMS),
            "the document cannot be used: a surface needs numbers, but f1 is a category",
        ),
        (
            with_change("surfaces", 0, "features", value=["bm25"], of=TERMS),
            "surfaces[0] needs two features and the knots of both",
        ),
        (
            with_change("normalizer", value="minmax"),
            "normalizer is 'minmax': an object is expected",
        ),
        (with_change("provenance", value=None), "provenance is null: an object is expected"),
        (
            with_change("provenance", "parameters", "alpha", value=float("inf")),
            "the document cannot be written as JSON: Out of range",
        ),
    ],
)
def test_each_fault_has_its_sentence(tmp_path, document, message):
    path = tmp_path / "m.json"
    path.write_text(json.dumps(document))
    with pytest.raises(ModelError, match="^" + re.escape(f"{path}: {message}")):
        load_model(path)


@pytest.mark.parametrize(
    ("content", "message"),
    [
        (b"", ", line 1, column 1: not valid JSON"),
        (b'{"format": ', ", line 1, column 12: not valid JSON"),
        (b'{"format": "leanrank-model"} x', ", line 1, column 30: not valid JSON (Extra data)"),
        (b'{"a": "\xff"}', ": not a model: 'utf-8' codec can't decode byte"),
        (b"\xef\xbb\xbf{}", ", line 1, column 1: not valid JSON"),
        (b"\x80\x04\x95", ": not a model: 'utf-8' codec can't decode byte"),
        (b"[" * 100_000, ": not a model: "),
        (b"1" * 10_000, ": "),
        (b'{"format": 1, "format": 1}', ": not a model: the key 'format' occurs twice: keep one"),
        (b'"leanrank-model"', ": the document is 'leanrank-model': an object is expected"),
    ],
)
def test_what_is_not_even_a_document(tmp_path, content, message):
    path = tmp_path / "m.json"
    path.write_bytes(content)
    with pytest.raises(ModelError, match="^" + re.escape(f"{path}{message}")):
        load_model(path)


def test_a_repeated_key_is_found_at_any_depth(tmp_path):
    text = layout(VALID).replace('"alpha": 2.0', '"alpha": 2.0, "alpha": 3.0')
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ModelError, match="the key 'alpha' occurs twice"):
        load_model(tmp_path / "m.json")
    text = layout(VALID).replace('"weight": 0.5', '"weight": 0.5, "weight": 0.5')
    (tmp_path / "m.json").write_text(text)
    with pytest.raises(ModelError, match="the key 'weight' occurs twice"):
        load_model(tmp_path / "m.json")


def test_size_limit(tmp_path):
    path = tmp_path / "m.json"
    path.write_text(layout(VALID))
    size = path.stat().st_size
    assert load_model(path, max_bytes=size).n_features == 3
    with pytest.raises(ModelError, match=f"larger than {size - 1:,} bytes, the limit"):
        load_model(path, max_bytes=size - 1)


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match=r"none\.json: there is no such file"):
        load_model(tmp_path / "none.json")
    with pytest.raises(FileError, match="this is a directory"):
        load_model(tmp_path)


def test_standard_input(monkeypatch):
    class Stdin:
        buffer = io.BytesIO(layout(VALID).encode())

    monkeypatch.setattr("sys.stdin", Stdin)
    assert load_model("-").to_dict() == VALID


def test_from_dict():
    assert Model.from_dict(VALID).to_dict() == VALID
    with pytest.raises(ModelError, match=r"^the model: format is 'tree'"):
        Model.from_dict(with_change("format", value="tree"))
    with pytest.raises(ModelError, match="has the unknown key 1"):
        Model.from_dict(VALID | {1: 2})


# A mutated document either loads as a model that says what the document says, or is refused.

_scalars = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=8)
    | st.sampled_from(["bm25", "spam", "linear", "leanrank-model", 0, 1, 2, 3])
)
_values = st.recursive(
    _scalars,
    lambda inner: (
        st.lists(inner, max_size=4) | st.dictionaries(st.text(max_size=6), inner, max_size=4)
    ),
    max_leaves=8,
)


def _places(value, path=()):
    yield path
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, inner in items:
        yield from _places(inner, (*path, key))


NORMALISED = VALID | {
    "normalizer": {"kind": "standard", "mean": [0.0, 1.0, 2.0], "scale": [1.0, 2.0, 0.5]}
}


@st.composite
def mutated(draw):
    document = copy.deepcopy(draw(st.sampled_from([VALID, NORMALISED, BENT, LINEAR, TERMS])))
    for _ in range(draw(st.integers(1, 3))):
        path = draw(st.sampled_from(list(_places(document))[1:] or [()]))
        if not path:
            break
        inner = document
        for key in path[:-1]:
            inner = inner[key]
        action = draw(st.sampled_from(["replace", "delete", "copy"]))
        if action == "replace":
            inner[path[-1]] = draw(_values)
        elif action == "delete":
            del inner[path[-1]]
        elif isinstance(inner, list):
            inner.insert(draw(st.integers(0, len(inner))), copy.deepcopy(inner[path[-1]]))
        else:
            inner[draw(st.text(max_size=6))] = copy.deepcopy(inner[path[-1]])
    return document


def _loaded(tmp_path_factory, content):
    path = tmp_path_factory.getbasetemp() / "fuzzed.json"
    path.write_bytes(content)
    try:
        return load_model(path)
    except ModelError as error:
        refused = str(error)
    assert str(path) in refused
    assert "\n" not in refused
    return None


def assert_says(model, document):
    """Assert that the curves are those of a document, in the order of features."""
    names = document.get("feature_names")
    order = sorted(
        document["curves"],
        key=lambda one: one["feature"] if names is None else names.index(one["feature"]),
    )
    stated = [one if "values" not in one else {"missing": 0.0} | one for one in order]
    assert model.to_dict()["curves"] == stated
    assert len(model.surfaces) == len(document.get("surfaces") or [])


@settings(max_examples=15 * settings().max_examples, deadline=None)
@given(document=mutated())
def test_fuzzed_documents(tmp_path_factory, document):
    model = _loaded(tmp_path_factory, json.dumps(document).encode())
    if model is not None:
        assert_says(model, document)
        assert model.n_features == document["n_features"]
        assert Model.from_dict(model.to_dict()) == model


@settings(max_examples=1500, deadline=None)
@given(data=st.data())
def test_fuzzed_bytes(tmp_path_factory, data):
    content = bytearray(layout(VALID).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(content) - 1))
        action = data.draw(st.sampled_from(["set", "cut", "insert", "truncate"]))
        if action == "set":
            content[at] = data.draw(st.integers(0, 255))
        elif action == "cut":
            del content[at : at + data.draw(st.integers(1, 20))]
        elif action == "insert":
            token = st.sampled_from(
                [b"{", b"[", b"}", b",", b"NaN", b"1e999", b"-", b"\\ud800", b"0"]
            )
            content[at:at] = data.draw(token | st.binary(min_size=1, max_size=4))
        else:
            del content[at:]
        if not content:
            break
    model = _loaded(tmp_path_factory, bytes(content))
    if model is not None:
        assert_says(model, json.loads(content))
