"""The effect of each pass, its limits, and that no pass changes a value."""

import numpy as np
import pytest

from mlfbuild.native.graph import Activation, DType, Graph, Quantization, Tensor
from mlfbuild.native.graph.nodes import evaluate
from mlfbuild.native.graph.ops import (
    Add,
    Conv2D,
    DepthwiseConv2D,
    FullyConnected,
    MaxPool2D,
    Mul,
    Pad,
    Quantize,
    Relu,
    Reshape,
)
from mlfbuild.native.passes.fold_constants import fold_constants
from mlfbuild.native.passes.fold_scales import fold_scales
from mlfbuild.native.passes.fuse_activation import fuse_activation
from mlfbuild.native.passes.fuse_padding import fuse_padding
from mlfbuild.native.passes.layer_parts import split_layers
from mlfbuild.native.passes.pipeline import PASSES
from mlfbuild.native.passes.remove_dead_nodes import remove_dead_nodes
from mlfbuild.native.passes.remove_identities import remove_identities
from mlfbuild.native.passes.sink_reshapes import sink_reshapes
from mlfbuild.native.passes.widen_depthwise import widen_depthwise
from support.sketch import RANDOM, Sketch

MARGIN = ((0, 0), (1, 1), (1, 1), (0, 0))


def operators(graph: Graph) -> list[str]:
    return [node.operator.name for node in graph.nodes]


def assert_same_values(before: Graph, after: Graph) -> None:
    assert (before.inputs, before.outputs) == (after.inputs, after.outputs)
    sources = [before.tensor(name) for name in before.inputs]
    values = {each.name: RANDOM.integers(-128, 128, each.shape).astype(each.dtype.numpy) for each in sources}
    expected, got = evaluate(before, values), evaluate(after, values)
    for name in before.outputs:
        np.testing.assert_array_equal(expected[name], got[name])


def test_fold_constants_computes_what_reads_only_constants() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("a", 3, constant=True), s.tensor("b", 3, constant=True), s.tensor("sum", 3))
    s.node(Reshape(), "sum", s.tensor("column", 3, 1))
    s.node(Add(), s.tensor("x", 3, 1), "column", s.tensor("y", 3, 1))
    before = s.graph(["x"], ["y"])
    after = fold_constants(before)
    assert operators(after) == ["ADD"]
    assert after.tensor("column").constant
    assert "sum" not in after.tensors
    assert_same_values(before, after)


def test_fold_constants_keeps_results_that_would_fill_flash() -> None:
    s = Sketch()
    s.node(Pad(((0, 300_000),)), s.tensor("a", 3, constant=True), s.tensor("padded", 300_003))
    s.node(Add(), s.tensor("x", 300_003), "padded", s.tensor("y", 300_003))
    assert operators(fold_constants(s.graph(["x"], ["y"]))) == ["PAD", "ADD"]


def test_fold_constants_keeps_huge_results() -> None:
    s = Sketch()
    s.node(Pad(((0, 1 << 30),)), s.tensor("a", 1, constant=True), s.tensor("y", (1 << 30) + 1))
    assert operators(fold_constants(s.graph([], ["y"]))) == ["PAD"]


def test_remove_identities_bypasses_them() -> None:
    s = Sketch()
    s.node(Quantize(), s.tensor("x", 4), s.tensor("same", 4))
    s.node(Add(), "same", "x", s.tensor("sum", 4))
    s.node(Pad(((0, 0),)), "sum", s.tensor("y", 4))
    before = s.graph(["x"], ["y"])
    after = remove_identities(before)
    assert [(node.operator.name, node.inputs, node.outputs) for node in after.nodes] == [("ADD", ("x", "x"), ("y",))]
    assert_same_values(before, after)


def test_remove_identities_keeps_nodes_that_only_look_like_identities() -> None:
    s = Sketch()
    s.node(Quantize(), s.tensor("x", 4), s.tensor("other_scale", 4, scale=0.2))
    s.node(Reshape(), "other_scale", s.tensor("other_zero", 4, scale=0.2, zero_point=9))
    s.node(Reshape(), "other_zero", s.tensor("shaped", 2, 2, scale=0.2, zero_point=9))
    s.node(Quantize(), "x", s.tensor("output_of_an_input", 4))
    graph = s.graph(["x"], ["shaped", "output_of_an_input"])
    assert operators(remove_identities(graph)) == operators(graph)


