"""Click models, simulated and fitted: what users examine, what they click, when they stop.

A user reads a list from the top. At each rank they examine the document or not, click an examined
document or skip it, and then continue or stop. Published click models differ in what these three
probabilities depend on, so one class covers all of them: ``ClickModel``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from leanrank._jit import kernel_view
from leanrank._typing import BoolArray, FloatArray, IntArray
from leanrank.data.clicks.click_log import ClickLog
from leanrank.errors import InputError, check_choice, warn
from leanrank.execution import make_executor, row_blocks
from leanrank.online import kernels
from leanrank.online.kernels import Tables

# P(click | grade) and P(stop | click, grade), for grades 0 to 2 and 0 to 4
_USERS: dict[int, dict[str, Any]] = {
    3: {
        "perfect": ((0.0, 0.5, 1.0), (0.0, 0.0, 0.0)),
        "navigational": ((0.05, 0.5, 0.95), (0.2, 0.5, 0.9)),
        "informational": ((0.4, 0.7, 0.9), (0.1, 0.3, 0.5)),
        "almost-random": ((0.4, 0.5, 0.6), (0.5, 0.5, 0.5)),
    },
    5: {
        "perfect": ((0.0, 0.2, 0.4, 0.8, 1.0), (0.0, 0.0, 0.0, 0.0, 0.0)),
        "navigational": ((0.05, 0.3, 0.5, 0.7, 0.95), (0.2, 0.3, 0.5, 0.7, 0.9)),
        "informational": ((0.4, 0.6, 0.7, 0.8, 0.9), (0.1, 0.2, 0.3, 0.4, 0.5)),
        "almost-random": ((0.4, 0.45, 0.5, 0.55, 0.6), (0.5, 0.5, 0.5, 0.5, 0.5)),
    },
}
USERS = tuple(_USERS[3])


def user(name: str, n_grades: int = 3) -> ClickModel:
    """Return one of the four cascade users of the online learning literature.

    They examine every document until they stop, click by grade, and stop after a click by grade
    (Guo et al. 2009, with the tables of Hofmann et al. 2013 and Schuth et al. 2014).

    Parameters
    ----------
    name : {"perfect", "navigational", "informational", "almost-random"}
    n_grades : {2, 3, 5}, default=3
        Two grades are the lowest and the highest of three.

    Examples
    --------
    >>> user("navigational").click.tolist()
    [0.05, 0.5, 0.95]
    >>> user("perfect").clicks([2, 0, 2, 0], rng=0).tolist()
    [True, False, True, False]
    """
    check_choice("name", name, USERS)
    if n_grades not in (2, 3, 5):
        raise InputError(f"n_grades={n_grades!r}: there are tables for 2, 3 and 5 grades")
    click, stop = np.array(_USERS[5 if n_grades == 5 else 3][name])
    taken = slice(None, None, 2) if n_grades == 2 else slice(None)
    return ClickModel.cascade(click[taken], stop[taken])


class Goodness(NamedTuple):
    """How well a click model predicts clicks.

    Attributes
    ----------
    log_likelihood : float
        Of the clicks of a list, averaged over the lists.
    perplexity : float
        Mean over the ranks; 1 is a perfect prediction, 2 a coin.
    by_rank : array
        The perplexity of each rank: 2 to the mean negative log2-probability of its click or skip,
        given the list but not the other clicks.
    """

    log_likelihood: float
    perplexity: float
    by_rank: FloatArray


@dataclass(frozen=True, eq=False)
class ClickModel:
    """A user who examines, clicks and stops.

    Parameters
    ----------
    examine : array of shape (ranks, distances)
        Probability that a user who has not stopped examines a rank, by its distance from the last
        click: 0 before the first click, 1 right below a click.
    click : array of shape (grades,)
        Probability that a document is clicked if it is examined.
    stop : array of shape (2, ranks, grades)
        Probability that the user stops after skipping a document, ``stop[0]``, and after clicking
        it, ``stop[1]``.

    Notes
    -----
    An index past the end of a dimension means its last entry, so that a probability does not depend
    on a dimension of size 1. Kernels in ``leanrank.online.kernels`` take these three arrays:
    ``draw_clicks(model.tables, grades, key, clicked)``.

    A grade is any class of documents. A model that is fitted to a click log without grades has one
    "grade" per document: what the literature calls attractiveness.

    Examples
    --------
    >>> model = ClickModel.position_based([0.1, 0.9], eta=1.0)
    >>> lists = np.array([[1, 0, 1], [0, 1, -1]])  # grades from the top; -1 is no document
    >>> model.probabilities(lists).round(2)
    array([[0.9 , 0.05, 0.3 ],
           [0.1 , 0.45, 0.  ]])
    >>> clicked = model.simulate(np.repeat(lists, 50_000, axis=0), seed=1)
    >>> clicked[:50_000].mean(axis=0).round(1)
    array([0.9, 0. , 0.3])
    """

    examine: FloatArray
    click: FloatArray
    stop: FloatArray

    def __post_init__(self) -> None:
        for name, n_dimensions in (("examine", 2), ("click", 1), ("stop", 3)):
            values = np.ascontiguousarray(getattr(self, name), dtype=np.float64)
            if values.ndim != n_dimensions or not values.size:
                raise InputError(f"{name} must be an array with {n_dimensions} dimension(s)")
            if not ((values >= 0) & (values <= 1)).all():
                raise InputError(f"{name} has a value outside [0, 1]: give probabilities")
            object.__setattr__(self, name, values)
        if len(self.stop) != 2:
            raise InputError("stop needs two tables: after a skip, and after a click")

    @classmethod
    def cascade(cls, click: Any, stop: Any = 1.0) -> ClickModel:
        """Return a user who examines each document until they stop after a click, by grade.

        ``stop=1`` is the cascade model (Craswell et al. 2008): at most one click.
        """
        after_click = np.broadcast_to(np.asarray(stop, float), np.shape(click))
        return cls(np.ones((1, 1)), click, np.stack([0 * after_click, after_click])[:, None, :])

    @classmethod
    def position_based(cls, click: Any, eta: float = 1.0, examine: Any = None) -> ClickModel:
        """Return a user who examines rank r with probability r^−eta, or as given by ``examine``.

        Without ``examine`` there are 100 ranks.
        """
        look = np.arange(1.0, 101.0) ** -eta if examine is None else np.asarray(examine, float)
        return cls(look.reshape(-1, 1), click, np.zeros((2, 1, 1)))

    @classmethod
    def dependent_click(cls, click: Any, stop: Any) -> ClickModel:
        """Return a user who stops after a click with a probability by rank (Guo et al. 2009)."""
        after_click = np.asarray(stop, float).reshape(1, -1, 1)
        return cls(np.ones((1, 1)), click, np.concatenate([0 * after_click, after_click]))

    @classmethod
    def user_browsing(cls, click: Any, examine: Any) -> ClickModel:
        """Return a user who examines ranks by their distance from the last click.

        That is the model of Dupret and Piwowarski (2008); ``examine`` is as for the class.
        """
        return cls(examine, click, np.zeros((2, 1, 1)))

    @property
    def tables(self) -> Tables:
        """The three arrays, as the compiled functions take them."""
        return Tables(self.examine, self.click, self.stop)

    def no_counts(self) -> Tables:
        """Return zeros for ``kernels.expectations`` to add to."""
        return Tables(*(np.zeros((2, *table.shape)) for table in self.tables))

    def clicks(self, grades: Any, rng: np.random.Generator | int) -> BoolArray:
        """Draw the clicks of one list, given its grades from the top."""
        return self.simulate(np.asarray(grades)[None, :], seed_of(rng))[0]

    def simulate(
        self, shown: Any, seed: int, *, first: int = 0, n_jobs: int | None = None
    ) -> BoolArray:
        """Draw the clicks of many lists.

        Parameters
        ----------
        shown : array of shape (n_lists, depth)
            Grades from the top; below 0 where a list has no document.
        seed : int
        first : int, default=0
            The number of the first list. Lists are numbered consecutively, and the clicks of a list
            depend only on the seed and its number, so that a stream can be drawn in chunks.
        n_jobs : int, optional
            Threads; the clicks do not depend on it.
        """
        lists = self._check(shown)
        clicked = np.empty(lists.shape, dtype=bool)
        start = np.uint64(seed % 2**64)

        def draw(block: tuple[int, int]) -> None:
            part = slice(*block)
            kernels.draw_lists(self.tables, lists[part], start, first + block[0], clicked[part])

        make_executor(n_jobs).map(draw, row_blocks(len(lists)))
        return clicked

    def probabilities(self, shown: Any) -> FloatArray:
        """Return the probability of a click at each rank of each list."""
        lists = self._check(shown)
        out = np.empty(lists.shape)
        kernels.marginals(self.tables, lists, out)
        return out

    def fit(
        self,
        log: ClickLog | tuple[Any, Any],
        grades: Any = None,
        *,
        smoothing: float = 1.0,
        tol: float = 1e-7,
        max_iter: int = 1_000,
    ) -> ClickModel:
        """Return the maximum-likelihood model of a click log, by EM.

        The shapes of the three arrays define the parameters, and their values are the start. A
        probability of exactly 0 or 1 is taken as known: the first rank of ``position_based`` stays
        1, which determines the scale of the other ranks.

        Parameters
        ----------
        log : ClickLog, or a pair (shown, clicked) of arrays of shape (n_lists, depth)
        grades : array-like, optional
            One grade per row of ``log.data``. By default each document has a grade of its own.
        smoothing : float, default=1.0
            Pseudo-counts of both outcomes that are added to the counts of each parameter.
        tol : float, default=1e-7
            Stop when the objective (log-likelihood and smoothing) per list improves by less.
        max_iter : int, default=1_000
            Largest number of EM iterations.

        Examples
        --------
        >>> truth = ClickModel.position_based([0.2, 0.8], examine=[1, 0.6, 0.3])
        >>> shown = np.random.default_rng(0).integers(2, size=(20_000, 3))
        >>> start = ClickModel.position_based([0.5, 0.5], eta=0.5)
        >>> found = start.fit((shown, truth.simulate(shown, seed=0)))
        >>> found.examine[:3, 0].round(1), found.click.round(1)
        (array([1. , 0.6, 0.3]), array([0.2, 0.8]))
        """
        shown, clicked = shown_lists(log, grades)
        model = self._spread(int(shown.max(initial=-1)) + 1)
        shown, before = model._check(shown), -np.inf
        for _ in range(max_iter):
            counts = model.no_counts()
            value = kernels.expectations(model.tables, shown, clicked, counts)
            if value == -np.inf:
                raise InputError(
                    "the click log has clicks that are impossible in the initial model: start from "
                    "probabilities between 0 and 1 where they are not known"
                )
            value += sum(_smoothing(table, smoothing) for table in model.tables)
            if value - before <= tol * len(shown):
                return model
            before = value
            found = [
                np.where(
                    (table > 0) & (table < 1) & (trials + smoothing > 0),
                    (hits + smoothing) / np.maximum(trials + 2 * smoothing, 1e-300),
                    table,
                )
                for table, (trials, hits) in zip(model.tables, counts, strict=True)
            ]
            model = ClickModel(*found)
        warn(f"EM did not converge in {max_iter} iterations: raise max_iter, or tol={tol:g}")
        return model

    def assess(self, log: ClickLog | tuple[Any, Any], grades: Any = None) -> Goodness:
        """Return log-likelihood and perplexity on a click log, best one not used in ``fit``."""
        shown, clicked = shown_lists(log, grades)
        shown = self._check(shown)
        value = kernels.expectations(self.tables, shown, clicked, self.no_counts())
        chance = self.probabilities(shown)
        with np.errstate(divide="ignore"):
            bits = -np.log2(np.where(clicked, chance, 1.0 - chance))
        there = (shown >= 0).sum(axis=0)
        by_rank = 2.0 ** (np.where(shown >= 0, bits, 0.0).sum(axis=0)[there > 0] / there[there > 0])
        return Goodness(value / len(shown), float(by_rank.mean()), by_rank)

    def _check(self, shown: Any) -> IntArray:
        lists = np.ascontiguousarray(_whole(shown))
        if lists.ndim != 2:
            raise InputError("lists of grades are an array of shape (n_lists, depth)")
        if lists.max(initial=-1) >= len(self.click):
            raise InputError(
                f"a list has grade {lists.max()}, but the click model has {len(self.click)} "
                "grades, counted from 0: give click one probability per grade"
            )
        depth = max(self.examine.shape[0], self.stop.shape[1])
        if 1 < depth < lists.shape[1]:
            raise InputError(
                f"the lists have {lists.shape[1]} ranks, but the click model has {depth}: cut the "
                "lists, or give the model more ranks"
            )
        return kernel_view(lists)

    def _spread(self, n_grades: int) -> ClickModel:
        """Return an initial model with at least ``n_grades`` grades."""
        if n_grades <= len(self.click):
            return self
        stop = self.stop
        if stop.shape[2] > 1:
            stop = np.repeat(stop.mean(axis=2, keepdims=True), n_grades, axis=2)
        return replace(self, click=np.full(n_grades, self.click.mean()), stop=stop)


def shown_lists(
    log: ClickLog | tuple[Any, Any], grades: Any = None
) -> tuple[IntArray, npt.NDArray[np.bool_]]:
    """Return a click log as two arrays of shape (n_lists, depth): what was shown, and the clicks.

    A document is a row of ``log.data``, or the grade of that row; −1 where nothing was shown.

    Examples
    --------
    >>> from leanrank.data import make_clicks, make_ranking
    >>> log = make_clicks(make_ranking(n_queries=2, docs_per_query=3, random_state=0), n_sessions=4)
    >>> shown, clicked = shown_lists(log)
    >>> shown.shape, int(clicked.sum()) == int(log.clicked.sum())
    ((4, 3), True)
    """
    if not isinstance(log, ClickLog):
        shown, clicked = _whole(log[0]), np.ascontiguousarray(log[1], dtype=bool)
        if shown.shape != clicked.shape or shown.ndim != 2 or not len(shown):
            raise InputError("lists and clicks must be two arrays of one shape (n_lists, depth)")
        return shown, clicked
    classes = log.row if grades is None else _whole(grades)[log.row]
    return by_rank(log, classes, -1), by_rank(log, log.clicked, False)


def seed_of(rng: np.random.Generator | int) -> int:
    """Return an integer itself, or a seed drawn from a generator."""
    return int(rng if isinstance(rng, (int, np.integer)) else rng.integers(2**63))


def by_rank(log: ClickLog, values: Any, nothing: Any) -> Any:
    """Return one value per document shown as an array of shape (n_lists, depth)."""
    number = np.repeat(np.arange(log.n_lists), np.diff(log.list_ptr))
    last = int(log.position.max())
    out = np.full((log.n_lists, last), nothing, dtype=values.dtype)
    out[number, log.position - 1] = values
    return out


def _whole(values: Any) -> IntArray:
    given = np.asarray(values)
    whole = given.astype(np.int64)
    if given.dtype.kind == "f" and (whole != given).any():
        raise InputError("a grade is not a whole number: number the grades from 0")
    return whole


def _smoothing(table: FloatArray, smoothing: float) -> float:
    """Return the log-likelihood of the pseudo-counts."""
    free = table[(table > 0) & (table < 1)]
    return smoothing * float(np.sum(np.log(free) + np.log1p(-free)))
