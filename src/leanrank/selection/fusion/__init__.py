"""Weights of the runs of a hybrid search."""
