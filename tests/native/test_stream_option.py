"""With the option ``stream``, rows that come one by one give what the network of the window gives for each window."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest

from mlfbuild.core import UnsupportedModelError
from mlfbuild.library import CompileRequest, OptionValue
from mlfbuild.native import windows_of
from mlfbuild.native.build import read_network
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate_in_turn
from mlfbuild.targets import CPUS
from support.host_c import run_many_on_host
from support.native import compile_network
from support.oracle import tflite_micro_cases
from support.tflite_builder import Network

Array = npt.NDArray[Any]

ROWS, FEATURES, RUNS = 12, 6, 20
Layer = Callable[["Layers", int], int]


class Layers:
    """Layers with random weights, of int8 or float32."""

    def __init__(self, dtype: str) -> None:
        self.int8 = dtype == "int8"
        self.random = np.random.default_rng(5)
        self.net = Network()

    def affine(self, scale: float, zero_point: int) -> dict[str, float]:
        return {"scale": scale, "zero_point": zero_point} if self.int8 else {}

    def weights(self, *shape: int) -> Array:
        if self.int8:
            return self.random.integers(-127, 128, shape, dtype=np.int8)
        return self.random.normal(0, 0.4, shape).astype(np.float32)

    def scales(self, count: int) -> dict[str, list[float]]:
        return {"weight_scales": self.random.uniform(0.004, 0.008, count).tolist()} if self.int8 else {}

    def conv(self, x: int, rows: int, columns: int = 1, **options: Any) -> int:
        weights = self.weights(8, rows, columns, self.net.tensors[x].shape[3])
        return self.net.conv2d(x, weights, **self.scales(8), **self.affine(0.06, -9), activation="RELU", **options)

    def depthwise(self, x: int, rows: int, columns: int = 1, **options: Any) -> int:
        channels = self.net.tensors[x].shape[3]
        weights = self.weights(1, rows, columns, channels)
        return self.net.depthwise_conv2d(x, weights, **self.scales(channels), **self.affine(0.05, 4), **options)

    def scores(self, x: int, *, each_row: bool = False) -> int:
        depth = self.net.tensors[x].shape[-1] if each_row else int(np.prod(self.net.tensors[x].shape))
        weights = self.weights(3, depth)
        scales = self.scales(1)
        x = self.net.fully_connected(x, weights, **scales, **self.affine(0.1, 2), keep_num_dims=each_row)
        return self.net.softmax(x)

    def gated(self, x: int) -> int:
        """Multiply each row by a gate that is computed of all rows."""
        gate = self.net.mean(x, [1], keep_dims=True, **self.affine(0.06, -9))
        return self.net.binary("MUL", x, gate, **self.affine(0.05, 1))


def separable(layers: Layers, x: int) -> int:
    return layers.scores(layers.depthwise(layers.conv(layers.depthwise(layers.conv(x, 1), 3), 1), 10))


def dilated(layers: Layers, x: int) -> int:
    return layers.scores(layers.conv(layers.depthwise(x, 4, dilation=(3, 1)), 3))


def residual(layers: Layers, x: int) -> int:
    x = layers.conv(x, 3)
    x = layers.net.add(x, layers.conv(x, 1), **layers.affine(0.09, 3))
    return layers.scores(layers.net.pool2d("MAX", layers.net.pool2d("AVERAGE", x, (4, 1)), (7, 1)))


def one_dimensional(layers: Layers, x: int) -> int:
    """The form of Conv1D: time is the width of an image of one row."""
    x = layers.conv(layers.net.reshape(x, (1, 1, ROWS, FEATURES)), 1, 5)
    return layers.scores(layers.conv(layers.net.reshape(x, (1, ROWS - 4, 1, 8)), ROWS - 4))


def flattened(layers: Layers, x: int) -> int:
    return layers.scores(layers.conv(x, 3))


def padded(layers: Layers, x: int) -> int:
    return layers.scores(layers.conv(layers.conv(layers.conv(x, 2), 3, padding="SAME"), 3, stride=(2, 1)))


def gated(layers: Layers, x: int) -> int:
    return layers.scores(layers.conv(layers.gated(layers.conv(x, 3)), 3))


def by_row(layers: Layers, x: int) -> int:
    return layers.scores(layers.conv(layers.conv(x, 4), 3), each_row=True)


NETWORKS: tuple[Layer, ...] = (separable, dilated, residual, one_dimensional, flattened, padded, gated, by_row)


def model_of(layer: Layer, dtype: str) -> bytes:
    layers = Layers(dtype)
    return layers.net.build([layer(layers, layers.net.input((1, ROWS, 1, FEATURES), **layers.affine(0.04, -7)))])


def read(model: bytes, folder: Path, name: str = "net", **options: OptionValue) -> Graph:
    path = folder / "net.tflite"
    path.write_bytes(model)
    return read_network(CompileRequest(name, path, CPUS["host"], options=options))[0]


@dataclass(frozen=True)
class Stream:
    """A network that receives rows, and the outputs of TensorFlow Lite Micro for the window after each."""

    graph: Graph
    rows: Sequence[Array]
    expected: Sequence[Array]


def stream_of(layer: Layer, dtype: str, folder: Path) -> Stream:
    model = model_of(layer, dtype)
    graph, whole = read(model, folder, layer.__name__, stream=True), read(model, folder)
    window = whole.tensor(whole.inputs[0])
    random = np.random.default_rng(8).normal(0, 1, (RUNS, 1, 1, *window.shape[2:]))
    rows = (random * 40 if dtype == "int8" else random).clip(-128, 127).astype(window.dtype.numpy)
    cases = tflite_micro_cases(model, [[case] for case in windows_of(rows, window)])
    newest = tuple(slice(-size, None) for size in graph.tensor(graph.outputs[0]).shape)
    return Stream(graph, rows, [case[0][newest] for case in cases])


def differ(value: Array, expected: Array) -> bool:
    value = value.reshape(expected.shape)
    if expected.dtype == np.float32:
        return not np.allclose(value, expected, rtol=1e-4, atol=1e-5)
    return not np.array_equal(value, expected)


@pytest.mark.parametrize("dtype", ["int8", pytest.param("float32", marks=pytest.mark.sweep)])
def test_every_run_equals_tensorflow_lite_micro_on_the_window(dtype: str, tmp_path: Path) -> None:
    streams = [stream_of(layer, dtype, tmp_path) for layer in NETWORKS]
    libraries = [compile_network(stream.graph, "host") for stream in streams]
    jobs = [
        (library, library.modules[0], [row])
        for library, stream in zip(libraries, streams, strict=True)
        for row in stream.rows
    ]
    computed = iter(run_many_on_host(jobs))
    for stream in streams:
        name, source, output = stream.graph.name, stream.graph.inputs[0], stream.graph.outputs[0]
        assert len({expected.tobytes() for expected in stream.expected}) >= RUNS // 3, f"{name}: rows are heard"
        runs = evaluate_in_turn(stream.graph, [{source: row} for row in stream.rows])
        for run, (values, expected) in enumerate(zip(runs, stream.expected, strict=True)):
            assert not differ(values[output], expected), f"{name}: reference, run {run}"
            assert not differ(next(computed)[0], expected), f"{name}: C, run {run}"


def test_rows_of_layers_are_kept_instead_of_windows(tmp_path: Path) -> None:
    """Of 12 rows of the input each layer keeps those of its filter, and computes one."""
    model = model_of(separable, "int8")
    whole, graph = compile_network(read(model, tmp_path)), compile_network(read(model, tmp_path, stream=True))
    assert graph.modules[0].state_size == 3 * 8 + 10 * 8
    assert [sum(node.macs for node in each.modules[0].network.operators) for each in (whole, graph)] == [
        12 * 6 * 8 + 10 * 8 * 3 + 10 * 8 * 8 + 10 * 8 + 8 * 3, 6 * 8 + 8 * 3 + 8 * 8 + 10 * 8 + 8 * 3
    ]  # fmt: skip
    assert graph.modules[0].inputs[0].shape == (1, 1, 1, FEATURES)


@pytest.mark.parametrize(
    ("layer", "stop"), [(separable, []), (flattened, ["FULLY_CONNECTED"]), (padded, ["CONV_2D"]), (gated, ["MEAN"])]
)
def test_a_note_names_the_operator_that_needs_all_rows(layer: Layer, stop: list[str], tmp_path: Path) -> None:
    notes = read(model_of(layer, "int8"), tmp_path, stream=True).notes
    assert [note.split()[1] for note in notes] == stop


def test_networks_without_a_window_are_refused(tmp_path: Path) -> None:
    layers = Layers("int8")
    x = layers.net.input((1, 1, 1, FEATURES), **layers.affine(0.04, -7))
    with pytest.raises(UnsupportedModelError) as refused:
        read(layers.net.build([layers.conv(x, 1)]), tmp_path, stream=True)
    assert (refused.value.code, refused.value.exit_code) == ("not-a-window", 4)
