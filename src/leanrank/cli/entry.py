"""Running a command: arguments in, an exit code out. Errors are one sentence on standard error.

Exit codes are 0 for success, 1 for failure, 2 for bad input or usage, 130 for an interruption.
``--debug`` shows tracebacks as well.
"""

from __future__ import annotations

import gc
import os
import re
import shlex
import sys
import warnings
from _thread import interrupt_main
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from threading import Timer
from typing import Any

from leanrank._display import printable
from leanrank.errors import LeanrankError, LeanrankWarning, MissingDependencyError, one_line

DONE, FAILED, BAD_INPUT, INTERRUPTED = 0, 1, 2, 130
_READ = "label qid doc_id weight query_weight offset features zero_based storage dtype"
_OPTIONS = {**{name: f"--read {name}=" for name in _READ.split()}, "data_dir": "--data "}
_QUOTED = re.compile(r"`(\w+)=([^`]*)`")
_WORDS = {"None": "none", "True": "true", "False": "false"}
_shown: set[str] = set()
_typed: list[str] = []


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line and return its exit code."""
    return run_app(_leanrank, argv, name="leanrank")


def run_app(make_app: Callable[[list[str]], Any], argv: Sequence[str] | None, *, name: str) -> int:
    """Run the application that ``make_app`` returns for the arguments; return its exit code."""
    # Imports make many lasting objects; by default Python searches them for garbage every 700.
    gc.set_threshold(10_000, 10, 10)
    arguments, debug = _take_debug(sys.argv[1:] if argv is None else argv)
    for stream in (sys.stdout, sys.stderr):
        if hasattr(stream, "reconfigure"):  # a character that the terminal lacks becomes "?"
            stream.reconfigure(errors="replace")
    with warnings.catch_warnings(), _late_interrupts() as lost:
        warnings.simplefilter("always", LeanrankWarning)
        warnings.filterwarnings("ignore", ".*joblib will operate in serial mode")  # as threads do
        warnings.showwarning = _show_warning
        _shown.clear()
        _typed[:] = [name, *arguments]
        try:
            code = _run(make_app(arguments), arguments, name)
            sys.stdout.flush()
        except BrokenPipeError:
            _silence(sys.stdout)
            return FAILED
        except (Exception, KeyboardInterrupt) as error:
            if debug:
                import traceback

                traceback.print_exc()
            return _explain(KeyboardInterrupt() if lost else error)
    if code == INTERRUPTED:
        say("interrupted")
    return code


@contextmanager
def _late_interrupts() -> Iterator[list[Timer]]:
    """Raise a Ctrl-C again that Python could not raise, as in a callback of the compiler.

    The compiler may fail first because of it. The list that is yielded is empty unless this
    happened.
    """
    lost: list[Timer] = []
    before = sys.unraisablehook

    def again(event: Any) -> None:
        if event.exc_type is KeyboardInterrupt:
            lost.append(Timer(0.05, interrupt_main))
            lost[-1].start()
        else:
            before(event)

    sys.unraisablehook = again
    try:
        yield lost
    finally:
        sys.unraisablehook = before
        for timer in lost:
            timer.cancel()


def _leanrank(arguments: list[str]) -> Any:
    from leanrank.cli.app import make_app

    return make_app(arguments)


def _run(app: Any, arguments: list[str], name: str) -> int:
    try:
        code = app(args=arguments, prog_name=name, standalone_mode=False)
    except SystemExit as error:  # typer's answer to a closed pipe
        code = error.code
    return code if isinstance(code, int) else DONE


def _take_debug(argv: Sequence[str]) -> tuple[list[str], bool]:
    """Return the arguments without ``--debug``, which may be anywhere, and whether it is set."""
    words = list(argv)
    end = words.index("--") if "--" in words else len(words)
    head = [word for word in words[:end] if word != "--debug"]
    debug = len(head) < end or os.environ.get("LEANRANK_DEBUG", "") not in ("", "0")
    return head + words[end:], debug


def _explain(error: BaseException) -> int:
    if isinstance(error, KeyboardInterrupt) or type(error).__name__ == "Abort":
        say("interrupted")
        return INTERRUPTED
    if hasattr(error, "format_message"):  # typer's usage errors, whichever click they come from
        context: Any = getattr(error, "ctx", None)
        where = f" (see '{context.command_path} --help')" if context is not None else ""
        say(f"error: {one_line(_usage(error, context)).rstrip('.')}{where}")
        return BAD_INPUT
    if isinstance(error, LeanrankError):
        say(f"error: {one_line(in_options(str(error)))}")
        return FAILED if isinstance(error, MissingDependencyError) else BAD_INPUT
    if isinstance(error, MemoryError):
        say("error: there is not enough memory for this data")
    elif isinstance(error, OSError):
        name = f"{error.filename}: " if error.filename else ""
        say(f"error: {one_line(f'{name}{error.strerror or error}')}")
    else:
        say(
            f"error: unexpected {type(error).__name__}: {one_line(str(error))} "
            "(run again with --debug for the traceback)"
        )
    return FAILED


def _usage(error: Any, context: Any) -> str:
    """Describe a usage error; for an unknown option, propose one of nearly the same name."""
    name = getattr(error, "option_name", "")
    if not (name and hasattr(error, "possibilities")):
        return str(error.format_message())
    from difflib import get_close_matches

    near = get_close_matches(name, error.possibilities or (), n=1, cutoff=0.8)
    if near:
        return f"No such option: {name}: did you mean {near[0]}?"
    if any("-p" in each.opts for each in context.command.params):
        return f"No such option: {name}: a parameter is given as -p {name.lstrip('-')}=VALUE"
    return f"No such option: {name}"


def _show_warning(message: Warning | str, category: type[Warning], *_: Any, **__: Any) -> None:
    if str(message) in _shown:  # a command may fit many models to the same data
        return
    _shown.add(str(message))
    say(f"warning: {one_line(in_options(str(message)))}")


def command_line() -> str:
    """Return the running command as a line for a shell."""
    return shlex.join(_typed)


def say(sentence: str) -> None:
    """Write a sentence to standard error."""
    try:
        print(f"leanrank: {printable(sentence)}", file=sys.stderr, flush=True)
    except BrokenPipeError:
        _silence(sys.stderr)


def _silence(stream: Any) -> None:
    """Discard the rest of a buffer, so that the interpreter exits without an error."""
    try:
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    except (OSError, ValueError):
        return


def in_options(message: str) -> str:
    """Return a message of the library in which quoted arguments are replaced by options.

    The library quotes arguments in backquotes.

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
