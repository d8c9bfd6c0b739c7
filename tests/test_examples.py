"""The programs in ``examples`` run, are short, and show what they say."""

import asyncio
import json
import os
import runpy
import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parent.parent / "examples"
SHOWN = {
    "clicks_to_ranker": "clicks, weighted by 1/propensity",
    "fit_on_dask": "same bits: True",
    "frame_to_card": "A ranking function of",
    "hybrid_weights": "The learned weights beat reciprocal rank fusion",
    "nightly": "published",
    "own_loss": "duality gap",
    "serve": "loaded beside NumPy: none of Numba, SciPy, scikit-learn",
    "tune_to_sql": "orders changed: 0",
}


def test_every_example_is_listed():
    assert {file.stem for file in EXAMPLES.glob("*.py")} == set(SHOWN)
    page = (EXAMPLES.parent / "docs" / "examples.md").read_text(encoding="utf-8")
    for file in [*EXAMPLES.glob("*.py"), *EXAMPLES.glob("*.ipynb")]:
        assert f"examples/{file.name}" in page


@pytest.mark.parametrize("name", SHOWN)
def test_an_example_runs(name, tmp_path):
    file = EXAMPLES / f"{name}.py"
    assert len(file.read_text(encoding="utf-8").splitlines()) <= 60
    done = subprocess.run(
        [sys.executable, "-W", "error::UserWarning", str(file)],
        capture_output=True,
        encoding="utf-8",
        env={**os.environ, "PYTHONIOENCODING": "utf-8"},
        timeout=600,
        check=False,
        cwd=tmp_path,
    )
    assert done.returncode == 0, done.stderr
    assert SHOWN[name] in done.stdout


def test_the_notebook_runs():
    nbclient = pytest.importorskip("nbclient")
    nbformat = pytest.importorskip("nbformat")
    notebook = nbformat.read(EXAMPLES / "plots.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=600, kernel_name="python3").execute()
    outputs = [one for cell in notebook.cells for one in cell.get("outputs", []) if "data" in one]
    assert sum("image/svg+xml" in one["data"] for one in outputs) == 4


def test_the_handler_answers_over_http(monkeypatch, tmp_path):
    pytest.importorskip("fastapi")
    monkeypatch.chdir(tmp_path)  # where it writes its stand-in of a model
    app = runpy.run_path(str(EXAMPLES / "serve.py"))["app"]

    def post(documents):
        body, sent = json.dumps({"documents": documents}).encode(), []
        scope = {
            "type": "http", "method": "POST", "path": "/rank", "query_string": b"",
            "headers": [(b"content-type", b"application/json")],
        }  # fmt: skip

        async def receive():
            return {"type": "http.request", "body": body}

        async def send(message):
            sent.append(message)

        asyncio.run(app(scope, receive, send))
        return sent[0]["status"], json.loads(sent[1]["body"])

    status, found = post({"a": {"bm25": 2, "age_days": 1}, "b": {"bm25": 3.0, "age_days": 1}})
    assert (status, [each["document"] for each in found]) == (200, ["b", "a"])
    assert found[0]["score"] == 0.5 * 3.0 - 0.25
    status, found = post({"a": {"bm25": 2.0, "age_days": None}})
    assert status == 422
    assert "age_days" in found["detail"]
