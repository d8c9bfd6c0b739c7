"""What is written for each target: formats that engines accepted, and the traps met."""

import contextlib
import json
import re
import shutil
import subprocess
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest

from leanrank.data import RankingData
from leanrank.data.logs import feature_log
from leanrank.errors import InputError, ModelError
from leanrank.model import Line, Model, Ramps, Steps, Surface
from leanrank.model.export import TARGETS, export_model, formula_of
from leanrank.model.export.scripts import mapped_scores, score_unit
from leanrank.model.verify import read_logged
from tests.model import boosted

STANDARD = {"kind": "standard", "mean": [0.5, 2.0, 0.0], "scale": [2.0, 1.0, 4.0]}


def model(weights=(1.0, 0.0, -2.0), scaler=None):
    return Model.from_coef(weights, feature_names=["bm25", "length", "spam"], normalizer=scaler)


STEPS = boosted(2, [0, 1, 0], [0.5, 3.0, 0.75], [0, 1, 0], [1.0, -0.25, 1.0])


@pytest.mark.parametrize("target", TARGETS)
def test_the_same_model_gives_the_same_export(target):
    scaler = {"kind": "query-minmax"} if target == "hybrid:opensearch" else None
    given = STEPS if TARGETS[target].module == "ensembles" else model([1.0, 0.0, 2.0], scaler)
    assert export_model(given, target) == export_model(given, target)


@pytest.mark.parametrize("target", ["opensearch-ltr", "elasticsearch-ltr"])
class TestLtr:
    def test_definition_is_a_text_of_weights_in_feature_order(self, target):
        made = json.loads(export_model(model(), target))
        ranker = made["model"]["body"]["model"]["model"]
        assert ranker == {
            "type": "model/linear",
            "definition": '{"bm25":1.0,"spam":-2.0}',
        }

    def test_feature_set_model_and_query_belong_together(self, target):
        made = json.loads(export_model(model(), target, name="web"))
        name = made["model"]["body"]["model"]["name"]
        assert re.fullmatch("web_[0-9a-f]{8}", name)
        assert made["model"]["request"] == f"POST _ltr/_featureset/{name}/_createmodel"
        assert made["featureset"]["body"]["featureset"]["name"] == name
        features = made["featureset"]["body"]["featureset"]["features"]
        assert [feature["name"] for feature in features] == ["bm25", "spam"]
        rescore = made["search"]["body"]["rescore"]["query"]
        assert (rescore["query_weight"], rescore["rescore_query_weight"]) == (0, 1)
        assert rescore["rescore_query"]["sltr"]["model"] == name

    def test_a_shift_keeps_feature_values_positive(self, target):
        made = json.loads(export_model(model(), target, shifts={"spam": 7.5}))
        plain, shifted = made["featureset"]["body"]["featureset"]["features"]
        assert plain["template"]["function_score"]["functions"] == [
            {"field_value_factor": {"field": "bm25", "missing": 0}}
        ]
        script = shifted["template"]["function_score"]["functions"][0]["script_score"]["script"]
        assert script["params"] == {"shift": 7.5}

    def test_a_global_scaler_is_folded(self, target):
        folded = json.loads(export_model(model(scaler=STANDARD), target))
        ranker = folded["model"]["body"]["model"]["model"]
        assert json.loads(ranker["definition"]) == {"bm25": 0.5, "spam": -0.5}
        assert "feature_normalizers" not in ranker


class TestSolr:
    def test_whole_weights_have_a_decimal_point(self):
        text = export_model(model(), "solr")
        assert '"bm25": 1.0' in text
        assert '"spam": -2.0' in text

    def test_only_features_with_a_weight_are_listed(self):
        made = json.loads(export_model(model(), "solr"))
        assert made["model"]["body"]["features"] == [{"name": "bm25"}, {"name": "spam"}]
        assert list(made["model"]["body"]["params"]["weights"]) == ["bm25", "spam"]
        assert {feature["store"] for feature in made["features"]["body"]} == {
            made["model"]["body"]["store"]
        }

    def test_a_changed_model_has_another_name(self):
        names = {
            json.loads(export_model(model([w, 0.0, 1.0]), "solr"))["model"]["body"]["name"]
            for w in (1.0, 2.0)
        }
        assert len(names) == 2


