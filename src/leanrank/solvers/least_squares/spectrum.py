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
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from leanrank._typing import FloatArray
from leanrank.errors import InputError
from leanrank.execution import query_ranges
from leanrank.solvers.least_squares.centred import Centred
from leanrank.solvers.least_squares.ridge import (
    LARGEST_FACTORISATION,
    check_products,
    solve_by_spectrum,
)


def factorise(centred: Centred, largest: int = LARGEST_FACTORISATION) -> Spectrum:
    """Factorise a linear problem: in the primal if features are fewer, else in the dual."""
    if min(centred.n_rows, centred.n_features) > largest:
        raise InputError(
            f"{centred.n_rows:,} documents × {centred.n_features:,} features are too many to "
            f"factorise: the smaller of the two may be {largest:,} at most, so fit "
            "single strengths with RankRLS, which then iterates"
        )
    if centred.n_features <= centred.n_rows:
        return PrimalSpectrum(centred, *_eigen_of_features(centred))
    return factorise_kernel(centred, centred.products())


def factorise_kernel(centred: Centred, outer: FloatArray) -> DualSpectrum:
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
    noise = len(values) * np.finfo(np.float64).eps * values.max(initial=0.0)
    values = np.where(values > noise, values, 0.0)
    return DualSpectrum(centred, values, vectors, vectors.T @ centred.target, outer @ vectors)


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
    """

    centred: Centred
    values: FloatArray
    vectors: FloatArray
    target: FloatArray
    is_dual: ClassVar[bool]

    def block(self, r0: int, r1: int) -> tuple[FloatArray, FloatArray]:
        """Return B and T of the documents of the queries [r0, r1)."""
        raise AssertionError(f"{type(self).__name__} must define block")

    def weights(self, alpha: float) -> FloatArray:
        """Compute the weights of the features; at alpha 0, those of least norm."""
        raise AssertionError(f"{type(self).__name__} must define weights")

    def _mixture(self, alpha: float) -> FloatArray:
        """Compute V or U times c / (s + alpha)."""
        return solve_by_spectrum(self.values, self.vectors, self.target, alpha)


@dataclass(frozen=True)
class PrimalSpectrum(Spectrum):
    """Fewer features than documents: B and T are made for one block of queries at a time."""

    is_dual: ClassVar[bool] = False

    def block(self, r0: int, r1: int) -> tuple[FloatArray, FloatArray]:
        ptr = self.centred.query_ptr
        outer = np.asarray(self.centred.X[int(ptr[r0]) : int(ptr[r1])] @ self.vectors)
        return self.centred.rows(r0, r1) @ self.vectors, outer

    def weights(self, alpha: float) -> FloatArray:
        return self._mixture(alpha)


@dataclass(frozen=True)
class DualSpectrum(Spectrum):
    """Fewer documents than features, or a kernel; ``outer`` is T."""

    outer: FloatArray
    is_dual: ClassVar[bool] = True

    def block(self, r0: int, r1: int) -> tuple[FloatArray, FloatArray]:
        rows = slice(int(self.centred.query_ptr[r0]), int(self.centred.query_ptr[r1]))
        return self.vectors[rows], self.outer[rows]

    def dual_coefficients(self, alpha: float) -> FloatArray:
        """Compute the coefficients a of the centred documents, G ŷ in the paper."""
        return self.centred.project(self._mixture(alpha))

    def weights(self, alpha: float) -> FloatArray:
        return self.centred.adjoint(self.dual_coefficients(alpha))


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
    triangle = _triangle(centred)
    check_products(triangle)
    n = centred.n_features
    left, singular, right_t = svd(triangle[:, :n], full_matrices=False)
    return singular**2, right_t.T, singular * (left.T @ triangle[:, n])


def _triangle(centred: Centred) -> FloatArray:
    """Reduce [A, b] to a triangle with the same products, block after block of rows."""
    from scipy.linalg import qr

    n = centred.n_features
    triangle = np.zeros((0, n + 1))
    for r0, r1 in row_ranges(centred, n + 1):
        rows = slice(int(centred.query_ptr[r0]), int(centred.query_ptr[r1]))
        block = np.column_stack([centred.rows(r0, r1), centred.target[rows]])
        stacked = np.vstack([triangle, block])
        triangle = qr(stacked, mode="r", overwrite_a=True, check_finite=False)[0][: n + 1]
    return triangle


def _by_query(centred: Centred) -> Any:
    """Return the sparse matrix that sums each query's documents along the removed direction."""
    from scipy.sparse import csr_array

    return csr_array(
        (centred.unit, np.arange(centred.n_rows), centred.query_ptr),
        shape=(len(centred.query_ptr) - 1, centred.n_rows),
    )
