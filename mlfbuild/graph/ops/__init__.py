"""The operators, one file per family: attributes, rules of shape and type, and a numpy reference.

A file is imported when one of its names is first used. ``make generate`` writes this file.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from mlfbuild.core import lazy_attributes

if TYPE_CHECKING:
    from mlfbuild.graph.ops.abs import (
        Abs as Abs,
        Neg as Neg,
        Sign as Sign,
    )
    from mlfbuild.graph.ops.add import (
        Add as Add,
        Addition as Addition,
        SquaredDifference as SquaredDifference,
        Sub as Sub,
    )
    from mlfbuild.graph.ops.add_n import (
        AddN as AddN,
    )
    from mlfbuild.graph.ops.arg_max import (
        Arg as Arg,
        ArgMax as ArgMax,
        ArgMin as ArgMin,
    )
    from mlfbuild.graph.ops.atan import (
        Acos as Acos,
        Acosh as Acosh,
        Asin as Asin,
        Asinh as Asinh,
        Atan as Atan,
        Atanh as Atanh,
        Cosh as Cosh,
        Sinh as Sinh,
    )
    from mlfbuild.graph.ops.atan2 import (
        Atan2 as Atan2,
    )
    from mlfbuild.graph.ops.batch_matmul import (
        BatchMatmul as BatchMatmul,
        MatmulInteger as MatmulInteger,
    )
    from mlfbuild.graph.ops.bitwise import (
        BitwiseAnd as BitwiseAnd,
        BitwiseOr as BitwiseOr,
        BitwiseXor as BitwiseXor,
        LeftShift as LeftShift,
        RightShift as RightShift,
    )
    from mlfbuild.graph.ops.broadcast_to import (
        BroadcastTo as BroadcastTo,
    )
    from mlfbuild.graph.ops.cast import (
        BitCast as BitCast,
        Cast as Cast,
    )
    from mlfbuild.graph.ops.comparisons import (
        ComparisonOperator as ComparisonOperator,
        Equal as Equal,
        Greater as Greater,
        GreaterEqual as GreaterEqual,
        Less as Less,
        LessEqual as LessEqual,
        NotEqual as NotEqual,
        Ordering as Ordering,
    )
    from mlfbuild.graph.ops.concatenation import (
        Concatenation as Concatenation,
        Joining as Joining,
        check_parts as check_parts,
        pieces_along as pieces_along,
    )
    from mlfbuild.graph.ops.conv2d import (
        Conv2D as Conv2D,
    )
    from mlfbuild.graph.ops.cumsum import (
        HALF_BITS as HALF_BITS,
        Cumsum as Cumsum,
        check_sum_scales as check_sum_scales,
        stored_sums as stored_sums,
    )
    from mlfbuild.graph.ops.depthwise_conv2d import (
        DepthwiseConv2D as DepthwiseConv2D,
    )
    from mlfbuild.graph.ops.determinant import (
        Determinant as Determinant,
    )
    from mlfbuild.graph.ops.dft import (
        ComplexAbs as ComplexAbs,
        ComplexPart as ComplexPart,
        Dft as Dft,
        Imag as Imag,
        Real as Real,
        Rfft2d as Rfft2d,
    )
    from mlfbuild.graph.ops.div import (
        Div as Div,
    )
    from mlfbuild.graph.ops.elu import (
        Elu as Elu,
    )
    from mlfbuild.graph.ops.erf import (
        Erf as Erf,
    )
    from mlfbuild.graph.ops.exp import (
        Exp as Exp,
        Log as Log,
    )
    from mlfbuild.graph.ops.fill import (
        Fill as Fill,
    )
    from mlfbuild.graph.ops.filter_bank import (
        GAINS as GAINS,
        SignalFilterBank as SignalFilterBank,
        SignalFilterBankLog as SignalFilterBankLog,
        SignalFilterBankSpectralSubtraction as SignalFilterBankSpectralSubtraction,
        SignalFilterBankSquareRoot as SignalFilterBankSquareRoot,
        SignalPcan as SignalPcan,
        logarithms as logarithms,
    )
    from mlfbuild.graph.ops.floor import (
        Ceil as Ceil,
        Floor as Floor,
        Round as Round,
    )
    from mlfbuild.graph.ops.floor_div import (
        FloorDiv as FloorDiv,
        FloorMod as FloorMod,
    )
    from mlfbuild.graph.ops.fourier import (
        LONGEST as LONGEST,
        SignalFourier as SignalFourier,
        SignalIrfft as SignalIrfft,
        SignalRfft as SignalRfft,
    )
    from mlfbuild.graph.ops.framing import (
        Col2Im as Col2Im,
        SignalFramer as SignalFramer,
        SignalOverlapAdd as SignalOverlapAdd,
        SignalStacker as SignalStacker,
    )
    from mlfbuild.graph.ops.fully_connected import (
        FullyConnected as FullyConnected,
    )
    from mlfbuild.graph.ops.fused import (
        Fused as Fused,
        Lookup as Lookup,
    )
    from mlfbuild.graph.ops.gather import (
        Gather as Gather,
        GatherNd as GatherNd,
        Picking as Picking,
    )
    from mlfbuild.graph.ops.gelu import (
        Gelu as Gelu,
    )
    from mlfbuild.graph.ops.gru import (
        Gru as Gru,
        Rnn as Rnn,
    )
    from mlfbuild.graph.ops.hard_swish import (
        HardSwish as HardSwish,
    )
    from mlfbuild.graph.ops.hybrid import (
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
    from mlfbuild.graph.ops.l2_normalization import (
        L2Normalization as L2Normalization,
    )
    from mlfbuild.graph.ops.logical import (
        LogicalAnd as LogicalAnd,
        LogicalNot as LogicalNot,
        LogicalOr as LogicalOr,
    )
    from mlfbuild.graph.ops.logistic import (
        Logistic as Logistic,
        Sigmoid as Sigmoid,
        Tanh as Tanh,
        between as between,
    )
    from mlfbuild.graph.ops.lstm import (
        UnidirectionalSequenceLstm as UnidirectionalSequenceLstm,
    )
    from mlfbuild.graph.ops.maximum import (
        Extreme as Extreme,
        Maximum as Maximum,
        Minimum as Minimum,
    )
    from mlfbuild.graph.ops.mul import (
        Mul as Mul,
    )
    from mlfbuild.graph.ops.non_max_suppression import (
        CORNERS as CORNERS,
        DetectionPostProcess as DetectionPostProcess,
        NonMaxSuppression as NonMaxSuppression,
        NonMaxSuppressionV4 as NonMaxSuppressionV4,
        NonMaxSuppressionV5 as NonMaxSuppressionV5,
        overlaps as overlaps,
        suppressed as suppressed,
    )
    from mlfbuild.graph.ops.pack import (
        Pack as Pack,
        Unpack as Unpack,
    )
    from mlfbuild.graph.ops.pad import (
        MirrorPad as MirrorPad,
        Pad as Pad,
        Paddings as Paddings,
        PadV2 as PadV2,
        padded_shape as padded_shape,
    )
    from mlfbuild.graph.ops.pairwise_coupling import (
        PairwiseCoupling as PairwiseCoupling,
    )
    from mlfbuild.graph.ops.pool2d import (
        AveragePool2D as AveragePool2D,
        MaxPool2D as MaxPool2D,
        Pool2D as Pool2D,
    )
    from mlfbuild.graph.ops.pow import (
        Pow as Pow,
    )
    from mlfbuild.graph.ops.quantize import (
        STORED as STORED,
        Dequantize as Dequantize,
        DynamicQuantize as DynamicQuantize,
        Quantize as Quantize,
    )
    from mlfbuild.graph.ops.reduce import (
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
    from mlfbuild.graph.ops.relu import (
        LeakyRelu as LeakyRelu,
        PRelu as PRelu,
        Relu as Relu,
        Relu0To1 as Relu0To1,
        Relu6 as Relu6,
        ReluN1To1 as ReluN1To1,
        rescaled as rescaled,
    )
    from mlfbuild.graph.ops.reshape import (
        ExpandDims as ExpandDims,
        Reshape as Reshape,
        Squeeze as Squeeze,
    )
    from mlfbuild.graph.ops.resize import (
        FRACTION_BITS as FRACTION_BITS,
        ResampledLine as ResampledLine,
        Resize as Resize,
        ResizeBilinear as ResizeBilinear,
        ResizeNearestNeighbor as ResizeNearestNeighbor,
    )
    from mlfbuild.graph.ops.reverse import (
        ReverseV2 as ReverseV2,
    )
    from mlfbuild.graph.ops.reverse_sequence import (
        ReverseSequence as ReverseSequence,
    )
    from mlfbuild.graph.ops.sampling import (
        FARTHEST as FARTHEST,
        DeformConv as DeformConv,
        GridSample as GridSample,
        Interpolation as Interpolation,
        Outside as Outside,
        RoiAlign as RoiAlign,
    )
    from mlfbuild.graph.ops.scatter import (
        ScatterNd as ScatterNd,
    )
    from mlfbuild.graph.ops.scatter_elements import (
        ScatterElements as ScatterElements,
        ScatterUpdate as ScatterUpdate,
    )
    from mlfbuild.graph.ops.select import (
        Select as Select,
        SelectV2 as SelectV2,
    )
    from mlfbuild.graph.ops.shift import (
        Shift as Shift,
    )
    from mlfbuild.graph.ops.sin import (
        Cos as Cos,
        Sin as Sin,
    )
    from mlfbuild.graph.ops.slice import (
        Slice as Slice,
        Steps as Steps,
        StridedSlice as StridedSlice,
    )
    from mlfbuild.graph.ops.softmax import (
        EXPONENTIALS as EXPONENTIALS,
        RECIPROCALS as RECIPROCALS,
        LogSoftmax as LogSoftmax,
        Softmax as Softmax,
    )
    from mlfbuild.graph.ops.space_to_batch import (
        BatchToSpaceNd as BatchToSpaceNd,
        Phases as Phases,
        SpaceToBatchNd as SpaceToBatchNd,
    )
    from mlfbuild.graph.ops.space_to_depth import (
        Blocks as Blocks,
        DepthToSpace as DepthToSpace,
        SpaceToDepth as SpaceToDepth,
    )
    from mlfbuild.graph.ops.spectrum import (
        SignalDelay as SignalDelay,
        SignalEnergy as SignalEnergy,
        SignalFftAutoScale as SignalFftAutoScale,
        SignalWindow as SignalWindow,
    )
    from mlfbuild.graph.ops.split import (
        Parting as Parting,
        Split as Split,
        SplitV as SplitV,
    )
    from mlfbuild.graph.ops.sqrt import (
        Rsqrt as Rsqrt,
        Sqrt as Sqrt,
        Square as Square,
    )
    from mlfbuild.graph.ops.squared_distances import (
        SquaredDistances as SquaredDistances,
    )
    from mlfbuild.graph.ops.svdf import (
        Svdf as Svdf,
        SvdfTensors as SvdfTensors,
        svdf_tensors as svdf_tensors,
    )
    from mlfbuild.graph.ops.table import (
        OPERATORS as OPERATORS,
        operator_class as operator_class,
    )
    from mlfbuild.graph.ops.tile import (
        Tile as Tile,
    )
    from mlfbuild.graph.ops.topk import (
        TopkV2 as TopkV2,
    )
    from mlfbuild.graph.ops.transpose import (
        Transpose as Transpose,
    )
    from mlfbuild.graph.ops.transpose_conv import (
        TransposeConv as TransposeConv,
    )
    from mlfbuild.graph.ops.tree_ensemble import (
        TreeEnsemble as TreeEnsemble,
    )
else:
    __getattr__ = lazy_attributes(__name__)
