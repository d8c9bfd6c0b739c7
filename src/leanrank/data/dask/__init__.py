"""Data sets on Dask."""