BENT = Model(2, {0: Ramps((0.0, 1.0), (1.0,), 0.1), 1: Line(2.0)}, ("bm25", "spam"))
DATA = RankingData([[0.0, -1.0], [1.0, 2.0]], [0, 1], feature_names=BENT.feature_names)
OTHER = DATA.replace(X=np.array([[0.0, -1.0], [1.0, 3.0]]))


@pytest.mark.parametrize("target", ["opensearch-ltr", "solr", "elasticsearch-inference"])
def test_whatever_is_written_otherwise_has_another_name(target):
    """Engines answer that a name is there already, and go on ranking by what they had."""
    given = [
        {},
        {"shifts": {"spam": 4.0}},
        {"max_error": 0.1},
        {"names": {"spam": "other"}},
        {"data": OTHER},
    ]
    if target != "elasticsearch-inference":
        given += [{"featureset": "main"}, {"featureset": "web"}]
    made = [export_model(BENT, target, **({"data": DATA} | how)) for how in given]
    names = {re.search("leanrank_[0-9a-f]{8}", text)[0] for text in made}
    assert len(names) == len(given)
    steps = Model(1, {0: Steps((0.0,), (1.0, 2.0))}), Model(1, {0: Ramps((0.0, 1.0), (2.0,))})
    versions = {formula_of(one).version for one in steps}
    assert len(versions) == 2


def test_vespa_takes_attributes_and_rank_features():
    text = export_model(model(), "vespa", names={"bm25": "bm25(title)"})
    assert "1.0 * if (isNan(bm25(title)) == 1, 0.0, bm25(title)) +" in text
    assert "-2.0 * if (isNan(attribute(spam)) == 1, 0.0, attribute(spam))" in text
    assert text.startswith("rank-profile leanrank {")
    assert text.count("{") == text.count("}")
    with pytest.raises(InputError, match="not a field or rank feature"):
        export_model(model(), "vespa", names={"bm25": "bm25(title"})


@pytest.mark.parametrize(
    "name",
    [
        "a(1) } } } rank-profile evil { first-phase { expression { b(2)",
        "a(1) + b(2)",
        "a(1)b(2)",
        "a(b(1))",
        "a(1).x y()",
        "a('x')",
    ],
)
def test_vespa_names_write_no_schema(name):
    odd = Model.from_coef([1.0], feature_names=[name])
    with pytest.raises(InputError, match="not a field or rank feature"):
        export_model(odd, "vespa")


@pytest.mark.parametrize(
    "name", ["closeness(field, embedding)", "fieldMatch(title).completeness", "attribute(a.b)"]
)
def test_vespa_takes_rank_features_with_arguments_and_outputs(name):
    assert f", 0.0, {name})" in export_model(Model.from_coef([1.0], feature_names=[name]), "vespa")


def test_scripts_choose_by_missing_and_by_steps():
    assert export_model(STEPS, "painless") == (
        "double x0 = doc['f1'].size() == 0 ? Double.NaN : doc['f1'].value;\n"
        "double x1 = doc['f2'].size() == 0 ? Double.NaN : doc['f2'].value;\n"
        "return (x0 != x0 ? 0.0 : (x0 > 0.75 ? 2.0 : (x0 > 0.5 ? 1.0 : 0.0))) + "
        "(x1 != x1 ? -0.25 : (x1 > 3.0 ? -0.25 : 0.0));\n"
    )
    assert export_model(STEPS, "lucene-expression").startswith(
        "(doc['f1'].empty ? 0.0 : (doc['f1']"
    )
    named = export_model(model(), "lucene-expression", names={"bm25": "_score"})
    assert named == "1.0 * _score + -2.0 * doc['spam'].value\n"


