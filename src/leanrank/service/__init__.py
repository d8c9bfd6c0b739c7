"""A ranker in use: comparing with a new one, checks, refits, explanations, judgments."""
