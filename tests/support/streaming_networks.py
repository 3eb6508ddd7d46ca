"""Networks that keep a state between runs, and the inputs of consecutive runs."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import HealthCheck, Phase, given, settings, strategies as st
from tflite.ActivationFunctionType import ActivationFunctionType

from support.drawing import ACTIVATIONS, Draw, Drawing
from support.lstm_networks import draw_lstm
from support.signal_networks import (
    draw_delay,
    draw_features,
    draw_framer,
    draw_overlap_add,
    draw_spectral_subtraction,
    draw_stacker,
)

Array = npt.NDArray[Any]

RUNS = 5
"""Number of runs, more than the state of most networks covers."""


@dataclass(frozen=True)
class StreamingCase:
    """A model file and the inputs of each run."""

    model: bytes = field(repr=False)
    runs: tuple[tuple[Array, ...], ...]


def _svdf(d: Drawing, state: str) -> None:
    batches, inputs, units = d.size(1, 3), d.size(1, 20), d.size(1, 5)
    rank, memory = d.size(1, 3), d.size(1, 7)
    filters = units * rank
    source = d.input((batches, inputs))
    if state == "float32":
        tensors = _float_weights(d, filters, inputs, memory, units)
    else:
        tensors = _quantized_weights(d, filters, inputs, memory, units, state)
    kept = d.network.activation((batches, memory * filters), **tensors.pop("affine"))
    d.network.tensors[kept].is_variable = True
    operands = [source, tensors["feature"], tensors["time"], tensors["bias"], kept]
    output = d.network.activation((batches, units), **d.affine(0.02, 1))
    activation = d.choice(*ACTIVATIONS) if state == "float32" else "RELU"
    d.network.operator("SVDF", operands, output, "SVDFOptions", Rank=rank,
                       FusedActivationFunction=getattr(ActivationFunctionType, activation))  # fmt: skip


def _float_weights(d: Drawing, filters: int, inputs: int, memory: int, units: int) -> dict[str, Any]:
    shapes = {"feature": (filters, inputs), "time": (filters, memory), "bias": (units,)}
    constants = {name: d.network.constant(d.data(shape)) for name, shape in shapes.items()}
    return constants | {"affine": {}}


def _quantized_weights(d: Drawing, filters: int, inputs: int, memory: int, units: int, state: str) -> dict[str, Any]:
    """Return scales at which features mostly fill the range of the state and sums that of the output."""
    limits = np.iinfo(state)
    feature_scale, time_scale = 0.01, 1 / limits.max
    source_scale = d.network.tensors[0].scales[0]
    greatest = source_scale * 255 * 127 * feature_scale * inputs
    zero_point = d.choice(0, d.size(-20, 20)) if state == "int8" else 0
    # TensorFlow Lite Micro wraps a saturated int8 if it adds a zero point.
    reach = greatest * 1.3 if zero_point else greatest / inputs**0.5 * d.choice(0.25, 0.5, 1)
    kept_scale = float(np.float32(reach / limits.max))
    feature = d.random.integers(-127, 128, (filters, inputs), dtype=np.int8)
    time = d.random.integers(-limits.max, limits.max, (filters, memory), endpoint=True).astype(state)
    bias_scale = float(np.float32(kept_scale) * np.float32(time_scale))
    bias = np.clip(d.random.normal(0, 0.3, units) / bias_scale, -(1 << 30), 1 << 30).astype(np.int32)
    return {
        "feature": d.network.constant(feature, feature_scale),
        "time": d.network.constant(time, time_scale),
        "bias": d.network.constant(bias, bias_scale),
        "affine": {"scale": kept_scale, "zero_point": zero_point, "dtype": state},
    }


STREAMING: Mapping[str, tuple[str, Callable[[Drawing], None]]] = {
    "SVDF float32": ("float32", lambda d: _svdf(d, "float32")),
    "SVDF int8": ("int8", lambda d: _svdf(d, "int16")),
    "SVDF int8 with an int8 state": ("int8", lambda d: _svdf(d, "int8")),
    "SignalDelay int16": ("int16", draw_delay),
    "SignalFilterBankSpectralSubtraction uint32": ("uint32", draw_spectral_subtraction),
    "SignalFilterBankSpectralSubtraction uint32 among others": ("uint32", draw_features),
    "SignalFramer int16": ("int16", draw_framer),
    "SignalStacker int16": ("int16", draw_stacker),
    **{f"SignalOverlapAdd {dtype}": (dtype, partial(draw_overlap_add, dtype=dtype)) for dtype in ("int16", "float32")},
    **{f"UNIDIRECTIONAL_SEQUENCE_LSTM {dtype}": (dtype, draw_lstm) for dtype in ("int8", "int16", "float32")},
}
"""The element type of the inputs and the strategy of the network, by kind."""


def streaming_cases(kind: str) -> st.SearchStrategy[StreamingCase]:
    """Return a strategy of networks of one ``kind`` with the inputs of ``RUNS`` runs."""
    dtype, build = STREAMING[kind]

    @st.composite
    def strategy(draw: Draw) -> StreamingCase:
        drawing = Drawing(draw, dtype)
        build(drawing)
        first = drawing.case()
        later = [tuple(drawing.data(value.shape) for value in first.inputs) for _ in range(RUNS - 1)]
        return StreamingCase(first.model, (first.inputs, *later))

    return strategy()


def drawn_streams(kind: str, count: int) -> list[StreamingCase]:
    """Return ``count`` networks of one ``kind``, always the same."""
    found: list[StreamingCase] = []

    @settings(
        max_examples=count, database=None, derandomize=True, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(streaming_cases(kind))
    def collect(case: StreamingCase) -> None:
        found.append(case)

    collect()
    return found
