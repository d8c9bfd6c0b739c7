"""PAMIR for retrieval: text queries and pictures, each with features of their own.

The score of a picture p for a query q is F(q, p) = q·(W p), W of terms × picture features. A step
on a triplet (query, relevant picture, other picture) moves W to the minimiser of

    ½‖W − W₀‖² + C·max(0, 1 − F(q, p⁺) + F(q, p⁻)),

which is W₀ + τ q (p⁺ − p⁻)ᵀ with τ = min(C, loss/(‖q‖²‖p⁺ − p⁻‖²)): only the rows of q's terms and
the columns in which the pictures differ are touched.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import KW_ONLY, dataclass, field
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import BaseEstimator
from sklearn.utils.validation import check_is_fitted

from leanrank._jit import kernel, kernel_view
from leanrank._numbers import check_number, check_whole
from leanrank._typing import AnyArray, Callback, FloatArray, IntArray, Matrix
from leanrank.data import RankingData
from leanrank.errors import InputError
from leanrank.execution import single_threaded_blas
from leanrank.rankers.inputs import check_finite
from leanrank.rankers.parameters import BestSoFar, record, seed_of
from leanrank.solvers.sampling._pair_rows import (
    PairRows,
    add,
    as_rows,
    dot,
    fill_differences,
    make_buffers,
    pair_width,
    squared_norm,
)
from leanrank.solvers.sampling.pair_descent import step_counts
from leanrank.solvers.sampling.pair_sampling import new_state, next_uniform

if TYPE_CHECKING:
    from typing import Self


@dataclass(eq=False, repr=False)
class PAMIRRetriever(BaseEstimator):
    """Rank pictures (or anything else with features) for text queries (Grangier & Bengio 2008).

    A picture p is projected into the space of terms by a matrix W, and its score for a query q is
    the match q·(W p) there. W is learned on triplets of a query, a picture relevant to it and one
    that is not, by passive-aggressive steps that change the rows of the query's terms only.

    Parameters
    ----------
    C : float, default=0.1
        Aggressiveness: the largest step for one triplet.
    n_steps : int, default=100_000
        Triplets per pass.
    epochs : int, default=1
        Passes; the model is measured on validation data after each, and the best is kept.
    random_state : int, RandomState or None, default=0
    measure, convention : str, default="map", "standard"
        Measure that selects the best pass on validation data, and that ``score`` returns.
    patience : int, optional
        Passes without improvement after which to stop; needs validation data.
    verbose : int, default=0
        1 prints a line of progress per step.
    callback : callable, optional
        Called with each entry of the history.

    Attributes
    ----------
    coef_ : array of shape (terms, picture features)
        W.
    n_iter_ : int
        Passes; with validation data, those of the model that was kept.
    history_ : list of dict
        One entry per pass: steps so far, the mean loss before each step, the share of steps that
        changed W and, with validation data, their measure.

    Examples
    --------
    >>> import numpy as np
    >>> from papers.grangier2008 import PAMIRRetriever
    >>> rng = np.random.default_rng(0)
    >>> Q, P = np.eye(3), rng.normal(size=(60, 8))
    >>> relevance = (P[:, :3] > 0.5).T          # the term t is about the picture feature t
    >>> retriever = PAMIRRetriever(n_steps=5_000).fit(Q, P, relevance)
    >>> retriever.rank(Q, P, k=2).shape
    (3, 2)
    >>> bool(retriever.score(Q, P, relevance) > 0.95)
    True
    """

    C: float = 0.1
    _: KW_ONLY
    n_steps: int = 100_000
    epochs: int = 1
    random_state: Any = 0
    measure: str = "map"
    convention: str = "standard"
    patience: int | None = None
    verbose: int = 0
    callback: Callback | None = None
    coef_: FloatArray = field(init=False)
    history_: list[dict[str, Any]] = field(init=False)

    def fit(self, Q: Any, P: Any, relevance: Any, *, validation: Any = None) -> Self:
        """Learn W.

        Parameters
        ----------
        Q : array or SciPy sparse matrix of shape (queries, terms)
        P : array or SciPy sparse matrix of shape (pictures, features)
        relevance : array or SciPy sparse matrix of shape (queries, pictures)
            Positive where a picture is relevant to a query, else 0.
        validation : (Q, P, relevance), optional
            Other queries, or other pictures, or both.
        """
        best = BestSoFar(self, validation)
        epochs = check_whole("epochs", self.epochs)
        Q, P, relevance = _checked(Q, P, relevance)
        block = make_retrieval_block(Q, P, relevance)
        self._start(Q.shape[1], P.shape[1])
        held_out = None
        if validation is not None:
            if not isinstance(validation, (tuple, list)) or len(validation) != 3:
                raise InputError("validation must be a triple (Q, P, relevance)")
            held_out = _checked(*validation)
            self._check_width(held_out[0], held_out[1])
        for epoch in range(1, epochs + 1):
            self._pass(block, held_out)
            if held_out is not None:
                value = self.history_[-1][self.measure]
                if best.update(epoch, value, self.coef_.copy()):
                    break
        if best.at:
            self.coef_, self.n_iter_ = best.model, best.at
        return self

    def partial_fit(self, Q: Any, P: Any, relevance: Any) -> Self:
        """Take ``n_steps`` steps on the given queries and pictures, continuing from ``coef_``."""
        Q, P, relevance = _checked(Q, P, relevance)
        if not hasattr(self, "coef_"):
            self._start(Q.shape[1], P.shape[1])
        self._check_width(Q, P)
        self._pass(make_retrieval_block(Q, P, relevance), None)
        return self

    def project(self, P: Any) -> FloatArray:
        """Return W p of each picture, of shape (pictures, terms): the terms it is about."""
        check_is_fitted(self, "coef_")
        pictures = _matrix(P, "P")
        self._check_width(None, pictures)
        return np.asarray(pictures @ self.coef_.T)

    def predict(self, Q: Any, P: Any) -> FloatArray:
        """Score every picture for every query: an array of shape (queries, pictures)."""
        check_is_fitted(self, "coef_")
        queries, pictures = _matrix(Q, "Q"), _matrix(P, "P")
        self._check_width(queries, pictures)
        with single_threaded_blas():
            return np.asarray((queries @ self.coef_) @ pictures.T)

    def rank(
        self, Q: Any, P: Any, k: int | None = None, *, scores_at_once: int = 1 << 22
    ) -> IntArray:
        """List the pictures for each query, the best first; ties keep the order of the pictures.

        Returns an array of row numbers of P, of shape (queries, k); None lists all pictures.
        ``scores_at_once`` limits what is held in memory.
        """
        check_is_fitted(self, "coef_")
        queries, pictures = _matrix(Q, "Q"), _matrix(P, "P")
        most = pictures.shape[0] if k is None else min(check_whole("k", k), pictures.shape[0])
        out = np.empty((queries.shape[0], most), dtype=np.int64)
        for part in _blocks(queries.shape[0], pictures.shape[0], scores_at_once):
            scores = self.predict(queries[part], pictures)
            out[part] = np.argsort(-scores, axis=1, kind="stable")[:, :most]
        return out

    def score(self, Q: Any, P: Any, relevance: Any, *, scores_at_once: int = 1 << 22) -> float:
        """Return the mean of ``measure`` over the queries on which it is defined."""
        check_is_fitted(self, "coef_")
        return self._measured(*_checked(Q, P, relevance), scores_at_once)

    def _start(self, n_terms: int, n_features: int) -> None:
        self._generator = new_state(seed_of(self.random_state))
        self.coef_ = np.zeros((n_terms, n_features))
        self.history_, self.n_iter_ = [], 0

    def _pass(self, block: RetrievalBlock, held_out: tuple[Matrix, Matrix, Matrix] | None) -> None:
        """Make one pass and record it."""
        C = check_number("C", self.C, open_low=True)
        n_steps = check_whole("n_steps", self.n_steps)
        loss, moved = take_steps(self.coef_, block, C, n_steps, self._generator)
        steps = self.history_[-1]["steps"] if self.history_ else 0
        entry = {"steps": steps + n_steps, "loss": loss, "moved": moved / n_steps}
        if held_out is not None:
            entry[self.measure] = self._measured(*held_out)
        self.n_iter_ += 1
        record(self, entry)

    def _measured(
        self, Q: Matrix, P: Matrix, relevance: Matrix, scores_at_once: int = 1 << 22
    ) -> float:
        from leanrank.metrics import evaluate
        from leanrank.metrics.judge import mean_of

        values = []
        for part in _blocks(Q.shape[0], P.shape[0], scores_at_once):
            scores = self.predict(Q[part], P)
            result = evaluate(
                relevance[part].toarray().ravel(),
                scores.ravel(),
                group=np.full(len(scores), P.shape[0]),
                measures=self.measure,
                convention=self.convention,
            )
            values.append(result.per_query[self.measure])
        return mean_of(np.concatenate(values))

    def _check_width(self, Q: Matrix | None, P: Matrix) -> None:
        for name, matrix, width in (("Q", Q, 0), ("P", P, 1)):
            if matrix is not None and matrix.shape[1] != self.coef_.shape[width]:
                raise InputError(
                    f"{name} has {matrix.shape[1]} columns, but the model was learned from "
                    f"{self.coef_.shape[width]}: give the same ones"
                )


def _matrix(X: Any, name: str) -> Matrix:
    try:
        matrix = RankingData(X).X
        check_finite(matrix, matrix.shape[1])
    except InputError as error:
        raise InputError(f"{name}: {error}") from error
    return matrix


def _checked(Q: Any, P: Any, relevance: Any) -> tuple[Matrix, Matrix, Matrix]:
    """Check the three together; queries and relevance become CSR."""
    from scipy.sparse import csr_array

    queries, pictures = csr_array(_matrix(Q, "Q")), _matrix(P, "P")
    judged = csr_array(_matrix(relevance, "relevance"))
    if judged.shape != (queries.shape[0], pictures.shape[0]):
        raise InputError(
            f"relevance has shape {judged.shape} for {queries.shape[0]} queries and "
            f"{pictures.shape[0]} pictures: give queries × pictures"
        )
    if judged.data.min(initial=0.0) < 0.0:
        raise InputError("relevance holds a negative number: give 0 for pictures not relevant")
    judged = judged.copy()
    judged.eliminate_zeros()
    judged.sort_indices()
    return queries, pictures, judged


def _blocks(n_queries: int, n_pictures: int, scores_at_once: int) -> Iterator[slice]:
    size = max(1, scores_at_once // max(1, n_pictures))
    return (slice(at, min(at + size, n_queries)) for at in range(0, n_queries, size))


class Triplets(NamedTuple):
    """The index that triplets are drawn from, as kernels take it.

    Attributes
    ----------
    query_ptr, terms, values : array
        The text queries in CSR form.
    squared : array
        The squared norm of each.
    usable : array of int64
        The queries with terms, a relevant picture and another one.
    relevant_ptr, relevant : array
        The relevant pictures of each query, ascending, in CSR form.
    """

    query_ptr: AnyArray
    terms: AnyArray
    values: FloatArray
    squared: FloatArray
    usable: IntArray
    relevant_ptr: AnyArray
    relevant: AnyArray


class RetrievalBlock(NamedTuple):
    """Queries, pictures and relevance, prepared for steps."""

    triplets: Triplets
    pictures: PairRows
    n_pictures: int
    width: int


def make_retrieval_block(Q: Matrix, P: Matrix, relevance: Matrix) -> RetrievalBlock:
    """Prepare CSR queries, dense or CSR pictures, and CSR relevance without stored zeros."""
    values = Q.data.astype(np.float64)
    of_query = np.repeat(np.arange(Q.shape[0]), np.diff(Q.indptr))
    squared = np.bincount(of_query, values**2, minlength=Q.shape[0]).astype(np.float64)
    n_relevant = np.diff(relevance.indptr)
    usable = np.flatnonzero((squared > 0) & (n_relevant > 0) & (n_relevant < P.shape[0]))
    if len(usable) == 0:
        raise InputError(
            "no query has terms, a relevant picture and one that is not, so there is nothing to "
            "learn from"
        )
    triplets = Triplets(
        kernel_view(Q.indptr),
        kernel_view(Q.indices),
        values,
        squared,
        usable,
        kernel_view(relevance.indptr),
        kernel_view(relevance.indices),
    )
    return RetrievalBlock(triplets, as_rows(P), P.shape[0], pair_width(P))


def take_steps(
    W: FloatArray,
    block: RetrievalBlock,
    C: float,
    n_steps: int,
    generator: npt.NDArray[np.uint64],
) -> tuple[float, int]:
    """Take steps on W; return the mean loss before each step, and how many steps changed W."""
    buffers = make_buffers(block.width)
    queries = np.zeros(len(buffers.pairs), dtype=np.int64)
    total, moved = 0.0, 0
    terms = int(np.diff(block.triplets.query_ptr).max(initial=1))
    for some in step_counts(n_steps, len(queries), block.width * terms):
        lost, steps = _take_steps(
            *(W, block.triplets, block.pictures, block.n_pictures, C),
            *(some, generator, queries, buffers),
        )
        total, moved = total + float(lost), moved + int(steps)
    return total / n_steps, moved


@kernel
def _take_steps(W, triplets, pictures, n_pictures, C, n_steps, generator, queries, buffers):  # type: ignore[no-untyped-def]
    is_dense = pictures.dense.shape[0] > 0
    total, moved, done = 0.0, 0, 0
    while done < n_steps:
        n = min(len(queries), n_steps - done)
        fill_triplets(triplets, n_pictures, generator, queries, buffers.pairs, n)
        fill_differences(
            pictures, buffers.pairs, n, buffers.features, buffers.values, buffers.counts
        )
        for at in range(n):
            features, values, count = buffers.features, buffers.values, buffers.counts[at]
            begin, end = triplets.query_ptr[queries[at]], triplets.query_ptr[queries[at] + 1]
            lead = 0.0
            for k in range(begin, end):
                row = W[triplets.terms[k]]
                lead += triplets.values[k] * dot(is_dense, row, features, values, at, count)
            loss = max(0.0, 1.0 - lead)
            total += loss
            size = triplets.squared[queries[at]] * squared_norm(values, at, count)
            if loss > 0.0 and size > 0.0:
                step = min(C, loss / size)
                moved += 1
                for k in range(begin, end):
                    row = W[triplets.terms[k]]
                    factor = step * triplets.values[k]
                    add(is_dense, row, features, values, at, count, factor)
        done += n
    return total, moved


@kernel
def fill_triplets(triplets, n_pictures, generator, queries, pairs, n):  # type: ignore[no-untyped-def]
    """Draw a query, one of its relevant pictures and one of the others, all equally likely."""
    for at in range(n):
        q = triplets.usable[int(next_uniform(generator) * len(triplets.usable))]
        begin, end = triplets.relevant_ptr[q], triplets.relevant_ptr[q + 1]
        relevant = triplets.relevant[begin:end]
        queries[at] = q
        pairs[at, 0] = relevant[int(next_uniform(generator) * len(relevant))]
        place = int(next_uniform(generator) * (n_pictures - len(relevant)))
        # shift the place among the others by the relevant pictures before it
        low, high = 0, len(relevant)
        while low < high:
            middle = (low + high) // 2
            if relevant[middle] - middle <= place:
                low = middle + 1
            else:
                high = middle
        pairs[at, 1] = place + low
