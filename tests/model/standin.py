"""A server that answers as the recorded engines do: OpenSearch and Elasticsearch LTR, and Solr.

It knows nothing of leanrank: requests come in over HTTP, and float32 sums and trees go out, with
the refusals that were met in OpenSearch 2.5.0, Elasticsearch 8.12.2 and Solr 8.8.1.
"""

import json
import re
import threading
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from urllib.parse import parse_qs, urlsplit

import numpy as np

F = np.float32


class Bad(Exception):
    """An answer with an error code."""

    def __init__(self, reason, code=400):
        super().__init__(reason)
        self.code = code


class Engine:
    """An index of documents (fields by id), and values of query features: (query, id) -> values."""

    def __init__(self, documents, logged=None, param="keywords"):
        self.documents = documents
        self.logged = logged or {}
        self.param = param
        self.requests = []
        self.mapped = {field for one in documents.values() for field in one}

    def answer(self, method, path, params, body):
        raise NotImplementedError


class Ltr(Engine):
    """The plugin of OpenSearch and Elasticsearch."""

    store = False

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.sets, self.models = {}, {}

    def log_with(self, name, features):
        """Put a feature set of queries into the store, as the one that logged."""
        self.store = True
        self.sets[name] = [
            {"name": one, "params": [self.param], "template": {"match": {one: "{{q}}"}}}
            for one in features
        ]

    def answer(self, method, path, params, body):
        if (method, path) == ("PUT", "/_ltr"):
            if self.store:
                raise Bad("resource_already_exists_exception: index [.ltrstore] already exists")
            self.store = True
            return {"acknowledged": True}
        if path.startswith("/_ltr"):
            if not self.store:
                raise Bad("Store [.ltrstore] does not exist, please create it first.")
            return self._create(path.split("/")[3:], body)
        if path.endswith("/_search"):
            return self._search(body)
        raise Bad(f"no handler found for uri [{path}] and method [{method}]")

    def _create(self, parts, body):
        if len(parts) == 1:
            name, features = body["featureset"]["name"], body["featureset"]["features"]
            if name in self.sets:
                raise Bad("version conflict, document already exists", 409)
            self.sets[name] = features
            return {"result": "created"}
        name, model = body["model"]["name"], body["model"]["model"]
        if parts[0] not in self.sets:
            raise Bad(f"Feature set [{parts[0]}] does not exist")
        if name in self.models:
            raise Bad("version conflict, document already exists", 409)
        features = [one["name"] for one in self.sets[parts[0]]]
        definition = json.loads(model["definition"])
        used = list(definition) if isinstance(definition, dict) else sorted(_splits(definition))
        for one in used:
            if one not in features:
                raise Bad(f"Unknown feature [{one}] in the model")
        self.models[name] = (parts[0], model["type"], definition)
        return {"result": "created"}

    def _search(self, body):
        rescore = body["rescore"]
        if max(body["size"], rescore["window_size"]) > 10_000:
            raise Bad("Rescore window [20000] is too large. It must be less than [10000].")
        ids, logged = list(self.documents), None
        for part in body["query"].get("bool", {}).get("filter", []):
            if "terms" in part:
                ids = [one for one in part["terms"]["_id"] if one in self.documents]
            else:
                logged = part["sltr"]
        sltr = rescore["query"]["rescore_query"]["sltr"]
        if sltr["model"] not in self.models:
            raise Bad(f"Unknown model [{sltr['model']}]")
        name, kind, definition = self.models[sltr["model"]]
        hits = []
        for at, one in enumerate(ids):
            values = self.values(name, one, sltr["params"])
            score = 0.0
            if at < rescore["window_size"]:
                score = float(
                    _linear(values, definition) if "linear" in kind else _trees(values, definition)
                )
            hit = {"_id": one, "_score": score}
            if logged is not None:
                entry = self.values(logged["featureset"], one, logged["params"])
                listed = [
                    {"name": n} if v is None else {"name": n, "value": float(v)}
                    for n, v in entry.items()
                ]
                hit["fields"] = {"_ltrlog": [{"main": listed}]}
            hits.append(hit)
        hits.sort(key=lambda hit: -hit["_score"])
        return {"hits": {"hits": hits[: body["size"]]}}

    def values(self, name, document, params):
        """Return the features of a set for a document; None did not match."""
        return {
            one["name"]: self._value(one["template"], document, params) for one in self.sets[name]
        }

    def _value(self, template, document, params):
        fields = self.documents[document]
        if "match_all" in template:
            return F(1)
        if "match" in template:
            [field] = template["match"]
            return self.logged.get((params.get(self.param), document), {}).get(field)
        function = template["function_score"]["functions"][0]
        if "field_value_factor" in function:
            given = function["field_value_factor"]
            if given["field"] not in self.mapped and "missing" not in given:
                raise Bad(f"Unable to find a field mapper for field [{given['field']}]")
            value = fields.get(given["field"])
            value = F(given["missing"]) if value is None else F(value)
        else:
            script = function["script_score"]["script"]
            field = re.search(r"doc\['(.*?)'\]", script["source"])[1]
            if field not in self.mapped:
                raise Bad(f"No field found for [{field}] in mapping")
            value = fields.get(field)
            if value is None:
                value = float(re.search(r"== 0 \? (\S+) :", script["source"])[1])
            value = F(F(value) + F(script["params"]["shift"]))
        if value < 0:
            raise Bad("field value function must not produce negative scores")
        return value


