"""The printed files: golden files, determinism, facts in the header and in the metadata."""

import ast
import os
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import mlfbuild
from mlfbuild.compilers import COMPILERS, compiler_called
from mlfbuild.core import sha256
from mlfbuild.core.errors import InputFileError, UnsupportedModelError, UsageError
from mlfbuild.library import CompileRequest, Library, ModuleTarget, content
from mlfbuild.library.content import Stored
from mlfbuild.native.graph import Activation, DType, Tensor
from mlfbuild.native.graph.ops import (
    Add,
    AveragePool2D,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    LogSoftmax,
    Mean,
    Reshape,
    Softmax,
)
from mlfbuild.native.kernels import kernel_headers
from mlfbuild.targets import CPUS
from support.errors import raises
from support.host_c import build, run, write_tree
from support.native import compile_network, generated, request
from support.sketch import Sketch
from support.tflite_builder import Network

Golden = Callable[[str, str], None]


def fixed(shape: tuple[int, ...]) -> np.ndarray:
    """Return weights that are easy to check by eye."""
    return (np.arange(np.prod(shape)) % 7 - 3).astype(np.int8).reshape(shape)


def separable(cpu: str = "cortex-m4") -> Library:
    """Return two blocks of equal shapes, which share their functions, and a classifier."""
    s = Sketch("separable")
    source = s.tensor("image", 1, 4, 4, 4)
    for block, sign in ((1, np.int8(1)), (2, np.int8(-1))):
        s.weights(f"dw{block}", data=fixed((1, 3, 3, 4)) * sign)
        s.weights(f"pw{block}", data=fixed((4, 1, 1, 4)) * sign)
        s.node(DepthwiseConv2D(padding=((1, 1), (1, 1)), activation=Activation.RELU), source, f"dw{block}",
               s.tensor(f"block {block} depthwise", 1, 4, 4, 4))  # fmt: skip
        source = s.node(Conv2D(), f"block {block} depthwise", f"pw{block}", s.tensor(f"block {block}", 1, 4, 4, 4))
    s.node(Add(), source, "block 1", s.tensor("sum", 1, 4, 4, 4))
    s.node(Reshape(), "sum", s.tensor("flat", 1, 64))
    s.node(FullyConnected(), "flat", s.weights("w", data=fixed((3, 64))), s.tensor("logits", 1, 3, scale=0.5))
    s.node(Softmax(), "logits", s.tensor("classes", 1, 3, scale=1 / 256, zero_point=-128))
    return compile_network(s.graph(["image"], ["classes"]), cpu=cpu)


def real() -> Library:
    s = Sketch("real")
    s.tensors.append(Tensor("w", (2, 3), DType.FLOAT32, None, np.array([[0.1, -1e-7, 3e38], [0, -2.5, 1]], np.float32)))
    s.node(FullyConnected(Activation.RELU), s.real("x", 1, 3), "w", s.real("hidden", 1, 2))
    s.node(Softmax(), "hidden", s.real("y", 1, 2))
    return compile_network(s.graph(["x"], ["y"]))


def copies() -> Library:
    s = Sketch("copies")
    s.node(Reshape(), s.tensor("x", 2, 3), s.tensor("flat", 6))
    s.tensors.append(Tensor("limits", (2,), DType.INT32, None, np.array([-(2**31), 2**31 - 1], np.int32)))
    return compile_network(s.graph(["x"], ["flat", "x", "limits"]))


@pytest.mark.parametrize("make", [separable, real, copies])
def test_golden_files(make: Callable[[], Library], golden: Golden) -> None:
    library = make()
    source = generated(library)
    golden(source, f"{make.__name__}_lib0.c")
    golden(generated(library, f"tvmgen_{make.__name__}.h"), f"tvmgen_{make.__name__}.h")
    golden(library.modules[0].source_text.decode(), f"{make.__name__}.txt")


def test_golden_files_have_no_long_lines_or_trailing_blanks() -> None:
    for library in (separable(), real(), copies()):
        for file in library.modules[0].codegen:
            text = file.data.decode()
            assert text.endswith("\n")
            assert not text.endswith("\n\n")
            for line in text.splitlines():
                assert len(line) <= 120
                assert line == line.rstrip()
                assert line.isascii()


