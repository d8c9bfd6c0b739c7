"""The joint between a design, a prepared loss and a solver."""
