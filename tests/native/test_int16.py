"""Layers of int16 activations and int8 weights with sums of 64 and 32 bits are bit-exact to TensorFlow Lite Micro."""

import re
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from tflite.TensorType import TensorType

from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.quantize import Rescale
from mlfbuild.native.graph.wide_sums import WideRescale, rescale_wide, wide_rescale
from mlfbuild.native.passes import fusion
from support.board_cases import wrong_networks
from support.drawing import Case
from support.host_c import run_many_on_host
from support.int16_networks import KINDS, Int16Layers, network
from support.native import compile_bytes, generated
from support.oracle import assert_equal, tflite_micro_run
from support.refusals import assert_tflite_refused
from support.tflite_builder import Network

Array = npt.NDArray[Any]

NETWORKS = {"cortex-m0plus": 2, "cortex-m4": 3, "cortex-m55": 3}
"""How many there are of each kind, for processors without and with the DSP extension, and with Helium."""
LARGE = {"several layers": 1, "more than 32 bits": 2}
"""How many there are at most of these kinds."""
SWEEP_NETWORKS = 120


def drawn(kind: str, seeds: Sequence[int]) -> list[Case]:
    return [KINDS[kind](seed, extreme=seed % 3 == 0) for seed in seeds]


def check_on_host(cases: Sequence[Case], cpu: str, memory: str = "balanced") -> None:
    libraries = [compile_bytes(case.model, f"net{at}", cpu, memory) for at, case in enumerate(cases)]
    jobs = [(library, library.modules[0], case.inputs) for library, case in zip(libraries, cases, strict=True)]
    for at, (case, got) in enumerate(zip(cases, run_many_on_host(jobs), strict=True)):
        for value, expected in zip(got, tflite_micro_run(case.model, case.inputs), strict=True):
            assert_equal(value, expected, f"{cpu} {at}")


def test_filters_are_copied_to_free_memory() -> None:
    cases = []
    for channels, (height, width) in ((8, (3, 3)), (64, (3, 3)), (16, (1, 1))):  # all filters, some of them, 1x1
        layers = Int16Layers(channels)
        image = layers.pointwise(layers.input(1, 8, 8, 4), 80)  # the peak
        image = layers.pointwise(layers.depthwise(layers.pointwise(image, 8), (3, 3), padding="SAME"), 16)
        cases.append(layers.case(layers.conv2d(image, channels, (height, width))))
    for cpu, copied in (("cortex-m4", True), ("cortex-m7", False)):
        texts = [generated(compile_bytes(case.model, "net", cpu)) for case in cases]
        assert all((".copied = " in text) == copied for text in texts)
        assert all(bool(re.search(r"output, \d{3,}, scratch\)", text)) == copied for text in texts)
        check_on_host(cases, cpu)


@pytest.mark.parametrize("kind", KINDS)
def test_references_equal_tensorflow_lite_micro(kind: str) -> None:
    for case in drawn(kind, range(40)):
        graph = parse_tflite(case.model, "net", "net.tflite")
        values = evaluate(graph, {graph.inputs[0]: case.inputs[0]})
        for name, expected in zip(graph.outputs, tflite_micro_run(case.model, case.inputs), strict=True):
            assert_equal(values[name], expected, kind)


@pytest.mark.parametrize(("cpu", "count"), NETWORKS.items())
def test_c_equals_tensorflow_lite_micro(cpu: str, count: int) -> None:
    """One program has the networks of all kinds, which share headers."""
    counts = {kind: min(count, LARGE.get(kind, count)) for kind in KINDS}
    check_on_host([case for kind, most in counts.items() for case in drawn(kind, range(6, 6 + most))], cpu)


@pytest.mark.sweep
@pytest.mark.parametrize("cpu", NETWORKS)
@pytest.mark.parametrize("kind", KINDS)
def test_c_equals_tensorflow_lite_micro_for_many_cases(kind: str, cpu: str) -> None:
    check_on_host(drawn(kind, range(10, 10 + SWEEP_NETWORKS)), cpu)


