"""Known operators that are not supported, each with the reason and a hint."""

from __future__ import annotations

from collections.abc import Mapping

from mlfbuild.core import UnsupportedModelError

SEE = "see docs/onnx.md, or use another compiler (tvm or command)"
"""The hint of errors that have no better one."""

_IN_FIRMWARE = "do this in the firmware, outside of the network"

_REASONS: Mapping[tuple[str, str], tuple[str, ...]] = {
    ("loss functions for training are not supported", "export the network without it"): (
        "NegativeLogLikelihoodLoss", "SoftmaxCrossEntropyLoss",
    ),
    ("random numbers are not supported", "export the network for inference"): (
        "Bernoulli", "Multinomial", "RandomNormal", "RandomNormalLike", "RandomUniform", "RandomUniformLike",
    ),
    ("a loop over a sequence is not supported", "export the network with tensors only"): ("SequenceMap",),
    (
        "sequences and optional values, which have no fixed size, are not supported",
        "export the network with tensors only",
    ): (
        "ConcatFromSequence", "Optional", "OptionalGetElement", "OptionalHasElement", "SequenceAt",
        "SequenceConstruct", "SequenceEmpty", "SequenceErase", "SequenceInsert", "SequenceLength", "SplitToSequence",
    ),
    ("a tensor whose size depends on data is not supported", _IN_FIRMWARE): ("NonMaxSuppression", "Unique"),
    ("operators on text are not supported", _IN_FIRMWARE): (
        "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer",
    ),
    ("image files are not supported", _IN_FIRMWARE): ("ImageDecoder",),
    ("signal transforms are not supported", "compute spectra before the network, for example with CMSIS-DSP"): (
        "DFT", "STFT",
    ),
    (
        "a scale that is computed in every run is not supported",
        "quantise the network statically, for example with onnxruntime's quantize_static",
    ): ("DynamicQuantizeLinear",),
    (
        "operators of attention are not supported",
        "export the network for version 22 or earlier, which has MatMul and Softmax instead",
    ): ("Attention", "FlexAttention", "LinearAttention", "RotaryEmbedding", "TensorScatter"),
    ("a state that is an input and an output is not supported", "export it as Concat and Conv"): (
        "CausalConvWithState",
    ),
    ("sampling an image at positions that depend on data is not supported", SEE): (
        "DeformConv", "GridSample", "MaxRoiPool", "MaxUnpool", "RoiAlign",
    ),
    ("reading the bits of one type as another is not supported", SEE): ("BitCast",),
    ("the operator is not supported, as small networks rarely use it", SEE): (
        "Col2Im", "Det",
    ),
}  # fmt: skip

REFUSED: Mapping[str, tuple[str, str]] = {name: fields for fields, names in _REASONS.items() for name in names}
"""The reason and the hint for each known operator that is not supported, by its name."""


def refusal(place: str, name: str) -> UnsupportedModelError:
    """Return the error for the operator ``name``, which is in ``REFUSED``."""
    reason, hint = REFUSED[name]
    return UnsupportedModelError("operator-refused", place=place, reason=reason, hint=hint)
