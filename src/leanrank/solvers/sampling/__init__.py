"""Methods that learn from sampled pairs or from one query at a time."""
