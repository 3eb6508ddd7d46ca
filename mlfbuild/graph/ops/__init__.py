"""The operators, one file a family: attributes, rules of shape and type, and a numpy reference.

A file is imported when one of its operators is first asked for. ``make generate`` writes this file.
"""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from mlfbuild.graph.operator import Operator
    from mlfbuild.graph.ops.abs import Abs, Neg, Sign
    from mlfbuild.graph.ops.add import Add, SquaredDifference, Sub
    from mlfbuild.graph.ops.add_n import AddN
    from mlfbuild.graph.ops.arg_max import ArgMax, ArgMin
    from mlfbuild.graph.ops.batch_matmul import BatchMatmul
    from mlfbuild.graph.ops.bitwise_xor import BitwiseXor
    from mlfbuild.graph.ops.broadcast_to import BroadcastTo
    from mlfbuild.graph.ops.cast import Cast
    from mlfbuild.graph.ops.comparisons import Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual
    from mlfbuild.graph.ops.concatenation import Concatenation
    from mlfbuild.graph.ops.conv2d import Conv2D
    from mlfbuild.graph.ops.cumsum import Cumsum
    from mlfbuild.graph.ops.depthwise_conv2d import DepthwiseConv2D
    from mlfbuild.graph.ops.div import Div
    from mlfbuild.graph.ops.elu import Elu
    from mlfbuild.graph.ops.erf import Erf
    from mlfbuild.graph.ops.exp import Exp, Log
    from mlfbuild.graph.ops.fill import Fill
    from mlfbuild.graph.ops.floor import Ceil, Floor, Round
    from mlfbuild.graph.ops.floor_div import FloorDiv, FloorMod
    from mlfbuild.graph.ops.fully_connected import FullyConnected
    from mlfbuild.graph.ops.gather import Gather, GatherNd
    from mlfbuild.graph.ops.gelu import Gelu
    from mlfbuild.graph.ops.hard_swish import HardSwish
    from mlfbuild.graph.ops.l2_normalization import L2Normalization
    from mlfbuild.graph.ops.logical import LogicalAnd, LogicalNot, LogicalOr
    from mlfbuild.graph.ops.logistic import Logistic, Tanh
    from mlfbuild.graph.ops.lstm import UnidirectionalSequenceLstm
    from mlfbuild.graph.ops.maximum import Maximum, Minimum
    from mlfbuild.graph.ops.mul import Mul
    from mlfbuild.graph.ops.pack import Pack, Unpack
    from mlfbuild.graph.ops.pad import MirrorPad, Pad, PadV2
    from mlfbuild.graph.ops.pool2d import AveragePool2D, MaxPool2D
    from mlfbuild.graph.ops.quantize import Dequantize, Quantize
    from mlfbuild.graph.ops.reduce import Mean, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, Sum
    from mlfbuild.graph.ops.relu import LeakyRelu, PRelu, Relu, Relu0To1, Relu6, ReluN1To1
    from mlfbuild.graph.ops.reshape import ExpandDims, Reshape, Squeeze
    from mlfbuild.graph.ops.resize import ResizeBilinear, ResizeNearestNeighbor
    from mlfbuild.graph.ops.reverse import ReverseV2
    from mlfbuild.graph.ops.select import Select, SelectV2
    from mlfbuild.graph.ops.sin import Cos, Sin
    from mlfbuild.graph.ops.slice import Slice, StridedSlice
    from mlfbuild.graph.ops.softmax import LogSoftmax, Softmax
    from mlfbuild.graph.ops.space_to_batch import BatchToSpaceNd, SpaceToBatchNd
    from mlfbuild.graph.ops.space_to_depth import DepthToSpace, SpaceToDepth
    from mlfbuild.graph.ops.split import Split, SplitV
    from mlfbuild.graph.ops.sqrt import Rsqrt, Sqrt, Square
    from mlfbuild.graph.ops.svdf import Svdf
    from mlfbuild.graph.ops.tile import Tile
    from mlfbuild.graph.ops.transpose import Transpose
    from mlfbuild.graph.ops.transpose_conv import TransposeConv

