"""What the README and the guides show is what happens, and what they point to is there."""

import doctest
import importlib
import re
import runpy
import shlex
import subprocess
import sys
from inspect import signature
from pathlib import Path

import pytest

from leanrank.rankers import RankSVM
from leanrank.registry import classes

ROOT = Path(__file__).parent.parent
SITE = runpy.run_path(str(ROOT / "scripts" / "docs_site.py"))
PAGES = sorted([*ROOT.glob("*.md"), *(ROOT / "docs").rglob("*.md")])


WITH_EXAMPLES = [page for page in PAGES if ">>> " in page.read_text(encoding="utf-8")]


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_run(page):
    flags = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE
    done = doctest.testfile(str(page), module_relative=False, optionflags=flags)
    assert done.attempted > 0
    assert done.failed == 0


@pytest.mark.slow
def test_start_can_be_typed_from_top_to_bottom(tmp_path, monkeypatch):
    pytest.importorskip("duckdb")
    monkeypatch.chdir(tmp_path)
    page = (ROOT / "docs" / "start.md").read_text(encoding="utf-8")
    names = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        typed = [each.source for each in doctest.DocTestParser().get_examples(block)]
        exec("".join(typed) or block, names)
    commands = re.findall(r"^leanrank (.+)$", page, re.MULTILINE)
    assert [words.split()[0] for words in commands[-2:]] == ["verify", "tune"]
    for words in commands:
        quick = shlex.split(words.replace("--budget 60s", "--trials 2"))
        subprocess.run([sys.executable, "-m", "leanrank", *quick], check=True)
    assert {"report.html", "model.json", "scores.txt", "score.sql", "other.json"} <= {
        each.name for each in tmp_path.iterdir()
    }


@pytest.mark.parametrize("page", WITH_EXAMPLES, ids=lambda page: str(page.relative_to(ROOT)))
def test_examples_are_code_on_the_site(page):
    prose = re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL | re.M)
    assert ">>> " not in prose, "put the example between ```python and ```"


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    targets = re.findall(r"\]\(([^)\s#]+)[^)]*\)", page.read_text(encoding="utf-8"))
    for target in targets:
        if not target.startswith(("http:", "https:")):
            assert (page.parent / target).exists(), f"{page.name} links to {target}"


def test_the_readme_is_short_and_its_figures_are_measured():
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert len(readme.splitlines()) < 140
    rows = SITE["headlines"]("README").splitlines()[2:]
    assert 3 <= len(rows) <= 9
    assert all("{" not in row and row.endswith("` |") for row in rows)
    systems = SITE["large"]("README").splitlines()[2:]
    for row in systems:
        _, _, _, seconds, quality, _, _ = row.split("|")
        assert re.fullmatch(r" [\d.]+ s ", seconds)
        assert 0 < float(quality) < 1
    assert sum(row.endswith("` |") for row in systems) * 2 == len(systems)


def test_figures_that_are_not_there_name_their_command():
    text = SITE["figures"]("pairwise-no-such-part")
    assert "`python -m benchmarks pairwise --only no-such-part`" in text


WITH_FIGURES = [page for page in PAGES if page.name not in ("CHANGELOG.md", "CONTRIBUTING.md")]
MEASURED = re.compile(r"\d ×(?! [\d\w])|\d m?s\b(?! of)|\d times (?:as|faster|slower)")


@pytest.mark.parametrize("page", WITH_FIGURES, ids=lambda page: str(page.relative_to(ROOT)))
def test_times_and_ratios_come_from_figures(page):
    text = re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
    typed = MEASURED.findall(SITE["MARKER"].sub("", text))
    assert typed == [], "measure it, and publish it from docs/figures"


def test_the_table_of_compared_systems_is_that_of_the_registry():
    from leanrank.selection import system_names

    page = (ROOT / "docs" / "compare.md").read_text(encoding="utf-8")
    table = page.partition("| name | what varies |")[2].partition("\n\n")[0]
    first = [line.split("|")[1] for line in table.splitlines() if line.startswith("|")]
    assert sorted(re.findall("`(.+?)`", "".join(first))) == sorted(system_names())


