"""Calls for ``graph/ops/quantization``: changes of the type or of the scale of elements."""
