"""From a node to the call of a kernel: one file an operator family, with the stem of its file in ``graph/ops``.

``dispatch`` finds the family's function ``lower(graph, node, settings) -> KernelCall``. A ``KernelCall`` is the body of
a function in C with literal sizes, its parameters and its constants. Forms for one extension of the processor have its
name behind the stem: ``conv2d_dsp``, ``conv2d_mve``. ``chains`` and ``line_buffer`` are about operators that run
together, row by row.
"""

from __future__ import annotations

import importlib
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.compilers.native.lowering.call import Constant, KernelCall, Parameter, ScratchBuffer
    from mlfbuild.compilers.native.lowering.chains import (
        Chain,
        ImageRows,
        Stage,
        follows,
        plan_chain,
        rows_to_try,
        stages_of,
        whole_images,
    )
    from mlfbuild.compilers.native.lowering.dispatch import lower
    from mlfbuild.compilers.native.lowering.line_buffer import Lower, LoweredChain, lower_chain, lower_stage

__all__ = [
    "Chain",
    "Constant",
    "ImageRows",
    "KernelCall",
    "Lower",
    "LoweredChain",
    "Parameter",
    "ScratchBuffer",
    "Stage",
    "follows",
    "lower",
    "lower_chain",
    "lower_stage",
    "plan_chain",
    "rows_to_try",
    "stages_of",
    "whole_images",
]

_HOMES = {
    "call": (
        "KernelCall",
        "Constant",
        "Parameter",
        "ScratchBuffer",
    ),
    "chains": (
        "Chain",
        "ImageRows",
        "Stage",
        "follows",
        "plan_chain",
        "rows_to_try",
        "stages_of",
        "whole_images",
    ),
    "dispatch": ("lower",),
    "line_buffer": (
        "Lower",
        "LoweredChain",
        "lower_chain",
        "lower_stage",
    ),
}

if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Import the module that has ``name`` when it is first asked for."""
        for home, names in _HOMES.items():
            if name in names:
                return getattr(importlib.import_module(f"{__name__}.{home}"), name)
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
