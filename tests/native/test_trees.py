"""Decision trees as tables and as code, over floats and integers: the numbers of ONNX's evaluator, bit for bit."""

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from mlfbuild.core import UnsupportedModelError, UsageError
from mlfbuild.library import Library
from mlfbuild.native.build import compile_graph
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import ConstantBudget, Graph, evaluate
from mlfbuild.native.lowering.classifiers import tree_stream
from support.board_cases import wrong_networks
from support.classical_networks import VALUE, Trees, classical, forest, linear_pipeline, ml, special
from support.host_c import run_many_on_host
from support.native import compile_network, files_of, generated, request
from support.onnx_models import reference

Array = npt.NDArray[Any]

FORMS = ("tables", "code")
ROWS = 5
AROUND = (-40_000.5, -32_768.0, -129.0, -128.0, -127.5, -1.5, -0.0, 0.5, 1.0, 2.25, 127.0, 128.0, 255.0, 3e9, np.inf)
"""Thresholds at and beyond the ends of integer types."""


@dataclass(frozen=True)
class Case:
    """A network with one forest, its rows, and what it computes of them."""

    graph: Graph
    x: Array
    wanted: Array
    dtype: str
    """The C type of the features that the trees compare."""


def case(made: Trees, x: Array, name: str, steps: str = "", aggregate: str = "SUM") -> Case:
    """Return the regressor of ``made`` for the features ``x`` after ``steps``: a cast, or also one scale or many."""
    steps = steps or ("" if x.dtype == np.float32 else "cast")
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    random, width = np.random.default_rng(made.width), made.width
    scales = {"s": np.float32(0.037), "z": np.array(3, x.dtype)}
    nodes = {
        "": [],
        "cast": [helper.make_node("Cast", ["x"], ["f"], to=TensorProto.FLOAT)],
        "scale": [helper.make_node("DequantizeLinear", ["x", "s", "z"], ["f"])],
        "scaler": [
            helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT),
            ml("Scaler", ["c"], ["f"], offset=random.normal(size=width).tolist(),
               scale=random.uniform(0.01, 3, width).tolist()),
        ],
    }[steps]  # fmt: skip
    trees = ml("TreeEnsembleRegressor", ["f" if nodes else "x"], ["y"], n_targets=made.targets,
               aggregate_function=aggregate, **made.attributes("target"))  # fmt: skip
    constants = scales if steps == "scale" else None
    data = classical([*nodes, trees], VALUE, {"x": (element, x.shape)}, constants)
    model = onnx.load_from_string(data)
    model.opset_import[0].version = 21  # whose DequantizeLinear has types of 16 bits
    with np.errstate(all="ignore"):
        (wanted,) = reference(model.SerializeToString(), {"x": x})
    model.graph.output[0].CopyFrom(helper.make_tensor_value_info("y", TensorProto.FLOAT, wanted.shape))
    graph = parse_onnx(model.SerializeToString(), name, f"{name}.onnx")
    return Case(graph, x, wanted, "float" if x.dtype == np.float32 else f"{x.dtype}_t")


def with_thresholds(made: Trees, values: Callable[[int], float]) -> Trees:
    """Return ``made`` with the threshold that ``values`` has for each feature."""
    made.nodes = [(*row[:4], values(row[3]), *row[5:]) for row in made.nodes]
    return made


def floats(random: np.random.Generator, width: int) -> Array:
    x = np.where(random.random((ROWS, width)) < 0.2, np.nan, special(random, ROWS * width).reshape(ROWS, width))
    x[0] = np.copysign(x[0], -1)  # NaN of either sign
    return x.astype(np.float32)


def integers(random: np.random.Generator, width: int, dtype: str) -> Array:
    limits = np.iinfo(dtype)
    near = np.clip(random.integers(-130, 260, (ROWS, width)), limits.min, limits.max)
    ends = random.choice([limits.min, limits.max], (ROWS, width))
    return np.where(random.random((ROWS, width)) < 0.2, ends, near).astype(dtype)


