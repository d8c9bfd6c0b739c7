"""Explanations: the score of a document as a sum over features, and tables of weights."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from leanrank._display import html_table, printable, printable_lines
from leanrank._numbers import is_whole
from leanrank._typing import AnyArray, FloatArray, IntArray
from leanrank.data.ranking_data import counted
from leanrank.errors import InputError

if TYPE_CHECKING:
    from leanrank.model.model import Model


@dataclass(frozen=True, eq=False, repr=False)
class Explanation:
    """The scores of documents, each as the sum of the contributions of features.

    Made by ``model.explain(X)`` or ``ranker.explain(X)``.

    Attributes
    ----------
    scores : array
        One per document, in the order of the rows.
    contributions : array of shape (documents, features used)
        A row adds up to the score, up to rounding.
    features : tuple of str
        The names of the columns; ``f1`` is the first feature if there are no names.
    query_ptr : array of int64
    rows : array of int64
        ``rows[query_ptr[q]:query_ptr[q + 1]]`` are the documents of query q.
    query_ids : array
    doc_ids : array or None

    Examples
    --------
    >>> from leanrank.model import Model
    >>> model = Model.from_coef([0.5, -2.0, 0.0], feature_names=["bm25", "spam", "age"])
    >>> explained = model.explain([[4.0, 1.0, 9.0], [1.0, 0.0, 3.0], [6.0, 0.5, 1.0]])
    >>> explained
    Explanation: 3 documents, 2 features
      rank  row  score   bm25    spam
         1    2  2.000  3.000  -1.000
         2    1  0.500  0.500   0.000
         3    0  0.000  2.000  -2.000
    >>> explained.why(2, 0)
    row 2 stands above row 0 by 2 (score 2 against 0)
      bm25  +1
      spam  +1
    >>> explained.why(1, 0).differences
    {'spam': 2.0, 'bm25': -1.5}
    """

    scores: FloatArray
    contributions: FloatArray
    features: tuple[str, ...]
    query_ptr: IntArray
    rows: IntArray
    query_ids: AnyArray
    doc_ids: AnyArray | None = None

    def __len__(self) -> int:
        """Return the number of documents."""
        return len(self.scores)

    def ranked(self, query: int = 0) -> IntArray:
        """Return the rows of the query at a position, best first; ties keep the row order."""
        inside = self.rows[self.query_ptr[query] : self.query_ptr[query + 1]]
        return np.asarray(inside[np.argsort(-self.scores[inside], kind="stable")])

    def why(self, above: int | str, below: int | str) -> Difference:
        """Return which features put one document above another, by row or by document id.

        Scores of different queries are not comparable, so both must belong to one query.
        """
        above, below = self._row(above), self._row(below)
        query = self._query_of(above)
        if query != self._query_of(below):
            raise InputError(
                f"rows {above} and {below} belong to different queries, whose scores do not "
                "compare: give two rows of one query"
            )
        change = self.contributions[above] - self.contributions[below]
        order = np.argsort(-np.abs(change), kind="stable")
        scores = float(self.scores[above]), float(self.scores[below])
        differences = {self.features[at]: float(change[at]) for at in order.tolist()}
        return Difference(self._label(above), self._label(below), scores, differences)

    @property
    def variance_shares(self) -> FloatArray:
        """The share of each feature in the variance of scores within queries.

        It is the covariance of the feature's contribution with the score, divided by the variance
        of the score. The shares add up to 1, and may be negative. All are zero if no query has two
        different scores.
        """
        parts = self.contributions[self.rows]
        if not parts.size:
            return np.zeros(parts.shape[1])
        sizes = np.diff(self.query_ptr)
        # a factor does not change shares, and this one prevents overflow and underflow of squares
        parts = np.ldexp(parts, -np.frexp(np.abs(parts).max())[1])
        means = np.add.reduceat(parts, self.query_ptr[:-1], axis=0) / sizes[:, None]
        inside = parts - np.repeat(means, sizes, axis=0)
        total = inside.sum(axis=1)
        variance = float(np.einsum("i,i->", total, total))
        if variance == 0:
            return np.zeros(parts.shape[1])
        return np.asarray(np.einsum("ij,i->j", inside, total) / variance)

    def __repr__(self) -> str:
        n_queries = len(self.query_ids)
        counts = [counted(len(self), "document"), counted(len(self.features), "feature")]
        if n_queries > 1:
            counts.insert(0, counted(n_queries, "query", "queries"))
        lines = ["Explanation: " + ", ".join(counts)]
        if len(self) == 0:
            return lines[0]
        return "\n".join([*lines, *self._table()])

    def _table(self, n_documents: int = 5, n_features: int = 8) -> list[str]:
        """Return the lines of a table of the best documents of the first query."""
        ranked = self.ranked(0)
        largest = np.abs(self.contributions[ranked]).max(axis=0, initial=0.0)
        columns = np.argsort(-largest, kind="stable")[:n_features]
        number = ".3f" if 0.01 < largest.max(initial=0.0) < 1e9 else ".3g"
        shown = ranked[:n_documents].tolist()
        doc = "row" if self.doc_ids is None else "document"
        cells = [["rank", doc, "score", *(printable(self.features[at]) for at in columns)]]
        for rank, row in enumerate(shown, 1):
            numbers = [self.scores[row], *self.contributions[row, columns]]
            name = str(row) if self.doc_ids is None else printable(self.doc_ids[row])
            cells.append([str(rank), name, *(format(value + 0.0, number) for value in numbers)])
        widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
        lines = [
            "  " + "  ".join(text.rjust(width) for text, width in zip(row, widths, strict=True))
            for row in cells
        ]
        more = (
            (len(ranked) - len(shown), "document"),
            (len(self.features) - len(columns), "feature"),
            (len(self.query_ids) - 1, "query", "queries"),
        )
        hidden = [counted(n, *words) for n, *words in more if n > 0]
        return [*lines, f"  … and {', '.join(hidden)} more"] if hidden else lines

    def _row(self, document: Any) -> int:
        if is_whole(document) and 0 <= document < len(self):
            return int(document)
        ids = [] if self.doc_ids is None else list(map(str, self.doc_ids))
        if not isinstance(document, str) or document not in ids:
            known = "" if self.doc_ids is None else "document ids, or "
            raise InputError(
                f"there is no row {document!r}: give two {known}of the {len(self)} rows, counted "
                "from 0"
            )
        if ids.count(document) > 1:
            raise InputError(f"the document {document!r} is in several rows: give the row")
        return ids.index(document)

    def _query_of(self, row: int) -> int:
        place = int(np.flatnonzero(self.rows == row)[0])
        return int(np.searchsorted(self.query_ptr, place, side="right")) - 1

    def _label(self, row: int) -> str:
        return f"row {row}" if self.doc_ids is None else str(self.doc_ids[row])


@dataclass(frozen=True, repr=False)
class Difference:
    """Why one document stands above another.

    Attributes
    ----------
    above, below : str
        The two documents.
    scores : (float, float)
    differences : dict
        The contribution of each feature to the first minus that to the second, largest magnitude
        first; they add up to the difference of the scores, up to rounding.
    """

    above: str
    below: str
    scores: tuple[float, float]
    differences: dict[str, float]

    def __repr__(self) -> str:
        high, low = self.scores
        verb = "above" if high > low else "below" if high < low else "beside"
        by = f" by {abs(high - low):.6g}" if high != low else ""
        lines = [
            f"{self.above} stands {verb} {self.below}{by} (score {high:.6g} against {low:.6g})"
        ]
        moving = [(printable(name), v) for name, v in self.differences.items() if v != 0]
        width = max((len(name) for name, _ in moving), default=0)
        lines += [f"  {name:<{width}}  {value:+.6g}" for name, value in moving]
        return printable_lines("\n".join(lines))


def weights_html(model: Model, title: str | None = None, note: str = "", most: int = 15) -> str:
    """Return an HTML table of the features with the largest weights; names are escaped.

    >>> from leanrank.model import Model
    >>> "&lt;b&gt;" in weights_html(Model.from_coef([1.0], feature_names=["<b>"]))
    True
    """
    shown = list(model.weights.items())[:most]
    used = f"{model.n_nonzero:,} of {model.n_features:,} features"
    if model.n_nonzero > len(shown):
        used += f", the {len(shown)} largest shown"
    rows = [(str(name), f"{value:+.4g}") for name, value in shown]
    text = ", ".join(filter(None, (used, note)))
    return html_table(title or type(model).__name__, text, ["feature", "weight"], rows)
