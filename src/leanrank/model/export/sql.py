"""Tables: a view in SQL with a query for the best documents, and a Python function for Polars.

Columns are qualified, because SQLite reads an unknown quoted name as a text. The name of the score
begins with that of the view. The score comes before the columns of the table: if one has the same
name, SQLite and DuckDB rename it, and the other databases reject the view.

Products are added in the order of features in double precision. Numbers have an exponent, which
makes them doubles where ``0.3`` would be a decimal. Per-query scalers are window functions.
NULL and NaN are both missing: NaN is turned into NULL first. Columns of any type are cast; only
PostgreSQL needs to know which are boolean.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from leanrank.data import RankingData
from leanrank.errors import InputError
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax, check_plain, filled, template, unused


@dataclass(frozen=True)
class Dialect:
    """The syntax in which databases differ."""

    double: str = "DOUBLE PRECISION"
    quote: str = '"'
    create: str = "CREATE OR REPLACE VIEW"
    deviation: str = "STDDEV_POP"
    cast: str = ""  # after a number, where an exponent does not make it a double
    escapes: str = ""  # the quotes between which a backslash escapes
    known: str = "NULLIF({x}, CAST('NaN' AS DOUBLE))"  # a double with NULL for NaN
    boolean: str = "{x}"  # a boolean that can be cast to a double
    text: str = "{x}"  # a text that is compared byte by byte

    def quoted(self, word: str, quote: str = "") -> str:
        """Return a quoted name of a column or table, or with ' a text."""
        quote = quote or self.quote
        if quote in self.escapes:
            word = word.replace("\\", "\\\\")
        return quote + word.replace(quote, quote * 2) + quote

    def qualified(self, table: str) -> str:
        """Return the quoted name of a table, which may begin with its schema and a point."""
        return ".".join(map(self.quoted, table.split(".")))


DIALECTS = {
    # Standard SQL cannot write NaN, and x <> x is false where NaN equals itself (PostgreSQL,
    # DuckDB, Spark). The product is 0 for every finite number and for nothing else.
    "ansi": Dialect(create="CREATE VIEW", known="CASE WHEN 0e0 * {x} = 0e0 THEN {x} END"),
    "sqlite": Dialect("REAL", create="CREATE VIEW", known="{x}"),  # stores NaN as NULL
    # Over Parquet files DuckDB answers isnan(x) and x = 'NaN' from statistics, which leave NaN out
    # (duckdb/duckdb#25521).
    "duckdb": Dialect("DOUBLE", known="CASE WHEN isfinite({x}) THEN {x} END"),
    "postgres": Dialect(
        cast="::float8",
        # a product that underflows is an error there
        known="CASE WHEN ABS({x}) < 1e-270 THEN 0 WHEN {x} <> 'NaN' THEN {x} END",
        boolean="CAST({x} AS INTEGER)",
    ),
    "mysql": Dialect(
        "DOUBLE",
        "`",
        escapes="'",
        known="{x}",  # cannot be NaN
        # most collations ignore case and trailing spaces
        text="CAST(CONVERT({x} USING utf8mb4) AS BINARY)",
    ),
    "spark": Dialect("DOUBLE", "`", create="CREATE OR REPLACE TEMPORARY VIEW", escapes="'"),
    "clickhouse": Dialect(
        "Nullable(Float64)",
        deviation="stddevPopStable",
        escapes="\"'",
        known="if(isNaN({x}), NULL, {x})",  # NaN differs from itself
    ),
}


def write(formula: Formula, options: Options, target: Target) -> str:
    """Return the view and the top-k query, or the expression of the score alone."""
    if target.name == "polars":
        return _polars(formula, options)
    dialect = DIALECTS[target.dialect]
    check_plain([*options.table.split("."), options.qid], target.name)
    if options.expression_only:
        if formula.scaler is not None:
            raise InputError(
                f"{formula.scaler} needs the other documents of a query, which the expression of "
                "one row cannot read: leave --expression-only out"
            )
        return expression(formula, options, target, "") + "\n"
    view, table = dialect.quoted(options.name), dialect.qualified(options.table)
    qid = dialect.quoted(options.qid)
    score = expression(formula, options, target)
    named, place = (added_column(word, formula.names, options) for word in ("score", "place"))
    window = "" if formula.scaler is None else f"\nWINDOW q AS (PARTITION BY d.{qid})"
    order = f"PARTITION BY s.{qid} ORDER BY s.{named} DESC"
    return (
        f"{dialect.create} {view} AS\n"
        f"SELECT\n  {score} AS {named},\n  d.*\n"
        f"FROM {table} AS d{window};\n\n"
        f"-- the {options.top} best documents of each query\n"
        "SELECT * FROM (\n"
        f"  SELECT ROW_NUMBER() OVER ({order}) AS {place}, s.*\n"
        f"  FROM {view} AS s\n"
        f") AS r\nWHERE r.{place} <= {options.top}\nORDER BY r.{qid}, r.{place};\n"
    )


def added_column(word: str, names: list[str], options: Options) -> str:
    """Return the name of a column that is added to the table, such as ``leanrank_score``."""
    return unused(f"{options.name}_{word}", [*names, options.qid])


