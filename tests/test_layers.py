"""Layers are drawn as the contract has them, and what is private stays where it is."""

import ast
import re
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "src" / "leanrank"

FOREIGN = {"_getframe", "_cache", "_cache_file", "_load_index"}
"""Private names of Python and Numba that are used."""

TWINS = {"_data_and_labels", "_path"}
"""Methods that a ranker calls on a copy of itself."""

OF_RANKERS = {
    "_constraints", "_count_queries", "_first_entry", "_fits_on_cluster", "_make_problem",
    "_make_solver", "_slow_unscaled", "_solve", "_solve_path", "_state_type", "_takes_nan",
    "_takes_unlabeled", "_takes_validation", "_used_with", "_with_margins",
}  # fmt: skip
"""What rankers tell other modules of the package, but not users."""


@pytest.fixture(scope="module")
def modules():
    return {path: ast.parse(path.read_text(encoding="utf-8")) for path in PACKAGE.rglob("*.py")}


def test_the_drawing_of_the_layers_is_the_contract():
    guide = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
    drawing = re.search(r"## The layers.*?```\n(.*?)```", guide, re.DOTALL)
    drawn = [set(re.split(r"\s{2,}", line)[0].split(" | ")) for line in drawing[1].splitlines()]
    settings = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    (contract,) = settings["tool"]["importlinter"]["contracts"]
    layers = [set(layer.replace("leanrank.", "").split(" | ")) for layer in contract["layers"]]
    assert drawn == layers
    rooms = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert set.union(*layers) == rooms - {"__init__", "__main__", "__pycache__"} | {"papers"}


def test_no_private_name_is_imported_from_another_room(modules):
    found = []
    for path, tree in modules.items():
        room = path.relative_to(PACKAGE).parts[0]
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or not node.module:
                continue
            top, *inner = node.module.split(".")
            if top != "leanrank" or not inner or inner[0] == room or inner[0] == path.stem:
                continue
            names = [*inner[1:], *(alias.name for alias in node.names)]
            if any(map(_private, names)):
                found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert not found


def test_no_private_attribute_of_another_class_is_used(modules):
    found = []
    for path, tree in modules.items():
        nodes = list(ast.walk(tree))
        own = {node.name for node in nodes if isinstance(node, ast.FunctionDef)}
        own |= {node.target.id for node in nodes if _is_field(node)}
        uses = [node for node in nodes if isinstance(node, ast.Attribute) and _private(node.attr)]
        own |= {node.attr for node in uses if _is_self(node.value)}
        for node in uses:
            if not _is_self(node.value) and node.attr not in own | FOREIGN | TWINS | OF_RANKERS:
                found.append(f"{path}:{node.lineno}: {ast.unparse(node)}")
    assert not found


def _private(name):
    tuples = ("_replace", "_asdict", "_fields", "_make")  # public methods of named tuples
    return name.startswith("_") and not name.startswith("__") and name not in tuples


def _is_self(value):
    if isinstance(value, ast.Call):
        return isinstance(value.func, ast.Name) and value.func.id == "super"
    return isinstance(value, ast.Name) and value.id in ("self", "cls")


def _is_field(node):
    return isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
