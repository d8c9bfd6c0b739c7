"""``leanrank convert``: the same data in another format."""

from __future__ import annotations

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_apart, check_folder, read_data, read_options
from leanrank.errors import warn


def convert(
    source: str,
    target: str,
    /,
    format: options.Format = None,
    read: options.Read = None,
    to: str | None = None,
    actions: str = "click",
    json: options.Json = False,
) -> None:
    """Write data in the format that OUT's name says.

    A file named .arrow is mapped instead of read by other commands, so that data may be larger than
    memory. It is written in bounded memory, from data in which the rows of a query are together;
    IN may be a pattern such as 'part-*.parquet'.

    IN may also be a click log: a directory with OpenSearch's ubi_queries and ubi_events, or a
    JSON file of Metarank's events; OUT is then a table with one row per document shown.

    For example: leanrank convert train.txt.gz train.parquet

    Parameters
    ----------
    source : IN
        Data to read, or -.
    target : OUT
        File to write, or -.
    to : -t NAME
        Format to write; found from OUT if left out.
    actions : LIST
        Events of a click log that are clicks, by commas.
    """
    from leanrank.data.formats import format_name

    check_folder(target, json, "data", "the data a file")
    check_apart([target], source_files(source))
    if format is None and is_click_log(source):
        convert_clicks(source, target, actions.split(","), json)
        return
    if target != "-" and format_name(target, to) == "arrow":
        convert_to_store(source, target, format, read, json)
        return
    with screen.progress() as say:
        from leanrank.data import dump

        say(f"Reading {source}")
        data = read_data(source, format, read)
        say(f"Writing {target}")
        dump(data, target, format=to)
    if json:
        screen.print_json({"source": source, "target": target, **screen.sizes(data)})
    elif target != "-":
        console = screen.screen()
        console.print(screen.facts({"data": screen.data_summary(data)}))
        console.print(f"Written to {target}", soft_wrap=True)


def convert_to_store(
    source: str, target: str, format: str | None, read: list[str] | None, json: bool
) -> None:
    """Write data of any size to a file that is mapped."""
    with screen.progress() as say:
        from leanrank.data import write_store

        say(f"Reading {source}")
        told = write_store(source, target, format=format, **read_options(source, format, read))
    if json:
        screen.print_json({"source": source, "target": target, **told})
        return
    console = screen.screen()
    counts = ", ".join(f"{told[name]:,} {name}" for name in ("queries", "documents", "features"))
    console.print(screen.facts({"data": counts}))
    console.print(f"Written to {target}", soft_wrap=True)


def source_files(source: str) -> list[str]:
    """Return the files that a source is read from: one, or those of a directory or a pattern."""
    from pathlib import Path

    path = Path(source)
    if path.is_dir():
        return [str(file) for file in path.iterdir()]
    if "*" in path.name and not path.exists():
        return [str(file) for file in path.parent.glob(path.name)]
    return [source]


def is_click_log(source: str) -> bool:
    """Return whether a source is a click log of an engine."""
    from pathlib import Path

    from leanrank.data.logs import SUFFIXES

    folder = Path(source)
    if source != "-" and folder.is_dir():
        return any(file.name.lower().startswith("ubi_") for file in folder.iterdir())
    return source.lower().endswith(SUFFIXES)


def convert_clicks(source: str, target: str, actions: list[str], json: bool) -> None:
    """Write the table of an engine's click log, and report what did not fit."""
    from leanrank.data.logs.clicks import EngineClicks

    with screen.progress() as say:
        say(f"Reading {source}")
        log = EngineClicks(source, actions=actions)
        rows = log.write(target)
    for sentence in log.sentences():
        warn(sentence)
    if json:
        screen.print_json({"source": source, "target": target, "rows": rows, **log.totals})
    else:
        console = screen.screen()
        facts = ", ".join(f"{count:,} {name}" for name, count in log.totals.items())
        console.print(screen.facts({"clicks": f"{facts}, {rows:,} documents shown"}))
        console.print(f"Written to {target}", soft_wrap=True)
