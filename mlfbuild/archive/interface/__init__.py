"""Find out how a module is called: inputs and outputs in call order, interface, memory pools and devices.

TVM's ``metadata.json`` sorts tensors by name, and has none before version 7. Their order is recorded elsewhere in the
archive, in up to five places. The most reliable one comes first:

1. the header of the C interface (``read_header``): the members of two structs, in call order, without types
2. the entry file (``entry``): the parameters of the main function; not read if there is a header, which has the same
3. ``TVMMetadata`` in C code (``port_sources``): names, types and shapes, for packed functions of TVM 0.11 and later
4. the graph of the graph executor: its inputs without parameters, and its heads
5. the Relay text (``relay``): types of ``@main``. If it does not state a result type, the type follows from the
   operators (``relay``, ``relay_operators``)

If there is no text, types and sizes may follow from pointers in C, macros of the header and the size of all tensors
together (``sized_signature`` in ``port_sources``).

The data: each place gives a ``Signature``, which has ``Argument`` objects for inputs and outputs: a name, and a type,
shape and size if they are known. ``port_sources`` reads a place when it is needed, and once. ``combine`` takes names
from the metadata, the order from the first place with the same tensors, and types and shapes from any place that agrees
with the sizes in the metadata. ``with_interface`` puts the result into the module.

The rules:

- A name in C is not the name in the model: ``sanitize_name`` maps both to one spelling, and Relay's printer adds a
  ``v`` before names that do not begin with a letter.
- A place that contradicts a size in the metadata is ignored for that tensor. A guess is never made: if two choices
  fit, tensors keep the order of the metadata, and a module without complete information has no inputs.
- Relay text lists parameters that became constants among the inputs. The number of arguments of the entry function, or
  the total size in the metadata, decides how many of them are inputs (``Places._without_constants``).

For example, the metadata of version 7 has ``{"a": ..., "b": ...}``, and the header ``struct tvmgen_add_inputs { void*
b; void* a; }``. The inputs of the module are then ``b`` and ``a``, with the sizes of the metadata, and with the shapes
``int8[1, 8]`` of the Relay text if 8 bytes is the size of both.

Nothing here reads metadata (``library.metadata``), and nothing corrects it (``repair``). The key ``mlfbuild`` of
archives that mlfbuild wrote has all of this in call order, and takes precedence.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.archive.interface.combine import with_interface
    from mlfbuild.archive.interface.signature import Header, header_file, read_header
else:
    __getattr__ = lazy_attributes(__name__)
