"""Layers with a forward and a backward pass; images are NHWC, weights have the layout of TFLite.

``backward(gradient)`` takes the loss's gradient with respect to the layer's output and returns the one with respect to
its input; it stores the gradients of the weights in ``gradients``, in the order of ``parameters``.
"""

from __future__ import annotations

from typing import Protocol

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[np.float32]


class Layer(Protocol):
    """One step of a network."""

    name: str
    parameters: list[Array]
    gradients: list[Array]

    def forward(self, inputs: Array) -> Array: ...
    def backward(self, gradient: Array) -> Array: ...


def _he(random: np.random.Generator, shape: tuple[int, ...], fan_in: int) -> Array:
    """He initialisation: a normal distribution that keeps the variance through ReLU."""
    return random.normal(0.0, np.sqrt(2.0 / fan_in), shape).astype(np.float32)


def _windows(images: Array, size: int) -> Array:
    """Return each pixel's ``size`` x ``size`` neighbourhood, zeros outside: [N, H, W, C, size, size], a view."""
    border = size // 2
    padded = np.pad(images, ((0, 0), (border, border), (border, border), (0, 0)))
    return np.lib.stride_tricks.sliding_window_view(padded, (size, size), axis=(1, 2))


def _add_windows(windows: Array, size: int) -> Array:
    """Add gradients of neighbourhoods [N, H, W, C, size, size] back onto their pixels."""
    count, height, width, channels = windows.shape[:4]
    border = size // 2
    padded = np.zeros((count, height + 2 * border, width + 2 * border, channels), np.float32)
    for row in range(size):
        for column in range(size):
            padded[:, row : row + height, column : column + width] += windows[..., row, column]
    return padded[:, border : border + height, border : border + width]


class Conv:
    """Convolution with an odd square kernel, stride 1, same padding, then ReLU; weights [out, size, size, in]."""

    def __init__(self, name: str, random: np.random.Generator, inputs: int, outputs: int, size: int) -> None:
        self.name, self.size = name, size
        weights = _he(random, (outputs, size, size, inputs), size * size * inputs)
        self.parameters = [weights, np.zeros(outputs, np.float32)]
        self.gradients: list[Array] = []

    def forward(self, inputs: Array) -> Array:
        weights, bias = self.parameters
        windows = _windows(inputs, self.size).transpose(0, 1, 2, 4, 5, 3)
        self._columns = windows.reshape(-1, weights[0].size)
        flat = self._columns @ weights.reshape(len(weights), -1).T + bias
        self._outputs = np.maximum(flat, 0.0).reshape(*inputs.shape[:3], len(weights))
        return self._outputs

    def backward(self, gradient: Array) -> Array:
        weights, _ = self.parameters
        flat = (gradient * (self._outputs > 0)).reshape(-1, len(weights))
        self.gradients = [(flat.T @ self._columns).reshape(weights.shape), flat.sum(axis=0)]
        windows = (flat @ weights.reshape(len(weights), -1)).reshape(*gradient.shape[:3], *weights.shape[1:])
        return _add_windows(windows.transpose(0, 1, 2, 5, 3, 4), self.size)


class DepthwiseConv:
    """One odd square kernel per channel, stride 1, same padding, then ReLU; weights [1, size, size, channels]."""

    def __init__(self, name: str, random: np.random.Generator, channels: int, size: int) -> None:
        self.name, self.size = name, size
        self.parameters = [_he(random, (1, size, size, channels), size * size), np.zeros(channels, np.float32)]
        self.gradients: list[Array] = []

    def forward(self, inputs: Array) -> Array:
        weights, bias = self.parameters
        self._windows = _windows(inputs, self.size)
        summed = np.einsum("nhwcij,ijc->nhwc", self._windows, weights[0])
        self._outputs = np.maximum(summed + bias, 0.0)
        return self._outputs

    def backward(self, gradient: Array) -> Array:
        weights, _ = self.parameters
        gradient = gradient * (self._outputs > 0)
        by_weights = np.einsum("nhwcij,nhwc->ijc", self._windows, gradient)
        self.gradients = [by_weights[np.newaxis], gradient.sum(axis=(0, 1, 2))]
        return _add_windows(gradient[..., np.newaxis, np.newaxis] * weights[0].transpose(2, 0, 1), self.size)


