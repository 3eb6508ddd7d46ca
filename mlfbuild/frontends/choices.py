"""The user's choices for reading a model: free dimensions, tensors that become its state, a signature.

A project file has them as ``dims``, ``state`` and ``signature``, the command line as ``-O dim.time=16``,
``-O state.h_in=h_out`` and ``-O signature=encode``. They are options of the compiler, with these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DIM, STATE = "dim.", "state."
"""The beginnings of the names of options."""
SIGNATURE = "signature"
"""The name of an option."""


@dataclass(frozen=True)
class Choices:
    """Sizes by the name of the dimension, outputs by the input that gets their value in the next run, a signature."""

    dims: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    signature: str | None = None


def choices_of(options: Mapping[str, object]) -> Choices:
    """Return the choices among the options of a compiler, which are valid."""
    dims = {key.removeprefix(DIM): int(str(value)) for key, value in options.items() if key.startswith(DIM)}
    state = {key.removeprefix(STATE): str(value) for key, value in options.items() if key.startswith(STATE)}
    signature = options.get(SIGNATURE)
    return Choices(dims, state, None if signature is None else str(signature))