def test_the_index_lists_every_guide():
    index = (ROOT / "docs" / "index.md").read_text(encoding="utf-8")
    guides = {page.name for page in PAGES if page.parent == ROOT / "docs"} - {"index.md"}
    assert {name for name in guides if f"({name})" not in index} == set()


def test_the_site_has_every_page():
    config = (ROOT / "mkdocs.yml").read_text(encoding="utf-8")
    listed = set(re.findall(r"(\S+\.md)$", config.partition("\nnav:")[2], re.MULTILINE))
    docs = ROOT / "docs"
    written = {page.relative_to(docs).as_posix() for page in PAGES if docs in page.parents}
    made = SITE["reference_pages"]() | SITE["root_pages"]()
    of_classes = {page for page in made if page.count("/") == 2}  # found from their rooms
    assert "reference/rankers/LeanRanker.md" in of_classes
    assert listed == (written | set(made)) - of_classes


SECTIONS = ["Idea", "Objective", "When to use it", "Parameters", "Paper", "Measured"]


@pytest.mark.parametrize("system", classes().values(), ids=lambda system: system.ranker)
def test_every_system_has_a_page_in_the_common_order(system):
    page = ROOT / "docs" / "systems" / f"{system.name}.md"
    assert page.exists(), f"{system.ranker} has no page: write docs/systems/{system.name}.md"
    text = page.read_text(encoding="utf-8")
    assert re.findall(r"^## (.+)$", text, re.MULTILINE) == SECTIONS
    assert f"<!-- system: {system.name} -->" in text
    assert f"<!-- parameters: {system.ranker} -->" in text
    for kind, argument, _ in SITE["MARKER"].findall(text):
        assert SITE["KINDS"][kind](argument)


def test_a_table_of_parameters_is_that_of_the_docstring():
    text = SITE["parameters"]("RankSVM")
    assert "| `alpha` | `0.01` | Strength of the penalty |" in text
    assert text.count("\n| `") == len(signature(RankSVM).parameters)


def test_the_reference_has_every_public_name():
    import leanrank

    pages = SITE["reference_pages"]()
    rooms = {f"leanrank.{name}" for name in leanrank.__all__ if f"leanrank.{name}" in SITE["ROOMS"]}
    modules = {f"leanrank.{m}" for m in leanrank.__all__ if type(getattr(leanrank, m)) is type(re)}
    assert modules - {"leanrank.registry"} == rooms
    for module, page in SITE["ROOMS"].items():
        text = pages[f"reference/{page}.md"]
        for name in set(importlib.import_module(module).__all__) - {"__version__"}:
            assert re.search(rf"(::: |`){module}\.{name}\b", text), f"{module}.{name}"
    lean = pages["reference/rankers/LeanRanker.md"]
    assert "members: [fit, predict, rank, score, explain, resized" in lean
    assert "slow_unscaled" not in lean
    everything = "\n".join(pages.values())
    entries = re.findall(r"^::: (\S+)$", everything, re.MULTILINE)
    assert len(entries) == len(set(entries))
    for link in re.findall(r"\]\[(\S+)\]", everything):
        assert link in entries or link.rpartition(".")[0] in entries


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_kept_tables_are_those_of_the_figures(page):
    text = page.read_text(encoding="utf-8")
    assert SITE["fill"](text, kept_only=True) == text, "run python scripts/docs_site.py"


@pytest.mark.parametrize(
    "file", sorted((ROOT / "docs" / "figures").glob("*.json")), ids=lambda f: f.stem
)
def test_published_figures_say_where_they_come_from(file):
    record = SITE["load_figures"](file.stem)
    assert record["quick"] is False
    assert re.fullmatch(r"20\d\d-\d\d-\d\d", record["date"])
    assert re.fullmatch(r"[0-9a-f]{7,}", record["commit"])
    assert record["about"]
    assert record["command"]
    assert record["machine"]
    assert all(table["rows"] for table in record["tables"])


