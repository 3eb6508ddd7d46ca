"""Hypothesis strategies of networks of one operator: the model and an input.

Sizes are small; strides, dilations, paddings, scales, zero points and activations vary over the values that TensorFlow
Lite Micro accepts. Data comes from a drawn seed, because shrinking every element is not worth the time.
"""

from collections.abc import Callable, Mapping, Sequence

from hypothesis import HealthCheck, Phase, given, settings, strategies as st

from support import detection_networks, elementwise_networks, movement_networks, reduction_networks, signal_networks
from support.drawing import ACTIVATIONS, Array, Case, Draw, Drawing
from support.oracle import litert_run, tflite_micro_run

__all__ = ["ACTIVATIONS", "OPERATORS", "OPERATORS_AND_TYPES", "Case", "Drawing", "cases", "drawn", "judged"]


def _conv2d(d: Drawing) -> None:
    depth, channels = d.size(1, 5), d.size(1, 6)
    shape, dilation = d.pair(1, 4), d.pair(1, 2)
    image = d.input(_image_shape(d, shape, dilation, depth))
    layer = d.parameters((channels, *shape, depth), channels, ("int64", "int32"))
    d.network.conv2d(image, **layer, **d.window(), dilation=dilation, **d.affine(0.02, 4))


def _depthwise_conv2d(d: Drawing) -> None:
    depth, multiplier = d.size(1, 5), d.size(1, 3)
    shape, dilation = d.pair(1, 4), d.pair(1, 2)
    image = d.input(_image_shape(d, shape, dilation, depth))
    layer = d.parameters((1, *shape, depth * multiplier), depth * multiplier)
    d.network.depthwise_conv2d(image, **layer, **d.window(), dilation=dilation, **d.affine(0.02, 2))


def _image_shape(d: Drawing, shape: tuple[int, int], dilation: tuple[int, int], depth: int) -> tuple[int, ...]:
    """Draw an image in which the filter has at least one VALID position."""
    rows, columns = ((size - 1) * step + 1 for size, step in zip(shape, dilation, strict=True))
    return d.size(1, 2), d.size(rows, rows + 5), d.size(columns, columns + 5), depth


def _fully_connected(d: Drawing) -> None:
    depth, channels, keep_num_dims = d.size(1, 20), d.size(1, 8), d.choice(True, False)
    source = d.input((d.size(1, 2), d.size(1, 3), depth))
    layer = d.parameters((channels, depth), channels, ("int64", "int32"))
    options = {"activation": d.choice(*ACTIVATIONS), "keep_num_dims": keep_num_dims}
    d.network.fully_connected(source, **layer, **options, **d.affine(0.02, 2))


def _transpose_conv(d: Drawing) -> None:
    """Draw an output of any size from which a convolution with the same window computes the input's size."""
    depth, channels, size, stride = d.size(1, 4), d.size(1, 4), d.pair(1, 4), d.pair(1, 3)
    image = d.input((d.size(1, 2), *d.pair(1, 4), depth))
    rows, columns = d.network.tensors[image].shape[1:3]
    padding = d.choice("SAME", "VALID")
    wanted = [
        (count - 1) * step + (d.size(1, step) if padding == "SAME" else length)
        for count, step, length in zip((rows, columns), stride, size, strict=True)
    ]
    layer = d.parameters((channels, *size, depth), channels, ("int64", "int16"))
    d.network.transpose_conv(image, wanted, **layer, stride=stride, padding=padding, **d.affine(0.02, 4))


def _batch_matmul(d: Drawing) -> None:
    rows, depth, columns = d.size(1, 4), d.size(1, 6), d.size(1, 4)
    batches = d.shape(1, 3, 3) if d.choice(True, False) else ()
    other = tuple(d.choice(size, 1) for size in batches)
    adj_x, adj_y = d.choice(True, False), d.choice(True, False)
    first = d.input((*batches, *((depth, rows) if adj_x else (rows, depth))))
    second = d.input((*other, *((columns, depth) if adj_y else (depth, columns))))
    output = d.network.activation((*batches, rows, columns), **d.affine(0.02, 4))
    d.network.operator("BATCH_MATMUL", [first, second], output, "BatchMatMulOptions", AdjX=adj_x, AdjY=adj_y)


def _pool(kind: str) -> Callable[[Drawing], None]:
    def draw(d: Drawing) -> None:
        shape = d.pair(1, 4)
        image = d.input(_image_shape(d, shape, (1, 1), d.size(1, 4)))
        d.network.pool2d(kind, image, shape, **d.window())

    return draw


