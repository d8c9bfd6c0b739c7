"""Fetching an archive and unpacking it so that nothing half-done or unsafe is left behind."""

from __future__ import annotations

import contextlib
import hashlib
import http.client
import os
import shutil
import stat
import tarfile
import tempfile
import urllib.error
import urllib.request
import zipfile
from collections.abc import Iterator
from pathlib import Path, PurePosixPath, PureWindowsPath
from typing import IO

from leanrank._files import atomic_write
from leanrank.errors import FileError

_BLOCK = 2**20


def download(url: str, target: Path, sha256: str | None) -> None:
    """Fetch ``url`` to ``target``; a file that is cut short or not the right one is thrown away."""
    by_hand = f"download it by hand and put it at {target}"
    make_directory(target.parent)
    try:
        with (
            contextlib.closing(urllib.request.urlopen(url, timeout=30.0)) as response,
            atomic_write(target, "wb") as stream,
        ):
            digest = hashlib.sha256()
            received = 0
            while block := response.read(_BLOCK):
                digest.update(block)
                stream.write(block)
                received += len(block)
            expected = response.headers.get("Content-Length")
            if expected is not None and received != int(expected):
                raise FileError(
                    f"{url}: the connection ended after {received:,} of {int(expected):,} bytes: "
                    f"try again, or {by_hand}"
                )
            _compare(url, digest.hexdigest(), sha256)
    except FileError:
        raise
    except urllib.error.HTTPError as error:
        raise FileError(
            f"{url}: the server answers {error.code} ({error.reason}): {by_hand}"
        ) from error
    except (OSError, http.client.HTTPException) as error:
        reason = getattr(error, "reason", None) or getattr(error, "strerror", None) or error
        raise FileError(f"{url}: cannot be reached ({reason}): {by_hand}") from error


def verify(path: Path, sha256: str | None) -> None:
    """Check a file that is there already."""
    if sha256 is None:
        return
    with open(path, "rb") as stream:
        _compare(str(path), hashlib.file_digest(stream, "sha256").hexdigest(), sha256)


def unpack(archive: Path, folder: Path) -> None:
    """Unpack a zip or tar archive into a new folder, which appears only when it is complete."""
    if folder.exists():
        raise FileError(
            f"{folder}: exists but is not complete: remove it, and it is unpacked again from "
            f"{archive}"
        )
    make_directory(folder.parent)
    partial = Path(tempfile.mkdtemp(prefix=f".{folder.name}.", dir=folder.parent))
    try:
        for name, stream in _members(archive):
            target = partial / name
            target.parent.mkdir(parents=True, exist_ok=True)
            with open(target, "xb") as out:
                shutil.copyfileobj(stream, out, _BLOCK)
        partial.chmod(0o755)
        os.replace(partial, folder)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError, FileExistsError) as error:
        raise FileError(
            f"{archive}: this archive is damaged ({error}): remove it and fetch it again"
        ) from error
    finally:
        shutil.rmtree(partial, ignore_errors=True)


def make_directory(folder: Path) -> None:
    """Create a directory for data, with its parents."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise FileError(
            f"{folder}: cannot be created ({error.strerror}): choose another directory with "
            "`data_dir=…` or LEANRANK_DATA"
        ) from error


def _members(archive: Path) -> Iterator[tuple[PurePosixPath, IO[bytes]]]:
    """Return the plain files of an archive, and refuse one that reaches out of its folder."""
    if zipfile.is_zipfile(archive):
        with zipfile.ZipFile(archive) as packed:
            for info in packed.infolist():
                name = _safe(archive, info.filename, stat.S_ISLNK(info.external_attr >> 16))
                if not info.is_dir():
                    with packed.open(info) as stream:
                        yield name, stream
        return
    with tarfile.open(archive) as tar:
        for member in tar:
            name = _safe(archive, member.name, not (member.isfile() or member.isdir()))
            if member.isfile():
                content = tar.extractfile(member)
                assert content is not None
                yield name, content


def _safe(archive: Path, name: str, is_special: bool) -> PurePosixPath:
    path = PurePosixPath(name.replace("\\", "/"))
    if is_special or path.is_absolute() or ".." in path.parts or PureWindowsPath(name).drive:
        raise FileError(
            f"{archive}: the entry {name!r} is a link or points outside of the archive: do not "
            "trust this file, fetch it again from its owner"
        )
    return path


def _compare(what: str, found: str, sha256: str | None) -> None:
    if sha256 is not None and found != sha256:
        raise FileError(
            f"{what}: this is not the file that was published (SHA-256 {found[:12]}… instead of "
            f"{sha256[:12]}…): fetch it again from its owner"
        )
