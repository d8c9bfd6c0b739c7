"""``leanrank predict``: score documents with a model."""

from __future__ import annotations

from leanrank.cli import options
from leanrank.cli.datafiles import check_apart, check_folder, read_data, stdin_once
from leanrank.cli.screen import print_json, progress


def predict(
    model: str,
    data: str,
    /,
    output: str = "-",
    format: options.Format = None,
    read: options.Read = None,
    json: options.Json = False,
) -> None:
    """Score documents: one number per line, in the file's order. Labels are not needed.

    For example: leanrank predict m.json test.txt -o scores.txt

    Parameters
    ----------
    model : MODEL
        A model file, or -.
    data : DATA
        Documents to score, or -.
    output : -o FILE
        Where to write the scores, or -.
    """
    from leanrank.cli.scores import write_scores

    stdin_once(model, data)
    check_folder(output, json, "scores", "the scores -o FILE")
    check_apart([output], [model, data])
    with progress() as say:
        from leanrank.model import load_model

        ranker = load_model(model)
        say(f"Reading {data}")
        per_query = (ranker.normalizer or {}).get("kind", "").startswith("query-")
        optional = ("label",) if per_query else ("label", "qid")
        documents = read_data(data, format, read, model=ranker, optional=optional)
        say(f"Scoring {len(documents):,} documents")
        scores = documents.restore(ranker.predict(documents))
        write_scores(scores, output)
    if json:
        print_json(
            {
                "scores": output,
                "model": model,
                "queries": documents.n_queries,
                "documents": len(documents),
            }
        )
