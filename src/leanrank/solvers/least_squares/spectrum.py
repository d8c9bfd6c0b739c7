"""One factorisation that solves RankRLS for every strength of the penalty.

In a basis that makes the problem diagonal, the model of any alpha is one division: the score of a
document is its row of T times c / (s + alpha), where

==========  ====================  ===========================
..          primal                dual, kernels
==========  ====================  ===========================
values s    eigenvalues of AᵀA    eigenvalues of AAᵀ
rows B      A V                   U
outer T     X V                   k(document, centred ones) U
target c    Bᵀ b                  Bᵀ b
==========  ====================  ===========================

It also gives the exact *leave-query-out* scores without training again. Let e be the residual
b − Aw of the model trained on everything. The residual on query q of the model trained without q is
p_q = M_q⁻¹ e_q, where M_q is the block of I − A(AᵀA + alpha·I)⁻¹Aᵀ that belongs to q (the paper's G
scaled by alpha): Theorem 3.1 of Pahikkala et al. 2010.

Leaving a query out takes its loss out of the objective and changes nothing else: with
``normalize="none"`` that is training on the other queries; otherwise the normaliser of the
objective stays that of all queries.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.execution import Executor, query_ranges
from leanrank.solvers.least_squares.centred import Centred, reduced
from leanrank.solvers.least_squares.ridge import EPSILON, LARGEST_FACTORISATION, check_products


def factorise(centred: Centred, largest: int = LARGEST_FACTORISATION) -> Spectrum:
    """Factorise a linear problem: in the primal if features are fewer, else in the dual."""
    if min(centred.n_rows, centred.n_features) > largest:
        raise InputError(
            f"{centred.n_rows:,} documents × {centred.n_features:,} features are too many to "
            f"factorise: the smaller of the two may be {largest:,} at most, so fit "
            "single strengths with RankRLS, which then iterates"
        )
    if centred.n_features <= centred.n_rows:
        return Spectrum(centred, *_eigen_of_features(centred))
    return factorise_kernel(centred, centred.products())


def factorise_kernel(centred: Centred, outer: FloatArray) -> Spectrum:
    """Factorise in the dual.

    Parameters
    ----------
    centred : Centred
    outer : array of shape (documents, documents)
        The kernel of each document with each *centred and scaled* document.
    """
    from scipy.linalg import eigh

    gram = centred.project(centred.root[:, None] * outer)
    gram = 0.5 * (gram + gram.T)
    # The direction that centring removes from a query takes no part. An eigenvalue like the others
    # instead of 0 keeps the left-out systems well conditioned at a tiny alpha.
    usual = float(np.trace(gram)) / max(1, len(gram))
    ptr, unit = centred.query_ptr, centred.unit
    for begin, end in itertools.pairwise(ptr.tolist()):
        gram[begin:end, begin:end] += usual * np.outer(unit[begin:end], unit[begin:end])
    check_products(gram)
    values, vectors = eigh(gram)
    noise = len(values) * EPSILON * values.max(initial=0.0)
    values = np.where(values > noise, values, 0.0)
    return Spectrum(centred, values, vectors, vectors.T @ centred.target, outer @ vectors)


@dataclass(frozen=True)
class Spectrum:
    """A factorised problem; see the table of the module.

    Attributes
    ----------
    centred : Centred
    values, vectors : array
        The eigenvalues s, and V or U.
    target : array
        c.
    outer : array, optional
        T in the dual; in the primal it is made for one block of queries at a time.
    """

    centred: Centred
    values: FloatArray
    vectors: FloatArray
    target: FloatArray
    outer: FloatArray | None = None

    def block(self, r0: int, r1: int) -> tuple[FloatArray, FloatArray]:
        """Return B and T of the documents of the queries [r0, r1)."""
        rows = slice(int(self.centred.query_ptr[r0]), int(self.centred.query_ptr[r1]))
        if self.outer is not None:
            return self.vectors[rows], self.outer[rows]
        outer = np.asarray(self.centred.X[rows] @ self.vectors)
        return self.centred.rows(r0, r1) @ self.vectors, outer

    def weights(self, alpha: float) -> FloatArray:
        """Compute the weights of the features; at alpha 0, those of least norm."""
        if self.outer is not None:
            return self.centred.adjoint(self.dual_coefficients(alpha))
        return self._mixture(alpha)

    def dual_coefficients(self, alpha: float) -> FloatArray:
        """Compute, in the dual, the coefficients a of the centred documents, G ŷ in the paper."""
        return self.centred.project(self._mixture(alpha))

    def _mixture(self, alpha: float) -> FloatArray:
        """Compute V or U times c / (s + alpha)."""
        values = self.values
        if alpha > 0.0:
            return np.asarray(self.vectors @ (self.target / (values + alpha)))
        sure = values > 10 * len(values) * EPSILON * values.max(initial=0.0)
        return np.asarray(self.vectors[:, sure] @ (self.target[sure] / values[sure]))


def row_ranges(centred: Centred, width: int, numbers: int = 1 << 22) -> list[tuple[int, int]]:
    """Split the queries into ranges whose dense rows hold about ``numbers`` numbers."""
    return query_ranges(centred.query_ptr, max(1, numbers // max(1, width)))


def _eigen_of_features(centred: Centred) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return the eigenvalues and vectors of AᵀA, and the target in that basis."""
    from scipy.linalg import eigh, svd

    if centred.is_sparse:
        scaled = centred.X.multiply(centred.root[:, None]).tocsr()
        sums = _by_query(centred) @ scaled
        gram = (scaled.T @ scaled).toarray() - (sums.T @ sums).toarray()
        check_products(gram)
        values, vectors = eigh(gram)
        return np.maximum(values, 0.0), vectors, vectors.T @ centred.adjoint(centred.target)
    # A triangle from QR keeps the digits that forming AᵀA would lose.
    n = centred.n_features
    triangle = reduced(np.zeros((0, n + 1)), centred, row_ranges(centred, n + 1))
    check_products(triangle)
    left, singular, right_t = svd(triangle[:, :n], full_matrices=False)
    return singular**2, right_t.T, singular * (left.T @ triangle[:, n])


