"""Searching for the best model that meets some limits."""
