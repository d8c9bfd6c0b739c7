"""Rounds of weak rankers."""
