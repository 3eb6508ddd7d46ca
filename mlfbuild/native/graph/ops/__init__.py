"""The operators, one file per family: attributes, rules of shape and type, and a numpy reference.

Families of a kind share a folder, such as ``convolution``. A file is imported when one of its names is
first used. ``make generate`` writes this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    # fmt: off
    from mlfbuild.native.graph.ops.accelerator.ethos_u import EthosU
    from mlfbuild.native.graph.ops.activation.elu import Elu
    from mlfbuild.native.graph.ops.activation.gelu import Gelu
    from mlfbuild.native.graph.ops.activation.hard_swish import HardSwish
    from mlfbuild.native.graph.ops.activation.l2_normalization import L2Normalization
    from mlfbuild.native.graph.ops.activation.logistic import Logistic, Sigmoid, Tanh, between
    from mlfbuild.native.graph.ops.activation.relu import LeakyRelu, PRelu, Relu, Relu0To1, Relu6, ReluN1To1
    from mlfbuild.native.graph.ops.activation.softmax import EXPONENTIALS, RECIPROCALS, LogSoftmax, Softmax
    from mlfbuild.native.graph.ops.arithmetic.abs import Abs, Neg, Sign
    from mlfbuild.native.graph.ops.arithmetic.add import Add, Addition, SquaredDifference, Sub
    from mlfbuild.native.graph.ops.arithmetic.add_n import AddN
    from mlfbuild.native.graph.ops.arithmetic.atan import Acos, Acosh, Asin, Asinh, Atan, Atanh, Cosh, Sinh
    from mlfbuild.native.graph.ops.arithmetic.atan2 import Atan2
    from mlfbuild.native.graph.ops.arithmetic.bitwise import (
        BitwiseAnd, BitwiseOr, BitwiseXor, LeftShift, OnBits, RightShift,
    )
    from mlfbuild.native.graph.ops.arithmetic.div import Div
    from mlfbuild.native.graph.ops.arithmetic.erf import Erf
    from mlfbuild.native.graph.ops.arithmetic.exp import Exp, Log
    from mlfbuild.native.graph.ops.arithmetic.floor import Ceil, Floor, Round
    from mlfbuild.native.graph.ops.arithmetic.floor_div import FloorDiv, FloorMod
    from mlfbuild.native.graph.ops.arithmetic.maximum import Extreme, Maximum, Minimum
    from mlfbuild.native.graph.ops.arithmetic.mul import Mul
    from mlfbuild.native.graph.ops.arithmetic.pow import Pow
    from mlfbuild.native.graph.ops.arithmetic.sin import Cos, Sin
    from mlfbuild.native.graph.ops.arithmetic.sqrt import Rsqrt, Sqrt, Square
    from mlfbuild.native.graph.ops.classifiers.pairwise_coupling import PairwiseCoupling
    from mlfbuild.native.graph.ops.classifiers.squared_distances import SquaredDistances
    from mlfbuild.native.graph.ops.classifiers.tree_ensemble import TreeEnsemble
    from mlfbuild.native.graph.ops.comparison.comparisons import (
        ComparisonOperator, Equal, Greater, GreaterEqual, Less, LessEqual, NotEqual, Ordering,
    )
    from mlfbuild.native.graph.ops.comparison.logical import LogicalAnd, LogicalNot, LogicalOr
    from mlfbuild.native.graph.ops.comparison.select import Select, SelectV2
    from mlfbuild.native.graph.ops.convolution.conv2d import Conv2D
    from mlfbuild.native.graph.ops.convolution.depthwise_conv2d import DepthwiseConv2D
    from mlfbuild.native.graph.ops.convolution.transpose_conv import TransposeConv
    from mlfbuild.native.graph.ops.fused import Fused, Lookup
    from mlfbuild.native.graph.ops.image.non_max_suppression import (
        CORNERS, DetectionPostProcess, NonMaxSuppression, NonMaxSuppressionV4, NonMaxSuppressionV5, overlaps,
        suppressed,
    )
    from mlfbuild.native.graph.ops.image.resize import (
        FRACTION_BITS, ResampledLine, Resize, ResizeBilinear, ResizeNearestNeighbor,
    )
    from mlfbuild.native.graph.ops.image.sampling import (
        FARTHEST, DeformConv, GridSample, Interpolation, Outside, RoiAlign,
    )
    from mlfbuild.native.graph.ops.matrix.batch_matmul import BatchMatmul, MatmulInteger
    from mlfbuild.native.graph.ops.matrix.determinant import Determinant
    from mlfbuild.native.graph.ops.matrix.fully_connected import FullyConnected
    from mlfbuild.native.graph.ops.matrix.hybrid import (
        BlockwiseFullyConnected, ConvInteger, Hybrid, HybridConv2D, HybridDepthwiseConv2D, HybridFullyConnected,
        HybridTensors, QuantizeRows, block_sums, hybrid_tensors,
    )
    from mlfbuild.native.graph.ops.movement.blocks import (
        BatchToSpaceNd, Blocks, DepthToSpace, Phases, SpaceToBatchNd, SpaceToDepth,
    )
    from mlfbuild.native.graph.ops.movement.gather import Gather, GatherNd, Picking
    from mlfbuild.native.graph.ops.movement.pad import MirrorPad, Pad, Paddings, PadV2, padded_shape
    from mlfbuild.native.graph.ops.movement.parts import (
        Concatenation, Joining, Pack, Parting, Split, SplitV, Unpack, check_parts, pieces_along,
    )
    from mlfbuild.native.graph.ops.movement.reshape import ExpandDims, Reshape, Squeeze
    from mlfbuild.native.graph.ops.movement.reverse_sequence import ReverseSequence
    from mlfbuild.native.graph.ops.movement.scatter import ScatterNd
    from mlfbuild.native.graph.ops.movement.scatter_elements import ScatterElements, ScatterUpdate
    from mlfbuild.native.graph.ops.movement.shift import Shift
    from mlfbuild.native.graph.ops.movement.views import (
        BroadcastTo, Fill, ReverseV2, Slice, Steps, StridedSlice, Tile, Transpose,
    )
    from mlfbuild.native.graph.ops.quantization.cast import BitCast, Cast
    from mlfbuild.native.graph.ops.quantization.quantize import STORED, Dequantize, DynamicQuantize, Quantize
    from mlfbuild.native.graph.ops.recurrent.gru import Gru, Rnn
    from mlfbuild.native.graph.ops.recurrent.lstm import UnidirectionalSequenceLstm
    from mlfbuild.native.graph.ops.recurrent.svdf import Svdf, SvdfTensors, svdf_tensors
    from mlfbuild.native.graph.ops.reduction.arg_max import Arg, ArgMax, ArgMin
    from mlfbuild.native.graph.ops.reduction.cumsum import HALF_BITS, Cumsum, check_sum_scales, stored_sums
    from mlfbuild.native.graph.ops.reduction.pool2d import AveragePool2D, MaxPool2D, Pool2D
    from mlfbuild.native.graph.ops.reduction.reduce import (
        Logical, Mean, ReduceAll, ReduceAny, ReduceExtreme, ReduceMax, ReduceMin, ReduceProd, Reduction, Sum, Summing,
    )
    from mlfbuild.native.graph.ops.reduction.topk import TopkV2
    from mlfbuild.native.graph.ops.signal.dft import ComplexAbs, ComplexPart, Dft, Imag, Real, Rfft2d
    from mlfbuild.native.graph.ops.signal.filter_bank import (
        GAINS, SignalFilterBank, SignalFilterBankLog, SignalFilterBankSpectralSubtraction, SignalFilterBankSquareRoot,
        SignalPcan, logarithms,
    )
    from mlfbuild.native.graph.ops.signal.fourier import LONGEST, SignalFourier, SignalIrfft, SignalRfft
    from mlfbuild.native.graph.ops.signal.framing import (
        Col2Im, Collecting, SignalFramer, SignalOverlapAdd, SignalStacker,
    )
    from mlfbuild.native.graph.ops.signal.spectrum import SignalDelay, SignalEnergy, SignalFftAutoScale, SignalWindow
    from mlfbuild.native.graph.ops.table import OPERATORS, operator_class
else:
    __getattr__ = lazy_attributes(__name__)
