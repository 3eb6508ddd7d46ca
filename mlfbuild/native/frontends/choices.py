"""The user's choices for reading a model: free dimensions, constant inputs, tensors that become its state, a signature.

A project file has them as ``dims``, ``constants``, ``state`` and ``signature``, the command line as ``-O dim.time=16``,
``-O constant.sr=16000``, ``-O state.h_in=h_out`` and ``-O signature=encode``. They are options of the compiler, with
these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

DIM, STATE, CONSTANT = "dim.", "state.", "constant."
"""The beginnings of the names of options."""
SIGNATURE = "signature"
"""The name of an option."""


@dataclass(frozen=True)
class Choices:
    """Sizes by the name of the dimension, outputs by the input that gets their value in the next run, a signature.

    ``constants`` are numbers by the input whose elements they are in every run.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    signature: str | None = None
    constants: Mapping[str, int | float | bool] = field(default_factory=dict)


def choices_of(options: Mapping[str, object]) -> Choices:
    """Return the choices among the options of a compiler, which are valid."""
    dims = {key.removeprefix(DIM): int(str(value)) for key, value in options.items() if key.startswith(DIM)}
    state = {key.removeprefix(STATE): str(value) for key, value in options.items() if key.startswith(STATE)}
    signature = options.get(SIGNATURE)
    constants = {
        key.removeprefix(CONSTANT): value
        for key, value in options.items()
        if key.startswith(CONSTANT) and isinstance(value, int | float)
    }
    return Choices(dims, state, None if signature is None else str(signature), constants)
