"""One network four times in one firmware: compiled by mlfbuild and by TVM, for the graph and the AOT executor.

The operators have the same names except for the module's part, and both archives of TVM have a module ``kws_int8``.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.targets import BOARDS
from mlfbuild.usecases.build import build_project as build
from mlfbuild.verify.emulator import run_elf
from support.examples import first_on_push
from support.oracle import tflite_micro_run

MODELS = ("our_aot", "our_graph", "tvm_aot", "tvm_graph")
PROJECT = """\
mlfbuild: 1
targets: {{dut: {{cpu: {cpu}, board: {board}}}}}
models:
  our_aot: {{source: {shared}/models/kws_int8.tflite}}
  our_graph: {{source: {shared}/models/kws_int8.tflite, executor: graph}}
  tvm_aot: {{source: {shared}/archives/kws_int8-aotc.tar, options: {{module-name: tvm_aot}}}}
  tvm_graph: {{source: {shared}/archives/kws_int8-graph.tar, options: {{module-name: tvm_graph}}}}
firmware:
  app: {{sources: [main.c]}}
"""
RUN = """\
static int run_{name}(int8_t *input)
{{
    int8_t output[12];
    struct tvmgen_{name}_inputs inputs = {{input}};
    struct tvmgen_{name}_outputs outputs = {{output}};
    const int32_t status = tvmgen_{name}_run(&inputs, &outputs);
    mlf_board_puts("{name}");
    for (int i = 0; i < 12; i++) {{
        mlf_board_puts(" ");
        mlf_board_put_decimal(output[i]);
    }}
    mlf_board_puts("\\n");
    return status;
}}
"""


def main_c(inputs: np.ndarray) -> str:
    """Return firmware that runs each network with each input twice, because runs must not affect later ones."""
    rows = ",\n".join(f"    {{{', '.join(map(str, case.flat))}}}" for case in inputs)
    calls = " | ".join(f"run_{name}(inputs[i % {len(inputs)}])" for name in MODELS)
    return "\n".join(
        [
            '#include "mlf_board.h"',
            *(f'#include "tvmgen_{name}.h"' for name in MODELS),
            f"static int8_t inputs[{len(inputs)}][490] = {{\n{rows}\n}};",
            *(RUN.format(name=name) for name in MODELS),
            "int main(void)",
            "{",
            "    int status = 0;",
            f"    for (int i = 0; i < {2 * len(inputs)}; i++) {{",
            f"        status |= {calls};",
            "    }",
            "    return status;",
            "}",
            "",
        ]
    )


@pytest.mark.parametrize(("cpu", "board"), first_on_push([("cortex-m4", "mps2-an386"), ("cortex-m55", "mps3-an547")]))
def test_archives_of_mlfbuild_and_tvm_in_one_firmware(
    tmp_path: Path, shared: Path, tool: Callable[..., str], cpu: str, board: str
) -> None:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    vectors = {name: np.load(shared / f"archives/kws_int8-{name}.npz") for name in ("aotc", "graph")}
    inputs = np.concatenate([vectors["aotc"]["in_input_1"], vectors["graph"]["in_input_1"]])
    (tmp_path / "main.c").write_text(main_c(inputs))
    (tmp_path / "mlfbuild.yml").write_text(PROJECT.format(cpu=cpu, board=board, shared=shared))
    project = load(tmp_path / "mlfbuild.yml")
    targets = target_jobs(project)
    (image,) = build(targets, firmware_jobs(project, targets)).firmware
    ran = run_elf(image.elf, BOARDS[board], timeout=120)
    assert ran.exit_status == 0, ran.stdout
    printed = [line.split() for line in ran.stdout.splitlines()]
    assert [line[0] for line in printed] == list(MODELS) * 2 * len(inputs)
    found = {(name, case): [] for name in MODELS for case in range(len(inputs))}
    for index, (name, *values) in enumerate(printed):
        found[name, index // len(MODELS) % len(inputs)].append([int(value) for value in values])
    model = (shared / "models/kws_int8.tflite").read_bytes()
    for case, values in enumerate(inputs):
        expected = tflite_micro_run(model, [values])[0].flatten().tolist()
        assert found["our_aot", case] == found["our_graph", case] == [expected] * 2
    assert found["tvm_aot", 0] == [vectors["aotc"]["out0"].flatten().tolist()] * 2
    assert found["tvm_graph", 1] == [vectors["graph"]["out0"].flatten().tolist()] * 2
    for name in ("tvm_aot", "tvm_graph"):
        assert all(first == second for first, second in (found[name, case] for case in range(len(inputs))))
