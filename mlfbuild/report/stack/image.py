"""The stack that the models of an image need, and its ``main``."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from mlfbuild.library.names import symbol_prefix
from mlfbuild.report.image import Image
from mlfbuild.report.linker_map import InputSection
from mlfbuild.report.sizes import module_of
from mlfbuild.report.stack.objdump import read_program
from mlfbuild.report.stack.pointers import pointers_of
from mlfbuild.report.stack.worst import CallGraph, StackDepth

ENTRIES = ("{prefix}_run", "mlf_{module}_run", "{prefix}_reset", "mlf_{module}_reset")
"""Functions of a module that firmware calls."""
MAIN = "main"


@dataclass(frozen=True)
class Stacks:
    """The most that the functions of an image take of the stack."""

    models: Mapping[str, StackDepth]
    """By model: the deepest of the functions that firmware calls."""
    main: StackDepth
    """Of ``main`` with all that it calls."""


def stacks_of(image: Image, placed: Sequence[InputSection], models: Mapping[str, str]) -> Stacks:
    """Return the stack that the models of ``image`` need, by its map ``placed``.

    ``models`` has what a module's model is called, by the name of the module. Raises as ``read_program``.
    """
    program = read_program(image.path)
    if program is None:
        unknown = StackDepth(None, reason="mlfbuild knows the instructions of 32-bit Arm and RISC-V only")
        return Stacks(dict.fromkeys(models.values(), unknown), unknown)
    pointers = {
        address: targets
        for module in models
        for address, targets in pointers_of(
            module, program, image, [part for part in placed if module_of(part) == module]
        )
    }
    graph = CallGraph(program.listing, program.decode, program.words, pointers)
    names: dict[str, list[str]] = {}
    for module, model in models.items():
        names.setdefault(model, []).extend(
            entry.format(prefix=symbol_prefix(module), module=module) for entry in ENTRIES
        )
    addresses = {symbol.name: symbol.address for symbol in image.symbols if symbol.function}
    found = {model: _deepest(graph, entries, addresses) for model, entries in names.items()}
    return Stacks(found, _deepest(graph, [MAIN], addresses))


def _deepest(graph: CallGraph, entries: Sequence[str], addresses: Mapping[str, int]) -> StackDepth:
    """Return the deepest of those ``entries`` that the image has; nothing is known where one is not."""
    found = [graph.depth(addresses[name]) for name in entries if name in addresses]
    if not found:
        return StackDepth(None, reason=f"the image has no function {entries[0]}")
    return next((depth for depth in found if depth.size is None), max(found, key=lambda depth: depth.size or 0))
