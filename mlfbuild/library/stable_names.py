"""Choose names of inputs and outputs that stay the same when a model is trained and converted again.

Converters derive names from counters and scopes: TensorFlow's ``serving_default_keras_tensor_12:0`` becomes
``serving_default_keras_tensor_31:0`` in the next session, and firmware that used it no longer compiles. Names that a
person chose are kept.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

_SIGNATURE = re.compile(r"serving_default_(?P<own>.+?)(:[0-9]+)?")
"""TensorFlow's prefix of the name that the model's signature has for an input, and its index of an output."""
_GENERATED = re.compile(
    r"(Stateful)?PartitionedCall(_[0-9]+)?(:[0-9]+)?"  # outputs of TensorFlow's converter
    r"|keras_tensor(_?[0-9]+)?(:[0-9]+)?"  # Keras 3
    r"|(sequential|functional|model)(_[0-9]+)*/.*"  # layers of Keras models without a name
    r"|[0-9]+|onnx::.*|/.*"  # PyTorch's exporters
)
_NUMBERED = re.compile(r"(input|arg|args|inputs)(_[0-9]+)*")
"""Names in signatures that TensorFlow counts up."""


def own_name(name: str) -> str:
    """Return ``name`` without what a converter added; empty if it is entirely generated."""
    found = _SIGNATURE.fullmatch(name)
    own = found["own"] if found else name
    return "" if _GENERATED.fullmatch(own) or (found and _NUMBERED.fullmatch(own)) else own


def port_names(inputs: Sequence[str], outputs: Sequence[str]) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Return names for the inputs and outputs of a model file, which has these names for them.

    An input whose name is generated is called ``input``, or ``input_1`` at the second position; outputs likewise.
    """
    chosen: dict[str, str] = {}
    for kind, names in (("input", inputs), ("output", outputs)):
        for at, name in enumerate(names):
            own = own_name(name) or (f"{kind}_{at}" if at else kind)
            while name not in chosen and own in chosen.values():
                own += "_"
            chosen.setdefault(name, own)
    return tuple(chosen[name] for name in inputs), tuple(chosen[name] for name in outputs)
