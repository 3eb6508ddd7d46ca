"""Properties for firmware: no warnings, C++, linking, reentrancy, checked pointers, the model id, sections."""

import subprocess
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from elftools.elf.elffile import ELFFile

from mlfbuild.core.errors import UsageError
from mlfbuild.core.files import sha256
from mlfbuild.library import CompileRequest, Library
from mlfbuild.library.keys import Placement
from mlfbuild.native import NATIVE
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.targets import BOARDS, CPUS
from mlfbuild.verify.emulator import run_elf
from support import int16_networks, mve_float_networks
from support.board_cases import Build, build_program
from support.errors import raises
from support.examples import first_on_push
from support.host_c import SANITIZERS, WARNINGS, build, run, write_tree
from support.kernel_networks import kernel_jobs
from support.native import compile_bytes, request
from support.tflite_builder import Network

Tool = Callable[[str], str]

GLUE = ["-O2", "-ffreestanding", "-nostdlib", "-Wl,--gc-sections", "-Wl,-e,firmware"]


def every_operator(quantized: bool) -> bytes:
    """A network with each operator of the compiler."""
    random = np.random.default_rng(3)
    network = Network()

    def affine(scale: float, zero_point: int = 4) -> dict[str, float]:
        return {"scale": scale, "zero_point": zero_point} if quantized else {}

    def weights(*shape: int) -> np.ndarray:
        if quantized:
            return random.integers(-127, 128, shape, dtype=np.int8)
        return random.normal(0, 1, shape).astype(np.float32)

    scales = [0.02] if quantized else []
    x = network.input((1, 6, 6, 3), **affine(0.05))
    y = network.pad(x, [(0, 0), (1, 1), (1, 1), (0, 1)])
    y = network.conv2d(y, weights(5, 3, 3, 4), weight_scales=scales, **affine(0.5), padding="SAME", activation="RELU6")
    y = network.depthwise_conv2d(y, weights(1, 3, 3, 10), weight_scales=scales, **affine(0.3), dilation=(2, 2))
    y = network.pool2d("MAX", y, (2, 2), padding="SAME")
    y = network.pool2d("AVERAGE", y, (2, 2))
    y = network.add(y, network.mean(y, [1, 2], keep_dims=True, **affine(0.2)), **affine(0.4), activation="RELU")
    y = network.fully_connected(y, weights(6, 10), weight_scales=scales, **affine(0.3), keep_num_dims=True)
    y = network.reshape(y, (1, 54))
    y = network.softmax(y)
    if quantized:
        y = network.quantize(network.quantize(network.dequantize(network.quantize(y, 0.01)), 0.02), 0.03)
    return network.build([y, x])


@pytest.fixture(scope="module", params=["int8", "float32"])
def library(request: pytest.FixtureRequest) -> Library:
    return compile_bytes(every_operator(request.param == "int8"), "net")


@pytest.mark.parametrize("cpu", ["cortex-m0plus", "cortex-m4", "cortex-m7", "cortex-m33", "cortex-m55"])
def test_no_warnings_on_arm(library: Library, tmp_path: Path, tool: Tool, cpu: str) -> None:
    write_tree(library, tmp_path)
    run([tool("arm-none-eabi-gcc"), *CPUS[cpu].flags, "-O2", *WARNINGS, "-I", tmp_path / "host/include",
         "-c", tmp_path / "host/src/net_lib0.c", "-o", tmp_path / "net.o"])  # fmt: skip


