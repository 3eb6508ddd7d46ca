"""Known operators that are not supported, each with the reason and a hint, and all reasons of one model."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING

from mlfbuild.core import UnsupportedModelError
from mlfbuild.native.frontends.errors import unsupported
from mlfbuild.native.graph import GraphError, OperatorError

if TYPE_CHECKING:
    from mlfbuild.native.frontends.onnx.raw_graph import RawNode

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
    ("a tensor whose size depends on data is not supported", _IN_FIRMWARE): ("Unique",),
    ("operators on text are not supported", _IN_FIRMWARE): (
        "RegexFullMatch", "StringConcat", "StringNormalizer", "StringSplit", "TfIdfVectorizer",
    ),
    ("image files are not supported", _IN_FIRMWARE): ("ImageDecoder",),
    (
        "an LSTM whose inputs are quantised in each run is not supported",
        "exclude it from quantize_dynamic with nodes_to_exclude, so that it stays float32",
    ): ("DynamicQuantizeLSTM",),
    (
        "operators of attention are not supported",
        "export the network for version 22 or earlier, which has MatMul and Softmax instead",
    ): ("Attention", "FlexAttention", "LinearAttention", "RotaryEmbedding", "TensorScatter"),
    ("a state that is an input and an output is not supported", "export it as Concat and Conv"): (
        "CausalConvWithState",
    ),
    ("the maximum over computed regions is not supported", "export the network with RoiAlign"): ("MaxRoiPool",),
}  # fmt: skip

REFUSED: Mapping[str, tuple[str, str]] = {name: fields for fields, names in _REASONS.items() for name in names}
"""The reason and the hint for each known operator that is not supported, by its name."""


def refusal(place: str, name: str) -> UnsupportedModelError:
    """Return the error for the operator ``name``, which is in ``REFUSED``."""
    reason, hint = REFUSED[name]
    return UnsupportedModelError("operator-refused", place=place, reason=reason, hint=hint)


_FINAL = frozenset({"constants-too-large", "model-too-large"})
"""Errors after which every other node would have the same one."""


class Refusals:
    """The reasons why nodes and inputs of a model are not supported.

    The outputs of such a node are lost. Nodes that read them are left out, because nothing is known of their inputs.
    """

    def __init__(self) -> None:
        self._errors: list[UnsupportedModelError] = []
        self._lost: set[str] = set()
        self._operators: set[tuple[str, str]] = set()

    def add_operator(self, node: RawNode, error: UnsupportedModelError) -> None:
        """Record ``error``, about the operator of ``node``, unless one about this operator is known."""
        if (node.domain, node.operator) not in self._operators:
            self._operators.add((node.domain, node.operator))
            self._errors.append(error)
        self._lost.update(filter(None, node.outputs))

    def hide(self, node: RawNode) -> bool:
        """Return whether ``node`` reads a lost tensor; its outputs are then lost, too."""
        if not self._lost or self._lost.isdisjoint(node.reads):
            return False
        self._lost.update(filter(None, node.outputs))
        return True

    def check(self) -> None:
        """Raise an error with all reasons, if there are any."""
        if self._errors:
            raise UnsupportedModelError.of(self._errors)

    @contextmanager
    def collected(self, made: Iterable[str]) -> Iterator[None]:
        """Record why the block finds something unsupported, which then does not make the tensors ``made``."""
        try:
            yield
        except (UnsupportedModelError, OperatorError) as error:
            self._errors.append(unsupported(error) if isinstance(error, OperatorError) else error)
            if self._errors[-1].code in _FINAL:
                self.check()
            self._lost.update(filter(None, made))

    @contextmanager
    def all_at_once(self) -> Iterator[None]:
        """Raise the recorded reasons with the error of the block, and instead of that of a malformed model."""
        try:
            yield
        except UnsupportedModelError as error:
            raise UnsupportedModelError.of([*self._errors, error]) from None
        except GraphError:
            self.check()
            raise
