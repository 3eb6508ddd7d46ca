"""Write float networks with random weights, as ONNX exporters write them, and quantise each with ``mlfbuild quantize``.

``kws`` and ``resnet8`` have the layers of the networks of MLPerf Tiny. ``tcn`` has residual blocks of dilated Conv1D,
``mobilenet-v3-like`` has HardSwish and squeeze-and-excite gates around depthwise convolutions of 3x3 and 5x5. Weights
are normal numbers scaled by He's rule, so that every layer uses the range of its type.
"""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
from onnx import TensorProto, helper, numpy_helper

_CASES = 8
"""Of calibration, normal numbers."""


class _Layers:
    """A network that is being written; a value is the name of a tensor, whose channels are ``channels[name]``."""

    def __init__(self, *shape: int) -> None:
        self.shape = (1, *shape)
        self.channels = {"input": shape[0]}
        self._random = np.random.default_rng(0)
        self._nodes: list[onnx.NodeProto] = []
        self._constants: list[onnx.TensorProto] = []

    def node(self, kind: str, *inputs: str, channels: int = 0, **attributes: Any) -> str:
        name = f"{kind.lower()}{len(self._nodes)}"
        self._nodes.append(helper.make_node(kind, inputs, [name], name, **attributes))
        self.channels[name] = channels or self.channels[inputs[0]]
        return name

    def conv(self, x: str, channels: int, *kernel: int, pads: Sequence[int] = (), **attributes: Any) -> str:
        """Convolve; ``pads`` are those before and behind each dimension, half a kernel if absent."""
        weights = self._weights(channels, self.channels[x] // attributes.get("group", 1), *kernel)
        around = pads or [size // 2 for size in kernel] * 2
        return self.node("Conv", x, *weights, channels=channels, kernel_shape=kernel, pads=around, **attributes)

    def depthwise(self, x: str, size: int, stride: int = 1) -> str:
        return self.conv(x, self.channels[x], size, size, group=self.channels[x], strides=[stride, stride])

    def relu(self, x: str) -> str:
        return self.node("Relu", x)

    def classify(self, x: str, classes: int) -> bytes:
        """Return the file, whose last layers are an average and a fully connected one."""
        flat = self.node("Flatten", self.node("GlobalAveragePool", x))
        self._nodes.append(helper.make_node("Gemm", [flat, *self._weights(classes, self.channels[x])], ["output"],
                                            "classes", transB=1))  # fmt: skip
        ports = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape)
                 for name, shape in (("input", self.shape), ("output", (1, classes)))]  # fmt: skip
        graph = helper.make_graph(self._nodes, "graph", ports[:1], ports[1:], self._constants)
        made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
        return bytes(made.SerializeToString())

    def _weights(self, *shape: int) -> list[str]:
        names = [f"{word}{len(self._nodes)}" for word in ("weights", "bias")]
        spread = np.sqrt(2 / np.prod(shape[1:]))
        for name, size, scale in zip(names, (shape, shape[:1]), (spread, 0.1), strict=True):
            values = scale * self._random.standard_normal(size)
            self._constants.append(numpy_helper.from_array(values.astype(np.float32), name))
        return names


def _kws() -> bytes:
    net = _Layers(1, 49, 10)
    x = net.relu(net.conv("input", 64, 10, 4, pads=(4, 1, 5, 1), strides=[2, 2]))
    for _ in range(4):
        x = net.relu(net.conv(net.relu(net.depthwise(x, 3)), 64, 1, 1))
    return net.classify(x, 12)


def _resnet8() -> bytes:
    net = _Layers(3, 32, 32)
    x = net.relu(net.conv("input", 16, 3, 3))
    for channels, stride in ((16, 1), (32, 2), (64, 2)):
        pads = (0, 0, 1, 1) if stride == 2 else ()
        inner = net.relu(net.conv(x, channels, 3, 3, pads=pads, strides=[stride, stride]))
        kept = net.conv(x, channels, 1, 1, strides=[stride, stride]) if stride == 2 else x
        x = net.relu(net.node("Add", net.conv(inner, channels, 3, 3), kept))
    return net.classify(x, 10)


def _tcn() -> bytes:
    net = _Layers(40, 128)
    x = net.conv("input", 32, 1)
    for dilation in (1, 2, 4, 8):
        inner = x
        for _ in range(2):
            inner = net.relu(net.conv(inner, 32, 3, pads=(2 * dilation, 0), dilations=[dilation]))
        x = net.relu(net.node("Add", inner, x))
    return net.classify(x, 12)


def _mobilenet_v3_like() -> bytes:
    net = _Layers(3, 64, 64)
    x = net.node("HardSwish", net.conv("input", 16, 3, 3, strides=[2, 2]))
    blocks = ((3, 16, 16, True, "Relu", 2), (3, 72, 24, False, "Relu", 2), (5, 96, 40, True, "HardSwish", 2),
              (5, 240, 40, True, "HardSwish", 1), (5, 120, 48, True, "HardSwish", 1))  # fmt: skip
    for size, inner, channels, gated, activation, stride in blocks:
        x = _bottleneck(net, x, size, inner, channels, gated, activation, stride)
    return net.classify(net.node("HardSwish", net.conv(x, 288, 1, 1)), 10)


def _bottleneck(
    net: _Layers, x: str, size: int, inner: int, channels: int, gated: bool, activation: str, stride: int
) -> str:
    """Expand, convolve each channel, multiply by gates, and reduce; add the input if shapes are equal."""
    made = net.node(activation, net.conv(x, inner, 1, 1))
    made = net.node(activation, net.depthwise(made, size, stride))
    if gated:
        squeezed = net.relu(net.conv(net.node("GlobalAveragePool", made), inner // 4, 1, 1))
        gate = net.node("HardSigmoid", net.conv(squeezed, inner, 1, 1), alpha=1 / 6, beta=0.5)
        made = net.node("Mul", made, gate)
    made = net.conv(made, channels, 1, 1)
    return net.node("Add", made, x) if stride == 1 and net.channels[x] == channels else made


TWINS: Mapping[str, Callable[[], bytes]] = {
    "kws": _kws,
    "resnet8": _resnet8,
    "tcn": _tcn,
    "mobilenet-v3-like": _mobilenet_v3_like,
}
"""Writers of the float networks, by name."""


def write_twins(network: str, types: Sequence[str], folder: Path) -> dict[str, Path]:
    """Write the float ``network`` and one with activations of each of ``types``; return the files by type."""
    source = folder / "float32.onnx"
    source.write_bytes(TWINS[network]())
    shape = [each.dim_value for each in onnx.load(source).graph.input[0].type.tensor_type.shape.dim]
    cases = np.random.default_rng(1).standard_normal((_CASES, *shape), np.float32)
    np.savez(folder / "calibration.npz", in0=cases)
    files = {"float32": source}
    for each in types:
        files[each] = folder / f"{each}.onnx"
        command = [sys.executable, "-m", "mlfbuild", "-q", "quantize", source, "--calibration",
                   folder / "calibration.npz", "--activations", each, "-o", files[each]]  # fmt: skip
        subprocess.run([*map(str, command)], check=True, stdout=subprocess.DEVNULL)
    return files
