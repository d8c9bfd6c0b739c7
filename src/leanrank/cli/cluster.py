"""Files and Dask clusters for the commands that take ``--cluster``."""

from __future__ import annotations

import contextlib
import glob
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from leanrank.metrics import Evaluation
    from leanrank.model import Model

HERE = "127.0.0.1:0"
"""Where a local cluster shows its pages: to this machine only."""


class Memory:
    """Data sets of this process."""

    def __init__(self, format: str | None, given: Sequence[str] | None) -> None:
        self.format = format
        self.given = given

    def read(self, name: str, n_features: int | None = None) -> Any:
        """Read a file."""
        from leanrank.cli.datafiles import read_data

        return read_data(name, self.format, self.given, n_features=n_features)

    def read_parts(self, training: Sequence[str], validation: str | None) -> dict[str, Any]:
        """Read training and validation data for a search."""
        read = {"training": self.read(training[0])}
        if validation is not None:
            read["validation"] = self.read(validation, read["training"].n_features)
        return read

    def described(self, model: Model, training: Any) -> Model:
        """Add the training data to how a model was made."""
        from leanrank.cli.training.shared import described

        return described(model, training)

    def evaluate(self, model: Model, data: Any, measures: Sequence[str], rules: Any) -> Evaluation:
        """Measure a model."""
        from leanrank.metrics import evaluate

        return evaluate(data, model.predict(data), measures=measures, convention=rules)


class OnCluster(Memory):
    """Data sets on the workers of a cluster, a file being a partition."""

    def read(self, name: str, n_features: int | None = None) -> Any:
        """Read all files that a name or a pattern stands for."""
        del n_features
        from leanrank.selection.cluster import read_part

        return read_part(self._files([name]), name)

    def read_parts(self, training: Sequence[str], validation: str | None) -> dict[str, Any]:
        """Read training and validation data for a search."""
        from leanrank.selection.cluster import read_parts

        given = None if validation is None else self._files([validation])
        read = dict(
            zip(("training", "validation"), read_parts(self._files(training), given), strict=True)
        )
        return {name: data for name, data in read.items() if data is not None}

    def _files(self, names: Sequence[str]) -> list[Any]:
        return delayed_files(find_files(names), self.format, self.given)

    def described(self, model: Model, training: Any) -> Model:
        """Add the size of the training data to how a model was made."""
        from leanrank.cli.screen import sizes

        return model.replace(provenance={**model.provenance, "data": sizes(training)})

    def evaluate(self, model: Model, data: Any, measures: Sequence[str], rules: Any) -> Evaluation:
        """Measure a model where the documents are."""
        found: Evaluation = data.evaluate(model, measures, rules)
        return found


def find_files(patterns: Sequence[str]) -> list[str]:
    """Return the files that names and patterns stand for, in order."""
    from leanrank.errors import FileError

    found: list[str] = []
    for pattern in patterns:
        matching = sorted(glob.glob(pattern)) if glob.has_magic(pattern) else [pattern]
        if not matching:
            raise FileError(f"no file matches {pattern!r}: check the pattern, and quote it")
        found += matching
    return found


def delayed_files(
    files: Sequence[str], format: str | None, given: Sequence[str] | None
) -> list[Any]:
    """Return a partition for each file, which a worker reads when it is asked for."""
    import dask

    from leanrank.cli.datafiles import read_data

    return [dask.delayed(read_data)(file, format, given) for file in files]


@contextlib.contextmanager
def connect(where: str, say: Any) -> Iterator[Any]:
    """Connect to a scheduler, or start processes on this machine that end with the command.

    The link to the dashboard is printed.
    """
    from leanrank.cli.entry import say as print_line
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
            print_line(f"Dask dashboard at {client.dashboard_link}")
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
        print_line(f"Dask dashboard at {client.dashboard_link}")
        yield client
