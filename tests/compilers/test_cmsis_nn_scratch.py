"""The scratch memory of CMSIS-NN functions in TVM's code is checked for the CPU."""

import ctypes
import random
import subprocess
from dataclasses import replace
from pathlib import Path

import pytest

from mlfbuild.archive import open_archive
from mlfbuild.compilers import compiler_called
from mlfbuild.compilers.abi_check import scratch_problems
from mlfbuild.core.errors import UsageError
from mlfbuild.library import CodegenFile, CompileRequest, Module
from mlfbuild.targets import CPUS
from support.errors import raises
from support.steps import assert_linear

PLAIN, DSP, MVE = CPUS["cortex-m3"], CPUS["cortex-m4"], CPUS["cortex-m55"]
PLACE = "codegen/host/src/kws_int8_lib2.c"


@pytest.fixture(scope="module")
def kws(shared: Path) -> Module:
    return open_archive(shared / "archives/kws_int8-cmsisnn_m4.tar").modules[0]


def edited(module: Module, old: str, new: str) -> Module:
    """Return ``module`` with each ``old`` text in its sources replaced."""
    assert any(old.encode() in file.data for file in module.codegen)
    files = (CodegenFile(file.path, file.data.replace(old.encode(), new.encode())) for file in module.codegen)
    return replace(module, codegen=tuple(files))


@pytest.mark.parametrize("cpu", [PLAIN, DSP, CPUS["cortex-m33"], CPUS["host"]], ids=lambda cpu: cpu.name)
def test_archive_for_a_core_with_dsp_fits_it_and_smaller_ones(kws: Module, cpu) -> None:
    assert list(scratch_problems(kws, cpu)) == []


def test_mve_needs_more_for_depthwise_convolutions(kws: Module) -> None:
    found = list(scratch_problems(kws, MVE))
    assert [(each.code, each.place) for each in found] == [("scratch-memory-too-small", PLACE)] * 4
    facts = ("arm_depthwise_conv_wrapper_s8 needs 4,464 bytes", "cortex-m55", "1,152")
    assert all(fact in each.reason for each in found for fact in facts)


def test_missing_scratch_memory_is_found(kws: Module) -> None:
    """TVM writes NULL if its target names no core."""
    plain = edited(kws, "context= {context_buffer_4_let,256}", "context= {NULL,0}")
    assert list(scratch_problems(plain, PLAIN)) == []
    (found,) = scratch_problems(plain, DSP)
    assert (found.code, found.place) == ("scratch-memory-too-small", PLACE)
    assert all(fact in found.reason for fact in ("arm_avgpool_s8 needs 256 bytes", "cortex-m4", "gets 0"))


def test_build_for_another_core_is_rejected(shared: Path) -> None:
    archive = shared / "archives/kws_int8-cmsisnn_m4.tar"
    with raises(UsageError, "scratch-memory-too-small") as caught:
        compiler_called("archive").compile(CompileRequest("kws", archive, MVE))
    assert caught.value.place == f"kws: {archive}: codegen/host/src/kws_int8_lib2.c"
    assert "arm_depthwise_conv_wrapper_s8 needs 4,464 bytes" in caught.value.reason


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("cmsis_nn_context context=", "struct cmsis_nn_ctx context ="),
        ("cmsis_nn_dims input_dims = {1,25,5,64};", "cmsis_nn_dims input_dims = {1,25,5};"),
        ("cmsis_nn_dims input_dims = {1,25,5,64};", "cmsis_nn_dims input_dims = {N,25,5,64};"),
        ("cmsis_nn_dims input_dims = {1,25,5,64};", "cmsis_nn_dims input_dims = {" + "9" * 5000 + ",25,5,64};"),
        ("cmsis_nn_dims input_dims = {1,25,5,64};", ""),
        ("cmsis_nn_dims filter_dims = {1,3,3,64};", "cmsis_nn_dims filter_dims = {1,3,3,64,1};"),
        ("cmsis_nn_tile dilation = {1,1};", "cmsis_nn_tile dilation = {1,1,1};"),
        ("arm_depthwise_conv_wrapper_s8(&context,", "arm_depthwise_conv_wrapper_s8(ctx,"),
        ("{128, -128, 1, stride, padding, dilation, activation}", "{1}"),
        ("arm_nnfunctions.h", "my_functions.h"),
    ],
)
def test_code_in_another_form_is_not_checked(kws: Module, old: str, new: str) -> None:
    other = edited(kws, old, new)
    if old == "arm_nnfunctions.h":
        other = edited(edited(other, "arm_nn_types.h", ""), "arm_nn_math_types.h", "")
    assert not [each for each in scratch_problems(other, MVE) if "1,152" in each.reason]


def test_other_releases_are_not_checked(kws: Module) -> None:
    (crt,) = kws.external_dependencies
    assert list(scratch_problems(replace(kws, external_dependencies=(replace(crt, version_spec="0.11.1"),)), MVE)) == []


def test_malicious_code_is_checked_in_linear_time(kws: Module) -> None:
    for text in (
        "arm_avgpool_s8(&context,",
        "cmsis_nn_context context= {NULL,0};",
        "cmsis_nn_tile x = {1",
        "cmsis_nn_",
    ):

        def check(count: int, text: bytes = text.encode()) -> None:
            source = b"#include <arm_nnfunctions.h>\ncmsis_nn_context context= {NULL,0};\n" + text * count
            module = replace(kws, codegen=(replace(kws.codegen[-1], content=source),))
            assert list(scratch_problems(module, DSP)) == []

        assert_linear(check, 2_000)


