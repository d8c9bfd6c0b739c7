"""``leanrank join``: training data from an engine's feature log and judgments."""

from __future__ import annotations

from typing import Annotated

from typer import Option

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_apart, check_folder, stdin_once
from leanrank.errors import warn


def join(
    features: Annotated[
        str,
        Option(
            metavar="LOG",
            help="Feature log of Elasticsearch or OpenSearch LTR (_ltrlog) or Solr ([features]): "
            "JSON, a record per line, or a directory; or data with document ids.",
        ),
    ],
    judgments: Annotated[
        str, Option(metavar="FILE", help="Quepid CSV, workbench JSON of OpenSearch, or TREC qrels.")
    ],
    output: Annotated[str, Option("--output", "-o", metavar="OUT", help="File to write, or -.")],
    query_field: Annotated[
        str | None, Option(metavar="PATH", help="Where a record names its query.")
    ] = None,
    document_field: Annotated[
        str | None, Option(metavar="PATH", help="Where a hit names its document.")
    ] = None,
    feature_field: Annotated[
        str | None, Option(metavar="NAME", help="Solr's field if not [features].")
    ] = None,
    fill: Annotated[float, Option(metavar="VALUE", help="What a missing value becomes.")] = 0.0,
    unjudged: Annotated[
        float | None,
        Option(
            metavar="LABEL",
            help="Label of logged documents without a judgment; they are left out by default.",
        ),
    ] = None,
    kind: Annotated[
        str | None,
        Option(
            "--judgment-format",
            metavar="NAME",
            help="quepid, workbench or qrels; found from the name if left out.",
        ),
    ] = None,
    json: options.Json = False,
) -> None:
    """Join an engine's feature log with judgments, and say what did not match.

    For example: leanrank join --features log.ndjson --judgments ratings.csv -o train.parquet
    """
    stdin_once(features, judgments)
    check_folder(output, json, "data", "the data a file")
    check_apart([output], [features, judgments])
    fields = {
        "query_field": query_field,
        "document_field": document_field,
        "feature_field": feature_field,
    }
    with screen.progress() as say:
        from leanrank.data import dump, read_judgments
        from leanrank.data.logs.judgments import match_judgments

        say(f"Reading {judgments}")
        rated = read_judgments(judgments, format=kind)
        say(f"Reading {features}")
        given = {name: value for name, value in fields.items() if value is not None}
        joined = match_judgments(features, rated, fill=fill, label=unjudged, **given)
        say(f"Writing {output}")
        dump(joined.data, output)
    for sentence in joined.sentences():
        warn(sentence)
    if json:
        screen.print_json(
            {
                "target": output,
                **screen.sizes(joined.data),
                "logged": joined.n_logged,
                "judged": joined.n_judged,
                "unjudged": joined.unjudged.count,
                "unlogged": joined.unlogged.count,
                "repeated": joined.n_repeated,
                "missing": joined.filled,
            }
        )
    elif output != "-":
        console = screen.screen()
        console.print(screen.facts({"data": screen.data_summary(joined.data)}))
        console.print(f"Written to {output}", soft_wrap=True)
