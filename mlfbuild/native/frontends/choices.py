"""The user's choices for reading a model: free dimensions, constant inputs, tensors that become its state, a signature.

A project file has them as ``dims``, ``constants``, ``state`` and ``signature``, the command line as ``-O dim.time=16``,
``-O constant.sr=16000``, ``-O state.h_in=h_out`` and ``-O signature=encode``. They are options of the compiler, with
these names.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from mlfbuild.library import OptionValue

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
    constants: Mapping[str, OptionValue] = field(default_factory=dict)

    @classmethod
    def of(cls, options: Mapping[str, object]) -> Choices:
        """Return the choices among the options of a compiler, which are valid."""
        dims = {key.removeprefix(DIM): int(str(value)) for key, value in options.items() if key.startswith(DIM)}
        state = {key.removeprefix(STATE): str(value) for key, value in options.items() if key.startswith(STATE)}
        signature = options.get(SIGNATURE)
        constants = {
            key.removeprefix(CONSTANT): value
            for key, value in options.items()
            if key.startswith(CONSTANT) and isinstance(value, str | int | float)
        }
        return cls(dims, state, None if signature is None else str(signature), constants)

    @property
    def numbers(self) -> dict[str, int | float | bool]:
        """The constants that are numbers, as all valid ones are."""
        return {name: value for name, value in self.constants.items() if not isinstance(value, str)}

    def options(self) -> dict[str, OptionValue]:
        """Return the choices as options of the compiler, which ``of`` reads."""
        named = ((DIM, self.dims), (CONSTANT, self.constants), (STATE, self.state))
        found = {f"{kind}{name}": value for kind, values in named for name, value in values.items()}
        return {**found, **({} if self.signature is None else {SIGNATURE: self.signature})}
