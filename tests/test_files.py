from __future__ import annotations

import contextlib
import os
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from leanrank._files import HeldFile, atomic_write, file_identity
from leanrank.errors import FileError


def test_writes_text_and_bytes(tmp_path: Path) -> None:
    with atomic_write(tmp_path / "t") as stream:
        stream.write("ä\n")
    with atomic_write(str(tmp_path / "b"), "wb") as stream:
        stream.write(b"\x00\xff")
    assert (tmp_path / "t").read_bytes() == "ä\n".encode()  # UTF-8 and \n whatever the locale
    assert (tmp_path / "b").read_bytes() == b"\x00\xff"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["b", "t"]


def test_the_file_appears_only_when_whole(tmp_path: Path) -> None:
    target = tmp_path / "model.json"
    target.write_text("old")
    with atomic_write(target) as stream:
        stream.write("new")
        stream.flush()
        assert target.read_text() == "old"
    assert target.read_text() == "new"


@pytest.mark.parametrize("interrupt", [ValueError, KeyboardInterrupt, SystemExit, OSError])
@pytest.mark.parametrize("existed", [True, False])
def test_nothing_is_left_of_a_failed_write(
    tmp_path: Path, interrupt: type[BaseException], existed: bool
) -> None:
    target = tmp_path / "model.json"
    if existed:
        target.write_text("old")

    def half() -> None:
        with atomic_write(target) as stream:
            stream.write("half")
            raise interrupt("stop")

    with pytest.raises(interrupt, match="stop") as caught:
        half()
    assert type(caught.value) is interrupt  # the caller's own error, not a sentence about writing
    assert [p.name for p in tmp_path.iterdir()] == (["model.json"] if existed else [])
    if existed:
        assert target.read_text() == "old"


def test_modes_are_those_of_open(tmp_path: Path) -> None:
    with open(tmp_path / "plain", "w"):
        pass
    with atomic_write(tmp_path / "new"):
        pass
    mode = stat.S_IMODE(os.stat(tmp_path / "plain").st_mode)
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == mode
    os.chmod(tmp_path / "new", 0o640)
    with atomic_write(tmp_path / "new") as stream:
        stream.write("again")
    assert stat.S_IMODE(os.stat(tmp_path / "new").st_mode) == 0o640


def test_a_missing_directory_is_one_sentence(tmp_path: Path) -> None:
    target = tmp_path / "nowhere" / "m.json"
    with (
        pytest.raises(FileError, match=r"nowhere.m\.json: cannot be written .*directory"),
        atomic_write(target),
    ):
        raise AssertionError("the block must not run")


def test_a_directory_is_refused_before_anything_is_written(tmp_path: Path) -> None:
    with pytest.raises(FileError, match="is a directory"), atomic_write(tmp_path):
        raise AssertionError("the block must not run")
    assert list(tmp_path.iterdir()) == []


def test_long_names_leave_room_for_the_temporary_one(tmp_path: Path) -> None:
    target = tmp_path / ("n" * 250)
    with atomic_write(target) as stream:
        stream.write("x")
    assert target.read_text() == "x"


def test_a_symbolic_link_keeps_pointing(tmp_path: Path) -> None:
    (tmp_path / "real").mkdir()
    real, link = tmp_path / "real" / "m.json", tmp_path / "link.json"
    real.write_text("old")
    link.symlink_to(real)
    with atomic_write(link) as stream:
        stream.write("new")
    assert link.is_symlink()
    assert real.read_text() == "new"


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="needs named pipes")
def test_a_pipe_is_written_to_and_not_replaced(tmp_path: Path) -> None:
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(fifo.read_text()), daemon=True)
    reader.start()
    with atomic_write(fifo) as stream:
        stream.write("through")
    reader.join(10)
    assert read == ["through"]
    assert stat.S_ISFIFO(os.stat(fifo).st_mode)


def test_a_device_is_written_to_and_not_replaced() -> None:
    if not os.path.exists(os.devnull):
        pytest.skip("no null device")
    with atomic_write(os.devnull) as stream:
        stream.write("gone")
    assert stat.S_ISCHR(os.stat(os.devnull).st_mode)


