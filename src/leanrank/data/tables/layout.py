"""Which column of a table is what: how it is decided, and what leanrank notes beside its own."""

from __future__ import annotations

import json
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import AnyArray
from leanrank.data.matrices import MOST_FEATURES
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.data.sources import quoted
from leanrank.data.tables.files import ROLES
from leanrank.data.tables.imports import pa
from leanrank.data.tables.places import THE_TABLE, Place, first_text
from leanrank.errors import InputError, first_repeated, suggest

INDICES, VALUES = "indices", "values"
"""The two list columns that hold a document's features when the data are sparse."""

FEATURES = "features"
"""The list column that holds them when the data are dense and on disk: see ``store``."""

_KEY = b"leanrank"
_VERSIONS = (1, 2)  # one column per feature, or lists; one column of them


def column_roles(given: Mapping[str, str | None], more: Sequence[str]) -> dict[str, str | None]:
    """Return the column of each role, by default those named label and qid.

    ``more`` are options that a message about an unknown one names as well.
    """
    for name in given:
        if name not in ROLES:
            raise InputError(f"a table is not read with {name!r}: {suggest(name, [*ROLES, *more])}")
    return {"label": "label", "qid": "qid", **given}


def identifier_columns(roles: Mapping[str, str | None]) -> list[str]:
    """Return the columns that hold the names of queries and documents, if the table has them."""
    return [str(roles.get(role) or role) for role in ("qid", "doc_id")]


@dataclass(frozen=True)
class Layout:
    """Which column of a table is what."""

    columns: dict[str, str]  # role → column
    features: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    n_features: int | None  # when in lists, and known
    sparse: bool
    dtype: np.dtype[Any]
    packed: bool = False  # whether one column of lists of equal length holds all features

    @property
    def needed(self) -> list[str]:
        """All columns that must be read."""
        return [*dict.fromkeys([*self.columns.values(), *self.features])]


def find_layout(
    schema: pa.Schema,
    roles: dict[str, str | None],
    features: Sequence[str] | None,
    where: Place = THE_TABLE,
    optional: Collection[str] = (),
    column: Callable[[str], pa.ChunkedArray] | None = None,
    among: Collection[str] | None = None,
) -> Layout:
    """Decide which column is what, from the caller's names and what leanrank wrote beside them.

    ``column`` returns the column of a name, for a message about one that should hold numbers. If
    any column is named as one of ``among``, no others are features.
    """
    notes = _notes(schema, where)
    present = set(schema.names)
    twice = first_repeated(schema.names)
    if twice is not None:
        raise InputError(f"{where} has two columns named {twice!r}: names must be distinct")
    given = {
        role: str(name)
        for role, name in roles.items()
        if name is not None and (str(name) in present or role not in optional)
    }
    reserved = notes.get("columns", ROLES)
    if isinstance(features, str):
        raise InputError(f"features={features!r} is one name: give a list of column names")
    taken = {*given.values(), *(features or ())}
    for role in reserved:
        if role not in ("label", "qid") and role in present - taken:
            given.setdefault(role, role)
    for role, name in given.items():
        if name not in present:
            raise InputError(
                f"{where} has no column {name!r} for {role}: {where.remedy(role)} (columns: "
                f"{_listed(schema.names)})"
            )
        if role not in ("qid", "doc_id") and not is_number(schema.field(name).type):
            found = _not_numbers(schema.field(name), where, column)
            raise InputError(f"{found}: correct it, or {where.remedy(role)}")
    apart = {*given.values(), *reserved, *_row_names(schema)}
    unused = [name for name in schema.names if name not in apart]
    unused = [name for name in unused if name in (among or ())] or unused
    names = None if notes.get("names") is None else tuple(notes["names"])
    if features is None and _holds_lists(schema):
        dtype = _common_dtype([schema.field(VALUES).type.value_type])
        return Layout(given, (INDICES, VALUES), names, notes.get("n_features"), True, dtype)
    if features is None and _holds_vectors(schema):
        kind = schema.field(FEATURES).type
        if names is not None and len(names) != kind.list_size:
            raise InputError(f"{where} has notes under 'leanrank' that are damaged: write it again")
        dtype = _common_dtype([kind.value_type])
        return Layout(given, (FEATURES,), names, kind.list_size, False, dtype, packed=True)
    chosen = tuple(unused if features is None else features)
    twice = first_repeated(chosen)
    if twice is not None:
        raise InputError(f"`features=…` names the column {twice!r} twice: name it once")
    if given.get("label") in chosen:
        raise InputError(f"column {given['label']!r} is the label: leave it out of `features=…`")
    for name in chosen:
        if name not in present:
            raise InputError(
                f"{where} has no feature column {name!r} (columns: {_listed(schema.names)})"
            )
        if not is_number(schema.field(name).type):
            found = _not_numbers(schema.field(name), where, column)
            raise InputError(f"{found}: correct it, {where.feature_remedy(name)}")
    named = features is not None or notes.get("named", True)
    types = [schema.field(name).type for name in chosen]
    return Layout(given, chosen, chosen if named else None, None, False, _common_dtype(types))


