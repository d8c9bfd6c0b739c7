"""Which column of a table is what, and what leanrank notes beside its own."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import AnyArray
from leanrank.data.formats import ROLES
from leanrank.data.ranking_data import RankingData, feature_name
from leanrank.data.tables import pa
from leanrank.errors import InputError, first_repeated, suggest

VERSION = 1
_KEY = b"leanrank"


def column_roles(given: Mapping[str, str | None]) -> dict[str, Any]:
    """Return the column of each role, by default those named label and qid."""
    for name in given:
        if name not in ROLES:
            known = [*ROLES, "features", "optional", "n_jobs"]
            raise InputError(f"a table is not read with {name!r}: {suggest(name, known)}")
    return {"label": "label", "qid": "qid", **given}


@dataclass(frozen=True)
class Layout:
    """Which column of a table is what."""

    columns: dict[str, str]  # role → column
    features: tuple[str, ...]
    feature_names: tuple[str, ...] | None
    dtype: np.dtype[Any]

    @property
    def needed(self) -> list[str]:
        """All columns that must be read."""
        return [*dict.fromkeys([*self.columns.values(), *self.features])]

    @property
    def texts(self) -> list[str]:
        """The columns that hold the names of queries and documents."""
        return [self.columns[role] for role in ("qid", "doc_id") if role in self.columns]


def find_layout(
    schema: pa.Schema,
    roles: Mapping[str, str | None],
    features: Sequence[str] | None = None,
    where: str = "the table",
    optional: Collection[str] = (),
    among: Collection[str] | None = None,
) -> Layout:
    """Decide which column is what, from the caller's names and what leanrank wrote beside them.

    If any column is named as one of ``among``, no others are features.
    """
    notes, present = notes_of(schema, where), schema.names
    if (twice := first_repeated(present)) is not None:
        raise InputError(f"{where} has two columns named {twice!r}: names must be distinct")
    if isinstance(features, str):
        raise InputError(f"features={features!r} is one name: give a list of column names")
    given = {
        role: str(name)
        for role, name in roles.items()
        if name is not None and (str(name) in present or role not in optional)
    }
    reserved = notes.get("columns", ROLES)
    for role in set(reserved) - {"label", "qid", *given.values(), *(features or ())}:
        if role in present:
            given.setdefault(role, role)
    if features is None:
        index = (schema.pandas_metadata or {}).get("index_columns", ())  # row labels, not data
        apart = {*given.values(), *reserved, *(name for name in index if isinstance(name, str))}
        unused = [name for name in present if name not in apart]
        chosen = tuple(name for name in unused if name in (among or ())) or tuple(unused)
        own_names = notes.get("named", True)
    else:
        chosen, own_names = tuple(features), True
        if given.get("label") in chosen:
            label = given["label"]
            raise InputError(f"column {label!r} is the label: leave it out of `features=…`")
    none = {role: f", or `{role}=None` if there is none" for role in ("label", "qid")}
    needed = [(name, role, f"name the right one with `{role}=…`") for role, name in given.items()]
    needed += [
        (
            name,
            "a feature",
            f"say what it is, as in `doc_id={name!r}`, or list those to use with `features=…`",
        )
        for name in chosen
    ]
    for name, role, remedy in needed:
        if name not in present:
            shown = ", ".join(map(repr, present[:20])) + ", ..." * (len(present) > 20)
            raise InputError(
                f"{where} has no column {name!r} for {role}: {remedy}{none.get(role, '')} "
                f"(columns: {shown})"
            )
        kind = schema.field(name).type
        if role not in ("qid", "doc_id") and not is_number(kind):
            raise InputError(
                f"column {name!r} of {where} holds {kind}, not numbers: correct it, or "
                f"{remedy}{none.get(role, '')}"
            )
    dtype = _common_dtype([schema.field(name).type for name in chosen])
    return Layout(given, chosen, chosen if own_names else None, dtype)


def table_schema(data: RankingData) -> pa.Schema:
    """Return the columns of a set as a table, with notes from which it can be rebuilt."""
    if data.is_sparse:
        raise InputError(
            "a table has one column per feature and cannot hold sparse data: write LETOR text or "
            ".arrow instead, or make X dense"
        )
    fields = [pa.field("label", pa.float64(), False)]
    fields.append(pa.field("qid", _id_type(data.query_ids), False))
    if data.doc_ids is not None:
        fields.append(pa.field("doc_id", pa.string(), False))
    fields += [pa.field(role, pa.float64(), False) for role in weights_per_row(data)]
    roles = [field.name for field in fields]
    number = pa.from_numpy_dtype(data.X.dtype)
    names = data.feature_names or tuple(map(feature_name, range(data.n_features)))
    clash = next((name for name in names if name in roles), None)
    if clash is not None:
        raise InputError(
            f"a feature is named {clash!r}, which is the name of another column of the table: "
            "rename it in the source, or with data.replace(feature_names=...)"
        )
    fields += [pa.field(name, number, False) for name in names]
    notes = schema_notes(columns=roles, named=data.feature_names is not None)
    return pa.schema(fields, metadata=notes)


def schema_notes(**notes: Any) -> dict[bytes, bytes]:
    """Return what leanrank notes beside the columns of a table."""
    return {_KEY: json.dumps({"version": VERSION, **notes}).encode()}


def weights_per_row(data: Any) -> dict[str, AnyArray]:
    """Return the weights and offsets that a set has, by the role of their column."""
    weights = data.query_weight
    if weights is not None:
        weights = np.repeat(weights, np.diff(data.query_ptr))
    each = {"weight": data.sample_weight, "query_weight": weights, "offset": data.offset}
    return {role: values for role, values in each.items() if values is not None}


def notes_of(schema: pa.Schema, where: str) -> dict[str, Any]:
    """Return what leanrank noted beside the columns of a table."""
    raw = (schema.metadata or {}).get(_KEY)
    try:
        notes = {} if raw is None else dict(json.loads(raw))
        sound = raw is None or notes["version"] == VERSION
    except (KeyError, ValueError, TypeError):
        sound = False
    if not sound:
        raise InputError(
            f"{where} has notes under 'leanrank' that are damaged or of another version: write it "
            "again"
        )
    return notes


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
