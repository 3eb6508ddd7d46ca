"""SVDF with tensors that do not fit, and variables of several operators: one line with place and reason."""

from collections.abc import Callable

import numpy as np
import pytest
from tflite.TensorType import TensorType

from mlfbuild.core.errors import InputFileError, MlfError, UnsupportedModelError
from mlfbuild.native.frontends.tflite import parse_tflite
from support.refusals import Refusal, invalid, malformed, refused
from support.tflite_builder import Network

SOURCE, FEATURE, TIME, BIAS, STATE, OUTPUT = range(6)


def resize(tensor: int, *shape: int) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        spec = net.tensors[tensor]
        spec.shape = list(shape)
        if spec.content:
            spec.content = bytes(int(np.prod(shape)) * {0: 4, 9: 1, 7: 2, 2: 4}[spec.type])

    return edit


def change(tensor: int, **fields: object) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        for name, value in fields.items():
            setattr(net.tensors[tensor], name, value)

    return edit


def options(**fields: int) -> Callable[[Network], None]:
    return lambda net: net.operators[0].options.update(fields)


def operands(*indices: int) -> Callable[[Network], None]:
    return lambda net: net.operators[0].inputs.__setitem__(slice(None), indices)


def computed(tensor: int) -> Callable[[Network], None]:
    def edit(net: Network) -> None:
        net.tensors[tensor].content = b""
        net.inputs.append(tensor)

    return edit


def int8_state(net: Network) -> None:
    """Make the time weights int8, which may have a zero point in the file, unlike int16."""
    change(TIME, type=TensorType.INT8, content=bytes(16), zero_points=[2])(net)
    change(STATE, type=TensorType.INT8)(net)


def shared(net: Network) -> None:
    net.operators.append(net.operators[0])
    net.operators[-1] = type(net.operators[0])(
        net.operators[0].code, net.operators[0].inputs, [net.activation((1, 2))], "SVDFOptions", {"Rank": 2}
    )


PLACE = "operator 0 (SVDF) writing 't5'"
VARIABLE = f"{PLACE}: tensor 4 't4'"
RULE = "SVDF 't5'"

MISTAKES: dict[str, tuple[bool, Callable[[Network], object], type[MlfError], Refusal]] = {
    "a state that is no variable": (
        False, change(STATE, is_variable=False), UnsupportedModelError,
        ("variable-misused", VARIABLE),
    ),
    "a state with content": (
        False, change(STATE, content=bytes(64)), UnsupportedModelError,
        ("variable-misused", VARIABLE),
    ),
    "no state": (False, operands(SOURCE, FEATURE, TIME, BIAS), InputFileError, malformed(PLACE)),
    "an absent state": (False, operands(SOURCE, FEATURE, TIME, BIAS, -1), InputFileError, malformed(PLACE)),
    "a state that is not there": (
        False, operands(SOURCE, FEATURE, TIME, BIAS, 9), InputFileError,
        malformed(PLACE, "9", "6"),
    ),
    "a state of two layers": (
        False, shared, UnsupportedModelError,
        ("variable-misused", "operator 1 (SVDF) writing 't6': tensor 4 't4'", "0", "'t5'"),
    ),
    "a state that is read": (
        False, lambda net: net.add(STATE, STATE), UnsupportedModelError,
        (
            ("variable-misused", "operator 1 (ADD) writing 't6': tensor 4 't4'")
        ),
    ),
    "a state that is returned": (
        False, lambda net: net.outputs.append(STATE), UnsupportedModelError,
        ("variable-misused", "the model's outputs: tensor 4 't4'"),
    ),
    "no weights": (False, operands(SOURCE, -1, TIME, BIAS, STATE), UnsupportedModelError, invalid(RULE, "1")),
    "computed weights": (
        False, computed(TIME), UnsupportedModelError,
        ("input-not-constant", PLACE, "'t2' float32[4, 4]"),
    ),
    "hybrid weights": (
        False, lambda net: (change(FEATURE, type=TensorType.INT8)(net), resize(FEATURE, 4, 3)(net)),
        UnsupportedModelError,
        ("quantization-unsupported", PLACE, "('t1' int8[4, 3] over float32"),
    ),
    "a rank of nothing": (False, options(Rank=0), UnsupportedModelError, invalid(RULE, "4", "0")),
    "a rank that does not fit": (False, options(Rank=3), UnsupportedModelError, invalid(RULE, "4", "3")),
    "other inputs": (
        False, resize(FEATURE, 4, 5), UnsupportedModelError,
        invalid(RULE, "'t1' float32[4, 5]", "[4, 3]"),
    ),
    "other filters": (False, resize(TIME, 3, 4), UnsupportedModelError, invalid(RULE, "'t2' float32[3, 4]", "[4, 4]")),
    "a state of another size": (
        False, resize(STATE, 1, 12), UnsupportedModelError,
        invalid(RULE, "'t4' float32[1, 12]", "[1, 16]"),
    ),
    "an output of another size": (
        False, resize(OUTPUT, 1, 4), UnsupportedModelError,
        invalid(RULE, "'t5' float32[1, 4]", "[1, 2]"),
    ),
    "a bias of another size": (False, resize(BIAS, 3), UnsupportedModelError, invalid(RULE, "'t3' float32[3]")),
    "a sequence": (False, resize(SOURCE, 1, 1, 3), UnsupportedModelError, invalid(RULE, "'t0' float32[1, 1, 3]")),
    "an int16 signal": (
        True, change(SOURCE, type=TensorType.INT16), UnsupportedModelError,
        ("type-unsupported", PLACE, "16", "'t0'"),
    ),
    "a state of another type than its weights": (
        True, change(STATE, type=TensorType.INT8), UnsupportedModelError,
        invalid(RULE, "'t2' int16[4, 4]", "'t4' int8[1, 16]"),
    ),
    "a state of int32": (
        True, change(STATE, type=TensorType.INT32), UnsupportedModelError,
        invalid(RULE, "'t4' int32[1, 16]", "8"),
    ),
    "a state without a scale": (
        True, change(STATE, scales=[], zero_points=[]), UnsupportedModelError,
        invalid(RULE, "'t4' int16[1, 16]"),
    ),
    "an int16 state with a zero point": (
        True, change(STATE, zero_points=[1]), UnsupportedModelError,
        invalid(RULE, "'t4' int16[1, 16]", "0"),
    ),
    "weights with a zero point": (
        True, change(FEATURE, zero_points=[2]), UnsupportedModelError,
        invalid(RULE, "'t1' int8[4, 3]", "0"),
    ),
    "time weights with a zero point": (True, int8_state, UnsupportedModelError, invalid(RULE, "'t2' int8[4, 4]", "0")),
    "weights with a scale for each filter": (
        True, change(FEATURE, scales=[0.1] * 4, zero_points=[0]), UnsupportedModelError,
        invalid(RULE, "'t1' int8[4, 3]"),
    ),
    "scales that cannot be reconciled": (
        True, change(OUTPUT, scales=[1e-30]), UnsupportedModelError,
        invalid(RULE, "1e+2"),
    ),
    "a fused activation of another kind": (
        False, options(FusedActivationFunction=4), UnsupportedModelError,
        ("operator-variant-unsupported", PLACE, "TANH"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("quantized", "edit", "kind", "expected"), MISTAKES.values(), ids=MISTAKES)
def test_one_mistake(
    quantized: bool, edit: Callable[[Network], object], kind: type[MlfError], expected: Refusal
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
    with refused(kind, *expected):
        parse_tflite(net.build(), "net", "net.tflite")
