"""Memory of a device that a firmware image does not use: room for the tensors of a model, with guards around them."""

from __future__ import annotations

import struct
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from mlfbuild.core import UnsupportedModelError
from mlfbuild.jobs.tree import Subject
from mlfbuild.runners import Firmware
from mlfbuild.targets import MemoryRegion

GUARD = ALIGNMENT = 64
"""As in verify_memory.h."""
# Bytes. The stack is painted and read over the connection, so no more than 8 KiB of it are watched.
_LARGEST_STACK, _SMALLEST_STACK, _PAGE = 8192, 2048, 1024
_STACK_LIMITS = ("__stack_limit", "__StackLimit")
"""Symbols of the end of the stack: of mlf_board.ld, and of CMSIS' linker scripts. Bytes below may be protected."""
_UNCHANGED, _INPUT_CHANGED, _BESIDE_INPUT, _BESIDE_OUTPUT, _BESIDE_WORKSPACE = range(5)
"""``enum damage`` of verify.c."""


@dataclass(frozen=True)
class _Tensor:
    """The bytes of a tensor or of the workspace, by their offset in the block."""

    start: int
    size: int
    beside: int
    """The damage if a byte next to it has changed."""
    index: int

    @property
    def end(self) -> int:
        return self.start + self.size


class Scratch:
    """The memory that a run of a module accesses besides its own: structs of pointers, tensors, a workspace.

    All of it is one block of memory from ``base``, except the inside of the workspace, which is neither written nor
    read by the host. Guards are between the parts, and after the last.
    """

    def __init__(self, subject: Subject, *, workspace: bool) -> None:
        self._inputs: list[_Tensor] = []
        self._outputs: list[_Tensor] = []
        # Pointers of the device, not of the host: 32 bits on every supported core.
        pointers = 4 * (len(subject.inputs) + len(subject.outputs))
        at = _aligned(pointers) + GUARD
        for kind, tensors, beside in (
            (self._inputs, subject.inputs, _BESIDE_INPUT),
            (self._outputs, subject.outputs, _BESIDE_OUTPUT),
        ):
            for index, tensor in enumerate(tensors):
                kind.append(_Tensor(at, tensor.size, beside, index))
                at = _aligned(at + tensor.size) + GUARD
        self._parts = [*self._inputs, *self._outputs]
        self.workspace: int | None = None
        self._head = at
        self.size = at
        # Last, because its inside is neither written nor read: the host transfers one piece before it and the guard
        # after it.
        if workspace:
            self.workspace = at
            self._parts.append(_Tensor(at, subject.workspace_size, _BESIDE_WORKSPACE, 0))
            self.size = _aligned(at + subject.workspace_size) + GUARD

    def arguments(self, base: int) -> list[int]:
        """Return the arguments of the run function: the structs of pointers, and the workspace.

        Addresses on the device, in the order of the parameters of ``tvmgen_<module>_run``.
        """
        structs = [base, base + 4 * len(self._inputs)]
        return structs if self.workspace is None else [*structs, base + self.workspace]

    def pieces(self, base: int, inputs: Sequence[bytes], paint: int) -> list[tuple[int, bytes]]:
        """Return the bytes to write before a run, by their addresses.

        ``paint`` (0 to 255) varies the pattern, so that two runs with different paint show outputs that were not
        written. The first piece has the pointers, tensors and guards; with a workspace, the second has the guard after
        it.
        """
        # 251 is prime and not a multiple of the alignment, so a copy that is shifted by a guard changes the pattern.
        block = (np.arange(self.size) % 251 + 1).astype(np.uint8) ^ paint
        pointers = [base + tensor.start for tensor in (*self._inputs, *self._outputs)]
        words = struct.pack(f"<{len(pointers)}I", *pointers)
        block[: len(words)] = np.frombuffer(words, np.uint8)
        for tensor, data in zip(self._inputs, inputs, strict=True):
            block[tensor.start : tensor.end] = np.frombuffer(data, np.uint8)
        content = block.tobytes()
        found = [(base, content[: self._head])]
        if self.workspace is not None:
            end = self._parts[-1].end
            found.append((base + end, content[end:]))
        return found

    def outputs(self, head: bytes) -> list[bytes]:
        """Return the outputs in ``head``, the first piece after a run.

        They are raw bytes in call order, with the byte order of the device.
        """
        return [head[tensor.start : tensor.end] for tensor in self._outputs]

    def damage(self, base: int, before: Sequence[tuple[int, bytes]], after: Sequence[bytes]) -> tuple[int, int]:
        """Return the first damage in the pieces after a run, and the number of the input or output.

        ``before`` is what ``pieces`` returned, ``after`` the same memory read after the run. The kinds of damage are
        those of ``enum damage`` in verify.c; 0 means that nothing but the outputs has changed.
        """
        for (address, old), new in zip(before, after, strict=True):
            # Changes of outputs are wanted, so `_damage_at` may return None, and the search goes on.
            for at in np.flatnonzero(np.frombuffer(old, np.uint8) != np.frombuffer(new, np.uint8)):
                found = self._damage_at(int(at) + address - base)
                if found is not None:
                    return found
        return _UNCHANGED, 0

    def _damage_at(self, at: int) -> tuple[int, int] | None:
        for tensor in self._parts:
            if tensor.start <= at < tensor.end:
                return (_INPUT_CHANGED, tensor.index) if tensor.beside == _BESIDE_INPUT else None
        # An overrun begins at a tensor's edge, so the nearest tensor is the likely culprit.
        nearest = min(self._parts, key=lambda tensor: min(abs(at - tensor.start), abs(at - tensor.end + 1)))
        return nearest.beside, nearest.index