def random_case(seed: int, name: str) -> Case:
    """Every width of tables, comparison, kind of float, type of integer, and way to the features."""
    random = np.random.default_rng(seed)
    width = int(random.choice([1, 3, 130, 300, 3000]))
    targets = int(random.choice([1, 2, 3, 16, 17, 129, 300]))
    made = forest(seed, targets, trees=6, depth=int(random.integers(0, 8)), width=width, single=bool(seed % 2))
    if seed % 3 == 0:  # NaN takes one side in every node
        made.nodes = [
            (*row[:2], "LEAF" if row[2] == "LEAF" else "BRANCH_LT", *row[3:7], seed % 2) for row in made.nodes
        ]
    aggregate = ("SUM", "SUM", "MIN", "MAX")[seed % 4]
    if seed % 5 == 0:
        return case(made, floats(random, width), name, aggregate=aggregate)
    dtype = ("int8", "uint8", "int16", "uint16", "int32")[seed // 2 % 5]
    steps = ("cast", "scale", "scaler")[seed % 3]
    made = with_thresholds(made, lambda _: float(np.float32(random.choice(AROUND))))
    return case(made, integers(random, width, dtype), name, steps, aggregate)


def compiled(cases: Sequence[Case], form: str, cpu: str = "cortex-m4") -> list[Library]:
    return [compile_network(each.graph, cpu, options={"trees": form}) for each in cases]


def assert_exact(cases: Sequence[Case], libraries: Sequence[Library]) -> None:
    jobs = [(library, library.modules[0], (each.x,)) for each, library in zip(cases, libraries, strict=True)]
    for number, (each, (made,)) in enumerate(zip(cases, run_many_on_host(jobs), strict=True)):
        np.testing.assert_array_equal(made.reshape(each.wanted.shape), each.wanted, str(number))


@pytest.mark.parametrize("seeds", [range(10), *(
    pytest.param(range(first, first + 10), marks=pytest.mark.sweep) for first in range(10, 90, 10)
)])  # fmt: skip
@pytest.mark.parametrize(("form", "cpu"), [("tables", "cortex-m4"), ("code", "cortex-m4"), ("code", "cortex-m0plus")])
def test_random_forests_are_exact(form: str, cpu: str, seeds: range) -> None:
    cases = [random_case(seed, f"net{seed}") for seed in seeds]
    libraries = compiled(cases, form, cpu)
    for each, library in zip(cases, libraries, strict=True):
        np.testing.assert_array_equal(evaluate(each.graph, {"x": each.x})[each.graph.outputs[0]], each.wanted)
        assert f"const {each.dtype} *input" in generated(library)
    assert_exact(cases, libraries)


@pytest.mark.parametrize("cpu", ["cortex-m4", pytest.param("cortex-m0plus", marks=pytest.mark.sweep)])
def test_trees_on_boards(cpu: str, tmp_path: Any, tool: Callable[[str], str]) -> None:
    cases = [random_case(seed, f"net{seed}") for seed in (0, 3, 5, 7, 8)]
    jobs = []
    for form in FORMS:
        for number, each in enumerate(cases):
            graph = Graph(f"{form}{number}", list(each.graph.tensors.values()), each.graph.nodes, each.graph.inputs,
                          each.graph.outputs)  # fmt: skip
            jobs.append((compile_network(graph, cpu, options={"trees": form}), [each.x], [each.wanted]))
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []


def table_cases() -> dict[str, Case]:
    """Return a forest for each form of the tables, by the form."""
    random = np.random.default_rng(1)
    leq = {"modes": ["BRANCH_LEQ"]}
    levels = with_thresholds(
        forest(1, 3, trees=24, depth=8, width=16, **leq), lambda feature: float(random.integers(200) + feature / 64)
    )
    wide = forest(2, 3, trees=4, depth=5, width=3000, **leq)
    huge = forest(3, 3, trees=4, depth=3, width=70_000, **leq)
    cases = {
        "shared": case(forest(4, 3, trees=4, depth=5, **leq), floats(random, 6), "net0"),
        "shared, by feature": case(levels, (random.random((ROWS, 16)) * 220).astype(np.float32), "net1"),
        "half": case(wide, floats(random, 3000), "net2"),
        "word": case(huge, floats(random, 70_000), "net3"),
    }
    few = forest(5, 3, trees=12, depth=6, **leq)
    few.votes = [(*vote[:3], float(random.choice([0.125, 0.25, 0.5]))) for vote in few.votes]
    return {**cases, "shared, weights": case(few, floats(random, 6), "net4")}


def test_every_form_of_tables_is_exact() -> None:
    cases = table_cases()
    libraries = compiled(list(cases.values()), "tables")
    for name, library in zip(cases, libraries, strict=True):
        text = generated(library)
        form, *more = name.split(", ")
        assert f"mlf_tree_ensemble_{form}_uint" in text, name
        assert (".by_feature = 1," in text) == ("by feature" in more), name
        assert (".target_bits = 2," in text) == ("weights" in more), name
    assert_exact(list(cases.values()), libraries)


def test_nodes_with_several_parents_are_stored_once_and_refused_as_code() -> None:
    """Both branches of each equality lead to the next one, so a copy for each of them would double the table."""
    made = Trees(np.random.default_rng(1), 2, width=1)
    for number in range(40):
        made.nodes.append((0, number, "BRANCH_EQ", 0, float(number), 40, number + 1, 0))
    made.nodes += [(0, number, "LEAF", 0, 0.0, 0, 0, 0) for number in (40, 41)]
    made.nodes[39] = (*made.nodes[39][:6], 41, 0)
    made.votes = [(0, 40, 0, 1.0), (0, 41, 1, 1.0)]
    equal = case(made, np.array([[3.0], [39.0], [39.5], [-1.0], [np.nan]], np.float32), "net")
    libraries = compiled([equal], "tables")
    (found,) = re.findall(r"int16_t \w+nodes\[(\d+)\]", generated(libraries[0]))
    assert int(found) == 2 * 40 * 2 + 2  # two nodes of two words for each equality, and two leaves
    assert_exact([equal], libraries)
    with pytest.raises(UnsupportedModelError) as caught:
        compiled([equal], "code")
    assert (caught.value.code, caught.value.hint) == ("trees-too-large-for-code", "remove the option trees: code")
    assert "in trees of 80 levels; at most 16,384 comparisons" in caught.value.reason


def test_code_is_comparisons_and_votes() -> None:
    made = Trees(np.random.default_rng(1), 2, width=3)
    made.nodes = [
        (0, 0, "BRANCH_LEQ", 2, 0.5, 1, 2, 0), (0, 1, "LEAF", 0, 0.0, 0, 0, 0), (0, 2, "BRANCH_LT", 0, -1.0, 3, 4, 1),
        (0, 3, "LEAF", 0, 0.0, 0, 0, 0), (0, 4, "LEAF", 0, 0.0, 0, 0, 0),
        (1, 0, "BRANCH_GT", 2, 7.0, 1, 2, 0), (1, 1, "LEAF", 0, 0.0, 0, 0, 0), (1, 2, "LEAF", 0, 0.0, 0, 0, 0),
    ]  # fmt: skip
    made.votes = [(0, 1, 1, 0.25), (0, 3, 0, 4.0), (0, 3, 1, 0.25), (0, 4, 1, 0.25), (1, 1, 0, 2.0), (1, 2, 0, 0.5)]
    x = np.array([[-2, 0, 1]], np.int16)
    text = generated(compile_network(case(made, x, "net").graph, options={"trees": "code"}))
    body = text[text.index("    uint32_t leaf;") : text.index("    output[0] = sum0;")]
    assert (
        body
        == """\
    uint32_t leaf;
    /* tree 0 */
    if (input[2] <= 0) {
        leaf = 0;
    } else if (input[0] <= -2) {
        leaf = 1;
    } else {
        leaf = 0;
    }
    switch (leaf) {
    case 0:
        sum1 += weights[0];
        break;
    default:
        sum0 += weights[1];
        sum1 += weights[0];
        break;
    }
    /* tree 1 */
    if (input[2] <= 7) {
        leaf = 3;
    } else {
        leaf = 2;
    }
    sum0 += weights[leaf];
"""
    )


def with_weight(made: Trees, weight: float) -> Trees:
    """Return ``made`` with the same weight for all votes."""
    made.votes = [(*vote[:3], weight) for vote in made.votes]
    return made


def test_equal_votes_are_counted_in_a_word() -> None:
    """Votes of 0.1 are rounded in each addition, so that 10 of them are not 1."""
    random = np.random.default_rng(1)
    x, whole = floats(random, 6), integers(random, 6, "int16")
    # Leaves have up to three votes: 12 of 4 trees take 4 bits, and 8 targets a whole word.
    counted = [
        case(with_weight(forest(1, 3, trees=30, single=True), 0.1), x, "net0"),
        case(with_weight(forest(2, 8), 0.1), x, "net1"),
        case(with_weight(forest(3, 8), -0.3), whole, "net2"),
        case(with_weight(forest(4, 1, trees=40, depth=1), 1 / 3), whole, "net3"),
        case(with_weight(forest(5, 2, depth=0), 0.1), whole, "net4"),
    ]
    added = [
        case(with_weight(forest(6, 9), 0.1), x, "net5"),
        case(with_weight(forest(7, 3), 0.1), x, "net6", aggregate="MAX"),
        case(forest(8, 3), x, "net7"),
    ]
    libraries = compiled(counted + added, "code")
    assert ["votes = 0;" in generated(library) for library in libraries] == [True] * 5 + [False] * 3
    assert_exact(counted + added, libraries)


def test_counts_begin_at_one_base() -> None:
    x, attributes = floats(np.random.default_rng(2), 6), with_weight(forest(1, 3, trees=9), 0.1).attributes("class")
    outputs = {"label": (TensorProto.INT64, (ROWS,)), "scores": (TensorProto.FLOAT, (ROWS, 3))}
    for base, counted in (([0.7, 0.7, 0.7], True), ([0.7, 0.8, 0.7], False)):
        trees = ml("TreeEnsembleClassifier", ["x"], [*outputs], base_values=base, classlabels_int64s=[0, 1, 2],
                   **attributes)  # fmt: skip
        graph = parse_onnx(classical([trees], outputs, {"x": (TensorProto.FLOAT, x.shape)}), "net", "net.onnx")
        library = compile_network(graph, options={"trees": "code"})
        assert ("votes = 0;" in generated(library)) == counted
        wanted = evaluate(graph, {"x": x})
        (made,) = run_many_on_host([(library, library.modules[0], (x,))])
        for name, result in zip(graph.outputs, made, strict=True):
            np.testing.assert_array_equal(result.reshape(wanted[name].shape), wanted[name])


def test_the_option_is_for_networks_with_trees() -> None:
    graph = parse_onnx(linear_pipeline(), "net", "net.onnx")
    for key, value in (("trees", "tables"), ("trees", "code"), ("tree-room", "4 KiB")):
        with pytest.raises(UsageError) as caught:
            compile_network(graph, options={key: value})
        assert (caught.value.code, caught.value.place) == ("trees-without-trees", f"net: options.{key}")


def test_features_that_are_not_monotonic_stay_floats() -> None:
    """A negative factor exchanges the branches, and integers that a network computes are not those of the caller."""
    x = np.arange(-3, 3, dtype=np.int16).reshape(1, 6)
    trees = ml("TreeEnsembleRegressor", ["f"], ["y"], n_targets=1, **forest(1, 1).attributes("target"))
    cast = helper.make_node("Cast", ["x"], ["c"], to=TensorProto.FLOAT)
    scaled = ml("Scaler", ["c"], ["f"], offset=[0.5], scale=[-1.0])
    data = classical([cast, scaled, trees], {"y": (TensorProto.FLOAT, (1, 1))}, {"x": (TensorProto.INT16, x.shape)})
    graph = parse_onnx(data, "net", "net.onnx")
    library = compile_network(graph)
    assert ".type = MLF_TREE_FLOAT32," in generated(library)
    ((made,),) = run_many_on_host([(library, library.modules[0], (x,))])
    np.testing.assert_array_equal(made.reshape(1, 1), reference(data, {"x": x})[0])


REPLACEABLE = {"parameters": "replaceable"}


def replaceable(each: Case, room: str = "64 KiB") -> Library:
    return compile_network(each.graph, options={**REPLACEABLE, "tree-room": room})


@pytest.mark.parametrize("seeds", [range(5), pytest.param(range(5, 60), marks=pytest.mark.sweep)])
def test_trees_in_a_blob_are_exact(seeds: range) -> None:
    cases = [random_case(seed, f"net{seed}") for seed in seeds]
    assert_exact(cases, [replaceable(each, "1 MiB") for each in cases])


@pytest.mark.parametrize("dtype", ["float32", "int8"])
def test_forests_of_other_shapes_have_the_same_code(dtype: str) -> None:
    x = np.zeros((ROWS, 6), dtype)
    shapes = [(4, 5, True), (9, 3, False), (1, 7, True), (2, 0, True)]
    forests = [forest(seed, 3, trees=trees, depth=depth, single=single)
               for seed, (trees, depth, single) in enumerate(shapes)]  # fmt: skip
    for made in forests:
        made.nodes.append((99, 0, "BRANCH_LEQ", 1, 0.5, 1, 2, 0))  # also a forest of single leaves has a node
        made.nodes += [(99, number, "LEAF", 0, 0.0, 0, 0, 0) for number in (1, 2)]
        made.votes += [(99, 1, 0, 1.0), (99, 2, 1, 2.0)]
    first, *others = (files_of(replaceable(case(made, x, "net"))) for made in forests)
    for other in others:
        differing = {path for path in first if first[path] != other.get(path)}
        assert differing == {"host/parameters/net.bin", "host/src/net_lib1.c"} and first.keys() == other.keys()


def test_room_for_trees() -> None:
    made = case(forest(4, 3, trees=4, depth=5), np.zeros((1, 6), np.float32), "net")
    (size,) = re.findall(
        r"stream uint32_t\[(\d+)\]", files_of(replaceable(made, "3000"))["host/parameters/net.txt"].decode()
    )
    assert 4 * int(size) == 3000
    text = generated(compile_network(made.graph, options=REPLACEABLE))
    (room,) = re.findall(r"mlf_tree_stream\(&shape, 6, (\d+), ", text)
    assert int(room).bit_count() == 1
    with pytest.raises(UnsupportedModelError) as caught:
        replaceable(made, "200")
    assert caught.value.code == "trees-beyond-room" and "tree-room reserves 200" in caught.value.reason
    large = replace(request("net"), options={**REPLACEABLE, "tree-room": "8 MiB"})
    with pytest.raises(UnsupportedModelError) as caught:
        compile_graph(made.graph, large, "", ConstantBudget(4 << 20))
    assert caught.value.code == "constants-too-large"


@pytest.mark.parametrize("seed", [0, *(pytest.param(seed, marks=pytest.mark.sweep) for seed in range(1, 8))])
def test_no_table_of_trees_leads_outside_memory(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also one whose CRC-32 is right."""
    random = np.random.default_rng(seed)

    def garbage(*_: Any) -> Array:
        places = random.integers(0, 1100, 1000)
        heads = random.integers(0, 1 << 32, 1000), places, places << 4 | places % 16, 1 << 31 | places % 5
        items = np.zeros((1000, 2), np.uint32)
        items[:, 0], items[:, 1] = random.choice(np.stack(heads).reshape(-1), 1000), random.integers(0, 1 << 32, 1000)
        items[: 4 * seed + 1, 0] = places[: 4 * seed + 1] + 1
        return items

    monkeypatch.setattr(tree_stream, "_items", garbage)
    jobs = []
    for number, dtype in enumerate(("float32", "int8", "uint16")):
        x = np.arange(ROWS * 40).reshape(ROWS, 40).astype(dtype)
        library = replaceable(case(forest(1, 3, width=40), x, f"net{number}"), "8000")
        jobs.append((library, library.modules[0], (x,)))
    assert len(run_many_on_host(jobs, sanitize=True)) == 3
