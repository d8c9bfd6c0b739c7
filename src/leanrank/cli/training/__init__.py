"""Training a model: in memory, from a stream, on a cluster."""
