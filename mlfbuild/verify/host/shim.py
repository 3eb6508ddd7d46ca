"""The C code between ctypes and a module: inputs and outputs as arrays of pointers, memory pools included."""

from __future__ import annotations

from pathlib import Path

from mlfbuild.core import UnsupportedModelError, listed, shown, text_templates
from mlfbuild.library import WORKSPACE_POOL, Module, macro_prefix, sanitize_name, struct_prefix
from mlfbuild.verify.host.trace import is_graph, traced_copies


def print_shim(module: Module) -> str:
    """Return a C file with ``mlf_host_run(inputs, outputs)`` and ``mlf_host_reset()`` for ``module``.

    ``mlf_host_run_cases`` runs many cases, whose tensors follow each other, each from the initial state. It sets
    ``done`` to the number of cases that ended well.

    For a graph, and for a module with a traced run function, it also has ``mlf_host_trace(inputs, outputs, traced)``,
    which copies each tensor of ``traced_tensors``, in its order, to the pointer in ``traced``.

    Raises ``UnsupportedModelError`` if the caller of ``module`` must provide a device driver or a pool of unknown size.
    """
    graph = is_graph(module)
    pools = [pool for pool in module.pools if pool.external]
    traced = bool(module.trace) and not graph
    # Drivers are C structs of functions that only firmware for the device can provide.
    if module.devices and not traced:
        raise UnsupportedModelError(
            "module-needs-driver",
            place=module.name,
            reason=f"this machine has no device driver for {listed(module.devices)}, which the module requires",
            hint="compile the model for the CPU only",
        )
    unknown = [pool.name for pool in pools if pool.size is None]
    if unknown and not traced:
        raise UnsupportedModelError(
            "pool-size-unknown",
            place=module.name,
            reason=f"its header does not define the size of the memory pool {shown(unknown[0])}",
        )
    arenas = [memory.name for memory in module.network.arenas] if module.network else []
    workspaces = {f"{name}_workspace": f"{name.upper()}_WORKSPACE_POOL_SIZE" for name in arenas}
    templates = text_templates(Path(__file__).parent, in_c=sanitize_name)
    return templates.get_template("shim.c").render(
        module=module,
        name=sanitize_name(module.name),
        prefix=struct_prefix(module.name),
        macros=macro_prefix(module.name),
        workspaces=workspaces or {"workspace": "WORKSPACE_SIZE"},
        members=arenas or [WORKSPACE_POOL],
        pools=pools,
        traced=traced,
        copies=list(traced_copies(module)) if graph else None,
    )
