"""Move the memory pools that a module's code defines into the workspace that models share, or into a section.

TVM's unified static memory planner plans all tensors of an AOT module in pools. The code defines each as a static
array, of which it uses the address::

    __attribute__((section(".bss.noinit.tvm"), aligned(16)))
    static uint8_t global_workspace[58928];

No option of a linker can give a static array the address of another one. But the macro ``(*pointer)`` in place of the
name makes the definition that of a pointer to such an array, and every use that of the array behind it. So the unit of
the source includes it unchanged, and the run function sets the pointer. A pool holds nothing between two runs, unless
the module's inputs and outputs are in it. In the code of the native compiler the workspace is a union,
to which the same macro makes a pointer.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby, islice
from operator import attrgetter
from pathlib import PurePosixPath

from mlfbuild.c_analysis import object_section_size
from mlfbuild.core import Mistake
from mlfbuild.executor.kernel_workspace import kernel_workspace
from mlfbuild.executor.kernels import Kernels
from mlfbuild.library import SHARED_WORKSPACE, Module, Pool, sanitize_name
from mlfbuild.library.cgen import ALIGNMENT, WORKSPACE_SECTION, aligned

_POOL = re.compile(
    r'__attribute__\s*\(\(\s*section\s*\(\s*"\.bss\.noinit\.tvm"\s*\)\s*,\s*aligned\s*\(\s*(?P<alignment>[0-9]{1,4})\s*\)\s*\)\)\s*'
    r"static\s+(?P<type>uint8_t)\s+(?P<name>\w+)\s*\[\s*(?P<size>[0-9]{1,18})\s*\]\s*;"
)
_OF_NATIVE = re.compile(
    r"^/\* Peak use: [0-9]+ of (?P<size>[0-9]{1,18}) bytes\. \*/\n"
    r"TVMGEN_\w+_WORKSPACE (?P<alignment>)static (?P<type>union mlf_\w+_workspace) (?P<name>tvmgen_\w+_workspace);$",
    re.MULTILINE,
)
_SHARED = re.compile(rf"\b{SHARED_WORKSPACE}(_[0-9]+)?(?=_busy\b|\b)")
# TVM makes one pool for each memory that its target names, which are few; the limit is for hostile sources.
_MOST = 16  # pools of a source
_REMOVE = "remove it from the list"


@dataclass(frozen=True)
class PlacedPool:
    """A pool that a source of the module defines, and its place in the shared workspace."""

    path: PurePosixPath
    """The source, relative to ``codegen/``."""
    c_type: str
    """The type of the variable, or of an element if it is an array of bytes."""
    name: str
    size: int
    alignment: int
    offset: int

    @property
    def end(self) -> int:
        """The offset behind it at which other data can start."""
        return aligned(self.offset + self.size)


@dataclass(frozen=True)
class PlacedPools:
    """The pools of one source, and the function that sets the pointers to them."""

    path: PurePosixPath
    """The source, relative to ``codegen/``."""
    function: str
    """Its name in C; its only argument is the shared workspace."""
    pools: tuple[PlacedPool, ...]

    @property
    def prototype(self) -> str:
        """The declaration of the function."""
        return f"void {self.function}(uint8_t *workspace);"

    def macros(self) -> Iterator[str]:
        """Yield the lines of the unit before it includes the source."""
        yield "/* In the workspace that models share: this turns the array that the file defines into a pointer. */"
        yield from (f"#define {pool.name} (*{_pointer(pool)})" for pool in self.pools)

    def definition(self) -> Iterator[str]:
        """Yield the lines of the unit after the source: the function.

        It takes the address of the shared workspace, and the run function calls it first.
        """
        # The unit of a C++ source is C++, and the entry that calls the function is C.
        yield from ["", "#ifdef __cplusplus", 'extern "C"', "#endif", self.prototype, ""]
        yield from [self.prototype.removesuffix(";"), "{"]
        for pool in self.pools:
            cast = f"uint8_t (*)[{pool.size}]" if pool.c_type == "uint8_t" else f"{pool.c_type} *)(void *"
            yield f"    {_pointer(pool)} = ({cast})(workspace + {pool.offset});"
        yield "}"


def _pointer(pool: PlacedPool) -> str:
    return f"mlf_place_of_{pool.name}"


def placed_pools(kernels: Kernels) -> tuple[PlacedPools, ...]:
    """Return the pools of each source that defines any, one behind the other, because a run uses all of them.

    Sources are in the order of the archive. ``offset`` of a pool is in bytes from the begin of the shared workspace and
    a multiple of its alignment. Objects are not searched: ``why_not_shared`` refuses those with pools.
    """
    found: list[PlacedPool] = []
    # The first form is what `native/printing/workspace.py` writes: a change there must be made here as well.
    form = _OF_NATIVE if kernels.module.model_id else _POOL
    for path, text in kernels.texts.items():
        for match in islice(form.finditer(text), _MOST):
            alignment = max(1, int(match["alignment"] or ALIGNMENT))
            # Not overlapping: TVM plans the pools of a module together, and all of them hold tensors during a run.
            offset = aligned(found[-1].end, alignment) if found else 0
            found.append(PlacedPool(path, match["type"], match["name"], int(match["size"]), alignment, offset))
    prefix = f"mlf_{sanitize_name(kernels.module.name)}_place_pools"
    return tuple(
        PlacedPools(path, f"{prefix}_{number}", tuple(pools))
        for number, (path, pools) in enumerate(groupby(found, attrgetter("path")))
    )


def why_not_shared(module: Module, workspace: str) -> Mistake | None:
    """Return why ``module`` cannot use the shared ``workspace``; ``None`` if it can, or if it needs none.

    Raises as ``kernel_workspace`` and ``object_section_size``.
    """
    kernels = Kernels(module)
    if module.model_id and module.executor == "aot":
        return _why_not_native(kernels, workspace)
    why = why_not_moved(kernels)
    if why:
        return _refused(why, _REMOVE)
    moved = placed_pools(kernels)
    external = [pool.name for pool in module.pools if pool.kind == "workspace" and pool.external]
    passed = passed_pools(module)
    if passed and module.workspace_io:
        return _refused(f"its inputs and outputs are in its pool {external[0]} between runs", _REMOVE)
    if external and not passed and not moved and not kernel_workspace(kernels):
        reason = f"the firmware passes its workspace ({', '.join(external)}), and its header does not define the size"
        return _refused(reason, "remove it from the list, and pass the same memory to models that take turns")
    return None


def passed_pools(module: Module) -> tuple[Pool, ...]:
    """Return the pools for workspaces that the caller of ``module`` passes; empty if the size of one is not known.

    Modules of the native compiler have none, because their code defines an array for each.
    """
    found = tuple(pool for pool in module.pools if pool.kind == "workspace" and pool.external)
    known = not module.model_id and all(pool.size is not None for pool in found)
    return found if known else ()


def why_not_moved(kernels: Kernels) -> str:
    """Return why the pools that the code of a module of another compiler defines cannot be moved; empty if they can.

    Raises as ``object_section_size``.
    """
    module = kernels.module
    for file in kernels.objects:
        # The address of a variable in an object is fixed by its own section, and no macro can reach it.
        size = object_section_size(file.data, WORKSPACE_SECTION, f"{module.name}: codegen/{file.path}")
        if size:
            return f"the object codegen/{file.path} defines {size:,} bytes of it in {WORKSPACE_SECTION}; export C"
    moved = {pool.name for pools in placed_pools(kernels) for pool in pools.pools}
    own = [pool for pool in module.pools if pool.kind == "workspace" and not pool.external]
    for pool in own:
        if pool.name not in moved:
            large = "" if pool.size is None else f" of {pool.size:,} bytes"
            return f"its pool {pool.name}{large} is not defined as TVM writes it, so it cannot be moved"
    # The firmware asks for their addresses before the run that sets the pointer to the pool. In a shared workspace,
    # another model's run would also overwrite what the firmware writes before a run and reads after it.
    if own and module.workspace_io:
        return f"its inputs and outputs are in its pool {own[0].name} between runs"
    return ""


def _why_not_native(kernels: Kernels, workspace: str) -> Mistake | None:
    """Return why the workspace of a module of the native compiler cannot be moved to the shared ``workspace``."""
    if kernels.module.workspace_io:
        return _refused("its inputs and outputs are in its workspace between runs", _REMOVE)
    network = kernels.module.network
    shared = next((found[0] for text in kernels.texts.values() if (found := _SHARED.search(text))), None)
    if shared is not None:
        reason = f"its code uses {shared}, and it would have to be {workspace} because of concurrent"
        return None if shared == workspace else _refused(reason, "compile the model file again")
    if network is not None and network.arenas:
        names = ", ".join(memory.name for memory in network.arenas)
        return _refused(f"its workspace is divided over several memories ({names})", _REMOVE)
    if placed_pools(kernels) or not any(main.workspace_size for main in kernels.module.main):
        return None
    return _refused(
        "another version of mlfbuild compiled it", "compile the model file again, or remove it from the list"
    )


def _refused(reason: str, hint: str) -> Mistake:
    return Mistake("workspace-cannot-be-shared", reason=reason, hint=hint)


def pools_of(pools: Sequence[PlacedPools], path: PurePosixPath) -> PlacedPools | None:
    """Return those of ``pools`` that the source ``path`` defines; ``None`` if it defines none.

    A source defines all of its pools in one function, so that there is at most one entry of ``pools`` for it.
    """
    return next((each for each in pools if each.path == path), None)
