"""Networks of every kind in one firmware take turns in one workspace, with the results that they have alone."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.archive import write_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.jobs import firmware_jobs, load, target_jobs
from mlfbuild.library import CompileRequest
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.usecases.build import BuildReport, build_project as build
from mlfbuild.verify.emulator import run_elf
from support import aot_archives
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

Array = npt.NDArray[Any]
MODELS = ["ours", "graph_of_ours", "archive_of_ours", "packed", "many", "sum", "kernels", "two"]
PROJECT = """\
mlfbuild: 1
targets: {{m4: {{cpu: cortex-m4, board: mps2-an386}}}}
models:
  ours: {{source: net.tflite}}
  graph_of_ours: {{source: net.tflite, executor: graph}}
  archive_of_ours: {{source: archive_of_ours.tar}}
  packed: {{source: {archives}/conv-aotp.tar, options: {{module-name: packed}}}}
  many: {{source: {archives}/many-aotc.tar}}
  kernels: {{source: kernels.tar, options: {{module-name: kernels}}}}
  two: {{source: {archives}/multi-mixed.tar}}
  sum: {{source: {archives}/operator-add.tar}}
firmware:
  app: {{sources: [main.c]}}
"""


@dataclass(frozen=True)
class Call:
    """A run function, its inputs and its right outputs, in the order of its structs."""

    name: str
    inputs: Sequence[Array]
    outputs: Sequence[Array]

    def data(self) -> str:
        """Return the arrays of the call in C."""
        arrays = {f"{self.name}_in{at}": array for at, array in enumerate(self.inputs)}
        arrays |= {f"{self.name}_right{at}": array for at, array in enumerate(self.outputs)}
        return "\n".join(
            f"static _Alignas(8) uint8_t {name}[] = {{{', '.join(map(str, array.tobytes()))}}};"
            for name, array in arrays.items()
        )

    def code(self) -> str:
        """Return a function that runs it and returns whether the result is wrong."""
        sources = ", ".join(f"{self.name}_in{at}" for at in range(len(self.inputs)))
        results = ", ".join(f"out[{at}]" for at in range(len(self.outputs)))
        tests = "".join(f" || differ(out[{at}], {self.name}_right{at}, {exact(array)}, sizeof {self.name}_right{at})"
                        for at, array in enumerate(self.outputs))  # fmt: skip
        return f"""
static int {self.name}(void)
{{
    struct tvmgen_{self.name}_inputs inputs = {{{sources}}};
    struct tvmgen_{self.name}_outputs outputs = {{{results}}};
    memset(out, 0, sizeof out);
    return tvmgen_{self.name}_run(&inputs, &outputs) != 0{tests};
}}
"""


def exact(array: Array) -> int:
    """Return 1 if results must be equal, 0 for floats, which TVM's executor computed on another machine."""
    return int(array.dtype.kind != "f")


MAIN = r"""
#include <math.h>
#include <stdint.h>
#include <string.h>
#include "mlf_board.h"
%(includes)s
static _Alignas(8) uint8_t out[3][1024];
static int differ(const void *got, const void *right, int exact, uint32_t size)
{
    if (exact) return memcmp(got, right, size) != 0;
    for (uint32_t i = 0; i < size / 4; i++) {
        if (!(fabsf(((const float *)got)[i] - ((const float *)right)[i]) <= 1e-5f)) return 1;
    }
    return 0;
}
%(data)s
%(code)s
int main(void)
{
    static int (*const calls[])(void) = {%(names)s};
    static const char *const names[] = {%(quoted)s};
    enum { COUNT = sizeof calls / sizeof *calls };
    int wrong = 0;
    for (int i = 0; i < COUNT; i++) {
        for (int j = 0; j < COUNT; j++) { /* each behind each of the others */
            if (calls[i]() || calls[j]()) {
                mlf_board_puts(names[i]);
                mlf_board_puts(" or ");
                mlf_board_puts(names[j]);
                mlf_board_puts(" is wrong\n");
                wrong = 1;
            }
        }
    }
    return wrong;
}
"""


