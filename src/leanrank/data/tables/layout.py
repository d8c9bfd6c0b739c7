"""Which column of a table is what, and what leanrank notes beside its own."""

from __future__ import annotations

import json
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from leanrank._typing import AnyArray
from leanrank.data.formats import ROLES
from leanrank.data.grouping import check_optional
from leanrank.data.ranking_data import RankingData, feature_name, weights_per_row
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
    check_optional(optional)
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
    for role, name in [*given.items(), *(("a feature", name) for name in chosen)]:
        remedy = f"name the right one with `{role}=…`"
        if role in ("label", "qid"):
            remedy += f", or `{role}=None` if there is none"
        elif role == "a feature":
            remedy = f"say what it is, as in `doc_id={name!r}`, or list those to use with "
            remedy += "`features=…`"
        if name not in present:
            shown = ", ".join(map(repr, present[:20])) + ", ..." * (len(present) > 20)
            raise InputError(
                f"{where} has no column {name!r} for {role}: {remedy} (columns: {shown})"
            )
        kind = schema.field(name).type
        if role not in ("qid", "doc_id") and not is_number(kind):
            raise InputError(
                f"column {name!r} of {where} holds {kind}, not numbers: correct it, or {remedy}"
            )
    kinds = {schema.field(name).type for name in chosen}
    dtype = np.dtype(np.float32 if kinds == {pa.float32()} else np.float64)
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
    is_, empty = pa.types, pa.types.is_null(kind)  # that is reported where its first row is
    numeric = is_.is_floating(kind) or is_.is_integer(kind) or is_.is_decimal(kind)
    return bool(numeric or is_.is_boolean(kind) or empty)


def _id_type(query_ids: AnyArray) -> pa.DataType:
    if query_ids.dtype.kind in "iu":
        return pa.from_numpy_dtype(query_ids.dtype)
    return pa.infer_type(query_ids.tolist()) if len(query_ids) else pa.string()
