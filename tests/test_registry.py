"""One table of systems: everything else follows from it, and a new ranker is one entry."""

import re
import sys
from pathlib import Path

import pytest

import leanrank
from leanrank import rankers
from leanrank.data import make_ranking
from leanrank.registry import SYSTEMS, Fits, Space, System, classes, ranker_names, register

PACKAGE = Path(leanrank.__file__).parent


@pytest.mark.parametrize("system", SYSTEMS.values(), ids=lambda system: system.name)
def test_entries_are_true_of_the_classes(system):
    kind = system.load()
    assert kind is getattr(rankers, system.ranker)
    assert system.title
    assert system.paper or system.space is None  # LinearRanker is of no paper
    if system.space is None:
        assert system.tuning is None
        return
    assert system.streams == hasattr(kind(), "partial_fit")
    assert system.cluster == kind._fits_on_cluster
    assert kind is rankers.get_ranker(system.space.ranker)
    has_path = not isinstance(system.space.sweep, Fits)
    if has_path:
        assert hasattr(kind, "path") or "n_features_to_select" in kind().get_params()
    assert has_path >= system.sparse_path


def static_names(file):
    """The names that a package gives to type checkers, and where they are."""
    stub = (PACKAGE / file).read_text(encoding="utf-8")
    return {name: module for module, name in re.findall(r"from (\S+) import (\w+) as", stub)}


def test_type_checkers_see_what_the_table_has():
    modules = {name: s.module for name, s in classes().items()}
    more = {"BaseRanker": ".base", "get_ranker": "leanrank.registry"}
    assert static_names("rankers/__init__.pyi") == {**modules, **more}
    moved = static_names("__init__.pyi")
    assert {name for name, module in moved.items() if module == ".rankers"} == set(modules)
    assert {"LeanRanker", "LinearRanker"} == set(modules) & set(leanrank.__all__)
    assert set(modules) <= set(rankers.__all__)


@pytest.mark.parametrize("name", sorted(set(classes()) - set(leanrank.__all__)))
def test_a_ranker_that_moved_says_where_it_is(name):
    assert name not in dir(leanrank)
    with pytest.warns(FutureWarning, match=f"import {name} from leanrank.rankers") as caught:
        moved = getattr(leanrank, name)
    assert moved is getattr(rankers, name)
    assert {each.filename for each in caught} == {__file__}


SCRATCH = """
from leanrank.rankers import RankRLS

class Scratch(RankRLS):
    \"\"\"A new ranker.\"\"\"
"""


def test_a_new_ranker_is_one_file_and_one_entry(tmp_path, monkeypatch, capsys):
    from leanrank.cli import main
    from leanrank.data import dump_letor
    from leanrank.report.studies import study_of_model
    from leanrank.selection import Split, fit_system, system_names, tune

    (tmp_path / "scratch_ranker.py").write_text(SCRATCH)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.chdir(tmp_path)
    space = Space("scratch", {}, {"alpha": (0.01, 1.0)})
    entry = System("scratch", "Scratch", "scratch_ranker", "Scratch Rank", "me", space, space)
    register(entry)
    try:
        data = make_ranking(n_queries=30, n_features=6, random_state=0)
        train, vali = data.queries[:20], data.queries[20:]
        assert ranker_names()["scratch"] == "Scratch"
        assert rankers.Scratch is rankers.get_ranker("scratch")
        assert "scratch" in system_names()
        assert fit_system("scratch", Split(train, vali)).n_trials == 2
        study = tune(train, vali, systems=["scratch"], trials=2)
        assert study.chosen.algorithm == "scratch"
        model = rankers.Scratch(alpha=0.5).fit(train).to_model()
        assert study_of_model(model, train, vali).chosen.parameters == {"alpha": 0.5}
        dump_letor(train, "train.txt")
        assert main(["train", "train.txt", "-a", "scratch", "-m", "m.json", "--json"]) == 0
        assert '"Scratch"' in Path("m.json").read_text()
    finally:
        del SYSTEMS["scratch"]
        sys.modules.pop("scratch_ranker", None)
    capsys.readouterr()
