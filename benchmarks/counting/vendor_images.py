"""Models the cycles of one inference of a firmware image that a vendor flashed for MLPerf Tiny.

The image starts from reset in unicorn, with peripheral registers that answer. When it is ready, its function that
prints ``m-infer-start`` and ``m-infer-done`` is called: the inferences are between the two texts, and between the two
time stamps (``m-lap-us``) if it prints them. The first call notes which code runs; the second one is counted by the
plugin that also counts in QEMU (``unicorn_hooks.c``). Images are only timed.
"""

from __future__ import annotations

import ctypes
import random
import struct
from collections import deque
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass, field, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path
from types import ModuleType
from typing import Any

from counting.firmware import COMPILER, MeasurementError, run
from counting.images import Result
from mlfbuild.targets import Board, Mcu, MemoryRegion, TimedMemory
from mlfbuild.verify import emulator
from mlfbuild.verify.emulator import OUTSIDE, REST, Counting

_HOOKS = Path(__file__).with_name("unicorn_hooks.c")
_KIB = 1 << 10
_MAGIC = 0x7000_0000
"""Return address of the functions that are called: not in any memory, so that unicorn stops there."""
_SLICE, _SLICES = 100_000, 100
"""Instructions between two ticks of SysTick, and the most of them before the image must be ready."""
_TEXTS = (b"m-ready", b"m-infer-start", b"m-infer-done", b"m-lap-us")
_REGISTERS, _PERIPHERALS = "peripherals", (0x4000_0000, 0x2000_0000)
_UNKNOWN = b"e-[Unknown"
"""A text of the function that parses commands."""
_LONGEST = 1024
"""Bytes from the begin of a function to its use of a text."""
_ATTEMPTS, _NEGLIGIBLE = 4, 0.001
_TICK_CONTROL = 0xE000_E010
_ENABLED = 3
_ON = 0x1501_1191
_SERIAL = {base + 0x1C for base in (0x4000_4400, 0x4000_4800, 0x4000_8000, 0x4001_1000, 0x4001_3800)}
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
        places = {**self.others, _REGISTERS.upper(): _PERIPHERALS}
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


class _Machine:
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
        for base, size in (_PERIPHERALS, (0xE000_0000, 0x0010_0000)):
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
        ready = self.place(_TEXTS[0])
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


def _uses(image: bytes, place: int) -> Iterator[int]:
    """Yield the offsets of instructions that load the word at offset ``place``, or its address, by their own."""
    for at in range(max(0, place - 4095) & ~1, place, 2):
        (first, second) = struct.unpack_from("<HH", image, at)
        base = at + 4 & ~3
        # Armv7-M Architecture Reference Manual, LDR (literal) T1 and T2, ADR T1 and T3
        if first & 0xF800 in (0x4800, 0xA000):
            used = base + (first & 0xFF) * 4
        elif first == 0xF8DF:
            used = base + (second & 0xFFF)
        elif first & 0xFBFF == 0xF20F:
            used = base + ((first & 0x400) << 1 | (second & 0x7000) >> 4 | second & 0xFF)
        else:
            continue
        if used == place:
            yield at


@cache
def _called(image: bytes) -> frozenset[int]:
    """Return the offsets that instructions BL branch to (Armv7-M Architecture Reference Manual, BL T1)."""
    found = set()
    halves = struct.unpack(f"<{len(image) // 2}H", image[: len(image) & ~1])
    for at, (first, second) in enumerate(pairwise(halves)):
        if first & 0xF800 == 0xF000 and second & 0xD000 == 0xD000:
            sign = first >> 10 & 1
            i1, i2 = ~(second >> 13 ^ sign) & 1, ~(second >> 11 ^ sign) & 1
            offset = -sign << 24 | i1 << 23 | i2 << 22 | (first & 0x3FF) << 12 | (second & 0x7FF) << 1
            found.add(2 * at + 4 + offset)
    return frozenset(found)


def _functions(machine: _Machine, text: bytes) -> list[tuple[int, int]]:
    """Return the first and the last address of each function that uses ``text``: compilers copy functions."""
    image, origin = machine.image, machine.chip.flash[0]
    at = machine.place(text)
    literals = [place for place in range(0, len(image) - 3, 4) if struct.unpack_from("<I", image, place)[0] == at]
    found = [(place, use) for place in (*literals, at - origin) for use in [*_uses(image, place)][-1:]]
    starts = [(_start(image, use), place) for place, use in found]
    if not starts:
        raise MeasurementError(f"no function of the image uses the text {text.decode()}")
    return [(origin + start, origin + place) for start, place in starts]


