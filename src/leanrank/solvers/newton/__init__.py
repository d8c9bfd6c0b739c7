"""Working-set proximal Newton."""
