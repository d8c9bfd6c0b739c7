"""Send the numbered requests of this folder to a server, and check its scores.

    python deploy.py http://localhost:9200 INDEX --param keywords

INDEX is the index, or the collection of Solr. --param is the parameter of the features that takes
the text of a query. --user NAME:PASSWORD logs in. Only the standard library is needed.
The exit code is 0 if every score is as expected.
"""

from __future__ import annotations

import argparse
import base64
import json
import math
import sys
import urllib.error
import urllib.parse
import urllib.request
from pathlib import Path
from typing import Any

HERE = Path(__file__).resolve().parent
CAUSES = {
    "no handler found": "the learning-to-rank plugin is not installed",
    "does not exist": "the store or the feature set is not there: send the requests before it",
    "unknown feature": "the feature set lacks a feature of the model, or has another name for it",
    "negative": "feature values may not be negative: give a shift in a file for --names",
    "No mapping found": "a field that a feature reads is not mapped in this index",
    "10000": "window_size and size are at most 10,000",
}


class RefusedError(Exception):
    """A request that a server rejected."""


def main(words: list[str] | None = None) -> int:
    """Deploy the model and check its scores; return the exit code."""
    parser = argparse.ArgumentParser(description="Deploy a ranking model, and check its scores.")
    parser.add_argument("host")
    parser.add_argument("index")
    parser.add_argument("--param", help="parameter of the features that takes the query text")
    parser.add_argument("--user", help="NAME:PASSWORD")
    given = parser.parse_args(words)
    expected = json.loads((HERE / "expected.json").read_text(encoding="utf-8"))
    try:
        for file in sorted(HERE.glob("[0-9]*.json")):
            part = json.loads(file.read_text(encoding="utf-8"))
            print(f"{file.name}: {part['request']}: {send(given, part)}")
        return prove(given, expected)
    except RefusedError as error:
        print(f"not deployed: {error}")
        return 1


def send(given: argparse.Namespace, part: dict[str, Any]) -> str:
    """Send a request; existing objects need no update, since names end in a version."""
    try:
        call(given, part["request"], part.get("body"))
    except RefusedError as error:
        if "already exists" in str(error) or "not updatable" in str(error):
            return "is there already"
        raise
    return "done"


def call(given: argparse.Namespace, request: str, body: Any = None) -> Any:
    """Send one request and return the answer."""
    method, _, path = request.partition(" ")
    path = path.replace("<index>", given.index).replace("<collection>", given.index)
    url = f"{given.host.rstrip('/')}/{path.lstrip('/')}"
    data = None if body is None else json.dumps(body).encode()
    made = urllib.request.Request(url, data, {"Content-Type": "application/json"}, method=method)
    if given.user:
        made.add_header("Authorization", "Basic " + base64.b64encode(given.user.encode()).decode())
    try:
        with urllib.request.urlopen(made, timeout=60) as answer:
            return json.loads(answer.read() or b"{}")
    except urllib.error.HTTPError as error:
        said = error.read().decode("utf-8", "replace")
        cause = next((why for word, why in CAUSES.items() if word.lower() in said.lower()), "")
        tail = f" Likely cause: {cause}." if cause else ""
        raise RefusedError(f"{method} {url} answered {error.code}: {said[:300]}{tail}") from None
    except (urllib.error.URLError, OSError) as error:
        raise RefusedError(f"{url} cannot be reached ({error})") from None


def prove(given: argparse.Namespace, expected: dict[str, Any]) -> int:
    """Compare the scores of logged documents with the expected ones."""
    documents, exact = 0, 0
    for query in expected["queries"]:
        hits = ask(given, expected, query)
        for document in query["documents"]:
            problem = difference(document, hits.get(document["id"]))
            if problem is not None:
                print(f"wrong: document {document['id']!r} of query {query['text']!r}: {problem}")
                return 1
            documents += 1
            exact += hits[document["id"]]["score"] == document["score"]
    if documents == 0:
        print("deployed, not proved: the folder has no documents to ask for (export with --data)")
        return 0
    print(f"deployed and proved: {documents} scores as expected, {exact} of them to the last digit")
    return 0


def ask(given: argparse.Namespace, expected: dict[str, Any], query: dict[str, Any]) -> Any:
    """Return score and features of the documents of one query, by id."""
    ids = [document["id"] for document in query["documents"]]
    search = json.loads((HERE / "search.json").read_text(encoding="utf-8"))
    if expected["engine"] == "solr":
        text = "".join("\\" + c if c in "\\'" else c for c in query["text"])
        efi = f" efi.{given.param}='{text}'" if given.param else ""
        features = f"features:[features store={expected['featureset']}{efi}]"
        params = dict(search["params"], q="{!terms f=id}" + ",".join(ids), rows=len(ids))
        params.update(rq=params["rq"][:-1] + efi + "}", fl=f"id,score,{features}")
        path = search["request"] + "?" + urllib.parse.urlencode(params)
        docs = call(given, path)["response"]["docs"]
        return {doc["id"]: {"score": doc["score"], "features": pairs(doc)} for doc in docs}
    body = search["body"]
    values = {given.param: query["text"]} if given.param else {}
    logged = {"_name": "logged", "featureset": expected["featureset"], "params": values}
    body["query"] = {"bool": {"filter": [{"terms": {"_id": ids}}, {"sltr": logged}]}}
    body["rescore"]["query"]["rescore_query"]["sltr"]["params"] = values
    body["ext"] = {"ltr_log": {"log_specs": {"name": "main", "named_query": "logged"}}}
    body["size"] = body["rescore"]["window_size"] = len(ids)
    hits = call(given, search["request"], body)["hits"]["hits"]
    return {hit["_id"]: {"score": hit["_score"], "features": pairs(hit)} for hit in hits}


def pairs(hit: dict[str, Any]) -> dict[str, float]:
    """Return the features that an answer lists; those without a value are left out."""
    if "features" in hit:
        listed = [pair.rpartition("=")[::2] for pair in hit["features"].split(",") if pair]
        return {name: float(value) for name, value in listed}
    entries = hit.get("fields", {}).get("_ltrlog", [{"main": []}])[0]["main"]
    return {one["name"]: one["value"] for one in entries if one.get("value") is not None}


def difference(document: dict[str, Any], hit: dict[str, Any] | None) -> str | None:
    """Describe what is wrong with an answer and the likely cause; None if nothing is."""
    if hit is None:
        return "it is not in the index, or has another id there"
    for name, value in document["features"].items():
        found = hit["features"].get(name, 0.0)
        if math.isclose(found, value, rel_tol=1e-5, abs_tol=1e-9):
            continue
        said = f"the feature {name!r} is {found:g} in the engine and {value:g} in the log. "
        if found == 0:
            return said + (
                "Likely cause: its field is empty, its query has no parameter (--param), or it is "
                "a query of a set (export with --featureset)"
            )
        return said + "Likely cause: the index has changed since, or the field is analysed anew"
    if math.isclose(hit["score"], document["score"], rel_tol=1e-5, abs_tol=1e-6):
        return None
    said = f"the score is {hit['score']!r} instead of {document['score']!r}, with equal features. "
    if hit["score"] in (0.0, 1.0):
        return said + "Likely cause: it was not rescored (window_size, reRankDocs)"
    return said + "Likely cause: another model answered, or the engine adds up otherwise"


if __name__ == "__main__":
    sys.exit(main())