def _start(image: bytes, use: int) -> int:
    """Return the offset of the function with the instruction at ``use``: the next one before it that saves lr."""
    for at in range(use, max(0, use - _LONGEST), -2):
        (first, second) = struct.unpack_from("<HH", image, at)
        # PUSH with lr, and STMDB sp! with lr; few instructions may stand before it.
        if first & 0xFF00 == 0xB500 or (first == 0xE92D and second & 0x4000):
            return min((called for called in _called(image) if at - 8 <= called < at), default=at)
    return use


class _Hooks:
    """A new copy of the native hooks, which is in use until ``remove``."""

    def __init__(self, machine: _Machine, folder: Path, name: str, plugin: str = "") -> None:
        made = folder / f"{name}.so"
        include = Path(emulator.__file__).parent
        run(["gcc", "-O2", "-shared", "-fPIC", f"-I{include}", _HOOKS, "-o", made])
        self._library = ctypes.CDLL(str(made))
        u, self._machine = machine.unicorn, machine
        native = imported("unicorn.unicorn_py3.unicorn").uclib
        arguments = [each.encode() for each in plugin.split(",")[1:]]
        values = (ctypes.c_char_p * len(arguments))(*arguments)
        called = (native.uc_mem_read, native.uc_reg_read, native.uc_reg_write)
        pointers = (ctypes.cast(each, ctypes.c_void_p) for each in called)
        if self._library.start(*pointers, len(arguments), values) != 0:
            raise MeasurementError("the plugin refuses its arguments")
        self._handles = []
        kinds = {"on_block": u.UC_HOOK_BLOCK, "on_access": u.UC_HOOK_MEM_READ | u.UC_HOOK_MEM_WRITE}
        for function, kind in kinds.items():
            handle = ctypes.c_size_t()
            callback = ctypes.cast(getattr(self._library, function), ctypes.c_void_p)
            one, none = ctypes.c_uint64(1), ctypes.c_uint64(0)
            status = native.uc_hook_add(machine.handle, ctypes.byref(handle), kind, callback, None, one, none)
            if status != 0:
                raise MeasurementError(f"unicorn refuses a hook: {status}")
            self._handles.append(handle)
        self._remove = native.uc_hook_del

    def remove(self) -> list[tuple[int, int]]:
        """Return first address and bytes of the blocks that were executed."""
        found: list[tuple[int, int]] = []
        kind = ctypes.CFUNCTYPE(None, ctypes.c_uint64, ctypes.c_uint32)
        self._library.stop(kind(lambda address, size: found.append((address, size))))
        for handle in self._handles:
            self._remove(self._machine.handle, handle)
        return found


def _infer(machine: _Machine, parser: int) -> None:
    """Give the image's parser of commands the one to infer once, without inferences before it to warm up."""
    command = machine.register("sp") - 512 & ~7
    machine.uc.mem_write(command, b"infer 1 0\0")
    machine.register("sp", command)
    machine.call(parser, command)


def _traced(machine: _Machine, parser: int) -> tuple[int, int]:
    """Infer, and return the block that begins the inference and the one that ends it."""
    u, seen = machine.unicorn, []
    names = ("start", "done", "lap")
    hooks = []
    for name, text in zip(names, _TEXTS[1:], strict=True):
        inside = machine.place(text) + 4  # not its begin: the text before it ends in the same word
        hooks.append(
            machine.uc.hook_add(
                u.UC_HOOK_MEM_READ, lambda *_, name=name: seen.append((name, 0)), begin=inside, end=inside + 3
            )
        )
    for first, last in _functions(machine, _TEXTS[1]):
        hooks.append(
            machine.uc.hook_add(u.UC_HOOK_BLOCK, lambda _uc, at, *_: seen.append(("", at)), begin=first, end=last)
        )
    _infer(machine, parser)
    for hook in hooks:
        machine.uc.hook_del(hook)
    return between(seen)


