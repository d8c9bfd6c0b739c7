"""``OnlineRanker``: a ranker that chooses the lists to show, and learns from their clicks."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from leanrank._files import atomic_write
from leanrank._numbers import check_number, check_whole
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank._version import __version__
from leanrank.data.clicks.click_log import ClickLog
from leanrank.data.sources import open_bytes
from leanrank.errors import InputError, check_choice
from leanrank.model.model import Model
from leanrank.model.provenance import make_provenance
from leanrank.online.serving import METHODS, LearnerRule, LearnerState, Slate, new_slate, serve
from leanrank.online.steps import learn
from leanrank.rankers.streaming import read_state, restored, state_bytes
from leanrank.solvers.sampling.coregularised import random_views
from leanrank.solvers.sampling.pair_sampling import new_state

_MAGIC, _SCHEMA = b"leanrank-online", 2

_STEPS: dict[str, Any] = {"solver": "sgd", "alpha": 0.0}
_GREEDY: dict[str, Any] = {**_STEPS, "explore": 0.1}

DEFAULTS: dict[str, dict[str, Any]] = {
    "spd": {**_GREEDY, "eta0": 0.01},
    "lcra": {**_GREEDY, "eta0": 0.01, "mu": 0.01, "views": 2},
    "pdgd": {**_STEPS, "eta0": 0.1},
    "ips": {**_GREEDY, "eta0": 0.1, "eta": 1.0},
    "dbgd": {"eta0": 0.01},
}
"""The parameters of each method, with their defaults."""


@dataclass(frozen=True)
class ShownList:
    """A list to show, with the data to learn from it; keep it until its clicks are known.

    Attributes
    ----------
    documents : array of int64
        Rows of the query's documents, from the top.
    propensities : array
        Probability of each document in its slot, given those above; their product is that of the
        list.
    """

    documents: IntArray
    propensities: FloatArray
    slate: Slate
    block: FloatArray

    def log(
        self, clicks: Any, *, session: str, query: str, documents: Sequence[str]
    ) -> dict[str, list[Any]]:
        """Return the list as columns of a click log, as ``leanrank.data.read_clicks`` takes them.

        Parameters
        ----------
        clicks : sequence of 0 or 1
            One per slot.
        session, query : str
        documents : sequence of str
            The name of each document of the query, in the order that was given to ``rank``.
        """
        n = len(self.documents)
        return {
            "session": [session] * n,
            "query": [query] * n,
            "document": [documents[at] for at in self.documents.tolist()],
            "position": list(range(1, n + 1)),
            "clicked": _clicks(clicks, n).astype(int).tolist(),
            "propensity": self.propensities.tolist(),
        }


class OnlineRanker:
    """A ranking function that learns while it serves.

    Parameters
    ----------
    method : {"spd", "lcra", "pdgd", "ips", "dbgd"}
        - ``"spd"``: pairs of a clicked document over those skipped above it and the next one; one
          step of stochastic pairwise descent on their hinge losses. ε-greedy lists.
        - ``"lcra"``: the same in every view, and a penalty on disagreement between views on pairs
          drawn from all documents of the query (Tsivtsivadze et al. 2012), unless ``mu=0``.
        - ``"pdgd"``: pairwise differentiable gradient descent (Oosterhuis & de Rijke 2018), an
          unbiased estimate of the preferences of users. Plackett-Luce lists.
        - ``"ips"``: clicks, weighted by the inverse propensity of their position, over all other
          documents (Joachims et al. 2017). ε-greedy lists.
        - ``"dbgd"``: dueling bandit gradient descent (Yue & Joachims 2009) with probabilistic
          interleaving.
    n_features : int
    list_length : int, default=10
        Documents per list.
    random_state : int, default=0
    **parameters
        Parameters of the method; ``DEFAULTS`` lists them.

        explore : float
            ε: probability that a slot gets a random one of the remaining documents.
        eta0 : float
            The learning rate.
        solver : {"sgd", "ftrl"}
            Gradient steps with an ℓ2² penalty of strength ``alpha``, or follow the regularised
            leader with an ℓ1 penalty, which leaves weights at exactly zero.
        mu : float
            Strength of the agreement of views, on ten unlabelled pairs per step.
        views : int
            Number of random subsets of the features.
        eta : float
            Position r is examined with propensity r^−η, at least 0.01.

    Examples
    --------
    >>> from leanrank.data import make_ranking
    >>> from leanrank.online import OnlineRanker, user
    >>> data = make_ranking(n_queries=50, docs_per_query=20, n_features=8, random_state=0)
    >>> grades = data.y.astype(int)
    >>> ranker, visitor = OnlineRanker("pdgd", n_features=8), user("perfect", 5)
    >>> for t in range(2000):
    ...     rows = slice(20 * (t % 50), 20 * (t % 50) + 20)
    ...     shown = ranker.rank(data.X[rows])
    ...     ranker.observe(shown, visitor.clicks(grades[rows][shown.documents], rng=t))
    >>> from leanrank.metrics import evaluate
    >>> evaluate(data, ranker.predict(data.X)).means["ndcg@10"] > 0.7
    True
    """

    def __init__(
        self,
        method: str = "spd",
        *,
        n_features: int,
        list_length: int = 10,
        random_state: int = 0,
        **parameters: Any,
    ) -> None:
        check_choice("method", method, METHODS)
        defaults = DEFAULTS[method]
        for name in parameters.keys() - defaults.keys():
            raise InputError(
                f"{name} has no effect for method={method!r}: leave it out, or use one of "
                f"{', '.join(defaults)}"
            )
        self.method, self.random_state = method, random_state
        self.parameters = {**defaults, **parameters}
        n_features = check_whole("n_features", n_features)
        self.rule = _rule(method, self.parameters, check_whole("list_length", list_length))
        self.state = _new_state(self.parameters, self.rule, n_features, random_state)

    @property
    def n_features(self) -> int:
        """Features of a document."""
        return int(self.state.w.shape[1])

    @property
    def coef_(self) -> FloatArray:
        """The weights now; of several views, their mean."""
        return np.asarray(self.state.w.mean(axis=0))

    @property
    def n_lists_(self) -> int:
        """Number of observed lists."""
        return int(self.state.counts[0])

    @property
    def n_steps_(self) -> int:
        """Number of steps; there is none for a list without information."""
        return int(self.state.counts[1])

    def rank(self, X: Any) -> ShownList:
        """Choose a list from the documents of one query, one per row."""
        X = X.toarray() if hasattr(X, "toarray") else np.asarray(X)
        if X.ndim != 2 or X.shape[1] != self.n_features or len(X) == 0:
            raise InputError(
                f"the documents of a query have shape {X.shape}: give one row per document and "
                f"{self.n_features} features"
            )
        block = np.ascontiguousarray(X.T, dtype=np.float64)
        if not np.isfinite(block).all():
            raise InputError("a feature of the documents is not finite: replace or drop it")
        slate = new_slate(self.rule, self.state, len(X))
        length = serve(self.rule, self.state, block, slate)
        if not np.isfinite(slate.scores).all() or not np.isfinite(slate.propensity[:length]).all():
            raise InputError("the scores of the documents are not finite: scale the features")
        return ShownList(
            slate.documents[:length].copy(), slate.propensity[:length].copy(), slate, block
        )

    def observe(self, shown: ShownList, clicks: Any) -> None:
        """Learn from the clicks on a list that ``rank`` gave, one per slot.

        Lists may be observed in any order; a step uses the scores from which the list was made. If
        a step leads to weights that are not finite, the state is restored.
        """
        length = len(shown.documents)
        clicked = _clicks(clicks, length)
        before = LearnerState._make(each.copy() for each in self.state)
        learn(self.rule, self.state, shown.block, shown.slate, length, clicked)
        try:
            self.check_finite()
        except InputError:
            self.state = before
            raise

    def check_finite(self) -> None:
        """Reject weights that steps have made too large."""
        if not all(np.isfinite(each).all() for each in self.state[:4]):
            raise InputError(
                "the weights are no longer finite: the steps are too large, scale the features or "
                f"lower eta0 (now {self.rule.eta0:g})"
            )

    def learn_from_log(self, clicks: ClickLog) -> None:
        """Learn from lists that any system has shown, one step per list.

        This is for the methods "spd", "lcra" and "ips". Those that use all documents of a query
        need the ones that were not shown as well: read the log with ``keep_unshown=True``.

        Examples
        --------
        >>> from leanrank.data import make_clicks, make_ranking
        >>> from leanrank.metrics import evaluate
        >>> data = make_ranking(n_queries=40, docs_per_query=10, n_features=6, random_state=0)
        >>> ranker = OnlineRanker("ips", n_features=6, eta0=0.01)
        >>> ranker.learn_from_log(make_clicks(data, n_sessions=4000, eta=1.0, random_state=0))
        >>> evaluate(data, ranker.predict(data.X)).means["ndcg@10"] > 0.8
        True
        """
        if self.method not in ("spd", "lcra", "ips"):
            raise InputError(
                f"method={self.method!r} learns only from its own lists: use 'spd', 'lcra' or "
                "'ips' to learn from a log"
            )
        ptr = clicks.data.query_ptr
        for begin, end in zip(clicks.list_ptr[:-1], clicks.list_ptr[1:], strict=True):
            rows = clicks.row[begin : min(end, begin + self.rule.length)]
            first, last = ptr[np.searchsorted(ptr, rows[0], side="right") - 1 :][:2]
            shown = self.rank(clicks.data.X[first:last])
            shown.slate.documents[: len(rows)] = rows - first
            past = replace(shown, documents=rows - first)
            self.observe(past, clicks.clicked[begin : begin + len(rows)])

    def predict(self, X: Any) -> FloatArray:
        """Return the score of each document."""
        return np.asarray(X @ self.coef_)

    def to_model(self, **parts: Any) -> Model:
        """Return the current ranking function; ``parts`` are other fields of the model."""
        made = make_provenance(
            algorithm=f"OnlineRanker({self.method!r})",
            parameters=self.parameters,
            training={"lists": self.n_lists_, "steps": self.n_steps_},
        )
        return Model.from_coef(self.coef_, provenance=made, **parts)

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the whole state; ``load`` continues from it with the same bits."""
        header = {
            "version": __version__,
            "parameters": {**self.parameters, "method": self.method},
            "random_state": self.random_state,
            "list_length": self.rule.length,
            "state": self.state,
        }
        with atomic_write(path, "wb") as stream:
            stream.write(state_bytes(header, _MAGIC, _SCHEMA))

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> OnlineRanker:
        """Return the ranker of a file of ``save``."""
        with open_bytes(path) as stream:
            content = stream.read()
        try:
            return read_state(content, cls._restore, _MAGIC, _SCHEMA)
        except ValueError as error:
            raise InputError(f"{path}: {error}: give another file") from None

    @classmethod
    def _restore(cls, header: Any) -> OnlineRanker:
        state: LearnerState = restored(LearnerState, header["state"])
        ranker = cls(
            n_features=state.w.shape[1],
            list_length=header["list_length"],
            random_state=header["random_state"],
            **header["parameters"],
        )
        if any(now.shape != then.shape for now, then in zip(state, ranker.state, strict=True)):
            raise ValueError("its state does not have the shape of its parameters")
        ranker.state = state
        return ranker


