"""The register commands of Ethos-U55 and Ethos-U65 that concern memory.

From Arm's technical reference manuals of the two NPUs (102420, 102023), chapter "Command stream". A command of one word
has 16 bits of parameter above the code; one of two words has the low 32 bits of its value in the second word.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

CODE, TWO_WORDS, RESERVED = 0x3FF, 0x4000, 0xBC00
"""Bits of the low half of a command: its code, whether it has a second word, and those that are 0."""

STOP, CONV, DEPTHWISE, POOL, ELEMENTWISE = 0x000, 0x002, 0x003, 0x005, 0x006
DMA_START, DMA_WAIT, KERNEL_WAIT = 0x010, 0x011, 0x012
OPERATIONS: Mapping[int, str] = MappingProxyType(
    {CONV: "convolution", DEPTHWISE: "depthwise convolution", POOL: "pooling", ELEMENTWISE: "elementwise operation"}
)
WAITS = (DMA_WAIT, KERNEL_WAIT)
STOP_PARAMETER = 0xFFFF
"""The parameter of the only STOP, which is Vela's last command: no NPU stops before its end."""

UNARY = (5, 6, 7)
"""The parameters of an ELEMENTWISE with one input: LRELU, ABS and CLZ."""

SHORT: Mapping[int, str] = MappingProxyType(
    {
        0x100: "ifm_pad_top", 0x101: "ifm_pad_left", 0x102: "ifm_pad_right", 0x103: "ifm_pad_bottom",
        0x104: "ifm_depth", 0x105: "ifm_precision", 0x107: "ifm_upscale", 0x109: "ifm_zero_point",
        0x10A: "ifm_width0", 0x10B: "ifm_height0", 0x10C: "ifm_height1", 0x10D: "ifm_ib_end", 0x10F: "ifm_region",
        0x111: "ofm_width", 0x112: "ofm_height", 0x113: "ofm_depth", 0x114: "ofm_precision",
        0x115: "ofm_block_width", 0x116: "ofm_block_height", 0x117: "ofm_block_depth", 0x118: "ofm_zero_point",
        0x11A: "ofm_width0", 0x11B: "ofm_height0", 0x11C: "ofm_height1", 0x11F: "ofm_region",
        0x120: "kernel_width", 0x121: "kernel_height", 0x122: "kernel_stride", 0x123: "parallel_mode",
        0x124: "acc_format", 0x125: "activation", 0x126: "activation_min", 0x127: "activation_max",
        0x128: "weight_region", 0x129: "scale_region", 0x12D: "ab_start", 0x12F: "block_dependency",
        0x130: "dma_source_region", 0x131: "dma_destination_region", 0x132: "dma_size0", 0x133: "dma_size1",
        0x180: "ifm2_broadcast", 0x181: "ifm2_scalar", 0x185: "ifm2_precision", 0x189: "ifm2_zero_point",
        0x18A: "ifm2_width0", 0x18B: "ifm2_height0", 0x18C: "ifm2_height1", 0x18D: "ifm2_ib_start",
        0x18F: "ifm2_region",
    }
)  # fmt: skip
"""Registers of 16 bits; sizes are one less than what they mean."""
LONG: Mapping[int, str] = MappingProxyType(
    {
        **{0x000 + at: f"ifm_base{at}" for at in range(4)},
        0x004: "ifm_stride_x", 0x005: "ifm_stride_y", 0x006: "ifm_stride_c",
        **{0x010 + at: f"ofm_base{at}" for at in range(4)},
        0x014: "ofm_stride_x", 0x015: "ofm_stride_y", 0x016: "ofm_stride_c",
        0x020: "weight_base", 0x021: "weight_length", 0x022: "scale_base", 0x023: "scale_length",
        0x024: "ofm_scale", 0x025: "opa_scale", 0x026: "opb_scale",
        0x030: "dma_source", 0x031: "dma_destination", 0x032: "dma_length", 0x033: "dma_skip0", 0x034: "dma_skip1",
        **{0x080 + at: f"ifm2_base{at}" for at in range(4)},
        0x084: "ifm2_stride_x", 0x085: "ifm2_stride_y", 0x086: "ifm2_stride_c",
        0x090: "weight1_base", 0x091: "weight1_length", 0x092: "scale1_base", 0x093: "scale1_length",
    }
)  # fmt: skip
"""Registers of two words, whose parameter is above the 32 bits of the second word."""
PARAMETERS_OF_VALUES = ("ofm_scale", "opa_scale", "opb_scale")
"""The long registers whose parameter is a value of its own, a shift."""

GLOBAL_SCALE = 1 << 8
"""Bit of ``ofm_precision``: one scale for all channels, in a register instead of in memory."""
BRICK = 16
"""Bytes of a brick of int8."""
BRICKS = 1 << 6
"""Bit of a precision: NHCWB16, rows of bricks of 16 channels, instead of NHWC."""
BROADCAST_HEIGHT, BROADCAST_WIDTH, BROADCAST_DEPTH, SCALAR = 1 << 0, 1 << 1, 1 << 2, 1 << 7
"""Bits of ``ifm2_broadcast``."""
INTERNAL, STRIDE_MODE = 1 << 8, 3 << 9
"""Bits of a region of DMA: the NPU's internal memory instead of a region, and transfers of rows."""

SHRAM = MappingProxyType({"ethos-u55-32": 16, "ethos-u55-64": 16, "ethos-u55-128": 24, "ethos-u55-256": 48,
                          "ethos-u65-256": 48, "ethos-u65-512": 96})  # fmt: skip
"""KiB of internal memory of all cores, which the stream's configuration names."""