@pytest.mark.parametrize("cpu", ["cortex-m4", "cortex-m55"])
def test_c_on_the_board(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = []
    for kind in KINDS:
        for case in drawn(kind, range(200, 203)):
            library = compile_bytes(case.model, f"net{len(jobs)}", cpu)
            jobs.append((library, case.inputs, tflite_micro_run(case.model, case.inputs)))
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []


def test_chains_of_rows(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(fusion.MOST_EXTRA, "smallest", 1e9)
    cases = [network(seed) for seed in range(40, 42)]
    texts = [generated(compile_bytes(case.model, memory="smallest")) for case in cases]
    assert all("struct mlf_line_buffer" in text for text in texts)
    check_on_host(cases, "cortex-m4", "smallest")


def test_padding_and_activations_are_fused_into_layers() -> None:
    net = Network()
    image = net.pad(net.input((1, 4, 4, 2), 0.5, dtype="int16"), [(0, 0), (1, 1), (1, 1), (0, 0)])
    weights = np.random.default_rng(0).integers(-127, 128, (3, 3, 3, 2), dtype=np.int8)
    image = net.conv2d(image, weights, weight_scales=[0.01], scale=2.0, dtype="int16")
    case = Case(net.build([net.unary("RELU", image, scale=2.0, dtype="int16")]),
                (np.arange(-16, 16, dtype=np.int16).reshape(1, 4, 4, 2) * 2000,))  # fmt: skip
    text = generated(compile_bytes(case.model))
    assert "/* CONV_2D int16[1,4,4,2], int8[3,3,3,2] -> int16[1,4,4,3]\n" in text
    assert "mlf_pad" not in text
    assert "rectify" not in text
    check_on_host([case], "cortex-m4")


WEIGHTS = np.random.default_rng(3).integers(-128, 128, (8, 4), dtype=np.int8)
FACTOR = 0x50007F00 / 2**38
SCALES = [4 * FACTOR] * len(WEIGHTS)
VALUE = np.array([[32767, -30000, 1234, -5]], np.int16)


def layer(bias: Array | None, **options: int) -> Case:
    """Return a FULLY_CONNECTED with a factor that is imprecise in 15 bits; ``options`` are those of the file."""
    net = Network()
    source = net.input((1, 4), 0.25, dtype="int16")
    net.fully_connected(source, WEIGHTS, bias, weight_scales=[4 * FACTOR], scale=1.0, dtype="int16")
    net.operators[-1].options.update(options)
    return Case(net.build(), (VALUE,))


def test_bias_type_determines_how_sums_are_rounded() -> None:
    bias = np.random.default_rng(4).integers(-(2**20), 2**20, len(WEIGHTS))
    cases = [
        layer(bias.astype(np.int64)),
        layer(bias.astype(np.int32)),
        layer(None),
        layer(None, QuantizedBiasType=TensorType.INT32),
        layer(None, QuantizedBiasType=TensorType.INT64),
    ]
    check_on_host(cases, "cortex-m4")
    texts = [generated(compile_bytes(case.model)) for case in cases]
    assert ["int16_narrow(" in text for text in texts] == [False, True, False, True, False]
    assert ["int16_dsp(" in text for text in texts] == [True, False, True, False, True]
    results = [tflite_micro_run(case.model, case.inputs)[0].tolist() for case in cases]
    assert results[0] != results[1]
    assert results[2] != results[3]
    assert results[2] == results[4]


HEADERS = {
    "CONV_2D": "conv2d_int16", "CONV_2D 1x1": "conv2d_int16", "FULLY_CONNECTED": "conv2d_int16",
    "DEPTHWISE_CONV_2D": "depthwise_conv2d_int16",
}  # fmt: skip


@pytest.mark.parametrize("kind", HEADERS)
def test_cpus_get_their_kernels(kind: str) -> None:
    for cpu, feature in (("cortex-m0plus", None), ("cortex-m4", "dsp"), ("cortex-m55", "mve")):
        headers = re.findall(r'/(\w+_(?:dsp|mve))\.h"', generated(compile_bytes(KINDS[kind](8).model, cpu=cpu)))
        assert headers == ([] if feature is None else [f"{HEADERS[kind]}_{feature}"])


def with_value(values: Array, at: object, value: int) -> Array:
    changed = values.copy()
    changed[at] = value
    return changed


BIAS = np.array([0, 900, -77, 5, 2**29, 3, -4, 1])


@pytest.mark.parametrize(
    ("weights", "bias", "scales", "dsp"),
    [
        pytest.param(WEIGHTS, BIAS, SCALES, True, id="sums of 32 bits"),
        pytest.param(with_value(WEIGHTS, 4, 0), BIAS, [*SCALES[:4], 2e-7, *SCALES[5:]], True,
         id="a channel for nothing"),
        pytest.param(with_value(WEIGHTS, 4, 0), BIAS, [*SCALES[:4], 4.0, *SCALES[5:]], False,
         id="a constant that wraps"),
        pytest.param(WEIGHTS, with_value(BIAS, 1, 2**31 - 2**10), SCALES, False, id="a bias of 32 bits"),
        pytest.param(WEIGHTS, with_value(BIAS, 1, -(2**40)), SCALES, False, id="a bias of 41 bits"),
        pytest.param(WEIGHTS, BIAS, [*SCALES[:-1], 2.0], False, id="a factor of a half"),
        pytest.param(WEIGHTS[:1], BIAS[:1], SCALES[:1], False, id="a single channel"),
    ],
)  # fmt: skip
def test_portable_kernel_is_used_if_sums_can_overflow(
    weights: Array, bias: Array, scales: Sequence[float], dsp: bool
) -> None:
    net = Network()
    image = net.input((1, 1, 5, weights.shape[1]), 0.25, dtype="int16")
    matrix = weights.reshape(len(weights), 1, 1, -1)
    net.conv2d(image, matrix, bias, weight_scales=scales, scale=1.0, dtype="int16", activation="RELU6")
    value = np.random.default_rng(1).integers(-32768, 32768, (1, 1, 5, weights.shape[1])).astype(np.int16)
    case = Case(net.build(), (value,))
    assert ("int16_dsp(" in generated(compile_bytes(case.model))) == dsp
    check_on_host([case], "cortex-m4")


@pytest.mark.parametrize(
    ("rescale", "expected"),
    [
        (Rescale(1 << 30, 1), WideRescale(1 << 14, 14)),
        (Rescale((1 << 31) - 1, -31), WideRescale(32767, 46)),
        (Rescale(0x7FFF0000 - 1, 7), WideRescale(32767, 8)),
        (Rescale(0x40008000, 0), WideRescale(0x4001, 15)),
        (Rescale(0, 0), WideRescale(0, 15)),
    ],
)
def test_multipliers_of_15_bits(rescale: Rescale, expected: WideRescale) -> None:
    assert wide_rescale(rescale) == expected


def test_rescaled_sums_round_a_half_up_and_wrap() -> None:
    sums = np.array([-3, -1, 1, 3, 1 << 33, (1 << 46) - 1], np.int64)
    half = Rescale(1 << 30, 0)
    assert rescale_wide(sums, [half]).tolist() == [-1, 0, 1, 2, 0, 0]


def test_transposed_convolution_with_a_narrow_bias() -> None:
    """The runtimes read an int32 bias as int64, out of bounds; the same numbers in int64 are the judge."""
    random = np.random.default_rng(3)
    weights = random.integers(-127, 128, (5, 3, 3, 4)).astype(np.int8)
    bias = random.integers(-300_000, 300_000, 5)
    models = []
    for kind in (np.int32, np.int64):
        net = Network()
        source = net.input((1, 3, 3, 4), dtype="int16", scale=0.001)
        net.transpose_conv(source, (7, 7), weights, bias.astype(kind), weight_scales=[0.01] * 5, stride=(2, 2),
                           dtype="int16", scale=0.02)  # fmt: skip
        models.append(net.build())
    value = random.integers(-32768, 32768, (1, 3, 3, 4)).astype(np.int16)
    library = compile_bytes(models[0])
    ((got,),) = run_many_on_host([(library, library.modules[0], [value])])
    np.testing.assert_array_equal(got, tflite_micro_run(models[1], [value])[0])


def product(weights: Array, scales: Sequence[float], *, adj_y: bool, axis: int) -> Network:
    """Return a BATCH_MATMUL of int16 by a constant int8 matrix with several scales."""
    net = Network()
    source = net.input((1, 2, 4), dtype="int16", scale=0.001)
    matrix = net.tensor(weights.shape, "int8", data=weights, scales=scales, zero_points=[0] * len(scales), axis=axis)
    output = net.activation((1, 2, 3), dtype="int16", scale=0.002)
    net.operator("BATCH_MATMUL", [source, matrix], output, "BatchMatMulOptions", AdjX=False, AdjY=adj_y)
    return net


@pytest.mark.parametrize("adj_y", [False, True])
def test_product_by_a_matrix_with_a_scale_for_each_column(*, adj_y: bool) -> None:
    """LiteRT takes 0 for several scales, and TensorFlow Lite Micro lacks the types: FULLY_CONNECTED is the judge."""
    random = np.random.default_rng(5)
    rows, scales = random.integers(-127, 128, (3, 4)).astype(np.int8), [0.01, 0.02, 0.03]
    model = product(
        rows[np.newaxis] if adj_y else rows.T[np.newaxis], scales, adj_y=adj_y, axis=1 if adj_y else 2
    ).build()
    judge = Network()
    source = judge.input((1, 2, 4), dtype="int16", scale=0.001)
    judge.fully_connected(source, rows, weight_scales=scales, dtype="int16", scale=0.002)
    value = random.integers(-32768, 32768, (1, 2, 4)).astype(np.int16)
    library = compile_bytes(model)
    ((got,),) = run_many_on_host([(library, library.modules[0], [value])])
    expected = tflite_micro_run(judge.build(), [value])[0].reshape(got.shape)
    np.testing.assert_array_equal(got, expected)
    assert len(np.unique(got)) > 4, "not only saturated"


def test_product_with_scales_along_its_sums() -> None:
    assert_tflite_refused(
        product(np.ones((1, 4, 3), np.int8), [0.1] * 4, adj_y=False, axis=1).build(),
        "operator-invalid",
        "operator 0 (BATCH_MATMUL) writing 't2'",
        "dimension 1",
    )
