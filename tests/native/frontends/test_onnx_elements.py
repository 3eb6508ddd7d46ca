"""ONNX operators that become several operators, with random attributes and shapes, against ONNX's evaluator.

All read an image whose channels are stored last, so that converters must map ONNX's dimensions to stored ones.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from hypothesis import given, settings, strategies as st
from onnx import TensorProto, helper

from mlfbuild.core import InputFileError, UnsupportedModelError
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph.nodes import evaluate
from support.errors import raises
from support.examples import examples
from support.host_c import run_on_host
from support.native import compile_network, generated
from support.onnx_checks import RANDOM, assert_equal, floats, on_images
from support.onnx_models import model, reference

pytestmark = pytest.mark.usefixtures("same_numbers")

Case = tuple[list[onnx.NodeProto], dict[str, npt.NDArray[Any]], tuple[int, ...]]
SHAPE = (2, 3, 4, 5)


@st.composite
def gathered_elements(draw: st.DrawFn) -> Case:
    """Draw constant or computed indices."""
    axis = draw(st.integers(0, 3))
    sizes = list(SHAPE)  # ONNX's evaluator supports neither smaller sizes beside the axis nor a negative axis
    sizes[axis] = draw(st.integers(1, 6))
    indices = RANDOM.integers(-SHAPE[axis], SHAPE[axis], sizes)
    node = helper.make_node("GatherElements", ["p", "i"], ["y"], axis=axis)
    return _perhaps_computed(draw, node, indices)


@st.composite
def gathered_slices(draw: st.DrawFn) -> Case:
    batch = draw(st.integers(0, 1))
    depth = draw(st.integers(1, 4 - batch))
    limits = SHAPE[batch : batch + depth]
    leading = [SHAPE[0]] * batch + draw(st.lists(st.integers(1, 3), min_size=1, max_size=2))
    indices = np.stack([RANDOM.integers(-size, size, leading) for size in limits], axis=-1)
    node = helper.make_node("GatherND", ["p", "i"], ["y"], batch_dims=batch)
    return ([node], {"i": indices}, SHAPE) if batch else _perhaps_computed(draw, node, indices)


def _perhaps_computed(draw: st.DrawFn, node: onnx.NodeProto, indices: npt.NDArray[Any]) -> Case:
    if draw(st.booleans()):
        return [node], {"i": indices}, SHAPE
    nothing = [helper.make_node("Mul", ["x", "nothing"], ["zeros"]),
               helper.make_node("ReduceMax", ["zeros"], ["zero"], keepdims=0),
               helper.make_node("Add", ["zero", "wanted"], ["sum"]),
               helper.make_node("Cast", ["sum"], ["i"], to=TensorProto.INT64)]  # fmt: skip
    return [*nothing, node], {"nothing": np.float32(0), "wanted": indices.astype(np.float32)}, SHAPE


@st.composite
def scattered_elements(draw: st.DrawFn) -> Case:
    axis = draw(st.integers(-4, 3))
    sizes = [draw(st.integers(1, min(size, 2))) for size in SHAPE]
    reduction = draw(st.sampled_from(["none", "add", "mul", "max", "min"]))
    indices = RANDOM.permuted(np.broadcast_to(np.arange(SHAPE[axis]), (*sizes, SHAPE[axis])), axis=-1)
    chosen = np.moveaxis(indices.take(range(sizes[axis]), axis=-1), -1, axis).take(
        0, axis=axis if axis < 0 else axis + 1
    )
    if reduction != "none":
        chosen = chosen % 2
    node = helper.make_node("ScatterElements", ["p", "i", "u"], ["y"], axis=axis, reduction=reduction)
    nodes, constants, shape = _perhaps_computed(draw, node, chosen)
    return nodes, {**constants, "u": floats(*chosen.shape)}, shape


@st.composite
def scattered_slices(draw: st.DrawFn) -> Case:
    depth = draw(st.integers(1, 4))
    count, reduction = draw(st.integers(1, 3)), draw(st.sampled_from(["none", "add", "mul", "max", "min"]))
    places = RANDOM.permutation(int(np.prod(SHAPE[:depth])))[:count]
    indices = np.stack(np.unravel_index(places, SHAPE[:depth]), axis=-1)
    if reduction != "none":
        indices = np.concatenate([indices, indices[:1]])
    node = helper.make_node("ScatterND", ["p", "i", "u"], ["y"], reduction=reduction)
    nodes, constants, shape = _perhaps_computed(draw, node, indices)
    return nodes, {**constants, "u": floats(len(indices), *SHAPE[depth:])}, shape


@st.composite
def reversed_sequences(draw: st.DrawFn) -> Case:
    """Draw constant or computed lengths; the evaluator requires at least 1."""
    time = draw(st.integers(0, 1))
    node = helper.make_node("ReverseSequence", ["p", "i"], ["y"], time_axis=time, batch_axis=1 - time)
    return _perhaps_computed(draw, node, RANDOM.integers(1, SHAPE[time] + 1, SHAPE[1 - time]))


@st.composite
def cumulative(draw: st.DrawFn) -> Case:
    attributes = {"exclusive": draw(st.integers(0, 1)), "reverse": draw(st.integers(0, 1))}
    return (
        [helper.make_node("CumSum", ["p", "a"], ["y"], **attributes)],
        {"a": np.array(draw(st.integers(-4, 3)))},
        SHAPE,
    )


@st.composite
def products(draw: st.DrawFn) -> Case:
    axes = draw(st.lists(st.integers(-4, -1), unique=True, max_size=4))
    names, constants = (["p", "axes"], {"axes": np.array(axes)}) if axes else (["p"], {})
    return [helper.make_node("ReduceProd", names, ["y"], keepdims=draw(st.integers(0, 1)))], constants, SHAPE


@st.composite
def pools(draw: st.DrawFn) -> Case:
    """Draw pools of one to three dimensions; the evaluator is wrong if padding differs between sides."""
    dimensions = draw(st.integers(1, 3))
    operator = draw(st.sampled_from(["MaxPool", "AveragePool", "LpPool"]))
    kernel = [draw(st.integers(1, 3)) for _ in range(dimensions)]
    attributes: dict[str, Any] = {
        "kernel_shape": kernel,
        "strides": [draw(st.integers(1, 2)) for _ in kernel],
        "dilations": [draw(st.integers(1, 2)) for _ in kernel],
        "pads": [draw(st.integers(0, (size - 1) // 2)) for size in kernel] * 2,
    }
    if operator == "LpPool":
        attributes["p"] = draw(st.integers(1, 4))
    if operator == "AveragePool":
        attributes["count_include_pad"] = draw(st.integers(0, 1))
    shape = (1, 2, *(6, 5, 7)[:dimensions])
    return [helper.make_node(operator, ["x"], ["y"], **attributes)], {}, shape


EQUATIONS = ("abcd->dcba", "abcd->", "abcd->bd", "abcd,abcd->acb", "abcd,cd->abd", "abcd,be->aecd", "abcd,abed->abce",
             "...cd,...cd->...", "abcd,d", "abcd, ef -> abcdef", "...->...", "abcd,ad->bc")  # fmt: skip


@st.composite
def einsums(draw: st.DrawFn) -> Case:
    equation = draw(st.sampled_from(EQUATIONS))
    terms = equation.replace(" ", "").split("->")[0].split(",")
    if len(terms) == 1:
        return [helper.make_node("Einsum", ["p"], ["y"], equation=equation)], {}, SHAPE
    sizes = dict(zip("abcdef", (*SHAPE, 6, 2), strict=True))
    other = [sizes[label] for label in terms[1].removeprefix("...")]
    return [helper.make_node("Einsum", ["p", "w"], ["y"], equation=equation)], {"w": floats(*other)}, SHAPE


@st.composite
def others(draw: st.DrawFn) -> Case:
    node, constants = helper.make_node, {"values": np.array([-1.5, 2], np.float32), "depth": np.array(5),
                                         "sizes": np.array([3, 6]), "power": np.array([2, 0, 3, 1, 5], np.float32),
                                         "root": np.array([0.5, 1.5, 2.25, 1, 0.1], np.float32),
                                         "kept": np.array([True, False, True])}  # fmt: skip
    return draw(st.sampled_from([
        [node("Hardmax", ["p"], ["y"], axis=draw(st.integers(-4, 3)))],
        [node("Floor", ["p"], ["f"]), node("OneHot", ["f", "depth", "values"], ["y"], axis=draw(st.integers(-5, 4)))],
        [node("CenterCropPad", ["p", "sizes"], ["y"], axes=[2, 3])],
        [node("Compress", ["p", "kept"], ["y"], axis=1)],
        [node("Compress", ["p", "kept"], ["y"])],
        [node("Pow", ["p", "power"], ["y"])],
        [node("Abs", ["p"], ["a"]), node("Pow", ["a", "root"], ["y"])],
        [node("Gelu", ["p"], ["y"], approximate=draw(st.sampled_from(["none", "tanh"])))],
        [node("Round", ["p"], ["r"]), node("Sin", ["r"], ["s"]), node("Cos", ["s"], ["y"])],
    ])), constants, SHAPE  # fmt: skip


@st.composite
def nearby_channels(draw: st.DrawFn) -> Case:
    """Draw an LRN; the evaluator requires as many channels as images in the batch."""
    beta = draw(st.sampled_from([0.5, 0.75, 1.0]))
    node = helper.make_node("LRN", ["p"], ["y"], size=draw(st.integers(1, 5)), alpha=0.1, beta=beta, bias=2.0)
    return [node], {}, (3, 3, 4, 5)


FAMILIES = {
    "gathered elements": gathered_elements(), "gathered slices": gathered_slices(),
    "scattered elements": scattered_elements(), "scattered slices": scattered_slices(), "cumulative": cumulative(),
    "reversed sequences": reversed_sequences(), "products": products(), "pools": pools(), "einsums": einsums(),
    "nearby channels": nearby_channels(), "others": others(),
}  # fmt: skip


@pytest.mark.parametrize("family", FAMILIES)
@settings(max_examples=examples(40), deadline=None, derandomize=True)
@given(data=st.data())
def test_operators_on_images(family: str, data: st.DataObject) -> None:
    nodes, constants, shape = data.draw(FAMILIES[family])
    if family == "pools":
        made = model(nodes, [("x", shape)], [("y", [None] * len(shape))])
    else:
        made = on_images(nodes, constants, shape)
    assert_equal(made, floats(*shape), compiled=False)


@pytest.mark.parametrize(("axis", "largest"), [(1, 1), (-1, 0), (0, 1)])
def test_greatest_elements_of_images(axis: int, largest: int) -> None:
    """Equal elements are in the order of their positions."""
    node = helper.make_node("TopK", ["p", "k"], ["values", "y"], axis=axis, largest=largest)
    made = onnx.load_from_string(on_images([node], {"k": np.array([2])}, SHAPE, TensorProto.INT64))
    made.graph.output.append(helper.make_tensor_value_info("values", TensorProto.FLOAT, [None] * 4))
    assert_equal(made.SerializeToString(), np.round(floats(*SHAPE)))


@pytest.mark.parametrize(("k", "axis"), [([6], 1), ([-1], 1), ([1, 1], 1), ([3], 0), ([1], 2)])
def test_numbers_of_greatest_elements_that_do_not_fit(k: list[int], axis: int) -> None:
    node = helper.make_node("TopK", ["x", "k"], ["v", "y"], axis=axis)
    data = model([node], [("x", (2, 5))], [("v", [None] * 2)], {"k": np.array(k)})
    with raises(InputFileError, "onnx-malformed", at="net.onnx: node 0 (TopK) writing 'v'"):
        parse_onnx(data, "net", "net.onnx")


CONVOLUTIONS: dict[str, tuple[tuple[int, ...], tuple[int, ...], dict[str, Any]]] = {
    "Conv": ((2, 4, 6, 5), (3, 4, 3, 2), {"pads": [1, 0, 1, 1], "strides": [1, 2], "dilations": [2, 1]}),
    "Conv of lines": ((2, 3, 7), (5, 3, 2), {"pads": [3, 0]}),
    "Conv in groups": ((1, 4, 5, 5), (6, 2, 3, 3), {"group": 2}),
    "Conv of each channel": ((2, 4, 5, 6), (8, 1, 3, 3), {"group": 4, "auto_pad": "SAME_UPPER"}),
    "Conv of each channel once": ((1, 4, 5, 6), (4, 1, 3, 3), {"group": 4}),
    "ConvTranspose": ((2, 3, 4, 5), (3, 2, 3, 2), {"strides": [2, 1], "pads": [1, 0, 1, 1]}),
    "ConvTranspose with gaps": ((1, 2, 4, 5), (2, 3, 2, 2), {"dilations": [3, 2], "strides": [1, 2]}),
    "ConvTranspose of lines": ((1, 3, 5), (3, 2, 3), {"strides": [2]}),
}
"""The shapes of the image and of the filter, and the attributes."""


@pytest.mark.parametrize("biased", [False, True])
@pytest.mark.parametrize("kind", CONVOLUTIONS)
def test_computed_filters(kind: str, biased: bool) -> None:
    (shape, filters, attributes), operator = CONVOLUTIONS[kind], kind.split(maxsplit=1)[0]
    channels = filters[0] if operator == "Conv" else filters[1] * attributes.get("group", 1)
    inputs = {"x": shape, "w": filters, **({"b": (channels,)} if biased else {})}
    node = helper.make_node(operator, [*inputs], ["y"], **attributes)
    double = helper.make_node("Add", ["y", "y"], ["z"])
    made = model([node, double], [*inputs.items()], [("z", [None] * len(shape))])
    assert_equal(made, *(floats(*each) for each in inputs.values()), compiled=biased)


def test_computed_biases_of_constant_filters() -> None:
    node = helper.make_node("Conv", ["x", "w", "b"], ["y"])
    made = model([node], [("x", (1, 2, 4, 4)), ("b", (3,))], [("y", [None] * 4)], {"w": floats(3, 2, 2, 2)})
    assert_equal(made, floats(1, 2, 4, 4), floats(3), compiled=False)


def test_computed_filters_of_transposed_groups() -> None:
    """ONNX's evaluator fails with groups."""
    node = helper.make_node("ConvTranspose", ["x", "w"], ["y"], group=2)
    x, filters = floats(1, 4, 3, 3), floats(4, 3, 2, 2)
    ports = [("x", x.shape), ("w", filters.shape)]
    constant = parse_onnx(model([node], ports[:1], [("y", [None] * 4)], {"w": filters}), "net", "net.onnx")
    computed = parse_onnx(model([node], ports, [("y", [None] * 4)]), "net", "net.onnx")
    wanted = evaluate(constant, {"x": x})["y"]
    np.testing.assert_allclose(evaluate(computed, {"x": x, "w": filters})["y"], wanted, rtol=1e-5, atol=1e-5)


