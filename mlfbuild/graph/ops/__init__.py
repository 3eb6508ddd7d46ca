"""The operators, one file each: attributes, rules of shape and type, and a numpy reference."""

from mlfbuild.graph.ops.add import Add, Sub
from mlfbuild.graph.ops.arg_max import ArgMax, ArgMin
from mlfbuild.graph.ops.batch_matmul import BatchMatmul
from mlfbuild.graph.ops.cast import Cast
from mlfbuild.graph.ops.comparisons import Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual
from mlfbuild.graph.ops.concatenation import Concatenation, Pack, Split, SplitV, Unpack
from mlfbuild.graph.ops.conv2d import Conv2D
from mlfbuild.graph.ops.cumsum import AddN, Cumsum
from mlfbuild.graph.ops.depthwise_conv2d import DepthwiseConv2D
from mlfbuild.graph.ops.erf import Erf
from mlfbuild.graph.ops.floor_div import FloorDiv, FloorMod
from mlfbuild.graph.ops.fully_connected import FullyConnected
from mlfbuild.graph.ops.gather import Gather, GatherNd
from mlfbuild.graph.ops.gelu import Gelu
from mlfbuild.graph.ops.hard_swish import Elu, HardSwish
from mlfbuild.graph.ops.l2_normalization import L2Normalization
from mlfbuild.graph.ops.logical import LogicalAnd, LogicalNot, LogicalOr, Select, SelectV2
from mlfbuild.graph.ops.logistic import Logistic, Tanh
from mlfbuild.graph.ops.math import Abs, Neg, Rsqrt, Sign, Square
from mlfbuild.graph.ops.maximum import Maximum, Minimum
from mlfbuild.graph.ops.mul import Div, Mul
from mlfbuild.graph.ops.pad import MirrorPad, Pad, PadV2
from mlfbuild.graph.ops.pool2d import AveragePool2D, MaxPool2D
from mlfbuild.graph.ops.quantize import Dequantize, Quantize
from mlfbuild.graph.ops.reduction import Mean, ReduceAll, ReduceAny, ReduceMax, ReduceMin, ReduceProd, Sum
from mlfbuild.graph.ops.relu import LeakyRelu, PRelu, Relu, Relu0To1, Relu6, ReluN1To1
from mlfbuild.graph.ops.reshape import ExpandDims, Reshape, Squeeze
from mlfbuild.graph.ops.resize import ResizeBilinear, ResizeNearestNeighbor
from mlfbuild.graph.ops.rounding import Ceil, Floor, Round
from mlfbuild.graph.ops.slice import Slice, StridedSlice
from mlfbuild.graph.ops.softmax import LogSoftmax, Softmax
from mlfbuild.graph.ops.space_to_batch import BatchToSpaceNd, SpaceToBatchNd
from mlfbuild.graph.ops.squared_difference import SquaredDifference
from mlfbuild.graph.ops.svdf import Svdf
from mlfbuild.graph.ops.tabulated import Cos, Exp, Log, Sin, Sqrt
from mlfbuild.graph.ops.transpose import BroadcastTo, DepthToSpace, Fill, ReverseV2, SpaceToDepth, Tile, Transpose
from mlfbuild.graph.ops.transpose_conv import TransposeConv
from mlfbuild.graph.ops.unidirectional_sequence_lstm import UnidirectionalSequenceLstm

__all__ = [
    "Abs",
    "Add",
    "AddN",
    "ArgMax",
    "ArgMin",
    "AveragePool2D",
    "BatchMatmul",
    "BatchToSpaceNd",
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
]
