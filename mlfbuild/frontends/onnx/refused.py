"""Operators that are known and refused, each with the reason and what to do instead."""

from __future__ import annotations

from collections.abc import Mapping

_REASONS: Mapping[str, tuple[str, ...]] = {
    "is a loss, for training; export the network without it": (
        "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
    ),
    "draws at random; export the network for inference": (
        "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    ),
    "runs other graphs as data says, and the network is compiled as one list of calls; export it unrolled": (
        "If", "Loop", "Scan", "SequenceMap",
    ),
    "makes sequences or optional values, which have no place in fixed memory; export the network with tensors alone": (
        "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
        "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence",
    ),
    "makes a tensor whose size depends on data; leave it to the code around the network": (
        "NonMaxSuppression", "NonZero", "Unique",
    ),
    "works on text; leave it to the code around the network": (
        "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer",
    ),
    "decodes files of images; leave it to the code around the network": ("ImageDecoder",),
    "transforms signals; compute spectra before the network, with CMSIS-DSP for example": ("DFT", "STFT"),
    "finds a scale for every run, which costs a pass over the data and float32; quantise the network statically "
    "(onnxruntime's quantize_static with calibration data)": ("DynamicQuantizeLinear",),
    "is a piece of attention; export the network for version 22 or earlier, which has products and Softmax instead": (
        "Attention", "FlexAttention", "LinearAttention", "RotaryEmbedding", "TensorScatter",
    ),
    "keeps a state as inputs and outputs of its own form; export it as Concat and Conv": ("CausalConvWithState",),
    "samples an image at places that data says": (
        "AffineGrid", "DeformConv", "GridSample", "MaxRoiPool", "MaxUnpool", "RoiAlign",
    ),
    "works on the bits of integers": (
        "BitCast", "BitShift", "BitwiseAnd", "BitwiseNot", "BitwiseOr", "BitwiseXor",
    ),
    "is no operator of small networks": (
        "Acos", "Acosh", "Asin", "Asinh", "Atan", "Atanh", "Col2Im", "Cosh", "Det", "Sinh",
    ),
    "sorts; leave it to the code around the network, or take ArgMax for the greatest": ("TopK",),
}  # fmt: skip

REASONS: Mapping[str, str] = {name: reason for reason, names in _REASONS.items() for name in names}
"""Why an operator is refused, by its name."""
