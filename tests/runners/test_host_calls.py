"""Calls of firmware whose arguments are damaged."""

import struct
from collections.abc import Iterator, Sequence
from contextlib import closing
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from mlfbuild.runners import HostCalls
from mlfbuild.runners.host_calls import opener_in

ENTRY, STOP, CALL, BLOCK, NAME, DATA = 0x40, 0x80, 0x100, 0x200, 0x300, 0x400
OPEN, WRITE, READ = 1, 5, 6
ALL = 0xFFFFFFFF


class Device:
    """Four KiB of memory; the firmware in it has stopped at its next call whenever it runs."""

    def __init__(self) -> None:
        self.content = bytearray(0x1000)

    def read(self, address: int, size: int) -> bytes:
        assert address + size <= len(self.content)
        return bytes(self.content[address : address + size])

    def write(self, address: int, data: bytes) -> None:
        self.content[address : address + len(data)] = data

    def go(self, stops: Sequence[int], timeout: float) -> int:
        del timeout
        return stops[0]

    def reset(self) -> None: ...

    def registers(self) -> dict[str, int]:
        return {"pc": ENTRY}

    def set_registers(self, values: object) -> None: ...


@pytest.fixture
def device() -> Device:
    return Device()


@pytest.fixture
def calls(device: Device, tmp_path: Path) -> Iterator[HostCalls]:
    firmware = SimpleNamespace(
        function=lambda _: STOP, objects={"mlf_host_call": CALL}, vectors=lambda: (0, (0, ENTRY, 0, 0x90)), entry=ENTRY
    )
    with closing(HostCalls(cast(Any, device), cast(Any, firmware), opener_in(tmp_path))) as served:
        yield served


def answer(device: Device, calls: HostCalls, operation: int, *block: int) -> int:
    device.write(CALL, struct.pack("<2I", operation, BLOCK))
    device.write(BLOCK, struct.pack(f"<{len(block)}I", *block))
    assert calls.step(1) is None
    return int(struct.unpack("<I", device.read(CALL + 8, 4))[0])


def test_damaged_lengths_are_refused(device: Device, calls: HostCalls, tmp_path: Path) -> None:
    device.write(NAME, b"result")
    handle = answer(device, calls, OPEN, NAME, 5, 6)
    assert answer(device, calls, WRITE, handle, NAME, ALL) == ALL
    assert answer(device, calls, WRITE, handle, NAME, 6) == 0
    assert (tmp_path / "result").read_bytes() == b"result"
    # A name that is cut would be that of another file.
    assert answer(device, calls, OPEN, NAME, 1, 256) == ALL
    handle = answer(device, calls, OPEN, NAME, 1, 6)
    # What SYS_READ could not read, of the length that the firmware asked for.
    assert answer(device, calls, READ, handle, DATA, ALL) == ALL - 6
    assert device.read(DATA, 6) == b"result"