@pytest.mark.parametrize(("shape", "group"), [((8, 4, 1, 1), 1), ((4, 1, 3, 3), 4)])
def test_computed_filters_on_cores_with_helium(shape: tuple[int, ...], group: int) -> None:
    """The kernels for Helium have their own order of weights, so the portable kernel is called."""
    node = helper.make_node("Conv", ["x", "w"], ["y"], group=group)
    made = model([node], [("x", (1, 4, 5, 5)), ("w", shape)], [("y", [None] * 4)])
    text = generated(compile_network(parse_onnx(made, "net", "net.onnx"), cpu="cortex-m55"))
    assert ("mlf_conv2d_float(" in text, "mlf_depthwise_conv2d_float(" in text) == (group == 1, group == 4)


def integer_inputs(node: onnx.NodeProto, ports: Sequence[tuple[str, Any]]) -> bytes:
    """Return a model that computes ``y``, like its first input, from inputs like the arrays in ``ports``."""
    infos = [helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(value.dtype), value.shape)
             for name, value in (*ports, ("y", ports[0][1]))]  # fmt: skip
    made = helper.make_model(
        helper.make_graph([node], "g", infos[:-1], infos[-1:]),
        opset_imports=[helper.make_opsetid("", 21)], ir_version=8,
    )  # fmt: skip
    return bytes(made.SerializeToString())


