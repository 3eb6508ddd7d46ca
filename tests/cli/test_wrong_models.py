"""Models with unusable shapes, scales and numbers: exit status 4, one line, nothing written."""

import math
import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from support.command import Folder
from support.tflite_builder import Network

Build = Callable[[Network], object]

COMPILE = ("compile", "wrong.tflite", "--cpu", "cortex-m4", "-o", "out/a.tar")
GREATEST = 2**31 - 1


def refusal(folder: Folder, *arguments: str) -> Any:
    """Return the error of a command that ends with status 4 and one line."""
    ended = folder.run(*arguments, "--format", "json")
    assert (ended.status, ended.out, ended.err.count("\n")) == (4, "", 1), ended
    assert "\n" not in ended.error["message"]
    return ended.error


def number(digits: str) -> int:
    return int(digits.replace(",", ""))


def edited(build: Build, index: int, **fields: object) -> Build:
    """Return ``build`` with other ``fields`` of tensor ``index``."""

    def build_and_edit(net: Network) -> None:
        build(net)
        for name, value in fields.items():
            setattr(net.tensors[index], name, value)

    return build_and_edit


def options(build: Build, **fields: float) -> Build:
    """Return ``build`` with other options of the first operator."""

    def build_and_edit(net: Network) -> None:
        build(net)
        net.operators[0].options.update(fields)

    return build_and_edit


def image(net: Network, scale: float | None = 0.1) -> int:
    return net.input((1, 4, 4, 2), scale, name="x")


def conv2d(net: Network, **window: object) -> int:
    return net.conv2d(image(net), np.ones((3, 3, 3, 2), np.int8), weight_scales=[0.1], scale=1, **window)


def depthwise(net: Network, **window: object) -> int:
    return net.depthwise_conv2d(image(net), np.ones((1, 3, 3, 2), np.int8), weight_scales=[0.1], scale=1, **window)


def huge(net: Network) -> None:
    """Add tensors of 1 GiB, three of which are in use at once."""
    first = net.pool2d("MAX", net.input((1, 1, 1 << 15, 1 << 13), name="x"), (1, 1))
    net.add(net.pool2d("MAX", first, (1, 2), padding="SAME"), net.pool2d("MAX", first, (2, 1), padding="SAME"))


def crowd(net: Network) -> None:
    """Add very many tensors that are in use at once."""
    x = net.input((2500, 2))
    net.many("SPLIT", [net.integers(0), x], [net.like(x, (1, 2)) for _ in range(2500)], "SplitOptions", NumSplits=2500)
    net.outputs = net.operators[0].outputs[:1]


def moved(net: Network, name: str, shape: tuple[int, ...], *values: list[int] | list[list[int]], **rest: float) -> None:
    """Add the operator ``name`` on a 1x4 tensor, with 64-bit constants."""
    source = net.input((1, 4), 0.1, name="x")
    kind = {"PAD": "PadOptions", "SLICE": "SliceOptions", "TILE": "TileOptions"}[name]
    net.move(name, source, shape, *(net.integers(each, "int64") for each in values), kind=kind, **rest)


def expand_dims(net: Network, axis: int = 0) -> None:
    net.operator("EXPAND_DIMS", [net.input((2, 3), 0.1, name="x"), net.integers(axis)], net.activation((1, 2, 3), 0.1))


def resize(net: Network) -> None:
    source, wanted = net.input((1, 4, 4, 1), 0.1), net.integers([1 << 28, 4])
    net.move("RESIZE_NEAREST_NEIGHBOR", source, (1, 1 << 28, 4, 1), wanted, kind="ResizeNearestNeighborOptions")


