"""Input checks of rankers: documents, frames, weights, preferences, validation data."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from datetime import date, timedelta
from numbers import Number
from typing import Any

import numpy as np
from scipy import sparse
from sklearn.utils.validation import check_array, validate_data

from leanrank._typing import AnyArray, BoolArray, FloatArray, IntArray, Matrix
from leanrank.data.dask import refuse_dask
from leanrank.data.grouping import Grouping, group_rows, one_per_row
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.data.scaling.spread import spread_of
from leanrank.data.streams import column_names
from leanrank.designs.ramp_columns import sample_step
from leanrank.errors import InputError, warn
from leanrank.execution import row_blocks
from leanrank.losses.base import Edges, Labels


def validated_matrix(estimator: Any, X: Any, *, reset: bool) -> Matrix:
    """Return a checked feature matrix; with ``reset``, set the estimator's features from it."""
    refuse_dask(X, type(estimator).__name__)
    rules: dict[str, Any] = {
        "accept_sparse": "csr",
        "dtype": [np.float64, np.float32],
        "order": "C",
        "ensure_all_finite": False,
    }
    plain = None if reset else _plain_columns(X, getattr(estimator, "feature_names_in_", None))
    if not reset and _is_as_checked(X, estimator):
        matrix = X
    elif plain is None:
        matrix = validate_data(estimator, X, reset=reset, **rules)
    else:
        matrix = check_array(plain, estimator=estimator, input_name="X", **rules)
    if not isinstance(matrix, np.ndarray) and not matrix.has_canonical_format:
        matrix = matrix.copy()  # entries that are stored twice are added up
        matrix.sum_duplicates()
    names = getattr(estimator, "feature_names_in_", None)
    allow_nan = getattr(estimator, "_takes_nan", False)
    check_finite(matrix, matrix.shape[1], names, allow_nan=allow_nan)
    return matrix


def refuse_beside_data(**given: Any) -> None:
    """Reject arguments that a RankingData already contains."""
    for name, value in given.items():
        if value is not None:
            raise InputError(
                f"a RankingData brings its own {name}: leave {name} out, or use data.replace"
            )


def _is_as_checked(X: Any, estimator: Any) -> bool:
    """Return whether scikit-learn's checks of X can be skipped: 40 % of the time of a request."""
    return (
        type(X) is np.ndarray
        and X.ndim == 2
        and X.dtype in (np.float64, np.float32)
        and X.flags.c_contiguous
        and len(X) > 0
        and X.shape[1] == estimator.n_features_in_
        and not hasattr(estimator, "feature_names_in_")
    )


def _plain_columns(X: Any, names: Any) -> AnyArray | None:
    """Return the values of a frame of numbers with these columns; None for another X.

    The checks of an array take a fifth of the time of those of a frame.
    """
    if names is None or not hasattr(X, "to_numpy") or list(X.columns) != names.tolist():
        return None
    plain = all(isinstance(kind, np.dtype) and kind.kind in "fiu" for kind in X.dtypes)
    return X.to_numpy() if plain else None


def checked_features(estimator: Any, X: Any, *, reset: bool = False) -> Matrix:
    """Return checked features; with ``reset``, set the estimator's features from X."""
    if not isinstance(X, RankingData):
        return validated_matrix(estimator, X, reset=reset)
    if reset:
        take_names(estimator, X)
    check_width(estimator, X.n_features)
    own = names_of(estimator)
    if own is not None and X.feature_names is not None and own != X.feature_names:
        at = next(j for j, column in enumerate(own) if column != X.feature_names[j])
        raise InputError(
            f"column {at} of X is {X.feature_names[at]!r}, but {type(estimator).__name__} was "
            f"fitted with {own[at]!r} there: give the same columns in the same order"
        )
    check_finite(X.X, X.n_features, X.feature_names, allow_nan=estimator._takes_nan)
    return X.X


def check_width(estimator: Any, n_features: int) -> None:
    """Reject a number of features other than in ``fit``."""
    if n_features != estimator.n_features_in_:
        raise InputError(
            f"X has {n_features} features, but {type(estimator).__name__} is expecting "
            f"{estimator.n_features_in_} features as input"
        )


def take_names(estimator: Any, data: Any) -> None:
    """Set the estimator's number and names of features."""
    estimator.n_features_in_ = data.n_features
    if data.feature_names is not None:
        estimator.feature_names_in_ = np.array(data.feature_names, dtype=object)
    elif hasattr(estimator, "feature_names_in_"):
        del estimator.feature_names_in_


