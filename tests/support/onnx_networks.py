"""Small ONNX networks in the form of exporters, with the same random weights in every run."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, helper

from support.onnx_models import Port, QuantizedNetwork, Scale, model

Array = npt.NDArray[Any]


class Exported:
    """Nodes and float32 weights, with the tensor names of PyTorch's exporter."""

    def __init__(self, seed: int) -> None:
        self._random = np.random.default_rng(seed)
        self.nodes: list[NodeProto] = []
        self.constants: dict[str, Array] = {}

    def __call__(self, operator: str, *inputs: str, **attributes: Any) -> str:
        """Add a node; return the name of its output."""
        output = f"/{operator}_{len(self.nodes)}_output_0"
        self.nodes.append(helper.make_node(operator, list(inputs), [output], **attributes))
        return output

    def floats(self, *shape: int) -> str:
        """Add weights; return their name."""
        return self.known(self._random.uniform(-0.5, 0.5, shape).astype(np.float32))

    def positive(self, *shape: int) -> str:
        """Add weights above 0.5; return their name."""
        return self.known(self._random.uniform(0.5, 1.5, shape).astype(np.float32))

    def known(self, value: Array) -> str:
        """Add a constant node, as exporters do for small constants; return its name."""
        if value.size < 8:
            tensor = helper.make_tensor(
                "value", helper.np_dtype_to_tensor_dtype(value.dtype), value.shape, value.ravel()
            )
            return self("Constant", value=tensor)
        name = f"onnx::{len(self.constants)}"
        self.constants[name] = value
        return name

    def integers(self, *values: int) -> str:
        """Add an int64 list; return its name."""
        return self.known(np.array(values, np.int64))

    def bytes(self, inputs: Sequence[Port], output: str, shape: Sequence[int | None], opset: int) -> bytes:
        """Return the file."""
        self.nodes.append(helper.make_node("Identity", [output], ["output"]))
        return model(self.nodes, inputs, [("output", shape)], self.constants, opset)


