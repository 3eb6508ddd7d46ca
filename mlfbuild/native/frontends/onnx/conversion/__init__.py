"""Helpers of the converters of operators: arithmetic on tensors, layers with weights, windows, recurrent cells.

No module here converts an operator by itself, so none has a table ``OPERATORS``. Those in ``operators`` import these,
and never one another.
"""