def names_of(estimator: Any) -> tuple[str, ...] | None:
    """Return the names of the features; None if they have none."""
    names = getattr(estimator, "feature_names_in_", None)
    return None if names is None else tuple(map(str, names))


def check_finite(X: Matrix, n_features: int, names: Any = None, *, allow_nan: bool = False) -> None:
    """Reject NaN, unless it is allowed, and infinity; the message names the column."""
    values = X if isinstance(X, np.ndarray) else X.data
    with np.errstate(over="ignore", invalid="ignore"):
        total = values.sum(dtype=np.float64)
    if np.isfinite(total):
        return
    flat = values.reshape(-1)
    for low, high in row_blocks(len(flat), 1 << 20):
        part = flat[low:high]
        wrong = np.flatnonzero(np.isinf(part) if allow_nan else ~np.isfinite(part))
        if len(wrong):
            at = low + int(wrong[0])
            column = at % n_features if isinstance(X, np.ndarray) else int(X.indices[at])
            named = f"feature {feature_name(column, names)!r} (column {column})"
            if np.isinf(flat[at]):
                raise InputError(f"Input X contains infinity in {named}: correct or drop it first")
            raise InputError(
                f"Input X contains NaN in {named}: fill in or drop missing values first, or use "
                "curves or RankBoost, which take them"
            )


def check_labels(data: RankingData, name: str) -> None:
    """Reject missing labels."""
    missing = np.flatnonzero(np.isnan(data.y))
    if len(missing):
        row = int(missing[0] if data.order is None else data.order[missing[0]])
        raise InputError(
            f"the label of document {row} is missing (y contains NaN): {name} needs every label"
        )


def warn_of_units(data: Any, *, by_query: bool = False, slow: bool = False) -> None:
    """Warn if features differ so much in spread that a model depends on their units.

    With ``by_query``, as for a stream, the warning proposes a scaler that needs no other part of
    the data. ``slow`` adds that the solver takes far longer on such features.
    """
    found = spread_of(data)
    if found is not None:
        scaler = "QueryStandardScaler or --scale query-standard"
        if not by_query:
            scaler = "GlobalStandardScaler or --scale standard"
        more = ", and this solver needs far more iterations" if slow else ""
        warn(
            f"{found}, so weights depend on the units of features{more}: standardise the features "
            f"first, with {scaler}"
        )


def warn_without_qid(method: str, n_documents: int, though: str = "") -> None:
    """Warn, once per line of code, that all documents count as one query."""
    warn(
        f"{method} got no qid, so all {n_documents:,} documents count as one query{though}: give "
        "qid (if they are one, the same value for all); scikit-learn's searches pass it on after "
        "sklearn.set_config(enable_metadata_routing=True)",
        once=f"{method} without qid",
    )


def grouped_gains(values: Any, data: RankingData, *, grouped: bool) -> FloatArray | None:
    """Return checked gain weights in grouped order; ``grouped``: they are in it already."""
    grouping = Grouping(data.query_ids, data.query_ptr, None if grouped else data.order)
    return one_per_row(values, "gain_weight", grouping, len(data), low=0.0)


def grouped_edges(preferences: Any, data: RankingData, *, grouped: bool) -> Edges:
    """Return checked preferences between rows, renumbered in grouped order.

    Parameters
    ----------
    preferences : (i, j) or (i, j, weight)
        Row i should rank above row j of the same query. A weight of 2 counts twice.
    data : RankingData
    grouped : bool
        Whether the numbers are rows of ``data``, and not of the X from which it was grouped.
    """
    rows: list[Any] = [np.zeros(0)] * 2
    if isinstance(preferences, (tuple, list)) and len(preferences) in (2, 3):
        rows = [np.asarray(numbers) for numbers in preferences[:2]]
    winner, loser = rows
    kinds = {winner.dtype.kind, loser.dtype.kind}
    if winner.ndim != 1 or winner.shape != loser.shape or kinds - set("iu"):
        raise InputError(
            "preferences must be a tuple (i, j) or (i, j, weight) with equally many row numbers"
        )
    count, given = len(winner), preferences[2] if len(preferences) == 3 else None
    found = one_per_row(given, "weight in preferences", group_rows(None, count), count, low=0.0)
    weight = np.ones(count) if found is None else found
    if not weight.any():
        raise InputError("preferences is empty: give at least one pair of a weight above 0")
    n_documents = len(data)
    outside = (np.minimum(winner, loser) < 0) | (np.maximum(winner, loser) >= n_documents)
    _reject_pairs(outside, winner, loser, f"documents are numbered from 0 to {n_documents - 1}")
    position = np.arange(n_documents)
    if not grouped and data.order is not None:
        position[data.order] = np.arange(n_documents)
    i, j = position[winner], position[loser]
    query_of = np.repeat(np.arange(data.n_queries), np.diff(data.query_ptr))
    wrong = (i == j) | (query_of[i] != query_of[j])
    _reject_pairs(wrong, winner, loser, "a preference is between two documents of one query")
    return Edges(i, j, weight)


