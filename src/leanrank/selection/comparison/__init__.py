"""Many systems on the same data, side by side."""
