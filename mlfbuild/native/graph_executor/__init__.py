"""Compile for ``executor: graph``: packed functions, a graph and parameters instead of one C function.

    lowered calls -> storage -> nodes -> source -> module

``storage`` decides which tensors share memory, ``nodes`` makes packed functions, parameters and graph nodes of the
lowered calls, and ``source`` prints C. The operator functions are the same as for the AOT executor. TVM's graph
executors, or the static one in an unpacked tree, place the tensors and call the functions.

TVM's C runtime supports no ``__nop``, ``__copy``, scalars or ``bool``, at most nine arguments per call and six
dimensions per tensor, and it requires an input before the first parameter. Graphs avoid what it does not support
whenever the network permits this.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.graph_executor.module import graph_module
    from mlfbuild.native.graph_executor.nodes import GraphProgram, PackedFunction
else:
    __getattr__ = lazy_attributes(__name__)