def test_rescoring_never_asks_for_a_negative_score():
    made = json.loads(export_model(model(), "elasticsearch-rescore"))
    query = made["rescore"]["query"]
    assert query["query_weight"] == 0
    source = query["rescore_query"]["script_score"]["script"]["source"]
    s = "(1.0 * (1.0 * doc['bm25'].value + -2.0 * doc['spam'].value))"
    assert source == f"{s} < 0 ? 1 / (1 - {s}) : 1 + {s}"
    values = [1 / (1 - s) if s < 0 else 1 + s for s in (-1e6, -2.0, -1e-3, 0.0, 1e-3, 5.0)]
    assert values == sorted(values)
    assert min(values) > 0


def test_tiny_scores_do_not_tie_in_float32():
    """Weights of 1e-10 vanish beside 1 unless they are scaled first."""
    tiny = Model.from_coef([1e-10, -2e-10])
    X = np.random.default_rng(0).uniform(0, 1, (500, 2))
    unit = score_unit(formula_of(tiny))
    assert unit * 2e-10 >= 1
    assert np.log2(unit).is_integer()
    mapped = mapped_scores(tiny.predict(X), unit).astype(np.float32)
    assert len(np.unique(mapped)) > 490
    assert (np.diff(mapped[np.argsort(tiny.predict(X))]) >= 0).all()


def test_the_score_of_the_query_is_refused_where_it_is_1():
    for target in ("elasticsearch-rescore", "opensearch-ltr", "elasticsearch-ltr", "solr"):
        with pytest.raises(InputError, match="score of the query"):
            export_model(model(), target, names={"bm25": "_score"})
    of_a_set = export_model(model(), "solr", names={"bm25": "_score"}, featureset="main")
    assert json.loads(of_a_set)["model"]["body"]["store"] == "main"


def test_a_window_that_servers_refuse_is_not_written():
    for target in ("elasticsearch-rescore", "opensearch-ltr"):
        assert '"window_size": 10000' in export_model(model(), target, top=10_000)
        with pytest.raises(InputError, match="rescore at most 10,000"):
            export_model(model(), target, top=10_001)


def test_a_script_that_servers_refuse_is_not_written():
    rng = np.random.default_rng(0)
    curves = {at: Ramps(np.sort(rng.normal(size=40)), rng.normal(size=39), 0.1) for at in range(50)}
    for target in ("painless", "lucene-expression", "elasticsearch-rescore"):
        with pytest.raises(InputError, match=r"bytes, and servers take 65,535"):
            export_model(Model(50, curves), target)


NODE = """
const rows = JSON.parse(require("fs").readFileSync(0, "utf8"));
const Double = { NaN: NaN };
const field = (v) => {
  const empty = v === null;
  return { value: empty ? 0 : v, empty, size: () => (empty ? 0 : 1) };
};
const score = (doc, _score) => { SOURCE };
const out = rows.map((row) => {
  const doc = Object.fromEntries(Object.entries(row).map(([name, v]) => [name, field(v)]));
  return score(doc, 0.75);
});
console.log(JSON.stringify(out));
"""


