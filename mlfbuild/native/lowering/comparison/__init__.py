"""Calls for ``graph/ops/comparison``: comparisons, logic, and selection by a condition."""
