"""Polars: a Python function that returns an expression for the score."""

from __future__ import annotations

from leanrank.errors import InputError
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import Syntax

_FILLED = "{x}.fill_null({value}).fill_nan({value})"


def write(formula: Formula, options: Options, target: Target) -> str:
    """Write the function."""
    scaled = formula.scaler is not None
    syntax = Syntax(
        fill="{x}" if scaled else _FILLED,
        is_missing="pl.lit(False)" if scaled else "{x}.fill_nan(None).is_null()",
        choice="pl.when({test}).then({then}).otherwise({otherwise})",
        above="({x} > {threshold})",
        sum="{a}\n        + {b}",
        text=repr,
        row="{level}: {value}, ",
        table="{x}.replace_strict({{{rows}}}, default={otherwise}, return_dtype=pl.Float64)",
    )
    features = [_feature(name, formula, target) for name in formula.names]
    score = formula.written(syntax, features)
    helper = ""
    if formula.scaler is not None:
        helper = _HELPER.format(body=_SCALED[formula.scaler], qid=repr(options.qid))
    return (
        f'"""Score of {options.name}: frame.with_columns(score={options.name}_score())."""\n\n'
        f"import polars as pl\n\n\n{helper}"
        f"def {options.name}_score() -> pl.Expr:\n"
        f"    return (\n        {score}\n    )\n"
    )


_HELPER = '''\
def _scaled(x: pl.Expr) -> pl.Expr:
    """Scale a feature within each query."""
    q = {qid}
{body}

'''
_SCALED = {
    "query-minmax": (
        "    low, high = x.min().over(q), x.max().over(q)\n"
        "    return pl.when(high > low).then((x - low) / (high - low)).otherwise(0.0)\n"
    ),
    "query-standard": (
        "    varies = x.min().over(q) < x.max().over(q)\n"
        "    deviation = x.std(ddof=0).over(q)\n"
        "    scaled = (x - x.mean().over(q)) / deviation\n"
        "    return pl.when(varies & (deviation > 0)).then(scaled).otherwise(0.0)\n"
    ),
    "query-rank": (
        '    place, n = x.rank(method="average").over(q) - 1.0, pl.len().over(q)\n'
        "    return pl.when(n > 1).then(place / (n - 1).cast(pl.Float64)).otherwise(0.5)\n"
    ),
}


def _feature(name: str, formula: Formula, target: Target) -> str:
    if name == "*" or (name.startswith("^") and name.endswith("$")):
        raise InputError(
            f"the feature name {name!r} is a pattern for {target.name}: give it another in a file "
            "for --names"
        )
    category = formula.categories.get(name)
    kind = "Float64" if category is None or not category.is_text else "String"
    column = f"pl.col({name!r}).cast(pl.{kind})"
    if formula.scaler is None or category is not None:
        return column
    return f"_scaled({_FILLED.format(x=column, value=formula.fill.get(name, 0.0))})"
