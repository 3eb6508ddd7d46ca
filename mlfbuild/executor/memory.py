"""Compute how much RAM a module needs in firmware, including memory that its caller provides."""

from __future__ import annotations

from mlfbuild.executor.executables import executable
from mlfbuild.library import Module


def arena_size(module: Module) -> int:
    """Return the bytes of the module's workspaces: generated ones, and memory pools of the module or its caller.

    If there are neither, the result is the size in the metadata. Otherwise that size is ignored, because it applies to
    TVM's executors, which need more or less memory than those of mlfbuild. Raises as ``executable``.
    """
    recorded = sum(main.workspace_size for main in module.main)
    found = executable(module)
    if found is None:
        return recorded
    pools = [pool.size or 0 for pool in module.pools if pool.kind == "workspace"]
    return found.workspace_size + sum(pools) or recorded


def ram_size(module: Module) -> int:
    """Return the bytes of RAM that the module needs: its workspaces and its state.

    Buffers for inputs and outputs that the firmware owns are not counted, nor is the stack. Raises as ``executable``.
    """
    return arena_size(module) + module.state_size
