"""The float32 kernels for Helium: their C on this machine, their assembly on QEMU, both within 1e-5 of the greatest."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.emulator import run_elf
from mlfbuild.library import Library
from mlfbuild.targets import BOARDS, CPUS
from support.board_c import BOARD_SUPPORT
from support.drawing import Case
from support.host_c import run, run_many_on_host, write_tree
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_run
from support.tflite_builder import Network

Array = npt.NDArray[Any]

NETWORKS = 14
SWEEP_NETWORKS = 150
SHAPES = ((1, 1), (3, 3), (3, 3), (2, 3), (1, 4), (5, 1))


class Layers:
    """A float32 network whose layers are drawn from ``seed``."""

    def __init__(self, seed: int) -> None:
        self.random = np.random.default_rng(seed)
        self.network = Network()
        self.value: Array = np.zeros(0, np.float32)

    def pick(self, *options: Any) -> Any:
        return options[self.random.integers(len(options))]

    def normal(self, *shape: int) -> Array:
        return self.random.normal(size=shape).astype(np.float32)

    def input(self, *shape: int) -> int:
        self.value = self.normal(*shape)
        return self.network.input(shape)

    def options(self, channels: int) -> dict[str, Any]:
        return {"bias": self.normal(channels), "activation": self.pick("NONE", "RELU", "RELU6")}

    def case(self, output: int) -> Case:
        return Case(self.network.build(outputs=[output]), (self.value,))


def conv2d(seed: int) -> Case:
    """A convolution with any window, of 8 to 25 channels."""
    layers = Layers(seed)
    shape, channels = layers.pick(*SHAPES), int(layers.random.integers(8, 26))
    height, width, depth = (int(size) for size in layers.random.integers((9, 9, 1), (12, 15, 9)))
    small = seed % 4 == 0  # than many filters
    image = layers.input(layers.pick(1, 2), height // 4 if small else height, width // 8 if small else width, depth)
    window = {
        "stride": layers.pick((1, 1), (2, 2), (1, 3)),
        "padding": "SAME" if small else layers.pick("SAME", "VALID"),
        "dilation": layers.pick((1, 1), (1, 1), (2, 1), (1, 2)),
    }
    weights = layers.normal(channels, *shape, depth)
    return layers.case(layers.network.conv2d(image, weights, **layers.options(channels), **window))


def depthwise(seed: int) -> Case:
    """A depthwise convolution of 3x3, of 4 to 20 channels."""
    layers = Layers(seed)
    channels = layers.pick(4, 8, 12, 20)
    height, width = (int(size) for size in layers.random.integers((5, 5), (9, 9)))
    image = layers.input(layers.pick(1, 2), height, width, channels)
    window = {
        "stride": layers.pick((1, 1), (2, 2), (1, 3)),
        "padding": layers.pick("SAME", "VALID"),
        "dilation": layers.pick((1, 1), (2, 1), (1, 2)),
    }
    weights = layers.normal(1, 3, 3, channels)
    return layers.case(layers.network.depthwise_conv2d(image, weights, **layers.options(channels), **window))


def fully_connected(seed: int) -> Case:
    """A product with a vector, or with a few rows, of 8 to 40 outputs."""
    layers = Layers(seed)
    depth, channels = layers.pick(1, 3, 4, 7, 64, 129), int(layers.random.integers(8, 41))
    source = layers.input(layers.pick(1, 1, 1, 2, 4), depth)
    return layers.case(
        layers.network.fully_connected(source, layers.normal(channels, depth), **layers.options(channels))
    )


KINDS: dict[str, Callable[[int], Case]] = {
    "CONV_2D": conv2d,
    "DEPTHWISE_CONV_2D": depthwise,
    "FULLY_CONNECTED": fully_connected,
}
CALLS = {
    "CONV_2D": "mlf_conv2d_float_mve",
    "DEPTHWISE_CONV_2D": "mlf_depthwise_conv2d_float_mve",
    "FULLY_CONNECTED": "mlf_(fully_connected|conv2d)_float_mve",
}


def compiled(cases: Sequence[Case], kind: str) -> list[Library]:
    """The libraries of ``cases``; all of them must use the kernels that are tested here."""
    libraries = [compile_bytes(case.model, f"net{index}", "cortex-m55") for index, case in enumerate(cases)]
    assert all(re.search(CALLS[kind], generated(library)) for library in libraries)
    return libraries


def check_on_host(kind: str, seeds: Sequence[int]) -> None:
    cases = [KINDS[kind](seed) for seed in seeds]
    libraries = compiled(cases, kind)
    jobs = [(library, library.modules[0], case.inputs) for library, case in zip(libraries, cases, strict=True)]
    for case, got, seed in zip(cases, run_many_on_host(jobs), seeds, strict=True):
        assert_equal(got[0], tflite_micro_run(case.model, case.inputs)[0], f"{kind} {seed}")


@pytest.mark.parametrize("kind", KINDS)
def test_c_equals_tensorflow_lite_micro(kind: str) -> None:
    check_on_host(kind, range(NETWORKS))


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
def test_c_equals_tensorflow_lite_micro_often(kind: str) -> None:
    check_on_host(kind, range(NETWORKS, NETWORKS + SWEEP_NETWORKS))


_CASE = """
static const float in%(i)d[] = {%(input)s};
static const float wanted%(i)d[] = {%(wanted)s};
static float out%(i)d[%(size)d + 1];

