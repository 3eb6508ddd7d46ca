"""``io_size_bytes``: the bytes of inputs and outputs, to which TVM adds intermediate results of some networks."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.archive.repair.repairs import Repair, key_place, repair, with_each_module
from mlfbuild.core import counted
from mlfbuild.library import Library, Module


def with_true_io_sizes(library: Library) -> tuple[Library, tuple[Repair, ...]]:
    """Return ``library`` with ``io_size_bytes`` as the sum of inputs and outputs (MLF412 and MLF413).

    Modules with several devices stay as they are, because the metadata does not record which tensor is where.
    """

    def correct(module: Module) -> tuple[Module, list[Repair]]:
        size = sum(tensor.size for tensor in (*module.inputs, *module.outputs))
        known = bool(module.inputs and module.outputs and len(module.main) == 1)
        if not known or (old := module.main[0].io_size) == size:
            return module, []
        place = key_place(library, module, "memory.functions.main[0].io_size_bytes")
        found = repair("MLF412" if old < size else "MLF413", place, counted(old, "byte"), counted(size, "byte"))
        return replace(module, main=(replace(module.main[0], io_size=size),)), [found]

    return with_each_module(library, correct)
