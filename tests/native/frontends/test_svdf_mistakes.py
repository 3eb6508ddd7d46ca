"""SVDF with tensors that do not fit, and variables of several operators: one line with place and reason."""

import numpy as np
import pytest
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite import parse_tflite
from support.refusals import Refusal, assert_tflite_refused, invalid, malformed
from support.tflite_builder import Network
from support.tflite_edits import Edit, computed, edit_options, edit_tensor, every

SOURCE, FEATURE, TIME, BIAS, STATE, OUTPUT = range(6)


def resize(tensor: int, *shape: int) -> Edit:
    def edit(net: Network) -> None:
        spec = net.tensors[tensor]
        spec.shape = list(shape)
        if spec.content:
            spec.content = bytes(int(np.prod(shape)) * {0: 4, 9: 1, 7: 2, 2: 4}[spec.type])

    return edit


def operands(*indices: int) -> Edit:
    return lambda net: net.operators[0].inputs.__setitem__(slice(None), indices)


def shared(net: Network) -> None:
    net.operators.append(net.operators[0])
    net.operators[-1] = type(net.operators[0])(
        net.operators[0].code, net.operators[0].inputs, [net.activation((1, 2))], "SVDFOptions", {"Rank": 2}
    )


INT8_STATE = every(
    edit_tensor(TIME, type=TensorType.INT8, content=bytes(16), zero_points=[2]),
    edit_tensor(STATE, type=TensorType.INT8),
)
"""The time weights as int8, which may have a zero point in the file, unlike int16."""
PLACE = "operator 0 (SVDF) writing 't5'"
VARIABLE = f"{PLACE}: tensor 4 't4'"
RULE = "SVDF 't5'"

MISTAKES: dict[str, tuple[bool, Edit, Refusal]] = {
    "a state that is no variable": (False, edit_tensor(STATE, is_variable=False), ("variable-misused", VARIABLE)),
    "a state with content": (False, edit_tensor(STATE, content=bytes(64)), ("variable-misused", VARIABLE)),
    "no state": (False, operands(SOURCE, FEATURE, TIME, BIAS), malformed(PLACE)),
    "an absent state": (False, operands(SOURCE, FEATURE, TIME, BIAS, -1), malformed(PLACE)),
    "a state that is not there": (False, operands(SOURCE, FEATURE, TIME, BIAS, 9), malformed(PLACE, "9", "6")),
    "a state of two layers": (
        False, shared, ("variable-misused", "operator 1 (SVDF) writing 't6': tensor 4 't4'", "0", "'t5'"),
    ),
    "a state that is read": (
        False, lambda net: net.add(STATE, STATE),
        ("variable-misused", "operator 1 (ADD) writing 't6': tensor 4 't4'"),
    ),
    "a state that is returned": (
        False, lambda net: net.outputs.append(STATE), ("variable-misused", "the model's outputs: tensor 4 't4'"),
    ),
    "no weights": (False, operands(SOURCE, -1, TIME, BIAS, STATE), invalid(RULE, "1")),
    "computed weights": (False, computed(TIME), ("input-not-constant", PLACE, "'t2' float32[4, 4]")),
    "hybrid weights": (
        False, every(edit_tensor(FEATURE, type=TensorType.INT8), resize(FEATURE, 4, 3)),
        ("quantization-unsupported", PLACE, "('t1' int8[4, 3] over float32"),
    ),
    "a rank of nothing": (False, edit_options(Rank=0), invalid(RULE, "4", "0")),
    "a rank that does not fit": (False, edit_options(Rank=3), invalid(RULE, "4", "3")),
    "other inputs": (False, resize(FEATURE, 4, 5), invalid(RULE, "'t1' float32[4, 5]", "[4, 3]")),
    "other filters": (False, resize(TIME, 3, 4), invalid(RULE, "'t2' float32[3, 4]", "[4, 4]")),
    "a state of another size": (False, resize(STATE, 1, 12), invalid(RULE, "'t4' float32[1, 12]", "[1, 16]")),
    "an output of another size": (False, resize(OUTPUT, 1, 4), invalid(RULE, "'t5' float32[1, 4]", "[1, 2]")),
    "a bias of another size": (False, resize(BIAS, 3), invalid(RULE, "'t3' float32[3]")),
    "a sequence": (False, resize(SOURCE, 1, 1, 3), invalid(RULE, "'t0' float32[1, 1, 3]")),
    "an int16 signal": (True, edit_tensor(SOURCE, type=TensorType.INT16), ("type-unsupported", PLACE, "16", "'t0'")),
    "a state of another type than its weights": (
        True, edit_tensor(STATE, type=TensorType.INT8), invalid(RULE, "'t2' int16[4, 4]", "'t4' int8[1, 16]"),
    ),
    "a state of int32": (True, edit_tensor(STATE, type=TensorType.INT32), invalid(RULE, "'t4' int32[1, 16]", "8")),
    "a state without a scale": (
        True, edit_tensor(STATE, scales=[], zero_points=[]), invalid(RULE, "'t4' int16[1, 16]"),
    ),
    "an int16 state with a zero point": (
        True, edit_tensor(STATE, zero_points=[1]), invalid(RULE, "'t4' int16[1, 16]", "0"),
    ),
    "weights with a zero point": (True, edit_tensor(FEATURE, zero_points=[2]), invalid(RULE, "'t1' int8[4, 3]", "0")),
    "time weights with a zero point": (True, INT8_STATE, invalid(RULE, "'t2' int8[4, 4]", "0")),
    "weights with a scale for each filter": (
        True, edit_tensor(FEATURE, scales=[0.1] * 4, zero_points=[0]), invalid(RULE, "'t1' int8[4, 3]"),
    ),
    "scales that cannot be reconciled": (True, edit_tensor(OUTPUT, scales=[1e-30]), invalid(RULE, "1e+2")),
    "a fused activation of another kind": (
        False, edit_options(FusedActivationFunction=4), ("operator-variant-unsupported", PLACE, "TANH"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("quantized", "edit", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake(
    quantized: bool, edit: Edit, expected: Refusal
) -> None:  # fmt: skip
    net = Network()
    random = np.random.default_rng(1)
    source = net.input((1, 3), *((0.5, -3) if quantized else ()))
    if quantized:
        weights = [
            net.constant(random.integers(-127, 128, (4, 3), dtype=np.int8), 0.01),
            net.constant(random.integers(-999, 999, (4, 4), dtype=np.int16), 0.001),
            net.constant(np.ones(2, np.int32), 0.00001),
        ]
        kept = net.activation((1, 16), 0.01, dtype="int16")
    else:
        weights = [net.constant(np.ones(shape, np.float32)) for shape in ((4, 3), (4, 4), (2,))]
        kept = net.activation((1, 16))
    net.tensors[kept].is_variable = True
    output = net.activation((1, 2), 0.1 if quantized else None)
    net.operator("SVDF", [source, *weights, kept], output, "SVDFOptions", Rank=2)
    net.outputs = [output]
    parse_tflite(net.build(), "net", "net.tflite")
    edit(net)
    assert_tflite_refused(net.build(), *expected)