def test_header_and_source_compile_as_cxx(library: Library, tmp_path: Path, tool: Tool) -> None:
    write_tree(library, tmp_path)
    (tmp_path / "main.cpp").write_text(
        '#include "tvmgen_net.h"\nint main() { return tvmgen_net_run(nullptr, nullptr); }\n'
    )
    flags = ["-std=c++17", "-Wall", "-Wextra", "-Werror", "-Wpedantic", "-I", tmp_path / "host/include"]
    run([tool("g++"), *flags, "-c", tmp_path / "main.cpp", "-o", tmp_path / "main.o"])
    run(
        [
            tool("gcc"), *WARNINGS, "-I", tmp_path / "host/include", "-c", tmp_path / "host/src/net_lib0.c", "-o",
            tmp_path / "c.o",
        ]
    )  # fmt: skip
    run([tool("g++"), tmp_path / "main.o", tmp_path / "c.o", "-o", tmp_path / "program"])
    assert subprocess.run([tmp_path / "program"]).returncode == 255  # -1: refused


def test_source_needs_no_library(library: Library, tmp_path: Path, tool: Tool) -> None:
    write_tree(library, tmp_path)
    run([tool("gcc"), "-std=c99", "-O1", "-I", tmp_path / "host/include", "-c", tmp_path / "host/src/net_lib0.c",
         "-o", tmp_path / "net.o"])  # fmt: skip
    undefined = run(["nm", "--undefined-only", "--format=posix", tmp_path / "net.o"]).split()
    assert set(undefined) - {"U", "_GLOBAL_OFFSET_TABLE_"} <= {"memcpy", "memset"}
    exported = run(["nm", "--extern-only", "--defined-only", "--format=posix", tmp_path / "net.o"])
    assert {line.split()[0] for line in exported.splitlines()} == {"mlf_net_run", "tvmgen_net_run", "mlf_net_model_id"}


def firmware(library: Library, folder: Path, tool: Tool, call: str, *flags: str) -> Path:
    """A bare ELF for Cortex-M4 with one function, which does ``call``."""
    write_tree(library, folder)
    (folder / "firmware.c").write_text(
        '#include "tvmgen_net.h"\nstruct tvmgen_net_inputs in; struct tvmgen_net_outputs out; char arena[1 << 16];\n'
        f"int firmware(void) {{ return {call}; }}\n"
    )
    run([tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, *GLUE, *flags, "-I", folder / "host/include",
         folder / "firmware.c", folder / "host/src/net_lib0.c", "-lc", "-lgcc", "-o", folder / "app.elf"])  # fmt: skip
    return folder / "app.elf"


def symbols(elf: Path) -> dict[str, str]:
    """Return the section of every symbol."""
    with elf.open("rb") as file:
        parsed = ELFFile(file)
        table = parsed.get_section_by_name(".symtab")
        return {
            symbol.name: parsed.get_section(symbol["st_shndx"]).name
            for symbol in table.iter_symbols()
            if isinstance(symbol["st_shndx"], int)
        }


@pytest.mark.parametrize("flags", [(), ("-ffunction-sections", "-fdata-sections")], ids=["plain", "sections"])
def test_static_workspace_is_dropped_if_the_caller_provides_one(
    tmp_path: Path, tool: Tool, flags: tuple[str, ...]
) -> None:
    library = compile_bytes(every_operator(True))
    own = symbols(firmware(library, tmp_path / "own", tool, "mlf_net_run(&in, &out, arena)", *flags))
    assert "mlf_net_run" in own
    assert "tvmgen_net_workspace" not in own
    static = symbols(firmware(library, tmp_path / "static", tool, "tvmgen_net_run(&in, &out)", *flags))
    assert "tvmgen_net_workspace" in static


@pytest.mark.parametrize("quantized", [True, False])
def test_model_id_is_read_from_the_elf(tmp_path: Path, tool: Tool, quantized: bool) -> None:
    model = every_operator(quantized)
    elf = firmware(compile_bytes(model), tmp_path, tool, "mlf_net_run(&in, &out, arena)", "-fdata-sections")
    assert "mlf_net_model_id" in symbols(elf)
    assert f"mlf:net:{sha256(model)}".encode() in elf.read_bytes()


def test_model_id_stays_without_other_constants(tmp_path: Path, tool: Tool) -> None:
    network = Network()
    network.pool2d("MAX", network.input((1, 4, 4, 1)), (2, 2))
    library = compile_bytes(network.build())
    assert library.modules[0].main[0].constants_size == 0
    assert "mlf_net_model_id" in symbols(
        firmware(library, tmp_path, tool, "tvmgen_net_run(&in, &out)", "-fdata-sections")
    )


