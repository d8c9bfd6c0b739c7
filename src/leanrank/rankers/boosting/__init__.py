"""Boosted rankers."""
