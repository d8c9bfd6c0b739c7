"""Data sets one can have: the sample, public ones, made-up ones."""
