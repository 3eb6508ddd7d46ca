"""Comparisons, logic, and selection by a condition."""