def column_types(data: Any) -> dict[str, str]:
    """Return the kinds of the columns of a data frame or Arrow table, by name.

    They are boolean, integer, decimal, text or number; data without types have none.
    """
    if isinstance(data, RankingData) or not hasattr(data, "columns"):
        return {}
    names = getattr(data, "column_names", None) or list(data.columns)
    return {str(name): _kind(data[name]) for name in names}


def _kind(column: Any) -> str:
    kind = str(getattr(column, "dtype", getattr(column, "type", ""))).lower()
    if kind == "object":  # pandas with gaps
        known = (one for one in column if one == one and one is not None)
        kind = type(next(known, 0.0)).__name__.lower()
    return next((of for start, of in _KINDS.items() if kind.startswith(start)), "number")


_KINDS = {"bool": "boolean", "int": "integer", "uint": "integer", "dec": "decimal"} | dict.fromkeys(
    ("str", "object", "large_str", "cat", "dict"), "text"
)


def expression(formula: Formula, options: Options, target: Target, of: str = "d.") -> str:
    """Return the score of one row, one term per line; ``of`` is a prefix of the columns."""
    dialect = DIALECTS[target.dialect]
    qid = f"{of}{dialect.quoted(options.qid)}"
    cast, known = "CAST({x} AS " + dialect.double + ")", dialect.known
    syntax = Syntax(
        literal=lambda value: literal(value) + dialect.cast,
        filled=f"COALESCE({known}, {{1}})" if formula.scaler is None else "{x}",
        missing=f"{known} IS NULL" if formula.scaler is None else "1 = 0",
        choice="CASE WHEN {x} THEN {1} ELSE {2} END",
        plus="{x}\n  + {1}",
        text=lambda word: dialect.quoted(word, "'"),
        row=" WHEN {level} THEN {value}",
        table="CASE {x}{rows} ELSE {otherwise} END",
    )
    features, categories = [], formula.categories
    for name in formula.names:
        column = f"{of}{dialect.quoted(name)}"
        if name in formula.texts:
            features.append(dialect.text.format(x=column))
            continue
        inner = dialect.boolean if options.types.get(name) == "boolean" else "{x}"
        column = cast.format(x=inner.format(x=column))
        if formula.scaler is not None and name not in categories:
            fill = literal(formula.fill.get(name, 0.0)) + dialect.cast
            filled = f"COALESCE({known.format(x=column)}, {fill})"
            column = _SCALED[formula.scaler].format(
                x=filled, qid=qid, deviation=dialect.deviation, double=dialect.double
            )
        features.append(column)
    return formula.written(syntax, features)


def literal(value: float) -> str:
    """Return a number as a double in SQL.

    >>> literal(0.1), literal(-1e-07), literal(3.0)
    ('0.1e0', '-1e-07', '3.0e0')
    """
    text = repr(value)
    return text if "e" in text else f"{text}e0"


_SCALED = {
    "query-minmax": (
        "COALESCE(({x} - MIN({x}) OVER q) / NULLIF(MAX({x}) OVER q - MIN({x}) OVER q, 0e0), 0e0)"
    ),
    "query-standard": (
        "CASE WHEN MIN({x}) OVER q < MAX({x}) OVER q THEN COALESCE(({x} - AVG({x}) OVER q) / "
        "NULLIF({deviation}({x}) OVER q, 0e0), 0e0) ELSE 0e0 END"
    ),
    # the mean of the first and last place of equal values, from 0 to 1
    "query-rank": (
        "COALESCE(CAST(2 * RANK() OVER (PARTITION BY {qid} ORDER BY {x}) + COUNT(*) OVER "
        "(PARTITION BY {qid}, {x}) - 3 AS {double}) / 2e0 / NULLIF(COUNT(*) OVER q - 1, 0), 0.5e0)"
    ),
}


def _polars(formula: Formula, options: Options) -> str:
    """Return the function for Polars."""
    scaled = formula.scaler is not None
    syntax = Syntax(
        filled="{x}" if scaled else _POLARS_FILLED,
        missing="pl.lit(False)" if scaled else "{x}.fill_nan(None).is_null()",
        choice="pl.when({x}).then({1}).otherwise({2})",
        above="({x} > {1})",
        plus="{x}\n        + {1}",
        text=repr,
        row="{level}: {value}, ",
        table="{x}.replace_strict({{{rows}}}, default={otherwise}, return_dtype=pl.Float64)",
    )
    features = [_polars_feature(name, formula) for name in formula.names]
    fields = {
        "name": options.name,
        "qid": repr(options.qid),
        "body": template(f"polars-{formula.scaler}.txt") if scaled else "",
        "score": formula.written(syntax, features),
    }
    return filled("polars.txt", fields, scaled)


_POLARS_FILLED = "{0}.fill_null({1}).fill_nan({1})"


def _polars_feature(name: str, formula: Formula) -> str:
    kind = "String" if name in formula.texts else "Float64"
    column = f"pl.col({name!r}).cast(pl.{kind})"
    if formula.scaler is None or name in formula.categories:
        return column
    return f"_scaled({_POLARS_FILLED.format(column, formula.fill.get(name, 0.0))})"
