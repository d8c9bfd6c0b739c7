"""Learning from a stream: one chunk in memory, checkpoints, new features."""

from __future__ import annotations

import os
import time
from contextlib import nullcontext
from typing import Any

import numpy as np

from leanrank._files import HeldFile
from leanrank._numbers import check_whole
from leanrank._typing import Callback
from leanrank._version import __version__
from leanrank.data.ranking_data import RankingData
from leanrank.data.streams import Position, RankingStream, open_stream, resized
from leanrank.errors import InputError, warn
from leanrank.rankers.sampling.checkpoint import Checkpoint, fitted_attributes

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
    features: str = "grow",
    progress: Callback | None = None,
) -> Any:
    """Learn from more data than fits in memory, each query in the order of the stream.

    Parameters
    ----------
    ranker : estimator
        One with ``partial_fit``, ``grow`` and a ``state_``, such as MinBatSRank.
    source : path, sequence of paths, iterable of chunks, or RankingStream
        As ``leanrank.data.streams.open_stream`` takes it: text, Parquet, or RankingData (or
        tuples (X, y, qid)) from a generator.
    checkpoint : path, optional
        A file that the run writes, and from which it continues if the file exists. A run that was
        killed and restarted ends with the same bits as one that was not. A generator must start
        from its beginning; what was already learned from is skipped.
    every : int, optional
        Queries after which to write the checkpoint and an entry of ``history_``, at the end of the
        chunk; 10,000 if there is a checkpoint, else once per pass.
    validation : RankingData or (X, y, qid), optional
        Where to measure the model for each entry of ``history_``; features that only one side has
        count as zero.
    epochs : int, default=1
        Passes over the stream, instead of the ranker's ``epochs``; queries are not shuffled.
    features : "grow" or "hash:BITS", default="grow"
        What to do with new features: add them, or hash all features into 2^BITS buckets. ``coef_``
        has one weight per feature either way.
    progress : callable, optional
        Called after each chunk with a dict: queries and documents of this pass so far,
        documents_per_second, support, sparsity.

    Returns
    -------
    The ranker.

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
    _Run(ranker, open_stream(source), features, epochs, every, validation, progress).run(checkpoint)
    return ranker


class _Run:
    """A run over a stream, from its start or from a checkpoint."""

    def __init__(
        self,
        ranker: Any,
        stream: RankingStream,
        features: str,
        epochs: int,
        every: int | None,
        validation: Any,
        progress: Callback | None,
    ) -> None:
        from leanrank.rankers.inputs import as_data
        from leanrank.rankers.progress import check_measure

        self.ranker = ranker
        self.stream = stream
        self.bits = _hash_bits(features)
        self.epochs = check_whole("epochs", epochs)
        self.every = None if every is None else check_whole("every", every)
        self.held_out = as_data(validation)
        if getattr(ranker, "patience", None) is not None:
            raise InputError(
                f"patience={ranker.patience!r} has no effect on a stream, which is read to its end "
                "and returns its last model: leave it out"
            )
        if self.held_out is not None:
            check_measure(ranker)
        self.progress = progress
        if self.epochs > 1 and not stream.rewinds:
            raise InputError(
                f"epochs={epochs} needs a source that can be read again, such as files or a list: "
                "a pipe or a generator can be read once"
            )
        self.made_by = {
            "version": __version__,
            **_recipe(ranker),
            "features": features,
            "epochs": self.epochs,
            "source": stream.identity(),
        }
        self.epoch = 0
        self.position: Position | None = None
        self.queries = self.documents = 0  # read in this pass
        self.width = 0  # features seen
        self.start = time.perf_counter()
        self.learned = 0  # documents of all passes since the start

    def run(self, path: str | os.PathLike[str] | None) -> None:
        if path is not None and not self.stream.resumes:
            raise InputError(
                "a run over standard input or a pipe cannot be resumed: leave the checkpoint out, "
                "or give files"
            )
        with nullcontext() if path is None else HeldFile(path) as checkpoint:
            self._run(checkpoint)

    def _run(self, checkpoint: HeldFile | None) -> None:
        ranker = self.ranker
        found = None if checkpoint is None else Checkpoint.load(checkpoint, ranker)
        if checkpoint is not None and found is not None:
            self._resume(found, checkpoint.path)
        elif getattr(ranker, "warm_start", False) and hasattr(ranker, "state_"):
            self._continue()
        else:
            for name in fitted_attributes(ranker):
                delattr(ranker, name)
        every = EVERY if self.every is None and checkpoint is not None else self.every
        history = list(getattr(ranker, "history_", [])) if self.queries else []
        while self.epoch < self.epochs:
            if self.position is None:
                self.queries = self.documents = 0
            since = self.queries
            for chunk, position in self.stream.read(self.position):
                self._learn(chunk)
                self.position = position
                if every is not None and self.queries - since >= every:
                    since = self.queries
                    history.append(self._entry())
                    self._save(checkpoint, history)
            self.epoch, self.position = self.epoch + 1, None
            if not self.queries:
                raise InputError("the stream is empty: there is nothing to learn from")
            if history and history[-1]["epoch"] == self.epoch - 1 and self.queries == since:
                history.pop()  # the pass ended where that entry was made
            history.append(self._entry())
            self._save(checkpoint, history)
        ranker.history_ = history
        ranker.n_iter_ = self.epochs
        self._finish()

    def _continue(self) -> None:
        """Continue from an earlier fit or stream, which may have hashed features."""
        ranker = self.ranker
        own = ranker.state_.weights()
        hashed = len(own) != ranker.n_features_in_
        if (1 << self.bits != len(own)) if self.bits is not None else hashed:
            before = f"hash:{len(own).bit_length() - 1}" if hashed else "grow"
            raise InputError(
                f"the ranker learned with features={before!r} before: give the same, or set "
                "warm_start=False to start again"
            )
        if self.bits is not None:
            self.width = ranker.n_features_in_ if hashed else 0
            ranker.coef_, ranker.n_features_in_ = own, len(own)

    def _learn(self, chunk: RankingData) -> None:
        ranker = self.ranker
        if not chunk.n_queries:
            return
        if self.bits is not None:
            from leanrank.data.matrices import hash_features

            self.width = max(self.width, chunk.n_features)
            chunk = hash_features(chunk, self.bits)
        elif hasattr(ranker, "n_features_in_"):
            chunk = self._same_features(chunk)
        counted = (ranker.n_queries_, ranker.n_informative_queries_) if self.epoch else None
        ranker.partial_fit(chunk)
        if counted is not None:  # a later pass sees the same queries
            ranker.n_queries_, ranker.n_informative_queries_ = counted
        del ranker.history_[:-1]  # one entry per chunk would add up in an endless stream
        self.queries += chunk.n_queries
        self.documents += len(chunk)
        self.learned += len(chunk)
        if self.progress is not None:
            self.progress(self._report())

    def _same_features(self, chunk: RankingData) -> RankingData:
        """Add new features to the ranker, and missing ones to the end of a chunk."""
        ranker = self.ranker
        known, names = ranker.n_features_in_, chunk.feature_names
        own = getattr(ranker, "feature_names_in_", None)
        if own is not None and names is not None:
            shared = range(min(len(own), len(names)))
            odd = next((j for j in shared if own[j] != names[j]), None)
            if odd is not None:
                raise InputError(
                    f"column {odd} is {names[odd]!r} in a later chunk and was {own[odd]!r} before: "
                    "give the same columns in the same order, new ones at the end"
                )
        if chunk.n_features > known:
            ranker.grow(chunk.n_features)
        if chunk.n_features >= known:
            return chunk
        return resized(chunk, known).replace(feature_names=own)

    def _report(self) -> dict[str, Any]:
        ranker = self.ranker
        support = int(np.count_nonzero(ranker.coef_))
        seconds = max(time.perf_counter() - self.start, 1e-9)
        return {
            "queries": self.queries,
            "documents": self.documents,
            "support": support,
            "sparsity": support / max(1, len(ranker.coef_)),
            "documents_per_second": self.learned / seconds,
        }

    def _entry(self) -> dict[str, Any]:
        """Return an entry for the history."""
        ranker = self.ranker
        last = ranker.history_[-1] if ranker.history_ else {}
        entry = {"epoch": self.epoch, **self._report(), "loss": last.get("loss", float("nan"))}
        if self.held_out is not None:
            entry[ranker.measure] = self._measured(ranker.measure)
        return entry

    def _measured(self, measure: str) -> float:
        from leanrank.metrics import evaluate

        held_out, coef = self.held_out, self._coef()
        assert held_out is not None  # checked by the caller
        scores = np.asarray(resized(held_out, len(coef)).X @ coef, dtype=np.float64)
        result = evaluate(held_out, scores, measures=[measure], convention=self.ranker.convention)
        return float(result.means[measure])

    def _save(self, file: HeldFile | None, history: list[dict[str, Any]]) -> None:
        if file is None:
            return
        fitted = {**fitted_attributes(self.ranker), "history_": history}
        fitted.pop("coef_", None)  # the state has them
        state, position = fitted.pop("state_", None), self.position or Position()
        counts = self.queries, self.documents, self.width
        Checkpoint(self.made_by, position, self.epoch, *counts, fitted, state).save(file)

    def _resume(self, found: Checkpoint, path: str) -> None:
        found.compare(self.made_by, path)
        for name in fitted_attributes(self.ranker):
            delattr(self.ranker, name)
        for name, value in found.fitted.items():
            setattr(self.ranker, name, value)
        if found.state is not None:
            self.ranker.state_ = found.state
            self.ranker.coef_ = found.state.weights()
        else:  # no query so far had any information
            self.ranker.coef_ = np.zeros(self.ranker.n_features_in_)
        at_start = found.position == Position()  # of a pass whose queries are still to be counted
        self.epoch, self.position = found.epoch, None if at_start else found.position
        self.queries, self.documents, self.width = found.queries, found.documents, found.width

    def _coef(self) -> Any:
        if self.bits is None:
            return self.ranker.coef_
        from leanrank.data.matrices import unhash_weights

        return unhash_weights(self.ranker.coef_, self.width)

    def _finish(self) -> None:
        self.ranker.coef_ = self._coef()
        if self.bits is not None:
            self.ranker.n_features_in_ = self.width
        if not self.ranker.coef_.any():
            warn(
                f"{type(self.ranker).__name__} learned a model without features from the stream: "
                "every score is 0; lower alpha, or see whether labels differ within a query"
            )


def _recipe(ranker: Any) -> dict[str, Any]:
    """Return the algorithm and the parameters on which the weights depend."""
    from leanrank.model.provenance import to_json_values
    from leanrank.rankers.base import WITHOUT_EFFECT

    ignored = {*WITHOUT_EFFECT, "epochs", "shuffle", "patience", "warm_start"}
    parameters = {k: v for k, v in ranker.get_params().items() if k not in ignored}
    return {"algorithm": type(ranker).__name__, "parameters": to_json_values(parameters)}


def _hash_bits(features: str) -> int | None:
    """Read "grow" or "hash:BITS"."""
    from leanrank.data.matrices import MOST_BITS

    if features == "grow":
        return None
    kind, _, bits = str(features).partition(":")
    if kind == "hash" and bits.isdecimal() and 1 <= int(bits) <= MOST_BITS:
        return int(bits)
    raise InputError(
        f"features={features!r} is not known: use 'grow', or 'hash:BITS' with 1 to {MOST_BITS} "
        "bits, such as 'hash:18'"
    )
