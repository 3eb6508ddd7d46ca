"""``executor: graph``: packed functions, an executor graph and parameters instead of one C function for a network.

    lowered calls -> storage -> nodes -> source -> module

``storage`` says which tensors share memory, ``nodes`` makes packed functions, parameters and the nodes of the graph out
of calls, ``source`` prints C. What is computed is the very code of the AOT executor; TVM's graph executors, or the
static one that an unpacked tree has, only decide where tensors lie and make the calls.

TVM's C runtime has gaps: no ``__nop`` and no ``__copy``, no scalars, no ``bool``, at most nine arguments a call and six
dimensions a tensor, and it wants an input before the first parameter. Graphs are written so that it runs them all the
same, wherever a network leaves a choice.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.compilers.native.graph_executor.module import graph_module as graph_module
    from mlfbuild.compilers.native.graph_executor.nodes import (
        GraphProgram as GraphProgram,
        PackedFunction as PackedFunction,
    )
else:
    __getattr__ = lazy_attributes(__name__)