class MaxPool:
    """Maximum of each 2 x 2 block; height and width are even."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.parameters: list[Array] = []
        self.gradients: list[Array] = []

    def forward(self, inputs: Array) -> Array:
        count, height, width, channels = inputs.shape
        self._blocks = inputs.reshape(count, height // 2, 2, width // 2, 2, channels)
        self._outputs = self._blocks.max(axis=(2, 4))
        return self._outputs

    def backward(self, gradient: Array) -> Array:
        winners = self._blocks == self._outputs[:, :, np.newaxis, :, np.newaxis]
        shared = winners / winners.sum(axis=(2, 4), keepdims=True)
        by_input = shared * gradient[:, :, np.newaxis, :, np.newaxis]
        count, height, _, width, _, channels = by_input.shape
        return by_input.reshape(count, height * 2, width * 2, channels).astype(np.float32)


class Dense:
    """Fully connected layer over everything but the first axis, with or without ReLU; weights [out, in]."""

    def __init__(self, name: str, random: np.random.Generator, inputs: int, outputs: int, *, relu: bool) -> None:
        self.name, self.relu = name, relu
        self.parameters = [_he(random, (outputs, inputs), inputs), np.zeros(outputs, np.float32)]
        self.gradients: list[Array] = []

    def forward(self, inputs: Array) -> Array:
        weights, bias = self.parameters
        self._shape = inputs.shape
        self._flat = inputs.reshape(len(inputs), -1)
        summed = self._flat @ weights.T + bias
        self._outputs = np.maximum(summed, 0.0) if self.relu else summed
        return self._outputs

    def backward(self, gradient: Array) -> Array:
        if self.relu:
            gradient = gradient * (self._outputs > 0)
        self.gradients = [gradient.T @ self._flat, gradient.sum(axis=0)]
        return (gradient @ self.parameters[0]).reshape(self._shape)


class Svdf:
    """Fully connected layer over features of the last ``memory`` hops of a stream, then ReLU: an SVDF of rank 1.

    Each unit has one feature per hop. Inputs [hops, inputs] belong to streams of ``hops`` hops one after the other.
    Weights [units, inputs], weights over time [units, memory] with those of the latest hop at the end.
    """

    def __init__(
        self, name: str, random: np.random.Generator, inputs: int, units: int, memory: int, *, hops: int
    ) -> None:
        self.name, self.hops = name, hops
        weights, time = _he(random, (units, inputs), inputs), _he(random, (units, memory), memory)
        self.parameters = [weights, time, np.zeros(units, np.float32)]
        self.gradients: list[Array] = []

    def forward(self, inputs: Array) -> Array:
        weights, time, bias = self.parameters
        self._inputs = inputs
        self.features = (inputs @ weights.T).reshape(-1, min(self.hops, len(inputs)), len(weights))
        padded = np.pad(self.features, ((0, 0), (time.shape[1] - 1, 0), (0, 0)))
        self._windows = np.lib.stride_tricks.sliding_window_view(padded, time.shape[1], axis=1)
        summed = np.einsum("stum,um->stu", self._windows, time) + bias
        self._outputs = np.maximum(summed, 0.0).reshape(len(inputs), len(weights))
        return self._outputs

    def backward(self, gradient: Array) -> Array:
        weights, time, _ = self.parameters
        memory, hops = time.shape[1], self.features.shape[1]
        gradient = (gradient * (self._outputs > 0)).reshape(self.features.shape)
        padded = np.zeros((len(gradient), hops + memory - 1, len(weights)), gradient.dtype)
        for hop in range(memory):
            padded[:, hop : hop + hops] += gradient * time[:, hop]
        by_feature = padded[:, memory - 1 :].reshape(len(self._inputs), len(weights))
        by_time = np.einsum("stum,stu->um", self._windows, gradient)
        self.gradients = [by_feature.T @ self._inputs, by_time, gradient.sum(axis=(0, 1))]
        return by_feature @ weights
