"""What the pages of the site take from the code and from measured figures.

A page has markers such as ``<!-- parameters: DominationRanker -->``; each becomes a table when the
site is built (``make docs``; MkDocs calls the functions ``on_…``). A marker that is followed by a
table and ``<!-- end -->`` keeps it in the page, for readers of the file; after figures in
``docs/figures`` have changed, ``python scripts/docs_site.py`` writes those tables again.
"""

from __future__ import annotations

import base64
import html
import importlib
import inspect
import json
import os
import re
import sys
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Any

from leanrank.registry import CAPABILITIES, SYSTEMS, System, classes, ranker_names, shown

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
MARKER = re.compile(
    r"<!-- (\w+): ([^\n]+?) -->(\n(?:(?:(?!<!-- )[^\n]*)\n)*<!-- end -->)?", re.DOTALL
)
ROOMS = {
    "leanrank.rankers": "rankers",
    "leanrank.data": "data",
    "leanrank.metrics": "metrics",
    "leanrank.selection": "selection",
    "leanrank.online": "online",
    "leanrank.model": "model",
    "leanrank.model.export": "export",
    "leanrank.model.verify": "verify",
    "leanrank.plots": "plots",
    "leanrank.report": "report",
    "leanrank.checks": "checks",
    "leanrank.errors": "errors",
    "leanrank": "index",
}
"""The public modules, and their pages below ``reference``."""
EXTENDING = (
    "leanrank.losses.get_loss",
    "leanrank.losses.base.Loss",
    "leanrank.losses.base.Labels",
    "leanrank.losses.base.Plan",
    "leanrank.penalties.base.Penalty",
    "leanrank.solvers.base.Solver",
    "leanrank.solvers.base.Solution",
    "leanrank.problem.base.Problem",
    "leanrank.designs.base.Design",
    "leanrank.registry.System",
    "leanrank.registry.register",
)
"""The base classes of what you can write yourself."""


# Tables of the code


def system(name: str) -> str:
    """List what the registry knows about a system."""
    one = SYSTEMS[name]
    same = [other for other in SYSTEMS.values() if other.ranker == one.ranker]
    compared_as = [f"`{other.name}`" for other in same if other.space is not None]
    facts = {
        "class": f"[`leanrank.rankers.{one.ranker}`]({_reference(one.ranker)})",
        "command line": f"`-a {one.name}`" if one.name in ranker_names() else "",
        "compared as": ", ".join(compared_as),
        "published": one.paper,
    } | {
        title: next(filter(None, (shown(other, able) for other in same)), "")
        for able, title in CAPABILITIES.items()
    }
    return " · ".join(f"**{key}** {value}" for key, value in facts.items() if value)


def parameters(ranker: str) -> str:
    """List the parameters of a class, as ``leanrank systems`` does."""
    from leanrank import rankers
    from leanrank.cli.systems import describe

    rows = []
    for parameter in describe(getattr(rankers, ranker)):
        default = parameter["default"]
        text = "" if default is inspect.Parameter.empty else f"`{default!r}`"
        rows.append((f"`{parameter['name']}`", text, parameter["meaning"]))
    more = f"In full, with all methods: [`{ranker}`]({_reference(ranker)})."
    return table(("parameter", "default", "meaning"), rows) + f"\n\n{more}"


def systems(which: str) -> str:
    """List all systems, with a link to the page of each."""
    rows = [
        (
            f"[`{name}`]({one.name}.md)",
            one.title,
            one.paper,
            *(shown(one, able) for able in CAPABILITIES),
        )
        for name, one in reversed(classes().items())
    ]
    return table(("class", "system", "published", *CAPABILITIES.values()), rows)


def _reference(ranker: str) -> str:
    return f"../reference/rankers/{ranker}.md"


# Tables of measured figures


def load_figures(name: str) -> dict[str, Any]:
    """Read the figures that a benchmark left."""
    record: dict[str, Any] = json.loads((DOCS / "figures" / f"{name}.json").read_text("utf-8"))
    return record


