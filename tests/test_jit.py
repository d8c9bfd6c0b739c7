"""Where compiled code is kept, and what needs none."""

from __future__ import annotations

import ast
import gc
import os
import shutil
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numba
import numpy as np
import pytest
from numba.core import event

MODULE = """
from leanrank._jit import kernel

@kernel
def twice(x):
    return 2 * x
"""
RUN = """
import sys, warnings
warnings.simplefilter("always")
from installed.kernels import twice
assert twice(3) == 6
print(twice.stats.cache_path, sum(twice.stats.cache_hits.values()))
"""


@pytest.fixture
def installed(tmp_path: Path) -> Path:
    """A package with a kernel in a folder where nothing can be kept beside it."""
    package = tmp_path / "installed"
    package.mkdir()
    (package / "kernels.py").write_text(MODULE)
    (package / "__pycache__").write_text("a file, so that no folder of that name can be made")
    (tmp_path / "temporary").mkdir()
    return tmp_path


def run(folder: Path, **environment: str) -> subprocess.CompletedProcess[str]:
    given = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    place = str(folder / "temporary")
    given |= {"HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/x", "TMPDIR": place}
    source = Path(__file__).parents[1] / "src"
    given |= {"PYTHONPATH": f"{folder}{os.pathsep}{source}", **environment}
    return subprocess.run(
        [sys.executable, "-c", RUN], capture_output=True, text=True, env=given, check=True
    )


def test_where_nothing_can_be_kept_a_process_is_told_so_once(installed: Path) -> None:
    ran = run(installed)
    assert ran.stderr.count("CacheWarning: compiled code cannot be saved (no folder is") == 1
    assert list((installed / "temporary").iterdir()) == []


def test_every_module_loads_where_nothing_can_be_kept_beside_it(tmp_path: Path) -> None:
    source = Path(__file__).parents[1] / "src" / "leanrank"
    package = tmp_path / "leanrank"
    shutil.copytree(source, package, ignore=shutil.ignore_patterns("__pycache__"))
    for folder in [package, *(path for path in package.rglob("*") if path.is_dir())]:
        (folder / "__pycache__").write_text("a file, so that no folder of that name can be made")
    modules = [
        ".".join(path.relative_to(tmp_path).with_suffix("").parts)
        for path in sorted(package.rglob("*.py"))
        if "kernel" in path.read_text() and path.stem not in ("__init__", "__main__")
    ]
    (tmp_path / "temporary").mkdir()
    given = {name: value for name, value in os.environ.items() if not name.startswith("NUMBA")}
    given |= {"HOME": "/dev/null/x", "XDG_CACHE_HOME": "/dev/null/x"}
    given |= {"TMPDIR": str(tmp_path / "temporary"), "PYTHONPATH": str(tmp_path)}
    ran = subprocess.run(
        [sys.executable, "-c", f"import {', '.join(modules)}"],
        capture_output=True,
        text=True,
        env=given,
        check=False,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stderr.count("CacheWarning") == 1


def test_the_folder_that_the_user_names_comes_first(installed: Path) -> None:
    mine = installed / "mine"
    ran = run(installed, NUMBA_CACHE_DIR=str(mine))
    assert str(mine) in ran.stdout
    assert ran.stderr == ""
    assert list((installed / "temporary").iterdir()) == []


def test_two_first_runs_at_once(installed: Path) -> None:
    mine = str(installed / "mine")
    with ThreadPoolExecutor(2) as pool:
        runs = list(pool.map(lambda _: run(installed, NUMBA_CACHE_DIR=mine), range(2)))
    assert [ran.stderr for ran in runs] == ["", ""]
    assert run(installed, NUMBA_CACHE_DIR=mine).stdout[-2] == "1"  # the cache is whole


def test_a_disk_that_is_full_is_no_reason_to_stop(installed: Path) -> None:
    full = "def full(*_): raise OSError(28, 'No space')\ntwice._cache._cache_file.save = full\n"
    code = RUN.replace("assert", full + "assert")
    given = {**os.environ, "NUMBA_CACHE_DIR": str(installed / "mine")}
    given["PYTHONPATH"] = f"{installed}{os.pathsep}{Path(__file__).parents[1] / 'src'}"
    ran = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=given, check=True
    )
    assert "CacheWarning: compiled code cannot be saved (No space)" in ran.stderr


