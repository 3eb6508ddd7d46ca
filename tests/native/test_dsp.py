"""The int8 kernels for the DSP extension: C on this machine and assembly on QEMU are bit-exact."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.library import Library
from mlfbuild.native.graph import multiply_by_quantized_multiplier
from mlfbuild.native.graph.quantize import Rescale
from mlfbuild.native.lowering.common.dsp import DspChannels, brief_channels, dsp_channels
from support.board_cases import Job, wrong_networks
from support.checks import board_jobs, check_kinds_on_host, check_on_host
from support.drawing import Case
from support.dsp_networks import KINDS
from support.host_c import run_many_on_host
from support.native import compile_bytes, generated
from support.oracle import tflite_micro_run
from support.tflite_builder import Network

Array = npt.NDArray[Any]

NETWORKS = 10
ON_PUSH = 3
SWEEP_NETWORKS = 120

HEADERS = {
    "CONV_2D": ("conv2d_dsp.h", "matmul_dsp.h"),
    "CONV_2D below the peak": ("conv2d_dsp.h", "matmul_dsp.h"),
    "CONV_2D copied": ("conv2d_dsp.h", "matmul_dsp.h"),
    "CONV_2D long": ("conv2d_long_dsp.h",),
    "CONV_2D gathered": ("conv2d_dsp.h", "matmul_dsp.h"),
    "CONV_2D 1x1": ("matmul_dsp.h",),
    "FULLY_CONNECTED": ("matmul_dsp.h", "dot_1x4_dsp.h"),
    "FULLY_CONNECTED in fours": ("dot_1x4_dsp.h",),
    "DEPTHWISE_CONV_2D": ("depthwise_conv2d_dsp.h",),
    "DEPTHWISE_CONV_2D in place": ("depthwise_conv2d_dsp.h",),
    "DEPTHWISE_CONV_2D large": ("depthwise_large_dsp.h",),
    "DEPTHWISE_CONV_2D by rows": ("depthwise_conv2d_dsp.h",),
    "DEPTHWISE_CONV_2D 1x1": ("depthwise_scale_dsp.h",),
    "POOL_2D": ("pool2d_dsp.h",),
}


def compiled(cases: Sequence[Case], kind: str, prefix: str = "net") -> list[Library]:
    """Return the libraries of ``cases``, which must all use the tested kernels."""
    before_peak = kind in {"CONV_2D long", "CONV_2D gathered"}  # which may depend on dead channels
    kept = "keep" if before_peak else "remove"
    libraries = [compile_bytes(case.model, f"{prefix}{index}", dead_channels=kept) for index, case in enumerate(cases)]
    for library in libraries:
        included = [header for header in HEADERS[kind] if f"/{header}" in generated(library)]
        assert included, library.modules[0].source_text.decode()
    return libraries


def drawn(kind: str, seeds: Sequence[int]) -> list[Case]:
    return [KINDS[kind](seed, extreme=seed % 4 == 0) for seed in seeds]


def test_c_equals_tensorflow_lite_micro() -> None:
    check_kinds_on_host(HEADERS, range(ON_PUSH), drawn, compiled)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", HEADERS)
def test_c_equals_tensorflow_lite_micro_for_many_cases(kind: str) -> None:
    seeds = range(ON_PUSH, NETWORKS + SWEEP_NETWORKS)
    cases = drawn(kind, seeds)
    check_on_host(compiled(cases, kind), cases, seeds, optimise="-O1")


def test_larger_blocks_are_used_if_they_need_no_memory() -> None:
    for kind, pixels in (("CONV_2D", {"2"}), ("CONV_2D below the peak", {"3"})):
        cases = drawn(kind, range(NETWORKS))
        texts = [generated(compile_bytes(case.model, dead_channels="keep")) for case in cases]
        direct = [text for text in texts if "mlf_conv2d_int8_dsp(" in text]
        assert direct
        assert {re.findall(r"mlf_conv2d_int8_dsp\(&conv2d, (\d)", text)[0] for text in direct} == pixels


def test_filters_are_copied_to_free_memory_except_on_cores_with_a_cache() -> None:
    cases = drawn("CONV_2D copied", range(NETWORKS))
    texts = [generated(compile_bytes(case.model)) for case in cases]
    layers = [
        fields
        for text in texts
        for fields in re.findall(r"\.outputs = (\d+),(?:\s+\.\w+ = -?\d+,){3}\s+\.copied = (\d+)", text)
    ]
    assert {int(outputs) // 2 == int(copied) for outputs, copied in layers} == {False, True}
    assert not any(".copied" in generated(compile_bytes(case.model, cpu="cortex-m7")) for case in cases)
    long = [generated(library) for library in compiled(drawn("CONV_2D long", range(NETWORKS)), "CONV_2D long")]
    assert {".copied" in text for text in long} == {True}


def test_depthwise_convolutions_shrink_in_place() -> None:
    for library in compiled(drawn("DEPTHWISE_CONV_2D by rows", range(NETWORKS)), "DEPTHWISE_CONV_2D by rows"):
        assert "mlf_depthwise_conv2d_rows_int8_dsp(" in generated(library)


def test_windows_of_several_blocks_are_gathered_if_there_is_room() -> None:
    texts = [generated(library) for library in compiled(drawn("CONV_2D gathered", range(NETWORKS)), "CONV_2D gathered")]
    blocks = [int(size) for text in texts for size in re.findall(r"mlf_conv2d_gather_int8_dsp\(&conv2d, (\d)", text)]
    assert {1, 8} <= set(blocks)


def test_long_products_are_not_used_if_digits_do_not_fit() -> None:
    for weight, expected in ((112, True), (114, False)):  # 3 * 12 weights of a column, times 128: at most 2^19
        network = Network()
        image = network.input((1, 16, 16, 12), 0.05, -20)
        weights = np.full((4, 3, 3, 12), weight, np.int8)
        same = network.conv2d(image, weights, None, weight_scales=[1e-5] * 4, scale=0.1, zero_point=3, padding="SAME")
        wide = network.conv2d(same, np.ones((48, 1, 1, 4), np.int8), None, weight_scales=[0.1] * 48, scale=0.1)
        narrow = network.conv2d(wide, np.ones((4, 1, 1, 48), np.int8), None, weight_scales=[0.1] * 4, scale=0.1)
        case = Case(network.build(outputs=[narrow]), (np.full((1, 16, 16, 12), -128, np.int8),))
        library = compile_bytes(case.model, dead_channels="keep")
        assert ("mlf_conv2d_long_int8_dsp(" in generated(library)) == expected
        ((got,),) = run_many_on_host([(library, library.modules[0], case.inputs)])
        np.testing.assert_array_equal(got, tflite_micro_run(case.model, case.inputs)[0])
        m7 = compile_bytes(case.model, cpu="cortex-m7", dead_channels="keep")
        assert "mlf_conv2d_long_int8_dsp(" not in generated(m7)


@pytest.mark.parametrize(("cpu", "count"), [("cortex-m4", 3), ("cortex-m7", 1), ("cortex-m33", 1)])
def test_assembly_equals_tensorflow_lite_micro(
    cpu: str, count: int, tmp_path: Path, tool: Callable[[str], str]
) -> None:
    jobs: list[Job] = []
    for kind in HEADERS:
        cases = drawn(kind, range(100, 100 + count))
        jobs += board_jobs(compiled(cases, kind, f"net{len(jobs)}_"), cases)
    assert wrong_networks(jobs, cpu, tmp_path, tool, optimise="-O2") == []


def pointwise(weights: Array, bias: Array, weight_scales: Sequence[float]) -> Case:
    """Return a 1x1 convolution of six pixels with int8 ``weights`` [channels, inputs] and a ReLU."""
    network = Network()
    image = network.input((1, 2, 3, weights.shape[1]), 0.05, -20)
    matrix = weights.reshape(len(weights), 1, 1, -1)
    output = network.conv2d(
        image, matrix, bias, weight_scales=weight_scales, scale=0.1, zero_point=-128, activation="RELU"
    )
    value = np.random.default_rng(1).integers(-128, 128, (1, 2, 3, weights.shape[1])).astype(np.int8)
    return Case(network.build(outputs=[output]), (value,))


WEIGHTS = np.random.default_rng(0).integers(-127, 128, (4, 8), dtype=np.int8)
SCALES = [0.003, 0.004, 0.002, 0.003]
BIAS = np.array([5, -900, 0, 2000], np.int32)


def check(case: Case, *, dsp: bool) -> None:
    library = compile_bytes(case.model)
    assert ("mlf_matmul3_int8_dsp(" in generated(library)) == dsp
    ((got,),) = run_many_on_host([(library, library.modules[0], case.inputs)])
    np.testing.assert_array_equal(got, tflite_micro_run(case.model, case.inputs)[0])


@pytest.mark.parametrize("bias", [1 << 30, -(1 << 30), (1 << 30) + 128, 0])
def test_channels_without_weights_are_constant(bias: int) -> None:
    """Training can leave tiny scales and huge biases; then the output is constant for every input."""
    weights, biases = WEIGHTS.copy(), BIAS.copy()
    weights[2] = 0
    biases[2] = bias
    check(pointwise(weights, biases, [*SCALES[:2], 1e-10, SCALES[3]]), dsp=True)


def test_portable_kernel_is_used_if_pairs_of_weights_do_not_fit() -> None:
    weights = WEIGHTS.copy()
    weights[0, 3], weights[1, 3] = -1, -128  # 256 * -128 - 1 has 17 bits
    check(pointwise(weights, BIAS, SCALES), dsp=False)
    weights[0, 3] = 1
    check(pointwise(weights, BIAS, SCALES), dsp=True)


def test_portable_kernel_is_used_for_factors_of_a_half() -> None:
    check(pointwise(WEIGHTS, BIAS, [*SCALES[:3], 1.1]), dsp=False)


def test_portable_kernel_is_used_if_sums_can_overflow() -> None:
    biases = BIAS.copy()
    biases[1] = 1_608_000_000  # above 2**30; times a factor of 6.25e-8 it is 100.5, in the middle of two outputs
    check(pointwise(WEIGHTS, biases, [SCALES[0], 1.25e-7, *SCALES[2:]]), dsp=False)


def test_wrapping_outputs_are_not_constant() -> None:
    """After a left shift even sums are 0 and odd ones are not; the least and the greatest sum are even."""
    weights, bias = np.array([[-64, -64]], np.int8), np.zeros(1, np.int32)
    assert dsp_channels(weights, bias, [Rescale(1 << 30, 25)], 0) is None


def channel(seed: int) -> DspChannels:
    """Return a channel of nine weights with any factor of 1/8 to 1/4096."""
    random = np.random.default_rng(seed)
    multiplier, shift = random.integers(1 << 30, 1 << 31, 1), random.integers(2, 12, 1)
    return DspChannels(
        random.integers(-127, 128, (1, 9), dtype=np.int8), 2 * random.integers(-9000, 9000, 1), multiplier, shift
    )


def outputs(sums: Array, given: DspChannels, zero_point: int) -> Array:
    """Return the outputs of ``sums`` by the rules of TensorFlow Lite Micro."""
    rescaled = multiply_by_quantized_multiplier(sums, given.multiplier, -(given.shift + 1))
    return np.clip(rescaled.astype(np.int64) + zero_point, -128, 127)


def test_brief_requantisation_is_exact_for_every_sum() -> None:
    brief = 0
    for seed in range(40):
        given = channel(seed)
        found = brief_channels(given, -128)
        reach = 128 * int(np.abs(given.weights.astype(np.int64)).sum())
        products = np.arange(-reach, reach + 1)
        if found.brief:
            brief += 1
            got = ((256 * products + found.bias) * found.multiplier) >> 41
            np.testing.assert_array_equal(np.clip(got, -128, 127), outputs(products + given.bias // 2, given, -128))
            assert abs(256 * products + found.bias).max() < 1 << 31
        else:
            assert found is given
    assert brief >= 38


def test_two_roundings_remain_if_negative_numbers_do_not_saturate() -> None:
    assert not any(brief_channels(given, 3).brief for given in map(channel, range(10)))


def test_outputs_of_a_relu_are_requantised_briefly() -> None:
    assert ".rounding = 0," in generated(compile_bytes(pointwise(WEIGHTS, BIAS, SCALES).model))