_DIGEST = """
import hashlib, sys
from pathlib import Path
from mlfbuild.compilers import compiler_called
from mlfbuild.library import CompileRequest
from mlfbuild.targets import CPUS
(module,) = compiler_called("native").compile(CompileRequest("net", Path(sys.argv[1]), CPUS["cortex-m4"])).modules
digest = hashlib.sha256(repr((module.main, module.operator_functions, module.source_text)).encode())
for file in module.codegen:
    digest.update(str(file.path).encode() + file.data)
print(digest.hexdigest())
"""


def test_large_source_is_the_same_in_a_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    model = tmp_path / "net.tflite"
    network = Network()
    source = network.input((1, 300), scale=0.05)
    weights = np.random.default_rng(0).integers(-127, 128, (400, 300), np.int8)
    model.write_bytes(network.build([network.fully_connected(source, weights, weight_scales=[0.01], scale=0.1)]))
    wanted = CompileRequest("net", model, CPUS["cortex-m4"])
    in_memory = compiler_called("native").compile(wanted)
    monkeypatch.setattr(content, "_IN_MEMORY", 1000)
    in_file = compiler_called("native").compile(wanted)
    kinds = [type(next(file for file in library.modules[0].codegen if file.path.suffix == ".c").content)
             for library in (in_memory, in_file)]  # fmt: skip
    assert kinds == [bytes, Stored]
    assert in_memory == in_file


def test_same_input_same_bytes(tmp_path: Path) -> None:
    random = np.random.default_rng(1)
    network = Network()
    y = network.input((1, 8, 8, 3), 0.1)
    for _ in range(3):
        weights = random.integers(-127, 128, (3, 3, 3, 3), dtype=np.int8)
        y = network.add(y, network.conv2d(y, weights, weight_scales=[0.01], scale=0.2, padding="SAME"), scale=0.3)
    digests = set()
    for seed, folder in (("0", "one"), ("1", "two"), ("4242", "a longer folder")):
        path = tmp_path / folder / "net.tflite"
        path.parent.mkdir()
        path.write_bytes(network.build())
        env = {**os.environ, "PYTHONHASHSEED": seed, "TZ": f"UTC+{seed[0]}"}
        command = [sys.executable, "-c", _DIGEST, path]
        digests.add(
            subprocess.run(command, cwd=path.parent, env=env, capture_output=True, text=True, check=True).stdout
        )
    assert len(digests) == 1


_FACTS = r"""
#include <stdio.h>
#include "tvmgen_separable.h"
int main(void) {
  const int shape[] = MLF_SEPARABLE_IMAGE_SHAPE;
  printf("%d %d %d %d %d\n", TVMGEN_SEPARABLE_IMAGE_SIZE, TVMGEN_SEPARABLE_CLASSES_SIZE,
         TVMGEN_SEPARABLE_WORKSPACE_SIZE, MLF_SEPARABLE_WORKSPACE_ALIGNMENT, MLF_SEPARABLE_IMAGE_RANK);
  printf("%d %d %d %d\n", (int)(sizeof shape / sizeof *shape), shape[3], MLF_SEPARABLE_IMAGE_DIM1,
         MLF_SEPARABLE_CLASSES_ELEMENTS);
  printf("%.8g %d %.8g %d\n", MLF_SEPARABLE_IMAGE_SCALE, MLF_SEPARABLE_IMAGE_ZERO_POINT, MLF_SEPARABLE_CLASSES_SCALE,
         MLF_SEPARABLE_CLASSES_ZERO_POINT);
  for (float real = -14.0f; real <= 14.0f; real += 3.5f) printf("%d ", mlf_separable_quantize_image(real));
  printf("%d %d\n", mlf_separable_quantize_image(0.25f), mlf_separable_quantize_image(-0.25f));
  printf("%.8g %.8g\n", mlf_separable_dequantize_image(127), mlf_separable_dequantize_classes(-128));
  puts(mlf_separable_model_id);
  return 0;
}
"""


def test_facts_in_the_header(tmp_path: Path, tool: Callable[[str], str]) -> None:
    tool("gcc")
    library = separable()
    write_tree(library, tmp_path)
    assert run([build(tmp_path, _FACTS)]).splitlines() == [
        f"64 3 {library.modules[0].main[0].workspace_size} 16 4",
        "4 4 4 3",
        "0.1 3 0.00390625 -128",
        "-128 -102 -67 -32 3 38 73 108 127 6 0",
        "12.400001 0",
        f"mlf:separable:{library.modules[0].model_id}:{mlfbuild.__version__}",
    ]


