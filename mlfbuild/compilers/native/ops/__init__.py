"""One file an operator: how a node becomes a call of a kernel."""

from __future__ import annotations

from types import MappingProxyType, ModuleType

from mlfbuild.compilers.native.ops import (
    arg_max,
    batch_matmul,
    binary,
    cast,
    conv2d,
    cumsum,
    depthwise_conv2d,
    erf,
    fully_connected,
    gather,
    l2_normalization,
    movement,
    pad,
    pool2d,
    quantize,
    reduction,
    reshape,
    resize,
    select,
    shift,
    softmax,
    svdf,
    transpose_conv,
    unary,
    unidirectional_sequence_lstm,
)
from mlfbuild.compilers.native.ops.call import Call, unsupported
from mlfbuild.compilers.native.settings import Settings
from mlfbuild.core import UnsupportedModelError, advised
from mlfbuild.frontends.advice import CHANGE
from mlfbuild.graph import Graph, Node, Operator, ops as graph_ops
from mlfbuild.graph.ops.shift import Shift

_LOWERING: MappingProxyType[type[Operator], ModuleType] = MappingProxyType(
    {
        graph_ops.Abs: unary,
        graph_ops.Add: binary,
        graph_ops.AddN: cumsum,
        graph_ops.ArgMax: arg_max,
        graph_ops.ArgMin: arg_max,
        graph_ops.AveragePool2D: pool2d,
        graph_ops.BatchMatmul: batch_matmul,
        graph_ops.BatchToSpaceNd: movement,
        graph_ops.BroadcastTo: movement,
        graph_ops.Cast: cast,
        graph_ops.Ceil: unary,
        graph_ops.Concatenation: movement,
        graph_ops.Conv2D: conv2d,
        graph_ops.Cos: unary,
        graph_ops.Cumsum: cumsum,
        graph_ops.DepthToSpace: movement,
        graph_ops.DepthwiseConv2D: depthwise_conv2d,
        graph_ops.Dequantize: quantize,
        graph_ops.Div: binary,
        graph_ops.Elu: unary,
        graph_ops.Equal: binary,
        graph_ops.Erf: erf,
        graph_ops.Exp: unary,
        graph_ops.ExpandDims: reshape,
        graph_ops.Fill: movement,
        graph_ops.Floor: unary,
        graph_ops.FloorDiv: binary,
        graph_ops.FloorMod: binary,
        graph_ops.FullyConnected: fully_connected,
        graph_ops.Gather: gather,
        graph_ops.GatherNd: gather,
        graph_ops.Gelu: unary,
        graph_ops.Greater: binary,
        graph_ops.GreaterEqual: binary,
        graph_ops.HardSwish: unary,
        graph_ops.L2Normalization: l2_normalization,
        graph_ops.LeakyRelu: unary,
        graph_ops.Less: binary,
        graph_ops.LessEqual: binary,
        graph_ops.Log: unary,
        graph_ops.LogSoftmax: softmax,
        graph_ops.LogicalAnd: binary,
        graph_ops.LogicalNot: cast,
        graph_ops.LogicalOr: binary,
        graph_ops.Logistic: unary,
        graph_ops.MaxPool2D: pool2d,
        graph_ops.Maximum: binary,
        graph_ops.Mean: reduction,
        graph_ops.Minimum: binary,
        graph_ops.MirrorPad: movement,
        graph_ops.Mul: binary,
        graph_ops.Neg: unary,
        graph_ops.NotEqual: binary,
        graph_ops.PRelu: binary,
        graph_ops.Pack: movement,
        graph_ops.Pad: pad,
        graph_ops.PadV2: pad,
        graph_ops.Quantize: quantize,
        graph_ops.ReduceAll: reduction,
        graph_ops.ReduceAny: reduction,
        graph_ops.ReduceMax: reduction,
        graph_ops.ReduceMin: reduction,
        graph_ops.ReduceProd: reduction,
        graph_ops.Relu0To1: unary,
        graph_ops.Relu6: unary,
        graph_ops.Relu: unary,
        graph_ops.ReluN1To1: unary,
        graph_ops.Reshape: reshape,
        graph_ops.ResizeBilinear: resize,
        graph_ops.ResizeNearestNeighbor: resize,
        graph_ops.ReverseV2: movement,
        graph_ops.Round: unary,
        graph_ops.Rsqrt: unary,
        graph_ops.Select: select,
        graph_ops.SelectV2: select,
        graph_ops.Sign: unary,
        graph_ops.Sin: unary,
        graph_ops.Slice: movement,
        graph_ops.Softmax: softmax,
        graph_ops.SpaceToBatchNd: movement,
        graph_ops.SpaceToDepth: movement,
        graph_ops.Split: movement,
        graph_ops.SplitV: movement,
        graph_ops.Sqrt: unary,
        graph_ops.Square: unary,
        graph_ops.SquaredDifference: binary,
        graph_ops.Squeeze: reshape,
        graph_ops.StridedSlice: movement,
        graph_ops.Sub: binary,
        graph_ops.Sum: reduction,
        graph_ops.Svdf: svdf,
        graph_ops.Tanh: unary,
        graph_ops.Tile: movement,
        graph_ops.Transpose: movement,
        graph_ops.TransposeConv: transpose_conv,
        graph_ops.UnidirectionalSequenceLstm: unidirectional_sequence_lstm,
        graph_ops.Unpack: movement,
        Shift: shift,
    }
)
"""The module of each operator, with a function ``lower(graph, node, settings) -> Call``."""


def _module(node: Node) -> ModuleType:
    module = _LOWERING.get(type(node.operator))
    if module is None:
        known = ", ".join(sorted(operator.name for operator in _LOWERING))
        raise unsupported(node, f"the native compiler does not have this operator; it has {known}")
    return module


def lower(graph: Graph, node: Node, settings: Settings) -> Call:
    """Return the call that computes ``node``; raises ``UnsupportedModelError`` where no kernel can."""
    try:
        call = _module(node).lower(graph, node, settings)
    except UnsupportedModelError as error:
        raise UnsupportedModelError(advised(f"{graph.name}: {error}", CHANGE)) from None
    assert isinstance(call, Call)
    return call
