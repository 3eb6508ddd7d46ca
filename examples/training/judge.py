"""The answers of TensorFlow Lite Micro, on this computer."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from tflite_micro.python.tflite_micro import runtime

Values = npt.NDArray[np.generic]


def tflite_micro(model: bytes, inputs: Values) -> Values:
    """Run the network on each of ``inputs`` [cases, 1, ...]; returns its outputs [cases, 1, ...]."""
    interpreter = runtime.Interpreter.from_bytes(model, arena_size=1 << 20)
    outputs = []
    for case in inputs:
        interpreter.set_input(case, 0)
        interpreter.invoke()
        outputs.append(interpreter.get_output(0))
    return np.stack(outputs)
