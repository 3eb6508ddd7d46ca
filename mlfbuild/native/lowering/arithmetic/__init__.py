"""Calls for ``graph/ops/arithmetic``: sums, products, powers, roundings and other functions of single elements."""
