"""How a module is called: inputs and outputs in call order, interface, memory pools and devices.

``metadata.json`` as TVM writes it sorts tensors by name, and before version 7 has none. Their order stands, most
trusted first, in the C interface's header, in the entry file, in ``TVMMetadata``, in the executor's graph and in the
Relay text: a module here for each of these places. ``places`` asks them, ``combine`` makes one answer of theirs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.archive.interface.header import (
        Header as Header,
        header_file as header_file,
        read_header as read_header,
    )
    from mlfbuild.archive.interface.modules import with_interface as with_interface
else:
    __getattr__ = lazy_attributes(__name__)
