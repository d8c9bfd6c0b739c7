"""A ranker in use: what changed, is it still right, learning again, uncertain judgments."""
