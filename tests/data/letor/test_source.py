"""Where LETOR text comes from: files, archives, streams; whole, damaged or missing."""

from __future__ import annotations

import bz2
import contextlib
import gzip
import io
import lzma
import os
import subprocess
import sys

import numpy as np
import pytest

from leanrank.data.letor import load_letor
from leanrank.errors import FileError, InputError, LeanrankError, ParseError
from tests.data.letor.test_files import SMALL, load, random_file, same


@pytest.mark.parametrize(
    ("suffix", "pack", "open_"),
    [
        ("gz", gzip.compress, gzip.open),
        ("xz", lzma.compress, lzma.open),
        ("bz2", bz2.compress, bz2.open),
    ],
)
def test_compressed_files_and_streams(tmp_path, suffix, pack, open_):
    packed = pack(SMALL)
    path = tmp_path / f"a.txt.{suffix}"
    path.write_bytes(packed)
    same(load_letor(path), load(SMALL))
    same(load_letor(str(path)), load(SMALL))
    same(load(packed), load(SMALL))
    with open(path, "rb") as stream:
        same(load_letor(stream), load(SMALL))
    with open_(path, "rb") as stream:  # unpacked already, though the name says otherwise
        same(load_letor(stream), load(SMALL))
    (tmp_path / "no_suffix").write_bytes(packed)
    same(load_letor(tmp_path / "no_suffix"), load(SMALL))
    path.write_bytes(packed[:-12])
    with pytest.raises(
        ParseError, match=rf"a.txt.{suffix}: the {suffix} data are damaged or cut short"
    ):
        load_letor(path)
    path.write_bytes(SMALL)
    same(load_letor(path), load(SMALL))  # the content counts, not the name


def test_plain_file(tmp_path):
    path = tmp_path / "a.txt"
    path.write_bytes(SMALL)
    same(load_letor(path), load(SMALL))


def test_standard_input_and_output():
    code = (
        "import leanrank, sys; d = leanrank.load_letor('-'); assert len(d) == 3; "
        "leanrank.dump_letor(d, '-')"
    )
    for content in (SMALL, gzip.compress(SMALL)):
        done = subprocess.run(
            [sys.executable, "-c", code], input=content, capture_output=True, check=True
        )
        same(load(done.stdout), load(SMALL.replace(b" # two words", b"")))


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes here")
def test_named_pipe(tmp_path):
    import threading

    path = tmp_path / "pipe"
    os.mkfifo(path)
    writer = threading.Thread(target=lambda: path.write_bytes(SMALL))
    writer.start()
    same(load_letor(path), load(SMALL))
    writer.join()


class Dripping(io.RawIOBase):
    """A stream that gives three bytes at a time, as a pipe may."""

    def __init__(self, content, error=None):
        self._rest, self._error = content, error

    def readable(self):
        return True

    def readinto(self, buffer):
        given, self._rest = self._rest[:3], self._rest[3:]
        if not given and self._error is not None:
            raise self._error
        buffer[: len(given)] = given
        return len(given)


def test_a_stream_that_drips():
    same(load_letor(Dripping(SMALL)), load(SMALL))
    same(load_letor(Dripping(gzip.compress(SMALL))), load(SMALL))


def test_a_stream_that_breaks():
    with pytest.raises(FileError, match=r"<stream>: cannot be read .*broken"):
        load_letor(Dripping(SMALL, OSError("broken")))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, bz2.compress])
def test_damaged_archives_are_clean_errors(pack):
    packed = pack(random_file(5, 60))
    rng = np.random.default_rng(0)
    for cut in rng.integers(8, len(packed) - 1, 60):
        with pytest.raises(ParseError, match="damaged or cut short"):
            load(packed[:cut])
    for _ in range(200):
        damaged = bytearray(packed)
        damaged[rng.integers(len(packed))] ^= 1 << rng.integers(8)
        with contextlib.suppress(LeanrankError):  # a header's time or name may change unnoticed
            load(bytes(damaged))


def test_files_that_cannot_be_read(tmp_path):
    with pytest.raises(FileError, match=r"nothing.txt: there is no such file"):
        load_letor(tmp_path / "nothing.txt")
    with pytest.raises(FileError, match="this is a directory: give one of its files"):
        load_letor(tmp_path)
    with pytest.raises(InputError, match="open it in binary mode"):
        load_letor(io.StringIO("1 qid:1 1:1"))
    with pytest.raises(InputError, match="path is int"):
        load_letor(7)


def test_all_errors_are_leanrank_errors():
    for content in (b"", b"x", b"1 qid:1 1:\xff", gzip.compress(b"x")[:-3]):
        with pytest.raises(LeanrankError):
            load(content)
