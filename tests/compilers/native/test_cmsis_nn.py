"""Calls of CMSIS-NN instead of our own kernels: right to the bit, refused where they would not be, and wished for."""

from __future__ import annotations

import ctypes
import re
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import write_archive
from mlfbuild.compilers import CompileRequest, compiler_called
from mlfbuild.compilers.native.build import compile_graph
from mlfbuild.compilers.native.kernel_files import kernel_folder
from mlfbuild.frontends.tflite import parse_tflite
from mlfbuild.library import ExternalDependency, Library
from mlfbuild.library.requirement import Wish, wishes
from mlfbuild.targets import CPUS
from support.board_cases import wrong_networks
from support.cmsis_nn_builds import build_for_cpu, build_for_host
from support.cmsis_nn_networks import called, compiled, jobs, one_row
from support.drawing import Case
from support.dsp_networks import KINDS
from support.graph_interpreter import Interpreter
from support.host_c import WARNINGS, Linked, run_many_on_host, write_tree
from support.native import compile_bytes, generated, request
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

WISH = ExternalDependency("cmsis-nn", "https://github.com/ARM-software/CMSIS-NN", "git", "v7.0.0")


@pytest.fixture(scope="module")
def linked(stub_cmsis_nn_7: Path, tmp_path_factory: pytest.TempPathFactory, tool: Callable[[str], str]) -> Linked:
    """The stand-in, built for this machine."""
    tool("gcc")
    return build_for_host(stub_cmsis_nn_7, tmp_path_factory.mktemp("cmsis-nn"))


def convolution() -> bytes:
    return KINDS["CONV_2D"](1).model


def test_all_operators_equal_tensorflow_lite_micro(linked: Linked) -> None:
    found = jobs("cortex-m4", operators=3, layers=2)
    outputs = run_many_on_host([(library, library.modules[0], inputs) for library, inputs, _ in found], linked=linked)
    for (library, _, wanted), got in zip(found, outputs, strict=True):
        for array, right in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(array.ravel(), np.asarray(right).ravel(), library.modules[0].name)


