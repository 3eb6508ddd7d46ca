"""Networks whose operators CMSIS-NN has, compiled to call it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import partial

from mlfbuild.library import Library
from support.board_cases import Job
from support.chain_networks import chain_case
from support.drawing import Array, Case
from support.dsp_networks import KINDS, Layers
from support.int16_networks import conv2d, deep, depthwise, fully_connected, network, pointwise
from support.native import compile_bytes, generated
from support.networks import drawn, judged
from support.oracle import tflite_micro_run
from support.random_graphs import random_case

FUNCTIONS = {
    ("ADD", "int8"): "arm_elementwise_add_s8",
    ("ADD", "int16"): "arm_elementwise_add_s16",
    ("AVERAGE_POOL_2D", "int8"): "arm_avgpool_s8",
    ("AVERAGE_POOL_2D", "int16"): "arm_avgpool_s16",
    ("CONV_2D", "int8"): "arm_convolve_wrapper_s8",
    ("CONV_2D", "int16"): "arm_convolve_wrapper_s16",
    ("DEPTHWISE_CONV_2D", "int8"): "arm_depthwise_conv_wrapper_s8",
    ("DEPTHWISE_CONV_2D", "int16"): "arm_depthwise_conv_wrapper_s16",
    ("FULLY_CONNECTED", "int8"): "arm_fully_connected_s8",
    ("FULLY_CONNECTED", "int16"): "arm_fully_connected_s16",
    ("MAX_POOL_2D", "int8"): "arm_max_pool_s8",
    ("MAX_POOL_2D", "int16"): "arm_max_pool_s16",
    ("MUL", "int8"): "arm_elementwise_mul_s8",
    ("MUL", "int16"): "arm_elementwise_mul_s16",
    ("SOFTMAX", "int8"): "arm_softmax_s8",
}
"""What computes each operator; there is one more for weights with a scale a channel, and one for SOFTMAX to int16."""
INT16_KINDS = (conv2d, deep, depthwise, fully_connected, network, pointwise)
ALL = {*FUNCTIONS.values(), "arm_fully_connected_per_channel_s8", "arm_softmax_s8_s16"}


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
    """``count`` networks of each of ``FUNCTIONS``, those that a judge takes, and the outputs that are right."""
    cases = [(operator, dtype, case) for operator, dtype in FUNCTIONS for case in drawn(operator, dtype, count)]
    outputs = [_right(*each) for each in cases]
    return [(case, right) for (*_, case), right in zip(cases, outputs, strict=True) if right is not None]


def _right(operator: str, dtype: str, case: Case) -> Sequence[Array] | None:
    try:
        return judged(operator, dtype, case)
    except RuntimeError:
        return None


def layer_cases(count: int) -> list[Case]:
    """``count`` networks of each kind of layers, every fourth with extreme values, and of convolutions of one row."""
    cases = [draw(seed, extreme=seed % 4 == 0) for draw in KINDS.values() for seed in range(count)]
    return [*cases, *map(one_row, range(count))]


def mixed_cases(count: int) -> list[Case]:
    """``count`` networks of operators executed row by row, of any operators, and of each kind of layers of int16."""
    chains = [draw(seed) for draw in (chain_case, partial(random_case, steps=16)) for seed in range(count)]
    return [*chains, *(draw(seed, extreme=seed % 4 == 0) for draw in INT16_KINDS for seed in range(count))]


def compiled(models: Sequence[bytes], cpu: str, memory: str = "balanced") -> list[Library]:
    """The libraries of ``models``, called ``net0`` and on, with calls of CMSIS-NN."""
    return [compile_bytes(model, f"net{at}", cpu, memory, "cmsis-nn") for at, model in enumerate(models)]


def called(libraries: Sequence[Library]) -> set[str]:
    """The functions of CMSIS-NN that the code of ``libraries`` calls."""
    return {name for library in libraries for name in re.findall(r"\b(arm_\w+)\(", generated(library))}


def jobs(cpu: str, operators: int, layers: int, mixed: int = 0) -> list[Job]:
    """Networks of all operators and kinds for ``cpu``, their inputs and the outputs that are right."""
    cases = [*layer_cases(layers), *mixed_cases(mixed)]
    judged_cases = [
        *operator_cases(operators),
        *((case, tflite_micro_run(case.model, case.inputs)) for case in cases),
    ]
    libraries = compiled([case.model for case, _ in judged_cases], cpu)
    assert called(libraries) == ALL
    return [(library, case.inputs, outputs) for library, (case, outputs) in zip(libraries, judged_cases, strict=True)]
