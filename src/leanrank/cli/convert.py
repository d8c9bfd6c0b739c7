"""``leanrank convert`` and ``leanrank join``."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from leanrank.cli import screen
from leanrank.cli.datafiles import check_files, read_data, read_options
from leanrank.errors import warn


def convert(
    source: str,
    target: str,
    /,
    format: str | None = None,
    read: list[str] | None = None,
    to: str | None = None,
    actions: str = "click",
    json: bool = False,
) -> None:
    """Write data in another format, by default the one that OUT's suffix names.

    Write .arrow for data larger than memory: other commands map such a file instead of reading it.
    The rows of a query must then be together in IN, which may be a pattern such as
    'part-*.parquet'.

    IN may also be a click log: a directory with OpenSearch's ubi_queries and ubi_events, or a
    JSON file of Metarank's events. OUT is then a table with one row per document shown.

    For example: leanrank convert train.txt.gz train.parquet

    Parameters
    ----------
    source : IN
        Data to read, or -.
    target : OUT
        File to write, or -.
    to : -t NAME
        Format to write. [default: from the name of OUT]
    actions : LIST
        Kinds of events that count as clicks, separated by commas.
    """
    check_files(source_files(source), target, json=json)
    summary = ""
    with screen.progress() as say:
        from leanrank.data import dump, write_store
        from leanrank.data.formats import format_name

        say(f"Reading {source}")
        if format is None and is_click_log(source):
            from leanrank.data.logs.clicks import load_engine_clicks

            log = load_engine_clicks(source, actions=actions.split(","))
            log.write(target)
            sizes = log.sizes
            for sentence in log.notes:
                warn(sentence)
        elif target != "-" and format_name(target, to) == "arrow":
            how = read_options(source, format, read)
            sizes = write_store(source, target, format=format, **how)
        else:
            data = read_data(source, format, read)
            say(f"Writing {target}")
            dump(data, target, format=to)
            sizes, summary = screen.sizes(data), screen.data_summary(data)
    if json:
        screen.print_json({"source": source, "target": target, **sizes})
        return
    counts = ", ".join(f"{count:,} {name}" for name, count in sizes.items())
    _print_written(summary or counts.replace(" rows", " documents shown"), target)


def _print_written(summary: str, target: str) -> None:
    if target != "-":
        console = screen.screen()
        console.print(screen.facts({"data": summary}))
        screen.print_written(console, {"Data": target})


def source_files(source: str) -> list[str]:
    """Return the file, or the files of a directory or of a pattern."""
    path = Path(source)
    if path.is_dir():
        return [str(file) for file in path.iterdir()]
    if "*" in path.name and not path.exists():
        return [str(file) for file in path.parent.glob(path.name)]
    return [source]


def is_click_log(source: str) -> bool:
    """Return whether a source is a click log of an engine."""
    from leanrank.data.logs import SUFFIXES

    folder = Path(source)
    if source != "-" and folder.is_dir():
        return any(file.name.lower().startswith("ubi_") for file in folder.iterdir())
    return source.lower().endswith(SUFFIXES)


def join(
    features: str,
    judgments: str,
    output: str,
    query_field: str | None = None,
    document_field: str | None = None,
    fill: float = 0.0,
    unjudged: float | None = None,
    judgment_format: str | None = None,
    json: bool = False,
) -> None:
    """Join an engine's feature log with judgments, and report what did not match.

    For example: leanrank join --features log.ndjson --judgments ratings.csv -o train.parquet

    Parameters
    ----------
    features : LOG
        Feature log of Elasticsearch or OpenSearch LTR (_ltrlog) or Solr ([features]): JSON, one
        record per line, or a directory; or data with document ids.
    judgments : FILE
        Quepid CSV, workbench JSON of OpenSearch, or TREC qrels.
    output : -o OUT
        File to write, or -.
    query_field : PATH
        Field of a record that holds the query.
    document_field : PATH
        Field of a hit that holds the document id.
    fill : VALUE
        Value for missing features.
    unjudged : LABEL
        Label for logged documents without a judgment. [default: leave them out]
    judgment_format : NAME
        quepid, workbench or qrels. [default: from the name]
    """
    check_files([features, judgments], output, json=json)
    given: dict[str, Any] = {"query_field": query_field, "document_field": document_field}
    fields = {name: value for name, value in given.items() if value is not None}
    with screen.progress() as say:
        from leanrank.data import dump, read_judgments
        from leanrank.data.logs.judgments import match_judgments

        say(f"Reading {judgments}")
        rated = read_judgments(judgments, format=judgment_format)
        say(f"Reading {features}")
        joined = match_judgments(features, rated, fill=fill, label=unjudged, **fields)
        say(f"Writing {output}")
        dump(joined.data, output)
    for sentence in joined.notes:
        warn(sentence)
    if json:
        sizes: dict[str, Any] = {"logged": joined.n_logged, "judged": joined.n_judged}
        sizes |= {"unjudged": len(joined.unjudged), "unlogged": len(joined.unlogged)}
        sizes |= {"repeated": joined.n_repeated, "missing": joined.filled}
        screen.print_json({"target": output, **screen.sizes(joined.data), **sizes})
    else:
        _print_written(screen.data_summary(joined.data), output)
