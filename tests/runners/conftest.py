"""Fixtures for the tests of runners."""

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from support.device_firmware import device_firmware


@pytest.fixture(scope="package", autouse=True)
def own_locks(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Lock devices in a folder of these tests: other sessions on this machine use probes of the same names."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(tmp_path_factory.mktemp("cache")))
        yield


@pytest.fixture(scope="session")
def debugger(tool: Callable[..., str]) -> None:
    """Skip the test if a program is missing that it drives devices with."""
    tool("arm-none-eabi-gcc", "qemu-system-arm", "gdb-multiarch")


@pytest.fixture(scope="session")
def image(debugger: None, tmp_path_factory: pytest.TempPathFactory) -> Path:  # noqa: ARG001
    """Small firmware for a Cortex-M3, in a folder whose name has what GDB's machine interface escapes."""
    return device_firmware(tmp_path_factory.mktemp('a "quoted" path, \\ and spaces'))