@pytest.mark.parametrize(
    ("reduction", "dtype"),
    [("none", "float32"), ("none", "int64"), ("none", "bool"), ("add", "float32"), ("mul", "float32"),
     ("max", "float32"), ("min", "float32")],
)  # fmt: skip
def test_scattering_at_computed_positions_in_c(reduction: str, dtype: str) -> None:
    """The last of two updates of an element wins, or both are combined with it."""
    x, updates = (RANDOM.normal(0, 2, shape).astype(dtype) for shape in ((4, 3), (3, 3)))
    indices = np.array([[1], [-4], [1]])
    node = helper.make_node("ScatterND", ["x", "i", "u"], ["y"], reduction=reduction)
    wanted = x.copy()
    combine = {"none": lambda _, y: y, "add": np.add, "mul": np.multiply, "max": np.maximum, "min": np.minimum}
    for (at,), row in zip(indices, updates, strict=True):
        wanted[at] = combine[reduction](wanted[at], row)
    graph = parse_onnx(integer_inputs(node, [("x", x), ("i", indices), ("u", updates)]), "net", "net.onnx")
    made = (
        evaluate(graph, {"x": x, "i": indices, "u": updates})["y"],
        *run_on_host(compile_network(graph), [x, indices, updates]),
    )
    for result in made:
        np.testing.assert_allclose(result, wanted, rtol=1e-6)