def test_what_a_site_loads_from_elsewhere_is_found(tmp_path):
    (tmp_path / "a.html").write_text(
        '<script src="https://x.org/a.js"></script><a href="https://y.org">link</a>'
        '<link href="//x.org/b.css" rel="stylesheet"><img src="b.png">'
        '<link rel="canonical" href="https://z.org/">'
        '<a href="https://g.org/r" class="md-source" data-md-component="source">stars</a>'
    )
    (tmp_path / "a.css").write_text("@import 'https://x.org/c.css'; a { background: url(b.png) }")
    found = {url for _, url in SITE["foreign_assets"](tmp_path)}
    styles = {"//x.org/b.css", "https://x.org/c.css"}
    assert found == {"https://x.org/a.js", *styles, "https://g.org/r"}


def test_formulas_are_mathml_in_a_line_and_on_lines_of_their_own():
    pytest.importorskip("latex2mathml")
    text = SITE["formulas"]("the sum\n$`\\sum_i u_i`$ of `$x` and `y$`\n\n$$\nx^2\n$$\n")
    assert text.startswith("the sum\n<span><math")
    assert text.count("<math") == 2
    assert "</math></span> of `$x` and `y$`\n\n<div" in text
    assert "$$" not in text
    assert "\\sum" not in text


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_formulas_are_typeset(page):
    text = re.sub(r"```.*?```|\$\$.*?\$\$|`[^`]*`", "", page.read_text("utf-8"), flags=re.DOTALL)
    assert re.findall(r"\w[_^][{(]\S+|Σ_\w", text) == [], "write it as $`…`$"


def test_a_tag_needs_a_change_log_without_loose_entries():
    pending = runpy.run_path(str(ROOT / "scripts" / "check_dist.py"))["pending"]
    assert not pending("# Log\n\n## Unreleased\n\n## 0.1.0\n\n### Added\n- one\n")
    assert pending("# Log\n\n## Unreleased\n\n### Added\n- one\n\n## 0.1.0\n")


def test_sessions_of_docstrings_are_shown_as_code():
    fenced = SITE["fence_examples"]
    session = [">>> 1 + 1", "2"]
    assert fenced(["Words.", "", *session]) == ["Words.", "", "```pycon", *session, "```"]
    once = ["```python", *session, "", *session, "```"]
    assert fenced(once) == once
    assert fenced([*session, "", "More."]) == ["```pycon", *session, "```", "", "More."]


def test_the_sql_of_the_readme_ranks():
    duckdb = pytest.importorskip("duckdb")
    from leanrank import LeanRanker
    from leanrank.data import load_sample, to_frame

    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    query = re.findall(r"```sql\n(.+?)\n```", readme, re.DOTALL)[0]
    train, _, test = load_sample()
    model = LeanRanker(max_features=2, max_pairs=0).fit(train).model_
    base = duckdb.connect()
    base.register("documents", to_frame(test, "pyarrow"))
    base.execute(model.export("sql:duckdb"))
    found = base.execute(query).fetchall()
    at = [column[0] for column in base.description].index("leanrank_score")
    one = test.queries[[test.query_ids.tolist().index("q161")]]
    best = sorted(model.predict(one).tolist(), reverse=True)[:10]
    assert [row[at] for row in found] == best


def test_the_picture_of_the_demo_is_what_it_prints(tmp_path, monkeypatch):
    from leanrank.cli import screen

    monkeypatch.setattr(screen, "screen", screen.screen)  # which the script replaces
    main = runpy.run_path(str(ROOT / "scripts" / "make_demo_image.py"))["main"]
    main(tmp_path / "demo.svg")
    files = (tmp_path / "demo.svg", ROOT / "docs" / "images" / "demo.svg")
    drawn, shown = (re.findall(r">([^<]+)</text>", file.read_text("utf-8")) for file in files)
    assert len(shown) > 50
    assert drawn == shown
