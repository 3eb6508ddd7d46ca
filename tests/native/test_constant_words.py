"""Arrays of constants as numbers, which are parameters of graphs, have the bytes of their C initialisers."""

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.kernels import kernel_headers
from mlfbuild.native.lowering.call import Constant, KernelCall
from mlfbuild.native.lowering.dispatch import lower
from mlfbuild.native.passes import run_passes
from mlfbuild.native.settings import CodegenSettings
from mlfbuild.targets import CPUS
from support.lstm_networks import add_lstm
from support.networks import OPERATORS_AND_TYPES, drawn
from support.tflite_builder import Network

CORES = ("cortex-m3", "cortex-m4", "cortex-m55")
STRUCTS = {
    "mlf_channel", "mlf_channels4", "mlf_line_float", "mlf_line_int8", "mlf_line_int16", "mlf_rescale",
    "mlf_wide_channel", "mlf_wide_rescale",
}  # fmt: skip
"""Of which there are arrays."""


def models() -> Iterator[bytes]:
    """One network of every operator and type."""
    for operator, dtype in OPERATORS_AND_TYPES:
        yield from (case.model for case in drawn(operator, dtype, 1))
    for dtype in ("int8", "int16"):
        network = Network()
        source = network.input((2, 3, 5), 0.01 if dtype == "int8" else 1e-5, 0, dtype=dtype)
        yield network.build([add_lstm(network, np.random.default_rng(4), source, 3, dtype)])


def lowered() -> Iterator[KernelCall]:
    """The calls of all operators, on CPUs with different kernels."""
    for model in models():
        graph = run_passes(parse_tflite(model, "net", "net"))
        for core in CORES:
            yield from (lower(graph, node, CodegenSettings(CPUS[core])) for node in graph.nodes)


def arrays(calls: Iterator[KernelCall]) -> Iterator[tuple[str, Constant]]:
    """Each array with the header that declares its type."""
    for call in calls:
        for parameter in call.parameters:
            if isinstance(parameter.argument, Constant) and parameter.argument.length is not None:
                yield call.header, parameter.argument


def test_numbers_are_the_bytes_of_the_initialiser(tmp_path: Path, tool: Callable[[str], str]) -> None:
    found = dict.fromkeys(arrays(lowered()))
    structs = {constant.c_type.removeprefix("struct ") for _, constant in found if "struct" in constant.c_type}
    assert structs == STRUCTS
    lines = ["#include <stdint.h>", "#include <string.h>", "#include <math.h>"]
    lines += [f'#include "{header}"' for header in sorted({header for header, _ in found})]
    checks = []
    for index, (_, constant) in enumerate(found):
        text = constant.initializer
        initializer = text if isinstance(text, str) else "".join(text.pieces())
        assert constant.numbers is not None
        values = constant.numbers()
        assert values.nbytes == constant.size
        content = ", ".join(map(str, np.ascontiguousarray(values).reshape(-1).view(np.uint8).tolist()))
        lines.append(f"static const {constant.c_type} a{index}[{constant.length}] = {initializer};")
        lines.append(f"static const uint8_t b{index}[] = {{{content}}};")
        checks.append(f"sizeof a{index} != sizeof b{index} || memcmp(a{index}, b{index}, sizeof b{index})")
    body = [f"    if ({check}) return {index % 100 + 1};" for index, check in enumerate(checks)]
    (tmp_path / "check.c").write_text("\n".join([*lines, "int main(void)", "{", *body, "    return 0;", "}", ""]))
    for name, data in kernel_headers().items():
        (tmp_path / name).write_bytes(data)
    subprocess.run([tool("gcc"), "-w", tmp_path / "check.c", "-o", tmp_path / "check", "-lm"], check=True)
    subprocess.run([tmp_path / "check"], check=True)
