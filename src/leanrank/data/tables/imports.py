"""pyarrow, or the sentence that says how to install it."""

from leanrank.errors import MissingDependencyError

try:
    import pyarrow as pa
    import pyarrow.compute as pc
    import pyarrow.parquet as pq
except ImportError as error:
    raise MissingDependencyError("pyarrow", "frames", "reading and writing tables") from error

__all__ = ["pa", "pc", "pq"]