def between(seen: Sequence[tuple[str, int]]) -> tuple[int, int]:
    """Return the first and the last block of the function between the texts, and between the time stamps if any."""
    names = [name for name, _ in seen]
    if "start" not in names or "done" not in names:
        raise MeasurementError("the image did not infer")
    inside = seen[names.index("start") : names.index("done")]
    # Blocks of the function between the marks; a mark is read letter by letter.
    groups = [[at for name, at in part if not name] for mark, part in groupby(inside, lambda each: each[0]) if not mark]
    if len(groups) > 1 and "lap" in names:
        # Stamps: the first group ends with the call of the first one, the second group is the inference.
        groups = groups[1:2]
    begin, *_, end = groups[0]
    return begin, end


def _image_file(machine: _Machine, executed: Sequence[tuple[int, int]], folder: Path) -> Path:
    """Write an ELF file with the memory around the ``executed`` code, so that nothing else is decoded as code."""
    raw, first_pass, made = folder / "raw", folder / "sections.elf", folder / "image.elf"
    added, placed = ["-I", "binary", "-O", "elf32-littlearm"], ["--remove-section", ".data"]
    for number, (base, size) in enumerate((machine.chip.flash, machine.chip.ram, *machine.chip.others.values())):
        ranges = _merged([each for each in executed if base <= each[0] < base + size])
        if not ranges:
            continue
        name, first, last = f".code{number}", ranges[0][0] & ~3, ranges[-1][1]
        (folder / name).write_bytes(machine.uc.mem_read(first, last - first))
        added += ["--add-section", f"{name}={folder / name}", "--set-section-flags", f"{name}=alloc,code,contents"]
        placed += ["--change-section-address", f"{name}={first:#x}"]
        symbols = [f"code{number}={name}:0,function,global"]
        for start, end in ranges:
            symbols += [f"$t.{start:x}={name}:{start - first},local", f"$d.{end:x}={name}:{end - first},local"]
        placed += [word for symbol in symbols for word in ("--add-symbol", symbol)]
    raw.write_bytes(bytes(4))  # objcopy takes no empty file
    (folder / "placed").write_text("\n".join(placed))
    objcopy = COMPILER.replace("gcc", "objcopy")
    run([objcopy, *added, raw, first_pass])
    run([objcopy, f"@{folder / 'placed'}", first_pass, made])
    return made


def _merged(blocks: Sequence[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return first address and end of the ranges that the blocks cover."""
    found: list[tuple[int, int]] = []
    for first, size in sorted(blocks):
        if found and first <= found[-1][1]:
            found[-1] = found[-1][0], max(found[-1][1], first + size)
        else:
            found.append((first, first + size))
    return found


def model_vendor_image(image: bytes, mcu: Mcu, folder: Path) -> tuple[Result, str]:
    """Model one inference of ``image`` on ``mcu``, with the settings that its start-up code writes.

    Return the result and the settings; files are in ``folder``. Raises ``MeasurementError`` if the image does not run
    in unicorn.
    """
    chip = next(chip for part, chip in CHIPS.items() if mcu.name.startswith(part))
    # X-CUBE-AI uses a unit for checksums; no waits are known of it.
    mcu = replace(mcu, memories={**mcu.memories, _REGISTERS: TimedMemory(_PERIPHERALS[1])})
    machine = _Machine(image, chip)
    hooks = _Hooks(machine, folder, "trace")
    machine.boot(chip.flash[0])
    parser = _functions(machine, _UNKNOWN)[0][0]
    begin, end = _traced(machine, parser)
    mcu = mcu.as_set(lambda address: machine.registers.values.get(address, 0))
    executed = set(hooks.remove())
    for attempt in range(_ATTEMPTS):
        elf = _image_file(machine, sorted(executed), folder)
        table = [(begin, begin, REST), (end, end, OUTSIDE)]
        counting = Counting(elf, table, folder, board=chip.board(mcu.name), mcu=mcu)
        hooks = _Hooks(machine, folder, f"count{attempt}", counting.plugin)
        machine.skipped = 0
        _infer(machine, parser)
        # A branch may depend on values, so that code runs for the first time: then it is decoded, and counted again.
        more = set(hooks.remove()) - executed
        if not more:
            break
        executed |= more
    (rest,) = counting.calls()
    if rest.cycles is None or not rest.instructions:
        raise MeasurementError("nothing was counted")
    if machine.skipped > _NEGLIGIBLE * rest.instructions:
        raise MeasurementError(f"unicorn does not know {machine.skipped:,} instructions of the inference")
    return Result(rest.instructions, **asdict(rest.cycles)), mcu.settings()