def test_dash_is_standard_output(capfdbinary: pytest.CaptureFixture[bytes]) -> None:
    with atomic_write("-") as stream:
        stream.write("text\n")
    with atomic_write("-", "wb") as stream:
        stream.write(b"bytes\n")
    assert capfdbinary.readouterr().out == b"text\nbytes\n"


def hold_in_child(path: Path) -> subprocess.Popen[bytes]:
    """Start a process that holds a file until it is killed."""
    code = (
        "import sys, time; from leanrank._files import HeldFile\n"
        "held = HeldFile(sys.argv[1]); held.replace(b'one'); held.replace(b'two')\n"
        "print('held', flush=True); time.sleep(60)"
    )
    child = subprocess.Popen([sys.executable, "-c", code, path], stdout=subprocess.PIPE)
    assert child.stdout is not None
    assert child.stdout.readline() == b"held\n"
    return child


def test_a_held_file_is_refused_to_others_until_its_process_is_killed(tmp_path: Path) -> None:
    path = tmp_path / "state"
    child = hold_in_child(path)
    try:
        with pytest.raises(FileError, match=r"state: another process is using this file: wait"):
            HeldFile(path)
    finally:
        child.kill()
        child.communicate()
    with HeldFile(path) as held:
        assert held.read() == b"two"
    assert sorted(p.name for p in tmp_path.iterdir()) == ["state"]


def test_a_held_file_without_content_leaves_nothing(tmp_path: Path) -> None:
    with HeldFile(tmp_path / "state") as held:
        assert held.read() == b""
        assert [p.name for p in tmp_path.iterdir()] == [".state.lock"]
    assert list(tmp_path.iterdir()) == []


def test_a_held_file_is_cut_and_continued(tmp_path: Path) -> None:
    with HeldFile(tmp_path / "state") as held:
        held.append(b"one\ntw")
        held.append(b"two\n", at=4)
        assert held.read() == b"one\ntwo\n"


@pytest.mark.parametrize("place", ["no/state", ".", "/dev/null"])
def test_places_that_cannot_be_held(tmp_path: Path, place: str) -> None:
    with pytest.raises(FileError, match="cannot be used"):
        HeldFile(tmp_path / place)


def test_a_kill_while_writing_leaves_a_hidden_file_at_most(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from leanrank._files import atomic_write\n"
        "with atomic_write(sys.argv[1]) as stream:\n"
        "    stream.write('half'); stream.flush(); os.kill(os.getpid(), signal.SIGKILL)"
    )
    subprocess.run([sys.executable, "-c", code, tmp_path / "file"], check=False)
    assert [path.name[:6] for path in tmp_path.iterdir()] == [".file."]


@pytest.mark.parametrize("old", [None, "old"])
@pytest.mark.parametrize("after", [False, True])
def test_ctrl_c_while_naming_a_file_leaves_the_old_or_the_new_one(
    tmp_path: Path, old: str | None, after: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "file"
    if old is not None:
        path.write_text(old)
    real = os.replace

    def interrupted(*args: object, **kwargs: object) -> None:
        if after:
            real(*args, **kwargs)
        raise KeyboardInterrupt

    monkeypatch.setattr(os, "replace", interrupted)
    with contextlib.suppress(KeyboardInterrupt), atomic_write(path) as stream:
        stream.write("new")
    assert {p.name for p in tmp_path.iterdir()} <= {"file"}
    assert (path.read_text() if path.exists() else None) in (old, "new")


def test_a_large_file_is_told_apart_by_samples_and_its_time_of_change(tmp_path, monkeypatch):
    monkeypatch.setattr("leanrank._files._WHOLE", 16 * 2**16)
    path = tmp_path / "large"
    path.write_bytes(bytes(40 * 2**16))
    os.utime(path, ns=(0, 0))
    first = file_identity(str(path))
    with open(path, "r+b") as stream:
        stream.seek(-1000, os.SEEK_END)
        stream.write(b"x")
    assert file_identity(str(path)) != first  # between two samples, but the time has changed
    os.utime(path, ns=(0, 0))
    for place in range(0, 40 * 2**16, 5 * 2**16):
        path.write_bytes(bytes(place) + b"x" * 3 * 2**16 + bytes(37 * 2**16 - place))
        os.utime(path, ns=(0, 0))
        assert file_identity(str(path)) != first