FAMILIES = {
    "leaderboard": "Beside trees, on public sets",
    "flagship": "LeanRanker as it comes",
    "pairs": "Pairs of features",
    "curves": "Curves",
    "compare": "All systems, five folds",
    "domination": "Domination Rank",
    "pairwise": "Pairwise rankers",
    "greedy": "Greedy RankRLS",
    "stochastic": "Learning by steps",
    "tune": "Searching",
    "selection": "Cross-validation",
    "fuse": "Hybrid search",
    "loading": "Reading files",
    "metrics": "Measuring",
    "engines": "Exports in real engines",
    "service": "A ranker in service",
    "online": "Live traffic",
    "scale": "Larger than memory, and on a cluster",
    "startup": "Starting",
    "reproduce": "The papers, run again",
}
"""Benchmarks in the order of the page, and what each is about."""
BARS = {
    "leaderboard": ("system", "NDCG@10 − ours", 3),
    "curves-speed": ("contestant", "processor", 1),
    "curves-scoring": ("model", "time", 1),
    "domination-dense": ("contestant", "time", 1),
    "loading": ("reader", "time", 1),
    "metrics": ("contestant", "evaluating", 1),
    "scale-peers": ("contestant", "fit", 1),
    "startup": ("start", "processor", 2),
}
"""What is drawn: by file the column of names, that of figures, and how many tables."""
SCALES = {"µs": 1e-6, "ms": 1e-3, "s": 1.0, "×": 1.0}


def all_figures(folder: str) -> str:
    """Write all figures, a heading per benchmark, bars that can be drawn, tables to unfold."""
    parts = []
    files = sorted((ROOT / folder).glob("*.json"))
    order = [*FAMILIES, *sorted({file.stem.partition("-")[0] for file in files} - set(FAMILIES))]
    for family in order:
        mine = [file.stem for file in files if file.stem.partition("-")[0] == family]
        if mine:
            parts.append(f"## {FAMILIES.get(family, family)}")
        for name in mine:
            record = load_figures(name)
            most = BARS[name][2] if name in BARS else 0
            for each in record["tables"][:most]:
                parts += [f"**{each['title']}**", chart(name, each["rows"])]
            tables = [source(record)]
            for each in record["tables"]:
                tables += [f"**{each['title']}**", _figures_table(each), each["note"]]
            inside = "\n\n".join(part for part in tables if part).replace("\n", "\n    ")
            title = record["tables"][0]["title"].replace('"', "'")
            parts.append(f'??? note "{title}"\n\n    {inside}')
    return "\n\n".join(parts)


def chart(name: str, rows: Sequence[dict[str, Any]]) -> str:
    """Draw a table as its benchmark is drawn."""
    names, figure, _ = BARS[name]
    return (intervals if "−" in figure else bars)(rows, names, figure)


def bars(rows: Sequence[dict[str, Any]], names: str, figure: str) -> str:
    """Draw figures as bars from zero; what is not a number has none."""
    sizes = [_size(row.get(figure, "")) for row in rows]
    most = max(sizes, default=0.0) or 1.0
    lines = []
    for row, size in zip(rows, sizes, strict=True):
        name, shown = (html.escape(_figure(row.get(key, ""))) for key in (names, figure))
        lines.append(
            f'<div><span>{name}</span><b><i style="width:{100 * size / most:.1f}%"></i></b>'
            f"<em>{shown}</em></div>"
        )
    return f'<div class="bars" role="img" aria-label="{figure}">{"".join(lines)}</div>'


INTERVAL = re.compile(r"([+-][\d.]+) ± ([\d.]+)")