def test_updates_out_of_range_are_ignored() -> None:
    x, updates, indices = floats(5), floats(3), np.array([7, 1, -9])
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"])
    graph = parse_onnx(integer_inputs(node, [("x", x), ("i", indices), ("u", updates)]), "net", "net.onnx")
    wanted = [x[0], updates[1], *x[2:]]
    np.testing.assert_array_equal(evaluate(graph, {"x": x, "i": indices, "u": updates})["y"], wanted)
    np.testing.assert_array_equal(run_on_host(compile_network(graph), [x, indices, updates])[0], wanted)


def test_computed_lengths_out_of_range_are_bounded() -> None:
    x, lengths = floats(4, 3), np.array([9, -2, 2])
    node = helper.make_node("ReverseSequence", ["x", "i"], ["y"])
    graph = parse_onnx(integer_inputs(node, [("x", x), ("i", lengths)]), "net", "net.onnx")
    wanted = np.stack([x[::-1, 0], x[:, 1], x[[1, 0, 2, 3], 2]], axis=1)
    np.testing.assert_array_equal(evaluate(graph, {"x": x, "i": lengths})["y"], wanted)


def test_integers_are_not_combined_at_computed_positions() -> None:
    x, indices = np.arange(4), np.array([1])
    node = helper.make_node("ScatterElements", ["x", "i", "u"], ["y"], reduction="add")
    with pytest.raises(UnsupportedModelError) as caught:
        parse_onnx(integer_inputs(node, [("x", x), ("i", indices), ("u", x[:1])]), "net", "net.onnx")
    assert (caught.value.code, "int64" in caught.value.reason) == ("type-unsupported", True)


