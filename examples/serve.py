"""Serve a ranking over HTTP: `uvicorn examples.serve:app`, after `pip install fastapi uvicorn`.

Only NumPy is needed to score: no Numba, SciPy or scikit-learn is loaded.
"""

import os
import sys
from pathlib import Path

import numpy as np
from fastapi import FastAPI, HTTPException
from pydantic import BaseModel

from leanrank.errors import InputError
from leanrank.model import Line, Model, load_model

FILE = Path(os.environ.get("MODEL", "model.json"))
if not FILE.exists():  # a stand-in, so that this program runs by itself
    Model(2, {0: Line(0.5), 1: Line(-0.25)}, ("bm25", "age_days")).save(FILE)
model = load_model(FILE)
app = FastAPI()


class Request(BaseModel):
    """Documents of one query: feature values by name, null where missing."""

    documents: dict[str, dict[str, float | None]]


@app.post("/rank")
def rank(request: Request) -> list[dict]:
    names = model.feature_names
    rows = [[doc.get(name) for name in names] for doc in request.documents.values()]
    try:
        scores = model.predict(np.array(rows, dtype=float))
    except InputError as error:  # a gap where the model knows none
        raise HTTPException(422, str(error)) from error
    order = np.argsort(-scores, kind="stable")
    keys = list(request.documents)
    return [{"document": keys[at], "score": float(scores[at])} for at in order]


if __name__ == "__main__":
    shown = {"a": {"bm25": 2.0, "age_days": 1.0}, "b": {"bm25": 3.0, "age_days": 1.0}}
    print(rank(Request(documents=shown)))
    heavy = {"numba", "scipy", "sklearn"} & set(sys.modules)
    print("loaded beside NumPy:", ", ".join(sorted(heavy)) or "none of Numba, SciPy, scikit-learn")
