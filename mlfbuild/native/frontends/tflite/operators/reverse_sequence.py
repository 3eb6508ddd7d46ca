"""REVERSE_SEQUENCE."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _reverse_sequence(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("ReverseSequenceOptions")
        return ops.ReverseSequence(options.SeqDim(), options.BatchDim())


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.REVERSE_SEQUENCE: OperatorKind(_reverse_sequence, 2),
}
