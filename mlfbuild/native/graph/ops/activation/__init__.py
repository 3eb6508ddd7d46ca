"""Activation functions, softmax and normalisation by the length of a vector."""