def _softmax(d: Drawing) -> None:
    """Add a SOFTMAX from int8 to int8 or int16, or from another type to itself."""
    source = d.input(tuple(d.size(1, 12) for _ in range(d.size(1, 3))))
    affine = {
        "int8": d.choice({"scale": 1 / 256, "zero_point": -128}, {"scale": 2.0**-16, "zero_point": -32768}),
        "int16": {"scale": 2.0**-15},
    }.get(d.dtype, {})
    if affine and affine["scale"] < 1 / 256:
        affine = {**affine, "dtype": "int16"}
    d.network.unary("SOFTMAX", source, "SoftmaxOptions", {"Beta": d.choice(1.0, 0.25, 2.5)}, **affine)


def _log_softmax(d: Drawing) -> None:
    affine = {"scale": 1 / 16, "zero_point": 127} if d.quantized else {}
    d.network.unary("LOG_SOFTMAX", d.input(d.shape(1, 3, 9)), "LogSoftmaxOptions", {}, **affine)


def _reshape(d: Drawing) -> None:
    shape = (d.size(1, 4), d.size(1, 4), d.size(1, 4))
    d.network.reshape(d.input(shape), (shape[0] * shape[1], shape[2]), with_shape_tensor=d.choice(True, False))


def _pad(d: Drawing) -> None:
    shape = tuple(d.size(1, 4) for _ in range(d.size(1, 5)))
    d.network.pad(d.input(shape), [d.pair(0, 2) for _ in shape])


_LAYERS: Mapping[str, Callable[[Drawing], None]] = {
    "AVERAGE_POOL_2D": _pool("AVERAGE"), "BATCH_MATMUL": _batch_matmul, "CONV_2D": _conv2d,
    "DEPTHWISE_CONV_2D": _depthwise_conv2d, "FULLY_CONNECTED": _fully_connected, "LOG_SOFTMAX": _log_softmax,
    "MAX_POOL_2D": _pool("MAX"), "PAD": _pad, "RESHAPE": _reshape, "SOFTMAX": _softmax,
    "TRANSPOSE_CONV": _transpose_conv,
}  # fmt: skip

_WEIGHTED = ("BATCH_MATMUL", "CONV_2D", "DEPTHWISE_CONV_2D", "FULLY_CONNECTED", "TRANSPOSE_CONV")

OPERATORS: Mapping[str, Callable[[Drawing], None]] = {
    **_LAYERS,
    **elementwise_networks.OPERATORS,
    **movement_networks.OPERATORS,
    **reduction_networks.OPERATORS,
    **signal_networks.OPERATORS,
    **detection_networks.OPERATORS,
}

LITERT: Mapping[str, Sequence[str]] = {
    **elementwise_networks.LITERT,
    **movement_networks.LITERT,
    **reduction_networks.LITERT,
    **signal_networks.LITERT,
    **detection_networks.LITERT,
}
"""The element types of each operator that LiteRT supports and TensorFlow Lite Micro does not."""

_MICRO: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(_LAYERS, ("int8", "float32")),
    **dict.fromkeys(_WEIGHTED, ("int8", "int16", "float32")),
    **dict.fromkeys(("AVERAGE_POOL_2D", "MAX_POOL_2D", "SOFTMAX"), ("int8", "int16", "float32")),
    "PAD": ("int8", "int16", "int32", "float32"),
    "RESHAPE": movement_networks.EVERY,
    **elementwise_networks.TYPES,
    **movement_networks.TYPES,
    **reduction_networks.TYPES,
    **signal_networks.TYPES,
    **detection_networks.TYPES,
}
"""The element types that TensorFlow Lite Micro supports."""

TYPES: Mapping[str, Sequence[str]] = {
    operator: (*_MICRO.get(operator, ()), *LITERT.get(operator, ())) for operator in OPERATORS
}
"""The element types of each operator's inputs."""

OPERATORS_AND_TYPES = [(operator, dtype) for operator in OPERATORS for dtype in TYPES[operator]]


def cases(operator: str, dtype: str, stretch: int = 1) -> st.SearchStrategy[Case]:
    """Return a strategy of networks of one ``operator`` with inputs of ``dtype``.

    ``stretch`` multiplies the longest dimensions.
    """

    @st.composite
    def strategy(draw: Draw) -> Case:
        drawing = Drawing(draw, dtype, stretch)
        OPERATORS[operator](drawing)
        return drawing.case()

    return strategy()


def drawn(operator: str, dtype: str, count: int, stretch: int = 1) -> list[Case]:
    """Return ``count`` networks of one operator, always the same."""
    found: list[Case] = []

    @settings(
        max_examples=count, database=None, derandomize=True, deadline=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck),
    )  # fmt: skip
    @given(cases(operator, dtype, stretch))
    def collect(case: Case) -> None:
        found.append(case)

    collect()
    return found


def judged(operator: str, dtype: str, case: Case) -> list[Array]:
    """Return the outputs of the oracle for ``case``; raises ``RuntimeError`` if the oracle refuses the network."""
    run = litert_run if dtype in LITERT.get(operator, ()) else tflite_micro_run
    outputs = run(case.model, case.inputs)
    return detection_networks.defined(outputs) if operator == "TFLite_Detection_PostProcess" else outputs