def _reject_pairs(wrong: BoolArray, winner: IntArray, loser: IntArray, why: str) -> None:
    if wrong.any():
        at = int(np.flatnonzero(wrong)[0])
        raise InputError(f"preference {at} puts document {winner[at]} above {loser[at]}: {why}")


def count_informative(data: RankingData, labels: Labels) -> int:
    """Count the queries with documents at two levels or, with preferences, with at least one."""
    edges = labels.edges
    if edges is None:
        return int(data.informative.sum())
    counted = edges.winner[edges.weight > 0]
    return len(np.unique(np.searchsorted(labels.query_ptr, counted, side="right")))


def as_data(given: Any, name: str = "validation") -> RankingData | None:
    """Return a RankingData, a data frame or a tuple (X, y, qid) as a RankingData; None for None.

    >>> as_data(([[1.0], [2.0]], [0, 1], None)).n_queries
    1
    """
    if given is None or isinstance(given, RankingData):
        return given
    if hasattr(given, "__arrow_c_stream__"):
        from leanrank.data.tables.frames import frame_data

        return frame_data(given)
    if not isinstance(given, (tuple, list)) or len(given) != 3:
        raise InputError(f"{name} must be a RankingData, a data frame or a tuple (X, y, qid)")
    X, y, qid = given
    return RankingData(X, y, qid, feature_names=column_names(X))


def held_out_data(ranker: Any, validation: Any) -> RankingData | None:
    """Return validation data, checked to have the ranker's features.

    Examples
    --------
    >>> from leanrank.rankers import MinBatSRank
    >>> ranker = MinBatSRank().fit([[1.0, 0.0], [0.0, 1.0]], [1, 0])
    >>> held_out_data(ranker, ([[1.0]], [1], None))
    Traceback (most recent call last):
    leanrank.errors.InputError: validation: X has 1 features, but MinBatSRank is expecting 2 ...
    """
    try:
        data = as_data(validation)
        if data is not None:
            checked_features(ranker, data)
        return data
    except ValueError as error:
        text = str(error)
        prefix = "" if text.startswith("validation ") else "validation: "
        raise InputError(f"{prefix}{text}") from error


RARE = 10
"""Number of documents below which levels of a category share one value."""

MOST_LEVELS = 10_000
"""Largest number of levels of a category with separate values; the most frequent ones."""

Groups = tuple[tuple[Any, ...], ...]
"""The levels of a category; several in one group share a value."""


def find_levels(values: AnyArray, present: AnyArray) -> tuple[FloatArray, Groups]:
    """Return the code of each value, NaN for those that are not ``present``, and the levels.

    >>> codes, groups = find_levels(np.array(["a"] * 12 + ["b", "c"]), np.ones(14, bool))
    >>> groups, codes[-3:].tolist()
    ((('a',), ('b', 'c')), [0.0, 1.0, 1.0])
    """
    names, inverse, counts = np.unique(values[present], return_inverse=True, return_counts=True)
    frequent = np.zeros(len(names), dtype=bool)
    frequent[np.argsort(-counts, kind="stable")[:MOST_LEVELS]] = True
    frequent &= counts >= min(RARE, int(counts.max(initial=0)))
    code = np.cumsum(frequent) - 1.0
    rare = tuple(names[~frequent].tolist())
    code[~frequent] = frequent.sum()
    codes = np.full(len(values), np.nan)
    codes[present] = code[inverse.ravel()]
    groups = tuple((name,) for name in names[frequent].tolist())
    return codes, (*groups, rare) if rare else groups