# Beside the library itself -------------------------------------------------------------------------------------------

_SIZES = """\
#include "arm_nnfunctions.h"
#define SIZE(function, params) \\
  int32_t function##_at(const int32_t *v, int variant) { \\
    const cmsis_nn_dims in = {v[0], v[1], v[2], v[3]}, filter = {v[4], v[5], v[6], v[7]}, out = {1, 1, 1, v[8]}; \\
    const params p = {.stride = {1, 1}, .padding = {v[9], v[10]}, .dilation = {v[11], v[12]}}; \\
    params q = p; SET_##params; \\
    return variant == 2   ? function##_get_buffer_size_mve(&q, &in, &filter, &out) \\
           : variant == 1 ? function##_get_buffer_size_dsp(&q, &in, &filter, &out) \\
                          : function##_get_buffer_size(&q, &in, &filter, &out); \\
  }
#define SET_cmsis_nn_conv_params
#define SET_cmsis_nn_dw_conv_params q.ch_mult = v[13]
SIZE(arm_convolve_wrapper_s8, cmsis_nn_conv_params)
SIZE(arm_convolve_wrapper_s16, cmsis_nn_conv_params)
SIZE(arm_depthwise_conv_wrapper_s8, cmsis_nn_dw_conv_params)
SIZE(arm_depthwise_conv_wrapper_s16, cmsis_nn_dw_conv_params)
"""


@pytest.fixture(scope="module")
def library(cmsis_nn_4: Path, tmp_path_factory: pytest.TempPathFactory) -> ctypes.CDLL:
    """The size functions of CMSIS-NN v4.1.0, which also has those for other cores."""
    folder = tmp_path_factory.mktemp("sizes")
    (folder / "sizes.c").write_text(_SIZES)
    sources = [str(path) for path in cmsis_nn_4.glob("Source/*/*get_buffer_sizes*.c")]
    built = folder / "sizes.so"
    command = ["cc", "-shared", "-fPIC", f"-I{cmsis_nn_4}/Include", "-include", "stdint.h", "-o", str(built)]
    subprocess.run([*command, str(folder / "sizes.c"), *sources], check=True, timeout=120)
    return ctypes.CDLL(str(built))


_C = """\
#include <arm_nnfunctions.h>
void f(void) {{
  cmsis_nn_context context= {{NULL,0}};
  cmsis_nn_tile stride = {{1,1}};
  cmsis_nn_tile padding = {{{9},{10}}};
  cmsis_nn_tile dilation = {{{11},{12}}};
  cmsis_nn_activation activation = {{-128,127}};
  {params} conv_params = {{128, -128, {multiplier}stride, padding, dilation, activation}};
  cmsis_nn_dims input_dims = {{{0},{1},{2},{3}}};
  cmsis_nn_dims filter_dims = {{{4},{5},{6},{7}}};
  cmsis_nn_dims bias_dims = {{1,1,1,{8}}};
  cmsis_nn_dims output_dims = {{1,1,1,{8}}};
  arm_cmsis_nn_status status = {function}(&context, &conv_params, &quant_params, &input_dims, input_, &filter_dims,
    filter_, &bias_dims, bias_, &output_dims, output_);
}}
"""


def is_judged(function: str, values: list[int]) -> bool:
    """Return whether CMSIS-NN v4.0.0 and v4.1.0 need the same size."""
    area = values[3] * values[5] * values[6]
    is_row = values[1] == values[5] == 1
    return not (function == "arm_convolve_wrapper_s8" and is_row) and not (
        function == "arm_depthwise_conv_wrapper_s16" and area >= 512
    )


@pytest.mark.parametrize(
    "function",
    ["arm_convolve_wrapper_s8", "arm_convolve_wrapper_s16", "arm_depthwise_conv_wrapper_s8",
     "arm_depthwise_conv_wrapper_s16"],
)  # fmt: skip
def test_sizes_equal_those_of_cmsis_nn(library: ctypes.CDLL, kws: Module, function: str) -> None:
    chance = random.Random(function)
    (source, *_) = (file for file in kws.codegen if file.path.name == "kws_int8_lib2.c")
    params = "cmsis_nn_dw_conv_params" if "depthwise" in function else "cmsis_nn_conv_params"
    seen = 0
    for _ in range(150):
        channels = chance.choice([1, 3, 4, 8, 16, 60, 130])
        height, width = chance.choice([1, 2, 3, 5]), chance.choice([1, 3, 4])
        pads = (chance.randrange(3), chance.randrange(3))
        dilation = chance.choice([(1, 1), (1, 1), (2, 1), (1, 2)])
        multiplier = chance.choice([1, 1, 2])
        values = [chance.choice([1, 1, 2]), chance.choice([1, 9]), 9, channels, 1, height, width, channels]
        values += [channels * multiplier, *pads, *dilation, multiplier]
        given = f"{multiplier}, " if "depthwise" in function else ""
        text = _C.format(*values, params=params, multiplier=given, function=function)
        module = replace(kws, codegen=(replace(source, content=text.encode()),))
        for variant, cpu in enumerate((PLAIN, DSP, MVE)):
            needed = getattr(library, f"{function}_at")((ctypes.c_int32 * 14)(*values), variant)
            reasons = [each.reason for each in scratch_problems(module, cpu)]
            found = [int(reason.split()[2].replace(",", "")) for reason in reasons]
            assert found == ([needed] if needed and is_judged(function, values) else []), (values, cpu.name)
            seen += bool(found)
    assert seen > 20
