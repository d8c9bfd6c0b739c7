"""Exports run in real engines: bit for bit, or within rounding where an engine sums otherwise.

What is not installed is skipped. Engines that are large or slow to start run with
LEANRANK_ENGINES=1 (``make test-engines``).
"""

import os
from dataclasses import replace
from decimal import Decimal

import numpy as np
import pytest

from leanrank.data import load_sample
from leanrank.data.ranking_data import RankingData
from leanrank.data.scaling.normalizers import make_normalizer
from leanrank.errors import InputError
from leanrank.model import Levels, Line, Model, Ramps, Steps, Surface
from leanrank.model.export import export_model, sql
from leanrank.model.export.formula import formula_of
from leanrank.model.export.targets import TARGETS, Options, written
from leanrank.model.verify import engines
from leanrank.model.verify.engines import EMULATED, job_of, verify_export
from tests.model import boosted
from tests.model.verify.drivers import HEAVY, OTHERS

ENGINES = engines.ENGINES | OTHERS | HEAVY
EXACT = [
    name
    for name in ENGINES
    if TARGETS[name].module not in ("ltr", "ensembles") and name != "hybrid:qdrant"
]
SCALERS = ["query-minmax", "query-standard", "query-rank"]
# Starting one of these takes seconds: they get one model of each kind.
SLOW_TO_START = ("sql:postgres", "sql:mysql", "sql:spark", "pmml")


@pytest.fixture(autouse=True)
def heavy_engines(monkeypatch):
    monkeypatch.setattr(engines, "ENGINES", ENGINES)


def at_hand(target):
    engine = ENGINES[target]
    if target in (*HEAVY, "sql:mysql") and os.environ.get("LEANRANK_ENGINES", "") in ("", "0"):
        pytest.skip(f"{target} is large or slow to start: set LEANRANK_ENGINES=1")
    lack = engine.lacks()
    if lack is not None:
        pytest.skip(f"{target} needs {lack}")


@pytest.fixture(scope="module")
def data():
    train, _, _ = load_sample()
    return train.queries[:60]


def weights(n, seed=0):
    rng = np.random.default_rng(seed)
    coef = rng.normal(size=n) * 10.0 ** rng.integers(-6, 6, size=n)
    coef[::4] = 0
    coef[1], coef[2] = 3.0, -1e-12  # a whole number, and one that needs an exponent
    return coef


def linear(data, scaler=None):
    made = None if scaler is None else make_normalizer(scaler).fit(data.X, qid=data.qid).to_dict()
    return Model.from_coef(weights(data.n_features), normalizer=made)


def stepped(data, scaler=None):
    rng = np.random.default_rng(1)
    features = rng.integers(0, data.n_features, 50)
    thresholds = np.asarray(data.X)[rng.integers(0, len(data), 50), features]
    thresholds[::7] = -np.inf
    made = None if scaler is None else make_normalizer(scaler).fit(data.X, qid=data.qid).to_dict()
    if scaler is not None:
        scaled = make_normalizer(scaler).fit(data.X).transform(data.X, qid=data.qid)
        thresholds = np.asarray(scaled)[rng.integers(0, len(data), 50), features]
    return boosted(
        data.n_features,
        features,
        thresholds,
        rng.integers(0, 2, 50),
        rng.normal(size=50),
        normalizer=made,
    )


def bent(data, scaler=None, missing=None):
    """Ramps with knots that documents hit, flat pieces among them, and lines."""
    rng = np.random.default_rng(3)
    scaled = np.asarray(data.X)
    if scaler is not None:
        scaled = make_normalizer(scaler).fit(data.X).transform(data.X, qid=data.qid)
    curves = {}
    for at in range(data.n_features):
        knots = np.unique(rng.choice(scaled[:, at], 6))
        rises = rng.normal(size=len(knots) - 1) * rng.integers(0, 2, len(knots) - 1)
        one = Ramps(knots, rises, missing) if rises.any() else Line(rng.normal(), missing)
        curves[at] = one
    made = None if scaler is None else make_normalizer(scaler).fit(data.X, qid=data.qid).to_dict()
    return Model(data.n_features, curves, normalizer=made)


