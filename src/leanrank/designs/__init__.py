"""What X can be: the products with it that solvers need."""
