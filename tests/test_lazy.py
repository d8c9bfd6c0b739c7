from __future__ import annotations

import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path
from types import ModuleType

import pytest

from leanrank._lazy import attach

HEAVY = ("numba", "scipy", "sklearn", "pandas", "polars", "pyarrow")


def _loaded_after(code: str) -> str:
    program = f"{code}\nimport sys\nprint(sorted(set({HEAVY!r}) & set(sys.modules)))"
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=True
    )
    return done.stdout.strip()


@pytest.mark.parametrize(
    "code",
    [
        "import leanrank",
        "import leanrank; dir(leanrank); leanrank.__version__",
        "import leanrank.rankers; leanrank.rankers.RANKERS",
        "import leanrank.errors, leanrank.execution, leanrank._files",
    ],
)
def test_importing_stays_light(code: str) -> None:
    assert _loaded_after(code) == "[]"


def test_the_probe_can_fail() -> None:
    assert "sklearn" in _loaded_after("from leanrank.rankers import RankRLS")


ROOMS = (
    "data",
    "metrics",
    "model",
    "model.export",
    "model.verify",
    "online",
    "plots",
    "report",
    "selection",
)


@pytest.mark.parametrize("name", ["leanrank", *(f"leanrank.{room}" for room in ROOMS)])
def test_every_public_name_of_a_package_loads(name: str) -> None:
    package = import_module(name)
    assert package.__all__
    for public in package.__all__:
        assert getattr(package, public) is not None
    assert set(package.__all__) - {"__version__"} <= set(dir(package))


@pytest.mark.parametrize("name", ["leanrank", *(f"leanrank.{room}" for room in ROOMS)])
def test_a_stub_lists_each_name_on_a_line_of_its_own(name: str) -> None:
    stub = Path(import_module(name).__file__ or "").with_suffix(".pyi").read_text(encoding="utf-8")
    assert re.fullmatch(r"(from [\w.]+ import (\w+) as \2(  # moved)?\n\n?)+", stub)


def test_names_load_once_and_from_where_they_are_defined(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    package = ModuleType("lazy_example")
    monkeypatch.setitem(sys.modules, "lazy_example", package)
    stub = "from math import sqrt as sqrt\nfrom json.decoder import JSONDecoder as JSONDecoder\n"
    (tmp_path / "__init__.pyi").write_text(stub, encoding="utf-8")
    load, listing, names = attach("lazy_example", str(tmp_path / "__init__.py"))
    import json.decoder
    import math

    assert load("sqrt") is math.sqrt
    assert package.sqrt is math.sqrt  # kept: the next access does not come back here
    assert load("JSONDecoder") is json.decoder.JSONDecoder
    assert listing() == names == ["JSONDecoder", "sqrt"]
    with pytest.raises(AttributeError, match="'lazy_example' has no attribute 'cube'"):
        load("cube")


def test_a_name_that_is_a_module_of_the_package_is_that_module() -> None:
    import leanrank
    import leanrank.errors

    load, _, _ = attach("leanrank", leanrank.__file__)
    assert load("errors") is leanrank.errors
