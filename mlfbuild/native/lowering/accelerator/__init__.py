"""Calls for ``graph/ops/accelerator``: parts of a network that another device computes."""
