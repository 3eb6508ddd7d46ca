"""Compile for ``executor: graph``: packed functions, a graph and parameters instead of one C function.

    lowered calls -> storage -> nodes -> source -> module

``storage`` decides which tensors share memory, ``nodes`` makes packed functions, parameters and graph nodes of the
lowered calls, and ``source`` prints C. The operator functions are the same as for the AOT executor. TVM's graph
executors, or the static one in an unpacked tree, place the tensors and call the functions.

Data:

- A packed function takes an array of pointers to tensors (``DLTensor``), whose data it passes to an operator function.
- A parameter is an array that a kernel reads, in the layout of the kernel; it is in ``.params`` and not in the C.
- A storage id is a number for each tensor. Tensors with the same id are in the same buffer.

Rules, most of which follow from TVM's C runtime, which supports no ``__nop``, ``__copy``, scalars or ``bool``:

1. A call has at most nine arguments. If there would be more, its arrays are joined in one parameter, each aligned to 16
   bytes, and the function adds the offsets.
2. A tensor has at most six dimensions, so leading ones are merged; a scalar has one element; ``bool`` is ``uint8``.
3. An executor allocates a buffer for each storage id, as large as its largest tensor, and knows no offsets. So a part
   of a tensor is copied instead of being a view, and the memory of a run is the sum of the buffers, not a packing.
4. Scratch memory is requested from TVM's workspace allocator during the call and freed in it, so that the calls share
   it.
5. A single struct stays a constant in C, because it is not an array. It is in the section of ``placement: params``.
6. Nodes with equal functions and arguments share a packed function; equal parameters are stored once.
7. A network with states is refused: TVM's executors have no place for them.

For example, LOGISTIC, FULLY_CONNECTED and LOGISTIC of 64 int8 elements become the graph inputs ``x``, ``p0`` (the table
of 256 bytes) and ``p1`` (1152 words of packed weights), and three calls, of which the first and the last one name the
same function, ``tvmgen_kws_logistic_64``, with the arguments (tensor, p0). The runtime passes outputs after the inputs.

The C here does not run by itself: it has no run function, and the header of the model only states shapes and scales.
``executor`` makes C with TVM's C interface of any such graph when an archive is unpacked.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.graph_executor.module import graph_module, storage_need
    from mlfbuild.native.graph_executor.nodes import GraphProgram, PackedFunction
else:
    __getattr__ = lazy_attributes(__name__)
