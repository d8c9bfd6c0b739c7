"""``leanrank warmup``: compile ahead, such as while a container image is built."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated, Any

from typer import Argument

from leanrank.cli import options
from leanrank.cli.screen import print_json, progress, screen
from leanrank.errors import LeanrankError
from leanrank.registry import SYSTEMS, System, get_system

if TYPE_CHECKING:
    from leanrank.data import RankingData


def warmup(
    names: Annotated[
        list[str] | None,
        Argument(metavar="[SYSTEM]...", help="Systems to compile for; by default all."),
    ] = None,
    json: options.Json = False,
) -> None:
    """Compile now what would otherwise be compiled when it is first used.

    Compiled code is kept in NUMBA_CACHE_DIR, or beside the package. In a container image: RUN
    leanrank warmup, with the variable set to a folder of the image. For example: leanrank warmup
    domination ranksvm
    """
    from leanrank._jit import compile_seconds

    systems = [get_system(name) for name in dict.fromkeys(names or [])]
    systems = systems or [system for system in SYSTEMS.values() if system.space is not None]
    before = compile_seconds()
    with progress() as say:
        say("Reading and measuring")
        data = _read_and_measure()
        for system in systems:
            say(f"Fitting {system.title}")
            _fit(system, data)
    seconds = compile_seconds() - before
    if json:
        print_json({"systems": [s.name for s in systems], "seconds_compiling": round(seconds, 3)})
    else:
        count = "1 system" if len(systems) == 1 else f"{len(systems)} systems"
        screen().print(f"Ready: {count}, reading and measuring; {seconds:.1f} s of compiling.")


def _read_and_measure() -> RankingData:
    """Read a text file and use every measure, whose kernels all systems share."""
    import tempfile
    from pathlib import Path

    from leanrank.data import dump_letor, load_letor, load_sample
    from leanrank.metrics import evaluate

    sample = load_sample()[1]
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "sample.txt"
        dump_letor(sample, path)
        data = load_letor(path, n_features=sample.n_features, storage="dense")
        load_letor(path, storage="sparse")
    for measure in ("auc", "ndcg@10"):  # the first is never measured without compiled code
        evaluate(data, data.X[:, 0], measures=measure)
    return data


def _fit(system: System, data: RankingData) -> None:
    """Fit a system to each form of X that it takes."""
    import warnings

    assert system.space is not None
    for X in _forms(data):
        setting: dict[str, Any] = {**system.space.fixed, **system.space.settings()[0]}
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            try:
                system.load()(**setting).fit(data.replace(X=X))
            except LeanrankError:  # this form is not for this system
                continue


def _forms(data: RankingData) -> Iterator[Any]:
    import numpy as np
    from scipy.sparse import csr_array

    from leanrank.data import GlobalStandardScaler

    X = GlobalStandardScaler().fit(data).transform(data).X[:, :8]
    for dtype in (np.float64, np.float32):
        yield np.ascontiguousarray(X, dtype=dtype)
        yield csr_array(np.where(np.abs(X) < 0.5, 0.0, X).astype(dtype))
