"""FULLY_CONNECTED."""

from __future__ import annotations

from collections.abc import Mapping

from tflite.BuiltinOperator import BuiltinOperator
from tflite.FullyConnectedOptionsWeightsFormat import FullyConnectedOptionsWeightsFormat
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite.operators.kind import OperatorKind
from mlfbuild.native.frontends.tflite.operators.site import TfliteSite
from mlfbuild.native.frontends.tflite.reader import reading
from mlfbuild.native.graph import Operator, ops


def _fully_connected(site: TfliteSite) -> Operator:
    with reading(site.place):
        options = site.read_options("FullyConnectedOptions")
        if options.WeightsFormat() != FullyConnectedOptionsWeightsFormat.DEFAULT:
            raise site.unsupported(
                "shuffled weights are not supported", "convert the model with weights in the default format"
            )
        activation = site.activation(options.FusedActivationFunction())
        int32_sums = options.QuantizedBiasType() == TensorType.INT32
        return ops.FullyConnected(activation, bool(options.KeepNumDims()), int32_sums, in_double=site.unsigned)


KINDS: Mapping[int, OperatorKind] = {
    BuiltinOperator.FULLY_CONNECTED: OperatorKind(_fully_connected, 3, layer=True),
}
