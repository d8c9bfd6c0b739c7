"""Topics on a Dask cluster: every worker holds all documents, and the workers share the topics.

A topic is fitted by the code of ``leanrank.rankers.topics``, one task each, so that weights have
the bits of the same documents in memory.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

from sklearn.base import clone

from leanrank._typing import AnyArray
from leanrank.data.dask.collections import current_client, is_dask, is_lazy, partition_list
from leanrank.data.matrices import stacked
from leanrank.data.ranking_data import counted
from leanrank.errors import ClusterError, InputError
from leanrank.execution import single_threaded_blas
from leanrank.rankers.inputs import validated_matrix
from leanrank.rankers.topics import (
    Collection,
    TopicFit,
    TopicRanker,
    check_held_out,
    check_pair,
    check_topics,
    fit_topics,
)


def fit_on_cluster(topics: TopicRanker, X: Any, Y: Any, validation: Any) -> list[TopicFit]:
    """Fit all topics; ``topics`` learns the number and the names of the features."""
    client = current_client()
    blank = clone(topics)
    shared = _collected(client, partial(_training, blank), (X, Y), "Y")
    facts = _checked(client.submit(_facts, shared, pure=False))
    held_out = None
    if validation is not None:
        given = check_pair(validation)
        if not is_dask(given[0]):
            raise InputError("X is on Dask but validation is not: give both there")
        known = clone(topics)
        _take(known, facts)
        gather = partial(_validation, known, facts.n_topics)
        held_out = _collected(client, gather, given, "the Y of validation")
        _checked(client.submit(_status, held_out, pure=False))
    _take(topics, facts)

    def each_topic(function: Callable[..., Any], *more: Any) -> list[Any]:
        tasks = [
            client.submit(_of_topic, function, blank, shared, held_out, more, topic, pure=False)
            for topic in range(facts.n_topics)
        ]
        return [_checked(task) for task in tasks]

    return fit_topics(topics, each_topic, validated=validation is not None)


def _take(topics: TopicRanker, facts: _Facts) -> None:
    topics.n_features_in_ = facts.n_features
    if facts.names is not None:
        topics.feature_names_in_ = facts.names
    elif hasattr(topics, "feature_names_in_"):
        del topics.feature_names_in_


def _collected(client: Any, gather: Any, given: Any, name: str) -> Any:
    """Return a future of all documents and labels, in one place."""
    from dask import delayed

    X, Y = given
    if not is_dask(Y):
        raise InputError(
            f"X is on Dask but {name} is {type(Y).__name__}: give it as a Dask collection with the "
            "partitions of X"
        )
    pieces = [[each] if is_lazy(each) else partition_list(each) for each in (X, Y)]
    if len(pieces[0]) != len(pieces[1]):
        raise InputError(
            f"{name} has {counted(len(pieces[1]), 'partition')} but X has {len(pieces[0])}: take "
            "both from one collection, or repartition one of them"
        )
    return client.compute(delayed(gather, pure=False)(*pieces))


def _checked(task: Any) -> Any:
    """Return what a task returned, or raise what was wrong with the data."""
    from distributed import KilledWorker

    try:
        found = task.result()
    except KilledWorker as error:
        raise ClusterError(
            "workers died again and again, probably because each has to hold all documents: use "
            "larger workers"
        ) from error
    if isinstance(found, InputError):
        raise found
    return found


# on a worker: what is wrong is returned, because Dask logs what a task raises


class _Facts(NamedTuple):
    n_features: int
    n_topics: int
    names: AnyArray | None


def _training(blank: TopicRanker, X: list[Any], Y: list[Any]) -> Any:
    try:
        matrix = validated_matrix(blank, _all_rows(X), reset=True)
        shared = Collection(matrix, check_topics(_all_rows(Y), matrix.shape[0]))
    except ValueError as error:
        return InputError(str(error))
    return shared, getattr(blank, "feature_names_in_", None)


def _validation(known: TopicRanker, n_topics: int, X: list[Any], Y: list[Any]) -> Any:
    try:
        return check_held_out(known, (_all_rows(X), _all_rows(Y)), n_topics)
    except ValueError as error:
        return InputError(str(error))


def _facts(shared: Any) -> Any:
    if isinstance(shared, InputError):
        return shared
    collection, names = shared
    return _Facts(collection.X.shape[1], collection.Y.shape[1], names)


def _status(held_out: Any) -> Any:
    return held_out if isinstance(held_out, InputError) else None


def _of_topic(
    function: Callable[..., Any],
    topics: TopicRanker,
    shared: Any,
    held_out: Any,
    more: tuple[Any, ...],
    topic: int,
) -> Any:
    try:
        with single_threaded_blas():
            return function(topics, shared[0], held_out, *more, topic)
    except InputError as error:
        return error


def _all_rows(parts: list[Any]) -> Any:
    """Stack partitions."""
    if hasattr(parts[0], "columns"):
        import pandas

        return pandas.concat(parts)
    return stacked(parts)
