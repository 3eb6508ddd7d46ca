"""Lower each node to the call of a kernel: one file per family, at the place of its file in ``graph/ops``.

    Graph, CodegenSettings -> dispatch.lower_all -> KernelCall of each node -> memory, printing, graph_executor

``dispatch`` finds the family's function ``lower(graph, node, settings) -> KernelCall``. A ``KernelCall`` (``call``) is
the body of a C function with literal sizes, its parameters and its constants. This is the only room that knows kernels:
a call has all that later steps must know of its kernel.

Rules:

1. The file of a family has the folder and the stem of its file in ``graph/ops``. If there is none, those of the base
   classes are tried in turn, so that ``common/movement`` serves all operators that only move elements. Operators whose
   calls have nothing but sizes and tensors share ``common/plain``.
2. A file for one CPU extension appends its name to the stem, such as ``conv2d_dsp`` and ``conv2d_mve``. It returns
   the reason (a ``str``) if its kernel does not support the node or is not exact for its constants, and the next one is
   tried.
3. What can be known at compile time is computed here: multipliers, tables, the order of weights. A kernel finds its
   constants in the order in which it reads them.
4. A choice depends on the node, its constants, the graph around it and the settings, so that it is the same in every
   build. ``spare_memory`` is the only look at other nodes: scratch memory must not raise the peak of the network.
5. An integer kernel with a shorter arithmetic than the reference needs a proof. There are two kinds: an inequality over
   the weights (``common/dsp``, ``common/thumb``), or all inputs (``arithmetic/add_linear`` compares the 65,536 pairs of
   an int8 ADD).

For example, an int8 LOGISTIC computes nothing at run time. ``common/unary`` runs the numpy reference on the 256 values
of int8 and makes a table of 256 bytes; the call is ``mlf_lookup_int8(table, 64, input, output)`` on every core. A
float32 LOGISTIC of the same shape becomes ``mlf_logistic_float(64, input, output)``.

``chains`` and ``line_buffer`` lower operators that run together, row by row: they call ``lower`` again for each
operator on images of a few rows, and print a loop around the calls. ``passes/fusion`` decides which operators these
are.

This room does not assign addresses, prints no file, and does not change the graph. It refuses a node only if there is
no kernel for it, or if it is beyond a limit of the portable kernel, which the error names.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.lowering.accelerator.ethos_u import lower_npu_call
    from mlfbuild.native.lowering.call import (
        Candidate, Constant, KernelCall, Parameter, ParameterBlock, ScratchBuffer, check_constants,
    )
    from mlfbuild.native.lowering.chains import (
        Chain, ImageRows, Stage, follows, is_closed, plan_chain, rows_to_try, stages_of, whole_images,
    )
    from mlfbuild.native.lowering.dispatch import lower, lower_all
    from mlfbuild.native.lowering.line_buffer import Lower, LoweredChain, lower_chain, lower_stage
    from mlfbuild.native.lowering.numbers import Origin
    from mlfbuild.native.lowering.trained import settled
else:
    __getattr__ = lazy_attributes(__name__)