@pytest.mark.parametrize("target", ["painless", "lucene-expression", "elasticsearch-rescore"])
def test_scripts_compute_the_score(target):
    """In JavaScript, whose arithmetic and conditions are those of both languages."""
    if shutil.which("node") is None:
        pytest.skip("needs the program node")
    curves = {0: Line(0.3), 1: Ramps((0.0, 0.4, 1.0), (0.7, -0.2), 0.1), 2: Line(-0.7)}
    surface = Surface((0.0, 0.5, 1.0), (0.0, 1.0), ((0, 0.1), (0.3, 0), (-0.2, 0.4)), (1, 2, 3))
    given = Model(
        4, curves, tuple("abcd"), surfaces={(1, 3): surface}, fill={0: 0.5, 2: 0, 3: 0.25}
    )
    X = np.random.default_rng(0).choice([0.0, 0.1, 0.4, 0.7, 1.0, 2.0, -1.0, np.nan], (200, 4))
    text = export_model(given, target)
    expected = formula_of(given).scores(X)
    if target == "elasticsearch-rescore":
        text = json.loads(text)["rescore"]["query"]["rescore_query"]["script_score"]["script"]
        assert text["lang"] == "expression"
        text, expected = text["source"], mapped_scores(expected, score_unit(formula_of(given)))
    body = text if target == "painless" else f"return {text.strip()};"
    rows = [{n: None if v != v else v for n, v in zip("abcd", x, strict=True)} for x in X.tolist()]
    program = NODE.replace("SOURCE", body.replace("double ", "const "))
    done = subprocess.run(
        ["node", "-e", program], input=json.dumps(rows), capture_output=True, text=True
    )
    assert json.loads(done.stdout) == expected.tolist(), done.stderr


def test_the_test_of_a_program_covers_missing_features():
    curves = {0: Line(2.0), 1: Ramps((0.0, 10.0), (1.0,), missing=-0.5)}
    text = export_model(Model(2, curves), "python")

    def passes(program):
        module = {}
        exec(program, module)
        return module["test"]()

    assert passes(text)
    assert text.count("-0.5 if") == 1
    assert not passes(text.replace("-0.5 if", "0.5 if"))


def test_pmml_is_a_regression_model():
    root = ElementTree.fromstring(export_model(model(scaler=STANDARD), "pmml"))
    space = {"p": "http://www.dmg.org/PMML-4_4"}
    table = root.find(".//p:RegressionTable", space)
    assert table.attrib == {"intercept": "-0.25"}
    predictors = [p.attrib for p in table.findall("p:NumericPredictor", space)]
    assert predictors == [
        {"name": "bm25", "coefficient": "0.5"},
        {"name": "spam", "coefficient": "-0.5"},
    ]


def test_markdown_lists_every_feature():
    card = export_model(
        Model.from_coef(
            [0.5, 0.0, 3.0], feature_names=["a|b", "c", "d"], provenance={"algorithm": "RankSVM"}
        ),
        "markdown",
    )
    assert "| `a\\|b` | 0.5 × value |" in card
    assert "| `d` | 3.0 × value |" in card
    assert '"algorithm": "RankSVM"' in card


def test_markdown_interprets_nothing_of_a_model():
    odd = "x\n\n# y <script>`1` [a](http://b) www.c.d _e_ \x1b[2J"
    provenance = {"algorithm": odd, "parameters": {odd: odd, "alpha": 1e-05, "l1_ratio": -0.5}}
    name = "`` | <b> \\"
    card = export_model(
        Model.from_coef([1.0], feature_names=[name], provenance=provenance), "markdown"
    )
    before, block, after = re.split("^```.*$", card, flags=re.M)
    assert json.loads(block) == provenance
    assert (block + after).isascii()
    assert not re.search("<script|http", before + after)
    assert '"alpha": 1e-05' in block
    assert "| ``` `` \\| <b> \\ ``` | 1.0 × value |" in card


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["\uffff", "a\x9b2J", "a\u2028b", "a\u202eb", "\x1b]0;x\x07"])
def test_no_target_is_given_what_is_no_text(target, name):
    """PMML would be malformed, code would read otherwise than it runs, a terminal would obey."""
    given = Model.from_coef([1.0], feature_names=[name], normalizer={"kind": "query-minmax"})
    with pytest.raises(InputError, match="cannot be written"):
        export_model(given, target)


