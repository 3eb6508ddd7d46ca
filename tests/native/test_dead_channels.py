"""Channels that are constant or unused: which are removed, through which operators, and that no value changes."""

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from mlfbuild.archive import open_archive, write_archive
from mlfbuild.core.files import sha256
from mlfbuild.library import OptionValue, RemovedChannels
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.tflite import parse_tflite
from mlfbuild.native.graph import Activation, Array, DType, Graph, Quantization, Tensor
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.ops import (
    Add,
    AveragePool2D,
    Concatenation,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    MaxPool2D,
    Mean,
    Mul,
    Pad,
    Quantize,
    Relu,
    Reshape,
)
from mlfbuild.native.passes import remove_dead_channels, run_passes
from support.chain_networks import chain_case
from support.host_c import assert_many_on_host
from support.native import request
from support.sketch import RANDOM, Sketch

CHANNELS, DEAD = 12, (1, 2, 5, 6, 7, 8, 9, 11)
"""The channels of the first layer, and those of its filters that are all zero."""
SAME = ((1, 1), (1, 1))


def drawn(graph: Graph, seed: int) -> Mapping[str, Array]:
    random = np.random.default_rng(seed)
    return {
        name: random.normal(size=graph.tensor(name).shape).astype(np.float32)
        if graph.tensor(name).dtype is DType.FLOAT32
        else random.integers(-100, 100, graph.tensor(name).shape).astype(graph.tensor(name).dtype.numpy)
        for name in graph.inputs
    }


def assert_same_values(before: Graph, after: Graph) -> None:
    assert (before.inputs, before.outputs) == (after.inputs, after.outputs)
    for seed in range(2):
        expected, got = (evaluate(graph, drawn(before, seed)) for graph in (before, after))
        for name in before.outputs:
            if before.tensor(name).dtype is DType.FLOAT32:
                np.testing.assert_allclose(got[name], expected[name], rtol=1e-5, atol=1e-5)
            else:
                np.testing.assert_array_equal(got[name], expected[name])


def planted(graph: Graph, seed: int) -> Graph:
    """Return ``graph`` with a third of the filters of its layers set to zero."""
    random, tensors = np.random.default_rng(seed), dict(graph.tensors)
    for node in graph.nodes:
        weights = (
            graph.inputs_of(node)[1] if isinstance(node.operator, Conv2D | DepthwiseConv2D | FullyConnected) else None
        )
        if weights is not None and weights.data is not None:
            axis = 0 if isinstance(node.operator, FullyConnected) else node.operator.channel_axis
            data = np.moveaxis(weights.data.copy(), axis, 0)
            data[random.random(len(data)) < 1 / 3] = 0
            tensors[weights.name] = replace(weights, data=np.ascontiguousarray(np.moveaxis(data, 0, axis)))
    return Graph(graph.name, list(tensors.values()), graph.nodes, graph.inputs, graph.outputs, graph.states)


def removed(before: Graph, after: Graph) -> int:
    """Return how many channels of activations were removed."""
    return sum(
        tensor.shape[-1] - after.tensor(name).shape[-1]
        for name, tensor in before.tensors.items()
        if name in after.tensors and tensor.shape and not tensor.constant
    )


def chains(*, quantized: bool) -> list[Graph]:
    """Return networks with zero filters, in which pools, additions and depthwise layers follow each other."""
    graphs = []
    for seed in (5, 9, 13, 17, 18, 22) if quantized else (3, 7, 19, 23):
        name = f"net{seed}"
        model = chain_case(seed, quantized=quantized).model
        graphs.append(planted(run_passes(parse_tflite(model, name, name)), seed))
    return graphs


@pytest.mark.parametrize("quantized", [True, False])
def test_random_networks_keep_their_values(quantized: bool) -> None:
    total = 0
    for graph in chains(quantized=quantized):
        smaller = remove_dead_channels(graph, multiple=1)
        assert_same_values(graph, smaller)
        total += removed(graph, smaller)
    assert total > 30


def test_compiled_networks_have_the_values_of_the_whole_ones() -> None:
    jobs, expected = [], []
    for graph in chains(quantized=True)[:2]:
        smaller = remove_dead_channels(graph, multiple=1)
        assert removed(graph, smaller)
        inputs = drawn(graph, 0)
        library = compile_graph(smaller, request(graph.name), sha256(b""))
        jobs.append((library, library.modules[0], [inputs[name] for name in graph.inputs]))
        values = evaluate(graph, inputs)
        expected.append([values[name] for name in graph.outputs])
    assert_many_on_host(jobs, expected)