class Solr(Engine):
    """Solr's learning to rank."""

    def __init__(self, *given, **more):
        super().__init__(*given, **more)
        self.stores, self.models = {}, {}

    def answer(self, method, path, params, body):
        if path.endswith("/feature-store"):
            for one in body:
                store = self.stores.setdefault(one["store"], {})
                if one["name"] in store:
                    raise Bad(f"feature {one['name']} already exists in {one['store']}")
                store[one["name"]] = one
            return {"responseHeader": {"status": 0}}
        if path.endswith("/model-store"):
            return self._model(body)
        if path.endswith("/query"):
            return self._search(params)
        raise Bad(f"Cannot {method} {path}", 404)

    def _model(self, body):
        if body["name"] in self.models:
            raise Bad(f"model '{body['name']}' already exists. Please use a different name")
        store = self.stores.get(body["store"], {})
        for one in body["features"]:
            if one["name"] not in store:
                raise Bad(f"Feature: {one['name']} not found in store: {body['store']}")
        weights = body["params"].get("weights")
        if weights is not None:
            if any(type(weight) is int for weight in weights.values()):
                raise Bad("Failed to create new ManagedResource: java.lang.Long cannot be cast")
            for one in body["features"]:
                if one["name"] not in weights:
                    raise Bad(f"Model {body['name']} lacks weight(s) for [{one['name']}]")
        self.models[body["name"]] = body
        return {"responseHeader": {"status": 0}}

    def _search(self, params):
        ids = params["q"].partition("}")[2].split(",")
        name = re.search(r"model=(\S+?)[ }]", params["rq"])[1]
        if name not in self.models:
            raise Bad(f"cannot find model {name}")
        model = self.models[name]
        query = re.search(r"efi\.(\w+)='((?:\\.|[^'])*)'", params["rq"])
        text = re.sub(r"\\(.)", r"\1", query[2]) if query and query[1] == self.param else None
        docs = []
        for one in ids:
            if one not in self.documents:
                continue
            store = self.stores[model["store"]]
            values = {n: self._value(f, one, text) for n, f in store.items()}
            used = {one["name"]: values[one["name"]] for one in model["features"]}
            weights = model["params"].get("weights")
            score = _linear(used, weights) if weights else _solr_trees(used, model["params"])
            listed = ",".join(f"{n}={float(v)!r}" for n, v in values.items())
            docs.append({"id": one, "score": float(score), "features": listed})
        return {"response": {"docs": docs}}

    def _value(self, feature, document, text):
        fields, params = self.documents[document], feature["params"]
        if feature["class"].endswith("FieldValueFeature"):
            return F(fields.get(params["field"], 0) or 0)
        if "${" in params["q"]:
            return F(self.logged.get((text, document), {}).get(feature["name"]) or 0)
        field, missing = re.search(r'def\(field\("(.*?)"\),([^)]+)\)', params["q"]).groups()
        value = fields.get(field)
        added = (
            re.search(r"\),([^)]+)\)$", params["q"])
            if params["q"].startswith("{!func}sum")
            else None
        )
        return F(F(float(missing) if value is None else value) + F(added[1] if added else 0))


def _linear(values, weights):
    total = F(0)
    for name, value in values.items():
        if name in weights:
            total = F(total + F(F(weights[name]) * F(value or 0)))
    return total


def _trees(values, trees):
    total = F(0)
    for node in trees:
        while "leaf" not in node:
            left = F(values[node["split"]] or 0) < F(node["split_condition"])
            wanted = node["yes" if left else "no"]
            node = next(child for child in node["children"] if child["nodeid"] == wanted)
        total = F(total + F(node["leaf"]))
    return total


def _solr_trees(values, params):
    total = F(0)
    for tree in params["trees"]:
        node = tree["root"]
        while "value" not in node:
            left = values[node["feature"]] <= F(F(node["threshold"]) + F(1e-6))
            node = node["left" if left else "right"]
        total = F(total + F(F(tree["weight"]) * F(node["value"])))
    return total


def _splits(trees):
    found = set()
    for node in trees:
        if "split" in node:
            found |= {node["split"]} | _splits(node["children"])
    return found


@contextmanager
def serving(engine):
    """Serve an engine on the local machine; yield its address."""

    class Handler(BaseHTTPRequestHandler):
        def _any(self):
            url = urlsplit(self.path)
            params = {key: values[0] for key, values in parse_qs(url.query).items()}
            given = self.rfile.read(int(self.headers.get("Content-Length") or 0))
            engine.requests.append(f"{self.command} {url.path}")
            try:
                body = json.loads(given) if given else None
                code, answer = 200, engine.answer(self.command, url.path, params, body)
            except Bad as error:
                code, answer = error.code, {"error": {"reason": str(error)}, "status": error.code}
            text = json.dumps(answer).encode()
            self.send_response(code)
            self.send_header("Content-Length", str(len(text)))
            self.end_headers()
            self.wfile.write(text)

        do_GET = do_PUT = do_POST = _any

        def log_message(self, *words):
            pass

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}"
    finally:
        server.shutdown()
        server.server_close()
