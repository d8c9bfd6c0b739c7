"""Linear rankers: one weight, or one curve, per feature; learned at once or from a stream."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, ClassVar
from weakref import WeakKeyDictionary

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from leanrank._numbers import check_whole
from leanrank._typing import Callback, FloatArray, IntArray, Matrix
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.errors import InputError
from leanrank.execution import single_threaded_blas
from leanrank.losses.base import Labels
from leanrank.model.scoring import weighted_sums
from leanrank.rankers.base import BaseRanker
from leanrank.rankers.inputs import count_informative
from leanrank.rankers.knots import weights_model
from leanrank.rankers.parameters import seed_of
from leanrank.rankers.progress import record

if TYPE_CHECKING:
    from typing import Self

    from leanrank.designs.ramp_columns import RampColumns
    from leanrank.model import Curve, Model

_ANY_TIME = frozenset(
    {
        *("epochs", "n_steps", "shuffle", "random_state", "measure", "convention", "patience"),
        *("warm_start", "n_jobs", "verbose", "callback", "tol", "max_iter"),
    }
)
"""Parameters that may change during a run; the state holds the others."""

_LAST_MODEL: WeakKeyDictionary[Any, tuple[Any, FloatArray, Model]] = WeakKeyDictionary()
"""Ramps, weights and model of rankers with curves; predicting must not change a ranker."""


class BaseLinearRanker(BaseRanker):
    """A ranker whose score is a weighted sum of the features, or of their ramps.

    A subclass defines ``_learn``, which sets ``coef_``. One that also learns from one block of
    whole queries after the other (``state_type``) defines how to prepare a block (``_block``), the
    state before the first step (``_begin``) and a pass over queries in a given order (``_pass``).

    Attributes
    ----------
    coef_ : array of shape (n_features,)
    """

    coef_: FloatArray
    ramps_: RampColumns | None = None  # with curves, what ``coef_`` weighs

    verbose: int
    callback: Callback | None

    state_: Any
    state_type: ClassVar[type | None] = None
    """The class of ``state_`` if the ranker learns in steps; a checkpoint is read into it."""

    history_: list[dict[str, Any]]
    n_iter_: int
    dual_gap_: float
    objective_: float

    def _scores(self, X: Matrix) -> FloatArray:
        if self.ramps_ is not None:
            return self._curves_model().predict(X)
        support = np.flatnonzero(self.coef_)
        if len(support) == X.shape[1]:
            return weighted_sums(X, self.coef_)
        return weighted_sums(X, self.coef_[support], support)

    def _curves_model(self) -> Model:
        """Return the model of the curves, made again when the weights have changed."""
        found = _LAST_MODEL.get(self)
        if found is None or found[0] is not self.ramps_ or not (found[1] == self.coef_).all():
            made = weights_model(self.coef_, self.ramps_, feature_names=self._names())
            found = _LAST_MODEL[self] = self.ramps_, self.coef_.copy(), made
        return found[2]

    @property
    def sparsity_(self) -> float:
        """Share of the features that the model uses, ‖w‖₀ / n."""
        return self.n_features_ / max(1, self.n_features_in_)

    @property
    def n_features_(self) -> int:
        """How many features the model uses."""
        check_is_fitted(self, "coef_")
        used = self.coef_.nonzero()[0] if self.ramps_ is None else self.ramps_.used(self.coef_)
        return len(used)

    @property
    def curves_(self) -> dict[str, Curve]:
        """What each feature in use adds to a score, by its name."""
        model = self.to_model()
        return {feature_name(at, self._names()): curve for at, curve in model.curves.items()}

    def to_model(self, *, provenance: Mapping[str, Any] | None = None) -> Model:
        """Return the fitted weights as a plain model, which can be saved, sent and exported."""
        check_is_fitted(self, "coef_")
        return weights_model(
            self.coef_,
            self.ramps_,
            feature_names=self._names(),
            provenance={**self._provenance(), **(provenance or {})},
        )

    # streams

    def _block(self, data: RankingData, labels: Labels) -> Any:
        """Prepare whole queries for passes over them, once per fit or partial_fit."""
        raise AssertionError(f"{type(self).__name__} must define _block")

    def _begin(self, block: Any, n_features: int, seed: int, n_passes: int) -> Any:
        """Return the state of a run before its first step; ``block`` is the first one."""
        raise AssertionError(f"{type(self).__name__} must define _begin")

    def _pass(self, state: Any, block: Any, order: IntArray) -> float:
        """Learn from the queries of ``order`` in turn; return their mean loss before each step."""
        raise AssertionError(f"{type(self).__name__} must define _pass")

    @available_if(lambda self: self.state_type is not None)
    def fit_stream(self, source: Any, **options: Any) -> Self:
        """Learn from more data than fits in memory.

        Takes what ``leanrank.rankers.sampling.streaming.fit_stream`` takes: a source of text,
        Parquet or chunks, and options for checkpoints, validation and new features.
        """
        from leanrank.rankers.sampling.streaming import fit_stream

        fit_stream(self, source, **options)
        return self

    @available_if(lambda self: self.state_type is not None)
    def partial_fit(self, X: Any, y: Any = None, qid: Any = None, **options: Any) -> Self:
        """Learn from whole queries, once each in the given order, continuing from ``state_``.

        Takes what ``fit`` takes, except validation data. Queries without information are counted
        and skipped. More features than before need ``grow`` first.
        """
        first = not hasattr(self, "state_")
        if not first:
            self._check_same_parameters()
            self._check_same_features(X)
        data, labels = self._data_and_labels(X, y, qid, first=first, **options)
        counted = (0, 0)
        if hasattr(self, "coef_") and not (first and self.n_iter_):
            # zero after blocks without information; not the weights of fit
            counted = (self.n_queries_, self.n_informative_queries_)
        n_informative = count_informative(data, labels)
        self.n_queries_ = counted[0] + data.n_queries
        self.n_informative_queries_ = counted[1] + n_informative
        if first:
            self.n_iter_, self.history_ = 0, []
        if n_informative == 0:
            if first:
                self.coef_ = np.zeros(data.n_features)
            return self
        with single_threaded_blas():
            block = self._block(data, labels)
            if first:
                self._start(block, data.n_features, 1)
            self.coef_ = self._pass_and_report(block, block.active, time.perf_counter())
        self._check_learned()
        if hasattr(self, "best_epoch_"):
            del self.best_epoch_  # the weights are no longer that pass's
        return self

    @available_if(lambda self: self.state_type is not None)
    def grow(self, n_features: int) -> Self:
        """Add features that appear in a stream; their weights start at zero."""
        known = getattr(self, "n_features_in_", 0)
        if check_whole("n_features", n_features) < known:
            raise InputError(
                f"{type(self).__name__} has {known} features already: it cannot continue with "
                f"{n_features}"
            )
        if hasattr(self, "state_"):
            self.state_.grow(n_features)
            self.coef_ = self.state_.weights()
        if hasattr(self, "feature_names_in_"):
            del self.feature_names_in_  # the new ones have none
        self.n_features_in_ = n_features
        return self

    def _start(self, block: Any, n_features: int, n_passes: int) -> None:
        seed = seed_of(getattr(self, "random_state", 0))
        self.state_ = self._begin(block, n_features, seed, n_passes)
        self._begun_with = self._parameters_of_state()

    def _parameters_of_state(self) -> dict[str, Any]:
        return {k: v for k, v in self.get_params().items() if k not in _ANY_TIME}

    def _check_same_parameters(self) -> None:
        """Reject parameters other than those that the state was made with."""
        begun = getattr(self, "_begun_with", {})
        now = self._parameters_of_state()
        for name, value in begun.items():
            if repr(value) != repr(now[name]):
                raise InputError(
                    f"the run was started with {name}={value!r} and cannot continue with "
                    f"{name}={now[name]!r}: set it back, or fit again without warm_start"
                )

    def _pass_and_report(
        self, block: Any, order: IntArray, start: float, held_out: RankingData | None = None
    ) -> FloatArray:
        """Make one pass and record it."""
        before, began = self.state_.documents, time.perf_counter()
        loss = self._pass(self.state_, block, order)
        seconds = time.perf_counter() - began
        self.state_.epoch += 1
        w: FloatArray = self.state_.weights()
        entry: dict[str, Any] = {
            "epoch": self.state_.epoch,
            "documents": self.state_.documents,
            "loss": loss,
            "support": int(np.count_nonzero(w)),
            "sparsity": float(np.count_nonzero(w)) / max(1, len(w)),
        }
        if held_out is not None:
            from leanrank.metrics.judge import Judge, mean_of

            used = np.flatnonzero(w)
            judge = Judge(self.measure, self.convention)
            found = judge.per_query(held_out, np.asarray(held_out.X[:, used] @ w[used]))
            entry[self.measure] = mean_of(found[self.measure])
        entry["documents_per_second"] = (self.state_.documents - before) / max(seconds, 1e-9)
        entry["seconds"] = time.perf_counter() - start
        record(self, entry)
        return w

    def _check_same_features(self, X: Any) -> None:
        """Reject a block with other features than the blocks before it."""
        self.checked_features(X)
        if len(self.coef_) != len(self.state_.weights()):
            raise InputError(
                f"{type(self).__name__} learned from hashed features: continue with fit_stream, "
                "the same features='hash:BITS' and warm_start=True"
            )
