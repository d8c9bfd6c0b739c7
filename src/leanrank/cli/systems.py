"""``leanrank systems``: list available systems, and the parameters of one."""

from __future__ import annotations

import inspect
import re
from typing import Annotated, Any

from typer import Argument, Context

from leanrank.cli import options
from leanrank.cli.screen import empty_table, facts, print_json, screen
from leanrank.registry import CAPABILITIES, SYSTEMS, System, shown

_PARAMETER = r"(?m)^(\w[\w, ]*?)(?: : (.*))?\n((?:^    .*\n?)*)"


Name = Annotated[
    str | None,
    Argument(
        metavar="NAME",
        show_default=False,
        help="A system to explain; without one, all are listed.",
        autocompletion=lambda: complete_algorithm(),
    ),
]


def systems(name: Name = None, json: options.Json = False) -> None:
    """List the ranking systems and what each is for, or the parameters of one.

    For example: leanrank systems domination
    """
    if name is None:
        _list_all(json)
    else:
        _explain(name, json)


def _list_all(as_json: bool) -> None:
    if as_json:
        print_json({"systems": [_summary(system) for system in _fitted().values()]})
        return
    table = empty_table()
    for column in ("name", "what it is for"):
        table.add_column(column, overflow="fold")
    for system in _fitted().values():
        table.add_row(system.name, system.purpose)
    console = screen()
    console.print(table)
    console.print("\nleanrank systems NAME lists the parameters of one, and what it can do.")


def _explain(name: str, as_json: bool) -> None:
    from leanrank.registry import get_system

    system = get_system(name)
    ranker = system.load()
    own = system.own_parameters
    parameters = [
        entry | ({"default": own[entry["name"]]} if entry["name"] in own else {})
        for entry in describe(ranker)
    ]
    if as_json:
        print_json(_summary(system) | {"fixed": own, "parameters": parameters})
        return
    console = screen()
    console.print((inspect.getdoc(ranker) or "").partition("\n\n")[0] + "\n")
    console.print(
        facts(
            {
                "for": system.purpose,
                "published": system.paper,
                "class": f"leanrank.rankers.{system.ranker}",
                "train with": f"leanrank train DATA -a {system.name} -m FILE",
            }
            | {title: shown(system, able) or "no" for able, title in CAPABILITIES.items()}
        )
    )
    table = empty_table()
    for column in ("-p", "default", "meaning"):
        table.add_column(column, overflow="fold")
    for parameter in parameters:
        table.add_row(parameter["name"], str(parameter["default"]), parameter["meaning"])
    console.print()
    console.print(table)


def describe(ranker: Any) -> list[dict[str, Any]]:
    """List the parameters of a class: name, default, and the first sentence of their description.

    >>> from leanrank import RankRLS
    >>> describe(RankRLS)[0]["name"]
    'alpha'
    """
    meanings: dict[str, str] = {}
    for owner in reversed(ranker.__mro__):  # what a class does not explain, its parent does
        section = inspect.cleandoc(owner.__doc__ or "").partition("Parameters\n----------\n")[2]
        section = re.split(r"\n\n\S+\n---+\n", section)[0] + "\n"
        for names, kind, text in re.findall(_PARAMETER, section):
            sentence = " ".join(text.replace("``", "").split()).partition(". ")[0].rstrip(".")
            for name in names.split(", "):
                known = meanings.get(name, kind.partition(", default=")[0])
                meanings[name] = _of_another(sentence, name) or sentence or known
    return [
        {"name": name, "default": parameter.default, "meaning": meanings.get(name, "")}
        for name, parameter in inspect.signature(ranker).parameters.items()
    ]


def _of_another(sentence: str, name: str) -> str:
    """Return the meaning that a parameter has in the class that "As for SPD" names."""
    from leanrank import rankers

    other = getattr(rankers, sentence.removeprefix("As for "), None)
    entries = describe(other) if inspect.isclass(other) else []
    return next((entry["meaning"] for entry in entries if entry["name"] == name), "")


def complete_algorithm() -> list[tuple[str, str]]:
    """Complete what ``--algorithm`` takes."""
    return [(name, system.purpose) for name, system in _fitted().items()]


def complete_parameter(context: Context, incomplete: str) -> list[tuple[str, str]]:
    """Complete what ``-p`` takes, for the algorithm that stands before it."""
    chosen = _fitted().get(context.params.get("algorithm") or "lean")
    if chosen is None or "=" in incomplete:
        return []
    return [(f"{entry['name']}=", entry["meaning"]) for entry in describe(chosen.load())]


def _fitted() -> dict[str, System]:
    return {name: system for name, system in SYSTEMS.items() if system.space is not None}


def _summary(system: System) -> dict[str, Any]:
    return {
        "name": system.name,
        "title": system.title,
        "purpose": system.purpose,
        "published": system.paper,
        "class": f"leanrank.rankers.{system.ranker}",
    } | {able: getattr(system, able) for able in CAPABILITIES}