def test_model_id_is_the_hash_of_the_compiled_bytes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Another process may replace the file during compilation."""
    source, model = tmp_path / "net.tflite", every_operator(True)
    source.write_bytes(model)
    read = Path.read_bytes

    def replaced_when_read(path: Path) -> bytes:
        data = read(path)
        if path == source:
            source.write_bytes(every_operator(False))
        return data

    monkeypatch.setattr(Path, "read_bytes", replaced_when_read)
    (module,) = NATIVE.compile(CompileRequest("net", source, CPUS["cortex-m4"])).modules
    assert module.model_id == sha256(model)
    assert module.inputs[0].dtype == parse_tflite(model, "net", "net").tensor(module.inputs[0].name).dtype.value


def test_sections(tmp_path: Path, tool: Tool) -> None:
    model = every_operator(True)
    graph = parse_tflite(model, "net", "net")
    placed = compile_graph(graph, request("net", Placement(".rodata.mine", ".bss.fast")), sha256(model))
    for name, library, sections in (
        ("default", compile_bytes(model), {".rodata.tvm", ".bss.noinit.tvm"}),
        ("placed", placed, {".rodata.mine", ".bss.fast"}),
    ):
        write_tree(library, tmp_path / name)
        run([tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, "-O2", "-I", tmp_path / name / "host/include",
             "-c", tmp_path / name / "host/src/net_lib0.c", "-o", tmp_path / f"{name}.o"])  # fmt: skip
        with (tmp_path / f"{name}.o").open("rb") as file:
            found = {section.name: section for section in ELFFile(file).iter_sections()}
        assert sections <= set(found)
        assert found[max(sections)]["sh_type"] == "SHT_PROGBITS"
        assert found[min(sections)]["sh_type"] == "SHT_NOBITS"
        assert found[min(sections)]["sh_size"] == library.modules[0].main[0].workspace_size


@pytest.mark.parametrize(
    ("placement", "code", "key"),
    [
        (Placement(params='.x"'), "invalid-name", "params"),
        (Placement(workspace="a b"), "invalid-name", "workspace"),
        (Placement(params=".same", workspace=".same"), "mixed-section", "workspace"),
    ],
)
def test_invalid_sections_are_rejected(placement: Placement, code: str, key: str) -> None:
    model = every_operator(True)
    with raises(UsageError, code, at=f"net: placement.{key}"):
        compile_graph(parse_tflite(model, "net", "net"), request("net", placement), sha256(model))


_REFUSALS = r"""
#include <stdalign.h>
#include <stddef.h>
#include <stdio.h>
#include "tvmgen_net.h"
int main(void) {
  static alignas(16) char memory[1 << 16], x[1 << 12], y[1 << 12], z[1 << 12];
  struct tvmgen_net_inputs in = {x}, no_in = {NULL}, odd_in = {x + 1};
  struct tvmgen_net_outputs out = {y, z}, no_out = {NULL, z}, odd_out = {y + 2, z + 2};
  printf("%d", mlf_net_run(&in, &out, memory) == 0);
  printf("%d", mlf_net_run(NULL, &out, memory) == MLF_NET_NULL_POINTER);
  printf("%d", mlf_net_run(&in, NULL, memory) == -1);
  printf("%d", mlf_net_run(&no_in, &out, memory) == -1);
  printf("%d", mlf_net_run(&in, &no_out, memory) == -1);
  printf("%d", mlf_net_run(&in, &out, NULL) == -1);
  printf("%d", mlf_net_run(&in, &out, memory + 8) == MLF_NET_MISALIGNED_POINTER);
  printf(" %d%d", mlf_net_run(&odd_in, &out, memory), mlf_net_run(&in, &odd_out, memory));
  return 0;
}
"""


def test_invalid_pointers_are_rejected(library: Library, tmp_path: Path, tool: Tool) -> None:
    tool("gcc")
    write_tree(library, tmp_path)
    printed = run([build(tmp_path, _REFUSALS, ["-O1", *SANITIZERS])])
    aligned_only = library.modules[0].inputs[0].dtype == "float32"
    assert printed == ("1111111 -3-3" if aligned_only else "1111111 00")


_TWO_AT_ONCE = r"""
#include <pthread.h>
#include <stdalign.h>
#include <string.h>
#include "tvmgen_net.h"
static unsigned char x[2][TVMGEN_NET_X_SIZE], y[2][2][TVMGEN_NET_Y_SIZE];
static alignas(16) char workspace[2][TVMGEN_NET_WORKSPACE_SIZE];
static void *work(void *which) {
  const int i = *(int *)which;
  struct tvmgen_net_inputs in = {x[i]};
  struct tvmgen_net_outputs out = {y[1][i]};
  for (int k = 0; k < 300; k++) if (mlf_net_run(&in, &out, workspace[i]) != 0) return which;
  return NULL;
}
int main(void) {
  pthread_t thread[2];
  int which[2] = {0, 1};
  void *failed[2];
  for (int i = 0; i < 2; i++) {
    memset(x[i], 17 + 90 * i, sizeof x[i]);
    struct tvmgen_net_inputs in = {x[i]};
    struct tvmgen_net_outputs out = {y[0][i]};
    if (tvmgen_net_run(&in, &out) != 0) return 1;
  }
  for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, work, &which[i]);
  for (int i = 0; i < 2; i++) pthread_join(thread[i], &failed[i]);
  return failed[0] || failed[1] || memcmp(y[0], y[1], sizeof y[0]) || !memcmp(y[0][0], y[0][1], sizeof y[0][0]);
}
"""


def test_two_threads_with_separate_workspaces(tmp_path: Path, tool: Tool) -> None:
    tool("gcc")
    random = np.random.default_rng(5)
    network = Network()
    x = network.input((1, 12, 12, 2), 0.1, name="x")
    inner = network.conv2d(x, random.integers(-127, 128, (8, 3, 3, 2), dtype=np.int8), weight_scales=[0.01], scale=0.5)
    y = network.conv2d(inner, random.integers(-127, 128, (4, 3, 3, 8), dtype=np.int8), weight_scales=[0.01], scale=2.0)
    network.tensors[y].name = "y"
    write_tree(compile_bytes(network.build()), tmp_path)
    run([build(tmp_path, _TWO_AT_ONCE, ["-O1", "-g", "-fsanitize=thread", "-pthread"])])


_THREADS = r"""
#define RUN_TWICE(net, input_size, output_size)                                                        \
  static alignas(16) unsigned char net##_in[2][input_size], net##_out[2][2][output_size];              \
  static alignas(16) char net##_memory[2][1 << 17];                                                    \
  static int net##_once(int at, int round) {                                                           \
    struct tvmgen_##net##_inputs in = {net##_in[at]};                                                  \
    struct tvmgen_##net##_outputs out = {net##_out[round][at]};                                        \
    return mlf_##net##_run(&in, &out, net##_memory[at]);                                               \
  }                                                                                                    \
  static void *net##_work(void *at) { return net##_once(*(int *)at, 1) ? at : NULL; }                  \
  static int net##_check(void) {                                                                       \
    pthread_t thread[2];                                                                               \
    int which[2] = {0, 1};                                                                             \
    void *failed[2];                                                                                   \
    for (int i = 0; i < 2; i++) {                                                                      \
      for (size_t k = 0; k < sizeof net##_in[i]; k++) net##_in[i][k] = (unsigned char)(k * 37 * (i + 1)) & 0x3f; \
      if (net##_once(i, 0)) return 1;                                                                  \
    }                                                                                                  \
    for (int i = 0; i < 2; i++) pthread_create(&thread[i], NULL, net##_work, &which[i]);               \
    for (int i = 0; i < 2; i++) pthread_join(thread[i], &failed[i]);                                   \
    return failed[0] || failed[1] || memcmp(net##_out[0], net##_out[1], sizeof net##_out[0]);          \
  }
"""


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", ["cortex-m3", "cortex-m4", "cortex-m55"])
def test_two_threads_in_every_kernel(cpu: str, tmp_path: Path, tool: Tool) -> None:
    tool("gcc")
    parts = ["#include <pthread.h>\n#include <stdalign.h>\n#include <string.h>"]
    # A network with a state has one more argument: its memory is not shared between threads in any case.
    jobs = [job for job in kernel_jobs(cpu) if not job[0].modules[0].state_size]
    for library, _, _ in jobs:
        write_tree(library, tmp_path)
        assert library.modules[0].main[0].workspace_size <= 1 << 17
        parts.append(f'#include "tvmgen_{library.modules[0].name}.h"')
    parts.append(_THREADS)
    names = [library.modules[0].name for library, _, _ in jobs]
    for name, (_, (value,), (output,)) in zip(names, jobs, strict=True):
        parts.append(f"RUN_TWICE({name}, {value.nbytes}, {output.nbytes})")
    parts.append(f"int main(void) {{ return {' || '.join(f'{name}_check()' for name in names)}; }}")
    run([build(tmp_path, "\n".join(parts), ["-O1", "-g", "-fsanitize=thread", "-pthread"], together=True)])


_MISALIGNED = r"""
#include <stdalign.h>
#include <string.h>
#include "mlf_board.h"
#include "tvmgen_net.h"
static alignas(16) char x[1 << 12], y[1 << 12], memory[1 << 16];
int main(void) {
#if !defined(__ARM_FEATURE_UNALIGNED)
  *(volatile unsigned *)0xE000ED14 |= 1u << 3; /* CCR.UNALIGN_TRP: even loads of words trap */
#endif
  for (int at = 0; at < 8; at++) {
    struct tvmgen_net_inputs in = {x + at}, in_place = {x};
    struct tvmgen_net_outputs out = {y}, out_at = {y + at};
    if (mlf_net_run(&in, &out, memory) != (at % SIZE ? MLF_NET_MISALIGNED_POINTER : 0)) return 1;
    if (mlf_net_run(&in_place, &out_at, memory) != (at % SIZE ? MLF_NET_MISALIGNED_POINTER : 0)) return 2;
    if (mlf_net_run(&in_place, &out, memory + at) != (at && NEEDS_MEMORY ? MLF_NET_MISALIGNED_POINTER : 0)) return 3;
  }
  mlf_board_puts("refused\n");
  return 0;
}
"""


_ANY, _ALIGNED = ("-O2",), ("-O2", "-mno-unaligned-access")


@pytest.mark.parametrize(
    ("cpu", "board", "flags"),
    first_on_push(
        [
            ("cortex-m4", "mps2-an386", _ANY),
            ("cortex-m55", "mps3-an547", _ALIGNED),
            ("cortex-m4", "mps2-an386", _ALIGNED),
            ("cortex-m55", "mps3-an547", _ANY),
        ],
        2,
    ),
)
def test_misaligned_buffers_never_trap(
    cpu: str, board: str, flags: tuple[str, ...], tmp_path: Path, tool: Tool
) -> None:
    for case, size in ((int16_networks.conv2d(3), 2), (mve_float_networks.conv2d(8), 4)):
        library = compile_bytes(case.model, cpu=cpu)
        folder = tmp_path / str(size)
        write_tree(library, folder)
        needed = int(library.modules[0].main[0].workspace_size > 0)
        text = f"#define SIZE {size}\n#define NEEDS_MEMORY {needed}\n{_MISALIGNED}"
        image = build_program(text, cpu, folder, tool, Build(flags), ["host/src/net_lib0.c"])
        assert run_elf(image, BOARDS[board], timeout=60).stdout == "refused\n"