@pytest.mark.parametrize("storage_order", [0, 1])
def test_positions_in_pools(storage_order: int) -> None:
    """The first of equal elements counts, and padding never does; the positions count all images of the batch."""
    x = np.round(floats(2, 2, 5, 6)) - 9
    attributes = {"kernel_shape": [3, 2], "strides": [2, 1], "dilations": [1, 2], "pads": [1, 1, 1, 0]}
    node = helper.make_node("MaxPool", ["x"], ["v", "y"], storage_order=storage_order, **attributes)
    made = model([node], [("x", x.shape)], [("v", [None] * 4)])
    with_positions = onnx.load_from_string(made)
    with_positions.graph.output.append(helper.make_tensor_value_info("y", TensorProto.INT64, [None] * 4))
    graph = parse_onnx(with_positions.SerializeToString(), "net", "net.onnx")
    rows = x.transpose(0, 1, 3, 2) if storage_order else x
    for values, at in (
        [evaluate(graph, {"x": x})[name] for name in ("v", "y")],
        run_on_host(compile_network(graph), [x]),
    ):
        np.testing.assert_array_equal(values, reference(made, {"x": x})[0])
        np.testing.assert_array_equal(rows.reshape(-1)[at], values)
        first = np.full(values.shape, -1)
        for place in np.ndindex(values.shape):
            image, (y, z) = place[:2], place[2:]
            taps = [(2 * y - 1 + i, z - 1 + 2 * j) for i in range(3) for j in range(2)]
            inside = [tap for tap in taps if 0 <= tap[0] < 5 and 0 <= tap[1] < 6]
            best = max(inside, key=lambda tap: x[(*image, *tap)])
            within = best[1] * 5 + best[0] if storage_order else best[0] * 6 + best[1]
            first[place] = (image[0] * 2 + image[1]) * 30 + within
        np.testing.assert_array_equal(at, first)


@pytest.mark.parametrize("p", [1, 2, 3, 4])
def test_norms_of_images(p: int) -> None:
    """ONNX's evaluator has no GlobalLpPool."""
    x = floats(2, 3, 4, 5)
    graph = parse_onnx(on_images([helper.make_node("GlobalLpPool", ["p"], ["y"], p=p)], {}, x.shape), "net", "net.onnx")
    wanted = (np.abs(x).astype(np.float64) ** p).sum(axis=(2, 3), keepdims=True) ** (1 / p)
    np.testing.assert_allclose(evaluate(graph, {"x": x})["y"], wanted, rtol=1e-5)