static void run%(i)d(void)
{
    struct tvmgen_net%(i)d_inputs inputs = {(void *)(uintptr_t)in%(i)d};
    struct tvmgen_net%(i)d_outputs outputs = {out%(i)d};
    int wrong = tvmgen_net%(i)d_run(&inputs, &outputs) != 0 || out%(i)d[%(size)d] != 0.0f;
    for (int at = 0; at < %(size)d; at++) {
        wrong += !(fabsf(out%(i)d[at] - wanted%(i)d[at]) <= %(limit)s);
    }
    mlf_board_puts("wrong ");
    mlf_board_put_decimal(wrong);
    mlf_board_puts("\\n");
}
"""


def board_main(cases: Sequence[Case]) -> str:
    """A program that runs each network and prints how many of its outputs are too far from TensorFlow Lite Micro's."""
    text = '#include <math.h>\n#include <stdint.h>\n#include "mlf_board.h"\n'
    for index, case in enumerate(cases):
        wanted = tflite_micro_run(case.model, case.inputs)[0]
        text += f'#include "tvmgen_net{index}.h"\n' + _CASE % {
            "i": index,
            "input": ", ".join(f"{value!s}f" for value in case.inputs[0].reshape(-1).astype(str)),
            "wanted": ", ".join(f"{value!s}f" for value in wanted.reshape(-1).astype(str)),
            "size": wanted.size,
            "limit": f"{1e-5 * float(np.abs(wanted).max()):.9e}f",
        }
    calls = "\n".join(f"    run{index}();" for index in range(len(cases)))
    return f"{text}\nint main(void)\n{{\n{calls}\n    return 0;\n}}\n"


@pytest.mark.parametrize("kind", KINDS)
def test_assembly_equals_tensorflow_lite_micro(kind: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    cases = [KINDS[kind](seed) for seed in range(100, 100 + NETWORKS)]
    for library in compiled(cases, kind):
        write_tree(library, tmp_path)
    (tmp_path / "main.c").write_text(board_main(cases))
    board = BOARDS["mps3-an547"]
    sources = [tmp_path / "main.c", *sorted((tmp_path / "host/src").glob("*.c")), *sorted(BOARD_SUPPORT.glob("*.c"))]
    run([tool("arm-none-eabi-gcc"), *CPUS["cortex-m55"].flags, "-O2", "--specs=nano.specs", "-I",
         tmp_path / "host/include", "-I", BOARD_SUPPORT, *sources, "-nostartfiles", "-L", BOARD_SUPPORT, "-T",
         BOARD_SUPPORT / f"{board.name}.ld", "-Wl,--gc-sections", "-o", tmp_path / "app.elf"])  # fmt: skip
    tool("qemu-system-arm")
    printed = run_elf(tmp_path / "app.elf", board, timeout=120).stdout
    assert re.findall(r"wrong (\d+)", printed) == ["0"] * len(cases)
