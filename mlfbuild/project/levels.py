"""Optimisation levels of the code of models: the key ``optimize``."""

# Whatever the level of the build: in a tree with -O0, the keyword network took 22,268 bytes of code instead of 5,020,
# and 1,912 bytes of stack instead of 280, which overflows the stacks of common tasks.
DEFAULT_LEVEL = "O2"
INHERIT = "inherit"
"""The optimisation level of the build that a model is part of."""
LEVELS = (DEFAULT_LEVEL, "Os", "O3", INHERIT)
"""Optimisation levels of a model's code."""
