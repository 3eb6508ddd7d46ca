"""Draw sizes, scales and data in hypothesis strategies of networks."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from hypothesis import strategies as st

from support.tflite_builder import Network

Array = npt.NDArray[Any]
Draw = Callable[[st.SearchStrategy[Any]], Any]

ACTIVATIONS = ("NONE", "RELU", "RELU6", "RELU_N1_TO_1")

_INT16_BIASES = {"int16": (2**14,), "int32": (2**20, 2**28), "int64": (2**20, 2**28, 2**40)}
"""Limits of the values of a bias over int16 activations, by its type."""


@dataclass(frozen=True)
class Case:
    """A model file and one input for each of its inputs."""

    model: bytes = field(repr=False)
    inputs: tuple[Array, ...]


class Drawing:
    """Draws sizes, quantisation and data of one element type."""

    def __init__(self, draw: Draw, dtype: str, stretch: int = 1) -> None:
        self.draw = draw
        self.stretch = stretch
        self.dtype = dtype
        self.quantized = dtype in {"int8", "int16", "uint8"}
        self.random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
        self.network = Network()
        self.values: list[Array] = []

    def size(self, least: int, greatest: int) -> int:
        return int(self.draw(st.integers(least, greatest)))

    def pair(self, least: int, greatest: int) -> tuple[int, int]:
        return self.size(least, greatest), self.size(least, greatest)

    def choice(self, *options: Any) -> Any:
        return self.draw(st.sampled_from(options))

    def scale(self, least: float = 0.004, greatest: float = 0.5) -> float | None:
        """Draw a float32 scale, or return ``None`` if the network is float32."""
        return float(np.float32(self.draw(st.floats(least, greatest)))) if self.quantized else None

    def affine(self, least: float = 0.004, greatest: float = 0.5) -> dict[str, Any]:
        """Return keyword arguments of a tensor: none for float32; no zero point for int16."""
        if not self.quantized:
            return {} if self.dtype == "float32" else {"dtype": self.dtype}
        if self.dtype == "int16":
            return {"scale": float(np.float32(self.scale(least, greatest) / 256)), "dtype": "int16"}
        if self.dtype == "uint8":
            return {"scale": self.scale(least, greatest), "zero_point": self.size(0, 255), "dtype": "uint8"}
        return {"scale": self.scale(least, greatest), "zero_point": self.size(-128, 127)}

    def shape(self, least_rank: int = 1, greatest_rank: int = 4, greatest: int = 4) -> tuple[int, ...]:
        return tuple(self.size(1, greatest * self.stretch) for _ in range(self.size(least_rank, greatest_rank)))

    def data(self, shape: tuple[int, ...]) -> Array:
        """Return activations: the full range for 8 and 16 bits, small numbers for other integers, float32 around 0.

        Unsigned integers have any number of bits.
        """
        if self.dtype == "float32":
            return self.random.normal(0, 2, shape).astype(np.float32)
        if self.dtype == "bool":
            return self.random.integers(0, 2, shape).astype(bool)
        if self.dtype in {"uint32", "uint64"}:
            bits = np.iinfo(self.dtype).bits
            whole = self.random.integers(0, 1 << bits, shape, dtype=self.dtype)
            return np.asarray(whole >> self.random.integers(0, bits, shape).astype(self.dtype))
        if self.quantized:
            limits = np.iinfo(self.dtype)
            return self.random.integers(limits.min, limits.max + 1, shape).astype(self.dtype)
        return self.random.integers(-9, 10, shape).astype(self.dtype)

    def input(self, shape: tuple[int, ...], **affine: Any) -> int:
        self.values.append(self.data(shape))
        return self.network.input(shape, **(affine or self.affine()))

    def parameters(
        self, shape: tuple[int, ...], channels: int, int16_biases: Sequence[str] = ("int64",)
    ) -> dict[str, Any]:
        """Return keyword arguments ``weights``, ``bias`` (perhaps ``None``) and ``weight_scales`` of a layer.

        For int16 activations, weights are also int8, and the bias has one of the types ``int16_biases``.
        """
        biased = self.choice(True, False)
        if not self.quantized:
            weights = self.random.normal(0, 1, shape).astype(np.float32)
            return {
                "weights": weights,
                "bias": self.random.normal(0, 1, channels).astype(np.float32) if biased else None,
            }
        count = self.choice(1, channels)
        bias_type, greatest = "int32", 2**14
        if self.dtype == "int16":
            bias_type = self.choice(*int16_biases)
            greatest = self.choice(*_INT16_BIASES[bias_type])
        return {
            "weights": self.random.integers(-127, 128, shape, dtype=np.int8),
            "bias": self.random.integers(-greatest, greatest, channels).astype(bias_type) if biased else None,
            "weight_scales": self.random.uniform(0.002, 0.05, count).astype(np.float32).tolist(),
        }

    def window(self) -> dict[str, Any]:
        return {
            "stride": self.pair(1, 3),
            "padding": self.choice("SAME", "VALID"),
            "activation": self.choice(*ACTIVATIONS),
        }

    def case(self) -> Case:
        return Case(self.network.build(), tuple(self.values))
