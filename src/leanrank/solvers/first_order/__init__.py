"""Published methods that take one gradient per iteration."""