def test_remove_identities_keeps_both_of_two_outputs() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 4), "x", s.tensor("y", 4))
    s.node(Quantize(), "y", s.tensor("z", 4))
    before = s.graph(["x"], ["y", "z"])
    after = remove_identities(before)
    assert operators(after) == ["ADD", "QUANTIZE"]
    assert_same_values(before, after)


def test_remove_identities_follows_chains_to_an_output() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 4), "x", s.tensor("sum", 4))
    for source, output in (("sum", "a"), ("a", "b"), ("b", "y")):
        s.node(Quantize(), source, s.tensor(output, 4))
    s.node(Add(), "a", "b", s.tensor("z", 4))
    before = s.graph(["x"], ["y", "z"])
    after = remove_identities(before)
    assert operators(after) == ["ADD", "ADD"]
    assert_same_values(before, after)


def convolution_behind_a_pad(pad_zero_point: int = 3) -> Sketch:
    s = Sketch()
    s.node(Pad(MARGIN), s.tensor("x", 1, 4, 4, 2), s.tensor("padded", 1, 6, 6, 2, zero_point=pad_zero_point))
    s.node(Conv2D(), "padded", s.weights("w", 3, 3, 3, 2), s.tensor("y", 1, 4, 4, 3, scale=2.0))
    return s


def test_fuse_padding_widens_a_convolution() -> None:
    before = convolution_behind_a_pad().graph(["x"], ["y"])
    after = remove_dead_nodes(fuse_padding(before))
    assert operators(after) == ["CONV_2D"]
    assert after.nodes[0].operator == Conv2D(padding=((1, 1), (1, 1)))
    assert_same_values(before, after)


def test_fuse_padding_keeps_a_pad_with_another_reader() -> None:
    s = convolution_behind_a_pad()
    s.node(MaxPool2D((2, 2)), "padded", s.tensor("z", 1, 5, 5, 2))
    assert operators(fuse_padding(s.graph(["x"], ["y", "z"]))) == ["PAD", "CONV_2D", "MAX_POOL_2D"]


def test_fuse_padding_keeps_a_pad_that_is_an_output_or_changes_the_zero_point() -> None:
    for graph in (
        convolution_behind_a_pad().graph(["x"], ["y", "padded"]),
        convolution_behind_a_pad(pad_zero_point=5).graph(["x"], ["y"]),
    ):
        assert operators(remove_dead_nodes(fuse_padding(graph))) == ["PAD", "CONV_2D"]


def test_fuse_padding_keeps_a_pad_wider_than_the_filter() -> None:
    s = Sketch()
    s.node(Pad(((0, 0), (3, 0), (0, 0), (0, 0))), s.tensor("x", 1, 4, 4, 2), s.tensor("padded", 1, 7, 4, 2))
    s.node(Conv2D(), "padded", s.weights("w", 3, 3, 3, 2), s.tensor("y", 1, 5, 2, 3, scale=2.0))
    assert operators(remove_dead_nodes(fuse_padding(s.graph(["x"], ["y"])))) == ["PAD", "CONV_2D"]


def test_remove_dead_nodes() -> None:
    s = Sketch()
    s.node(Add(), s.tensor("x", 3), "x", s.tensor("y", 3))
    s.node(Add(), "x", "y", s.tensor("unused", 3))
    s.node(Add(), "unused", "y", s.tensor("unused_too", 3))
    after = remove_dead_nodes(s.graph(["x", s.tensor("ignored", 4)], ["y"]))
    assert operators(after) == ["ADD"]
    assert set(after.tensors) == {"x", "y", "ignored"}


def test_passes_do_not_change_their_argument() -> None:
    graph = convolution_behind_a_pad().graph(["x"], ["y"])
    nodes, tensors = graph.nodes, dict(graph.tensors)
    for one_pass in PASSES:
        one_pass(graph)
    assert graph.nodes == nodes
    assert dict(graph.tensors) == tensors


