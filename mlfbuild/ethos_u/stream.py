"""Check what a command stream reads and writes: ``check_payload``.

The payload of an ``ethos-u`` operator, as the driver takes it, is a list of driver actions in words of 32 bits, little
endian: the letters COP1, the configuration of the NPU, fillers, and one command stream, which begins at a multiple of
16 bytes::

    0x31504f43  0x00100001  config  id  5  5  5  0x038c0002  908 words of commands

Commands set registers, and operations use what the registers hold at that time. So the check is a run of the stream
with addresses only. For every operation, it computes the bytes of each operand from base, sizes and strides, and
refuses the stream if they are not inside the region that the operand names, or if a read-only region is written. The
size of an input follows from the output, the kernel, its stride and the padding, as in the NPU. A register that is used
before it is set has the value of the stream before, and is refused.

For example, a 3x3 convolution of int8[1, 8, 8, 16] with padding, NHWC, stride_y 128: its input has
``(8 - 1) * 1 + 3 - 1 - 1`` rows, and reads ``base + 7 * 128 + 7 * 16 + 16`` bytes at most.

What it does not check: numbers, block sizes and the use of internal memory apart from DMA to it.
"""

from __future__ import annotations

import struct
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NoReturn

from mlfbuild.core import InputFileError
from mlfbuild.ethos_u import registers as r

_COP1 = int.from_bytes(b"COP1", "little")
_CONFIG, _STREAM, _FILLER = 1, 2, 5
_PRODUCTS = {"ethos-u55": 0, "ethos-u65": 1}
_INFERRED = ("ifm_pad_top", "ifm_pad_bottom", "ifm_pad_left", "ifm_pad_right")
_REGIONS = 8
_SIZES = {0: 1, 1: 2, 2: 4}
"""Bytes of an element by the number in a precision."""


@dataclass(frozen=True)
class StreamRegion:
    """A region of memory that generated code passes to the driver."""

    name: str
    size: int
    """Bytes."""
    writable: bool


@dataclass
class StreamFacts:
    """The actions of a stream, for reports and tests."""

    transfers: int = 0
    used: dict[int, int] = field(default_factory=dict)
    """StreamRegion -> end of the bytes that are used of it."""
    written: set[tuple[int, int, int]] = field(default_factory=set)
    """(region, start, end) of bytes outside of which nothing is written: the end is rounded up to a brick."""


def check_payload(payload: bytes, regions: Sequence[StreamRegion], accelerator: str, place: str) -> StreamFacts:
    """Check that all addresses of ``payload`` are inside ``regions``, and that it is for ``accelerator``.

    ``regions`` are in the order of their numbers, ``place`` names the operator in messages. Raises ``InputFileError``
    (``npu-stream-damaged``) otherwise.
    """
    stream, first = _stream(payload, accelerator, place)
    return _Run(regions, accelerator, place, first).run(stream)


def _stream(payload: bytes, accelerator: str, place: str) -> tuple[Sequence[int], int]:
    """Return the words of the command stream in ``payload``, and the number of the first."""
    if len(payload) % 4 or len(payload) < 8:
        _refuse(place, f"has {len(payload)} bytes, which are no words of a payload")
    words = struct.unpack(f"<{len(payload) // 4}I", payload)
    if words[0] != _COP1:
        _refuse(place, "does not begin with COP1")
    at, configured = 1, False
    while True:
        if at >= len(words):
            _refuse(place, "has no command stream")
        action, extra = words[at] & 0xFF, words[at] >> 8
        if action == _FILLER and not extra:
            at += 1
        elif action == _CONFIG and not configured and at + 2 < len(words):
            _check_config(words[at + 1], accelerator, place)
            configured, at = True, at + 3
        elif action == _STREAM and configured:
            # 24 bits: the upper half of the word, and above it the byte next to the action.
            length = (words[at] >> 16) | (extra & 0xFF) << 16
            if (at + 1) % 4:
                _refuse(place, "has a command stream that is not aligned to 16 bytes")
            if at + 1 + length != len(words):
                _refuse(place, f"has {len(words) - at - 1} words of commands instead of {length}")
            return words[at + 1 :], at + 1
        else:
            _refuse(place, f"word {at}: 0x{words[at]:08x} is no action that is expected there")