def table_schema(data: RankingData) -> pa.Schema:
    """Return the columns of a set as a table, with notes from which it can be rebuilt."""
    fields = [pa.field("label", pa.float64(), False)]
    fields.append(pa.field("qid", _id_type(data.query_ids), False))
    if data.doc_ids is not None:
        fields.append(pa.field("doc_id", pa.string(), False))
    fields += [pa.field(role, pa.float64(), False) for role in weights_per_row(data)]
    notes: dict[str, Any] = {"version": _VERSIONS[0], "columns": [field.name for field in fields]}
    number = pa.from_numpy_dtype(data.X.dtype)
    if data.is_sparse:
        fields.append(pa.field(INDICES, pa.list_(pa.field("item", pa.int32(), False)), False))
        fields.append(pa.field(VALUES, pa.list_(pa.field("item", number, False)), False))
        notes |= {"n_features": data.n_features, "names": data.feature_names}
    else:
        names = data.feature_names or tuple(map(feature_name, range(data.n_features)))
        clash = next((name for name in names if name in notes["columns"]), None)
        if clash is not None:
            raise InputError(
                f"a feature is named {clash!r}, which is the name of another column of the table: "
                "rename it in the source, or with data.replace(feature_names=...)"
            )
        fields += [pa.field(name, number, False) for name in names]
        notes["named"] = data.feature_names is not None
    return pa.schema(fields, metadata={_KEY: json.dumps(notes).encode()})


def weights_per_row(data: Any) -> dict[str, AnyArray]:
    """Return the weights and offsets that a set has, by the role of their column."""
    weights = data.query_weight
    if weights is not None:
        weights = np.repeat(weights, np.diff(data.query_ptr))
    each = {"weight": data.sample_weight, "query_weight": weights, "offset": data.offset}
    return {role: values for role, values in each.items() if values is not None}


def _not_numbers(
    field: pa.Field, where: Place, column: Callable[[str], pa.ChunkedArray] | None
) -> str:
    """Describe a column that does not hold numbers, by its first cell that is none if there is."""
    cell = None if column is None else first_text(column(field.name))
    if cell is None:
        return f"column {field.name!r} of {where} holds {field.type}, not numbers"
    row, text = cell
    shown = quoted(text.encode())
    return f"column {field.name!r} of {where} holds {shown} in {where.row(row)}, not a number"


def _notes(schema: pa.Schema, where: Place) -> dict[str, Any]:
    raw = (schema.metadata or {}).get(_KEY)
    if raw is None:
        return {}
    try:
        notes = json.loads(raw)
        version = notes["version"]
    except (ValueError, KeyError, TypeError):
        raise InputError(f"{where} has notes under 'leanrank' that cannot be read") from None
    if version not in _VERSIONS:
        raise InputError(
            f"{where} was written in table version {version!r} but this leanrank reads up to "
            f"version {_VERSIONS[-1]}: use a newer leanrank"
        )
    n_features, names = notes.get("n_features"), notes.get("names")
    columns = notes.get("columns", [])
    if not (
        isinstance(columns, list)
        and (n_features is None or (type(n_features) is int and 0 <= n_features <= MOST_FEATURES))
        and (names is None or (isinstance(names, list) and len(names) == n_features))
    ):
        raise InputError(f"{where} has notes under 'leanrank' that are damaged: write it again")
    # Columns may have been dropped or renamed since: a note is only as good as what it names.
    kept = [role for role in columns if role in ROLES and role in schema.names]
    return {**notes, "columns": kept}


def _row_names(schema: pa.Schema) -> set[str]:
    """Return the columns that are a data frame's row labels and not data."""
    index = (schema.pandas_metadata or {}).get("index_columns", ())
    return {name for name in index if isinstance(name, str)}


def _holds_lists(schema: pa.Schema) -> bool:
    return all(
        name in schema.names
        and (
            pa.types.is_list(schema.field(name).type)
            or pa.types.is_large_list(schema.field(name).type)
        )
        and is_number(schema.field(name).type.value_type)
        for name in (INDICES, VALUES)
    )


def _holds_vectors(schema: pa.Schema) -> bool:
    kind = schema.field(FEATURES).type if FEATURES in schema.names else pa.null()
    return pa.types.is_fixed_size_list(kind) and is_number(kind.value_type)


def is_number(kind: pa.DataType) -> bool:
    """Return whether a column of a type holds numbers."""
    return bool(
        pa.types.is_floating(kind)
        or pa.types.is_integer(kind)
        or pa.types.is_boolean(kind)
        or pa.types.is_decimal(kind)
        or pa.types.is_null(kind)  # an empty column: reported where its first row is
    )


def _common_dtype(types: Sequence[pa.DataType]) -> np.dtype[Any]:
    single = bool(types) and all(kind == pa.float32() for kind in types)
    return np.dtype(np.float32 if single else np.float64)


def _id_type(query_ids: AnyArray) -> pa.DataType:
    if query_ids.dtype.kind in "iu":
        return pa.from_numpy_dtype(query_ids.dtype)
    return pa.infer_type(query_ids.tolist()) if len(query_ids) else pa.string()


def _listed(names: Sequence[str], most: int = 20) -> str:
    shown = ", ".join(map(repr, names[:most]))
    return f"{shown} and {len(names) - most} more" if len(names) > most else shown