def normalised(*, channels: tuple[int, ...] = (4,), weighted: str = "conv", shared: bool = False) -> Graph:
    """Return a float32 convolution, a factor and an offset for each of ``channels``, and a RELU."""
    s = Sketch()
    s.real("x", 1, 5, 5, 4)
    shape = {"conv": (4, 3, 3, 4), "depthwise": (1, 3, 3, 4), "dense": (4, 4)}[weighted]
    operator = {"conv": Conv2D(), "depthwise": DepthwiseConv2D(), "dense": FullyConnected(keep_num_dims=True)}[weighted]
    size = (1, 5, 5, 4) if weighted == "dense" else (1, 3, 3, 4)
    for name, constant in (("w", shape), ("factor", channels), ("offset", channels)):
        s.tensors.append(
            Tensor(name, constant, DType.FLOAT32, data=RANDOM.standard_normal(constant).astype(np.float32))
        )
    s.node(operator, "x", "w", s.real("c", *size))
    s.node(Mul(), "factor", "c", s.real("m", *size))
    s.node(Add(), "m", "offset", s.real("a", *size))
    s.node(Relu(), "a", s.real("y", *size))
    return s.graph(["x"], ["y", "m"] if shared else ["y"])


def assert_same_floats(before: Graph, after: Graph) -> None:
    values = {name: RANDOM.standard_normal(before.tensor(name).shape).astype(np.float32) for name in before.inputs}
    expected, got = evaluate(before, values), evaluate(after, values)
    assert (before.inputs, before.outputs) == (after.inputs, after.outputs)
    for name in before.outputs:
        # The terms are of the size of 1, also if they cancel each other in all results.
        np.testing.assert_allclose(got[name], expected[name], rtol=0, atol=1e-6 * max(np.abs(expected[name]).max(), 1))


@pytest.mark.parametrize("weighted", ["conv", "depthwise", "dense"])
@pytest.mark.parametrize("channels", [(4,), (1, 1, 1, 4), (1,), ()])
def test_batch_normalisation_and_relu_are_folded_into_the_weights(weighted: str, channels: tuple[int, ...]) -> None:
    before = normalised(weighted=weighted, channels=channels)
    after = fuse_activation(fold_scales(before))
    assert len(after.nodes) == 1
    assert_same_floats(before, after)


def test_outputs_of_the_graph_are_not_folded() -> None:
    before = normalised(shared=True)
    after = fuse_activation(fold_scales(before))
    assert operators(after) == ["CONV_2D", "ADD"]
    assert_same_floats(before, after)


def test_factor_for_each_column_is_not_folded() -> None:
    before = normalised(channels=(1, 3, 1))
    assert operators(fold_scales(before)) == ["CONV_2D", "MUL", "ADD", "RELU"]


def test_int8_relu_is_fused_if_both_tensors_have_the_same_scale() -> None:
    for scale, wanted in ((0.1, ["CONV_2D"]), (0.2, ["CONV_2D", "RELU"])):
        s = Sketch()
        s.node(Conv2D(), s.tensor("x", 1, 3, 3, 2), s.weights("w", 4, 1, 1, 2), s.tensor("c", 1, 3, 3, 4))
        s.node(Relu(), "c", s.tensor("y", 1, 3, 3, 4, scale=scale))
        before = s.graph(["x"], ["y"])
        assert operators(fuse_activation(before)) == wanted
        assert_same_values(before, fuse_activation(before))


def test_operators_between_convolutions_of_one_row_compute_in_their_shape() -> None:
    s = Sketch()
    image, line = (1, 1, 6, 2), (1, 6, 2)
    s.node(Conv2D(), s.tensor("x", *image), s.weights("w", 2, 1, 1, 2), s.tensor("c", *image))
    s.node(Reshape(), "c", s.tensor("c3", *line))
    s.node(Relu(), "c3", s.tensor("r", *line))
    s.node(Add(), "r", "c3", s.tensor("a", *line))
    s.node(Reshape(), "a", s.tensor("a4", *image))
    s.node(Conv2D(), "a4", s.weights("v", 2, 1, 1, 2), s.tensor("y", *image))
    s.node(Reshape(), "y", s.tensor("z", *line))
    before = s.graph(["x"], ["z", "r"])
    after = remove_identities(sink_reshapes(before))
    assert operators(after) == ["CONV_2D", "RELU", "RESHAPE", "ADD", "CONV_2D", "RESHAPE"]
    assert_same_values(before, after)


