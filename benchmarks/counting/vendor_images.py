"""Models the cycles of one inference of a firmware image that a vendor flashed for MLPerf Tiny.

The image starts from reset in unicorn, with peripheral registers that answer. When it is ready, its function that
prints ``m-infer-start`` and ``m-infer-done`` is called: the inferences are between the two texts, and between the two
time stamps (``m-lap-us``) if it prints them. The first call notes which code runs; the second one is counted by the
plugin that also counts in QEMU (``unicorn_hooks.c``). Images are only timed.
"""

from __future__ import annotations

import ctypes
import struct
from collections.abc import Iterator, Sequence
from dataclasses import asdict, replace
from functools import cache
from itertools import groupby, pairwise
from pathlib import Path

from counting.firmware import COMPILER, MeasurementError, run
from counting.images import Result
from counting.vendor_machine import CHIPS, PERIPHERALS, REGISTERS, VendorMachine, imported
from mlfbuild.targets import Mcu, TimedMemory
from mlfbuild.verify import emulator
from mlfbuild.verify.emulator import OUTSIDE, REST, Counting

_HOOKS = Path(__file__).with_name("unicorn_hooks.c")
_TEXTS = (b"m-infer-start", b"m-infer-done", b"m-lap-us")
_UNKNOWN = b"e-[Unknown"
"""A text of the function that parses commands."""
_LONGEST = 1024
"""Bytes from the begin of a function to its use of a text."""
_ATTEMPTS, _NEGLIGIBLE = 4, 0.001


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


def _functions(machine: VendorMachine, text: bytes) -> list[tuple[int, int]]:
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

    def __init__(self, machine: VendorMachine, folder: Path, name: str, plugin: str = "") -> None:
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


def _infer(machine: VendorMachine, parser: int) -> None:
    """Give the image's parser of commands the one to infer once, without inferences before it to warm up."""
    command = machine.register("sp") - 512 & ~7
    machine.uc.mem_write(command, b"infer 1 0\0")
    machine.register("sp", command)
    machine.call(parser, command)


def _traced(machine: VendorMachine, parser: int) -> tuple[int, int]:
    """Infer, and return the block that begins the inference and the one that ends it."""
    u, seen = machine.unicorn, []
    names = ("start", "done", "lap")
    hooks = []
    for name, text in zip(names, _TEXTS, strict=True):
        inside = machine.place(text) + 4  # not its begin: the text before it ends in the same word
        hooks.append(
            machine.uc.hook_add(
                u.UC_HOOK_MEM_READ, lambda *_, name=name: seen.append((name, 0)), begin=inside, end=inside + 3
            )
        )
    for first, last in _functions(machine, _TEXTS[0]):
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


def _image_file(machine: VendorMachine, executed: Sequence[tuple[int, int]], folder: Path) -> Path:
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
    mcu = replace(mcu, memories={**mcu.memories, REGISTERS: TimedMemory(PERIPHERALS[1])})
    machine = VendorMachine(image, chip)
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