def _aligned(size: int) -> int:
    return -(-size // ALIGNMENT) * ALIGNMENT


@dataclass(frozen=True)
class ScratchRoom:
    """Free memory of a device at the start of ``main``."""

    base: int
    """First address for the block."""
    stack: int
    """Lowest address of the free stack that is watched."""


def find_room(firmware: Firmware, ram: MemoryRegion, pointer: int, size: int) -> ScratchRoom:
    """Return the room for ``size`` bytes in ``ram``, and for a stack below the stack pointer ``pointer``.

    The block is at the end of the largest gap between the sections of ``firmware``, because heaps grow from the begin.
    Only sections of the ELF file count as used: memory that the firmware uses by address alone is not seen.

    Raises ``UnsupportedModelError`` (codes ``no-room-for-tensors`` and ``no-room-for-stack``) if there is too little
    memory.
    """
    gaps = list(_gaps(firmware, ram))
    # The gap with the stack pointer can hold the block only above what is left to the stack, which grows down.
    own = next(((begin, end) for begin, end in gaps if begin < pointer <= end), None)
    best = 0
    for begin, end in gaps:
        # The stack keeps half of what is free.
        stack = max(_SMALLEST_STACK, min(_LARGEST_STACK, (pointer - begin - size) // 2)) + GUARD
        top = pointer - stack if (begin, end) == own else end
        base = (top - size) // ALIGNMENT * ALIGNMENT
        if base >= begin and (best == 0 or base - begin > best - begin):
            best = base
    if best == 0:
        largest = max((end - begin for begin, end in gaps), default=0)
        raise UnsupportedModelError(
            "no-room-for-tensors",
            place=firmware.path,
            reason=f"the model's tensors and a stack need {size + _SMALLEST_STACK:,} bytes of RAM that the image does "
            f"not use, but the largest gap has {largest:,}",
            hint="make its heap or its buffers smaller, or correct the memory of the target's runner",
        )
    bottom = own[0] if own else max((start for start, length in firmware.sections if start < pointer), default=0)
    if own is not None and best < pointer:
        bottom = max(bottom, best + size)
    limits = (firmware.objects.get(name, 0) for name in _STACK_LIMITS)
    bottom = max([bottom, *(limit for limit in limits if limit < pointer)])
    free = pointer - bottom
    if free < _SMALLEST_STACK:
        raise UnsupportedModelError(
            "no-room-for-stack",
            place=firmware.path,
            reason=f"only {free:,} bytes of stack are free when main starts",
            hint=f"give the image a stack of at least {_SMALLEST_STACK:,} bytes, and what the model needs",
        )
    # The memory protection unit may guard bytes below the stack, and QEMU accesses memory in pages of 1 KiB.
    return ScratchRoom(best, max(pointer - _LARGEST_STACK, -(-bottom // _PAGE) * _PAGE))


def _gaps(firmware: Firmware, ram: MemoryRegion) -> Iterator[tuple[int, int]]:
    """Yield first address and end of each part of ``ram`` without a section, in ascending order."""
    at, end = ram.origin, ram.origin + ram.size
    for start, size in firmware.sections:
        # Sections in flash, and sections inside of others, such as overlays.
        if start + size <= at or start >= end:
            continue
        if start > at:
            yield at, start
        at = start + size
    if at < end:
        yield at, end