def test_metadata_matches_the_code() -> None:
    (module,) = separable().modules
    (main,) = module.main
    source = generated(separable())
    assert module.targets == (ModuleTarget("c -keys=arm_cpu,cpu -mcpu=cortex-m4"),)
    assert (module.name, module.executor, module.params) == ("separable", "aot", {})
    assert main.io_size == 64 + 3
    assert [(info.name, info.dtype, info.size, info.shape) for info in module.inputs] == [
        ("image", "int8", 64, (1, 4, 4, 4))
    ]
    assert [(info.scale, info.zero_point) for info in module.outputs] == [(1 / 256, -128)]
    defined = re.findall(r"^MLF_NOINLINE static void (\w+)\(", source, re.MULTILINE)
    assert [function.name for function in module.operator_functions] == defined
    assert len(defined) == 5  # one for both depthwise convolutions, one for both pointwise ones
    arrays = re.findall(r"^TVMGEN\w+ static const (.*?) \w+(?:\[(\d+)\])? = ", source, re.MULTILINE)
    sizes = {"int8_t": 1, "uint32_t": 4, "struct mlf_channel": 12, "struct mlf_quantization": 16,
             "struct mlf_add_linear": 12, "struct mlf_softmax_quantization": 12}  # fmt: skip
    assert main.constants_size == sum(sizes[c_type] * int(length or 1) for c_type, length in arrays)


