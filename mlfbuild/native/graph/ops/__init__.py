"""The operators, one file per family: attributes, rules of shape and type, and a numpy reference.

Families of a kind share a folder, such as ``convolution``. A file is imported when one of its names is
first used. ``make generate`` writes this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.native.graph.ops.activation.elu import (
        Elu as Elu,
    )
    from mlfbuild.native.graph.ops.activation.gelu import (
        Gelu as Gelu,
    )
    from mlfbuild.native.graph.ops.activation.hard_swish import (
        HardSwish as HardSwish,
    )
    from mlfbuild.native.graph.ops.activation.l2_normalization import (
        L2Normalization as L2Normalization,
    )
    from mlfbuild.native.graph.ops.activation.logistic import (
        Logistic as Logistic,
        Sigmoid as Sigmoid,
        Tanh as Tanh,
        between as between,
    )
    from mlfbuild.native.graph.ops.activation.relu import (
        LeakyRelu as LeakyRelu,
        PRelu as PRelu,
        Relu as Relu,
        Relu0To1 as Relu0To1,
        Relu6 as Relu6,
        ReluN1To1 as ReluN1To1,
        rescaled as rescaled,
    )
    from mlfbuild.native.graph.ops.activation.softmax import (
        EXPONENTIALS as EXPONENTIALS,
        RECIPROCALS as RECIPROCALS,
        LogSoftmax as LogSoftmax,
        Softmax as Softmax,
    )
    from mlfbuild.native.graph.ops.arithmetic.abs import (
        Abs as Abs,
        Neg as Neg,
        Sign as Sign,
    )
    from mlfbuild.native.graph.ops.arithmetic.add import (
        Add as Add,
        Addition as Addition,
        SquaredDifference as SquaredDifference,
        Sub as Sub,
    )
    from mlfbuild.native.graph.ops.arithmetic.add_n import (
        AddN as AddN,
    )
    from mlfbuild.native.graph.ops.arithmetic.atan import (
        Acos as Acos,
        Acosh as Acosh,
        Asin as Asin,
        Asinh as Asinh,
        Atan as Atan,
        Atanh as Atanh,
        Cosh as Cosh,
        Sinh as Sinh,
    )
    from mlfbuild.native.graph.ops.arithmetic.atan2 import (
        Atan2 as Atan2,
    )
    from mlfbuild.native.graph.ops.arithmetic.bitwise import (
        BitwiseAnd as BitwiseAnd,
        BitwiseOr as BitwiseOr,
        BitwiseXor as BitwiseXor,
        LeftShift as LeftShift,
        RightShift as RightShift,
    )
    from mlfbuild.native.graph.ops.arithmetic.div import (
        Div as Div,
    )
    from mlfbuild.native.graph.ops.arithmetic.erf import (
        Erf as Erf,
    )
    from mlfbuild.native.graph.ops.arithmetic.exp import (
        Exp as Exp,
        Log as Log,
    )
    from mlfbuild.native.graph.ops.arithmetic.floor import (
        Ceil as Ceil,
        Floor as Floor,
        Round as Round,
    )
    from mlfbuild.native.graph.ops.arithmetic.floor_div import (
        FloorDiv as FloorDiv,
        FloorMod as FloorMod,
    )
    from mlfbuild.native.graph.ops.arithmetic.maximum import (
        Extreme as Extreme,
        Maximum as Maximum,
        Minimum as Minimum,
    )
    from mlfbuild.native.graph.ops.arithmetic.mul import (
        Mul as Mul,
    )
    from mlfbuild.native.graph.ops.arithmetic.pow import (
        Pow as Pow,
    )
    from mlfbuild.native.graph.ops.arithmetic.sin import (
        Cos as Cos,
        Sin as Sin,
    )
    from mlfbuild.native.graph.ops.arithmetic.sqrt import (
        Rsqrt as Rsqrt,
        Sqrt as Sqrt,
        Square as Square,
    )
    from mlfbuild.native.graph.ops.classifiers.pairwise_coupling import (
        PairwiseCoupling as PairwiseCoupling,
    )
    from mlfbuild.native.graph.ops.classifiers.squared_distances import (
        SquaredDistances as SquaredDistances,
    )
    from mlfbuild.native.graph.ops.classifiers.tree_ensemble import (
        TreeEnsemble as TreeEnsemble,
    )
    from mlfbuild.native.graph.ops.comparison.comparisons import (
        ComparisonOperator as ComparisonOperator,
        Equal as Equal,
        Greater as Greater,
        GreaterEqual as GreaterEqual,
        Less as Less,
        LessEqual as LessEqual,
        NotEqual as NotEqual,
        Ordering as Ordering,
    )
    from mlfbuild.native.graph.ops.comparison.logical import (
        LogicalAnd as LogicalAnd,
        LogicalNot as LogicalNot,
        LogicalOr as LogicalOr,
    )
    from mlfbuild.native.graph.ops.comparison.select import (
        Select as Select,
        SelectV2 as SelectV2,
    )
    from mlfbuild.native.graph.ops.convolution.conv2d import (
        Conv2D as Conv2D,
    )
    from mlfbuild.native.graph.ops.convolution.depthwise_conv2d import (
        DepthwiseConv2D as DepthwiseConv2D,
    )
    from mlfbuild.native.graph.ops.convolution.transpose_conv import (
        TransposeConv as TransposeConv,
    )
    from mlfbuild.native.graph.ops.fused import (
        Fused as Fused,
        Lookup as Lookup,
    )
    from mlfbuild.native.graph.ops.image.non_max_suppression import (
        CORNERS as CORNERS,
        DetectionPostProcess as DetectionPostProcess,
        NonMaxSuppression as NonMaxSuppression,
        NonMaxSuppressionV4 as NonMaxSuppressionV4,
        NonMaxSuppressionV5 as NonMaxSuppressionV5,
        overlaps as overlaps,
        suppressed as suppressed,
    )
    from mlfbuild.native.graph.ops.image.resize import (
        FRACTION_BITS as FRACTION_BITS,
        ResampledLine as ResampledLine,
        Resize as Resize,
        ResizeBilinear as ResizeBilinear,
        ResizeNearestNeighbor as ResizeNearestNeighbor,
    )
    from mlfbuild.native.graph.ops.image.sampling import (
        FARTHEST as FARTHEST,
        DeformConv as DeformConv,
        GridSample as GridSample,
        Interpolation as Interpolation,
        Outside as Outside,
        RoiAlign as RoiAlign,
    )
    from mlfbuild.native.graph.ops.matrix.batch_matmul import (
        BatchMatmul as BatchMatmul,
        MatmulInteger as MatmulInteger,
    )
    from mlfbuild.native.graph.ops.matrix.determinant import (
        Determinant as Determinant,
    )
    from mlfbuild.native.graph.ops.matrix.fully_connected import (
        FullyConnected as FullyConnected,
    )
    from mlfbuild.native.graph.ops.matrix.hybrid import (
        BlockwiseFullyConnected as BlockwiseFullyConnected,
        ConvInteger as ConvInteger,
        Hybrid as Hybrid,
        HybridConv2D as HybridConv2D,
        HybridDepthwiseConv2D as HybridDepthwiseConv2D,
        HybridFullyConnected as HybridFullyConnected,
        HybridTensors as HybridTensors,
        QuantizeRows as QuantizeRows,
        block_sums as block_sums,
        hybrid_tensors as hybrid_tensors,
    )
    from mlfbuild.native.graph.ops.movement.broadcast_to import (
        BroadcastTo as BroadcastTo,
    )
    from mlfbuild.native.graph.ops.movement.concatenation import (
        Concatenation as Concatenation,
        Joining as Joining,
        check_parts as check_parts,
        pieces_along as pieces_along,
    )
    from mlfbuild.native.graph.ops.movement.fill import (
        Fill as Fill,
    )
    from mlfbuild.native.graph.ops.movement.gather import (
        Gather as Gather,
        GatherNd as GatherNd,
        Picking as Picking,
    )
    from mlfbuild.native.graph.ops.movement.pack import (
        Pack as Pack,
        Unpack as Unpack,
    )
    from mlfbuild.native.graph.ops.movement.pad import (
        MirrorPad as MirrorPad,
        Pad as Pad,
        Paddings as Paddings,
        PadV2 as PadV2,
        padded_shape as padded_shape,
    )
    from mlfbuild.native.graph.ops.movement.reshape import (
        ExpandDims as ExpandDims,
        Reshape as Reshape,
        Squeeze as Squeeze,
    )
    from mlfbuild.native.graph.ops.movement.reverse import (
        ReverseV2 as ReverseV2,
    )
    from mlfbuild.native.graph.ops.movement.reverse_sequence import (
        ReverseSequence as ReverseSequence,
    )
    from mlfbuild.native.graph.ops.movement.scatter import (
        ScatterNd as ScatterNd,
    )
    from mlfbuild.native.graph.ops.movement.scatter_elements import (
        ScatterElements as ScatterElements,
        ScatterUpdate as ScatterUpdate,
    )
    from mlfbuild.native.graph.ops.movement.shift import (
        Shift as Shift,
    )
    from mlfbuild.native.graph.ops.movement.slice import (
        Slice as Slice,
        Steps as Steps,
        StridedSlice as StridedSlice,
    )
    from mlfbuild.native.graph.ops.movement.space_to_batch import (
        BatchToSpaceNd as BatchToSpaceNd,
        Phases as Phases,
        SpaceToBatchNd as SpaceToBatchNd,
    )
    from mlfbuild.native.graph.ops.movement.space_to_depth import (
        Blocks as Blocks,
        DepthToSpace as DepthToSpace,
        SpaceToDepth as SpaceToDepth,
    )
    from mlfbuild.native.graph.ops.movement.split import (
        Parting as Parting,
        Split as Split,
        SplitV as SplitV,
    )
    from mlfbuild.native.graph.ops.movement.tile import (
        Tile as Tile,
    )
    from mlfbuild.native.graph.ops.movement.transpose import (
        Transpose as Transpose,
    )
    from mlfbuild.native.graph.ops.quantization.cast import (
        BitCast as BitCast,
        Cast as Cast,
    )
    from mlfbuild.native.graph.ops.quantization.quantize import (
        STORED as STORED,
        Dequantize as Dequantize,
        DynamicQuantize as DynamicQuantize,
        Quantize as Quantize,
    )
    from mlfbuild.native.graph.ops.recurrent.gru import (
        Gru as Gru,
        Rnn as Rnn,
    )
    from mlfbuild.native.graph.ops.recurrent.lstm import (
        UnidirectionalSequenceLstm as UnidirectionalSequenceLstm,
    )
    from mlfbuild.native.graph.ops.recurrent.svdf import (
        Svdf as Svdf,
        SvdfTensors as SvdfTensors,
        svdf_tensors as svdf_tensors,
    )
    from mlfbuild.native.graph.ops.reduction.arg_max import (
        Arg as Arg,
        ArgMax as ArgMax,
        ArgMin as ArgMin,
    )
    from mlfbuild.native.graph.ops.reduction.cumsum import (
        HALF_BITS as HALF_BITS,
        Cumsum as Cumsum,
        check_sum_scales as check_sum_scales,
        stored_sums as stored_sums,
    )
    from mlfbuild.native.graph.ops.reduction.pool2d import (
        AveragePool2D as AveragePool2D,
        MaxPool2D as MaxPool2D,
        Pool2D as Pool2D,
    )
    from mlfbuild.native.graph.ops.reduction.reduce import (
        Logical as Logical,
        Mean as Mean,
        ReduceAll as ReduceAll,
        ReduceAny as ReduceAny,
        ReduceExtreme as ReduceExtreme,
        ReduceMax as ReduceMax,
        ReduceMin as ReduceMin,
        ReduceProd as ReduceProd,
        Reduction as Reduction,
        Sum as Sum,
        Summing as Summing,
    )
    from mlfbuild.native.graph.ops.reduction.topk import (
        TopkV2 as TopkV2,
    )
    from mlfbuild.native.graph.ops.signal.dft import (
        ComplexAbs as ComplexAbs,
        ComplexPart as ComplexPart,
        Dft as Dft,
        Imag as Imag,
        Real as Real,
        Rfft2d as Rfft2d,
    )
    from mlfbuild.native.graph.ops.signal.filter_bank import (
        GAINS as GAINS,
        SignalFilterBank as SignalFilterBank,
        SignalFilterBankLog as SignalFilterBankLog,
        SignalFilterBankSpectralSubtraction as SignalFilterBankSpectralSubtraction,
        SignalFilterBankSquareRoot as SignalFilterBankSquareRoot,
        SignalPcan as SignalPcan,
        logarithms as logarithms,
    )
    from mlfbuild.native.graph.ops.signal.fourier import (
        LONGEST as LONGEST,
        SignalFourier as SignalFourier,
        SignalIrfft as SignalIrfft,
        SignalRfft as SignalRfft,
    )
    from mlfbuild.native.graph.ops.signal.framing import (
        Col2Im as Col2Im,
        SignalFramer as SignalFramer,
        SignalOverlapAdd as SignalOverlapAdd,
        SignalStacker as SignalStacker,
    )
    from mlfbuild.native.graph.ops.signal.spectrum import (
        SignalDelay as SignalDelay,
        SignalEnergy as SignalEnergy,
        SignalFftAutoScale as SignalFftAutoScale,
        SignalWindow as SignalWindow,
    )
    from mlfbuild.native.graph.ops.table import (
        OPERATORS as OPERATORS,
        operator_class as operator_class,
    )
else:
    __getattr__ = lazy_attributes(__name__)