class Layers(Sketch):
    """A network that begins with a layer of which some filters are all zero."""

    def __init__(self, *, zero_point: int = -128, bias: int = -500) -> None:
        super().__init__()
        data = RANDOM.integers(-127, 128, (CHANNELS, 1, 1, 4), dtype=np.int8)
        data[list(DEAD)] = 0
        self.tensor("x", 1, 6, 6, 4)
        self.tensors.append(Tensor("b", (CHANNELS,), DType.INT32, data=np.full(CHANNELS, bias, np.int32)))
        self.first = self.image("first", zero_point=zero_point)
        self.node(Conv2D(activation=Activation.RELU), "x", self.weights("w", data=data), "b", self.first)

    def image(self, name: str, size: int = 6, channels: int = CHANNELS, zero_point: int = -128) -> str:
        return self.tensor(name, 1, size, size, channels, scale=0.5, zero_point=zero_point)

    def ended(self, source: str) -> Graph:
        """Return the network with a last layer that reads ``source``."""
        channels = next(tensor.shape[-1] for tensor in self.tensors if tensor.name == source)
        size = next(tensor.shape[1] for tensor in self.tensors if tensor.name == source)
        self.node(Conv2D(), source, self.weights("last", 3, 1, 1, channels), self.image("y", size, 3))
        return self.graph(["x"], ["y"])


def after_removal(graph: Graph) -> Graph:
    smaller = remove_dead_channels(graph)
    assert_same_values(graph, smaller)
    return smaller


def test_filters_of_zeros_are_removed_and_their_constants_folded() -> None:
    graph = after_removal(Layers(bias=900).ended("first"))
    assert graph.tensor("first").shape == (1, 6, 6, 4)
    assert [graph.inputs_of(node)[1].shape for node in graph.nodes] == [(4, 1, 1, 4), (3, 1, 1, 4)]
    (note,) = graph.notes
    assert note.startswith("8 of 12 channels in 1 layer ")


def through(kind: str) -> Graph:
    """Return a network in which the channels pass an operator of ``kind``."""
    layers = Layers(bias=900)
    if kind == "average pool":
        layers.node(AveragePool2D((2, 2), (2, 2)), "first", layers.image("out", 3))
    elif kind == "maximum pool":
        layers.node(MaxPool2D((3, 3), padding=SAME), "first", layers.image("out"))
    elif kind == "depthwise":
        layers.node(DepthwiseConv2D(), "first", layers.weights("d", 1, 3, 3, CHANNELS), layers.image("out", 4))
    elif kind == "quantize":
        layers.node(Quantize(), "first", layers.image("out", zero_point=4))
    elif kind == "activation":
        layers.node(Relu(), "first", layers.image("out"))
    elif kind == "addition":
        layers.node(MaxPool2D((1, 1)), "first", layers.image("other"))
        layers.node(Add(), "first", "other", layers.image("out"))
    elif kind == "product":
        layers.tensor("factors", 1, 1, 1, CHANNELS, constant=True)
        layers.node(Mul(), "first", "factors", layers.image("out"))
    elif kind == "concatenation with a constant":
        layers.tensor("fixed", 1, 6, 6, 4, scale=0.5, zero_point=-128, constant=True)
        layers.node(Concatenation(3), "fixed", "first", layers.image("out", channels=CHANNELS + 4))
    elif kind == "concatenation":
        layers.node(MaxPool2D((1, 1)), "first", layers.image("other"))
        layers.node(Concatenation(3), "first", "other", layers.image("out", channels=2 * CHANNELS))
    return layers.ended("out")


KINDS = (
    "activation", "addition", "average pool", "concatenation", "depthwise", "maximum pool", "product", "quantize",
)  # fmt: skip


@pytest.mark.parametrize("kind", KINDS)
def test_channels_are_removed_through_operators(kind: str) -> None:
    graph = through(kind)
    smaller, times = after_removal(graph), 2 if kind == "concatenation" else 1
    assert smaller.tensor("first").shape[-1] == 4
    assert smaller.tensor("out").shape[-1] == graph.tensor("out").shape[-1] - (CHANNELS - 4) * times


def test_channels_of_constants_stay_in_a_concatenation() -> None:
    smaller = after_removal(through("concatenation with a constant"))
    assert (smaller.tensor("first").shape[-1], smaller.tensor("out").shape[-1]) == (4, 8)