def test_constants_size_is_the_section_of_the_object(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Every constant is aligned to 16, so the section is larger by the padding and the model id."""
    library = separable()
    write_tree(library, tmp_path)
    run([tool("arm-none-eabi-gcc"), *CPUS["cortex-m4"].flags, "-I", tmp_path / "host/include", "-c",
         tmp_path / "host/src/separable_lib0.c", "-o", tmp_path / "net.o"])  # fmt: skip
    symbols = re.findall(r"^\S+ (\S+) [rR] (\w+)$", run(["nm", "-S", tmp_path / "net.o"]), re.MULTILINE)
    sizes = {name: int(size, 16) for size, name in symbols}
    del sizes["mlf_separable_model_id"]
    assert sum(sizes.values()) == library.modules[0].main[0].constants_size


@pytest.mark.parametrize("cpu", ["host", "cortex-m4", "cortex-m55"])
def test_archive_has_the_kernel_headers_that_its_code_includes(cpu: str, tmp_path: Path) -> None:
    library = separable(cpu)
    write_tree(library, tmp_path)
    source = tmp_path / "host/src/separable_lib0.c"
    folder = source.parent / "mlfbuild"
    waiting, reached = [source], set()
    while waiting:
        file = waiting.pop()
        for name in re.findall(r'^\s*#\s*include\s+"([^"]+)"', file.read_text(), re.MULTILINE):
            header = file.parent / name
            if name != "tvmgen_separable.h" and header not in reached:
                reached.add(header)
                waiting.append(header)
    assert reached == set(folder.iterdir())
    assert 5 < len(reached) < len(kernel_headers())


def test_source_has_the_hash_of_its_kernel_headers() -> None:
    library = separable()
    headers = {file.path.name: file.data for file in library.modules[0].codegen if file.path.parent.name == "mlfbuild"}
    content = b"".join(f"{name} {len(data)}\n".encode() + data for name, data in sorted(headers.items()))
    (source,) = (file.data.decode() for file in library.modules[0].codegen if file.path.suffix == ".c")
    assert f" * Kernel headers SHA-256: {sha256(content)}\n" in source


def test_header_depends_on_neither_weights_nor_kernels() -> None:
    header = generated(separable(), "tvmgen_separable.h")
    assert "SHA-256: " not in header
    assert re.findall("#include (.*)", header) == ["<stdint.h>"]


def test_large_arena_is_rejected() -> None:
    s = Sketch("large")
    s.node(Add(), s.tensor("x", 1 << 30), "x", s.tensor("a", 1 << 30))
    s.node(Add(), "a", "x", s.tensor("b", 1 << 30))
    s.node(Add(), "b", "a", s.tensor("c", 1 << 30))
    s.node(Add(Activation.RELU), "a", "b", s.tensor("d", 1 << 30))
    s.node(Add(), "d", "c", s.tensor("y", 1 << 30))
    with raises(UnsupportedModelError, "arena-too-large", at="large"):
        compile_network(s.graph(["x"], ["y"]))


def test_large_tensor_is_rejected() -> None:
    s = Sketch("large")
    s.node(Add(), s.tensor("x", 1 << 31), "x", s.tensor("y", 1 << 31))
    with raises(UnsupportedModelError, "tensor-too-large", at="large: 'x' int8[2147483648]"):
        compile_network(s.graph(["x"], ["y"]))


def test_operators_beyond_the_limits_of_kernels_are_rejected() -> None:
    deep, broadcast, wide, mean = Sketch("deep"), Sketch("broadcast"), Sketch("wide"), Sketch("mean")
    deep.node(Softmax(), deep.tensor("x", 9000), deep.tensor("y", 9000, scale=1 / 256, zero_point=-128))
    broadcast.node(Add(), broadcast.tensor("x", 2, 1, 2, 1, 2, 1, 2),
                   broadcast.tensor("z", 1, 2, 1, 2, 1, 2, 1, constant=True),
                   broadcast.tensor("y", 2, 2, 2, 2, 2, 2, 2))  # fmt: skip
    wide.node(AveragePool2D((1 << 12, 1 << 12)), wide.tensor("x", 1, 1 << 12, 1 << 12, 1), wide.tensor("y", 1, 1, 1, 1))
    mean.node(Mean((0,)), mean.tensor("x", 1 << 24), mean.tensor("y"))
    logarithm = Sketch("logarithm")
    logarithm.node(LogSoftmax(), logarithm.tensor("x", 4096), logarithm.tensor("y", 4096, scale=1 / 16, zero_point=127))
    for sketch, place in (
        (deep, "deep: SOFTMAX 'node y'"),
        (broadcast, "broadcast: ADD 'node y'"),
        (logarithm, "logarithm: LOG_SOFTMAX 'node y'"),
        (wide, "wide: AVERAGE_POOL_2D 'node y'"),
        (mean, "mean: MEAN 'node y'"),
    ):
        with raises(UnsupportedModelError, "operator-beyond-limit", at=place):
            compile_network(sketch.graph(["x"], ["y"]))


def test_invalid_requests_are_rejected(tmp_path: Path) -> None:
    native = compiler_called("native")
    assert native.check_options({}) == []
    assert native.check_options({"memory": "smallest"}) == []
    for options, code in (
        ({"memory": "small"}, "invalid-option"),
        ({"memory": True}, "invalid-option"),
        ({"arena": "small"}, "unknown-option"),
        ({"kernels": "cmsis-nn"}, "unknown-option"),  # an option until it was removed
    ):
        assert [(key, mistake.code) for key, mistake in native.check_options(options)] == [(*options, code)]
    good = request("net")
    with raises(UsageError, "unknown-executor", at="net: executor"):
        native.compile(CompileRequest("net", good.source, good.cpu, executor="vm"))
    with raises(UsageError, "invalid-option", at="net: options.memory"):
        native.compile(CompileRequest("net", good.source, good.cpu, options={"memory": 1}))
    with pytest.raises(InputFileError):
        native.compile(CompileRequest("net", tmp_path / "missing.tflite", good.cpu))
    with raises(UsageError, "unknown-compiler", at=""):
        compiler_called("nativ")
    assert all(compiler.name == name for name, compiler in COMPILERS.items())


def test_compiler_imports_few_modules() -> None:
    """Reading and printing need numpy and flatbuffers; other slow imports are not allowed."""
    code = "import mlfbuild.native.build, sys; print(sorted({name.split('.')[0] for name in sys.modules}))"
    names = ast.literal_eval(
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    )
    assert not {"pydantic", "rich", "click", "yaml", "SCons", "elftools", "jinja2"} & set(names)


def test_the_table_above_the_run_function_is_the_plan_of_the_arena() -> None:
    library = separable()
    (module,) = library.modules
    assert module.network is not None
    text = generated(library)
    table = text[: text.index("int32_t mlf_separable_run(")].rpartition("/*")[2]
    rows = re.findall(r"^ \* +(\d+) +(\d+) +(\d+)-(\d+) +(.+)$", table, re.MULTILINE)
    planned = {
        (tensor.offset, tensor.size, tensor.first, tensor.last, tensor.name)
        for tensor in module.network.tensors
        if tensor.memory == "arena"
    }
    scratch = {
        (operator.scratch.offset, operator.scratch.size, index, index, f"scratch of {operator.name}")
        for index, operator in enumerate(module.network.operators)
        if operator.scratch is not None
    }
    assert planned and scratch
    assert {(*map(int, row[:4]), row[4]) for row in rows} == planned | scratch
