"""A folder that deploys a model: numbered requests, a script that sends them, expected scores."""

from __future__ import annotations

import json
from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any

import numpy as np

from leanrank.data import RankingData
from leanrank.model.alignment import used_features
from leanrank.model.export import deploy_script
from leanrank.model.export.formula import Formula
from leanrank.model.export.targets import TARGETS, Options, Target
from leanrank.model.export.text import pretty
from leanrank.model.model import Model

_WRITTEN_AS = {"opensearch": "opensearch-ltr", "elasticsearch": "elasticsearch-ltr", "solr": "solr"}
_QUERIES, _DOCUMENTS = 3, 10


def write(formula: Formula, options: Options, target: Target) -> dict[str, str]:
    """Return the files of the folder by their names."""
    from leanrank.model.verify.engines import emulated_scores, engine_values

    engine = target.dialect
    to = TARGETS[_WRITTEN_AS[engine]]
    module = import_module(f"leanrank.model.export.{to.module}")
    requests = json.loads(module.write(formula, options, to))
    notes, search = requests.pop("notes"), requests.pop("search")
    name = f"{options.name}_{formula.version}"
    queries = []
    for text, ids, X in options.documents:
        scores = emulated_scores(formula, X, options, to)
        listed = zip(ids, scores.tolist(), engine_values(formula, X, options).tolist(), strict=True)
        documents = [
            {"id": id, "score": score, "features": dict(zip(formula.names, x, strict=True))}
            for id, score, x in listed
        ]
        queries.append({"text": text, "documents": documents})
    expected = {"engine": engine, "model": name, "featureset": options.featureset or name}
    script = Path(deploy_script.__file__).read_text(encoding="utf-8")
    numbered = enumerate(requests.items(), 1)
    return {
        "README.md": _readme(notes, list(requests), engine),
        **{f"{at:02d}-{key}.json": pretty(request) for at, (key, request) in numbered},
        "search.json": pretty(search),
        "expected.json": pretty(expected | {"queries": queries}),
        "deploy.py": script,
    }


def examples(model: Model, data: Any, names: Mapping[str, str]) -> list[Any]:
    """Return a few documents of a few queries: the text of a query, ids and features in use."""
    if not isinstance(data, RankingData) or data.doc_ids is None:
        return []
    X, found = used_features(model, data), []
    for q in range(min(_QUERIES, data.n_queries)):
        rows = np.arange(data.query_ptr[q], data.query_ptr[q + 1])[:_DOCUMENTS]
        found.append((str(data.query_ids[q]), [str(data.doc_ids[row]) for row in rows], X[rows]))
    return found


def _readme(notes: list[str], parts: list[str], engine: str) -> str:
    steps = [f"{at}. `{at:02d}-{part}.json`" for at, part in enumerate(parts, 1)]
    port = "8983" if engine == "solr" else "9200"
    return "\n".join(
        [
            f"# Deploy to {engine}",
            "",
            "```",
            f"python deploy.py http://localhost:{port} INDEX --param keywords",
            "```",
            "",
            "sends these requests in order, then asks for the scores of the documents in "
            "`expected.json` and compares them. `--param` is what your features call the text of a "
            "query; leave it out if they take none. The last line says *deployed and proved*, or "
            "the first difference with its likely cause.",
            "",
            *steps,
            "",
            "`search.json` is the search to use: put your query in the place of `match_all` (`q`).",
            "",
            *(f"- {note}" for note in notes),
            "",
        ]
    )
