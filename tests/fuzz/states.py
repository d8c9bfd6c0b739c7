"""Checkpoints, states of online learners, journals and model files."""

from __future__ import annotations

import hashlib
import io
import json
import random
import tempfile
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from leanrank.errors import InputError
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
    """One checkpoint per ranker, from the middle of a run."""
    kept = []
    for ranker in _rankers():
        with tempfile.TemporaryDirectory() as folder:
            ranker.fit_stream(_chunks(), checkpoint=f"{folder}/c", every=3)
            kept.append(Path(folder, "c.previous").read_bytes())
    return kept


@target("checkpoint-bytes", prepare=_checkpoints)
def checkpoint_bytes(rng: random.Random, folder: Path) -> None:
    """A damaged checkpoint is refused."""
    from leanrank._files import HeldFile
    from leanrank.rankers.streaming import Checkpoint, read_state

    ranker, whole = rng.choice(list(zip(_rankers(), _checkpoints(), strict=True)))
    content = mutated(rng, whole)
    (folder / "in").write_bytes(content)
    made_by = read_state(whole, lambda header: header["made_by"], b"leanrank-checkpoint", 4)
    with HeldFile(folder / "in") as held:
        found = Checkpoint.load(held, type(ranker), made_by)
    assert content == whole or (found is None and not content), "a damaged one was accepted"


def _rewritten(rng: random.Random, whole: bytes, of_text: float) -> bytes:
    """Change a state's text, or else its arrays, and write the right checksum."""
    head, body = whole.split(b"\n", 1)
    arrays = dict(np.load(io.BytesIO(body)))
    if rng.random() < of_text:
        text = json.dumps(mutated_json(rng, json.loads(arrays["header"].tobytes()))).encode()
        arrays["header"] = np.frombuffer(text, np.uint8)
    else:
        name = rng.choice([name for name in arrays if name != "header"])
        before, raw = arrays[name], mutated(rng, arrays[name].tobytes())
        changed = np.frombuffer(raw[: len(raw) // 8 * 8], before.dtype)
        arrays[name] = changed.reshape(before.shape) if changed.size == before.size else changed
    stream = io.BytesIO()
    np.savez(stream, **arrays)
    body, kind = stream.getvalue(), head.rsplit(b" ", 1)[0]
    return b"%s %s\n%s" % (kind, hashlib.sha256(body).hexdigest().encode(), body)


@target("checkpoint-values", share=2.0, prepare=_checkpoints)
def checkpoint_values(rng: random.Random, folder: Path) -> None:
    """A checkpoint that somebody wrote, with a right checksum, ends in no crash and no hang.

    Values of fitted attributes are not checked one by one: a wrong one is a Python exception.
    """
    which = rng.randrange(len(_rankers()))
    (folder / "in").write_bytes(_rewritten(rng, _checkpoints()[which], 0.8))
    with np.errstate(all="ignore"):
        try:
            _rankers()[which].fit_stream(_chunks(), checkpoint=folder / "in", every=3)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            raise InputError(f"{type(error).__name__}") from error


@lru_cache(maxsize=1)
def _online() -> list[bytes]:
    """One state per method, after some lists; FTRL and listed views among them."""
    from leanrank.online.learners.ranker import DEFAULTS, OnlineRanker

    more = {"lcra": {"views": [[0, 1], [2, 3]]}, "ips": {"solver": "ftrl"}}
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


@target("online-values", prepare=_online)
def online_values(rng: random.Random, folder: Path) -> None:
    """A state that somebody wrote, with a right checksum, is refused or goes on as it was saved."""
    from leanrank.online import OnlineRanker

    (folder / "in").write_bytes(_rewritten(rng, rng.choice(_online()), 0.7))
    ranker = OnlineRanker.load(folder / "in")
    ranker.save(folder / "out")
    again = OnlineRanker.load(folder / "out")
    with np.errstate(all="ignore"):
        _serve(ranker)
        _serve(again)
        assert np.array_equal(ranker.coef_, again.coef_, equal_nan=True)


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
