"""Executors: any flavour of a module becomes C sources behind TVM's C interface.

A graph becomes constant tables and a loop over them, a packed entry function gets a C interface around it, and what
TVM's runtime would provide comes from ``runtime/tvm``, for each module on its own.
"""