def calls(archives: Path, model: bytes) -> list[Call]:
    x = np.random.default_rng(5).integers(-128, 128, (1, 64), np.int8)
    y = tflite_micro_run(model, [x])[0]
    names = ("conv-aotp", "many-aotc", "multi-mixed.mod1", "multi-mixed.mod2")
    packed, many, one, other = (np.load(archives / f"{name}.npz") for name in names)
    return [
        *(Call(name, [x], [y]) for name in ("ours", "graph_of_ours", "archive_of_ours")),
        Call("packed", [packed["in_data"]], [packed["out0"]]),
        Call("many", [many["in_x"], many["in_y"]], [many["out0"], many["out1"], many["out2"]]),
        Call("kernels", [aot_archives.A[0], aot_archives.B[0]], [aot_archives.Y[0]]),
        Call("mod1", [one["in_a"], one["in_b"]], [one["out0"]]),
        Call("mod2", [other["in_data"]], [other["out0"]]),
        Call("add", [np.array([3, -4], np.int8), np.array([5], np.int8)], [np.array([8, 1], np.int8)]),
    ]


@pytest.fixture
def folder(tmp_path: Path, shared: Path, tool: Callable[..., str]) -> Path:
    tool("cmake", "ninja", "arm-none-eabi-gcc", "qemu-system-arm")
    random = np.random.default_rng(3)
    net = Network()
    source = net.input((1, 64), scale=0.05, zero_point=3)
    weights = [random.integers(-127, 128, shape, np.int8) for shape in ((600, 64), (32, 600))]
    bias = [random.integers(-500, 500, size, np.int32) for size in (600, 32)]
    between = net.fully_connected(source, weights[0], bias[0], weight_scales=[0.01], scale=0.5)
    model = net.build([net.fully_connected(between, weights[1], bias[1], weight_scales=[0.01], scale=2.0)])
    (tmp_path / "net.tflite").write_bytes(model)
    options = {"layout": "single-file"}
    request = CompileRequest("archive_of_ours", tmp_path / "net.tflite", CPUS["cortex-m4"], options=options)
    write_archive(compiler_called("native").compile(request), tmp_path / "archive_of_ours.tar")
    (tmp_path / "kernels.tar").write_bytes(aot_archives.aot_archive())
    made = calls(shared / "archives", model)
    text = {
        "includes": "\n".join(f'#include "tvmgen_{call.name}.h"' for call in made),
        "data": "\n".join(call.data() for call in made),
        "code": "".join(call.code() for call in made),
        "names": ", ".join(call.name for call in made),
        "quoted": ", ".join(f'"{call.name}"' for call in made),
    }
    (tmp_path / "main.c").write_text(MAIN % text)
    return tmp_path


def built(folder: Path, shared: Path, more: str) -> BuildReport:
    (folder / "mlfbuild.yml").write_text(PROJECT.format(archives=shared / "archives") + more)
    project = load(folder / "mlfbuild.yml")
    targets = target_jobs(project)
    return build(targets, firmware_jobs(project, targets))


def share(models: Sequence[str]) -> str:
    """Return the key that lists ``models``."""
    return f"share-workspace: [{', '.join(models)}]\n"


def workspaces(image: Path) -> list[tuple[str, int]]:
    """Return name and bytes of each static workspace in ``image``; ``mlf_place_of_*`` are pointers to them."""
    with image.open("rb") as file:
        symbols = [*ELFFile(file).get_section_by_name(".symtab").iter_symbols()]
    found = [(symbol.name, symbol["st_size"]) for symbol in symbols if symbol.name.endswith("_workspace")]
    return [(name, size) for name, size in found if "_const_" not in name and not name.startswith("mlf_place_of_")]


def test_networks_of_any_compiler_take_turns_in_one_workspace(folder: Path, shared: Path) -> None:
    image = built(folder, shared, share(MODELS)).firmware[0].elf
    assert workspaces(image) == [("mlf_shared_workspace", 58928)]
    ran = run_elf(image, BOARDS["mps2-an386"], timeout=120)
    assert (ran.stdout, ran.exit_status) == ("", 0)


@pytest.mark.sweep
def test_key_rebuilds_its_models(folder: Path, shared: Path) -> None:
    report = built(folder, shared, "")
    image = report.firmware[0].elf
    assert sum(size for _, size in workspaces(image)) > 2 * 58928
    ran = run_elf(image, BOARDS["mps2-an386"], timeout=120)
    assert (ran.stdout, ran.exit_status) == ("", 0)
    for models, changed in ((MODELS, MODELS), (MODELS, []), (MODELS[:-3], MODELS[-3:])):
        report = built(folder, shared, share(models))
        assert {result.job.model for result in report.models if result.compiled} == set(changed)
    assert len(workspaces(image)) == 3
