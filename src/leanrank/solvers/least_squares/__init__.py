"""Closed forms for the squared loss."""
