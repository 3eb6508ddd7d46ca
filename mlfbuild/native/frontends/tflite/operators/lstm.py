"""UNIDIRECTIONAL_SEQUENCE_LSTM; only the plain form, which uses a part of its 24 inputs, is supported."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.ActivationFunctionType import ActivationFunctionType

from mlfbuild.native.frontends.tflite.operators.row import TfliteRow
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite, name_of
from mlfbuild.native.graph import Operator, ops

_ROW = (0,)
_WEIGHTS = (1, 2, 3, 4)
_RECURRENT = (5, 6, 7, 8)
_PEEPHOLE = (9, 10, 11)
_BIASES = (12, 13, 14, 15)
_PROJECTION = (16, 17)
_STATES = (18, 19)
_NORMALISATION = (20, 21, 22, 23)

_VALUES = (*_ROW, *_WEIGHTS, *_RECURRENT, *_BIASES, *_STATES)
_VARIANTS = {"peephole weights": _PEEPHOLE, "a projection": _PROJECTION, "layer normalisation": _NORMALISATION}
_ORDER = (*_VALUES, *_PEEPHOLE, *_PROJECTION, *_NORMALISATION)
"""Positions of inputs in the file: first those of the plain form, then those of its variants."""


def _lstm(site: TfliteSite) -> Operator:
    _check_variant(site)
    activation, clip, time_major, diagonal = site.fields(
        "UnidirectionalSequenceLSTMOptions",
        "FusedActivationFunction", "CellClip", "TimeMajor", "DiagonalRecurrentTensors",
    )  # fmt: skip
    if activation != ActivationFunctionType.TANH:
        name = name_of(ActivationFunctionType, activation)
        raise site.unsupported(f"activation {name} of the cell is not supported", "use TANH")
    if diagonal:
        raise site.unsupported("diagonal recurrent weights are not supported", "store them as a matrix")
    return ops.UnidirectionalSequenceLstm(bool(time_major), float(clip))


def _check_variant(site: TfliteSite) -> None:
    """Refuse inputs and options that the plain form does not have, and a plain form whose inputs are absent."""
    inputs = dict(zip(_ORDER, site.inputs, strict=True))
    for variant, positions in _VARIANTS.items():
        found = next((inputs[at] for at in positions if inputs[at] is not None), None)
        if found is not None:
            raise site.unsupported(
                f"a layer with {variant} ({found}) is not supported", "use a plain LSTM layer such as that of Keras"
            )
    absent = [at for at in _VALUES if inputs[at] is None]
    # TFLite marks a coupled gate (CIFG) by leaving out the parameters of the input gate.
    if absent and {*absent} <= {_WEIGHTS[0], _RECURRENT[0], _BIASES[0]}:
        raise site.unsupported(
            f"coupled input and forget gates (input {absent[0]} is absent) are not supported",
            "use a plain LSTM layer such as that of Keras",
        )
    if absent:
        raise site.wrong(f"input {absent[0]} is absent")


ROWS: Mapping[str, TfliteRow] = {
    "UNIDIRECTIONAL_SEQUENCE_LSTM": TfliteRow(
        _lstm, len(_VALUES), len(_ORDER) - len(_VALUES),
        order=_ORDER, layer=True, states=(len(_VALUES) - 2, len(_VALUES) - 1),
    ),
}  # fmt: skip