def test_channels_are_removed_through_a_mean_and_a_reshape() -> None:
    layers = Layers()
    layers.node(Mean((1, 2)), "first", layers.tensor("mean", 1, CHANNELS, scale=0.5, zero_point=-128))
    layers.node(Reshape(), "first", layers.tensor("flat", 1, 36 * CHANNELS, scale=0.5, zero_point=-128))
    for source, depth in (("mean", CHANNELS), ("flat", 36 * CHANNELS)):
        layers.node(
            FullyConnected(), source, layers.weights(f"w {source}", 2, depth), layers.tensor(f"y {source}", 1, 2)
        )
    smaller = after_removal(layers.graph(["x"], ["y mean", "y flat"]))
    assert (smaller.tensor("mean").shape, smaller.tensor("flat").shape) == ((1, 4), (1, 144))


def test_constants_beside_padding_are_removed_only_if_they_are_zero() -> None:
    for bias, left in ((-500, 4), (900, CHANNELS)):
        layers = Layers(bias=bias)
        layers.node(Conv2D(padding=SAME), "first", layers.weights("last", 3, 3, 3, CHANNELS), layers.image("y", 6, 3))
        assert after_removal(layers.graph(["x"], ["y"])).tensor("first").shape[-1] == left
    layers = Layers(bias=900)
    layers.node(Pad(((0, 0), (1, 1), (1, 1), (0, 0))), "first", layers.image("out", 8))
    assert after_removal(layers.ended("out")).tensor("out").shape[-1] == CHANNELS


def test_unused_channels_are_removed() -> None:
    layers = Layers()
    data = RANDOM.integers(1, 128, (4, 1, 1, CHANNELS), dtype=np.int8)
    data[..., 3:] = 0
    layers.node(Conv2D(), "first", layers.weights("last", data=data), layers.image("y", 6, 4))
    smaller = after_removal(layers.graph(["x"], ["y"]))
    assert smaller.tensor("first").shape[-1] == 4


def test_a_clamp_proves_that_a_channel_is_constant() -> None:
    """The sums of small weights never reach the lower bound, or always exceed the upper one."""
    layers = Layers(bias=0)
    weights = np.ones((8, 1, 1, CHANNELS), np.int8)
    bias = np.array([0, -9999, 0, 0, 0, 999_999, -9999, -9999], np.int32)
    layers.tensors.append(Tensor("bias", (8,), DType.INT32, data=bias))
    layers.weights("small", data=weights)
    layers.node(Conv2D(activation=Activation.RELU), "first", "small", "bias", layers.image("second", channels=8))
    assert after_removal(layers.ended("second")).tensor("second").shape[-1] == 4


def test_results_that_wrap_or_leave_the_network_stay() -> None:
    layers = Layers()
    assert remove_dead_channels(layers.graph(["x"], ["first"])).tensor("first").shape[-1] == CHANNELS
    layers = Layers(bias=np.iinfo(np.int32).min)
    after_removal(layers.ended("first"))


def test_float_layers_fold_constants_without_a_bias() -> None:
    sketch = Sketch()
    data = RANDOM.normal(size=(8, 1, 1, 4)).astype(np.float32)
    data[:4] = 0
    bias = np.arange(8, dtype=np.float32)
    sketch.tensors += [
        Tensor("w", data.shape, DType.FLOAT32, data=data),
        Tensor("b", bias.shape, DType.FLOAT32, data=bias),
        Tensor("last", (2, 1, 1, 8), DType.FLOAT32, data=RANDOM.normal(size=(2, 1, 1, 8)).astype(np.float32)),
    ]
    sketch.node(Conv2D(), sketch.real("x", 1, 3, 3, 4), "w", "b", sketch.real("first", 1, 3, 3, 8))
    sketch.node(Conv2D(), "first", "last", sketch.real("y", 1, 3, 3, 2))
    smaller = after_removal(sketch.graph(["x"], ["y"]))
    assert smaller.tensor("first").shape[-1] == 4
    assert len(smaller.nodes[1].inputs) == 3


