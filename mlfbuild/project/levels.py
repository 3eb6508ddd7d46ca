"""Optimisation levels of the code of models: the key ``optimize``."""

DEFAULT_LEVEL = "O2"
INHERIT = "inherit"
"""The optimisation level of the build that a model is part of."""
LEVELS = (DEFAULT_LEVEL, "Os", "O3", INHERIT)
"""Optimisation levels of a model's code."""
