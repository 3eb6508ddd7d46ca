"""Reductions of an axis or of a window: pools, sums, extremes and positions."""
