"""Calls for ``graph/ops/movement``: operators that move elements and compute nothing."""
