"""Messages of the library in the words of the command line.

The library quotes what a caller may write in backquotes, as in ``label='grade'`` between them.
Here that becomes the option that takes it.
"""

from __future__ import annotations

import re
import shlex

_READ = (
    "label", "qid", "doc_id", "weight", "query_weight", "offset", "features", "header",
    "zero_based", "storage", "dtype",
)  # fmt: skip
_OPTIONS = {**{name: f"--read {name}=" for name in _READ}, "data_dir": "--data "}
_QUOTED = re.compile(r"`(\w+)=([^`]*)`")
_WORDS = {"None": "none", "True": "true", "False": "false"}


def in_options(message: str) -> str:
    """Return a message with the arguments that it quotes as options of the command line.

    >>> in_options("name the right one with `label=…`, or `label=None` if there is none")
    'name the right one with `--read label=…`, or `--read label=none` if there is none'
    >>> in_options("say what it is, as in `doc_id='the url'`, or use `dtype=numpy.float64`")
    "say what it is, as in `--read doc_id='the url'`, or use `--read dtype=float64`"
    """
    return _QUOTED.sub(_as_option, message)


def _as_option(found: re.Match[str]) -> str:
    name, value = found.groups()
    if name not in _OPTIONS:
        return found[0]
    if len(value) >= 2 and value[0] == value[-1] and value[0] in "'\"":
        value = shlex.quote(value[1:-1])
    return f"`{_OPTIONS[name]}{_WORDS.get(value, value.removeprefix('numpy.'))}`"
