"""Runs a firmware image of a vendor in unicorn: its memories, registers that answer, and the way to ``m-ready``."""

from __future__ import annotations

import random
import struct
from collections import deque
from collections.abc import Mapping
from dataclasses import dataclass, field
from types import ModuleType
from typing import Any

from counting.firmware import MeasurementError
from mlfbuild.targets import Board, MemoryRegion

_KIB = 1 << 10
_MAGIC = 0x7000_0000
"""Return address of the functions that are called: not in any memory, so that unicorn stops there."""
_SLICE, _SLICES = 100_000, 100
"""Instructions between two ticks of SysTick, and the most of them before the image must be ready."""
_READY = b"m-ready"
REGISTERS, PERIPHERALS = "peripherals", (0x4000_0000, 0x2000_0000)
"""The name of their memory, and its first address and size."""
_TICK_CONTROL = 0xE000_E010
_ENABLED = 3
_ON = 0x1501_1191
_SERIAL = {
    base + 0x1C for base in (0x4000_4400, 0x4000_4800, 0x4000_8000, 0x4001_1000, 0x4001_3800, 0x4004_2400, 0x4600_2400)
}
_SENT = 0x0060_00D0
"""Status registers of USARTs of STM32, and the bits for ready to send: TEACK, REACK, TXE and TC."""
_PATIENCE, _PLENTY = 8, 2_000
"""Reads of a register among the last ones, without a write, before it answers something else."""


@dataclass(frozen=True)
class Chip:
    """Where a part has its memories, for images that are linked for it."""

    cpu: str
    """Unicorn's name."""
    flash: tuple[int, int]
    ram: tuple[int, int]
    others: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    """Memories by their upper-case names in the table of parts."""
    clock: tuple[int, int, int] = (0, 0, 0)
    """Registers RCC_CR and RCC_CFGR, and how many bits SWS is above SW there (reference manuals, RCC)."""
    reset: Mapping[int, int] = field(default_factory=dict)
    """Registers that are not 0 after reset: FLASH_ACR."""
    ready: Mapping[int, int] = field(default_factory=dict)
    """Bits of further registers that are set when a supply or an oscillator is ready."""

    def board(self, name: str) -> Board:
        """Return the memories as those of a board."""
        places = {**self.others, REGISTERS.upper(): PERIPHERALS}
        others = tuple(MemoryRegion(region, *place) for region, place in places.items())
        return Board(name, "", MemoryRegion("FLASH", *self.flash), MemoryRegion("RAM", *self.ram), others)


_STM, _RAM = 0x0800_0000, 0x2000_0000
_ACR = {0x4002_2000: 0x600}
CHIPS = {
    "stm32l4r5": Chip("M4", (_STM, 2048 * _KIB), (_RAM, 640 * _KIB), {}, (0x4002_1000, 0x4002_1008, 2), _ACR),
    "stm32u575": Chip(
        "M33", (_STM, 2048 * _KIB), (_RAM, 768 * _KIB), {}, (0x4602_0C00, 0x4602_0C1C, 2), {},
        {0x4602_083C: 0x3_8002, 0x4602_080C: 0xC000},
    ),
    "stm32u385": Chip(
        "M33", (_STM, 1024 * _KIB), (_RAM, 256 * _KIB), {}, (0x4003_0C00, 0x4003_0C1C, 2), {},
        {0x4003_080C: 0x0101_0000, 0x4003_0C00: 0xA614},
    ),
    "stm32g0b1": Chip("M0", (_STM, 512 * _KIB), (_RAM, 144 * _KIB), {}, (0x4002_1000, 0x4002_1008, 3), _ACR),
    "stm32h7a3": Chip(
        "M7", (_STM, 2048 * _KIB), (0x2400_0000, 1024 * _KIB), {"DTCM": (_RAM, 128 * _KIB), "ITCM": (0, 64 * _KIB)},
        (0x5802_4400, 0x5802_4410, 3),
    ),
    "stm32f746": Chip(
        "M7", (_STM, 1024 * _KIB), (0x2001_0000, 256 * _KIB), {"DTCM": (_RAM, 64 * _KIB), "ITCM": (0, 16 * _KIB)},
        (0x4002_3800, 0x4002_3808, 2),
    ),
}  # fmt: skip


class _Registers:
    """Peripheral registers: they keep what was written, and answer differently if they are polled."""

    def __init__(self, chip: Chip) -> None:
        self.values = dict(chip.reset)
        self._ready = {**dict.fromkeys(_SERIAL, _SENT), **chip.ready}
        self._control, self._switch, self._shift = chip.clock
        self._recent: deque[int] = deque(maxlen=3 * _PATIENCE)
        self._polls = 0
        self._random = random.Random(1)

    def read(self, base: int, offset: int, size: int) -> int:
        address = base + offset
        self._recent.append(address)
        mask = (1 << 8 * size) - 1
        value = self.values.get(address, 0)
        if address == self._control:  # a clock that is on is ready: the bit above it, or the next one
            value |= (value & _ON) << 1 | (value & _ON) << 2
        if address == self._switch:
            value |= (value & 7) << self._shift
        if address in self._ready:
            return (value | self._ready[address]) & mask
        # A loop that waits for a bit ends when it changes by chance; one at a time, as others may mean errors.
        if self._recent.count(address) >= _PATIENCE:
            self._polls += 1
            changed = self._random.getrandbits(32) if self._polls > _PLENTY else 1 << self._random.randrange(32)
            return (value ^ changed) & mask
        return value & mask

    def write(self, base: int, offset: int, value: int) -> None:
        self._recent.clear()
        self._polls = 0
        self.values[base + offset] = value


