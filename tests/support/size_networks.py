"""Networks of any number of layers, whose tensors live in different ways: for tests of the compiler's work."""

from collections.abc import Callable, Mapping

import numpy as np

from support.tflite_builder import Network

_AFFINE = {"scale": 0.05, "zero_point": 3}
_RANDOM = np.random.default_rng(0)


def _layer(net: Network, source: int, channels: int, *, stride: int = 1, size: int = 1) -> int:
    weights = _RANDOM.integers(-127, 128, (channels, size, size, net.tensors[source].shape[3]), np.int8)
    bias = np.zeros(channels, np.int32)
    return net.conv2d(
        source, weights, bias, stride=(stride, stride), padding="SAME", activation="RELU",
        weight_scales=[0.01] * channels, **_AFFINE,
    )  # fmt: skip


def _join(net: Network, parts: list[int]) -> int:
    shape = [*net.tensors[parts[0]].shape[:3], sum(net.tensors[part].shape[3] for part in parts)]
    output = net.activation(shape, **_AFFINE)
    return net.operator("CONCATENATION", parts, output, "ConcatenationOptions", Axis=3)


def chain(layers: int) -> bytes:
    """Each layer reads the one before."""
    net = Network()
    tensor = net.input((1, 8, 8, 8), **_AFFINE)
    for _ in range(layers):
        tensor = _layer(net, tensor, 8)
    return net.build([tensor])


def residual(layers: int) -> bytes:
    """Each third layer adds the input of the two layers before it."""
    net = Network()
    tensor = net.input((1, 8, 8, 8), **_AFFINE)
    for _ in range(max(1, layers // 3)):
        tensor = net.add(tensor, _layer(net, _layer(net, tensor, 16), 8), **_AFFINE)
    return net.build([tensor])


def branches(layers: int) -> bytes:
    """Four branches of different width that are joined, as in Inception."""
    net = Network()
    tensor = net.input((1, 8, 8, 16), **_AFFINE)
    for _ in range(max(1, layers // 6)):
        parts = [_layer(net, tensor, width) for width in (2, 4, 4, 6)]
        tensor = _layer(net, _join(net, parts), 16)
    return net.build([tensor])


def pyramid(layers: int) -> bytes:
    """Blocks of layers whose first results are kept for the end, as in a detector or a U-Net."""
    net = Network()
    tensor = net.input((1, 32, 40, 4), **_AFFINE)
    kept = []
    for at in range(max(2, layers)):
        tensor = _layer(net, tensor, 4 + 4 * (at % 3), size=3 if at % 4 == 0 else 1)
        if at % max(1, layers // 6) == 0:
            kept.append(_layer(net, tensor, 4))
    return net.build([_join(net, [*kept, _layer(net, tensor, 4)])])


FAMILIES: Mapping[str, Callable[[int], bytes]] = {
    "chain": chain, "residual": residual, "branches": branches, "pyramid": pyramid,
}  # fmt: skip