def _by_query(centred: Centred) -> Any:
    """Return the sparse matrix that sums each query's documents along the removed direction."""
    from scipy.sparse import csr_array

    return csr_array(
        (centred.unit, np.arange(centred.n_rows), centred.query_ptr),
        shape=(len(centred.query_ptr) - 1, centred.n_rows),
    )


def leave_query_out_scores(
    spectrum: Spectrum, alphas: FloatArray, executor: Executor, *, numbers: int = 1 << 22
) -> FloatArray:
    """Score each document by the model trained without its query.

    Parameters
    ----------
    spectrum : Spectrum
    alphas : array
        Positive.
    executor : Executor
    numbers : int
        Size of the rows that are one unit of work.

    Returns
    -------
    array of shape (n_alphas, documents)
        In grouped order.
    """
    alphas = np.asarray(alphas, dtype=np.float64)
    ranges = row_ranges(spectrum.centred, len(spectrum.values), numbers)
    parts = executor.map(lambda r: _scores_of_range(spectrum, alphas, r[0], r[1]), ranges)
    return np.concatenate([np.zeros((len(alphas), 0)), *parts], axis=1)


def _scores_of_range(spectrum: Spectrum, alphas: FloatArray, r0: int, r1: int) -> FloatArray:
    ptr = spectrum.centred.query_ptr
    first = int(ptr[r0])
    rows, outer = spectrum.block(r0, r1)
    target = spectrum.centred.target
    inverse = 1.0 / (spectrum.values + alphas[:, None])  # alphas × basis
    scores = np.zeros((len(alphas), len(rows)))
    only = spectrum.centred.only_query
    for q in range(r0, r1):
        mine = slice(int(ptr[q]) - first, int(ptr[q + 1]) - first)
        if mine.start == mine.stop or q == only:  # without the only query, the model is empty
            continue
        B, b = rows[mine], target[first + mine.start : first + mine.stop]
        if spectrum.outer is not None:
            held = _left_out_dual(B, spectrum.target, inverse, alphas)
        elif len(B) <= len(spectrum.values):
            held = _left_out_few(B, b, spectrum.target, inverse)
        else:
            held = _left_out_many(B, b, spectrum.target, inverse, spectrum.values, alphas)
        model = inverse * (spectrum.target - held @ B)
        scores[:, mine] = model @ outer[mine].T
    return scores


def _left_out_dual(
    B: FloatArray, target: FloatArray, inverse: FloatArray, alphas: FloatArray
) -> FloatArray:
    """Solve for p_q with M_q = B diag(alpha / (s + alpha)) Bᵀ: a sum without cancellation."""
    share = alphas[:, None] * inverse
    blocks = np.stack([(B * d) @ B.T for d in share])
    return _solve(blocks, (share * target) @ B.T)


def _left_out_few(
    B: FloatArray, b: FloatArray, target: FloatArray, inverse: FloatArray
) -> FloatArray:
    """Solve for p_q with a matrix as large as the query."""
    blocks = np.stack([np.eye(len(B)) - (B * d) @ B.T for d in inverse])
    return _solve(blocks, b - (inverse * target) @ B.T)


def _left_out_many(
    B: FloatArray,
    b: FloatArray,
    target: FloatArray,
    inverse: FloatArray,
    values: FloatArray,
    alphas: FloatArray,
) -> FloatArray:
    """Solve for p_q with a matrix as large as the basis, by Woodbury's identity."""
    residual = b - (inverse * target) @ B.T
    rest = np.diag(values) - B.T @ B  # AᵀA of the other queries
    blocks = rest + alphas[:, None, None] * np.eye(len(values))
    return residual + _solve(blocks, residual @ B) @ B.T


def _solve(blocks: FloatArray, right: FloatArray) -> FloatArray:
    """Solve one positive definite system per alpha; numerically singular ones by least squares."""
    try:
        solved: FloatArray = np.linalg.solve(blocks, right[..., None])[..., 0].astype(np.float64)
        return solved
    except np.linalg.LinAlgError:
        return np.stack(
            [
                np.linalg.lstsq(block, r, rcond=None)[0]
                for block, r in zip(blocks, right, strict=True)
            ]
        )