def intervals(rows: Sequence[dict[str, Any]], names: str, figure: str) -> str:
    """Draw differences to ours with intervals of two standard errors around a line at zero."""
    found = {_figure(row[names]): INTERVAL.match(str(row.get(figure, ""))) for row in rows}
    pairs = {name: (float(m[1]), float(m[2])) for name, m in found.items() if m is not None}
    # a contestant far away from all others does not set the scale
    ends = sorted(max(abs(d - 2 * e), abs(d + 2 * e)) for d, e in pairs.values())
    most = ends[-2] if len(ends) > 1 else ends[-1]

    def place(value: float) -> float:
        return 50 + 50 * min(1.0, max(-1.0, value / most))

    lines = []
    for name, (difference, error) in pairs.items():
        left, right = place(difference - 2 * error), place(difference + 2 * error)
        lines.append(
            f"<div><span>{html.escape(name)}</span>"
            f'<b class="line"><i style="left:{left:.1f}%;width:{right - left:.1f}%"></i>'
            f'<u style="left:{place(difference):.1f}%"></u></b>'
            f"<em>{difference:+.4f}</em></div>"
        )
    legend = f"{figure}, ± two standard errors; right of the line: better than LeanRanker()"
    if ends[-1] > most:
        legend += "; what lies beyond an edge is drawn at it"
    return (
        f'<div class="bars" role="img" aria-label="{figure}">{"".join(lines)}'
        f"<div><span></span><small>{legend}</small></div></div>"
    )


def _size(value: Any) -> float:
    """Return the number that a cell begins with, times its unit.

    >>> _size("1.5 ms ±3%"), _size("12 ×"), _size("–")
    (0.0015, 12.0, 0.0)
    """
    found = re.match(r"([\d.,]+)\s*(\S*)", str(value))
    if found is None:
        return 0.0
    return float(found[1].replace(",", "")) * SCALES.get(found[2], 1.0)


def figures(which: str) -> str:
    """Write the tables that a benchmark left, or say by which command they would be measured.

    A number after the name is how many of them, from the first.
    """
    name, _, most = which.partition(" ")
    if not (DOCS / "figures" / f"{name}.json").exists():
        return f"Not measured for this version yet: `{_command(name)}`."
    record = load_figures(name)
    parts = [source(record)]
    for at, each in enumerate(record["tables"][: int(most) if most else None]):
        drawn = chart(name, each["rows"]) if name in BARS and at < BARS[name][2] else ""
        parts += [f"**{each['title']}**", drawn, _figures_table(each)]
        if each["note"] != (record["tables"][at + 1 :] or [{}])[0].get("note"):
            parts.append(each["note"])  # of several tables, once
    return "\n\n".join(part for part in parts if part)


def _command(name: str) -> str:
    benchmark, _, part = name.partition("-")
    return f"python -m benchmarks {benchmark}" + f" --only {part}" * bool(part)


WALL, TIME = ("wall", "NDCG@10"), ("time", "held_out_ndcg10")
LARGE = {
    "curves, which suits us": {
        "LightGBM, 100 trees": ("flagship-time", "a truth of curves & LightGBM", WALL),
        "`LeanRanker()`, which chooses everything": (
            "flagship-time",
            "a truth of curves & LeanRanker()",
            WALL,
        ),
    },
    "curves and pairs, which suits trees": {
        "LightGBM, 100 trees": ("flagship-time", "a truth with curves & LightGBM", WALL),
        "`LeanRanker()`, which chooses everything": (
            "flagship-time",
            "a truth with curves & LeanRanker()",
            WALL,
        ),
    },
    "curves, one thread": {
        "LightGBM, 100 trees": ("curves-speed", "LightGBM", WALL),
        "curves, 0.01·alpha_max, to a gap of 1e-6": (
            "curves-speed",
            "curves, alpha = 0.01",
            WALL,
        ),
    },
    "lines, which suits us": {
        "LightGBM, 100 trees": ("domination-dense", "LightGBM", TIME),
        "Domination Rank, 0.01·alpha_max, to a gap of 1e-6": (
            "domination-dense",
            "DominationRanker",
            TIME,
        ),
    },
}
"""The README's table of a large set: by truth and system the file, the row and its columns."""
HEADLINES = {
    "Scoring 1,000 documents: 100 LightGBM trees ÷ lines": (
        "curves-scoring",
        "{LightGBM|beside lines}",
    ),
    "Scoring 1,000 documents: curves ÷ lines": ("curves-scoring", "{curves|beside lines}"),
    "Reading 200 MB of LETOR text, one thread: scikit-learn ÷ leanrank": (
        "loading",
        "{leanrank, 1 thread|× scikit-learn} ×",
    ),
    "Reading 200 MB of LETOR text: scikit-learn ÷ XGBoost": (
        "loading",
        "{XGBoost DMatrix|× scikit-learn} ×",
    ),
    "Domination Rank on MQ2008 to 1e-6: the paper's algorithm ÷ Newton": (
        "domination-paper",
        "{MQ2008 & 0.01|ratio, paper}",
    ),
    "RankSVM on OHSUMED to 1e-6: `LinearSVC` on listed pairs ÷ ours": (
        "pairwise-expanded",
        "{OHSUMED & 0.001 & 1e-06|times} ×",
    ),
    "Published experiments of Greedy RankRLS on MQ2008, run again": (
        "reproduce-pahikkala2010",
        "{pahikkala2010|result}",
    ),
}
"""Other figures of the README: what, from which file, and which cells, as {row|column}."""
HOLE = re.compile(r"\{([^|{}]+)\|([^{}]+)\}")


