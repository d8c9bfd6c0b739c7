"""``leanrank train --cluster``: fit files on a Dask cluster."""

from __future__ import annotations

import time
from typing import Any

from leanrank.cli import screen
from leanrank.cli.cluster import connect, delayed_files, find_files
from leanrank.cli.datafiles import read_data
from leanrank.cli.options import check_measures
from leanrank.cli.training.shared import (
    Request,
    check_able,
    finish,
    make_ranker,
    print_result,
    print_summary,
    set_monotone,
)


def train_on_cluster(request: Request, where: str) -> None:
    """Fit files on a cluster and write the model."""
    from leanrank.data.scaling.spread import check_scale, scale_wanted
    from leanrank.model.writing import as_model
    from leanrank.rankers.dask import data_on_cluster
    from leanrank.rankers.inputs import warn_of_units

    name = request.algorithm or "domination"
    check_able(name, "cluster", "all data in memory: leave --cluster out")
    check_scale(request.scale)
    files = find_files(request.files)
    ranker = make_ranker(name, request.parameters, seed=request.seed, jobs=request.jobs)
    set_monotone(ranker, request.monotone)
    check_measures(request.measures, request.convention)
    with screen.progress() as say, connect(where, say) as client:
        say(f"Reading {len(files)} file{'s' * (len(files) != 1)} on {where}")
        parts = delayed_files(files, request.format, request.read)
        data = data_on_cluster(ranker, parts, any_units=True)
        curves = getattr(ranker, "curves", None) is not None
        choice = scale_wanted(data, request.scale, curves=curves)
        normalizer = choice.make()
        if normalizer is not None:
            say(f"Scaling {len(data):,} documents")
            data = data.scaled(normalizer)
        elif request.scale != "auto" and not curves:
            warn_of_units(data, slow=ranker.slow_unscaled)
        started = time.perf_counter()

        def show(entry: dict[str, Any]) -> None:
            speed = entry["iteration"] * len(data) / (time.perf_counter() - started)
            say(
                f"iteration {entry['iteration']}, gap {entry['gap']:.1e}, "
                f"objective {entry['objective']:.6g}, {speed:,.0f} documents/s"
            )

        ranker.set_params(callback=show).fit(data)
        sizes = screen.sizes(data)
        fitted = as_model(ranker, normalizer)
        fitted = fitted.replace(provenance={**fitted.provenance, "data": sizes})
        sets = {}
        if request.vali is not None:
            say(f"Reading {request.vali}")
            sets["validation"] = read_data(
                request.vali, request.format, request.read, n_features=data.n_features
            )
        fitted, columns = finish(fitted, request, sets, say)
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
