"""Calls for ``graph/ops/activation``: activation functions, softmax and normalisation by the length of a vector."""
