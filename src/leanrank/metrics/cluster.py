"""Measures of scores on a Dask cluster, computed where the documents are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from leanrank._typing import FloatArray
from leanrank.data.dask.partitions import Rows, read_partitions
from leanrank.errors import InputError
from leanrank.metrics.evaluation import Evaluation, evaluate, summarise
from leanrank.metrics.measures import ERR, LOSS, Measure


def evaluate_on_cluster(
    y: Any, scores: Any, qid: Any, measures: tuple[Measure, ...], **choices: Any
) -> Evaluation:
    """Measure each partition of whole queries, and put the values of all queries together."""
    if choices.pop("group") is not None or choices.pop("doc_ids") is not None:
        raise InputError("evaluate takes y, scores and qid on Dask: leave group and doc_ids out")
    partitions = read_partitions(scores, {"y": y, "qid": qid}, scores=True)
    measures = refer_to(measures, partitions.levels)
    client = partitions.client
    tasks = [
        client.submit(_measure, rows, measures, choices, pure=False) for rows in partitions.rows
    ]
    return join_evaluations(measures, client.gather(tasks))


def join_evaluations(measures: tuple[Measure, ...], found: Sequence[Evaluation]) -> Evaluation:
    """Return the evaluation of all queries from those of parts of them."""
    values = np.concatenate([[each.per_query[m.name] for m in measures] for each in found], axis=1)
    ids = np.concatenate([each.query_ids for each in found])
    return summarise(measures, values, ids, found[0].convention, found[0].settings)


def refer_to(measures: tuple[Measure, ...], levels: FloatArray | None) -> tuple[Measure, ...]:
    """Return measures of a part of the documents: ERR refers to the highest label of all.

    >>> refer_to((Measure.parse("map"), Measure.parse("err@10")), np.array([0.0, 3.0]))[1].max_label
    3.0
    """
    if any(each.kind == LOSS for each in measures):
        raise InputError("the measure 'loss' needs all scores in one place: choose another on Dask")
    if levels is None or not len(levels):
        return measures
    top = max(0.0, float(levels[-1]))
    return tuple(
        replace(each, max_label=top) if each.kind == ERR and each.max_label is None else each
        for each in measures
    )


def _measure(rows: Rows, measures: tuple[Measure, ...], choices: dict[str, Any]) -> Evaluation:
    return evaluate(rows.data, np.asarray(rows.data.X[:, 0]), measures=measures, **choices)
