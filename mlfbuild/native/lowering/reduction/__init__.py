"""Calls for ``graph/ops/reduction``: reductions of an axis or of a window: pools, sums, extremes and positions."""