def large(which: str) -> str:
    """Write the table of a large set, one row per system."""
    rows = []
    for truth, contestants in LARGE.items():
        for at, (contestant, (name, row, columns)) in enumerate(contestants.items()):
            record = load_figures(name)
            time, quality = (_cell(record, row, column) for column in columns)
            if time.endswith(" ms"):  # one unit in a column
                time = f"{float(time.removesuffix(' ms')) / 1000:.3g} s"
            once = ("", "") if at else (truth, _by(record))
            rows.append([once[0], contestant, time, quality, once[1]])
    return table(("truth", "system", "time to fit", "NDCG@10", "measured by"), rows)


def headlines(which: str) -> str:
    """Write the other figures of the README, as far as its figures have been measured."""
    rows = []
    for what, (name, cells) in HEADLINES.items():
        if (DOCS / "figures" / f"{name}.json").exists():
            record = load_figures(name)
            rows.append([what, _with_cells(cells, record), _by(record)])
    return table(("what", "figure", "measured by"), rows)


def _by(record: dict[str, Any]) -> str:
    return f"`{record['command'].removeprefix('python -m benchmarks ')}`, `{record['commit']}`"


FRONT = ("LeanRanker", "LightGBM", "additive LightGBM", "XGBoost", "CatBoost", "best single")
"""Who is shown on the front page."""


def front(set_name: str) -> str:
    """Write the part of the leaderboard that the README shows."""
    if not (DOCS / "figures" / "leaderboard.json").exists():
        return f"Not measured for this version yet: `{_command('leaderboard')}`."
    record = load_figures("leaderboard")
    each = next(one for one in record["tables"] if one["title"].startswith(set_name))
    rows = [
        {key: cell for key, cell in row.items() if "−" not in key}
        for row in each["rows"]
        if row["system"].startswith(FRONT)
    ]
    about = (
        f"{each['title']}. p: paired test of NDCG@10 against `LeanRanker()`. Seconds are processor "
        f"time and include choosing: trees have twelve settings. `{record['command']}`, commit "
        f"`{record['commit']}`."
    )
    return f"{_figures_table({'rows': rows})}\n\n{about}"


def _with_cells(text: str, record: dict[str, Any]) -> str:
    return HOLE.sub(lambda found: _cell(record, *found.groups()), text)


def _cell(record: dict[str, Any], row: str, column: str) -> str:
    """Return a figure of the first row of which some cell, or a part of the title, begins so."""
    for each in record["tables"]:
        titles = each["title"].split(", ")
        for cells in each["rows"]:
            values = [*map(str, cells.values()), *titles]
            if all(any(v.startswith(w) for v in values) for w in row.split(" & ")):
                return _figure(cells[column]).rstrip("°")
    raise LookupError(f"{record['benchmark']} has no row {row!r}")


