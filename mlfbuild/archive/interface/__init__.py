"""Find out how a module is called: inputs and outputs in call order, interface, memory pools and devices.

TVM's ``metadata.json`` sorts tensors by name, and has none before version 7. Their order is recorded, with decreasing
reliability, in the header of the C interface (``header``), the entry file (``entry``), ``TVMMetadata``
(``tvm_metadata``), the executor's graph and the Relay text (``relay``). If the text does not state a result type,
it follows from the operators (``relay_body``, ``relay_operators``); without the text, sizes may follow from the header
(``sizes``). ``port_sources`` reads all these when they are needed, ``combine`` merges their information, and
``with_interface`` adds the result to a module.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.interface.header import Header, header_file, read_header
    from mlfbuild.archive.interface.modules import with_interface
else:
    __getattr__ = lazy_attributes(__name__)
