"""``leanrank train --cluster``: fit files on a Dask cluster."""

from __future__ import annotations

import contextlib
import glob
import time
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leanrank.cli.train import Request
    from leanrank.data import RankingData

HERE = "127.0.0.1:0"
"""Where a local cluster shows its pages: to this machine only."""


def train_on_cluster(request: Request, where: str) -> None:
    """Fit files on a cluster and write the model."""
    from leanrank.cli import screen
    from leanrank.cli.datafiles import read_data
    from leanrank.cli.entry import say as print_line
    from leanrank.cli.train import (
        check_measures,
        make_ranker,
        print_result,
        print_summary,
        refuse_empty,
        set_monotone,
        with_measures,
    )
    from leanrank.data.spread import check_scale, scale_wanted
    from leanrank.errors import InputError
    from leanrank.metrics import evaluate
    from leanrank.model.writing import as_model
    from leanrank.rankers.cluster import data_on_cluster
    from leanrank.rankers.inputs import warn_of_units
    from leanrank.registry import SYSTEMS, ranker_names

    name = request.algorithm or "domination"
    if name in SYSTEMS and not SYSTEMS[name].cluster:
        able = sorted(name for name in ranker_names() if SYSTEMS[name].cluster)
        raise InputError(
            f"{name} needs all data in memory: leave --cluster out, or choose from "
            f"{', '.join(able)}"
        )
    check_scale(request.scale)
    for option in ("checkpoint", "every", "features"):
        if getattr(request, option) is not None:
            raise InputError(f"--{option} is for streams: add --stream, or leave it out")
    files = _files(request.files)
    ranker = make_ranker(name, request.parameters, seed=request.seed, jobs=request.jobs)
    set_monotone(ranker, request.monotone)
    check_measures(request.measures, request.convention)
    with screen.progress() as say, _client(where, say) as client:
        import dask

        print_line(f"Dask dashboard at {client.dashboard_link}")
        say(f"Reading {len(files)} file{'s' * (len(files) != 1)} on {where}")
        parts = [dask.delayed(_read)(file, request.format, request.read) for file in files]
        data = data_on_cluster(ranker, parts, any_units=True)
        curves = getattr(ranker, "curves", None) is not None
        choice = scale_wanted(data, request.scale, curves=curves)
        normalizer = choice.make()
        if normalizer is not None:
            say(f"Scaling {len(data):,} documents")
            data = data.scaled(normalizer)
        elif request.scale != "auto" and not curves:
            warn_of_units(data)
        started = time.perf_counter()

        def show(entry: dict[str, Any]) -> None:
            speed = entry["iteration"] * len(data) / (time.perf_counter() - started)
            say(
                f"iteration {entry['iteration']}, objective {entry['objective']:.6g}, "
                f"gap {entry['gap']:.1e}, {speed:,.0f} documents/s"
            )

        ranker.set_params(callback=show).fit(data)
        sizes = {"queries": data.n_queries, "documents": len(data), "features": data.n_features}
        fitted = as_model(ranker, normalizer)
        fitted = fitted.replace(provenance={**fitted.provenance, "data": sizes})
        refuse_empty(fitted, request)
        columns = {}
        if request.vali is not None:
            say(f"Reading {request.vali}")
            held_out = read_data(
                request.vali, request.format, request.read, n_features=data.n_features
            )
            columns["validation"] = evaluate(
                held_out,
                fitted.predict(held_out),
                measures=request.measures,
                convention=request.convention,
            )
            fitted = with_measures(fitted, {"validation": columns["validation"].means})
        fitted.save(request.model)
        workers, threads = len(client.nthreads()), sum(client.nthreads().values())
    if request.json:
        print_result(request.model, {"training": sizes}, fitted, columns)
        return
    shown = {
        "training": f"{sizes['queries']:,} queries, {sizes['documents']:,} documents, "
        f"{sizes['features']:,} features in {len(files):,} files",
        "cluster": f"{where}, {workers} workers, {threads} threads",
        "partitions": data.how,
        "scaled": choice.reason,
    }
    print_summary(request.model, shown, fitted, columns)


def _files(patterns: Sequence[str]) -> list[str]:
    """Return the files that names and patterns stand for, in order."""
    from leanrank.errors import FileError

    found: list[str] = []
    for pattern in patterns:
        matching = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not matching:
            raise FileError(f"no file matches {pattern!r}: check the pattern, and quote it")
        found += matching
    return found


def _read(file: str, format: str | None, given: Sequence[str]) -> RankingData:
    from leanrank.cli.datafiles import read_data

    return read_data(file, format, given)


@contextlib.contextmanager
def _client(where: str, say: Any) -> Iterator[Any]:
    """Connect to a scheduler, or start processes on this machine that end with the command."""
    from leanrank.errors import ClusterError, InputError, MissingDependencyError

    try:
        from distributed import Client, LocalCluster
    except ImportError as error:
        raise MissingDependencyError("distributed", "dask", "--cluster") from error
    kind, _, count = where.partition(":")
    if kind == "local" and (not count or (count.isdecimal() and int(count) > 0)):
        from leanrank.execution import available_cores

        n_workers = int(count) if count else available_cores()
        say(f"Starting {n_workers} worker{'s' * (n_workers != 1)}")
        with (
            LocalCluster(
                n_workers=n_workers,
                threads_per_worker=1,
                host="127.0.0.1",
                dashboard_address=HERE,
                worker_dashboard_address=HERE,
                silence_logs=50,
            ) as cluster,
            Client(cluster) as client,
        ):
            yield client
        return
    if "://" not in where:
        raise InputError(
            f"--cluster {where} is not known: use local, local:N or an address such as "
            "tcp://host:8786"
        )
    try:
        client = Client(where, timeout=10)
    except (OSError, ValueError) as error:
        raise ClusterError(f"no Dask scheduler answers at {where}: {error}") from error
    with client:
        yield client