class VendorMachine:
    """An image in unicorn."""

    def __init__(self, image: bytes, chip: Chip) -> None:
        self.unicorn, self.arm = imported("unicorn"), imported("unicorn.arm_const")
        u = self.unicorn
        self.uc = u.Uc(u.UC_ARCH_ARM, u.UC_MODE_THUMB | u.UC_MODE_MCLASS)
        self.uc.ctl_set_cpu_model(getattr(self.arm, f"UC_CPU_ARM_CORTEX_{chip.cpu}"))
        self.handle = self.uc._uch  # noqa: SLF001 - for hooks that are functions in C
        self.registers, self.image, self.chip = _Registers(chip), image, chip
        for base, size in (chip.flash, chip.ram, *chip.others.values()):
            self.uc.mem_map(base, size)
        for base, size in (PERIPHERALS, (0xE000_0000, 0x0010_0000)):
            self.uc.mmio_map(base, size, self._read, base, self._write, base)
        self.uc.hook_add(u.UC_HOOK_MEM_UNMAPPED, self._map)
        self.uc.hook_add(u.UC_HOOK_INSN_INVALID, self._skip)
        self.uc.mem_write(chip.flash[0], image)
        self.skipped = 0
        """How many instructions unicorn did not know: it has no double precision of the M7. They are not executed."""

    def _read(self, _uc: Any, offset: int, size: int, base: int) -> int:
        return self.registers.read(base, offset, size)

    def _write(self, _uc: Any, offset: int, _size: int, value: int, base: int) -> None:
        self.registers.write(base, offset, value)

    def _map(self, uc: Any, _access: int, address: int, *_rest: Any) -> bool:
        uc.mem_map(address & ~0xFFFF, 0x1_0000)
        return True

    def _skip(self, *_rest: Any) -> bool:
        at = self.register("pc")
        self.skipped += 1
        self.register("pc", (at + 4) | 1)
        return True

    def place(self, text: bytes) -> int:
        """Return the address of a text of the image."""
        at = self.image.find(text)
        if at < 0:
            raise MeasurementError(f"the image has no text {text.decode()}")
        return self.chip.flash[0] + at

    def word(self, address: int) -> int:
        return int(struct.unpack("<I", self.uc.mem_read(address, 4))[0])

    def register(self, name: str, value: int | None = None) -> int:
        number = getattr(self.arm, f"UC_ARM_REG_{name.upper()}")
        if value is not None:
            self.uc.reg_write(number, value)
        return int(self.uc.reg_read(number))

    def call(self, function: int, *arguments: int) -> None:
        """Run a function of the image to its end."""
        for number, argument in enumerate(arguments):
            self.register(f"r{number}", argument)
        self.register("lr", _MAGIC | 1)
        self.uc.emu_start(function | 1, _MAGIC)

    def boot(self, vectors: int) -> None:
        """Run from reset until the image prints that it is ready."""
        ready = self.place(_READY)
        found: list[int] = []

        def note(uc: Any, *_rest: Any) -> None:
            found.append(1)
            uc.emu_stop()

        hook = self.uc.hook_add(self.unicorn.UC_HOOK_MEM_READ, note, begin=ready, end=ready)
        self.register("sp", self.word(vectors))
        at = self.word(vectors + 4)
        for _ in range(_SLICES):
            self.uc.emu_start(at | 1, _MAGIC, count=_SLICE)
            if found:
                break
            at = self.register("pc")
            if self.registers.values.get(_TICK_CONTROL, 0) & _ENABLED == _ENABLED:
                self._tick(vectors)
        else:
            raise MeasurementError(f"the image is not ready; it is at {self.register('pc'):#x}")
        self.uc.hook_del(hook)
        self.uc.emu_start(self.register("pc") | 1, _MAGIC, count=_SLICE)

    def _tick(self, vectors: int) -> None:
        context = self.uc.context_save()
        self.register("sp", self.register("sp") - 256 & ~7)
        self.call(self.word(vectors + 15 * 4))
        self.uc.context_restore(context)


def imported(name: str) -> ModuleType:
    """Import a module of unicorn; raises ``MeasurementError`` if it is not installed."""
    import importlib

    try:
        return importlib.import_module(name)
    except ImportError:
        raise MeasurementError("images of vendors run in unicorn: pip install unicorn") from None
