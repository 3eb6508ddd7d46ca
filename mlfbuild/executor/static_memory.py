"""The static memory of a module's runs: its own variable, or the one that models share.

In a workspace that is shared or has a section, the memory pools of the module's code come first, the generated
workspace follows, and the pools that firmware passes are last, because one run uses all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from mlfbuild.executor.pools import PlacedPools
from mlfbuild.library import Pool
from mlfbuild.library.cgen import (
    ALIGNMENT,
    SCRATCH_TYPES,
    WORKSPACE_SECTION,
    aligned,
    print_shared_workspace,
    union_members,
)
from mlfbuild.library.keys import Placement


@dataclass(frozen=True)
class StaticMemory:
    """The static workspace that mlfbuild generates for a module."""

    prefix: str
    """The prefix of the names in the generated file."""
    size: int
    """Bytes for tensors and kernels; 0 for none."""
    placement: Placement
    types: frozenset[str] = SCRATCH_TYPES
    """The C types of the elements that it holds."""
    pools: tuple[PlacedPools, ...] = ()
    """The pools of the module's code that are in it."""
    passed: tuple[Pool, ...] = ()
    """The pools of known sizes that firmware passes and that are in it."""

    @property
    def shared(self) -> bool:
        """Whether runs use the shared workspace; a module without static memory does not."""
        return bool(self.placement.shared_workspace) and bool(self.pools or self.size or self.passed)

    def at(self, offset: int) -> str:
        """Return the address in C of the byte at ``offset`` of the generated workspace.

        ``offset`` is relative to the storage of the plan; the pools of the module's own code, which come first, are
        skipped here.
        """
        start = self._start + offset
        return f"{self._bytes} + {start}" if start else self._bytes

    @property
    def name(self) -> str:
        """The variable in C."""
        return self.placement.shared_workspace if self.shared else f"{self.prefix}_workspace"

    def passed_addresses(self) -> Iterator[tuple[str, str]]:
        """Yield the name of each pool that firmware passes, and its address in C."""
        offset = aligned(self.size)
        for pool in self.passed:
            yield pool.name, self.at(offset)
            offset += aligned(pool.size or 0)

    @property
    def _bytes(self) -> str:
        return f"{self.name}.uint8_elements"

    @property
    def _start(self) -> int:
        return self.pools[-1].pools[-1].end if self.pools else 0

    def begin(self) -> Iterator[str]:
        """Yield the statements with which a run begins: those that place the pools of the module's code."""
        yield from (f"    {pools.function}({self._bytes});" for pools in self.pools)

    def definition(self) -> str:
        """Return the definition of the variable, a union of the types of its elements; empty if there is none."""
        size = self._start + self.size
        if self.passed:
            size = aligned(size) + sum(aligned(pool.size or 0) for pool in self.passed)
        alignment = max([ALIGNMENT, *(pool.alignment for pools in self.pools for pool in pools.pools)])
        prototypes = [f"\n{pools.prototype}" for pools in self.pools]
        if self.shared:
            # The linker makes one symbol of all common definitions of a name, with the size of the largest and the
            # strictest alignment: no model has to know what the others need.
            attributes = f"__attribute__((common, aligned({alignment})))"
            text = print_shared_workspace(
                self.prefix, self.name, self._declarator(size), attributes, "__attribute__((weak))"
            )
            return "\n".join([*text, *prototypes])
        section = self.placement.workspace or WORKSPACE_SECTION
        attributes = f'__attribute__((section("{section}"), aligned({alignment})))'
        return "\n".join([attributes, f"static {self._declarator(size)};", *prototypes]) if size else ""

    def _declarator(self, size: int) -> str:
        members = (f"    {member}" for member in union_members(size, self.types))
        return "\n".join(["union {", *members, f"}} {self.name}"])
