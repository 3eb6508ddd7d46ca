"""The user's choices for reading a model: free dimensions, constant inputs, tensors that become its state, a signature.

A model file leaves questions open that only its user can answer, and a microcontroller needs the answers at compile
time: sizes are fixed, memory is planned, and each input is a buffer of the caller.

- ``dims``: a size for a dimension that the file only names, such as the number of samples. ONNX only, because TFLite's
  dimensions have no names. All dimensions of that name get it. One without a name is called by its input and index,
  ``x.1``. A free dimension without a choice is an error, except for the first one of an input: that is the batch, and
  becomes 1.
- ``constants``: a number for an input that is the same in every run, such as the sampling rate or a switch for
  training. All elements get it. The importer then folds what depends on it, perhaps a whole branch. ONNX only.
- ``state``: input -> output. The output of a run becomes the input of the next one. Neither is in the C interface; the
  firmware calls the reset function instead. Both tensors have the same type, shape and quantisation, and the state
  begins with the stored value of 0.
- ``signature``: which subgraph of a TFLite file is compiled, if it has several. The default is the first one, which
  runtimes also run.

A project file has them as ``dims``, ``constants``, ``state`` and ``signature``, the command line as ``-O dim.time=16``,
``-O constant.sr=16000``, ``-O state.h_in=h_out`` and ``-O signature=encode``. They are options of the compiler, with
these names. So an archive is made again if one of them changes, as for every option.

For example, a voice activity detector in ONNX with the inputs ``x`` [1, time], ``sr`` and ``h_in`` and the outputs
``p`` and ``h_out``::

    dims: {time: 512}      constants: {sr: 16000}      state: {h_in: h_out}

becomes a network with the input ``x`` [1, 512], the output ``p``, and a state of the size of ``h_in``.

The choices are checked where they are used, since only the model file has the names: ``dimensions`` and
``reader`` of ONNX, ``models`` for both formats. A choice that does not fit the format is refused, not ignored.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from mlfbuild.library import OptionValue

DIM, STATE, CONSTANT = "dim.", "state.", "constant."
"""The beginnings of the names of options."""
SIGNATURE = "signature"
"""The name of an option."""

AbsentInputs = Mapping[tuple[int, str, int], Collection[tuple[int, ...]]]
"""The positions of absent inputs by the code of an operator, the name of its first output and the number of the others.

Operators that share these may have different ones.
"""


@dataclass(frozen=True)
class Choices:
    """Sizes by the name of the dimension, outputs by the input that gets their value in the next run, a signature.

    ``constants`` are numbers by the input whose elements they are in every run.
    """

    dims: Mapping[str, int] = field(default_factory=dict)
    state: Mapping[str, str] = field(default_factory=dict)
    signature: str | None = None
    constants: Mapping[str, OptionValue] = field(default_factory=dict)
    accelerator: str = ""
    """The NPU for which Vela compiled the file; no choice of the user, but of the target, as the next one."""
    absent: AbsentInputs = field(default_factory=dict)
    """The absent inputs of operators in the file that Vela read: it writes the others without gaps."""

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
