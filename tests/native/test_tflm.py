"""The option ``tflm`` selects the release of TensorFlow Lite Micro whose numbers the code has."""

import re
from dataclasses import replace
from importlib.metadata import version
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.compilers import compiler_called
from mlfbuild.core import UnsupportedModelError, UsageError
from mlfbuild.library import CompileRequest
from mlfbuild.native import read_network
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph.bases import lstm_tensors
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.targets import CPUS
from support.drawing import Array, Case
from support.errors import raises
from support.host_c import run_many_on_host
from support.oracle import tflite_micro_run
from support.random_graphs import random_case
from support.streaming_networks import drawn_streams
from support.tflite_builder import Network

SOURCE, WEIGHTS = (float(np.float32(scale)) for scale in (0.010724610649049282, 0.01905881054699421))
OUTPUT = float(np.float32(SOURCE) * np.float32(WEIGHTS)) * 2**20
"""The multiplier is 2**-20 if the product of the scales is rounded to float32, and a little less otherwise."""

TODAY = np.arange(30, 90)
"""What the networks output: sums of (k + 0.5) * 2**20 come to a little less than k + 0.5.

Below 30, the first of the two roundings makes them ties again.
"""
OLDER = TODAY + 1
"""The same with the older multiplier: ties are rounded up."""

SUMS: Array = (2 * TODAY + 1) << 19


def networks() -> dict[str, Case]:
    """Return each network by a name for it."""
    return {
        "fully_connected_int8": _fully_connected("int8", "int32"),
        "fully_connected_int16_wide": _fully_connected("int16", "int64"),
        "fully_connected_int16_narrow": _fully_connected("int16", "int32"),
        "batch_matmul_int8": _batch_matmul("int8"),
        "batch_matmul_int16": _batch_matmul("int16"),
        "svdf": _svdf(),
    }


def _fully_connected(dtype: str, bias_type: str) -> Case:
    net = Network()
    source = net.input((1, 4), SOURCE, dtype=dtype)
    weights, bias = np.zeros((len(SUMS), 4), np.int8), SUMS.astype(bias_type)
    net.fully_connected(source, weights, bias, weight_scales=[WEIGHTS], scale=OUTPUT, dtype=dtype)
    return Case(net.build(), (np.zeros((1, 4), dtype),))


def _batch_matmul(dtype: str) -> Case:
    """The sums as products: of the greatest value with as many of its kind as fit, and of 1 with the rest."""
    greatest = int(np.iinfo(dtype).max)
    depth = int(SUMS.max()) // greatest**2 + 3
    first, second = np.full((1, depth), greatest, dtype), np.zeros((depth, len(SUMS)), dtype)
    first[0, -1] = 1
    for column, total in enumerate(SUMS):
        whole, second[-1, column] = divmod(int(total), greatest)
        count, second[depth - 2, column] = divmod(whole, greatest)
        second[:count, column] = greatest
    net = Network()
    operands = [net.input(value.shape, scale, dtype=dtype) for value, scale in ((first, SOURCE), (second, WEIGHTS))]
    output = net.activation((1, len(SUMS)), OUTPUT, dtype=dtype)
    net.operator("BATCH_MATMUL", operands, output, "BatchMatMulOptions", AdjX=False, AdjY=False)
    return Case(net.build(), (first, second))


def _svdf() -> Case:
    """Features of 0, so that the sums are the biases."""
    net, count = Network(), len(SUMS)
    source, feature = net.input((1, 2), 0.1), net.constant(np.zeros((count, 2), np.int8), 0.01)
    time, bias = (
        net.constant(np.zeros((count, 2), np.int16), WEIGHTS),
        net.constant(SUMS.astype(np.int32), OUTPUT / 2**20),
    )
    state = net.activation((1, 2 * count), SOURCE, dtype="int16")
    net.tensors[state].is_variable = True
    net.operator("SVDF", [source, feature, time, bias, state], net.activation((1, count), OUTPUT), "SVDFOptions",
                 Rank=1, FusedActivationFunction=1)  # fmt: skip
    return Case(net.build(), (np.zeros((1, 2), np.int8),))


ROOT = Path(__file__).parents[2]
PINNED = re.findall(r'"tflite-micro==(\S+)"', (ROOT / "pyproject.toml").read_text())[0]


def wanted(
    case: Case | bytes, folder: Path, name: str = "net", cpu: str = "cortex-m4", **options: str
) -> CompileRequest:
    source = folder / f"{name}.tflite"
    source.write_bytes(case if isinstance(case, bytes) else case.model)
    return CompileRequest(name, source, CPUS[cpu], options=options)


