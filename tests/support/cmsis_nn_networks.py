"""Networks whose operators CMSIS-NN has, compiled to call it."""

from __future__ import annotations

import re
from collections.abc import Sequence

from mlfbuild.library import Library
from support.board_cases import Job
from support.drawing import Array, Case
from support.dsp_networks import KINDS, Layers
from support.native import compile_bytes, generated
from support.networks import drawn, judged
from support.oracle import tflite_micro_run

OPERATORS = {
    "ADD": "arm_elementwise_add_s8",
    "AVERAGE_POOL_2D": "arm_avgpool_s8",
    "CONV_2D": "arm_convolve_wrapper_s8",
    "DEPTHWISE_CONV_2D": "arm_depthwise_conv_wrapper_s8",
    "FULLY_CONNECTED": "arm_fully_connected_s8",
    "MAX_POOL_2D": "arm_max_pool_s8",
    "MUL": "arm_elementwise_mul_s8",
    "SOFTMAX": "arm_softmax_s8",
}
"""What computes each of them in int8; weights with a scale a channel have ``arm_fully_connected_per_channel_s8``."""


def one_row(seed: int) -> Case:
    """A convolution of an image of one row, by filters of one row: the library has a way of its own for them."""
    layers = Layers(seed)
    stride, width, columns = layers.size(1, 3), layers.size(1, 12), layers.size(2, 6)
    padding = layers.pick("SAME", "VALID") if width >= columns else "SAME"
    depthwise, outputs = layers.pick(True, False, False), layers.size(2, 6)
    depth = 1 if depthwise else layers.pick(2, 3, 4, 8)
    image = layers.input(layers.size(1, 2), 1, width, depth)
    affine = layers.affine(image, columns * depth, outputs)
    if depthwise:
        weights = layers.weights(1, 1, columns, outputs)
        result = layers.network.depthwise_conv2d(image, weights, **affine, stride=(1, stride), padding=padding)
    else:
        weights = layers.weights(outputs, 1, columns, depth)
        result = layers.network.conv2d(image, weights, **affine, stride=(1, stride), padding=padding)
    return layers.case(result)


def operator_cases(count: int) -> list[tuple[Case, Sequence[Array]]]:
    """``count`` networks of each of ``OPERATORS``, those that a judge takes, and the outputs that are right."""
    cases = [(operator, case) for operator in OPERATORS for case in drawn(operator, "int8", count)]
    outputs = [_right(operator, case) for operator, case in cases]
    return [(case, right) for (_, case), right in zip(cases, outputs, strict=True) if right is not None]


def _right(operator: str, case: Case) -> Sequence[Array] | None:
    try:
        return judged(operator, "int8", case)
    except RuntimeError:
        return None


def layer_cases(count: int) -> list[Case]:
    """``count`` networks of each kind of layers, every fourth with extreme values, and of convolutions of one row."""
    cases = [draw(seed, extreme=seed % 4 == 0) for draw in KINDS.values() for seed in range(count)]
    return [*cases, *map(one_row, range(count))]


def compiled(models: Sequence[bytes], cpu: str, memory: str = "balanced") -> list[Library]:
    """The libraries of ``models``, called ``net0`` and on, with calls of CMSIS-NN."""
    return [compile_bytes(model, f"net{at}", cpu, memory, "cmsis-nn") for at, model in enumerate(models)]


def called(libraries: Sequence[Library]) -> set[str]:
    """The functions of CMSIS-NN that the code of ``libraries`` calls."""
    return {name for library in libraries for name in re.findall(r"\b(arm_\w+)\(", generated(library))}


def jobs(cpu: str, operators: int, layers: int) -> list[Job]:
    """Networks of all operators and kinds for ``cpu``, their inputs and the outputs that are right."""
    judged_cases = [
        *operator_cases(operators),
        *((case, tflite_micro_run(case.model, case.inputs)) for case in layer_cases(layers)),
    ]
    libraries = compiled([case.model for case, _ in judged_cases], cpu)
    assert set(OPERATORS.values()) | {"arm_fully_connected_per_channel_s8"} == called(libraries)
    return [(library, case.inputs, outputs) for library, (case, outputs) in zip(libraries, judged_cases, strict=True)]
