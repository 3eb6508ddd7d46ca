"""Products with matrices, and determinants."""
