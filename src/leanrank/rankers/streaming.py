"""Learning from a stream: one chunk in memory, checkpoints, new features.

The first line of a state file holds the format, its version and the SHA-256 of the rest: an archive
of ``numpy.savez``, one of whose arrays is the text of a JSON header. Reading executes nothing.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeVar, get_args, get_type_hints

import numpy as np

from leanrank._files import HeldFile
from leanrank._numbers import check_whole
from leanrank._typing import Callback
from leanrank._version import __version__
from leanrank.data.ranking_data import RankingData
from leanrank.data.streams import Position, RankingStream, open_stream, resized
from leanrank.errors import InputError, warn
from leanrank.model.provenance import to_json_values
from leanrank.rankers.base import WITHOUT_EFFECT
from leanrank.rankers.inputs import as_data
from leanrank.rankers.parameters import BestSoFar, reject_unused

EVERY = 10_000
"""Default number of queries between two checkpoints."""


def fit_stream(
    ranker: Any,
    source: Any,
    *,
    checkpoint: str | os.PathLike[str] | None = None,
    every: int | None = None,
    validation: Any = None,
    epochs: int = 1,
    progress: Callback | None = None,
) -> Any:
    """Learn from more data than fits in memory, in the order of the stream.

    Parameters
    ----------
    ranker : estimator
        Has ``partial_fit``, ``grow`` and ``state_``, as MinBatSRank.
    source : path, sequence of paths, iterable of chunks, or RankingStream
        As for ``leanrank.data.streams.open_stream``: text, Parquet, or a generator of RankingData
        or of tuples (X, y, qid).
    checkpoint : path, optional
        File to save the run in. If it exists, the run continues from it; a run that was killed and
        restarted gives the same bits as one that was not. A generator must start from its
        beginning; the part that was learned before is skipped.
    every : int, optional
        Number of queries after which to write the checkpoint and an entry of ``history_``, at the
        end of the chunk. By default 10,000 with a checkpoint, else once per pass.
    validation : RankingData or (X, y, qid), optional
        Data on which the model is measured for each entry of ``history_``; a feature that the model
        or the data lack counts as zero.
    epochs : int, default=1
        Passes over the stream, instead of the ranker's ``epochs``; queries are not shuffled.
    progress : callable, optional
        Called after each chunk with a dict: queries and documents of this pass so far,
        documents_per_second, support, sparsity.

    Returns
    -------
    ranker

    Examples
    --------
    >>> from leanrank.data import stream_ranking
    >>> from leanrank.rankers import MinBatSRank
    >>> ranker = MinBatSRank(alpha=0.1, l1="per_step")
    >>> fit_stream(ranker, stream_ranking(200, n_features=30), every=100).n_queries_
    200
    """
    if not hasattr(ranker, "partial_fit"):
        raise InputError(
            f"{type(ranker).__name__} needs all data at once: use fit, or a ranker with partial_fit"
        )
    reject_unused(ranker, ("patience",), "a stream")
    stream = open_stream(source)
    if check_whole("epochs", epochs) > 1 and not stream.rewinds:
        raise InputError(
            f"epochs={epochs} needs a source that can be read again, such as files or a list"
        )
    if checkpoint is not None and not stream.resumes:
        raise InputError("a run over a pipe cannot be resumed: give files, or leave checkpoint out")
    if every is not None:
        check_whole("every", every)
    held_out = as_data(validation)
    judge = None if held_out is None else BestSoFar(ranker, held_out)
    run = _Run(ranker, stream, epochs, judge, progress)
    with nullcontext() if checkpoint is None else HeldFile(checkpoint) as file:
        run.run(file, EVERY if every is None and file is not None else every)
    return ranker


@dataclass
class _Run:
    """A run over a stream, from its start or from a checkpoint."""

    ranker: Any
    stream: RankingStream
    epochs: int
    judge: BestSoFar | None
    progress: Callback | None
    epoch: int = 0  # completed passes
    position: Position = field(default_factory=Position)  # in this pass
    learned: int = 0  # documents of all passes since the start

    def run(self, file: HeldFile | None, every: int | None) -> None:
        ranker, self.start = self.ranker, time.perf_counter()
        made_by = self._made_by()
        found = None if file is None else load_checkpoint(file, made_by)
        if found is not None:
            self._resume(found)
        elif not (getattr(ranker, "warm_start", False) and hasattr(ranker, "state_")):
            _forget(ranker)
        history = [] if found is None else list(ranker.history_)
        while self.epoch < self.epochs:
            since = self.position.queries
            for chunk, position in self.stream.read(self.position):
                self.position = position
                self._learn(chunk)
                if every is not None and self.position.queries - since >= every:
                    since = self.position.queries
                    history.append(self._entry())
                    self._save(file, made_by, history)
            self.epoch += 1
            queries = self.position.queries
            if not queries:
                raise InputError("the stream is empty: give at least one query")
            if history and history[-1]["epoch"] == self.epoch - 1 and queries == since:
                history.pop()  # it is replaced by the entry of the whole pass
            history.append(self._entry())
            self.position = Position()
            self._save(file, made_by, history)
        ranker.history_, ranker.n_iter_ = history, self.epochs
        if not ranker.coef_.any():
            warn(
                f"{type(ranker).__name__} learned a model without features from the stream: every "
                "score is 0; lower alpha, or see whether labels differ within a query"
            )

    def _made_by(self) -> dict[str, Any]:
        """Return the settings that the weights depend on, by their names in messages."""
        ignored = {*WITHOUT_EFFECT, "epochs", "shuffle", "patience", "warm_start"}
        parameters = {k: v for k, v in self.ranker.get_params().items() if k not in ignored}
        sources = self.stream.identity()
        files = [source.pop("file", "an iterable") for source in sources]
        made_by = {
            "version": __version__,
            "algorithm": type(self.ranker).__name__,
            **to_json_values(parameters),
            "epochs": self.epochs,
            "sources": ", ".join(files),
        }
        for file, source in zip(files, sources, strict=True):
            made_by |= {f"{name} of {file}": value for name, value in source.items()}
        return made_by

    def _learn(self, chunk: RankingData) -> None:
        ranker = self.ranker
        if not chunk.n_queries:
            return
        if hasattr(ranker, "n_features_in_"):
            chunk = self._same_features(chunk)
        counted = (ranker.n_queries_, ranker.n_informative_queries_) if self.epoch else None
        ranker.partial_fit(chunk)
        if counted is not None:  # a later pass sees the same queries
            ranker.n_queries_, ranker.n_informative_queries_ = counted
        del ranker.history_[:-1]  # else an endless stream would fill memory
        self.learned += len(chunk)
        if self.progress is not None:
            self.progress(self._report())

    def _same_features(self, chunk: RankingData) -> RankingData:
        """Grow the ranker by the new features of a chunk; append those that the chunk lacks."""
        present, names = self.ranker.n_features_in_, chunk.feature_names
        own = getattr(self.ranker, "feature_names_in_", None)
        both = () if own is None or names is None else zip(own, names, strict=False)
        for at, (before, now) in enumerate(both):
            if before != now:
                raise InputError(
                    f"column {at} is {now!r} in a later chunk and was {before!r} before: give the "
                    "same columns in the same order, new ones at the end"
                )
        if chunk.n_features > present:
            self.ranker.grow(chunk.n_features)
        if chunk.n_features >= present:
            return chunk
        return resized(chunk, present).replace(feature_names=own)

    def _report(self) -> dict[str, Any]:
        support = int(np.count_nonzero(self.ranker.coef_))
        return {
            "queries": self.position.queries,
            "documents": self.position.documents,
            "support": support,
            "sparsity": support / max(1, len(self.ranker.coef_)),
            "documents_per_second": self.learned / max(time.perf_counter() - self.start, 1e-9),
        }

    def _entry(self) -> dict[str, Any]:
        """Return an entry of the history, with the measure on validation data if there are any."""
        ranker = self.ranker
        last = ranker.history_[-1] if ranker.history_ else {}
        entry = {"epoch": self.epoch, **self._report(), "loss": last.get("loss", float("nan"))}
        if self.judge is not None:
            coef = ranker.coef_
            scores = np.asarray(resized(self.judge.held_out, len(coef)).X @ coef, dtype=np.float64)
            entry[ranker.measure] = self.judge.measured(scores)
        return entry

    def _save(self, file: HeldFile | None, made_by: dict[str, Any], history: list[Any]) -> None:
        if file is None:
            return
        fitted = {**_fitted(self.ranker), "history_": history}
        fitted.pop("coef_", None)  # the state has them
        state = fitted.pop("state_", None)
        content = {"made_by": made_by, "epoch": self.epoch, "position": self.position}
        content |= {"fitted": fitted, "state": state}
        file.replace(state_bytes(content, _MAGIC, _SCHEMA))

    def _resume(self, found: dict[str, Any]) -> None:
        ranker, fitted = self.ranker, found["fitted"]
        _forget(ranker)
        if "feature_names_in_" in fitted:
            fitted["feature_names_in_"] = np.array(fitted["feature_names_in_"], dtype=object)
        for name, value in fitted.items():
            setattr(ranker, name, value)
        ranker.coef_ = np.zeros(ranker.n_features_in_)  # if no query had any information
        if found["state"] is not None:
            ranker.state_ = restored(ranker._state_type, found["state"])
            ranker.coef_ = ranker.state_.weights()
        self.epoch, self.position = found["epoch"], Position(**found["position"])


def _fitted(ranker: Any) -> dict[str, Any]:
    """Return the fitted attributes of a ranker."""
    return {k: v for k, v in vars(ranker).items() if k.endswith("_") and not k.startswith("_")}


def _forget(ranker: Any) -> None:
    for name in _fitted(ranker):
        delattr(ranker, name)


_MAGIC, _SCHEMA = b"leanrank-checkpoint", 6
_TEXT, _ARRAY = "header", "__array__"

T = TypeVar("T")


def load_checkpoint(file: HeldFile, made_by: dict[str, Any]) -> dict[str, Any] | None:
    """Return the content of a checkpoint of the same run; None if the file is new.

    ``made_by`` is as from ``_Run._made_by``; the checkpoint must have the same.
    """
    content, remedy = file.read(), "give another file, or delete this one to start again"
    if not content:
        return None
    try:
        found = read_state(content, dict[str, Any], _MAGIC, _SCHEMA)
    except ValueError as error:
        raise InputError(f"{file.path}: {error}: {remedy}") from None
    then, now = found["made_by"], json.loads(json.dumps(made_by))
    for name in {**now, **then}:
        if then.get(name) != now.get(name):
            raise InputError(
                f"{file.path}: this checkpoint was made with {name}={then.get(name)}, not "
                f"{name}={now.get(name)}: {remedy}"
            )
    return found


def state_bytes(state: Any, magic: bytes, schema: int) -> bytes:
    """Return the content of a state file."""
    arrays: dict[str, Any] = {}

    def plain(value: Any) -> Any:
        if is_dataclass(value):
            return {each.name: getattr(value, each.name) for each in fields(value)}
        if isinstance(value, np.generic) or value.dtype == object:
            return value.tolist()
        arrays[f"a{len(arrays)}"] = value
        return {_ARRAY: f"a{len(arrays) - 1}"}

    text = json.dumps(state, default=plain).encode()
    stream = io.BytesIO()
    arrays[_TEXT] = np.frombuffer(text, np.uint8)
    np.savez(stream, **arrays)
    body = stream.getvalue()
    return _first_line(body, magic, schema) + body


def read_state(content: bytes, read: Callable[[Any], T], magic: bytes, schema: int) -> T:
    """Check the first line of a state file, and return what ``read`` makes of the header.

    Raises
    ------
    ValueError
        If the file has another format or version, or is damaged.
    """
    first, _, body = content.partition(b"\n")
    if not first.startswith(magic + b" %d " % schema):
        raise ValueError(f"this is no {magic.decode()} file of version {schema}")
    if first + b"\n" != _first_line(body, magic, schema):
        raise ValueError("this file is damaged (its checksum does not fit its content)")
    try:
        with np.load(io.BytesIO(body), allow_pickle=False) as arrays:

            def with_arrays(entries: dict[str, Any]) -> Any:
                return arrays[str(entries[_ARRAY])] if set(entries) == {_ARRAY} else entries

            return read(json.loads(arrays[_TEXT].tobytes(), object_hook=with_arrays))
    except Exception as error:  # of NumPy, JSON or ``read``
        raise ValueError(f"this file is damaged ({type(error).__name__}: {error})") from None


def _first_line(body: bytes, magic: bytes, schema: int) -> bytes:
    return b"%s %d %s\n" % (magic, schema, hashlib.sha256(body).hexdigest().encode())


def restored(kind: Any, value: Any) -> Any:
    """Return a data class or named tuple from its entries in a state file.

    >>> restored(Position, {"part": 0, "offset": 7, "line": 1, "queries": 1, "documents": 3})
    Position(part=0, offset=7, line=1, queries=1, documents=3)
    """
    kind = next((each for each in get_args(kind) if is_dataclass(each)), kind)  # or None
    if value is None or not (is_dataclass(kind) or hasattr(kind, "_fields")):
        return value
    hints = get_type_hints(kind)
    entries = dict(zip(hints, value, strict=True)) if isinstance(value, list) else value
    return kind(**{name: restored(hints[name], entry) for name, entry in entries.items()})
