"""The user's choices for reading a model: sizes of free dimensions, and tensors that become its state.

A project file has them as ``dims`` and ``state``, the command line as ``-O dim.time=16`` and ``-O state.h_in=h_out``.
They are options of the compiler whose names begin with ``dim.`` and ``state.``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DIM, STATE = "dim.", "state."
"""The beginnings of the names of options."""


@dataclass(frozen=True)
class Choices:
    """Sizes by the name of the dimension, and outputs by the input that gets their value in the next run."""

    dims: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)


def choices_of(options: Mapping[str, object]) -> Choices:
    """Return the choices among the options of a compiler, which are valid."""
    dims = {key.removeprefix(DIM): int(str(value)) for key, value in options.items() if key.startswith(DIM)}
    state = {key.removeprefix(STATE): str(value) for key, value in options.items() if key.startswith(STATE)}
    return Choices(dims, state)
