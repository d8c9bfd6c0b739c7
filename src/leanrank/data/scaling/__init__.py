"""Bringing features to comparable ranges."""
