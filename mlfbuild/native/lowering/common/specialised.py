"""Select the kernel of an operator with weights: the first whose CPU features exist and that supports the node."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Generic, TypeVar

from mlfbuild.native.graph import DType, Graph, Node, Operator
from mlfbuild.native.lowering.call import KernelCall
from mlfbuild.native.settings import CodegenSettings

_Kind = TypeVar("_Kind", bound=Operator)
_Lowering = Callable[[Graph, Node, _Kind], KernelCall | None]


@dataclass(frozen=True)
class Specialised(Generic[_Kind]):
    """The lowerings of one operator that need a CPU feature; each returns ``None`` if it does not support the node."""

    float_mve: _Lowering[_Kind]
    int8_mve: _Lowering[_Kind]
    int8_dsp: _Lowering[_Kind]
    int16_mve: _Lowering[_Kind]
    int16_dsp: _Lowering[_Kind]
    int8_thumb: _Lowering[_Kind]
    float_vfp: _Lowering[_Kind] | None = None

    def lower(self, graph: Graph, node: Node, operator: _Kind, settings: CodegenSettings) -> KernelCall | None:
        """Return the call for ``node``, whose operator is ``operator``; ``None`` if only portable C supports it."""
        dtype = graph.outputs_of(node)[0].dtype
        call = None
        if dtype is DType.FLOAT32 and settings.has("mve") and settings.has("fpu"):
            call = self.float_mve(graph, node, operator)
        elif dtype is DType.FLOAT32 and settings.has("fpu") and self.float_vfp is not None:
            call = self.float_vfp(graph, node, operator)
        if dtype is DType.INT8 and settings.has("mve"):
            call = self.int8_mve(graph, node, operator)
        # Cores with MVE have DSP instructions as well, and their kernels are the next best.
        if call is None and dtype is DType.INT8 and settings.has("dsp"):
            call = self.int8_dsp(graph, node, operator)
        # Not for RISC-V and others: the kernels are assembly for Thumb.
        if dtype is DType.INT8 and settings.is_plain_thumb:
            call = self.int8_thumb(graph, node, operator)
        if dtype is DType.INT16 and settings.has("mve"):
            call = self.int16_mve(graph, node, operator)
        if call is None and dtype is DType.INT16 and settings.has("dsp"):
            call = self.int16_dsp(graph, node, operator)
        return call
