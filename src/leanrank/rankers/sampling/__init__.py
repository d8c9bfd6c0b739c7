"""Rankers that learn from sampled pairs, query by query or from a stream."""
