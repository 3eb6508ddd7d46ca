"""Calls for ``graph/ops/matrix``: products with matrices, and determinants."""