def comparison(set_name: str) -> str:
    """Write the comparison of all systems on one set, the best of each column in bold."""
    each = _compared_set(set_name)
    best = _best(each["rows"])
    rows = [
        {key: f"**{text}**" if text == best.get(key) else text for key, text in row.items()}
        for row in each["rows"]
    ]
    return _figures_table({"rows": rows})


def compared(names: str) -> str:
    """Write the rows of some systems in the comparison of all, beside the best of each column."""
    record = load_figures("compare")
    rows = []
    for each in record["tables"]:
        kept = [row for row in each["rows"] if row["name"] in names.split()]
        rows += [{"set": each["title"], **row} for row in kept]
        rows.append({"set": each["title"], "system": "*best of all*", **_best(each["rows"])})
    return f"{_figures_table({'rows': rows})}\n\n{MARKS} {source(record)}"


MARKS = "°: worse than the best of its column, p < 0.05 ([how it is tested](../compare.md))."
PAIRS = (
    "ranksvm ranksvm-l1 ranksvm-query ranksvm-hinge fenchelrank sparserank nonconvex ranknet "
    "rankboost"
)
NEEDS: dict[str, Callable[[System], bool]] = {
    "to learn from preferences without labels": lambda one: one.name in PAIRS.split(),
    "an exact fit of plain weights on a cluster": lambda one: one.cluster,
    "to learn from a stream, document by document": lambda one: one.streams,
}
"""What a user may need beside ``LeanRanker``, and which systems can do it."""


def decision(which: str) -> str:
    """Order systems by how often they are worse than the best, then by their features.

    ``which``: "needs" takes the first that can do what is needed; "all" lists them all.
    """
    first, second = (
        {row["name"]: row for row in each["rows"]} for each in load_figures("compare")["tables"]
    )
    worse = {
        name: sum("°" in text for row in (first[name], second[name]) for text in row.values())
        for name in first
    }
    used = {name: float(first[name]["used"]) + float(second[name]["used"]) for name in first}
    order = sorted(first, key=lambda name: (worse[name], used[name]))

    def cells(name: str) -> list[Any]:
        pairs = [f"{first[name][key]}&nbsp;·&nbsp;{second[name][key]}" for key in ("used", "MAP")]
        return [_page_of(name, first[name]["system"]), f"{worse[name]}&nbsp;of&nbsp;14", *pairs]

    heads = ["system", "worse in", "features", "MAP"]
    if which == "all":
        has = {name: SYSTEMS[name] for name in order if name in SYSTEMS}
        rows = [
            [
                *cells(name),
                *(shown(has[name], able) if name in has else "" for able in CAPABILITIES),
            ]
            for name in order
        ]
        return table([*heads, *CAPABILITIES.values()], rows)
    ours = [SYSTEMS[name] for name in order if name in SYSTEMS]
    rows = [[need, *cells(next(filter(can, ours)).name)] for need, can in NEEDS.items()]
    return table(["you need", *heads], rows)


def _page_of(name: str, title: str) -> str:
    pages = {one.ranker: one.name for one in classes().values()}
    return f"[{title}](systems/{pages[SYSTEMS[name].ranker]}.md)" if name in SYSTEMS else title


def _compared_set(name: str) -> dict[str, Any]:
    found: dict[str, Any] = next(
        each for each in load_figures("compare")["tables"] if each["title"] == name
    )
    return found


def _best(rows: Sequence[dict[str, str]]) -> dict[str, str]:
    keys = [key for key in rows[0] if key not in ("name", "system", "used")]
    return {key: max(row[key].rstrip("°") for row in rows) for key in keys}


