"""Cross-validation by query."""
