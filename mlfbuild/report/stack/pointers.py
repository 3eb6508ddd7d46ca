"""Possible targets of calls through pointers in a model's library: the functions whose addresses it holds.

``ImageCode`` is the code of an image, with the decoder for the effects of its instructions on the stack.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from mlfbuild.library import symbol_prefix
from mlfbuild.report.sizes.image import Image, Symbol
from mlfbuild.report.sizes.linker_map import InputSection
from mlfbuild.report.stack import arm, riscv
from mlfbuild.report.stack.steps import Decoder, Words
from mlfbuild.timing import Disassembly, ListedFunction, disassembled

_DECODERS: dict[str, Decoder] = {"EM_ARM": arm.decode, "EM_RISCV": riscv.decode}


@dataclass(frozen=True)
class ImageCode:
    """The code of an image."""

    listing: Disassembly
    decode: Decoder
    words: Words
    thumb: bool
    """Whether pointers to functions are odd."""


def read_program(path: Path) -> ImageCode | None:
    """Return the code of the image ``path``; ``None`` if it is not for 32-bit Arm or RISC-V.

    Raises as ``disassembled``.

    ``ImageCode.decode`` is the decoder for the machine in the ELF header.
    """
    code = disassembled(path)
    if code is None:
        return None
    return ImageCode(code.listing, _DECODERS[code.machine], code.word, thumb=code.machine == "EM_ARM")


_CALLS = re.compile(r"mlf_calls(\.\d+)?")
"""The table of an executor: the functions that it calls, in order."""
_EXECUTES = r"mlf_execute|({prefix}|mlf_{module}_packed)_run(_hooked)?($|\.)"
"""Names of functions of a module that call the functions in the table."""
_CALLS_BACK = re.compile(r"_run_(hooked|traced|hooked_and_traced)($|\.)")
"""Names of functions that call hooks of firmware, directly or through the executor."""
_ADDRESS = re.compile(r"([0-9a-f]+) <")
_LITERAL = re.compile(r"\(([0-9a-f]+)")
_ENDS = re.compile(r"b(\.[nw])? |bx |(pop|ldm)\S* .*\bpc\}|ldr\S* pc,")
"""Instructions that do not fall through."""
_WORD = 4


@dataclass(frozen=True)
class Pointers:
    """Targets of calls through pointers, by the address of the calling function."""

    own: dict[int, set[int]]
    """Targets inside the library; hooks of firmware are omitted."""
    all: dict[int, set[int]]
    """The same without functions that call hooks of firmware, whose targets are unknown."""


def pointers_of(module: str, program: ImageCode, image: Image, parts: Sequence[InputSection]) -> Pointers:
    """Return the targets of calls through pointers in the library of ``module``, whose input sections are ``parts``.

    An executor calls the functions of its table. Other functions may call those of the library whose address is in
    another constant, and any function whose address code loads. That may be too many, because a number can look like an
    address.

    Targets of a function are absent from ``Pointers.all`` if it calls hooks of the firmware, because the analysis of
    ``main`` cannot know them.
    """
    # By address instead of by name, because static functions of two libraries may have the same name.
    symbols = [
        symbol
        for symbol in image.symbols
        if any(part.address <= symbol.address < part.address + part.size for part in parts)
    ]
    functions = [
        function
        for symbol in symbols
        if symbol.function and (function := program.listing.function_at(symbol.address)) is not None
    ]
    tables = (symbol for symbol in symbols if not symbol.function and _CALLS.fullmatch(symbol.name))
    called = {to for table in tables for to in _functions_in(program, table.address, table.size)}
    # Only an executor walks the table; without this, each kernel would seem to call all others.
    others = _taken(program, symbols, functions, parts) - called
    executes = re.compile(_EXECUTES.format(prefix=symbol_prefix(module), module=module))
    hooked = any(_CALLS_BACK.search(function.name) for function in functions)
    found = Pointers({}, {})
    for function in functions:
        executor = executes.match(function.name) is not None
        # With a hooked run in the library, its executor also calls the hook that it is given.
        back = _CALLS_BACK.search(function.name) is not None or (hooked and executor)
        targets = others | called if executor else others
        if targets or back:
            found.own[function.address] = targets
        if targets and not back:
            found.all[function.address] = targets
    return found


def _taken(
    program: ImageCode, symbols: Iterable[Symbol], functions: Sequence[ListedFunction], parts: Iterable[InputSection]
) -> set[int]:
    """Return the functions whose addresses are in constants of ``parts``, or are loaded by ``functions``."""
    own = {function.address for function in functions}
    # A part with a function is code, whose instructions would look like addresses; ``loaded_by`` reads its literal
    # pools.
    constants = (part for part in parts if not any(part.address <= at < part.address + part.size for at in own))
    held = {to for part in constants for to in _functions_in(program, part.address, part.size) if to in own}
    loaded = {to for function in functions for to in loaded_by(program, function)}
    return held | (loaded - {symbol.address for symbol in symbols if not symbol.function})


def _functions_in(program: ImageCode, start: int, size: int) -> Iterator[int]:
    """Yield the functions whose addresses are in a constant."""
    # Compilers align pointers to words, so no other offsets are read.
    first = start + -start % _WORD
    return _functions(program, (program.words(at) for at in range(first, start + size - _WORD + 1, _WORD)))


def _functions(program: ImageCode, words: Iterable[int | None]) -> Iterator[int]:
    for word in words:
        # Pointers to Thumb code are odd. Few numbers in constants are odd and the begin of a function.
        if word is not None and (word & 1 == 1 or not program.thumb):
            address = word & ~1 if program.thumb else word
            if program.listing.begins(address):
                yield address


def loaded_by(program: ImageCode, function: ListedFunction) -> Iterator[int]:
    """Yield the functions whose addresses code loads: as a word, in two halves, or relative to itself.

    Includes functions without a symbol, such as LLVM creates for parallel loops.
    """
    words = list(_words_of(program, function) if program.thumb else _comments_of(function))
    yield from _functions(program, words)
    yield from (word & ~1 for word in words if program.thumb and word & 1 and _may_begin(program, word & ~1))


def _may_begin(program: ImageCode, address: int) -> bool:
    """Return whether a function without a symbol may begin at ``address``: no code falls through to it."""
    function = program.listing.function_at(address)
    at = function.places[address] if function is not None else 0
    if function is None or at == 0 or function.instructions[at].is_data:
        return False
    before = function.instructions[at - 1]
    return before.is_data or _ENDS.match(f"{before.mnemonic} {before.operands}") is not None


def _words_of(program: ImageCode, function: ListedFunction) -> Iterator[int]:
    held: dict[str, int] = {}
    # Values are not cleared when another instruction overwrites the register: a stale one can only add a target.
    for instruction in function.instructions:
        register, _, value = instruction.operands.partition(", ")
        kind = instruction.mnemonic[:4]
        if kind == "movw":
            held[register] = int(value.removeprefix("#"))
        elif kind == "movt" and register in held:
            yield held[register] | int(value.removeprefix("#")) << 16
        elif kind.startswith("ldr") and value.startswith("[pc") and (found := _LITERAL.match(instruction.comment)):
            held[register] = program.words(int(found[1], 16)) or 0
            yield held[register]
        # pc reads as the address of the instruction plus 4 in Thumb code.
        elif kind == "add" and value == "pc" and register in held:
            yield (held[register] + instruction.address + 4) & 0xFFFFFFFF


def _comments_of(function: ListedFunction) -> Iterator[int]:
    """Yield the sums of LUI or AUIPC and the next instruction from objdump's comments: ``# 800012a4 <run>``."""
    for instruction in function.instructions:
        found = _ADDRESS.match(instruction.comment)
        if found is not None:
            yield int(found[1], 16)