def _figures_table(each: dict[str, Any]) -> str:
    heads = list(dict.fromkeys(key for row in each["rows"] for key in row))
    if "system" in heads:
        heads = [head for head in heads if head != "name"]  # the system's own, for programs
    return table(heads, ([_figure(row.get(head, "")) for head in heads] for row in each["rows"]))


def _figure(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def source(record: dict[str, Any]) -> str:
    """Say which command gave figures, when, from which commit and on which machine."""
    machine = ", ".join(f"{key} {value}" for key, value in record["machine"].items())
    return f"`{record['command']}`, {record['date']}, commit `{record['commit']}`, {machine}."


def table(heads: Sequence[str], rows: Iterable[Sequence[Any]]) -> str:
    """Write a table in Markdown."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "\n".join(
        "| " + " | ".join(str(cell).replace("|", "\\|") for cell in row) + " |" for row in lines
    )


def notebook(path: str) -> str:
    """Write the cells of a notebook and what came out of them."""
    parts = []
    for cell in json.loads((ROOT / path).read_text("utf-8"))["cells"]:
        text = "".join(cell["source"])
        if cell["cell_type"] == "markdown":
            parts.append(re.sub(r"^#", "###", text, flags=re.MULTILINE))
            continue
        parts.append(f"```python\n{text}\n```")
        parts += [_output(one["data"]) for one in cell["outputs"] if "data" in one]
    return "\n\n".join(parts)


def _output(data: dict[str, Any]) -> str:
    if "image/svg+xml" in data:
        picture = base64.b64encode("".join(data["image/svg+xml"]).encode()).decode()
        return f'<img class="chart" alt="chart" src="data:image/svg+xml;base64,{picture}">'
    return "```text\n" + "".join(data["text/plain"]) + "\n```"


# Pages


KINDS = {
    kind.__name__: kind
    for kind in (
        system, parameters, systems, all_figures, figures, front, large, headlines, comparison,
        compared, decision, notebook,
    )
}  # fmt: skip


def fill(text: str, *, kept_only: bool = False) -> str:
    """Replace markers by their tables; ``kept_only``: those that keep theirs in the page."""

    def replace(found: re.Match[str]) -> str:
        kind, argument, old = found.groups()
        if kind not in KINDS or (kept_only and old is None):
            return found.group()
        written = KINDS[kind](argument)
        return f"<!-- {kind}: {argument} -->\n\n{written}\n\n<!-- end -->"

    return MARKER.sub(replace, text)


def reference_pages() -> dict[str, str]:
    """Write the pages of the reference: every public name once, at the first room that has it."""
    rooms = {module: importlib.import_module(module) for module in ROOMS}
    public = {
        module: {
            f"{module}.{name}": getattr(room, name)
            for name in sorted(set(room.__all__) - {"__version__"}, key=str.lower)
        }
        for module, room in rooms.items()
    }
    places: dict[int, str] = {}
    for names in public.values():
        for place, thing in names.items():
            places.setdefault(id(thing), place)
    pages = {}
    for module, names in public.items():
        links, modules, entries = [], [], []
        for place, thing in sorted(names.items(), key=lambda item: "LeanRanker" not in item[0]):
            if inspect.ismodule(thing):
                modules.append((f"[`{place}`]({ROOMS.get(place, 'extending')}.md)", _about(thing)))
                continue
            first = places[id(thing)]
            if first == place and (not inspect.isclass(thing) or module == "leanrank.errors"):
                entries.append(f"::: {place}")
                continue
            links.append((f"[`{place}`][{first}]", _about(thing)))
            if first == place:
                page = f"reference/{ROOMS[module]}/{place.rpartition('.')[2]}.md"
                pages[page] = _class_page(place, thing)
        listed = (("name", links), ("module", modules))
        tables = [table((head, "what"), rows) for head, rows in listed if rows]
        parts = [f"# {module}", _about(rooms[module]), *tables, *entries]
        pages[f"reference/{ROOMS[module]}.md"] = "\n\n".join(part for part in parts if part) + "\n"
    intro = "# Your own loss, penalty or solver\n\n[Contributing](../contributing.md) shows one.\n"
    pages["reference/extending.md"] = intro + "".join(f"\n::: {name}\n" for name in EXTENDING)
    return pages


def _about(thing: Any) -> str:
    """Return the first paragraph of a docstring, with its code as Markdown has it."""
    first = (inspect.getdoc(thing) or "").partition("\n\n")[0]
    return " ".join(first.replace("``", "`").split())


CALLED = (
    "fit", "predict", "rank", "score", "explain", "resized", "refit", "path", "alpha_max",
    "leave_query_out", "partial_fit", "fit_stream", "save", "to_model",
)  # fmt: skip
"""What a user calls on a ranker, first things first; its other methods follow by name."""


def _class_page(place: str, thing: Any) -> str:
    """Write the page of a class: its own methods and those that it inherits from ours."""
    names = [name for name in dir(thing) if not name.startswith("_")]
    if hasattr(thing, "set_fit_request"):
        methods = {name for name in names if callable(getattr(thing, name))}
        rest = sorted(name for name in methods.difference(CALLED) if not name.endswith("_request"))
        names = [*(name for name in CALLED if name in methods), *rest]
    shown = []
    for name in names:
        owner = next(base for base in thing.__mro__ if name in vars(base))
        method = vars(owner)[name]
        method = getattr(method, "fn", method)  # of scikit-learn's available_if
        ours = owner.__module__.startswith("leanrank")
        if ours and (owner is thing or inspect.isfunction(method)):
            shown.append(name)
    options = f"      inherited_members: true\n      members: [{', '.join(shown)}]\n"
    room, _, name = place.rpartition(".")
    back = f"In [`{room}`](../{ROOMS[room]}.md)."
    return f"# {name}\n\n{back}\n\n::: {place}\n    options:\n{options}"


def root_pages() -> dict[str, str]:
    """Take the pages that live beside the README."""
    return {
        f"{name.lower()}.md": (ROOT / f"{name}.md").read_text("utf-8").replace("](docs/", "](")
        for name in ("CONTRIBUTING", "SECURITY", "CHANGELOG", "CODE_OF_CONDUCT")
    }


# What MkDocs calls


def on_config(config: Any) -> Any:
    """Show examples of docstrings as code, and a choice of versions where mike builds several."""
    from markdown.extensions import Extension
    from markdown.preprocessors import Preprocessor

    class Fence(Preprocessor):
        def run(self, lines: list[str]) -> list[str]:
            return fence_examples(lines)

    class Examples(Extension):
        def extendMarkdown(self, md: Any) -> None:  # noqa: N802
            md.preprocessors.register(Fence(md), "examples", 40)  # before code is looked for

    config.markdown_extensions.append(Examples())
    if "MIKE_DOCS_VERSION" in os.environ:
        config.extra["version"] = {"provider": "mike", "default": ["latest", "dev"]}
    return config


def fence_examples(lines: Sequence[str]) -> list[str]:
    """Put a fence around lines of a Python session that have none.

    >>> fence_examples(["Words.", "", ">>> 1 + 1", "2", ""])
    ['Words.', '', '```pycon', '>>> 1 + 1', '2', '```', '']
    """
    out: list[str] = []
    fenced = opened = False
    for line in lines:
        if opened and not line.strip():
            out.append("```")
            opened = False
        elif line.lstrip().startswith("```") and not opened:
            fenced = not fenced
        elif line.startswith(">>> ") and not fenced and not opened:
            out.append("```pycon")
            opened = True
        out.append(line)
    return [*out, "```"] if opened else out


def on_page_content(html: str, page: Any, config: Any, files: Any) -> str:
    """Take away the dash after a parameter without explanation, and blanks around a hyphen."""
    html = html.replace("array - like", "array-like")  # read as a difference
    return re.sub(r'\s*–\s*<div class="doc-md-description">\s*</div>', "", html)


def on_files(files: Any, config: Any) -> Any:
    """Add the pages that are not files below ``docs``."""
    from mkdocs.structure.files import File

    for path, text in (reference_pages() | root_pages()).items():
        files.append(File.generated(config, path, content=text))
    return files


def on_page_markdown(markdown: str, page: Any, config: Any, files: Any) -> str:
    """Fill the markers of a page, and point links out of ``docs`` to where those pages are."""
    roots = r"\((?:\.\./)+(CONTRIBUTING|SECURITY|CHANGELOG|CODE_OF_CONDUCT)\.md"
    text = re.sub(roots, _to_root_page(page), markdown)
    # A session has prompts and outputs of its own kinds, which the copy button leaves out.
    text = re.sub(r"^```python\n(?=>>> )", "```pycon\n", fill(text), flags=re.MULTILINE)
    # A difference and its error stay on one line of a cell.
    text = re.sub(r"^ *\|.+$", lambda row: row[0].replace(" ± ", "&nbsp;±&nbsp;"), text, flags=re.M)
    return formulas(text)


def formulas(text: str) -> str:
    """Write formulas as MathML, which browsers set without a script.

    They are marked as on GitHub: ``$$`` around lines of their own, ``$`…`$`` within a line.
    """
    from latex2mathml.converter import convert

    def own_line(found: re.Match[str]) -> str:
        return f'<div class="formula">{convert(found[1], display="block")}</div>'

    text = re.sub(r"^\$\$\n(.+?)\n\$\$$", own_line, text, flags=re.MULTILINE | re.DOTALL)
    # in a span: at the start of a line, Markdown would take it for a block of its own
    return re.sub(r"\$`([^`]+)`\$", lambda found: f"<span>{convert(found[1])}</span>", text)


def _to_root_page(page: Any) -> Any:
    up = "../" * page.file.src_uri.count("/")
    return lambda found: f"({up}{found.group(1).lower()}.md"


def on_post_build(config: Any) -> None:
    """Fail if the site would load anything from elsewhere, or lacks a public name."""
    site = Path(config.site_dir)
    wrong = [f"{page.relative_to(site)} loads {url}" for page, url in foreign_assets(site)]
    for path, text in reference_pages().items():
        page = (site / path).with_suffix(".html").read_text("utf-8")
        names = re.findall(r"^::: (\S+)$", text, re.MULTILINE)
        wrong += [f"{path} lacks {name}" for name in names if f'id="{name}"' not in page]
    if wrong:
        sys.exit("\n".join(wrong))


def foreign_assets(site: Path) -> Iterable[tuple[Path, str]]:
    """Yield what pages and styles load from other hosts; links to click on are none.

    The theme's link to a repository is one: its script asks GitHub for stars and releases.
    """
    loads = re.compile(
        r"""<(?:script|img|iframe|source|video|audio|embed)\b[^>]*?\bsrc\s*=\s*["']?((?:https?:)?//[^"'\s>]+)"""
        r"""|<a\b(?=[^>]*data-md-component=["']?source\b)[^>]*?href\s*=\s*["']?((?:https?:)?//[^"'\s>]+)"""
        r"""|<link\b(?![^>]*rel=["']?(?:canonical|prev|next))[^>]*?href\s*=\s*["']?((?:https?:)?//[^"'\s>]+)"""
        r"""|url\(\s*["']?((?:https?:)?//[^"')]+)|@import\s+["']((?:https?:)?//[^"']+)"""
    )
    for page in sorted([*site.rglob("*.html"), *site.rglob("*.css")]):
        for found in loads.finditer(page.read_text("utf-8")):
            yield page, next(url for url in found.groups() if url)


def main() -> None:
    """Write the kept tables of all pages again."""
    for page in [ROOT / "README.md", *sorted(DOCS.rglob("*.md"))]:
        text = page.read_text("utf-8")
        filled = fill(text, kept_only=True)
        if filled != text:
            page.write_text(filled, "utf-8")
            print(f"{page.relative_to(ROOT)} written")


if __name__ == "__main__":
    main()
