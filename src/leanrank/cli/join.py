"""``leanrank join``: training data from an engine's feature log and judgments."""

from __future__ import annotations

from leanrank.cli import options, screen
from leanrank.cli.datafiles import check_apart, check_folder, stdin_once
from leanrank.errors import warn


def join(
    features: str,
    judgments: str,
    output: str,
    query_field: str | None = None,
    document_field: str | None = None,
    feature_field: str | None = None,
    fill: float = 0.0,
    unjudged: float | None = None,
    judgment_format: str | None = None,
    json: options.Json = False,
) -> None:
    """Join an engine's feature log with judgments, and say what did not match.

    For example: leanrank join --features log.ndjson --judgments ratings.csv -o train.parquet

    Parameters
    ----------
    features : LOG
        Feature log of Elasticsearch or OpenSearch LTR (_ltrlog) or Solr ([features]): JSON, a
        record per line, or a directory; or data with document ids.
    judgments : FILE
        Quepid CSV, workbench JSON of OpenSearch, or TREC qrels.
    output : -o OUT
        File to write, or -.
    query_field : PATH
        Where a record names its query.
    document_field : PATH
        Where a hit names its document.
    feature_field : NAME
        Solr's field if not [features].
    fill : VALUE
        Replacement of missing values.
    unjudged : LABEL
        Label of logged documents without a judgment; without, they are left out.
    judgment_format : NAME
        quepid, workbench or qrels; found from the name if left out.
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
        rated = read_judgments(judgments, format=judgment_format)
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
