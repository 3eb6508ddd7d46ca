"""DLPack's device types: the integers for devices in metadata, graphs and targets by device."""

from __future__ import annotations

from collections.abc import Mapping

DEVICE_NAMES: Mapping[int, str] = {
    1: "CPU", 2: "CUDA", 3: "CUDA host", 4: "OpenCL", 7: "Vulkan", 8: "Metal", 9: "VPI", 10: "ROCm", 11: "ROCm host",
    12: "extension device", 13: "CUDA managed", 14: "oneAPI", 15: "WebGPU", 16: "Hexagon", 32: "AOCL", 33: "SDAccel",
    34: "OpenGL", 35: "MicroDev",
}  # fmt: skip
"""``DLDeviceType``, and the values from 32 on, which TVM added."""


def device_name(device_type: int) -> str:
    """Return the name of a device type for messages; ``device 99`` for a number that is not assigned."""
    return DEVICE_NAMES.get(device_type, f"device {device_type}")
