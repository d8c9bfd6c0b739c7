"""Vespa: a rank profile, or an application package around it. Expressions are in float64.

A feature is a document attribute, unless ``--names`` gives a rank feature such as ``bm25(title)``.
"""

from __future__ import annotations

import re
from typing import Any

from leanrank.errors import InputError
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import Options, Target
from leanrank.model.export.text import IDENTIFIER, Syntax

# A name, words in parentheses, and an output: nothing that could end the expression.
_RANK_FEATURE = re.compile(r"[a-z]\w*\( ?[\w.-]+(, ?[\w.-]+)* ?\)(\.\w+)*", re.ASCII | re.I)

# An attribute without a value is NaN in a rank expression.
SYNTAX = Syntax(
    is_missing="isNan({x}) == 1",
    choice="if ({test}, {then}, {otherwise})",
    sum="{a} +\n            {b}",
)


def write(formula: Formula, options: Options, target: Target) -> Any:
    """Write the profile; for an application package, the files by name."""
    features = [_rank_feature(name, target) for name in formula.names]
    score = _block(formula.written(SYNTAX, features))
    if target.name == "vespa":
        return f"rank-profile {options.name} {{\n    first-phase {{\n{score}    }}\n}}\n"
    # the strongest term alone chooses what the whole model ranks
    strongest = max(formula.terms, key=lambda term: abs(term.curve.size))
    first = _block(formula.part(strongest, SYNTAX, features))
    listed = "".join(f"            {one}\n" for one in features)
    profile = (
        f"rank-profile {options.name} {{\n    first-phase {{\n{first}    }}\n"
        f"    second-phase {{\n        rerank-count: {max(100, options.top)}\n{score}    }}\n"
        f"    match-features {{\n{listed}    }}\n}}\n"
    )
    texts = sorted({one[5:-1] for one in features if one.startswith("bm25(")})
    numbers = [one[10:-1] for one in features if one.startswith("attribute(")]
    fields = [f"field {one} type string {{\n{_TEXT}}}\n" for one in texts]
    fields += [f"field {one} type double {{\n{_NUMBER}}}\n" for one in numbers]
    other = [one for one in features if not one.startswith(("bm25(", "attribute("))]
    document = "".join(_indented(field, 8) for field in fields)
    searched = f"    fieldset default {{\n        fields: {', '.join(texts)}\n    }}\n"
    searched = searched if texts else ""
    schema = (
        f"schema {options.name} {{\n    document {options.name} {{\n{document}    }}\n{searched}"
        f"{_indented(profile, 4)}}}\n"
    )
    return {
        "services.xml": _SERVICES.format(name=options.name),
        f"schemas/{options.name}.sd": schema,
        "README.md": "".join([_README.format(name=options.name), *map(_OTHER.format, other)]),
    }


_OTHER = "- `{}` needs a field, and perhaps an input, of your own.\n"
_TEXT = "    indexing: index | summary\n    index: enable-bm25\n"
_NUMBER = "    indexing: attribute | summary\n"
_SERVICES = """\
<?xml version="1.0" encoding="utf-8" ?>
<services version="1.0">
  <container id="default" version="1.0">
    <search />
    <document-api />
    <nodes><node hostalias="node1" /></nodes>
  </container>
  <content id="content" version="1.0">
    <min-redundancy>1</min-redundancy>
    <documents><document type="{name}" mode="index" /></documents>
    <nodes><node distribution-key="0" hostalias="node1" /></nodes>
  </content>
</services>
"""
_README = """\
# Vespa application package

`vespa deploy --wait 300 .`, feed documents of the type `{name}`, and search with
`ranking={name}`. The features of every hit come back as `matchfeatures`; keep answers with
their query, one per line, and `leanrank join` reads them. `leanrank verify MODEL DATA --logged`
compares the relevance of hits with the model.
"""


def _block(expression: str) -> str:
    return f"        expression {{\n            {expression}\n        }}\n"


def _indented(text: str, by: int) -> str:
    return "".join(" " * by + line + "\n" for line in text.splitlines())


def _rank_feature(name: str, target: Target) -> str:
    if IDENTIFIER.fullmatch(name):
        return f"attribute({name})"
    if _RANK_FEATURE.fullmatch(name):
        return name
    raise InputError(
        f"the feature name {name!r} is no field or rank feature of {target.name}: give it another, "
        "such as bm25(title), in a file for --names"
    )
