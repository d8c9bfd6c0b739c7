"""Files of a command: checks before the work, reading data, and files of scores."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from leanrank._files import atomic_write, check_name
from leanrank.cli.options import parse_parameters
from leanrank.errors import FileError, InputError, ParseError

if TYPE_CHECKING:
    from leanrank._typing import FloatArray
    from leanrank.data import RankingData
    from leanrank.model import Model

_TEXT_OPTIONS = {"label": None, "qid": None, "dtype": "float64", "storage": "auto"}
_COLUMNS = ("label", "qid", "doc_id", "weight", "query_weight", "offset", "features")


def check_files(
    read: Sequence[str | None],
    *written: str | None,
    page: str | None = None,
    json: bool = False,
) -> None:
    """Check before any work that results can be written and that no file is used twice.

    ``page`` is a result that needs the packages of a report. With ``json``, no other result may go
    to standard output.
    """
    if sum(path == "-" for path in read) > 1:
        raise InputError("standard input (-) can be read only once: give a file for the other")
    sources = {os.path.realpath(path) for path in read if path and path != "-"}
    results: set[str] = set()
    for path in filter(None, (*written, page)):
        if path == "-" and json:
            raise InputError("--json and a result both go to standard output: give it a file")
        if path in ("-", os.devnull):
            continue
        check_name(path)
        folder, real = Path(path).parent, os.path.realpath(path)
        if not folder.is_dir():
            raise FileError(f"{path}: the directory {folder} does not exist: create it first")
        if Path(path).is_dir():
            raise FileError(f"{path} is a directory: give the name of a file")
        if not os.access(folder, os.W_OK):
            raise FileError(f"{path}: the directory {folder} is not writable: choose another")
        if real in sources:
            raise InputError(f"{path} is read, and would be overwritten: write to another file")
        if real in results:
            raise InputError(f"{path} is given for two results: write them to two files")
        results.add(real)
    if page is not None:
        from leanrank.report.page import chart_library

        chart_library()


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
        ``NAME=VALUE`` words of ``--read``.
    n_features : int, optional
        The number of features of a text, whose last ones may be zero in every line.
    model : Model, optional
        The model that reads the data. Texts get its number of features; of a table, only features
        that it names are read.
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
    *,
    typed: bool = False,
) -> tuple[Any, ...]:
    """Return the documents, or the click log, on which models are compared or checked.

    A table in which a model reads a category of texts is returned as a frame, its labels and its
    queries; with ``typed``, every table is.
    """
    from leanrank.data import read_clicks
    from leanrank.data.formats import format_name
    from leanrank.model import Model

    named = [model.feature_names for model in models if model.feature_names is not None]
    names = tuple(dict.fromkeys(name for each in named for name in each))
    both = max(models, key=lambda model: model.n_features)
    if len(named) == len(models):
        both = Model(len(names), {}, names)
    if clicks is not None:
        features: Any = data
        if data is not None and format_name(data, format) == "letor":
            features = read_data(data, format, read, model=both, optional=["label"])
        elif format is not None or read:
            raise InputError(
                "with --clicks a table of features has the columns query and document, and its "
                "suffix names its format: leave --format and --read out"
            )
        return (read_clicks(clicks, features, propensity="propensity", keep_unshown=True),)
    if data is None:
        raise InputError("give DATA, or a log with --clicks")
    texts = {name for model in models for name in _text_features(model)}
    if not (texts or typed) or not data.endswith((".parquet", ".csv")):
        return (read_data(data, format, read, model=both, optional=["label"]),)
    from leanrank.data.tables.files import read_table

    options, frame = (
        read_options(data, format, read),
        read_table(data, None, texts, categories=True),
    )
    roles = [options.get(role) or role for role in ("label", "qid")]
    found = [frame[name].to_numpy() if name in frame.column_names else None for name in roles]
    return frame, *found


def _text_features(model: Model) -> set[str]:
    """Return the names of the categories of texts that a model knows."""
    from leanrank.model import Levels

    names = model.feature_names or ()
    tables = {at: one for at, one in model.curves.items() if names and isinstance(one, Levels)}
    return {names[at] for at, one in tables.items() if one.is_text}


def read_options(
    path: str, format: str | None, given: Sequence[str] | None, **more: Any
) -> dict[str, Any]:
    """Return the ``NAME=VALUE`` words of ``--read`` as options of ``leanrank.data.load``.

    ``more`` are further options of the command with their defaults.
    """
    from leanrank.data.formats import format_name

    text = format_name(path, format) == "letor"
    known = {**_TEXT_OPTIONS, "zero_based": False} if text else dict.fromkeys(_COLUMNS)
    kind = "text" if text else "a table"
    options = parse_parameters(given or [], {**known, **more}, kind, "--read")
    if text:
        absent = tuple(part for part in ("label", "qid") if options.pop(part, part) is None)
        return {**options, "optional": absent} if absent else options
    names = options.get("features")
    if names is not None:
        options["features"] = tuple(map(str, names if isinstance(names, list) else [names]))
    return options


def write_scores(scores: FloatArray, path: str) -> None:
    """Write one score per line so that reading them gives the same bits."""
    with atomic_write(path) as stream:
        stream.writelines(f"{score!r}\n" for score in scores.tolist())


def read_scores(path: str, n_documents: int, described: str) -> FloatArray:
    """Read one score per document; ``"-"`` is standard input, compression is recognised.

    ``described`` names the data that the scores are for. Blank lines at the end are tolerated.
    """
    import numpy as np

    from leanrank.data.ranking_data import counted
    from leanrank.data.sources import decimal, open_bytes, quoted, shown_name

    name = shown_name(path)
    with open_bytes(path) as stream:
        lines = [line.strip(b" \t\r") for line in stream.read().split(b"\n")]
    while lines and not lines[-1]:
        lines.pop()
    scores = np.array([decimal(line.decode("latin-1")) for line in lines], dtype=np.float64)
    wrong = np.flatnonzero(~np.isfinite(scores))
    if len(wrong):
        problem = f"{quoted(lines[wrong[0]], 30)} is not a score: one finite number per line"
        raise ParseError(f"{problem} is expected", path=name, line=int(wrong[0]) + 1)
    if len(scores) != n_documents:
        raise InputError(
            f"{name} has {counted(len(scores), 'score')} but {described} has "
            f"{counted(n_documents, 'document')}: give one score per line, in the documents' order"
        )
    return scores
