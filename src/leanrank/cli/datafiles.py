"""Reading data for a command: one place that knows how widths and streams are handled."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leanrank.cli.parameters import parse_parameters
from leanrank.errors import FileError, InputError, MissingDependencyError

if TYPE_CHECKING:
    from leanrank.data import RankingData
    from leanrank.model import Model


_TEXT_OPTIONS = {"dtype": "float64", "storage": "auto", "zero_based": False}
_COLUMNS = ("label", "qid", "doc_id", "weight", "query_weight", "offset", "features")


def read_data(
    path: str,
    format: str | None,
    given: Sequence[str] | None = None,
    *,
    n_features: int | None = None,
    model: Model | None = None,
    optional: Sequence[str] = (),
) -> RankingData:
    """Load a data set.

    Parameters
    ----------
    path, format : str
        As ``leanrank.data.load`` takes them.
    given : sequence of str
        ``name=value`` words of ``--read``.
    n_features : int, optional
        The width that text must get: its last features may be zero in every line.
    model : Model, optional
        What the data are read for: its width, and of a table only the features that it names.
    optional : sequence of str
        What the data may lack: label, qid.
    """
    from leanrank.data import load
    from leanrank.data.formats import format_name

    options = read_options(path, format, given)
    if format_name(path, format) == "letor":
        options["n_features"] = n_features or (model.n_features if model else None) or None
    elif model is not None and "features" not in options:
        options["among"] = model.feature_names
    options["optional"] = (*optional, *options.get("optional", ()))
    return load(path, format=format, **options)


def read_documents(
    data: str | None,
    clicks: str | None,
    models: Sequence[Model],
    format: str | None,
    read: Sequence[str] | None,
) -> tuple[Any, ...]:
    """Read what models are compared or checked on: documents with or without labels, or a log.

    A table with a category of texts is returned as a frame, its labels and its queries.
    """
    from leanrank.data import read_clicks
    from leanrank.data.formats import format_name
    from leanrank.model import Levels, Model

    named = [model.feature_names for model in models if model.feature_names is not None]
    names = tuple(dict.fromkeys(name for each in named for name in each))
    both = max(models, key=lambda model: model.n_features)
    if len(named) == len(models):
        both = Model(len(names), {}, names)
    if clicks is not None:
        features: Any = data
        if data is not None and format_name(data, format) == "letor":
            features = read_data(data, format, read, model=both, optional=["label"])
        return (read_clicks(clicks, features, propensity="propensity", keep_unshown=True),)
    if data is None:
        raise InputError("give DATA, or a log with --clicks")
    texts = {
        model.feature_names[at]
        for model in models
        for at, curve in model.curves.items()
        if model.feature_names and isinstance(curve, Levels) and curve.is_text
    }
    if not texts or not data.endswith((".parquet", ".csv")):
        return (read_data(data, format, read, model=both, optional=["label"]),)
    options, frame = read_options(data, format, read), read_table(data, texts)
    roles = [options.get(role) or role for role in ("label", "qid")]
    found = [frame[name].to_numpy() if name in frame.column_names else None for name in roles]
    return frame, *found


def read_table(path: str, texts: set[str]) -> Any:
    """Read a table with categories; CSV may take texts for numbers."""
    try:
        from pyarrow import csv, parquet, string
    except ImportError as error:
        raise MissingDependencyError("pyarrow", "frames", "a table with categories") from error
    try:
        if path.endswith(".parquet"):
            return parquet.read_table(path)
        kinds = csv.ConvertOptions(
            column_types=dict.fromkeys(texts, string()), strings_can_be_null=True
        )
        return csv.read_csv(path, convert_options=kinds)
    except (OSError, ValueError) as error:
        raise FileError(f"{path}: cannot be read as a table ({error})") from error


def read_options(
    path: str, format: str | None, given: Sequence[str] | None, **more: Any
) -> dict[str, Any]:
    """Return the ``name=value`` words of ``--read`` as options of ``leanrank.data.load``.

    ``more`` are options that the command knows beside those of the format, with their defaults.
    """
    from leanrank.data.formats import format_name

    kind = format_name(path, format)
    known = {**dict.fromkeys(_COLUMNS), **more}
    if kind == "letor":
        known = {"label": None, "qid": None, **_TEXT_OPTIONS, **more}
    elif kind == "csv":
        known["header"] = True
    what = "text" if kind == "letor" else "a table"
    options = parse_parameters(given or [], known, what, "--read")
    if not isinstance(options.get("header", True), bool):
        raise InputError(f"--read header={options['header']}: write true or false")
    if kind == "letor":
        absent = tuple(part for part in ("label", "qid") if options.pop(part, part) is None)
        return {**options, "optional": absent} if absent else options
    names = options.get("features")
    if names is not None:
        options["features"] = tuple(map(str, names if isinstance(names, list) else [names]))
    return options


def check_folder(path: str, json: bool = False, what: str = "", remedy: str = "a file") -> None:
    """Check that the result can be written, before any work.

    ``what`` names the result, which cannot share standard output with ``--json``.
    """
    if json and path == "-":
        raise InputError(f"--json and the {what} both go to standard output: give {remedy}")
    if path == "-":
        return
    folder = Path(path).parent
    if not folder.is_dir():
        raise FileError(f"{path}: the directory {folder} does not exist: create it first")
    if Path(path).is_dir():
        raise FileError(f"{path} is a directory: give the name of a file")
    if Path(path).exists() and not Path(path).is_file():
        # A finished file is renamed to its place, which would do away with the device or pipe.
        raise FileError(f"{path} is not a regular file: give another, or - for standard output")
    if not os.access(folder, os.W_OK):
        raise FileError(f"{path}: the directory {folder} is not writable: choose another")


def check_apart(written: Sequence[str | None], read: Sequence[str | None] = ()) -> None:
    """Check that no result takes the place of what it is made from, or of another result."""
    sources = {os.path.realpath(path) for path in read if path and path != "-"}
    results: set[str] = set()
    for path in written:
        if path in (None, "-", os.devnull):
            continue
        place = os.path.realpath(path)
        if place in sources:
            raise InputError(f"{path} is read, and would be overwritten: write to another file")
        if place in results:
            raise InputError(f"{path} is given for two results: write them to two files")
        results.add(place)


def shown(path: str, stream: str = "<stdin>") -> str:
    """Return the name of a file in a message."""
    return stream if path == "-" else path


def stdin_once(*paths: str | None) -> None:
    """Check that one stream is not read for two things."""
    if sum(path == "-" for path in paths) > 1:
        raise InputError("standard input (-) can be read only once: give a file for the other")