def _check_config(word: int, accelerator: str, place: str) -> None:
    kind, _, macs = accelerator.rpartition("-")
    wanted = _PRODUCTS[kind] << 28 | r.SHRAM[accelerator] << 8 | int(macs).bit_length() - 1
    if word != wanted:
        _refuse(place, f"is not for {accelerator}: its configuration is 0x{word:08x} instead of 0x{wanted:08x}")


def _refuse(place: str, reason: str) -> NoReturn:
    hint = "compile the model again; if this persists, use another version of Vela"
    raise InputFileError("npu-stream-damaged", place=f"{place}: command stream", reason=reason, hint=hint)


@dataclass(frozen=True)
class _Size:
    height: int
    width: int
    depth: int


class _Run:
    """The registers while the stream runs."""

    def __init__(self, regions: Sequence[StreamRegion], accelerator: str, place: str, first: int) -> None:
        self._regions = regions
        self._internal = r.SHRAM[accelerator] * 1024
        self._place = place
        self._at = self._first = first
        self._values: dict[str, int] = {}
        self._facts = StreamFacts()

    def run(self, words: Sequence[int]) -> StreamFacts:
        """Run ``words`` up to the STOP, which must be the last one."""
        at = 0
        while True:
            self._at = self._first + at
            if at >= len(words):
                self._refuse("the last command is not STOP")
            command, parameter = words[at] & 0xFFFF, words[at] >> 16
            code = command & r.CODE
            if command & r.RESERVED:
                self._refuse(f"0x{words[at]:08x} is no command")
            if command & r.TWO_WORDS:
                if at + 1 >= len(words):
                    self._refuse("the last command has no second word")
                self._set_long(code, parameter, words[at + 1])
                at += 2
                continue
            at += 1
            if code == r.STOP:
                if at != len(words) or parameter != r.STOP_PARAMETER:
                    self._refuse("STOP is not the last command")
                return self._facts
            self._short(code, parameter)

    def _short(self, code: int, parameter: int) -> None:
        if code in r.SHORT:
            self._values[r.SHORT[code]] = parameter
        elif code in r.OPERATIONS:
            self._operation(code, parameter)
        elif code == r.DMA_START:
            self._transfer()
        elif code not in r.WAITS:
            self._refuse(f"command 0x{code:03x} is unknown")

    def _set_long(self, code: int, parameter: int, low: int) -> None:
        name = r.LONG.get(code)
        if name is None:
            self._refuse(f"register 0x{code:03x} is unknown")
        self._values[name] = low if name in r.PARAMETERS_OF_VALUES else parameter << 32 | low

    def _operation(self, code: int, parameter: int) -> None:
        output = _Size(*(self._value(f"ofm_{name}") + 1 for name in ("height", "width", "depth")))
        self._feature_map("ofm", output, self._element("ofm", 1), write=True)
        if code == r.ELEMENTWISE:
            self._feature_map("ifm", output, self._element("ifm", 2))
            if parameter not in r.UNARY and not self._value("ifm2_broadcast") & r.SCALAR:
                self._feature_map("ifm2", self._second(output), self._element("ifm2", 2))
            return
        self._feature_map("ifm", self._input(output), self._element("ifm", 2))
        if code in (r.CONV, r.DEPTHWISE):
            self._stored("weight")
        if not self._value("ofm_precision") & r.GLOBAL_SCALE:
            self._stored("scale")

    def _element(self, name: str, shift: int) -> int:
        kind = self._value(f"{name}_precision") >> shift & 3
        if kind not in _SIZES:
            self._refuse(f"{name} has elements of an unknown size")
        return _SIZES[kind]

    def _input(self, output: _Size) -> _Size:
        """Return the size of the input of a convolution or a pooling."""
        top, bottom, left, right = map(self._value, _INFERRED)
        stride = self._value("kernel_stride")
        # Stride minus one: bit 0 of x and of y are bits 0 and 1, their further bits begin at 6 and 9.
        step_x = 1 + (stride & 1) + (stride >> 6 & 7) * 2
        step_y = 1 + (stride >> 1 & 1) + (stride >> 9 & 7) * 2
        height = (output.height - 1) * step_y + self._value("kernel_height") + 1 - top - bottom
        width = (output.width - 1) * step_x + self._value("kernel_width") + 1 - left - right
        upscale = self._value("ifm_upscale") & 3
        # The sizes above are those after the input was enlarged twofold; half of it is stored, rounded up.
        if upscale:
            height, width = (height + 1) // 2, (width + 1) // 2
        if height < 1 or width < 1:
            self._refuse("an input consists of padding only")
        return _Size(height, width, self._value("ifm_depth") + 1)

    def _second(self, output: _Size) -> _Size:
        """Return the size of the second input of an elementwise operation."""
        bits = self._value("ifm2_broadcast")
        return _Size(
            1 if bits & r.BROADCAST_HEIGHT else output.height,
            1 if bits & r.BROADCAST_WIDTH else output.width,
            1 if bits & r.BROADCAST_DEPTH else output.depth,
        )

    def _feature_map(self, name: str, size: _Size, element: int, *, write: bool = False) -> None:
        """Check the four tiles of a feature map: those beside and below the first are used only if it is larger."""
        region = self._value(f"{name}_region")
        width0, height0, height1 = (self._value(f"{name}_{each}") + 1 for each in ("width0", "height0", "height1"))
        right, below = size.width > width0, size.height > height0
        # Tile 1 is to the right of tile 0, tile 2 below tile 0, tile 3 below tile 1. The two columns need not be
        # divided at the same height.
        tiles = [(0, min(size.height, height0), min(size.width, width0))]
        if right:
            tiles.append((1, min(size.height, height1), size.width - width0))
        if below:
            tiles.append((2, size.height - height0, min(size.width, width0)))
        if right and size.height > height1:
            tiles.append((3, size.height - height1, size.width - width0))
        for number, height, width in tiles:
            base = self._value(f"{name}_base{number}")
            extent = self._extent(name, _Size(height, width, size.depth), element)
            self._use(f"{name} (tile {number})", region, base, extent, write=write)

    def _extent(self, name: str, tile: _Size, element: int) -> int:
        """Return the bytes from the first element of a tile to the end of the last one."""
        rows = (tile.height - 1) * self._value(f"{name}_stride_y")
        if self._value(f"{name}_precision") & r.BRICKS:
            # A row has 16 channels of all its pixels, then the next 16, ``step`` bytes after the first.
            number, step = (tile.depth - 1) // 16, self._value(f"{name}_stride_c")
            last = number * step + ((tile.depth - 1) % 16 + 1) * element
            # The one before is full, and ends later if the step is smaller than a brick.
            full = (number - 1) * step + 16 * element if number else 0
            return rows + (tile.width - 1) * 16 * element + max(last, full)
        return rows + (tile.width - 1) * self._value(f"{name}_stride_x") + tile.depth * element

    def _stored(self, name: str) -> None:
        """Check the weights or scales of all cores."""
        region = self._value(f"{name}_region")
        self._use(name, region, self._value(f"{name}_base"), self._value(f"{name}_length"))
        if self._values.get(f"{name}1_length"):
            self._use(f"{name} of core 1", region, self._value(f"{name}1_base"), self._value(f"{name}1_length"))

    def _transfer(self) -> None:
        self._facts.transfers += 1
        source, destination = self._value("dma_source_region"), self._value("dma_destination_region")
        if (source | destination) & r.STRIDE_MODE:
            self._refuse("a transfer has rows, which are not checked")
        length = self._value("dma_length")
        # The checker does not track the content of internal memory.
        if source & r.INTERNAL:
            self._refuse("a transfer reads internal memory")
        self._use("source of a transfer", source, self._value("dma_source"), length)
        address = self._value("dma_destination")
        if destination & r.INTERNAL:
            if address + length > self._internal:
                self._refuse(f"a transfer ends at byte {address + length} of {self._internal} of internal memory")
        else:
            self._use("destination of a transfer", destination, address, length, write=True)

    def _use(self, what: str, region: int, start: int, size: int, *, write: bool = False) -> None:
        if region >= min(len(self._regions), _REGIONS):
            self._refuse(f"{what} is in region {region}, and there are {len(self._regions)}")
        found = self._regions[region]
        end = start + size
        if end > found.size:
            self._refuse(f"{what} ends at byte {end} of the {found.name}, which has {found.size}")
        if write and not found.writable:
            self._refuse(f"{what} writes the {found.name}, which is read-only")
        self._facts.used[region] = max(self._facts.used.get(region, 0), end)
        if write:
            # A brick may be written whole, even if the tensor has fewer channels.
            self._facts.written.add((region, start, min(-(-end // r.BRICK) * r.BRICK, found.size)))

    def _value(self, name: str) -> int:
        value = self._values.get(name)
        if value is None:
            self._refuse(f"register {name} is used before it is set")
        return value

    def _refuse(self, reason: str) -> NoReturn:
        _refuse(self._place, f"word {self._at}: {reason}")
