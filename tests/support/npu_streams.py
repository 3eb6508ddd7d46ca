"""Command streams as Vela writes them, word by word, and the bytes of feature maps, element by element."""

import struct
from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from mlfbuild.ethos_u import registers

ACCELERATOR = "ethos-u55-128"
CONFIG = 0x1807
"""24 KiB of internal memory, 2**7 multipliers, product 0."""
_SHORT = {name: code for code, name in registers.SHORT.items()}
_LONG = {name: code for code, name in registers.LONG.items()}
STOP = (0xFFFF0000,)


def payload(*commands: tuple[int, ...], config: int = CONFIG) -> bytes:
    """Return the payload of ``commands``, with a STOP."""
    words = [word for command in (*commands, STOP) for word in command]
    return raw(0x31504F43, 0x00100001, config, 0x10066001, 5, 5, 5, len(words) << 16 | 2, *words)


def raw(*words: int) -> bytes:
    return struct.pack(f"<{len(words)}I", *words)


def registers_set(values: Mapping[str, int]) -> Iterator[tuple[int, ...]]:
    """Yield the commands that set registers, by the names in ``registers``."""
    for name, value in values.items():
        if name in _SHORT:
            yield (value << 16 | _SHORT[name],)
        else:
            yield (value >> 32 << 16 | registers.TWO_WORDS | _LONG[name], value & 0xFFFFFFFF)


@dataclass(frozen=True)
class Map:
    """A feature map of bytes: its size, its tiles, and the strides of its layout."""

    height: int
    width: int
    depth: int
    height0: int
    height1: int
    width0: int
    bases: tuple[int, int, int, int]
    stride_y: int
    stride_x: int
    stride_c: int
    bricks: bool = False

    @classmethod
    def plain(cls, height: int, width: int, depth: int, base: int = 0) -> "Map":
        """Return a map in one tile, in NHWC."""
        return cls(height, width, depth, height, height, width, (base, 0, 0, 0), width * depth, depth, 1)

    def registers(self, name: str, region: int) -> dict[str, int]:
        """Return the registers of the map, as operand ``name``; sizes of inputs follow from the output."""
        sizes = {"ofm_height": self.height - 1, "ofm_width": self.width - 1} if name == "ofm" else {}
        return {
            f"{name}_region": region,
            **{f"{name}_base{at}": base for at, base in enumerate(self.bases)},
            f"{name}_height0": self.height0 - 1, f"{name}_height1": self.height1 - 1, f"{name}_width0": self.width0 - 1,
            **sizes,
            **({} if name == "ifm2" else {f"{name}_depth": self.depth - 1}),
            f"{name}_stride_y": self.stride_y, f"{name}_stride_x": self.stride_x, f"{name}_stride_c": self.stride_c,
            # Signed bytes, and for an output one scale of all channels.
            f"{name}_precision": (64 if self.bricks else 0) | 1 | (256 if name == "ofm" else 0),
        }  # fmt: skip

    def end(self) -> int:
        """Return the end of the last byte of all elements, one by one, as Arm's manual defines their addresses."""
        return 1 + max(
            self._address(y, x, c) for y in range(self.height) for x in range(self.width) for c in range(self.depth)
        )

    def _address(self, y: int, x: int, c: int) -> int:
        tile = 0
        if x >= self.width0:
            x, tile = x - self.width0, 1
            if y >= self.height1:
                y, tile = y - self.height1, 3
        elif y >= self.height0:
            y, tile = y - self.height0, 2
        at = self.bases[tile] + y * self.stride_y
        return at + c // 16 * self.stride_c + x * 16 + c % 16 if self.bricks else at + x * self.stride_x + c


def pooling(source: Map, output: Map, **more: int) -> tuple[tuple[int, ...], ...]:
    """Return the commands of a pooling of 1x1 from region 1 to region 1; ``more`` sets other registers last."""
    window = {"ifm_pad_top": 0, "ifm_pad_bottom": 0, "ifm_pad_left": 0, "ifm_pad_right": 0, "ifm_upscale": 0,
              "kernel_height": 0, "kernel_width": 0, "kernel_stride": 0}  # fmt: skip
    values = {**source.registers("ifm", 1), **output.registers("ofm", 1), **window, **more}
    return (*registers_set(values), (registers.POOL,))


def convolution(weights: int, scales: int, **more: int) -> tuple[tuple[int, ...], ...]:
    """Return the commands of a 3x3 convolution with padding of int8[1, 4, 4, 8] at 0 to byte 128 of region 1."""
    constants = {"weight_region": 0, "weight_base": 0, "weight_length": weights,
                 "scale_region": 0, "scale_base": weights, "scale_length": scales}  # fmt: skip
    around = {"ifm_pad_top": 1, "ifm_pad_bottom": 1, "ifm_pad_left": 1, "ifm_pad_right": 1,
              "kernel_height": 2, "kernel_width": 2, "ofm_precision": 1}  # fmt: skip
    (*begun, _) = pooling(Map.plain(4, 4, 8), Map.plain(4, 4, 8, 128), **{**constants, **around, **more})
    return (*begun, (registers.CONV,))


def transfer(source: int, length: int, destination: int = 0, **more: int) -> tuple[tuple[int, ...], ...]:
    """Return the commands of a transfer of region 0 to region 1."""
    values = {"dma_source_region": 0, "dma_source": source, "dma_destination_region": 1,
              "dma_destination": destination, "dma_length": length, **more}  # fmt: skip
    return (*registers_set(values), (registers.DMA_START,))
