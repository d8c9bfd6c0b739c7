from __future__ import annotations

import inspect
import pickle

import pytest

from leanrank import errors


def _examples() -> list[Exception]:
    return [
        errors.LeanrankError("plain"),
        errors.InputError("alpha=-1 must be positive"),
        errors.ParseError("label is not a number", path="train.txt", line=3, column=7),
        errors.ParseError("empty file", path="<stdin>"),
        errors.NoLevelsError(),
        errors.ModelError("unknown schema version 9"),
        errors.ClusterError("no worker"),
        errors.FileError("m.json: cannot write here"),
        errors.MissingDependencyError("polars", "frames", "reading data frames"),
        errors.CacheWarning("compiled code is not kept"),
        errors.DataWarning("3 queries carry no information"),
    ]


@pytest.mark.parametrize("error", _examples(), ids=lambda e: type(e).__name__)
def test_survives_pickling(error: Exception) -> None:
    back = pickle.loads(pickle.dumps(error))
    assert type(back) is type(error)
    assert str(back) == str(error)
    assert vars(back) == vars(error)


def test_examples_cover_every_public_class() -> None:
    covered = {type(e) for e in _examples()} | {errors.LeanrankWarning}
    assert covered == {getattr(errors, name) for name in errors.__all__}


def test_every_error_is_also_what_python_users_catch() -> None:
    for name in errors.__all__:
        kind = getattr(errors, name)
        if issubclass(kind, Warning):
            assert issubclass(kind, UserWarning)
        elif kind is not errors.LeanrankError:
            assert issubclass(kind, errors.LeanrankError)
            assert issubclass(kind, (ValueError, OSError, ImportError)), name


def test_all_lists_every_class() -> None:
    module = errors.__name__
    defined = {n for n, v in vars(errors).items() if getattr(v, "__module__", "") == module}
    defined = {name for name in defined if inspect.isclass(getattr(errors, name))}
    assert defined == set(errors.__all__)


@pytest.mark.parametrize(
    ("line", "column", "text"),
    [
        (3, 7, "f.txt, line 3, column 7: bad"),
        (3, None, "f.txt, line 3: bad"),
        (None, None, "f.txt: bad"),
    ],
)
def test_parse_error_says_where(line: int | None, column: int | None, text: str) -> None:
    error = errors.ParseError("bad", path="f.txt", line=line, column=column)
    assert str(error) == text
    assert (error.path, error.line, error.column, error.problem) == ("f.txt", line, column, "bad")


def test_missing_dependency_says_what_to_install() -> None:
    error = errors.MissingDependencyError("polars", "frames", "Reading frames")
    assert "pip install 'leanrank[frames]'" in str(error)
    assert "polars" in str(error)


@pytest.mark.parametrize("kind", [errors.InputError, errors.FileError, errors.ModelError])
def test_messages_are_one_short_line(kind: type[Exception]) -> None:
    message = str(kind("a\x1b[31m\x00\n\r\u2028b " + "long " * 200 + ": do this instead"))
    assert len(message) == 300
    assert message.isprintable()
    assert message.startswith("a [31m b long")
    assert message.endswith(": do this instead")