def test_top_k_query_ranks_within_queries():
    import sqlite3

    sql = export_model(model(), "sql:sqlite", top=2, table="docs", qid="q")
    view, top = sql.split("\n\n")
    with sqlite3.connect(":memory:") as connection:
        connection.execute("CREATE TABLE docs (q, id, bm25, length, spam)")
        rows = [("x", 1, 3.0, 0, 1.0), ("x", 2, 5.0, 0, None), ("x", 3, 1, 0, 0), ("y", 4, 0, 0, 0)]
        connection.executemany("INSERT INTO docs VALUES (?, ?, ?, ?, ?)", rows)
        connection.execute(view)
        found = connection.execute(top).fetchall()
    assert [row[:4] for row in found] == [(1, 5.0, "x", 2), (2, 1.0, "x", 1), (1, 0.0, "y", 4)]


def in_sqlite(view, top, columns, rows):
    import sqlite3

    with contextlib.closing(sqlite3.connect(":memory:")) as connection:
        connection.execute(f"CREATE TABLE documents ({', '.join(columns)})")
        connection.executemany(
            f"INSERT INTO documents VALUES ({','.join('?' * len(columns))})", rows
        )
        connection.execute(view)
        return connection.execute(top).fetchall()


def in_duckdb(view, top, columns, rows):
    duckdb = pytest.importorskip("duckdb")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE TABLE documents ({', '.join(f'{c} DOUBLE' for c in columns)})")
        connection.executemany(
            f"INSERT INTO documents VALUES ({','.join('?' * len(columns))})", rows
        )
        connection.execute(view)
        return connection.execute(top).fetchall()


@pytest.mark.parametrize(("target", "run"), [("sql:sqlite", in_sqlite), ("sql:duckdb", in_duckdb)])
@pytest.mark.parametrize("own", [("score", "place"), ("leanrank_score", "leanrank_place")])
def test_a_table_may_have_a_score_of_its_own(target, run, own):
    """Also one that an older model left in it: the best documents by the model come first."""
    view, top = export_model(model(), target, top=2).split("\n\n")
    rows = [(7, at, x, 0.0, 0.0, 10.0 - x, x) for at, x in enumerate([1.0, 3.0, 2.0])]
    found = run(view, top, ["qid", "id", "bm25", "length", "spam", *own], rows)
    assert [row[:4] for row in found] == [(1, 3.0, 7, 1), (2, 2.0, 7, 2)]


@pytest.mark.parametrize(("target", "run"), [("sql:sqlite", in_sqlite), ("sql:duckdb", in_duckdb)])
@pytest.mark.parametrize("absent", ["spam", "qid"])
@pytest.mark.parametrize("scaler", [None, {"kind": "query-rank"}])
def test_a_missing_column_is_an_error(target, run, absent, scaler):
    view, top = export_model(model(scaler=scaler), target).split("\n\n")
    columns = [name for name in ("qid", "bm25", "length", "spam") if name != absent]
    with pytest.raises(Exception, match=absent):
        run(view, top, columns, [(1.0, 2.0, 3.0)])