def test_int16_layers_fold_constants_in_64_bits() -> None:
    sketch = Sketch()
    affine = Quantization((0.001,), (0,))
    data = RANDOM.integers(-127, 128, (8, 1, 1, 4), dtype=np.int8)
    data[4:] = 0
    bias = np.full(8, 1 << 22, np.int64)
    for name, channels in (("x", 4), ("first", 8), ("y", 2)):
        sketch.tensors.append(Tensor(name, (1, 3, 3, channels), DType.INT16, affine))
    sketch.tensors.append(Tensor("b", (8,), DType.INT64, data=bias))
    sketch.node(Conv2D(), "x", sketch.weights("w", data=data), "b", "first")
    sketch.node(Conv2D(), "first", sketch.weights("last", 2, 1, 1, 8), "y")
    smaller = after_removal(sketch.graph(["x"], ["y"]))
    assert smaller.tensor("first").shape[-1] == 4
    assert [tensor.dtype for tensor in smaller.inputs_of(smaller.nodes[1])][2] is DType.INT64


def int16_network(bias: int, last: int = 0) -> Graph:
    """Return two int16 layers; the sums of the first exceed 32 bits when they are rescaled."""
    sketch = Sketch()
    for name, channels, scale in (("x", 64, 1.0), ("first", 8, 0.0002), ("y", 2, 1.0)):
        sketch.tensors.append(Tensor(name, (1, 1, 1, channels), DType.INT16, Quantization((scale,), (0,))))
    factors = np.full((8, 1, 1, 64), 127, np.int8)
    for name, values in (("b", np.arange(8) * 1_234_567 + bias), ("last b", np.full(2, last))):
        sketch.tensors.append(Tensor(name, values.shape, DType.INT64, data=values))
    if last:
        factors[4:] = 0
    sketch.node(Conv2D(), "x", sketch.weights("w", data=factors), "b", "first")
    sketch.node(Conv2D(), "first", sketch.weights("last w", 2, 1, 1, 8), "last b", "y")
    return sketch.graph(["x"], ["y"])


def test_sums_of_64_bits_that_wrap_are_not_constant() -> None:
    for bias in range(0, 543_169_840, 13_579_246):
        assert remove_dead_channels(int16_network(bias)).tensor("first").shape[-1] == 8


def test_a_bias_near_its_limit_keeps_the_channels() -> None:
    assert remove_dead_channels(int16_network(1 << 22, last=100)).tensor("first").shape[-1] == 4
    assert remove_dead_channels(int16_network(1 << 22, last=(1 << 46) - 1)).tensor("first").shape[-1] == 8


def test_depthwise_layers_with_a_constant_image_or_computed_weights_keep_their_channels() -> None:
    for source, weights in (("c", "x"), ("x", "x"), ("c", "c")):
        sketch = Sketch()
        sketch.tensors.append(Tensor("c", (1, 3, 3, 4), DType.FLOAT32, data=np.ones((1, 3, 3, 4), np.float32)))
        sketch.node(DepthwiseConv2D(), source, weights, sketch.real("product", 1, 1, 1, 4))
        sketch.node(Add(), "product", sketch.real("x", 1, 3, 3, 4), sketch.real("y", 1, 3, 3, 4))
        graph = sketch.graph(["x"], ["y"])
        assert remove_dead_channels(graph) is graph


def test_huge_tensors_are_not_computed_to_find_constants() -> None:
    sketch = Sketch()
    sketch.tensor("c", 1, 1, 1, 4, constant=True)
    paddings = ((0, 0), (0, 99_999), (0, 99_999), (0, 0))
    sketch.node(Pad(paddings), "c", sketch.tensor("padded", 1, 100_000, 100_000, 4))
    size = (50_000, 50_000)
    sketch.node(MaxPool2D(size, size), "padded", sketch.tensor("y", 1, 2, 2, 4))
    graph = sketch.graph([], ["y"])
    assert remove_dead_channels(graph) is graph


@pytest.mark.parametrize("taken", ["first/weights", "first/bias", "out/operand1", "out/operand1/kept"])
def test_names_that_are_taken_are_not_used_again(taken: str) -> None:
    layers = Layers(bias=900)
    layers.tensor("factors", 1, 1, 1, CHANNELS, constant=True)
    layers.node(Mul(), "first", "factors", layers.image("out"))
    layers.image("out/operand1")
    layers.node(Relu(), "out", "out/operand1")
    if taken != "out/operand1":
        layers.node(Relu(), "out/operand1", layers.image(taken))
    assert after_removal(layers.ended(taken)).tensor("out").shape[-1] == 4


def test_weights_named_like_those_of_another_layer_stay() -> None:
    layers = Layers(bias=900)
    layers.weights("first/weights", CHANNELS, 1, 1, CHANNELS)
    layers.node(Conv2D(), "first", "first/weights", layers.image("second"))
    layers.node(Conv2D(), "second", "first/weights", layers.image("y"))
    assert after_removal(layers.graph(["x"], ["y"])).tensor("first").shape[-1] == 4


