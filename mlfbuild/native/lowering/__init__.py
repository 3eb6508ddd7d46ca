"""Lower each node to the call of a kernel: one file per family, at the place of its file in ``graph/ops``.

``dispatch`` finds the family's function ``lower(graph, node, settings) -> KernelCall``. A ``KernelCall`` is the body of
a C function with literal sizes, its parameters and its constants. A file for one CPU extension appends the name of the
extension to the stem, such as ``conv2d_dsp`` and ``conv2d_mve``. ``chains`` and ``line_buffer`` lower operators that
run together, row by row.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.lowering.call import (
        Candidate, Constant, KernelCall, Origin, Parameter, ScratchBuffer, check_constants,
    )
    from mlfbuild.native.lowering.chains import (
        Chain, ImageRows, Stage, follows, plan_chain, rows_to_try, stages_of, whole_images,
    )
    from mlfbuild.native.lowering.dispatch import lower, lower_all
    from mlfbuild.native.lowering.line_buffer import Lower, LoweredChain, lower_chain, lower_stage
else:
    __getattr__ = lazy_attributes(__name__)
