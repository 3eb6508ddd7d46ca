"""A stack of layers that ends in class scores, and its training with Adam on the cross entropy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from training.layers import Array, Layer

Labels = npt.NDArray[np.int64]


@dataclass(frozen=True)
class Network:
    """Layers in order; the last one outputs scores (logits), one per class."""

    layers: tuple[Layer, ...]

    def scores(self, inputs: Array) -> Array:
        """Return the scores [N, classes] of ``inputs`` [N, ...]."""
        for layer in self.layers:
            inputs = layer.forward(inputs)
        return inputs

    def accuracy(self, inputs: Array, labels: Labels) -> float:
        """Return the share of ``inputs`` whose best score is at its label."""
        return float((self.scores(inputs).argmax(axis=1) == labels).mean())


def softmax(scores: Array) -> Array:
    """Return probabilities [N, classes]."""
    powers = np.exp(scores - scores.max(axis=1, keepdims=True))
    return powers / powers.sum(axis=1, keepdims=True)


class Adam:
    """Adam as Kingma and Ba published it (2015), with decoupled weight decay."""

    def __init__(self, parameters: list[Array], decay: float) -> None:
        self._parameters, self._decay = parameters, decay
        self._mean = [np.zeros_like(value) for value in parameters]
        self._square = [np.zeros_like(value) for value in parameters]
        self._steps = 0

    def step(self, gradients: list[Array], rate: float) -> None:
        """Change the parameters in place by one step of length ``rate``."""
        self._steps += 1
        unbias = np.sqrt(1 - 0.999**self._steps) / (1 - 0.9**self._steps)
        for number, gradient in enumerate(gradients):
            self._mean[number] += 0.1 * (gradient - self._mean[number])
            self._square[number] += 0.001 * (gradient**2 - self._square[number])
            change = unbias * self._mean[number] / (np.sqrt(self._square[number]) + 1e-8)
            self._parameters[number] -= rate * (change + self._decay * self._parameters[number])


def train(
    network: Network,
    inputs: Array,
    labels: Labels,
    *,
    random: np.random.Generator,
    epochs: int,
    rate: float,
    batch: int = 32,
    decay: float = 1e-4,
    augment: Callable[[Array, np.random.Generator], Array] = lambda batch, _: batch,
) -> None:
    """Train ``network`` in place, at a rate that falls to 0 along half a cosine.

    The same ``random`` gives the same weights. Labels may have more axes than one, if ``augment`` returns the inputs in
    the order of all labels. Inputs whose label is negative are not judged.
    """
    optimizer = Adam([value for layer in network.layers for value in layer.parameters], decay)
    for epoch in range(epochs):
        rate_now = rate * 0.5 * (1 + np.cos(np.pi * epoch / epochs))
        order = random.permutation(len(inputs))
        for first in range(0, len(order), batch):
            chosen = order[first : first + batch]
            probabilities = softmax(network.scores(augment(inputs[chosen], random)))
            known = labels[chosen].ravel()
            wanted = np.eye(probabilities.shape[1], dtype=np.float32)[known]
            gradient = (probabilities - wanted) / np.float32(len(known))
            gradient[known < 0] = 0
            for layer in reversed(network.layers):
                gradient = layer.backward(gradient)
            optimizer.step([value for layer in network.layers for value in layer.gradients], rate_now)