BLOCKED = """
import sys

class Blocker:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("numba", "llvmlite"):
            raise ImportError(name + " is blocked")

sys.meta_path.insert(0, Blocker())
import numpy as np
from leanrank import load_model
X = np.random.default_rng(0).normal(size=(200, 3))
qid = np.repeat(np.arange(40), 5)
for name in sys.argv[1:]:
    model = load_model(name)
    print(model.predict(X, qid=qid).sum(), model.rank(X, qid=qid).sum())
"""


def test_scoring_a_saved_model_needs_no_compiled_code(tmp_path: Path) -> None:
    from leanrank.data.scaling.normalizers import NORMALIZERS, make_normalizer
    from leanrank.model import Model

    X = np.random.default_rng(0).normal(size=(200, 3))
    qid = np.repeat(np.arange(40), 5)
    expected, files = [], []
    for kind in [None, *NORMALIZERS]:
        model = Model.from_coef([1.0, 0.0, -2.0])
        if kind is not None:
            model = model.replace(normalizer=make_normalizer(kind).fit(X).to_dict())
        files.append(str(tmp_path / f"{kind}.json"))
        model.save(files[-1])
        expected.append(f"{model.predict(X, qid=qid).sum()} {model.rank(X, qid=qid).sum()}")
    ran = subprocess.run(
        [sys.executable, "-c", BLOCKED, *files], capture_output=True, text=True, check=False
    )
    assert ran.stderr == ""
    assert ran.stdout.splitlines() == expected


@pytest.mark.parametrize("wanted", [True, False])
def test_garbage_collection_pauses_while_compiling(wanted: bool) -> None:
    seen = []

    class Passes(event.Listener):
        def on_start(self, event: event.Event) -> None:
            seen.append(gc.isenabled())

        def on_end(self, event: event.Event) -> None:
            pass

    before = gc.isenabled()
    (gc.enable if wanted else gc.disable)()
    try:
        with event.install_listener("numba:run_pass", Passes()):
            assert numba.njit(lambda x: x + 1.0)(2.0) == 3.0
        with pytest.raises(numba.TypingError):
            numba.njit(lambda x: x.nothing)(2.0)
        after = gc.isenabled()
    finally:
        (gc.enable if before else gc.disable)()
    assert seen
    assert not any(seen)
    assert after is wanted


PREDICT = """
import sys
from leanrank._jit import compile_seconds
from leanrank.cli import main
for name in sys.argv[1:]:
    assert main(["predict", "m.json", name, "-o", "out.txt"]) == 0
    print(open("out.txt").read().split())
assert compile_seconds() == 0, compile_seconds()
"""


def test_predicting_from_tables_compiles_nothing(tmp_path: Path) -> None:
    from leanrank.data import dump
    from leanrank.data.ranking_data import RankingData
    from leanrank.data.scaling.normalizers import make_normalizer
    from leanrank.model import Model

    X = np.round(np.random.default_rng(0).normal(size=(60, 3)), 3)
    X[np.abs(X) < 0.7] = 0.0
    model = Model.from_coef([1.0, 0.0, -2.0])
    model = model.replace(normalizer=make_normalizer("query-minmax").fit(X).to_dict())
    model.save(tmp_path / "m.json")
    data = RankingData(X, np.zeros(60), np.arange(60) // 9)
    names = ["a.csv", "a.parquet", "a.arrow"]
    for name in names:
        dump(data, tmp_path / name)
    given = {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "empty")}
    ran = subprocess.run(
        [sys.executable, "-c", PREDICT, *names],
        capture_output=True,
        text=True,
        env=given,
        cwd=tmp_path,
        check=False,
    )
    assert (ran.returncode, ran.stderr) == (0, "")
    expected = data.restore(model.predict(data)).tolist()
    for line in ran.stdout.splitlines():
        assert [float(word) for word in ast.literal_eval(line)] == expected
    assert not list((tmp_path / "empty").rglob("*.nbc"))