def _clicks(clicks: Any, length: int) -> BoolArray:
    clicked = np.asarray(clicks)
    if clicked.shape != (length,) or not np.isin(clicked, (0, 1)).all():
        raise InputError(f"clicks must be one 0 or 1 for each of the {length} documents shown")
    return clicked.astype(bool)


def _rule(method: str, values: Mapping[str, Any], length: int) -> LearnerRule:
    def number(name: str, **bounds: Any) -> float:
        return check_number(name, values.get(name, 0.0), **bounds)

    solver = values.get("solver", "sgd")
    check_choice("solver", solver, ("sgd", "ftrl"))
    return LearnerRule(
        method=METHODS.index(method),
        length=length,
        explore=number("explore", high=1.0),
        eta0=number("eta0", open_low=True),
        alpha=number("alpha"),
        ftrl=solver == "ftrl",
        mu=number("mu"),
        eta=number("eta"),
    )


def _new_state(
    values: Mapping[str, Any], rule: LearnerRule, n_features: int, seed: int
) -> LearnerState:
    seed = check_whole("random_state", seed, 0)
    member = random_views(n_features, check_whole("views", values.get("views", 1)), seed)
    kept = n_features if rule.ftrl else 0
    return LearnerState(
        w=np.zeros(member.shape),
        member=member,
        v=np.zeros((len(member), kept)),
        s=np.zeros((len(member), kept)),
        generator=new_state(seed, stream=3),
        counts=np.zeros(2, dtype=np.int64),
    )
