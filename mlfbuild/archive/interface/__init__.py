"""How a module is called: inputs and outputs in call order, interface, memory pools and devices.

``metadata.json`` as TVM writes it sorts tensors by name, and before version 7 has none. Their order stands, most
trusted first, in the C interface's header, in the entry file, in ``TVMMetadata``, in the executor's graph and in the
Relay text.
"""

from __future__ import annotations

from dataclasses import replace

from mlfbuild.archive.interface.combine import combined
from mlfbuild.archive.interface.entry import internal_pools
from mlfbuild.archive.interface.header import Header, header_file, read_header
from mlfbuild.archive.interface.places import Places
from mlfbuild.archive.interface.signature import Argument, Signature
from mlfbuild.library import OPERATOR, Module

__all__ = ["Argument", "Header", "Signature", "header_file", "read_header", "sources", "with_interface"]


def with_interface(module: Module, where: str, ordered: bool = False) -> Module:
    """Return ``module`` with what its files tell of how it is called: inputs, outputs, interface, pools and devices.

    ``module.inputs`` and ``outputs`` are what the metadata says; with ``ordered`` they are in call order. What no place
    tells stays empty, and where places disagree the most trusted one counts. ``where`` names the archive in messages.
    Raises ``InputFileError`` where the module's graph is unsound.
    """
    if module.style == OPERATOR:
        return module
    places = Places(module, where)
    _ = places.graph  # is refused where it is unsound, whether it is asked for more or not
    header = places.header
    pools = (*(header.pools if header else ()), *internal_pools(places.entry[1]))
    return replace(
        module,
        inputs=combined(module.inputs, places.inputs(), ordered=ordered, by_position=False),
        outputs=combined(module.outputs, places.outputs(), ordered=ordered, by_position=True),
        interface="" if module.executor != "aot" else "packed" if header_file(module) is None else "c",
        pools=tuple(sorted(pools, key=lambda pool: pool.name)),
        devices=header.structs.get("devices", ()) if header else (),
    )


def sources(module: Module, where: str) -> tuple[Signature, ...]:
    """Return what each place of the archive says of the inputs and outputs of ``module``, most trusted first.

    The Relay text's inputs include parameters that became constants. Raises ``InputFileError`` where the module's graph
    is unsound.
    """
    return () if module.style == OPERATOR else tuple(Places(module, where).signatures())