class TestRefusals:
    @pytest.mark.parametrize("target", ["opensearch-ltr", "solr", "vespa", "onnx", "c", "pmml"])
    def test_per_query_scalers_name_a_target_that_can(self, target):
        with pytest.raises(InputError, match=r"cannot scale features per query .*sql:"):
            export_model(model(scaler={"kind": "query-minmax"}), target)

    def test_deviations_in_sqlite(self):
        with pytest.raises(InputError, match=r"sql:sqlite cannot scale .*sql:duckdb"):
            export_model(model(scaler={"kind": "query-standard"}), "sql:sqlite")

    @pytest.mark.parametrize("target", [t.name for t in TARGETS.values() if not t.curves])
    def test_curves(self, target):
        with pytest.raises(
            InputError, match=r"cannot express curves, surfaces or missing values: export to .*onnx"
        ):
            export_model(STEPS, target)
        with pytest.raises(InputError, match="cannot express curves, surfaces or missing values"):
            export_model(Model(1, {0: Line(1.0, missing=2.0)}), target)

    def test_names_that_collide(self):
        with pytest.raises(InputError, match="two features are named 'x'"):
            export_model(model(), "c", names={"bm25": "x", "spam": "x"})

    def test_names_that_cannot_be_written(self):
        for name in ("line\nbreak", ""):
            with pytest.raises(InputError, match="cannot be written for c"):
                export_model(Model.from_coef([1.0], feature_names=[name]), "c")

    @pytest.mark.parametrize(
        ("target", "name"),
        [("polars", "^a$"), ("polars", "*"), ("elasticsearch-ltr", "{{q}}")],
    )
    def test_names_that_a_target_reads_as_something_else(self, target, name):
        odd = Model.from_coef([1.0], feature_names=[name])
        with pytest.raises(InputError, match="read as a pattern or template"):
            export_model(odd, target)

    def test_names_that_the_model_does_not_have(self):
        with pytest.raises(InputError, match="the model has no feature 'title' to rename"):
            export_model(model(), "c", names={"title": "x"})

    def test_unknown_target(self):
        with pytest.raises(InputError, match="did you mean 'sql:duckdb'"):
            export_model(model(), "duckdb")

    def test_a_name_that_is_no_identifier(self):
        with pytest.raises(InputError, match="letters, digits and underscores"):
            export_model(model(), "sql:sqlite", name='x"; DROP')

    def test_a_model_without_features(self):
        with pytest.raises(ModelError, match="uses no feature"):
            export_model(model([0.0, 0.0, 0.0]), "c")

    def test_too_many_features_for_an_expression(self):
        wide = Model.from_coef([1.0] * 901)
        with pytest.raises(InputError, match=r"sql:sqlite cannot take more than 900 features"):
            export_model(wide, "sql:sqlite")
        assert len(export_model(wide, "c")) > 901


def test_the_guide_lists_every_target():
    guide = (Path(__file__).parents[3] / "docs" / "export.md").read_text(encoding="utf-8")
    rows = re.findall(r"^\| `([^`]+)` \| .* \| (yes|no) \| (.+?) \| (float\d\d) \|", guide, re.M)
    assert rows == [
        (
            target.name,
            "yes" if target.curves else "no",
            ", ".join(kind.removeprefix("query-") for kind in target.scalers) or "no",
            "float32" if target.single else "float64",
        )
        for target in TARGETS.values()
    ]


def test_vespa_gets_a_whole_application(tmp_path):
    """Two phases over the features that come back, and a log that is read again."""
    curves = {0: Line(2.0), 1: Ramps((0.0, 1.0), (0.5,), 0.1), 2: Line(-0.1)}
    names = ("bm25(title)", "age", "closeness(field, e)")
    made = export_model(Model(3, curves, names), "deploy:vespa", name="shop", top=200)
    assert list(made) == ["services.xml", "schemas/shop.sd", "README.md"]
    services = ElementTree.fromstring(made["services.xml"])
    assert services.find(".//document").attrib["type"] == "shop"
    schema = made["schemas/shop.sd"]
    assert schema.count("{") == schema.count("}")
    first, _, rest = schema.partition("second-phase")
    assert "2.0 * if (isNan(bm25(title)) == 1, 0.0, bm25(title))\n" in first
    assert "field age type double" in first
    assert "rerank-count: 200" in rest
    listed = re.search(r"match-features \{(.*?)\}", rest, re.S)[1].split("\n")
    features = [one.strip() for one in listed if one.strip()]
    assert features == ["bm25(title)", "attribute(age)", "closeness(field, e)"]
    assert "closeness(field, e)` needs a field" in made["README.md"]
    hit = {"id": "id:shop:shop::d1", "relevance": 1.5}
    hit["fields"] = {"matchfeatures": dict.fromkeys(features, 0.5)}
    log = tmp_path / "log.jsonl"
    log.write_text(json.dumps({"query": "jazz", "root": {"children": [hit]}}))
    [found] = feature_log(log)
    assert found == ("jazz", "d1", dict.fromkeys(features, 0.5))
    data = RankingData([[0.5]], [0], qid=["jazz"], doc_ids=["d1"])
    assert read_logged(log, data).scores.tolist() == [1.5]