def beside_features(X: Any, **given: Any) -> list[str]:
    """Return the columns of a frame that have the name of one of the other arguments.

    ``fit(frame, frame["grade"], qid=frame["query"])`` then learns from the other columns.
    """
    found = []
    columns = list(getattr(X, "columns", ()))
    for what, values in given.items():
        name = getattr(values, "name", None)
        if not isinstance(name, str) or name not in columns or name in found:
            continue
        found.append(name)
        if len(values) != len(X) or not np.array_equal(np.asarray(X[name]), np.asarray(values)):
            warn(f"column {name!r} is left out of the features: {what} has the same name")
    return found


def without_columns(X: Any, names: Sequence[str]) -> Any:
    """Return a frame of pandas or polars without some columns; another X is returned as it is."""
    columns = list(getattr(X, "columns", ()))
    if not any(name in columns for name in names):
        return X
    return X[[name for name in columns if name not in names]]


def warn_of_labels(data: RankingData, names: Sequence[str] | None) -> None:
    """Warn if a feature equals the label."""
    if not isinstance(data.X, np.ndarray) or data.informative.sum() == 0:
        return
    step = sample_step(len(data.y))
    same = (data.X[::step] == data.y[::step, None]).all(axis=0)
    for at in np.flatnonzero(same).tolist():
        if (data.X[:, at] == data.y).all():
            warn(f"feature {feature_name(at, names)!r} is the label itself: leave it out of X")


def read_frame(X: Any) -> tuple[FloatArray, list[str], dict[int, Groups]] | None:
    """Return the matrix, the names and the levels of a frame with text columns, which are coded.

    None for any other X, which scikit-learn's checks read.
    """
    if not (hasattr(X, "__arrow_c_stream__") or hasattr(X, "__dataframe__")):
        return None
    try:
        import narwhals.stable.v1 as nw
    except ModuleNotFoundError:
        return None
    frame = nw.from_native(X, eager_only=True, pass_through=True)
    if not isinstance(frame, nw.DataFrame):
        return None
    columns = dict(zip(frame.columns, frame.iter_columns(), strict=True))
    texts = [name for name, column in columns.items() if _is_text(column, nw)]
    for name, column in columns.items():
        if _holds_dates(column, nw):
            raise InputError(
                f"column {name!r} holds dates: give a number instead, such as the age in days"
            )
    if not texts:
        return None
    matrix = np.empty((len(frame), len(columns)))
    levels: dict[int, Groups] = {}
    for at, (name, column) in enumerate(columns.items()):
        if name in texts:
            values = column.cast(nw.String).to_numpy()
            present = ~column.is_null().to_numpy().astype(bool)
            as_text = np.array([str(v) for v in values], dtype=object)
            matrix[:, at], levels[at] = find_levels(as_text.astype(str), present)
        else:
            try:
                matrix[:, at] = column.cast(nw.Float64).to_numpy()
            except Exception as error:
                raise InputError(
                    f"column {name!r} cannot be read as numbers or texts ({type(error).__name__})"
                ) from error
    return matrix, [str(name) for name in columns], levels


def _is_text(column: Any, nw: Any) -> bool:
    kind = column.dtype
    if kind == nw.Object:  # Python objects, such as the decimals of a database
        return not all(isinstance(v, (Number, np.bool_)) for v in column.drop_nulls())
    return kind in (nw.String, nw.Categorical) or isinstance(kind, nw.Enum)


def _holds_dates(column: Any, nw: Any) -> bool:
    if column.dtype == nw.Object:
        return any(isinstance(v, (date, timedelta, np.datetime64)) for v in column.drop_nulls())
    return isinstance(column.dtype, (nw.Datetime, nw.Date, nw.Duration))


def coded_columns(
    X: Matrix, columns: Sequence[int], known: Mapping[int, Groups]
) -> tuple[FloatArray, dict[int, Groups]]:
    """Return X with some columns replaced by codes, and the levels of all coded columns."""
    if sparse.issparse(X):
        raise InputError("LeanRanker: categories need a dense X: give X.toarray()")
    X, levels = np.array(X, dtype=np.float64), dict(known)
    for at in set(columns) - set(known):
        X[:, at], levels[at] = find_levels(X[:, at].copy(), ~np.isnan(X[:, at]))
    return X, levels
