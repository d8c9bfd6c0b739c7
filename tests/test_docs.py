"""What the README and the guides show is what happens, and what they point to is there."""

import doctest
import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    done = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    for target in targets:
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_lists_every_ranker():
    from leanrank.rankers import RANKERS
    from leanrank.registry import classes

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    for name, ranker in RANKERS.items():
        assert f"`{ranker}` (`{name}`)" in readme
    table = readme.partition("## Systems")[2].partition("##")[0]
    assert set(re.findall(r"`([A-Z]\w+)`", table)) == set(classes())


def test_the_table_of_compared_systems_is_that_of_the_registry():
    from leanrank.selection import system_names

    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    table = page.partition("| name | what varies |")[2].partition("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    assert sorted(re.findall("`(.+?)`", "".join(first))) == sorted(system_names())


def test_the_index_lists_every_guide():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    guides = {page.name for page in PAGES if page.parent.name == "docs"} - {"index.md"}
    assert {name for name in guides if f"({name})" not in index} == set()
