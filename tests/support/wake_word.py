"""A small streaming network: one frame of features per run; ring buffers in variables hold previous values."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from support.tflite_builder import Network

Array = npt.NDArray[Any]

FEATURES, CHANNELS, WORDS = 8, 12, 4
FRAMES, HIDDEN = 6, 5
"""Number of rows of the ring buffers."""


class _Layers:
    """Layers with random weights over a network of one element type."""

    def __init__(self, dtype: str) -> None:
        self.network = Network()
        self.start = Network()
        self.random = np.random.default_rng(11)
        self.int8 = dtype == "int8"

    def affine(self, scale: float, zero_point: int) -> dict[str, Any]:
        return {"scale": scale, "zero_point": zero_point} if self.int8 else {}

    def parameters(self, shape: Sequence[int], channels: int) -> dict[str, Any]:
        if not self.int8:
            weights = self.random.normal(0, 0.3, shape).astype(np.float32)
            return {"weights": weights, "bias": self.random.normal(0, 0.3, channels).astype(np.float32)}
        return {
            "weights": self.random.integers(-127, 128, shape, dtype=np.int8),
            "bias": self.random.integers(-500, 500, channels, dtype=np.int32),
            "weight_scales": self.random.uniform(0.003, 0.006, channels).astype(np.float32).tolist(),
        }

    def ring_buffer(self, name: str, newest: int, rows: int) -> int:
        """Return the last ``rows`` values of ``newest`` [1, 1, 1, channels]; CALL_ONCE sets the initial ones."""
        net, spec = self.network, self.network.tensors[newest]
        shape = (1, rows, 1, spec.shape[3])
        affine = {"scale": spec.scales[0], "zero_point": spec.zero_points[0]} if self.int8 else {}
        handle = net.variable(name)
        kept = net.read(handle, shape, **affine)
        joined = net.like(newest, (1, rows + 1, *shape[2:]))
        net.operator("CONCATENATION", [kept, newest], joined, "ConcatenationOptions", Axis=1)
        bounds = [[0, 1, 0, 0], [1, rows + 1, *shape[2:]], [1, 1, 1, 1]]
        latest = net.move("STRIDED_SLICE", joined, shape, *map(net.integers, bounds), kind="StridedSliceOptions")
        net.assign(handle, latest)
        first = self.random.integers(-20, 21, shape).astype(np.int8 if self.int8 else np.float32)
        self.start.assign(self.start.variable(name), self.start.constant(first, **affine))
        return latest


def wake_word(dtype: str) -> bytes:
    """Return the file of a network from a frame [1, 1, 1, 8] to the scores [1, 4] of words."""
    layers = _Layers(dtype)
    net = layers.network
    net.call_once(1)
    frame = net.input((1, 1, 1, FEATURES), **layers.affine(0.05, -3), name="frame")
    window = layers.ring_buffer("frames", frame, FRAMES)
    hidden = net.conv2d(
        window, **layers.parameters((CHANNELS, FRAMES, 1, FEATURES), CHANNELS), **layers.affine(0.06, -128),
        activation="RELU",
    )  # fmt: skip
    window = layers.ring_buffer("hidden", hidden, HIDDEN)
    x = net.depthwise_conv2d(
        window, **layers.parameters((1, HIDDEN, 1, CHANNELS), CHANNELS), **layers.affine(0.1, 5), stride=(2, 1)
    )
    x = net.fully_connected(x, **layers.parameters((WORDS, CHANNELS), WORDS), **layers.affine(0.1, 0))
    net.others.append(layers.start)
    return net.build([net.softmax(x)])


def frames(dtype: str, count: int) -> list[list[Array]]:
    """Return the inputs of ``count`` runs."""
    random = np.random.default_rng(3)
    shape = (1, 1, 1, FEATURES)
    if dtype == "int8":
        return [[random.integers(-128, 128, shape).astype(np.int8)] for _ in range(count)]
    return [[random.normal(0, 2, shape).astype(np.float32)] for _ in range(count)]
