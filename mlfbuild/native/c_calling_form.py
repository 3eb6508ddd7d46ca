"""The form of generated code: who calls it, and in how many files it is."""

from __future__ import annotations

from dataclasses import dataclass

from mlfbuild.library import REPLACEABLE, CompileRequest

LAYOUTS = ("standard", "single-file")
"""The values of the option ``layout``; the first one is the default."""

INTERFACES = ("c", "packed")
"""The values of the option ``interface-api``, which has TVM's name for it; the first one is the default."""


@dataclass(frozen=True)
class CodeForm:
    """The functions that call a network, and the files that they are in."""

    graph: bool = False
    """Whether TVM's graph executor runs it."""
    packed: bool = False
    """Whether TVM's AOT executor runs it: by a packed function, with ``TVMMetadata``."""
    single_file: bool = False
    """Whether all code is in one C file, which includes no other file of the archive."""
    arena_io: bool = False
    """Whether inputs and outputs are in the arena, which the caller passes to the C interface as a memory pool."""
    replaceable: bool = False
    """Whether trained values are in a blob, which has a C file of its own."""

    @property
    def has_c_interface(self) -> bool:
        """Whether firmware runs it by TVM's C interface."""
        return not self.graph and not self.packed

    @property
    # The C interface is one file; the graph executor also has a registry, and the AOT executor metadata.
    def sources(self) -> int:
        """The number of C files."""
        if self.replaceable:
            return 2
        return 1 if self.single_file or self.has_c_interface else 2 if self.graph else 3


C_INTERFACE = CodeForm()
"""The default: firmware calls the network by TVM's C interface."""


def form_of(request: CompileRequest) -> CodeForm:
    """Return the form of code that ``request`` asks for.

    Options that ``request`` does not have are as in ``C_INTERFACE``.
    """
    options = request.options
    return CodeForm(
        graph=request.executor == "graph",
        packed=options.get("interface-api") == "packed",
        single_file=options.get("layout") == "single-file",
        arena_io=options.get("io") == "arena",
        replaceable=options.get("parameters") == REPLACEABLE,
    )
