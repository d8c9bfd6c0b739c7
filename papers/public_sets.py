"""Public benchmark sets: found in a directory, or fetched from their owners."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy.typing as npt

from leanrank.data.ranking_data import RankingData
from leanrank.data.sources import PACKED
from leanrank.errors import FileError, InputError, suggest
from papers.download import download as download_file
from papers.download import make_directory, unpack, verify

_PARTS = {
    "train": ("train.txt", "trainingset.txt"),
    "vali": ("vali.txt", "validationset.txt"),
    "test": ("test.txt", "testset.txt"),
}


@dataclass(frozen=True)
class PublicSet:
    """What is known of a public set.

    Attributes
    ----------
    name, page, licence : str
        How it is called, where its owner describes it, and on what terms it may be used.
    archive : str
        The file that the owner publishes.
    url : str or None
        Where the archive can be downloaded; None if an agreement must be accepted first.
    sha256 : str or None
        Of the archive, as loaders of these sets have pinned it; None if not known.
    folders : sequence of str
        Where its files may be, below the data directory; the first is where it is unpacked.
    n_folds : int
        0 if it comes in one split.
    n_features : int
    convention : str
        How its measures are computed in publications; see ``leanrank.metrics.conventions``.
    """

    name: str
    page: str
    licence: str
    archive: str
    url: str | None
    sha256: str | None
    folders: Sequence[str]
    n_folds: int
    n_features: int
    convention: str = "standard"


_TABLE = Path(__file__).with_suffix(".json").read_text(encoding="utf-8")
SETS: dict[str, PublicSet] = {known["name"]: PublicSet(**known) for known in json.loads(_TABLE)}
"""All sets that ``fetch`` knows, by name."""


@dataclass(frozen=True)
class RankingFolds:
    """A public ranking set with its published splits."""

    known: PublicSet
    folder: Path

    @property
    def n_folds(self) -> int:
        """How many splits there are."""
        return max(1, self.known.n_folds)

    def fold(
        self, number: int = 1, *, dtype: npt.DTypeLike = "float64", n_jobs: int | None = -1
    ) -> tuple[RankingData, RankingData, RankingData]:
        """Load the training, validation and test part of one split, counted from 1."""
        from leanrank.data.letor import load_letor

        train, vali, test = (
            load_letor(file, n_features=self.known.n_features, dtype=dtype, n_jobs=n_jobs)
            for file in self.files(number)
        )
        return train, vali, test

    def folds(self) -> Iterator[tuple[RankingData, RankingData, RankingData]]:
        """Load one split after the other."""
        return (self.fold(number) for number in range(1, self.n_folds + 1))

    def files(self, number: int = 1) -> tuple[Path, Path, Path]:
        """Return the three files of one split."""
        if isinstance(number, bool) or number not in range(1, self.n_folds + 1):
            raise InputError(f"{self.known.name} has folds 1 to {self.n_folds}, not {number!r}")
        folder = self.folder / f"Fold{number}" if self.known.n_folds else self.folder
        found = [_part_file(folder, part) for part in _PARTS]
        for part, file in zip(_PARTS, found, strict=True):
            if file is None:
                raise FileError(
                    f"{folder}: there is no {_PARTS[part][0]}, so the set is incomplete"
                )
        train, vali, test = (file for file in found if file is not None)
        return train, vali, test

    def __repr__(self) -> str:
        splits = f"{self.n_folds} folds" if self.known.n_folds else "one split"
        return f"RankingFolds {self.known.name}: {splits}, in {self.folder}"


def fetch(
    name: str, *, data_dir: str | os.PathLike[str] | None = None, download: bool = True
) -> Any:
    r"""Return a public data set, from the data directory or from its owner.

    Parameters
    ----------
    name : str
        MQ2007, MQ2008 (LETOR 4.0), OHSUMED, TD2003, TD2004, HP2003, HP2004, NP2003, NP2004
        (LETOR 3.0), MSLR-WEB10K, MSLR-WEB30K, Istella-S, Reuters-21578 or RCV1.
    data_dir : str or path, optional
        Where the sets are, each in a folder of its name; by default ``$LEANRANK_DATA``, else the
        user's cache directory.
    download : bool, default=True
        Whether a set that is not there may be downloaded. Some owners ask for an agreement first:
        then there is an error that says which page to visit and where to put the file. With
        ``$LEANRANK_DATA_URL``, archives come from that address instead of their owners'.

    Returns
    -------
    RankingFolds or TextCollection
        For ranking sets, ``fetch(name).fold(1)`` gives training, validation and test part. For text
        collections, ``fetch(name).topic("earn")`` gives the ranking task of a topic.

    Examples
    --------
    >>> import tempfile
    >>> from pathlib import Path
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     for part in ("train", "vali", "test"):
    ...         file = Path(folder, "MQ2008", "Fold1", f"{part}.txt")
    ...         file.parent.mkdir(parents=True, exist_ok=True)
    ...         _ = file.write_text("1 qid:7 1:0.5 #docid = G1\n")
    ...     train, vali, test = fetch("MQ2008", data_dir=folder).fold(1)
    >>> train.doc_ids.tolist(), train.n_features
    (['G1'], 46)
    """
    known = find_set(name)
    folder = data_directory(data_dir)
    if known.name == "RCV1":
        from papers.text_collection import load_rcv1

        if download:
            make_directory(folder)
        return load_rcv1(folder, download=download)
    if known.name == "Reuters-21578":
        return _reuters(known, folder, download)
    place = _find_folder(known, folder)
    if place is None:
        _bring(known, folder, download)
        place = _find_folder(known, folder)
    if place is None:
        raise FileError(
            f"{folder / known.folders[0]}: unpacked from {known.archive}, but it does not hold the "
            f"files of {known.name}: see {known.page}"
        )
    return RankingFolds(known, place)


def find_set(name: str) -> PublicSet:
    """Look up a set; case, blanks and hyphens do not matter."""

    def plain(text: str) -> str:
        return "".join(c for c in text.lower() if c.isalnum())

    aliases = {
        "istella": "Istella-S",
        "reuters": "Reuters-21578",
        "mslr10k": "MSLR-WEB10K",
        "mslr30k": "MSLR-WEB30K",
    }
    by_name = {plain(known): known for known in SETS} | aliases
    if not isinstance(name, str) or plain(name) not in by_name:
        raise InputError(f"there is no public set {name!r}: {suggest(name, SETS)}")
    return SETS[by_name[plain(name)]]


def data_directory(given: str | os.PathLike[str] | None = None) -> Path:
    """Return the directory of the public sets: the one given, ``$LEANRANK_DATA``, or a cache."""
    if given is not None:
        return Path(given)
    if os.environ.get("LEANRANK_DATA"):
        return Path(os.environ["LEANRANK_DATA"])
    if sys.platform == "win32":
        cache = os.environ.get("LOCALAPPDATA") or Path.home() / "AppData" / "Local"
    elif sys.platform == "darwin":
        cache = Path.home() / "Library" / "Caches"
    else:
        cache = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(cache) / "leanrank"


def _reuters(known: PublicSet, folder: Path, download: bool) -> Any:
    from papers.text_collection import convert_reuters, load_reuters

    lines = folder / "reuters21578.jsonl"
    if not lines.exists():
        place = folder / known.folders[0]
        if not list(place.glob("*.sgm")):
            _bring(known, folder, download)
        files = list(place.glob("*.sgm"))
        if not files:
            raise FileError(f"{place}: holds no .sgm files, so it is not {known.name}")
        convert_reuters(files, lines)
    return load_reuters(lines)


def _bring(known: PublicSet, folder: Path, download: bool) -> None:
    """Unpack the archive of a set, downloading it first if that is needed and possible."""
    place = folder / known.folders[0]
    archive = folder / known.archive
    mirror = os.environ.get("LEANRANK_DATA_URL")
    url = known.url if mirror is None else f"{mirror.rstrip('/')}/{known.archive}"
    is_rar = archive.suffix == ".rar"
    if archive.exists() and not is_rar:
        verify(archive, known.sha256)
    elif is_rar or url is None or not download:
        raise FileError(_by_hand(known, folder, is_rar, url is None))
    else:
        download_file(url, archive, known.sha256)
    unpack(archive, place)


def _by_hand(known: PublicSet, folder: Path, is_rar: bool, needs_consent: bool) -> str:
    sentence = f"{known.name} is not in {folder}"
    if not needs_consent and not is_rar:
        return f"{sentence}: allow download=True, or put {known.archive} there ({known.page})"
    sentence += f": accept the agreement at {known.page} and put"
    if is_rar:
        return f"{sentence} Fold1 to Fold5 of {known.archive} there in {known.folders[0]}"
    return f"{sentence} {known.archive} there"


def _find_folder(known: PublicSet, folder: Path) -> Path | None:
    for place in known.folders:
        inside = folder / place / "Fold1" if known.n_folds else folder / place
        if _part_file(inside, "train") is not None:
            return folder / place
    return None


def _part_file(folder: Path, part: str) -> Path | None:
    for name in _PARTS[part]:
        for packed in PACKED:
            if (folder / f"{name}{packed}").is_file():
                return folder / f"{name}{packed}"
    return None