WRONG: dict[str, tuple[Build, str, str, str]] = {
    "tensor of more than 32 bits": (
        edited(conv2d, 0, shape=[1 << 16, 1 << 16, 1, 2]),
        "operator-invalid", "wrong.tflite: operator 0 (CONV_2D) writing 't2': tensor 0 'x'", "[65536, 65536, 1, 2]",
    ),
    "arena of more than 32 bits": (huge, "arena-too-large", "wrong", "3221225472 bytes"),
    "filter of a pool": (
        options(lambda net: net.pool2d("MAX", image(net), (2, 2), padding="SAME"), FilterHeight=GREATEST),
        "operator-beyond-limit", "wrong: MAX_POOL_2D 't1'", "8388608 pixels",
    ),
    "filter of a pool in both dimensions": (
        lambda net: net.pool2d("AVERAGE", image(net), (70000, 70000), padding="SAME"),
        "operator-beyond-limit", "wrong: AVERAGE_POOL_2D 't1'", "8388608 pixels",
    ),
    "stride of a pool": (
        lambda net: net.pool2d("AVERAGE", image(net), (2, 2), stride=(GREATEST, GREATEST)),
        "operator-beyond-limit", "wrong: AVERAGE_POOL_2D 't1'", "536870912 rows",
    ),
    "dilation with padding SAME": (
        lambda net: conv2d(net, padding="SAME", dilation=(1 << 30, 1 << 30)),
        "operator-beyond-limit", "wrong: CONV_2D 't2'", "536870912 rows",
    ),
    "dilation of a depthwise convolution": (
        lambda net: depthwise(net, padding="SAME", dilation=(GREATEST, 1)),
        "operator-beyond-limit", "wrong: DEPTHWISE_CONV_2D 't2'", "536870912 rows",
    ),
    "stride of a convolution": (
        lambda net: conv2d(net, padding="SAME", stride=(GREATEST, GREATEST)),
        "operator-beyond-limit", "wrong: CONV_2D 't2'", "536870912 rows",
    ),
    "paddings that overflow 64 bits": (
        lambda net: moved(net, "PAD", (1, 4), [[0, 0], [(1 << 63) - 1, (1 << 63) - 1]]),
        "operator-invalid", "wrong.tflite: PAD 't2'", "[1, 18446744073709551618]",
    ),
    "paddings that cancel out": (
        lambda net: moved(net, "PAD", (1, 4), [[0, 0], [1 << 62, -(1 << 62)]]),
        "operator-invalid", "wrong.tflite: PAD 't2'", f"({1 << 62}, {-(1 << 62)})",
    ),
    "multiples that overflow 32 bits": (
        lambda net: moved(net, "TILE", (1, 4), [1 << 32, 1 << 32]),
        "operator-invalid", "wrong.tflite: TILE 't2'", "[4294967296, 17179869184]",
    ),
    "slice far beyond": (
        lambda net: moved(net, "SLICE", (1, 2), [0, (1 << 63) - 1], [1, 2]),
        "operator-invalid", "wrong.tflite: SLICE 't3'", "9223372036854775807",
    ),
    "zero-size tensor": (
        edited(conv2d, 2, shape=[1, 0, 2, 3]),
        "tensor-empty", "wrong.tflite: output 't2'", "[1, 0, 2, 3]",
    ),
    "dynamic dimension": (
        edited(conv2d, 0, signature=[1, -1, -1, 2]), "shape-dynamic", "wrong.tflite: input 'x'", "[1, -1, -1, 2]",
    ),
    "quantisation of another kind": (
        edited(conv2d, 0, has_custom_quantization=True),
        "quantization-unsupported", "wrong.tflite: operator 0 (CONV_2D) writing 't2': tensor 0 'x'", "custom",
    ),
    "scales along the input channels": (
        edited(conv2d, 1, scales=[0.1, 0.2, 0.3], zero_points=[0, 0, 0], axis=1),
        "operator-invalid", "wrong.tflite: CONV_2D 't2'", "3 scales along dimension 1",
    ),
    "scale not a number": (
        edited(conv2d, 2, scales=[math.nan]),
        "operator-invalid", "wrong.tflite: operator 0 (CONV_2D) writing 't2': tensor 2 't2'", "scale",
    ),
    "output's scale below all numbers": (
        edited(conv2d, 2, scales=[1e-45]), "operator-invalid", "wrong.tflite: CONV_2D 't2'", "7.13624e+42",
    ),
    "zero point of what is only moved": (
        edited(expand_dims, 0, zero_points=[300]), "zero-point-outside-type", "wrong: 'x' int8[2, 3]", "300",
    ),
    "rows that would fill a table of a GiB": (
        resize, "operator-beyond-limit", "wrong: RESIZE_NEAREST_NEIGHBOR 't2'", "1048576 rows or columns",
    ),
    "too many tensors at once": (crowd, "too-many-live-tensors", "wrong", "2499"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_models_with_one_mistake_are_refused(folder: Folder, name: str) -> None:
    build, code, place, fact = WRONG[name]
    net = Network()
    build(net)
    folder.write("wrong.tflite", net.build())
    error = refusal(folder, *COMPILE)
    assert (error["code"], error["place"]) == (code, place)
    assert fact in error["reason"]
    assert not (folder.root / "out").exists()


def test_project_with_an_unsupported_model_builds_nothing(folder: Folder) -> None:
    net = Network()
    expand_dims(net)
    net.tensors[0].zero_points = [300]
    folder.write("models/beta.tflite", net.build())
    before = folder.files()
    error = refusal(folder, "build", "-q")
    assert error["code"] == "zero-point-outside-type" and error["place"].endswith("beta: 'x' int8[2, 3]")
    assert not [path for path in folder.files() - before if path.startswith("build/mlf/pc/beta")]


def test_too_large_arena_names_the_option_that_helps(folder: Folder) -> None:
    net = Network()
    weights = np.ones((4, 3, 3, 4), np.int8)
    wide = net.conv2d(net.input((1, 1200, 1200, 4), 0.1), weights, weight_scales=[0.1], scale=1, padding="SAME")
    folder.write("wide.tflite", net.build([net.pool2d("MAX", wide, (2, 2), stride=(2, 2))]))
    project = "mlfbuild: 1\ntargets: {m4: {cpu: cortex-m4, board: mps2-an386}}\nmodels: {wide: {source: wide.tflite}}\n"
    folder.write("mlfbuild.yml", project)
    error = refusal(folder, "build", "-q")
    assert error["code"] == "arena-larger-than-ram" and error["place"].endswith("wide.tflite: module 'wide'")
    arena, ram = map(number, re.findall(r"([\d,]+) bytes", error["reason"]))
    (smallest,) = map(number, re.findall(r"([\d,]+) bytes", error["hint"]))
    assert arena > ram == 4194304 > smallest and "{memory: smallest}" in error["hint"]
    assert not [path for path in folder.files() if path.startswith("build/mlf/m4/wide")]
