"""Published sparse systems with a first-order solver."""