def mobile_network() -> bytes:
    """Return PyTorch's inverted bottleneck with squeeze and excitation, Clip with inputs, ``x.view(x.size(0), -1)``."""
    n = Exported(1)

    def normalised(x: str, outputs: int, inputs: int, size: int, **attributes: Any) -> str:
        pads = [size // 2] * 4
        made = n("Conv", x, n.floats(outputs, inputs, size, size), kernel_shape=[size, size], pads=pads, **attributes)
        moments = n.positive(outputs), n.floats(outputs), n.floats(outputs), n.positive(outputs)
        return n("BatchNormalization", made, *moments)

    def relu6(x: str) -> str:
        return n("Clip", x, n.known(np.float32(0)), n.known(np.float32(6)))

    x = relu6(normalised("input", 8, 3, 3, strides=[2, 2]))
    wide = relu6(normalised(x, 16, 8, 1))
    wide = normalised(wide, 16, 1, 3, group=16)
    gate = n("Conv", n("GlobalAveragePool", wide), n.floats(4, 16, 1, 1), n.floats(4))
    gate = n("HardSigmoid", n("Conv", n("Relu", gate), n.floats(16, 4, 1, 1), n.floats(16)), alpha=1 / 6)
    narrow = normalised(n("HardSwish", n("Mul", wide, gate)), 8, 16, 1)
    x = n("Add", x, narrow)
    grouped = n("Conv", x, n.floats(8, 2, 1, 1), n.floats(8), group=4)
    shuffled = n("Reshape", grouped, n.integers(1, 4, 2, 5, 4))
    shuffled = n("Reshape", n("Transpose", shuffled, perm=[0, 2, 1, 3, 4]), n.integers(1, 8, 5, 4))
    batch = n("Unsqueeze", n("Gather", n("Shape", shuffled), n.known(np.int64(0)), axis=0), n.integers(0))
    flat = n("Reshape", shuffled, n("Concat", batch, n.integers(-1), axis=0))
    return n.bytes(
        [("input", ("batch", 3, 10, 8))], n("Gemm", flat, n.floats(5, 160), n.floats(5), transB=1), (1, 5), 17
    )


def attention() -> bytes:
    """Return PyTorch's self-attention over patches with one head, decomposed LayerNormalization, GELU as tanh."""
    n = Exported(2)

    def layer_norm(x: str) -> str:
        centred = n("Sub", x, n("ReduceMean", x, axes=[-1]))
        variance = n("ReduceMean", n("Pow", centred, n.known(np.float32(2))), axes=[-1])
        deviation = n("Sqrt", n("Add", variance, n.known(np.float32(1e-5))))
        return n("Add", n("Mul", n("Div", centred, deviation), n.positive(8)), n.floats(8))

    patches = n("Conv", "input", n.floats(8, 1, 4, 4), n.floats(8), kernel_shape=[4, 4], strides=[4, 4])
    shape = n("Slice", n("Shape", patches), n.integers(0), n.integers(2), n.integers(0))
    flat = n("Reshape", patches, n("Concat", shape, n.integers(-1), axis=0))
    x = n("Add", n("Transpose", flat, perm=[0, 2, 1]), n.floats(1, 6, 8))
    qkv = n("Add", n("MatMul", layer_norm(x), n.floats(8, 24)), n.floats(24))
    n.nodes.append(helper.make_node("Split", [qkv, n.integers(8, 8, 8)], ["q", "k", "v"], axis=-1))
    scores = n("Div", n("MatMul", "q", n("Transpose", "k", perm=[0, 2, 1])), n.known(np.float32(8**0.5)))
    x = n("Add", x, n("MatMul", n("Softmax", scores, axis=-1), "v"))
    hidden = n("Add", n("MatMul", layer_norm(x), n.floats(8, 16)), n.floats(16))
    cubed = n("Mul", n("Pow", hidden, n.known(np.float32(3))), n.known(np.float32(0.044715)))
    inner = n("Tanh", n("Mul", n("Add", hidden, cubed), n.known(np.float32(0.7978846))))
    gelu = n("Mul", n("Mul", hidden, n.known(np.float32(0.5))), n("Add", inner, n.known(np.float32(1))))
    x = n("Add", x, n("MatMul", gelu, n.floats(16, 8)))
    return n.bytes([("input", (1, 1, 8, 12))], n("ReduceMean", x, axes=[1], keepdims=0), (1, 8), 17)


def segmentation() -> bytes:
    """Return PyTorch's encoder and decoder: Resize by scales and by computed sizes, ConvTranspose, skip by Concat."""
    n = Exported(3)
    down = n("Relu", n("Conv", "input", n.floats(4, 2, 3, 3), n.floats(4), pads=[1, 1, 1, 1]))
    low = n("MaxPool", down, kernel_shape=[2, 2], strides=[2, 2])
    low = n("LeakyRelu", n("Conv", low, n.floats(6, 4, 3, 3), n.floats(6), pads=[1, 1, 1, 1]), alpha=0.1)
    half = n("Slice", n("Shape", down), n.integers(2), n.integers(4), n.integers(0))
    sizes = n("Concat", n("Slice", n("Shape", low), n.integers(0), n.integers(2), n.integers(0)), half, axis=0)
    up = n("Resize", low, "", "", sizes, mode="linear", coordinate_transformation_mode="pytorch_half_pixel")
    near = n("Resize", low, "", n.known(np.array([1, 1, 2, 2], np.float32)), mode="nearest",
             coordinate_transformation_mode="asymmetric", nearest_mode="floor")  # fmt: skip
    transposed = n("ConvTranspose", low, n.floats(6, 3, 3, 3), n.floats(3), strides=[2, 2], pads=[1, 1, 1, 1],
                   output_padding=[1, 1])  # fmt: skip
    joined = n("Concat", down, up, near, n("InstanceNormalization", transposed, n.positive(3), n.floats(3)), axis=1)
    classes = n("Conv", joined, n.floats(3, 19, 1, 1), n.floats(3))
    return n.bytes([("input", (1, 2, 8, 6))], n("Softmax", classes, axis=1), (1, 3, 8, 6), 17)


def keras_network() -> bytes:
    """Return tf2onnx's form: NHWC input, transposes around convolutions, separate padding, a dense layer as MatMul."""
    n = Exported(4)

    def sandwich(x: str, operator: str, *weights: str, **attributes: Any) -> str:
        made = n(operator, n("Transpose", x, perm=[0, 3, 1, 2]), *weights, **attributes)
        return n("Transpose", made, perm=[0, 2, 3, 1])

    padded = n("Pad", "input", n.integers(0, 0, 0, 0, 0, 1, 1, 0), n.known(np.float32(0)))
    x = n("Relu", n("Add", sandwich(padded, "Conv", n.floats(6, 2, 3, 3), strides=[2, 2]), n.floats(1, 1, 1, 6)))
    x = sandwich(x, "Conv", n.floats(6, 1, 3, 3), n.floats(6), group=6, auto_pad="SAME_UPPER")
    x = n("Add", n("Mul", x, n.floats(6)), n.floats(6))
    x = sandwich(x, "MaxPool", kernel_shape=[2, 2], strides=[2, 2], auto_pad="SAME_UPPER")
    x = n("Reshape", x, n.integers(-1, 24))
    x = n("Sigmoid", n("Add", n("MatMul", x, n.floats(24, 3)), n.floats(3)))
    return n.bytes([("input", (1, 8, 7, 2))], x, (1, 3), 15)


EXPORTED: Mapping[str, Callable[[], bytes]] = {
    "attention": attention, "keras": keras_network, "mobile": mobile_network, "segmentation": segmentation,
}  # fmt: skip


def quantized_network() -> QuantizedNetwork:
    """Return the form of onnxruntime's quantize_static: a pair after every tensor, one weight scale per channel."""
    network, random = QuantizedNetwork(), np.random.default_rng(5)
    x = network.input("x", (1, 3, 12, 12), Scale(0.02, 128))

    def convolution(
        name: str, source: str, scale: float, outputs: int, inputs: int, size: int, **attributes: Any
    ) -> str:
        factors = random.uniform(0.002, 0.01, outputs).astype(np.float32)
        stored = random.integers(-127, 128, (outputs, inputs, size, size))
        bias = network.weights(f"{name}_b", random.integers(-500, 500, outputs), Scale(factors * scale, 0, "int32"))
        weights = network.weights(f"{name}_w", stored, Scale(factors, 0, "int8"))
        network.add("Conv", [source, weights, bias], f"{name}_c", **attributes)
        return network.add("Relu", [f"{name}_c"], f"{name}_r")

    first = network.requantized(
        convolution("first", x, 0.02, 8, 3, 3, strides=[2, 2], pads=[0, 0, 1, 1]), Scale(0.03, 0)
    )
    depthwise = convolution("depthwise", first, 0.03, 8, 1, 3, group=8, pads=[1, 1, 1, 1])
    point = convolution("point", network.requantized(depthwise, Scale(0.04, 0)), 0.04, 8, 8, 1)
    point = network.requantized(point, Scale(0.05, 0))
    added = network.requantized(network.add("Add", [point, first], "added"), Scale(0.07, 0))
    pooled = network.requantized(network.add("GlobalAveragePool", [added], "pooled"), Scale(0.03, 0))
    flat = network.requantized(network.add("Flatten", [pooled], "flat"), Scale(0.03, 0))
    weights = network.weights("dense_w", random.integers(-127, 128, (4, 8)), Scale(0.01, 0, "int8"))
    products = Scale(float(np.float32(0.03) * np.float32(0.01)), 0, "int32")
    bias = network.weights("dense_b", random.integers(-500, 500, 4), products)
    dense = network.requantized(network.add("Gemm", [flat, weights, bias], "dense", transB=1), Scale(0.08, 128))
    network.output(network.quantized(network.add("Softmax", [dense], "shares"), Scale(1 / 256, 0)), 2)
    return network
