"""Add the information about calling a module that is in its files."""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.archive.interface.combine import combined
from mlfbuild.archive.interface.entry import internal_pools
from mlfbuild.archive.interface.header import header_file
from mlfbuild.archive.interface.port_sources import Places
from mlfbuild.library import OPERATOR, Module


def with_interface(module: Module, where: str) -> Module:
    """Return ``module`` with inputs, outputs, interface, pools and devices from its files.

    ``module.inputs`` and ``outputs`` must be those of the metadata. Unknown information stays empty, and if places
    disagree, the most reliable one counts. ``where`` is the graph in errors. Raises ``InputFileError`` if the module's
    graph is invalid.
    """
    if module.style == OPERATOR:
        return module
    places = Places(module, where)
    places.check_graph()
    header = places.header
    pools = (*(header.pools if header else ()), *internal_pools(places.entry))
    # Inputs are paired by name, because Relay text lists constants among them; outputs by position, because each place
    # has other names for them.
    inputs = combined(module.inputs, places.inputs(), by_position=False)
    return replace(
        module,
        inputs=inputs,
        outputs=combined(module.outputs, places.outputs(inputs), by_position=True),
        interface="" if module.executor != "aot" else "packed" if header_file(module) is None else "c",
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        workspace_io=header is not None and header.workspace_io,
        devices=header.structs.get("devices", ()) if header else (),
    )
