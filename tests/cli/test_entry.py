import ctypes
import errno
import os
import signal
import subprocess
import sys
import time
import warnings

import pytest

from leanrank import __version__
from leanrank.cli import app, entry
from leanrank.errors import DataWarning, InputError, MissingDependencyError


def python(*words, **options):
    return subprocess.run(
        [sys.executable, *words],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        **options,
    )


def failing(error):
    def command():
        raise error

    return command


@pytest.fixture
def demo_is(monkeypatch):
    """Put a function in the place of the demo command."""
    loaded = app._load

    def replace(function):
        monkeypatch.setattr(app, "_load", lambda name: function if name == "demo" else loaded(name))

    return replace


def test_version(run):
    assert run("--version") == (0, f"leanrank {__version__}\n", "")


def test_help_lists_every_command(run):
    ran = run("--help")
    assert ran.code == 0
    assert ran.err == ""
    for name, summary in app.COMMANDS.items():
        assert f"{name} " in ran.out
        assert summary in ran.out
    assert run("-h") == ran


def test_no_command_is_a_usage_error_that_shows_the_help(run):
    ran = run()
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("Usage: leanrank [OPTIONS] COMMAND")


@pytest.mark.parametrize("name", app.COMMANDS)
def test_every_command_has_help(run, name):
    ran = run(name, "--help")
    assert ran.code == 0
    assert f"Usage: leanrank {name} [OPTIONS]" in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["tran"], "No such command 'tran'"),
        (["train"], "Missing argument 'TRAIN' (see 'leanrank train --help')"),
        (["train", "a", "--modle", "b"], "No such option: --modle: did you mean --model?"),
        (["train", "--aplha", "1"], "No such option: --aplha: a parameter is given as -p aplha=V"),
        (["tune", "--aplha", "1"], "No such option: --aplha (see 'leanrank tune --help')"),
        (["train", "a"], "Missing option '--model'"),
        (["demo", "more"], "Got unexpected extra argument"),
        (["train", "a", "-m", "b", "--jobs", "x"], "Invalid value for '--jobs'"),
    ],
)
def test_usage_errors_are_one_line(run, words, message):
    ran = run(*words)
    assert (ran.code, ran.out) == (2, "")
    assert ran.err.startswith("leanrank: error: " + message)
    assert "--help')\n" in ran.err
    assert ran.err.count("\n") == 1


@pytest.mark.parametrize(
    ("error", "code", "message"),
    [
        (InputError("labels are missing:\n  add some"), 2, "error: labels are missing: add some"),
        (
            MissingDependencyError("pyarrow", "frames", "reading Parquet"),
            1,
            "error: reading Parquet needs the package 'pyarrow': install it with "
            "`pip install 'leanrank[frames]'`",
        ),
        (
            OSError(errno.ENOSPC, "No space left on device", "m.json"),
            1,
            "error: m.json: No space left on device",
        ),
        (MemoryError(), 1, "error: there is not enough memory for this data"),
        (
            KeyError("x"),
            1,
            "error: unexpected KeyError: 'x' (run again with --debug for the traceback)",
        ),
        (KeyboardInterrupt(), 130, "interrupted"),
    ],
)
def test_failures_are_one_line(run, demo_is, error, code, message):
    demo_is(failing(error))
    assert run("demo") == (code, "", f"leanrank: {message}\n")


@pytest.mark.parametrize("words", [["--debug", "demo"], ["demo", "--debug"]])
def test_debug_shows_the_traceback(run, demo_is, words):
    demo_is(failing(InputError("labels are missing")))
    ran = run(*words)
    assert ran.code == 2
    assert ran.err.startswith("Traceback (most recent call last)")
    assert ran.err.endswith("leanrank: error: labels are missing\n")


def test_debug_from_the_environment(run, demo_is, monkeypatch):
    demo_is(failing(InputError("labels are missing")))
    monkeypatch.setenv("LEANRANK_DEBUG", "1")
    assert "Traceback" in run("demo").err
    monkeypatch.setenv("LEANRANK_DEBUG", "0")
    assert "Traceback" not in run("demo").err


def test_debug_after_two_dashes_is_a_name():
    assert entry._take_debug(["convert", "--", "--debug"]) == (["convert", "--", "--debug"], False)


def test_warnings_are_one_line(run, demo_is):
    def command():
        warnings.warn("12 queries hold\none level", DataWarning)

    demo_is(command)
    assert run("demo") == (0, "", "leanrank: warning: 12 queries hold one level\n")


def test_light_imports():
    code = (
        "import sys; from leanrank.cli import main; main(['--help']); main(['train', '--help']); "
        "heavy = {'numba', 'scipy', 'sklearn', 'numpy', 'pandas', 'pyarrow'} & set(sys.modules); "
        "assert not heavy, heavy"
    )
    ran = python("-c", code)
    assert ran.returncode == 0, ran.stderr
    ran = python(
        "-c", "import sys, leanrank; assert not {'numba', 'scipy', 'numpy'} & set(sys.modules)"
    )
    assert ran.returncode == 0, ran.stderr


