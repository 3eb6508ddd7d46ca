"""How much RAM a module takes in firmware, whoever brings it."""

from __future__ import annotations

from mlfbuild.executor.executables import executable
from mlfbuild.library import Module


def arena_size(module: Module) -> int:
    """Return the bytes of the module's workspaces: generated ones, and pools of its own and of the caller's.

    What another compiler's metadata says counts where nothing is generated and no pool is known: it is made for TVM's
    executors, which take more or less than ours. Raises as ``executable``.
    """
    recorded = sum(main.workspace_size for main in module.main)
    found = executable(module)
    if found is None:
        return recorded
    pools = [pool.size or 0 for pool in module.pools if pool.kind == "workspace"]
    return found.workspace_size + sum(pools) or recorded


def ram_size(module: Module) -> int:
    """Return the bytes of RAM that the module takes: its workspaces, and what it keeps between runs."""
    return arena_size(module) + module.state_size
