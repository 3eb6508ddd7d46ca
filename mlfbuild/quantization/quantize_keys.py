"""The keys of a project file that quantise a model, and the mistakes that need two of them to be seen."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

from mlfbuild.core import Mistake, unknown
from mlfbuild.core.keys import NOT_EMPTY, Keys, one_of
from mlfbuild.datasets import DATA
from mlfbuild.quantization.engines import METHOD_WORDS, METHODS, ONNX, engine_of

MINMAX = "minmax"
ACTIVATIONS, WEIGHTS, IO = ("int8", "int16"), ("int8", "int4"), ("int8", "int16", "float32")


@dataclass(frozen=True)
class QuantizeKeys(Keys):
    """Quantisation of a float network before it is compiled."""

    TITLE = "quantize"

    calibration: DATA
    """Cases like those of the field, by which ranges are measured, 100 or more: data/calibration.npz"""
    activations: Annotated[str, one_of("type", ACTIVATIONS)] = "int8"
    """Type of the values between operators: int8 or int16. Default: int8."""
    weights: Annotated[str, one_of("type", WEIGHTS)] = "int8"
    """Type of weights: int8, or int4 where engine and operator have it. Default: int8."""
    per_channel: bool = True
    """A scale for each output channel of weights instead of one for all. Default: true."""
    method: Annotated[str, one_of("method", METHOD_WORDS)] = MINMAX
    """Method that turns ranges into scales; the format decides which methods exist. Default: minmax."""
    keep_float: Annotated[tuple[str, ...], NOT_EMPTY] = ()
    """Nodes by name or output, and kinds of operators, that stay in float: [Softmax, dense_2]"""
    io: Annotated[str, one_of("type", IO)] = ""
    """Type of inputs and outputs: that of `activations`, or float32. Default: that of `activations`."""

    @property
    def io_type(self) -> str:
        """The type of inputs and outputs."""
        return self.io or self.activations


def quantize_problems(source: Path, keys: QuantizeKeys) -> Iterator[tuple[str, Mistake]]:
    """Yield the key and the mistake of each value in ``keys`` that ``source`` or another key excludes."""
    engine = engine_of(source)
    if engine is None:
        reason = f"{source.name} is not a float network in .tflite or .onnx"
        yield "", Mistake("quantize-format", reason=reason, hint="name such a file as source, or remove quantize")
    elif keys.method not in METHODS[engine]:
        yield "method", unknown("method", keys.method, METHODS[engine])
    if keys.weights == "int4" and (engine == ONNX or keys.activations == "int16"):
        of = "of .onnx files" if engine == ONNX else "with int16 activations"
        reason = f"no runtime has layers {of} with int4 weights on integers"
        yield "weights", Mistake("quantize-int4", reason=reason, hint="write int8")
    if keys.io_type not in (keys.activations, "float32"):
        reason = f"inputs of {keys.io_type} do not fit activations of {keys.activations}"
        yield "io", Mistake("quantize-io", reason=reason, hint=f"write {keys.activations} or float32, or remove io")
