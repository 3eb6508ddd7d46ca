"""Sums, products, powers, roundings and other functions of single elements."""