def test_operators_with_an_operand_of_another_shape_keep_theirs() -> None:
    s = Sketch()
    s.node(Conv2D(), s.tensor("x", 1, 1, 6, 2), s.weights("w", 2, 1, 1, 2), s.tensor("c", 1, 1, 6, 2))
    s.node(Reshape(), "c", s.tensor("c3", 1, 6, 2))
    s.node(Add(), "c3", s.tensor("b", 1, 6, 2), s.tensor("a", 1, 6, 2))
    before = s.graph(["x", "b"], ["a"])
    assert operators(sink_reshapes(before)) == ["CONV_2D", "RESHAPE", "ADD"]


def depthwise(channels: int, multiplier: int, scales: int = 1) -> Graph:
    """Return a depthwise convolution of 3x2 with padding, stride, a bias and an activation."""
    s = Sketch()
    many = channels * multiplier
    s.tensor("x", 2, 7, 6, channels)
    quantization = Quantization(tuple(0.01 + 0.002 * at for at in range(scales)), (0,) * scales, 3)
    filters = RANDOM.integers(-127, 128, (1, 3, 2, many), dtype=np.int8)
    s.tensors.append(Tensor("w", filters.shape, DType.INT8, quantization, filters))
    bias = RANDOM.integers(-900, 900, many).astype(np.int32)
    s.tensors.append(Tensor("b", bias.shape, DType.INT32, data=bias))
    operator = DepthwiseConv2D((2, 1), (1, 2), ((1, 1), (0, 1)), Activation.RELU6, depth_multiplier=multiplier)
    s.node(operator, "x", "w", "b", s.tensor("y", 2, 4, 5, many))
    return s.graph(["x"], ["y"])


@pytest.mark.parametrize("scales", [1, 5])
def test_depthwise_convolution_of_one_channel_becomes_a_convolution(scales: int) -> None:
    before = depthwise(1, 5, scales)
    after = widen_depthwise(before)
    assert operators(after) == ["CONV_2D"]
    node = after.nodes[0]
    assert node.operator.check(after.inputs_of(node), after.outputs_of(node)) is None
    assert_same_values(before, after)


@pytest.mark.parametrize(("channels", "multiplier"), [(1, 1), (2, 3), (4, 1)])
def test_other_depthwise_convolutions_are_kept(channels: int, multiplier: int) -> None:
    assert operators(widen_depthwise(depthwise(channels, multiplier))) == ["DEPTHWISE_CONV_2D"]


@pytest.mark.parametrize("dtype", [DType.INT8, DType.FLOAT32])
@pytest.mark.parametrize("biased", [True, False])
def test_split_layers_splits_rows_of_weights_with_their_scales(dtype: DType, biased: bool) -> None:
    s = Sketch()
    count, depth, floats = 40, 24, dtype is DType.FLOAT32
    affine = None if floats else Quantization(tuple(RANDOM.uniform(0.01, 0.1, count).tolist()), (0,) * count)
    data = RANDOM.integers(-127, 128, (count, depth)).astype(dtype.numpy)
    bias = RANDOM.integers(-900, 900, count).astype(np.float32 if floats else np.int32)
    s.tensors.append(Tensor("w", data.shape, dtype, affine, data))
    s.tensors.append(Tensor("b", bias.shape, DType.FLOAT32 if floats else DType.INT32, data=bias))
    x, y = (
        (s.real("x", 1, depth), s.real("y", 1, count)) if floats else (s.tensor("x", 1, depth), s.tensor("y", 1, count))
    )
    s.node(FullyConnected(activation=Activation.RELU), x, "w", *(["b"] if biased else []), y)
    graph = s.graph(["x"], ["y"])
    row = 4 * depth + 16 if floats else 48
    assert split_layers(graph, data.nbytes) is graph and split_layers(graph, 16 * row - 1) is graph
    assert split_layers(graph, 0) is graph
    parts = split_layers(graph, 16 * row)
    assert operators(parts) == [*["FULLY_CONNECTED"] * 3, "CONCATENATION"]
    assert [parts.inputs_of(node)[1].shape for node in parts.nodes[:3]] == [(16, depth), (16, depth), (8, depth)]
    assert_same_values(graph, parts)


def test_split_layers_keeps_layers_of_several_pixels() -> None:
    s = Sketch()
    s.node(Conv2D(), s.tensor("x", 1, 2, 1, 64), s.weights("w", 64, 1, 1, 64), s.tensor("y", 1, 2, 1, 64))
    graph = s.graph(["x"], ["y"])
    assert split_layers(graph, 2048) is graph