__all__ = [
    "OPERATORS",
    "Abs",
    "Add",
    "AddN",
    "ArgMax",
    "ArgMin",
    "AveragePool2D",
    "BatchMatmul",
    "BatchToSpaceNd",
    "BitwiseXor",
    "BroadcastTo",
    "Cast",
    "Ceil",
    "Concatenation",
    "Conv2D",
    "Cos",
    "Cumsum",
    "DepthToSpace",
    "DepthwiseConv2D",
    "Dequantize",
    "Div",
    "Elu",
    "Equal",
    "Erf",
    "Exp",
    "ExpandDims",
    "Fill",
    "Floor",
    "FloorDiv",
    "FloorMod",
    "FullyConnected",
    "Gather",
    "GatherNd",
    "Gelu",
    "Greater",
    "GreaterEqual",
    "HardSwish",
    "L2Normalization",
    "LeakyRelu",
    "Less",
    "LessEqual",
    "Log",
    "LogSoftmax",
    "LogicalAnd",
    "LogicalNot",
    "LogicalOr",
    "Logistic",
    "MaxPool2D",
    "Maximum",
    "Mean",
    "Minimum",
    "MirrorPad",
    "Mul",
    "Neg",
    "NotEqual",
    "PRelu",
    "Pack",
    "Pad",
    "PadV2",
    "Quantize",
    "ReduceAll",
    "ReduceAny",
    "ReduceMax",
    "ReduceMin",
    "ReduceProd",
    "Relu",
    "Relu0To1",
    "Relu6",
    "ReluN1To1",
    "Reshape",
    "ResizeBilinear",
    "ResizeNearestNeighbor",
    "ReverseV2",
    "Round",
    "Rsqrt",
    "Select",
    "SelectV2",
    "Sign",
    "Sin",
    "Slice",
    "Softmax",
    "SpaceToBatchNd",
    "SpaceToDepth",
    "Split",
    "SplitV",
    "Sqrt",
    "Square",
    "SquaredDifference",
    "Squeeze",
    "StridedSlice",
    "Sub",
    "Sum",
    "Svdf",
    "Tanh",
    "Tile",
    "Transpose",
    "TransposeConv",
    "UnidirectionalSequenceLstm",
    "Unpack",
    "operator_class",
]