@pytest.mark.parametrize("target", EXACT)
@pytest.mark.parametrize("make", [linear, stepped, bent])
@pytest.mark.parametrize("scaler", [None, "standard", "minmax", *SCALERS])
def test_export_gives_the_scores_of_the_formula(target, make, scaler, data):
    if scaler in SCALERS and scaler not in TARGETS[target].scalers:
        with pytest.raises(InputError, match="cannot scale features per query"):
            verify_export(make(data, scaler), target, data)
        return
    once = {(linear, "standard"), (stepped, None), (bent, None), (linear, "query-minmax")}
    if target in SLOW_TO_START and (make, scaler) not in once:
        pytest.skip("one model of each kind is enough for an engine that starts in seconds")
    if make is stepped and scaler == "query-standard":
        pytest.skip("means are rounded otherwise, which moves documents across thresholds they hit")
    at_hand(target)
    found = verify_export(make(data, scaler), target, data)
    assert found.documents == len(data)
    if scaler == "query-standard":  # engines add up means and deviations in orders of their own
        assert found.difference <= 1e-12 * np.abs(weights(data.n_features)).max()
        assert found.beyond == 0
    else:
        assert found.bit_equal == found.documents, found
        assert found.orders_changed == 0


@pytest.mark.parametrize("target", EXACT)
def test_missing_values(target, data):
    at_hand(target)
    X = np.array(data.X)
    X[::3, ::2] = np.nan
    absent = RankingData(X, data.y, qid=data.qid)
    filled = Model.from_coef(weights(data.n_features), fill=dict.fromkeys(range(28), 0.3))
    for model in (stepped(data), bent(data, missing=0.3), filled):
        found = verify_export(model, target, absent)
        assert found.bit_equal == found.documents


@pytest.mark.parametrize("target", EXACT)
@pytest.mark.parametrize("scaler", [None, "query-minmax"])
def test_a_missing_feature_of_a_line_counts_as_zero(target, scaler):
    """Also where the model itself refuses the document; gaps are NULL and NaN in turn."""
    if scaler is not None and scaler not in TARGETS[target].scalers:
        pytest.skip(f"{target} cannot scale per query")
    at_hand(target)
    normalizer = None if scaler is None else {"kind": scaler}
    formula = formula_of(Model.from_coef([2.0, -1.0], normalizer=normalizer))
    X, query = (
        np.array([[5.0, 1.0], [np.nan, 3.0], [np.nan, np.nan], [2.0, np.nan]]),
        np.zeros(4, int),
    )
    options = Options()
    job = job_of(formula, written(formula, TARGETS[target], options), X, query, options)
    assert job.is_null.sum() == 2
    _, scores = ENGINES[target].run(job)
    assert scores.tolist() == formula.scores(X, query).tolist()


@pytest.mark.parametrize("target", ["sql:duckdb", "sql:ansi"])
def test_missing_values_in_a_parquet_file(target, tmp_path):
    """Its statistics say that there is no NaN, and DuckDB believes them."""
    duckdb, pa = pytest.importorskip("duckdb"), pytest.importorskip("pyarrow")
    from pyarrow import parquet

    columns = {"bm25": [5.0, 99.0, np.nan, None], "clicks": [1, 2, None, 3], "qid": [1, 1, 1, 1]}
    parquet.write_table(pa.table(columns), tmp_path / "d.parquet")
    curves = {0: Ramps((0.0, 10.0), (1.0,), missing=-0.5), 1: Line(2.0)}
    model = Model(2, curves, feature_names=("bm25", "clicks"))
    view, _ = export_model(model, target).split("\n\n")
    with duckdb.connect() as connection:
        connection.execute(f"CREATE VIEW documents AS FROM '{tmp_path}/d.parquet'")
        connection.execute(view)
        found = connection.execute("SELECT leanrank_score FROM leanrank").fetchall()
    assert found == [(2.5,), (5.0,), (-0.5,), (5.5,)]