def test_python_m(tmp_path):
    ran = python("-m", "leanrank", "--version", cwd=tmp_path)
    assert (ran.returncode, ran.stdout) == (0, f"leanrank {__version__}\n")
    ran = python("-m", "leanrank", "predict", "none.json", "none.txt", cwd=tmp_path)
    assert ran.returncode == 2
    assert ran.stderr == ("leanrank: error: none.json: there is no such file\n")


def test_a_reader_that_goes_away_is_no_error(tmp_path):
    code = (
        "import sys; from leanrank.cli import app, main\n"
        "def demo():\n"
        "    for at in range(200_000): print(at)\n"
        "app._load = lambda name: demo\n"
        "sys.exit(main(['demo']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    ) as process:
        assert process.stdout.readline() == b"0\n"
        process.stdout.close()
        assert process.stderr.read() == b""
        assert process.wait(timeout=60) in (0, 1)


@pytest.mark.skipif(os.name == "nt", reason="signals of POSIX")
def test_ctrl_c_leaves_no_half_file(tmp_path):
    code = (
        "import signal, sys, time; from leanrank.cli import app, main\n"
        "from leanrank._files import atomic_write\n"
        # a suite that runs in the background ignores SIGINT, and children inherit that
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "def demo():\n"
        "    with atomic_write('model.json') as stream:\n"
        "        stream.write('half'); stream.flush(); print('ready', flush=True)\n"
        "        time.sleep(60)\n"
        "app._load = lambda name: demo\n"
        "sys.exit(main(['demo']))"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code], stdout=subprocess.PIPE, stderr=subprocess.PIPE, cwd=tmp_path
    ) as process:
        assert process.stdout.readline() == b"ready\n"
        start = time.monotonic()
        process.send_signal(signal.SIGINT)
        assert process.wait(timeout=30) == 130
        assert time.monotonic() - start < 20
        assert process.stderr.read() == b"leanrank: interrupted\n"
    assert list(tmp_path.iterdir()) == []


INTERRUPTING = """
import os, sys

class Interrupted:
    def find_spec(self, name, path=None, target=None):
        if name == os.environ["INTERRUPTED_MODULE"]:
            print("now", flush=True)
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupted())
exec(sys.argv.pop(1))
"""
STARTS = {
    "script": "from leanrank.cli import main; sys.exit(main())",  # as pip writes it
    "python -m": "import runpy; runpy.run_module('leanrank', None, '__main__')",
}


@pytest.mark.parametrize(
    "module", ["leanrank.cli.entry", "typing", "leanrank.errors", "leanrank.cli.app", "typer"]
)
@pytest.mark.parametrize("start", STARTS)
def test_an_interrupt_while_python_imports(start, module):
    where = {"INTERRUPTED_MODULE": module, "PYTHONPATH": os.pathsep.join(sys.path)}
    words = ("-S", "-c", INTERRUPTING, STARTS[start], "--version")
    ran = python(*words, env={**os.environ, **where})
    assert (ran.returncode, ran.stdout, ran.stderr) == (130, "now\n", "leanrank: interrupted\n")


def test_a_terminal_without_a_character_shows_another(tmp_path):
    code = (
        "import sys; from leanrank.cli import app, main\n"
        "app._load = lambda name: lambda: print('│ 0.5 – █')\n"
        "sys.exit(main(['demo']))"
    )
    ran = python("-c", code, env={**os.environ, "PYTHONIOENCODING": "ascii"})
    assert (ran.returncode, ran.stdout) == (0, "? 0.5 ? ?\n")


@pytest.mark.parametrize("then_fails", [False, True])
def test_an_interrupt_that_a_callback_swallows(monkeypatch, capfd, then_fails):
    """As in the compiler: Python prints such an exception and goes on."""

    def raise_it():
        raise KeyboardInterrupt

    def run(*arguments):
        ctypes.CFUNCTYPE(None)(raise_it)()
        if then_fails:
            raise RuntimeError("no compiled object yet")
        for _ in range(600):  # a single sleep would end before the interrupt is seen
            time.sleep(0.1)

    monkeypatch.setattr(entry, "_run", run)
    hook = sys.unraisablehook
    # a suite that runs in the background has inherited that the signal is ignored
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        assert entry.main(["systems"]) == 130
    finally:
        signal.signal(signal.SIGINT, handler)
    assert capfd.readouterr().err == "leanrank: interrupted\n"
    assert sys.unraisablehook is hook
    time.sleep(0.1)  # no second one comes


@pytest.mark.parametrize(
    "words", [("train", "-m", "m.json"), ("convert",), ("train", "a.txt", "-m")]
)
def test_a_file_name_that_is_too_long_is_a_short_message(capfd, words):
    assert entry.main([*words, "9" * 5000, "out.csv"][: 2 + len(words)]) in (1, 2)
    said = capfd.readouterr().err
    assert said.startswith("leanrank: error: ")
    assert len(said.splitlines()) == 1
    assert len(said) <= 320
