"""Data frames, Parquet, Arrow and CSV, which all need pyarrow."""

from __future__ import annotations

from leanrank.errors import MissingDependencyError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
    from pyarrow import csv
except ImportError as error:
    raise MissingDependencyError("pyarrow", "frames", "reading and writing tables") from error

__all__ = ["csv", "pa", "pc", "pq"]