def test_all_operators_on_a_board_with_mve(stub_cmsis_nn_7: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """Here sums of weights are constants, and the scratch memory is what that core's code asks for."""
    linked = build_for_cpu(stub_cmsis_nn_7, tmp_path / "library", "cortex-m55", tool)
    found = jobs("cortex-m55", operators=4, layers=1)
    assert any("_sums[" in generated(library) for library, _, _ in found)
    assert wrong_networks(found, "cortex-m55", tmp_path, tool, linked=linked) == []


@pytest.mark.parametrize("memory", ["fastest", "smallest"])
def test_networks_row_by_row_and_as_a_whole(shared: Path, linked: Linked, memory: str) -> None:
    models = ("kws_int8", "vww_int8")
    libraries = compiled(
        [(shared / "models" / f"{model}.tflite").read_bytes() for model in models], "cortex-m4", memory
    )
    assert all(("mlf_lines_" in generated(library)) == (memory == "smallest") for library in libraries)
    assert all(library.modules[0].external_dependencies == (WISH,) for library in libraries)
    assert not any(re.search(r"mlf_\w+_int8", generated(library)) for library in libraries), "all is the library's"
    vectors = [np.load(shared / "golden" / f"{model}.npz") for model in models]
    found = [(library, library.modules[0], [each["in0"][0]]) for library, each in zip(libraries, vectors, strict=True)]
    for got, each in zip(run_many_on_host(found, optimise="-O2", linked=linked), vectors, strict=True):
        np.testing.assert_array_equal(got[0].ravel(), each["out0"][0].ravel())


def with_options(model: bytes, **options: bool) -> Library:
    asked = request("net", kernels="cmsis-nn")
    return compile_graph(parse_tflite(model, "net", "net"), replace(asked, options={**asked.options, **options}), "-")


def test_traced_and_hooked_runs_call_it_too(linked: Linked) -> None:
    case = KINDS["CONV_2D 1x1"](1)
    library = with_options(case.model, trace=True, hook=True)
    assert called([library]) == {"arm_convolve_wrapper_s8"} and "hook(context, 0)" in generated(library)
    ((got,),) = run_many_on_host([(library, library.modules[0], case.inputs)], linked=linked)
    np.testing.assert_array_equal(got, tflite_micro_run(case.model, case.inputs)[0])


def test_graphs_call_it_too(linked: Linked, tmp_path: Path) -> None:
    case = KINDS["CONV_2D"](1)
    asked = replace(request("net", kernels="cmsis-nn"), executor="graph")
    library = compile_graph(parse_tflite(case.model, "net", "net"), asked, "-")
    assert library.modules[0].external_dependencies == (WISH,)
    write_archive(library, tmp_path / "net.tar")
    sources = sorted(map(str, linked.headers.parent.glob("Source/**/*.c")))
    interpreter = Interpreter(tmp_path / "net.tar", tmp_path / "graph", ("-O1", f"-I{linked.headers}", *sources))
    (got,) = interpreter.run(case.inputs)
    np.testing.assert_array_equal(got, tflite_micro_run(case.model, case.inputs)[0])


def test_what_is_written(golden: Callable[[str, str], None]) -> None:
    """A depthwise convolution and a fully connected layer for Helium: padded constants, sums of weights."""
    network, random = Network(), np.random.default_rng(1)
    image = network.input((1, 4, 5, 6), 0.05, 3)
    weights, scales = random.integers(-9, 9, (1, 3, 2, 6), np.int8), [0.01 * (1 + at) for at in range(6)]
    options = {"weight_scales": scales, "padding": "SAME", "stride": (2, 1), "activation": "RELU6"}
    image = network.depthwise_conv2d(
        image, weights, random.integers(-99, 99, 6, np.int32), scale=0.02, zero_point=-9, **options
    )
    flat = network.reshape(image, (1, 60))
    network.fully_connected(flat, random.integers(-9, 9, (3, 60), np.int8), weight_scales=[0.02], scale=0.1)
    source = generated(compile_bytes(network.build(), cpu="cortex-m55", kernels="cmsis-nn"))
    golden(source.replace(kernel_folder(), "mlfbuild-0123456789ab"), "net_lib0.c")


# What archives say, and when


def test_archives_wish_for_it_where_they_call_it() -> None:
    (module,) = compile_bytes(convolution(), kernels="cmsis-nn").modules
    assert module.external_dependencies == (WISH,)
    assert wishes(module) == (Wish("cmsis-nn", "v7.0.0", WISH.url, "git", module.name),)


def test_nothing_differs_where_nothing_is_called() -> None:
    network = Network()
    network.unary("HARD_SWISH", network.input((1, 8), 0.1), "HardSwishOptions", {}, scale=0.1)
    plain, asked = (compile_bytes(network.build(), kernels=kernels) for kernels in ("mlfbuild", "cmsis-nn"))
    assert asked == plain
    assert asked.modules[0].external_dependencies == ()


def test_without_the_option_nothing_is_called() -> None:
    (module,) = compile_bytes(convolution()).modules
    assert module.external_dependencies == ()
    assert "arm_" not in generated(Library((module,))).replace("arm_cpu", "")


def test_one_line_about_another_value(tmp_path: Path) -> None:
    asked = CompileRequest("net", tmp_path / "net.tflite", CPUS["cortex-m4"], options={"kernels": "cmsis"})
    with pytest.raises(Exception, match=r"^net: options.kernels: must be one of mlfbuild, cmsis-nn; correct or"):
        compiler_called("native").compile(asked)


# What stays with our own kernels


def broadcast() -> Case:
    network = Network()
    network.binary("ADD", network.input((2, 3), 0.1), network.input((1, 3), 0.1), scale=0.2, zero_point=1)
    return Case(network.build(), ())


def subtraction() -> Case:
    network = Network()
    network.binary("SUB", network.input((2, 3), 0.1), network.input((2, 3), 0.1), scale=0.2, zero_point=1)
    return Case(network.build(), ())


def wide_sums() -> Case:
    """An input for which 32 bits are not enough."""
    network = Network()
    bias = np.array([-(1 << 31), 0], np.int32)
    source = network.input((1, 4), 0.1)
    network.fully_connected(source, np.full((2, 4), -127, np.int8), weight_scales=[0.1], bias=bias, scale=100.0)
    return Case(network.build(), ())


def beside_the_image() -> Case:
    """The middle column of a window of 3x3 stands on the padding to the right."""
    network = Network()
    image = network.pad(network.input((1, 4, 1, 4), 0.1), [(0, 0), (0, 0), (0, 2), (0, 0)])
    network.depthwise_conv2d(image, np.ones((1, 3, 3, 4), np.int8), weight_scales=[0.1] * 4, scale=1.0, padding="VALID")
    return Case(network.build(), ())


@pytest.mark.parametrize("case", [broadcast(), subtraction(), wide_sums(), beside_the_image()])
def test_our_own_kernel_stays_where_it_would_not_be_right(case: Case) -> None:
    library = compile_bytes(case.model, kernels="cmsis-nn")
    assert called([library]) == set()
    assert library.modules[0].external_dependencies == ()


def test_rows_that_mve_would_read_wrongly_stay() -> None:
    """Of the same networks the core without MVE calls it for all."""
    models = [one_row(seed).model for seed in range(30)]
    (m4, m55) = ([bool(called([library])) for library in compiled(models, cpu)] for cpu in ("cortex-m4", "cortex-m55"))
    assert all(m4)
    assert 15 < sum(m55) < 30


# What does not compile


def compiles(library: Library, headers: Path, folder: Path, *flags: str) -> str:
    """What the compiler says of the code of ``library`` with ``headers``; nothing where it is content."""
    write_tree(library, folder)
    command = ["gcc", *WARNINGS, *flags, f"-I{folder / 'host/include'}", f"-I{headers}", "-fsyntax-only"]
    return subprocess.run([*command, folder / "host/src/net_lib0.c"], capture_output=True, text=True).stderr


def test_another_version_does_not_compile(stub_cmsis_nn_4: Path, stub_cmsis_nn_7: Path, tmp_path: Path) -> None:
    library = compile_bytes(convolution(), kernels="cmsis-nn")
    assert compiles(library, stub_cmsis_nn_7 / "Include", tmp_path) == ""
    message = compiles(library, stub_cmsis_nn_4 / "Include", tmp_path, "-w")
    assert re.search(r"size of array .tvmgen_net_needs_cmsis_nn_v7_0_0. is negative", message), message


def test_features_without_scratch_memory_do_not_compile(stub_cmsis_nn_7: Path, tmp_path: Path) -> None:
    headers = stub_cmsis_nn_7 / "Include"
    library = compile_bytes(convolution(), cpu="cortex-m4", kernels="cmsis-nn")
    message = "no scratch memory is planned for CMSIS-NN with MVE: compile the model for this processor"
    assert message in compiles(library, headers, tmp_path, "-DARM_MATH_DSP", "-DARM_MATH_MVEI")
    assert compiles(library, headers, tmp_path, "-DARM_MATH_DSP") == ""
    for_helium = compile_bytes(convolution(), cpu="cortex-m55", kernels="cmsis-nn")
    assert compiles(for_helium, headers, tmp_path, "-DARM_MATH_DSP", "-DARM_MATH_MVEI") == ""


def test_other_rounding_does_not_compile(stub_cmsis_nn_7: Path, tmp_path: Path) -> None:
    library = compile_bytes(convolution(), kernels="cmsis-nn")
    text = compiles(library, stub_cmsis_nn_7 / "Include", tmp_path, "-DCMSIS_NN_USE_SINGLE_ROUNDING")
    assert "CMSIS_NN_USE_SINGLE_ROUNDING changes results" in text


def test_refused_arguments_end_the_run(stub_cmsis_nn_7: Path, tmp_path: Path, tool: Callable[[str], str]) -> None:
    """A library of another build may want memory where ours did not plan any: it says so, and the run does."""
    case = KINDS["CONV_2D"](1)
    library = compile_bytes(case.model, kernels="cmsis-nn")
    write_tree(library, tmp_path)
    refusing = tmp_path / "refusing.c"
    refusing.write_text("int arm_convolve_wrapper_s8(void) { return -1; }\n")
    flags = [tool("gcc"), "-shared", "-fPIC", f"-I{tmp_path / 'host/include'}", f"-I{stub_cmsis_nn_7 / 'Include'}"]
    subprocess.run([*flags, tmp_path / "host/src/net_lib0.c", refusing, "-o", tmp_path / "net.so"], check=True)
    buffers = [ctypes.create_string_buffer(1 << 16) for _ in range(2)]
    pointers = [(ctypes.c_void_p * 1)(ctypes.addressof(buffer)) for buffer in buffers]
    assert ctypes.CDLL(str(tmp_path / "net.so")).tvmgen_net_run(*map(ctypes.byref, pointers)) == -3
