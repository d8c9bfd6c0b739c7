"""Learners that choose what to show and learn from the clicks on it."""