def differing() -> list[str]:
    """The networks that the installed judge computes differently from the numpy references."""
    found = []
    for name, case in {**networks(), **{f"random network {seed}": random_case(seed, 12) for seed in range(40)}}.items():
        graph = parse_tflite(case.model, "net", "net")
        values = evaluate(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
        results = zip(graph.outputs, tflite_micro_run(case.model, case.inputs), strict=True)
        whole = [(values[output], got) for output, got in results if got.dtype != np.float32]
        if any(not np.array_equal(value.reshape(got.shape), got) for value, got in whole):
            found.append(name)
    return found


def test_the_judge_computes_as_the_version_that_the_docs_name() -> None:
    assert f"`{PINNED}`" in (ROOT / "docs/numbers.md").read_text()
    installed, found = version("tflite-micro"), differing()
    if installed == PINNED:
        assert not found, f"mlfbuild's references differ from tflite-micro {PINNED} in {found}"
    assert not found, (
        f"tflite-micro {installed} computes other numbers than {PINNED}, which docs/numbers.md names, in {found}: "
        "install the version that pyproject.toml pins, or follow the newer one and give the option tflm a date"
    )


def test_the_option_selects_the_multiplier(tmp_path: Path) -> None:
    jobs, expected = [], []
    for cpu in ("cortex-m4", "cortex-m55", "cortex-m0plus"):
        for word, case in networks().items():
            for date, right in {"": TODAY, "2026-10-12": OLDER}.items():
                name = f"{word}_{cpu}_{date}".replace("-", "_")
                options = {"tflm": date} if date else {}
                library = compiler_called("native").compile(wanted(case, tmp_path, name, cpu, **options))
                assert library.modules[0].tflm == (date or "2026-10-13")
                jobs.append((library, library.modules[0], case.inputs))
                expected.append(right)
    for (_, module, _), (got,), right in zip(jobs, run_many_on_host(jobs, sanitize=False), expected, strict=True):
        np.testing.assert_array_equal(got.reshape(-1), right, err_msg=module.name)


@pytest.mark.parametrize(("options", "right"), [({}, TODAY), ({"tflm": "2026-10-12"}, OLDER)])
def test_references_follow_the_option(tmp_path: Path, options: dict[str, str], right: np.ndarray) -> None:
    for name, case in networks().items():
        graph, _ = read_network(wanted(case, tmp_path, **options))
        values = evaluate(graph, dict(zip(graph.inputs, case.inputs, strict=True)))
        np.testing.assert_array_equal(values[graph.outputs[0]].reshape(-1), right, err_msg=name)


def test_lstm_layers_follow_the_option(tmp_path: Path) -> None:
    """Each gate has a multiplier of the product of two scales; the judge shows it in few values, in ``make sweep``."""
    different = 0
    for stream in drawn_streams("UNIDIRECTIONAL_SEQUENCE_LSTM int8", 5):
        layers = []
        for options in ({}, {"tflm": "2026-10-12"}):
            graph, _ = read_network(wanted(stream.model, tmp_path, **options))
            (node,) = graph.nodes
            tensors = lstm_tensors(graph.inputs_of(node), graph.outputs_of(node))
            layers.append(node.operator.rescales(tensors))
        different += layers[0] != layers[1]
    assert different


def test_graphs_follow_the_option(tmp_path: Path) -> None:
    request = wanted(networks()["fully_connected_int8"], tmp_path, tflm="2026-10-12")
    (module,) = compiler_called("native").compile(replace(request, executor="graph")).modules
    assert module.tflm == "2026-10-12"


@pytest.mark.parametrize("date", ["2026-10-11", "latest", 20261012, True])
def test_other_dates_are_refused(tmp_path: Path, date: object) -> None:
    with raises(UsageError, "invalid-option", "net: options.tflm"):
        compiler_called("native").compile(wanted(b"", tmp_path, tflm=date))  # type: ignore[arg-type]


def test_onnx_models_are_refused(tmp_path: Path) -> None:
    request = replace(wanted(b"", tmp_path, tflm="2026-10-12"), source=tmp_path / "net.onnx")
    with raises(UsageError, "tflm-of-onnx", "net: options.tflm"):
        compiler_called("native").compile(request)


def test_a_product_that_no_float32_holds_is_refused(tmp_path: Path) -> None:
    """Today's rule computes it in double."""
    net = Network()
    net.fully_connected(net.input((1, 1), 1e20), np.ones((1, 1), np.int8), weight_scales=[1e19], scale=3e38)
    model = net.build()
    compiler_called("native").compile(wanted(model, tmp_path))
    with raises(UnsupportedModelError, "product-of-scales"):
        compiler_called("native").compile(wanted(model, tmp_path, tflm="2026-10-12"))
