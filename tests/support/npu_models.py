"""Networks for targets with an Ethos-U: requests, and what Vela would need to be there."""

import importlib.metadata
from pathlib import Path

import pytest

from mlfbuild.library import CompileRequest
from mlfbuild.library.keys import DEDICATED_SRAM, Npu
from mlfbuild.targets import CPUS
from support.firmware_repo import tiny_network

U55_128 = Npu(type="ethos-u55", macs=128)
U55_256 = Npu(type="ethos-u55", macs=256)
U65_256 = Npu(type="ethos-u65", macs=256)
U65_DEDICATED = Npu(type="ethos-u65", macs=256, memory_mode=DEDICATED_SRAM)


def require_vela() -> None:
    """Skip a test on a machine without Vela, whose wheels do not exist for each Python."""
    try:
        importlib.metadata.version("ethos-u-vela")
    except importlib.metadata.PackageNotFoundError:
        pytest.skip("ethos-u-vela is not installed")


def request_for(source: Path, npu: Npu | None = U55_128, **more: object) -> CompileRequest:
    """Return the request to compile ``source`` for a Cortex-M55 with ``npu``."""
    return CompileRequest(source.stem, source, CPUS["cortex-m55"], npu=npu, **more)  # type: ignore[arg-type]


def write_network(folder: Path, name: str = "tiny") -> Path:
    """Write a network of FULLY_CONNECTED layers, and return its file."""
    path = folder / f"{name}.tflite"
    path.write_bytes(tiny_network(0))
    return path