@pytest.mark.parametrize("shape", [(3,), (2, 3), (2, 1, 3)])
@pytest.mark.parametrize("weights", [(3,), (3, 4), (1, 3, 4), (1, 1, 3, 4), (2, 3, 4)])
def test_products_of_any_ranks(shape: tuple[int, ...], weights: tuple[int, ...]) -> None:
    """A vector is a row on the left side and a column on the right side, and its dimension is removed afterwards."""
    node = helper.make_node("MatMul", ["x", "w"], ["y"])
    made = model([node], [("x", shape)], [("y", [None])], {"w": floats(*weights)})
    assert_equal(made, floats(*shape), compiled=False)


@pytest.mark.parametrize("operator", ["Gather", "GatherND"])
@pytest.mark.parametrize("computed", [False, True])
def test_one_element_of_a_vector_is_a_scalar(operator: str, computed: bool) -> None:
    """The result has no dimensions."""
    wanted = np.array(-2) if operator == "Gather" else np.array([-2])
    nodes = [helper.make_node("ReduceMax", ["zeros"], ["zero"], keepdims=0),
             helper.make_node("Add", ["zero", "real"], ["sum"]),
             helper.make_node("Cast", ["sum"], ["i"], to=TensorProto.INT64)]  # fmt: skip
    nodes.insert(0, helper.make_node("Mul", ["x", "nothing"], ["zeros"]))
    gather = helper.make_node(operator, ["x", "i" if computed else "wanted"], ["y"])
    constants = {"wanted": wanted, "real": wanted.astype(np.float32), "nothing": np.float32(0)}
    made = model([*nodes, gather] if computed else [gather], [("x", (5,))], [("y", [])], constants)
    assert_equal(made, floats(5))


@pytest.mark.parametrize("shape", [(3,), (2, 1), (4, 1, 3), (1, 1, 1, 1), (2, 3)])
@pytest.mark.parametrize("power", [2.0, 0.0, 0.5])
def test_scalar_power_that_adds_dimensions(shape: tuple[int, ...], power: float) -> None:
    """Equal exponents are treated as one number only if they do not change the shape."""
    x = np.abs(floats(2, 1))
    constants = {"power": np.full(shape, power, np.float32)}
    made = model([helper.make_node("Pow", ["x", "power"], ["y"])], [("x", x.shape)], [("y", [None])], constants)
    assert_equal(made, x, compiled=False)


WHOLE = ("int8", "uint8", "int16", "int32", "int64")
INTEGERS = {"Add": WHOLE, "Sub": WHOLE, "Mul": WHOLE, "Div": WHOLE[:-1], "Mod": WHOLE, "Max": WHOLE, "Min": WHOLE,
            "Less": WHOLE, "Equal": WHOLE, "Pow": WHOLE[3:]}  # fmt: skip


@pytest.mark.parametrize("operator", INTEGERS)
@settings(max_examples=examples(20), deadline=None, derandomize=True)
@given(data=st.data())
def test_operators_on_integers(operator: str, data: st.DataObject) -> None:
    """Integers that are not quantised; narrow ones wrap around."""
    dtype = data.draw(st.sampled_from(INTEGERS[operator]))
    limits = np.iinfo(dtype) if np.dtype(dtype).itemsize < 4 else np.iinfo(np.int16)
    x = RANDOM.integers(limits.min, limits.max + 1, (3, 20)).astype(dtype)
    z = RANDOM.integers(limits.min, limits.max + 1, (20,)).astype(dtype)
    z = np.where(z == 0, 1, z % 4 if operator == "Pow" else z).astype(dtype)
    element = helper.np_dtype_to_tensor_dtype(np.dtype(dtype))
    node = helper.make_node(
        operator, ["x", "z"], ["y"], **({"fmod": data.draw(st.integers(0, 1))} if operator == "Mod" else {})
    )
    result = TensorProto.BOOL if operator in {"Less", "Equal"} else element
    graph = helper.make_graph(
        [node], "g", [helper.make_tensor_value_info("x", element, x.shape)],
        [helper.make_tensor_value_info("y", result, x.shape)], [onnx.numpy_helper.from_array(z, "z")],
    )  # fmt: skip
    made = helper.make_model(graph, opset_imports=[helper.make_opsetid("", 21)], ir_version=8).SerializeToString()
    with np.errstate(all="ignore"):
        wanted = reference(made, {"x": x})[0]
    np.testing.assert_array_equal(evaluate(parse_onnx(made, "net", "net.onnx"), {"x": x})["y"], wanted)