def typed_table(n=120):
    """A table as people have it: booleans, whole numbers, decimals, texts, gaps, tiny numbers."""
    pa = pytest.importorskip("pyarrow")
    rng = np.random.default_rng(0)

    def column(make, kind=None):
        return pa.array([None if r < 0.1 else make(r) for r in rng.random(n)], kind)

    return pa.table(
        {
            "qid": (np.arange(n) // 10).tolist(),
            "in_stock": column(lambda r: bool(r < 0.5)),
            "clicks": column(lambda r: int(100 * r)),
            "price": column(lambda r: Decimal(f"{r:.4f}"), pa.decimal128(12, 4)),
            "rating": column(lambda r: f"{r:.3f}"),
            "x": column(lambda r: [float("nan"), 5e-324, 1e-300, float(r)][int(r * 40) % 4]),
            "lang": [["de", "DE", "en", None, "fr "][k] for k in rng.integers(0, 5, n)],
            "score": rng.random(n).tolist(),
        }
    )


TYPED = Model(
    6,
    {
        0: Line(0.3),
        1: Ramps((0.0, 50.0, 90.0), (1.0, -0.5), missing=0.1),
        2: Line(-0.7),
        3: Steps((0.2, 0.5), (0.0, 1.0, 2.0), -0.3),
        4: Line(0.3),
        5: Levels(("de", "fr"), (1.0, 2.0), 0.5),
    },
    ("in_stock", "clicks", "price", "rating", "x", "lang"),
    fill={0: 0.5, 2: 0.25, 4: 0.125},
)


@pytest.mark.parametrize("target", [name for name in ENGINES if name.startswith("sql:")])
@pytest.mark.parametrize("table", ["documents", "shop.documents"])
def test_a_table_with_types_of_its_own(target, table):
    """In a schema too, with a column called score, and products that underflow."""
    at_hand(target)
    if target in ("sql:spark", "sql:clickhouse") and (table != "documents"):
        pytest.skip("the driver has no schemas")
    found = verify_export(TYPED, target, typed_table(), table=table)
    assert found.bit_equal == found.documents == 120, found


@pytest.mark.parametrize("target", ["sql:sqlite", "sql:postgres"])
def test_standard_sql_in_more_than_one_database(target):
    at_hand(target)
    formula = formula_of(mixed(6))
    X, query = mixed_documents(n=60), np.arange(60) // 9
    options = Options()
    job = job_of(formula, written(formula, TARGETS["sql:ansi"], options), X, query, options)
    _, scores = ENGINES[target].run(job)
    assert np.abs(scores - formula.scores(X)).max() < 1e-15


def test_expressions_for_generated_columns_and_indexes():
    """And a view that is made again after a column was added."""
    at_hand("sql:postgres")
    from leanrank.model.verify.runners import called, postgres_server

    given = typed_table(3)
    plain = TYPED.replace(curves={0: TYPED.curves[0], 4: TYPED.curves[4]})
    score = export_model(plain, "sql:postgres", expression_only=True, data=given)
    view, _ = export_model(plain, "sql:postgres", data=given).split("\n\n")
    script = (
        "CREATE TABLE documents (qid integer, in_stock boolean, x double precision);\n"
        f"{view}\nALTER TABLE documents ADD COLUMN score double precision;\n{view}\n"
        f"ALTER TABLE documents ADD COLUMN s double precision GENERATED ALWAYS AS ({score}) STORED;"
        f"\nCREATE INDEX by_score ON documents (({score}));\n"
        "INSERT INTO documents VALUES (1, true, 2), (1, NULL, 5e-324), (1, false, 'NaN');\n"
        "COPY (SELECT s FROM documents) TO STDOUT;\n"
        "COPY (SELECT leanrank_score FROM leanrank) TO STDOUT;\n"
    )
    with postgres_server() as psql:
        found = list(map(float, called(psql, script.encode()).split()))
    assert found == 2 * [0.3 + 0.3 * 2, 0.15 + 0.0, 0.0 + 0.3 * 0.125]
    scaled = plain.replace(normalizer={"kind": "query-minmax"}, fill={})
    with pytest.raises(InputError, match="leave --expression-only out"):
        export_model(scaled, "sql:postgres", expression_only=True)


HOSTILE = [
    "it's",
    'a"b',
    "back\\slash",
    "",
    "%s {x} @body@ $1",
    "größe 日本",
    "a??/b",
    "'); DROP",
    "#|`",
]


def mixed(n_features, scaler=None):
    """Curves, categories of texts and numbers, and surfaces, of which one shares a feature."""
    grid = ((0.1, -0.2, 0.0), (0.3, 0.7, -1.1), (0.0, 0.5, 2.5), (1e-3, 1 / 3, 0.9))
    knots = (0.0, 0.25, 0.5, 1.0), (0.0, 0.3, 0.9)
    curves = {
        0: Ramps((0.0, 0.5, 1.0), (0.7, -0.3), missing=0.11),
        1: Levels(HOSTILE, np.linspace(-1, 2, len(HOSTILE)) / 3, missing=0.05),
        2: Levels((3.0, -1.5, 0.0), (0.1, 0.2, 0.3), missing=-0.7),
        3: Line(1 / 7, missing=0.4),
    }
    surfaces = {(0, 3): Surface(*knots, grid, (0.5, -0.25, 0.125)), (4, 5): Surface(*knots, grid)}
    return Model(n_features, curves, surfaces=surfaces, normalizer=scaler)


def mixed_documents(seed=0, n=400):
    rng = np.random.default_rng(seed)
    X = rng.choice([0.0, 0.1, 0.25, 0.3, 0.5, 0.77, 0.9, 1.0, -3.0, 9.0, np.nan], (n, 6))
    X[:, 1] = rng.integers(-1, len(HOSTILE) + 1, n)
    X[:, 1][rng.random(n) < 0.2] = np.nan
    X[:, 2] = rng.choice([3.0, -1.5, 0.0, 7.0, np.nan], n)
    X[:1] = np.nan
    return X


@pytest.mark.parametrize("target", EXACT)
@pytest.mark.parametrize("scaler", [None, "standard", "query-minmax"])
def test_categories_and_surfaces(target, scaler):
    """Bit for bit, with levels that nobody listed, hostile texts and every kind of gap."""
    if scaler in SCALERS and scaler not in TARGETS[target].scalers:
        pytest.skip(f"{target} cannot scale per query")
    X = mixed_documents()
    if scaler == "query-minmax":
        X[:, [0, 3, 4, 5]] = np.nan_to_num(X[:, [0, 3, 4, 5]])
    made = {"kind": scaler} if scaler else None
    if scaler == "standard":
        made |= {"mean": [0.125] * 6, "scale": [2.0] * 6}
    model, data = mixed(6, made), RankingData(X, np.zeros(len(X)), qid=np.arange(len(X)) // 9)
    if not TARGETS[target].levels:
        with pytest.raises(InputError, match=r"cannot look up the levels .*sql:\*"):
            verify_export(model, target, data)
        plain = {at: curve for at, curve in model.curves.items() if not isinstance(curve, Levels)}
        model = model.replace(curves=plain)
    at_hand(target)
    found = verify_export(model, target, data)
    assert found.bit_equal == found.documents == len(X), found
    assert found.orders_changed == 0


@pytest.mark.parametrize("kind", ["pandas", "polars", "arrow"])
@pytest.mark.parametrize("target", ["sql:sqlite", "sql:duckdb", "polars", "python"])
def test_a_table_with_text_columns(kind, target):
    at_hand(target)
    columns = {
        "qid": ["a", "a", "b", "a"],
        "lang": ["de", None, "en", "fr"],
        "bm25": [1.0, 2.0, None, 4.0],
    }
    curves = {0: Levels(("en", "de"), (0.5, -1.0), 0.25), 1: Line(2.0, missing=7.0)}
    model = Model(2, curves, ("lang", "bm25"))
    pandas, polars, pyarrow = map(pytest.importorskip, ("pandas", "polars", "pyarrow"))
    make = {"pandas": pandas.DataFrame, "polars": polars.DataFrame, "arrow": pyarrow.table}[kind]
    assert model.predict(make(columns)).tolist() == [1.0, 4.25, 7.5, 8.25]
    found = verify_export(model, target, make(columns))
    assert (found.documents, found.queries, found.bit_equal) == (4, 2, 4)


@pytest.mark.parametrize("target", [name for name in EXACT if name not in SLOW_TO_START])
def test_categories_with_thousands_of_levels(target):
    if not TARGETS[target].levels:
        pytest.skip(f"{target} cannot look up levels")
    at_hand(target)
    n = 990 if target == "java" else 3000
    texts = Levels([f"level {at}" for at in range(n)], np.arange(n) / 7)
    data = RankingData(np.arange(n)[:, None], np.zeros(n))
    assert verify_export(Model(1, {0: texts}), target, data).bit_equal == n


@pytest.mark.parametrize("target", EXACT)
def test_odd_names(target, data):
    at_hand(target)
    names = ['it\'s "odd"', "score", "leanrank_row", "back\\slash", "per cent %", "größe", "a`b"]
    names += ["{x}", "@body@", "'); DROP TABLE documents; --", "v0", "x ? y", "$1", "#", "select"]
    names += [f"f{at}" for at in range(data.n_features - len(names))]
    model = Model.from_coef(weights(data.n_features) + 1e-3, feature_names=names)
    named = RankingData(data.X, data.y, qid=data.qid, feature_names=names)
    found = verify_export(model, target, named)
    assert found.bit_equal == found.documents


@pytest.mark.parametrize("target", [name for name in EXACT if name not in SLOW_TO_START])
def test_many_steps_of_one_feature(target):
    at_hand(target)
    rng = np.random.default_rng(2)
    thresholds = np.sort(rng.normal(size=1000))
    model = boosted(1, np.zeros(1000), thresholds, np.zeros(1000), rng.normal(size=1000))
    X = np.concatenate([thresholds, np.nextafter(thresholds, np.inf), rng.normal(size=200)])
    data = RankingData(X[:, None], np.zeros(len(X)))
    found = verify_export(model, target, data)
    assert found.bit_equal == found.documents == 2200


@pytest.mark.parametrize("target", ["sql:sqlite", "sql:duckdb", "polars", "onnx", "c"])
def test_numbers_are_read_back_bit_for_bit(target):
    """One feature that is 1 and a weight with many digits: the score is the weight as read."""
    at_hand(target)
    rng = np.random.default_rng(5)
    coef = rng.normal(size=400) * 10.0 ** rng.integers(-200, 200, size=400)
    coef[:2] = np.nextafter(1.0, [0.0, 2.0])  # a factor of 1 may be left out, but these are not 1
    data = RankingData(np.eye(400), np.zeros(400))
    found = verify_export(Model.from_coef(coef), target, data)
    assert found.bit_equal == 400


def test_gaps_are_null_and_nan(data, monkeypatch):
    """An export that takes NaN for a number is found out by documents with NaN."""
    pytest.importorskip("duckdb")
    X = np.array(data.X)
    X[::3, 0] = np.nan
    absent = RankingData(X, data.y, qid=data.qid)
    model = Model(data.n_features, {0: Ramps((0.0, 10.0), (1.0,), missing=-0.5)})
    assert verify_export(model, "sql:duckdb", absent).bit_equal == len(data)
    monkeypatch.setitem(sql.DIALECTS, "duckdb", replace(sql.DIALECTS["duckdb"], known="{x}"))
    found = verify_export(model, "sql:duckdb", absent)
    assert found.bit_equal == len(data) - np.isnan(X[1::2, 0]).sum()
    assert found.difference == 1.5


@pytest.mark.parametrize("target", [*EMULATED, "deploy:solr"])
def test_float32_targets_are_emulated(target, data):
    model = Model.from_coef(np.linspace(-1, 1, data.n_features))
    found = verify_export(model, target, data)
    assert found.engine == "float32 emulator"
    assert 0 < found.difference < 1e-2
    assert found.documents == len(data)


@pytest.mark.parametrize("target", ["vespa", "painless", "hybrid:elasticsearch"])
def test_targets_without_an_engine_ask_for_logged_scores(target, data):
    model = Model.from_coef(np.ones(data.n_features))
    with pytest.raises(InputError, match=f"{target} cannot be run here: log the scores"):
        verify_export(model, target, data)


def test_an_absent_program_is_named(data, monkeypatch):
    monkeypatch.setenv("PATH", "")
    with pytest.raises(InputError, match="running sql:mysql needs the program mariadb-install-db"):
        verify_export(Model.from_coef(np.ones(data.n_features)), "sql:mysql", data)


@pytest.mark.parametrize("target", ["sql:postgres", "sql:duckdb", "sql:sqlite", "polars", "c"])
def test_numbers_out_of_range_are_one_sentence(target):
    """A product that underflows is 0, also where a database would fail the whole view."""
    at_hand(target)
    data = RankingData([[1e-300], [1.0]], [0, 1])
    assert verify_export(Model.from_coef([1e-300]), target, data).bit_equal == 2
    with pytest.raises(InputError, match="too large"):
        verify_export(Model.from_coef([1e300]), target, RankingData([[1e300], [1.0]], [0, 1]))


def test_an_absent_package_is_named_alone(data, monkeypatch):
    """What has to be installed is what the target needs, not every engine there is."""
    import importlib.util

    monkeypatch.setattr(
        importlib.util, "find_spec", lambda name: None if name == "duckdb" else name
    )
    with pytest.raises(InputError, match=r"running sql:duckdb needs duckdb: pip install duckdb$"):
        verify_export(Model.from_coef(np.ones(data.n_features)), "sql:duckdb", data)


def test_servers_side_by_side_share_no_folder():
    """Two names of temporary tables were the same, and one server deleted that of the other."""
    at_hand("sql:mysql")
    from leanrank.model.verify.runners import called, mariadb_server

    with mariadb_server() as first, mariadb_server() as second:
        asked = b"SHOW VARIABLES LIKE 'tmpdir'"
        folders = [called(client, asked).split()[1] for client in (first, second)]
    assert len(set(folders)) == 2
    assert b"/tmp" not in folders