def test_a_depthwise_bias_may_have_several_dimensions() -> None:
    layers = Layers(bias=900)
    bias = np.arange(CHANNELS, dtype=np.int32).reshape(1, CHANNELS, 1)
    layers.tensors.append(Tensor("d b", bias.shape, DType.INT32, data=bias))
    layers.node(DepthwiseConv2D(), "first", layers.weights("d", 1, 3, 3, CHANNELS), "d b", layers.image("out", 4))
    assert after_removal(layers.ended("out")).tensor("out").shape[-1] == 4


def test_scales_of_the_channels_of_a_reshaped_tensor_are_removed() -> None:
    layers = Layers(bias=900)
    affine = Quantization((0.5, 0.25) * 6, (0,) * CHANNELS, 3)
    layers.tensors.append(Tensor("r", (1, 4, 9, CHANNELS), DType.INT8, affine))
    layers.node(Reshape(), "first", "r")
    layers.node(Reshape(), "r", layers.image("out"))
    assert after_removal(layers.ended("out")).tensor("r").shape[-1] == 4


def test_infinite_weights_of_other_channels_do_not_change_a_bias() -> None:
    sketch = Sketch()
    first, last = np.zeros((8, 4), np.float32), np.ones((2, 8), np.float32)
    first[:4], last[0, 0] = 1, np.inf
    for name, data in (("w", first), ("b", np.arange(8, dtype=np.float32)), ("last", last)):
        sketch.tensors.append(Tensor(name, data.shape, DType.FLOAT32, data=data))
    sketch.node(FullyConnected(), sketch.real("x", 1, 4), "w", "b", sketch.real("first", 1, 8))
    sketch.node(FullyConnected(activation=Activation.RELU6), "first", "last", sketch.real("y", 1, 2))
    assert after_removal(sketch.graph(["x"], ["y"])).tensor("first").shape[-1] == 4


def test_an_option_keeps_all_channels() -> None:
    graph, wanted = Layers().ended("first"), request("net")
    options: dict[str, OptionValue]
    for options, names in (({}, True), ({"dead-channels": "keep"}, False), ({"trace": True}, False)):
        module = compile_graph(graph, replace(wanted, options=options), sha256(b"")).modules[0]
        assert bool(module.notes) is names
        assert ('"first": int8[1,6,6,4]' in module.source_text.decode()) is names
        assert module.network is not None and (module.network.removed is not None) is names


@pytest.mark.parametrize("executor", ["aot", "graph"])
def test_archives_list_what_was_removed_from_each_layer(executor: str, tmp_path: Path) -> None:
    made = compile_graph(Layers(bias=900).ended("first"), replace(request("net"), executor=executor), sha256(b""))
    write_archive(made, tmp_path / "net.tar")
    library = open_archive(tmp_path / "net.tar")
    network = library.modules[0].network
    assert network is not None
    removed = [each for operator in network.operators for each in (operator.removed,) if each is not None]
    wide, narrow = RemovedChannels(8, 12, 8 * 4, 36 * 8 * 4), RemovedChannels(0, 3, 3 * 8, 36 * 3 * 8)
    assert removed in ([wide, narrow], [wide + narrow]), "two layers, or a chain of them"
    assert network.removed == wide + narrow


@pytest.mark.parametrize("number", [np.inf, np.nan, 3e38])
def test_numbers_that_are_not_finite_print_no_warning(number: float, recwarn: pytest.WarningsRecorder) -> None:
    sketch = Sketch()
    data = RANDOM.normal(size=(8, 1, 1, 4)).astype(np.float32)
    data[:4], data[5] = 0, number
    sketch.tensors += [
        Tensor("w", data.shape, DType.FLOAT32, data=data),
        Tensor("b", (8,), DType.FLOAT32, data=np.full(8, -number, np.float32)),
        Tensor("last", (2, 1, 1, 8), DType.FLOAT32, data=np.full((2, 1, 1, 8), 3e38, np.float32)),
    ]
    sketch.node(Conv2D(), sketch.real("x", 1, 3, 3, 4), "w", "b", sketch.real("first", 1, 3, 3, 8))
    sketch.node(Conv2D(), "first", "last", sketch.real("y", 1, 3, 3, 2))
    remove_dead_channels(sketch.graph(["x"], ["y"]))
    assert not recwarn.list