OPERATORS: Mapping[str, tuple[str, str]] = {
    "ABS": ("abs", "Abs"),
    "ADD": ("add", "Add"),
    "ADD_N": ("add_n", "AddN"),
    "ARG_MAX": ("arg_max", "ArgMax"),
    "ARG_MIN": ("arg_max", "ArgMin"),
    "AVERAGE_POOL_2D": ("pool2d", "AveragePool2D"),
    "BATCH_MATMUL": ("batch_matmul", "BatchMatmul"),
    "BATCH_TO_SPACE_ND": ("space_to_batch", "BatchToSpaceNd"),
    "BITWISE_XOR": ("bitwise_xor", "BitwiseXor"),
    "BROADCAST_TO": ("broadcast_to", "BroadcastTo"),
    "CAST": ("cast", "Cast"),
    "CEIL": ("floor", "Ceil"),
    "CONCATENATION": ("concatenation", "Concatenation"),
    "CONV_2D": ("conv2d", "Conv2D"),
    "COS": ("sin", "Cos"),
    "CUMSUM": ("cumsum", "Cumsum"),
    "DEPTHWISE_CONV_2D": ("depthwise_conv2d", "DepthwiseConv2D"),
    "DEPTH_TO_SPACE": ("space_to_depth", "DepthToSpace"),
    "DEQUANTIZE": ("quantize", "Dequantize"),
    "DIV": ("div", "Div"),
    "ELU": ("elu", "Elu"),
    "EQUAL": ("comparisons", "Equal"),
    "ERF": ("erf", "Erf"),
    "EXP": ("exp", "Exp"),
    "EXPAND_DIMS": ("reshape", "ExpandDims"),
    "FILL": ("fill", "Fill"),
    "FLOOR": ("floor", "Floor"),
    "FLOOR_DIV": ("floor_div", "FloorDiv"),
    "FLOOR_MOD": ("floor_div", "FloorMod"),
    "FULLY_CONNECTED": ("fully_connected", "FullyConnected"),
    "GATHER": ("gather", "Gather"),
    "GATHER_ND": ("gather", "GatherNd"),
    "GELU": ("gelu", "Gelu"),
    "GREATER": ("comparisons", "Greater"),
    "GREATER_EQUAL": ("comparisons", "GreaterEqual"),
    "HARD_SWISH": ("hard_swish", "HardSwish"),
    "L2_NORMALIZATION": ("l2_normalization", "L2Normalization"),
    "LEAKY_RELU": ("relu", "LeakyRelu"),
    "LESS": ("comparisons", "Less"),
    "LESS_EQUAL": ("comparisons", "LessEqual"),
    "LOG": ("exp", "Log"),
    "LOGICAL_AND": ("logical", "LogicalAnd"),
    "LOGICAL_NOT": ("logical", "LogicalNot"),
    "LOGICAL_OR": ("logical", "LogicalOr"),
    "LOGISTIC": ("logistic", "Logistic"),
    "LOG_SOFTMAX": ("softmax", "LogSoftmax"),
    "MAXIMUM": ("maximum", "Maximum"),
    "MAX_POOL_2D": ("pool2d", "MaxPool2D"),
    "MEAN": ("reduce", "Mean"),
    "MINIMUM": ("maximum", "Minimum"),
    "MIRROR_PAD": ("pad", "MirrorPad"),
    "MUL": ("mul", "Mul"),
    "NEG": ("abs", "Neg"),
    "NOT_EQUAL": ("comparisons", "NotEqual"),
    "PACK": ("pack", "Pack"),
    "PAD": ("pad", "Pad"),
    "PADV2": ("pad", "PadV2"),
    "PRELU": ("relu", "PRelu"),
    "QUANTIZE": ("quantize", "Quantize"),
    "REDUCE_ALL": ("reduce", "ReduceAll"),
    "REDUCE_ANY": ("reduce", "ReduceAny"),
    "REDUCE_MAX": ("reduce", "ReduceMax"),
    "REDUCE_MIN": ("reduce", "ReduceMin"),
    "REDUCE_PROD": ("reduce", "ReduceProd"),
    "RELU": ("relu", "Relu"),
    "RELU6": ("relu", "Relu6"),
    "RELU_0_TO_1": ("relu", "Relu0To1"),
    "RELU_N1_TO_1": ("relu", "ReluN1To1"),
    "RESHAPE": ("reshape", "Reshape"),
    "RESIZE_BILINEAR": ("resize", "ResizeBilinear"),
    "RESIZE_NEAREST_NEIGHBOR": ("resize", "ResizeNearestNeighbor"),
    "REVERSE_V2": ("reverse", "ReverseV2"),
    "ROUND": ("floor", "Round"),
    "RSQRT": ("sqrt", "Rsqrt"),
    "SELECT": ("select", "Select"),
    "SELECT_V2": ("select", "SelectV2"),
    "SIGN": ("abs", "Sign"),
    "SIN": ("sin", "Sin"),
    "SLICE": ("slice", "Slice"),
    "SOFTMAX": ("softmax", "Softmax"),
    "SPACE_TO_BATCH_ND": ("space_to_batch", "SpaceToBatchNd"),
    "SPACE_TO_DEPTH": ("space_to_depth", "SpaceToDepth"),
    "SPLIT": ("split", "Split"),
    "SPLIT_V": ("split", "SplitV"),
    "SQRT": ("sqrt", "Sqrt"),
    "SQUARE": ("sqrt", "Square"),
    "SQUARED_DIFFERENCE": ("add", "SquaredDifference"),
    "SQUEEZE": ("reshape", "Squeeze"),
    "STRIDED_SLICE": ("slice", "StridedSlice"),
    "SUB": ("add", "Sub"),
    "SUM": ("reduce", "Sum"),
    "SVDF": ("svdf", "Svdf"),
    "TANH": ("logistic", "Tanh"),
    "TILE": ("tile", "Tile"),
    "TRANSPOSE": ("transpose", "Transpose"),
    "TRANSPOSE_CONV": ("transpose_conv", "TransposeConv"),
    "UNIDIRECTIONAL_SEQUENCE_LSTM": ("lstm", "UnidirectionalSequenceLstm"),
    "UNPACK": ("pack", "Unpack"),
}
"""The operators that model files have: name -> (family, which is the stem of the file, and class)."""

_FAMILIES = {kind: family for family, kind in OPERATORS.values()}


def operator_class(name: str) -> type[Operator] | None:
    """Return the operator that TFLite calls ``name``, as ``CONV_2D``; ``None`` if there is none."""
    if name not in OPERATORS:
        return None
    family, kind = OPERATORS[name]
    found: type[Operator] = getattr(importlib.import_module(f"{__name__}.{family}"), kind)
    return found


if not TYPE_CHECKING:  # or every name would be known to type checkers

    def __getattr__(name: str) -> object:
        """Import the family of the operator ``name`` when it is first asked for."""
        if name not in _FAMILIES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(importlib.import_module(f"{__name__}.{_FAMILIES[name]}"), name)
