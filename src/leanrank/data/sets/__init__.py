"""Data sets one can have: the sample and made-up ones."""
