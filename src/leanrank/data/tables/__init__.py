"""Data frames, Parquet, Arrow and CSV; all of it needs pyarrow."""

from leanrank.errors import MissingDependencyError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingDependencyError("pyarrow", "frames", "reading and writing tables") from error

__all__ = ["pa", "pc", "pq"]
