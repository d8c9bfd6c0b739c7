"""Checkpoints, states of online learners, journals and model files."""

from __future__ import annotations

import json
import random
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from tests.fuzz.harness import target
from tests.fuzz.mutations import mutated, mutated_json

GOLDEN = Path(__file__).parents[1] / "model" / "golden"
SETTINGS = {"systems": ["domination", "rankboost"], "trials": 3, "measures": ("ndcg@10",)}


def _rankers() -> list[Any]:
    from leanrank.rankers import LCRA, PAMIR, SPD, MinBatSRank, RSRank

    return [
        MinBatSRank(l1="per_step", alpha=0.1),
        *(SPD(n_steps=20), RSRank(n_steps=20), PAMIR(n_steps=20), LCRA(n_steps=10)),
    ]


def _chunks() -> list[Any]:
    from leanrank.data import stream_ranking

    return list(stream_ranking(12, 5, 4, queries_per_chunk=3, random_state=1))


@lru_cache(maxsize=1)
def _checkpoints() -> list[bytes]:
    """One checkpoint per ranker."""
    kept = []
    for ranker in _rankers():
        with tempfile.TemporaryDirectory() as folder:
            ranker.fit_stream(_chunks(), checkpoint=f"{folder}/c", every=3)
            kept.append(Path(folder, "c").read_bytes())
    return kept


@target("checkpoint-bytes", prepare=_checkpoints)
def checkpoint_bytes(rng: random.Random, folder: Path) -> None:
    """A damaged checkpoint is refused."""
    from leanrank._files import HeldFile
    from leanrank.rankers.streaming import load_checkpoint, read_state

    whole = rng.choice(_checkpoints())
    content = mutated(rng, whole)
    (folder / "in").write_bytes(content)
    made_by = read_state(whole, lambda header: header["made_by"], b"leanrank-checkpoint", 6)
    with HeldFile(folder / "in") as held:
        found = load_checkpoint(held, made_by)
    assert content == whole or (found is None and not content), "a damaged one was accepted"


@lru_cache(maxsize=1)
def _online() -> list[bytes]:
    """One state per method, after some lists; FTRL and three views among them."""
    from leanrank.online.ranker import DEFAULTS, OnlineRanker

    more = {"lcra": {"views": 3}, "ips": {"solver": "ftrl"}}
    kept = []
    for method in DEFAULTS:
        ranker = OnlineRanker(method, n_features=4, list_length=3, **more.get(method, {}))
        _serve(ranker)
        with tempfile.TemporaryDirectory() as folder:
            ranker.save(f"{folder}/s")
            kept.append(Path(folder, "s").read_bytes())
    return kept


def _serve(ranker: Any) -> None:
    X = np.linspace(-1.0, 1.0, 5 * ranker.n_features).reshape(5, -1) ** 3
    for t in range(3):
        shown = ranker.rank(X[: 5 - t])
        ranker.observe(shown, [at == t for at in range(len(shown.documents))])


@target("online-bytes", prepare=_online)
def online_bytes(rng: random.Random, folder: Path) -> None:
    """A damaged state of an online learner is refused."""
    from leanrank.online import OnlineRanker

    whole = rng.choice(_online())
    content = mutated(rng, whole)
    (folder / "in").write_bytes(content)
    OnlineRanker.load(folder / "in")
    assert content == whole, "a damaged one was accepted"


@lru_cache(maxsize=1)
def _data() -> Any:
    from leanrank.data import make_ranking

    return make_ranking(10, 6, n_features=4, random_state=0)


@lru_cache(maxsize=1)
def _journal() -> bytes:
    from leanrank.selection import tune

    with tempfile.TemporaryDirectory() as folder:
        tune(_data(), journal=f"{folder}/j", **SETTINGS)
        return Path(folder, "j").read_bytes()


@lru_cache(maxsize=1)
def _entries() -> list[Any]:
    return [json.loads(line)["entry"] for line in _journal().splitlines()]


@target("journal-bytes", prepare=_journal)
def journal_bytes(rng: random.Random, folder: Path) -> None:
    """Of a damaged journal, at most whole trials from its beginning are used."""
    from leanrank.selection.journal import Journal

    header, *trials = _entries()
    (folder / "in").write_bytes(mutated(rng, _journal()))
    with Journal(folder / "in", header["settings"]) as journal:
        assert journal.entries == trials[: len(journal.entries)], "a damaged one was accepted"


@lru_cache(maxsize=1)
def _models() -> list[bytes]:
    import leanrank.model  # noqa: F401

    return [path.read_bytes() for path in sorted(GOLDEN.glob("*.json"))]


@target("model-bytes", prepare=_models)
def model_bytes(rng: random.Random, folder: Path) -> None:
    """A model file is refused, or is a model that survives being written and read."""
    _use_model(mutated(rng, rng.choice(_models())), folder)


@target("model-values", prepare=_models)
def model_values(rng: random.Random, folder: Path) -> None:
    """The same for values of any kind in any place."""
    document = json.loads(rng.choice(_models()))
    for _ in range(rng.choice((1, 1, 2))):
        document = mutated_json(rng, document)
    _use_model(json.dumps(document).encode(), folder)


def _use_model(content: bytes, folder: Path) -> None:
    from leanrank.model import load_model

    (folder / "in.json").write_bytes(content)
    model = load_model(folder / "in.json")
    model.save(folder / "out.json")
    again = load_model(folder / "out.json")
    assert again == model
    if model.n_features <= 1000:
        rows = np.arange(3.0 * model.n_features).reshape(3, -1)
        qid = [0, 0, 1]
        with np.errstate(all="ignore"):
            same = np.array_equal(
                model.predict(rows, qid=qid), again.predict(rows, qid=qid), equal_nan=True
            )
        assert same
