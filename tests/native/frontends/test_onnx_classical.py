"""Operators of ai.onnx.ml against ONNX's evaluator, in numpy and as C, and what is refused."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import onnx
import pytest
from onnx import TensorProto, helper

from mlfbuild.archive import write_archive
from mlfbuild.library import Library, Module
from mlfbuild.native.frontends.onnx import parse_onnx
from mlfbuild.native.graph import Graph
from mlfbuild.native.graph.nodes import evaluate
from support.board_cases import wrong_networks
from support.classical_networks import (
    LABEL_AND_SCORES,
    LABELS,
    VALUE,
    WIDTH,
    classical,
    forest,
    forest_classifier,
    forest_of_version_5,
    forest_regressor,
    linear_pipeline,
    ml,
    special,
    support_vectors,
)
from support.graph_interpreter import Interpreter
from support.host_c import run_many_on_host
from support.native import compile_network, generated
from support.onnx_checks import as_declared
from support.onnx_models import reference
from support.refusals import Refusal, assert_onnx_refused

Array = npt.NDArray[Any]
RANDOM = np.random.default_rng(7)
FLOATS = RANDOM.normal(size=(3, WIDTH)).astype(np.float32)
SPECIAL = np.where(RANDOM.random((3, WIDTH)) < 0.2, np.nan, special(RANDOM, 3 * WIDTH).reshape(3, WIDTH))
SPECIAL = SPECIAL.astype(np.float32)
SPECIAL[0, 0] = -np.float32(np.nan)


@dataclass(frozen=True)
class Case:
    """A model and its input; ``exact`` if no result may differ in a bit from that of the evaluator."""

    data: bytes
    x: Array
    exact: bool = False


def one(operator: str, x: Array = FLOATS, kind: int = TensorProto.FLOAT, **attributes: Any) -> Case:
    """Return a case of one operator with one output."""
    element = helper.np_dtype_to_tensor_dtype(x.dtype)
    shape = (None,) * (x.ndim + (operator == "OneHotEncoder"))
    node = ml(operator, ["x"], ["y"], **attributes)
    return Case(classical([node], {"y": (kind, shape)}, {"x": (element, x.shape)}), x)


def linear(classes: int, transform: str, labels: Sequence[int]) -> Case:
    coefficients = np.random.default_rng(classes).normal(size=classes * WIDTH).tolist()
    node = ml("LinearClassifier", ["x"], ["label", "scores"], coefficients=coefficients, post_transform=transform,
              intercepts=[0.25] * classes, classlabels_ints=labels)  # fmt: skip
    return Case(classical([node], LABEL_AND_SCORES), FLOATS)


def binary_forest(transform: str) -> Case:
    """Return a forest whose votes are all for class 0, which is the score of the second class."""
    attributes = forest(5, 1, single=True).attributes("class")
    node = ml("TreeEnsembleClassifier", ["x"], ["label", "scores"], classlabels_int64s=[4, 9], base_values=[0.25],
              post_transform=transform, **attributes)  # fmt: skip
    return Case(classical([node], LABEL_AND_SCORES), SPECIAL)


def svm_regressor(supports: int, *, one_class: int = 0) -> Case:
    random = np.random.default_rng(supports)
    extra = {"support_vectors": random.normal(size=supports * WIDTH).tolist()} if supports else {}
    node = ml("SVMRegressor", ["x"], ["y"], coefficients=random.normal(size=supports or WIDTH).tolist(), rho=[0.5],
              kernel_type="POLY" if supports else "LINEAR", kernel_params=[0.5, 1.0, 2.0], n_supports=supports,
              one_class=one_class, **extra)  # fmt: skip
    return Case(classical([node], VALUE), FLOATS)


def svm_without_vectors() -> Case:
    coefficients = np.random.default_rng(4).normal(size=3 * WIDTH).tolist()
    node = ml("SVMClassifier", ["x"], ["label", "scores"], coefficients=coefficients, rho=[0.5, 0.5, 0.5],
              kernel_type="LINEAR", classlabels_ints=[0, 1, 2], post_transform="SOFTMAX")  # fmt: skip
    return Case(classical([node], LABEL_AND_SCORES), FLOATS)


def columns(indices: Array) -> Case:
    nodes = [ml("ArrayFeatureExtractor", ["x", "i"], ["y"])]
    return Case(classical(nodes, VALUE, constants={"i": indices}), FLOATS, exact=True)


def classes_of_positions() -> Case:
    """Return the end of an exported MLPClassifier: the label of the greatest score."""
    nodes = [
        helper.make_node("ArgMax", ["x"], ["at"], axis=1),
        ml("ArrayFeatureExtractor", ["classes", "at"], ["row"]),
        helper.make_node("Reshape", ["row", "shape"], ["y"]),
    ]
    constants = {"classes": np.array([5, -3, 8, 1, 1 << 40, 2]), "shape": np.array([-1])}
    return Case(classical(nodes, {"y": (TensorProto.INT64, (None,))}, constants=constants), FLOATS, exact=True)


def vectorizer() -> Case:
    nodes = [
        helper.make_node("Add", ["x", "x"], ["twice"]),
        ml("FeatureVectorizer", ["x", "twice"], ["y"], inputdimensions=[WIDTH + 2, WIDTH - 1]),
    ]
    return Case(classical(nodes, VALUE), FLOATS, exact=True)


INTEGERS = np.array([[3, -1, 7], [7, 7, 0]])
WITH_NAN = np.where(RANDOM.random((3, WIDTH)) < 0.4, np.nan, FLOATS).astype(np.float32)
ZERO_ROW = np.concatenate([np.zeros((1, WIDTH), np.float32), FLOATS])

CASES: dict[str, Case] = {
    "forest": Case(forest_classifier(), SPECIAL, exact=True),
    "deep forest": Case(forest_classifier(2, trees=12, depth=7), SPECIAL, exact=True),
    "forest of one comparison": Case(forest_classifier(3, modes=["BRANCH_LEQ"]), SPECIAL, exact=True),
    "forest of single votes": Case(forest_classifier(4, single=True), SPECIAL, exact=True),
    "forest of leaves": Case(forest_classifier(5, depth=0), SPECIAL, exact=True),
    "forest with softmax": Case(forest_classifier(6, transform="SOFTMAX"), SPECIAL),
    "forest with softmax of nonzero": Case(forest_classifier(7, transform="SOFTMAX_ZERO"), SPECIAL),
    "forest with logistic": Case(forest_classifier(8, transform="LOGISTIC"), SPECIAL),
    "binary forest": binary_forest("NONE"),
    "binary forest with logistic": binary_forest("LOGISTIC"),
    "regressor": Case(forest_regressor(), SPECIAL, exact=True),
    "regressor of one target": Case(forest_regressor(2, 1, single=True), SPECIAL, exact=True),
    "regressor of the least vote": Case(forest_regressor(3, 2, "MIN"), SPECIAL, exact=True),
    "regressor of the greatest vote": Case(forest_regressor(4, 2, "MAX"), SPECIAL, exact=True),
    "regressor of the mean": Case(forest_regressor(5, 2, "AVERAGE"), SPECIAL),
    "regressor of 130 targets": Case(forest_regressor(6, 130, trees=20), SPECIAL, exact=True),
    "trees of version 5": Case(forest_of_version_5(), SPECIAL, exact=True),
    "trees of version 5, least": Case(forest_of_version_5(2), SPECIAL, exact=True),
    "trees of version 5, mean": Case(forest_of_version_5(0), SPECIAL),
    "linear": linear(3, "SOFTMAX", [3, 1, 2]),
    "linear of two classes": linear(1, "LOGISTIC", [0, 1]),
    "linear of one class": linear(1, "NONE", [5]),
    "linear regressor": one("LinearRegressor", coefficients=FLOATS[:2].reshape(-1).tolist(), intercepts=[1.0, 2.0],
                            targets=2),
    "SVM with RBF": Case(support_vectors(), FLOATS),
    "SVM of two classes": Case(support_vectors("SIGMOID", 2), FLOATS),
    "SVM of two classes with softmax": Case(support_vectors("POLY", 2, transform="SOFTMAX"), FLOATS),
    "SVM of two classes with probabilities": Case(support_vectors("LINEAR", 2, probabilities=True), FLOATS),
    "SVM without vectors": svm_without_vectors(),
    "SVM regressor": svm_regressor(5),
    "SVM regressor without vectors": svm_regressor(0),
    "SVM of one class": svm_regressor(7, one_class=1),
    "Scaler": one("Scaler", offset=[0.5], scale=[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]),
    "Normalizer L1": one("Normalizer", ZERO_ROW, norm="L1"),
    "Normalizer L2": one("Normalizer", ZERO_ROW, norm="L2"),
    "Normalizer MAX": one("Normalizer", ZERO_ROW, norm="MAX"),
    "Binarizer": one("Binarizer", threshold=0.25),
    "Imputer of NaN": one("Imputer", WITH_NAN, imputed_value_floats=list(map(float, range(6))),
                          replaced_value_float=float("nan")),
    "Imputer of an integer": one("Imputer", INTEGERS, TensorProto.INT64, imputed_value_int64s=[1, 2, 3],
                                 replaced_value_int64=7),
    "OneHotEncoder": one("OneHotEncoder", INTEGERS, cats_int64s=[7, 0, 3], zeros=1),
    "LabelEncoder to floats": one("LabelEncoder", INTEGERS, keys_int64s=[7, 3], values_floats=[0.5, -2.5],
                                  default_float=9.5),
    "LabelEncoder to integers": one("LabelEncoder", INTEGERS.astype(np.float32), TensorProto.INT64,
                                    keys_floats=[7.0, 0.0, 7.0], values_int64s=[1, 2, 1 << 40], default_int64=-5),
    "FeatureVectorizer": vectorizer(),
    "columns": columns(np.array([4, 0, 0])),
    "classes of positions": classes_of_positions(),
}  # fmt: skip


def expected(name: str) -> list[Array]:
    with np.errstate(all="ignore"):
        return reference(CASES[name].data, {"x": CASES[name].x})


def network(name: str, wanted: Sequence[Array], model: str = "net") -> Graph:
    return parse_onnx(as_declared(CASES[name].data, wanted), model, f"{model}.onnx")


def assert_agrees(name: str, outputs: Sequence[Array], wanted: Sequence[Array]) -> None:
    for result, right in zip(outputs, wanted, strict=True):
        assert result.dtype == right.dtype, name
        if CASES[name].exact or right.dtype.kind != "f":
            np.testing.assert_array_equal(result.reshape(right.shape), right, name)
        else:
            bound = 1e-5 * np.abs(right).max()
            np.testing.assert_allclose(result.reshape(right.shape), right, rtol=1e-5, atol=bound, err_msg=name)


def test_graphs_equal_the_evaluator() -> None:
    for name, case in CASES.items():
        wanted = expected(name)
        graph = network(name, wanted)
        values = evaluate(graph, {"x": case.x})
        assert_agrees(name, [values[output] for output in graph.outputs], wanted)


KERNELS = ("deep forest", "forest of single votes", "regressor of the least vote", "SVM with RBF")
"""The cases that are compiled on each push: those of kernels that only this domain has."""


TREES = tuple(name for name, case in CASES.items() if b"TreeEnsemble" in case.data)


@pytest.mark.parametrize(
    ("names", "options"),
    [
        (KERNELS, {}),
        (("forest", "binary forest", "forest with softmax", "regressor of the greatest vote"), {"trees": "code"}),
        pytest.param(tuple(CASES), {}, marks=pytest.mark.sweep),
        pytest.param(TREES, {"trees": "code"}, marks=pytest.mark.sweep),
    ],
    ids=["new", "code", "all", "all code"],
)
def test_c_equals_the_evaluator(names: Sequence[str], options: dict[str, str]) -> None:
    jobs: list[tuple[Library, Module, tuple[Array, ...]]] = []
    for number, name in enumerate(names):
        library = compile_network(network(name, expected(name), f"net{number}"), options=options)
        jobs.append((library, library.modules[0], (CASES[name].x,)))
    for name, outputs in zip(names, run_many_on_host(jobs), strict=True):
        assert_agrees(name, outputs, expected(name))


ON_BOARDS = ("deep forest", "forest of one comparison", "regressor of 130 targets", "SVM with RBF")


@pytest.mark.parametrize("cpu", ["cortex-m4", pytest.param("cortex-m33", marks=pytest.mark.sweep),
                                 pytest.param("cortex-m55", marks=pytest.mark.sweep)])  # fmt: skip
def test_on_boards(cpu: str, tmp_path: Path, tool: Callable[[str], str]) -> None:
    jobs = []
    for number, name in enumerate(ON_BOARDS):
        graph = network(name, expected(name), f"net{number}")
        values = evaluate(graph, {"x": CASES[name].x})
        jobs.append((compile_network(graph, cpu), [CASES[name].x], [values[output] for output in graph.outputs]))
    assert wrong_networks(jobs, cpu, tmp_path, tool) == []


def test_texts_are_positions_of_labels() -> None:
    """The header lists the labels; a position times the list is what the evaluator returns."""
    labels = ("Iris \"a\"", "b?", "\u00e9")  # fmt: skip
    for data in (forest_classifier(1, labels), linear_pipeline(labels)):
        wanted, scores = reference(data, {"x": FLOATS})
        graph = parse_onnx(as_declared(data, [wanted, scores]), "net", "net.onnx")
        values = evaluate(graph, {"x": FLOATS})
        positions = values[graph.outputs[0]]
        assert positions.dtype == np.int64
        assert [labels[position] for position in positions] == wanted.tolist()
        header = generated(compile_network(graph), "tvmgen_net.h")
        listed = '_LABEL_LABELS { \\\n    "Iris \\042a\\042", \\\n    "b\\077", \\\n    "\\303\\251", \\\n}\n'
        assert listed in header


def test_label_encoder_maps_texts() -> None:
    node = ml("LabelEncoder", ["label"], ["y"], keys_strings=["virginica", "setosa"], values_int64s=[20, 30],
              default_int64=-7)  # fmt: skip
    made = onnx.load_from_string(linear_pipeline())
    made.graph.node.append(node)
    del made.graph.output[:]
    made.graph.output.append(helper.make_tensor_value_info("y", TensorProto.INT64, [None]))
    graph = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    (wanted,) = reference(made.SerializeToString(), {"x": FLOATS})
    np.testing.assert_array_equal(evaluate(graph, {"x": FLOATS})["y"], wanted)


def test_a_map_is_its_columns() -> None:
    made = onnx.load_from_string(linear_pipeline())
    made.graph.node.append(ml("ZipMap", ["scores"], ["map"], classlabels_strings=LABELS))
    made.graph.output[1].name = "map"
    kind = helper.make_map_type_proto(TensorProto.STRING, helper.make_tensor_type_proto(TensorProto.FLOAT, []))
    made.graph.output[1].type.CopyFrom(helper.make_sequence_type_proto(kind))
    graph = parse_onnx(made.SerializeToString(), "net", "net.onnx")
    _, scores = reference(linear_pipeline(), {"x": FLOATS})
    np.testing.assert_allclose(evaluate(graph, {"x": FLOATS})["map"], scores, rtol=1e-5)
    assert "_MAP_LABELS" in generated(compile_network(graph), "tvmgen_net.h")


@pytest.mark.parametrize(("trees", "name"), [("tables", "deep forest"), ("code", "forest")])
def test_graphs_have_the_same_trees(trees: str, name: str, tmp_path: Path) -> None:
    (wanted_label, wanted) = expected(name)
    graph = network(name, [wanted_label, wanted])
    library = compile_network(graph, executor="graph", options={"trees": trees})
    write_archive(library, tmp_path / "net.tar")
    label, scores = Interpreter(tmp_path / "net.tar", tmp_path / "tree").run([SPECIAL])
    np.testing.assert_array_equal(label, wanted_label)
    np.testing.assert_array_equal(scores, wanted)


def test_probabilities_of_four_classes_are_coupled(tmp_path: Path, tool: Callable[[str], str]) -> None:
    """ONNX's evaluator multiplies matrices wrongly here (not for two classes); this solves the equations exactly."""
    wanted = reference(support_vectors(classes=4), {"x": FLOATS})
    data = support_vectors(classes=4, probabilities=True)
    graph = parse_onnx(as_declared(data, [wanted[0], np.zeros((3, 4), np.float32)]), "net", "net.onnx")
    values = evaluate(graph, {"x": FLOATS})
    np.testing.assert_array_equal(values["label"], wanted[0])
    offsets = next(a.floats for a in onnx.load_from_string(data).graph.node[0].attribute if a.name == "prob_b")
    for scores, result in zip(wanted[1], values["scores"], strict=True):
        against = np.zeros((4, 4))
        against[np.triu_indices(4, 1)] = shares = 1 / (1 + np.exp(-1.5 * scores + np.array(offsets)))
        against.T[np.triu_indices(4, 1)] = 1 - shares
        matrix = np.diag((against**2).sum(axis=0)) - against.T * against
        system = np.block([[matrix, np.ones((4, 1))], [np.ones((1, 4)), np.zeros((1, 1))]])
        np.testing.assert_allclose(result, np.linalg.solve(system, [0, 0, 0, 0, 1])[:4], atol=0.005)
    library = compile_network(graph)
    ((_, made),) = run_many_on_host([(library, library.modules[0], (FLOATS,))])
    np.testing.assert_allclose(made.reshape(3, 4), values["scores"], rtol=1e-5)
    assert (
        wrong_networks([(library, [FLOATS], [values[name] for name in graph.outputs])], "cortex-m4", tmp_path, tool)
        == []
    )


def changed(data: bytes, **attributes: Any) -> bytes:
    """Return the model with other attributes of its first node; ``None`` removes one."""
    made = onnx.load_from_string(data)
    node = made.graph.node[0]
    kept = [attribute for attribute in node.attribute if attribute.name not in attributes]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items() if value is not None)
    return bytes(made.SerializeToString())


FOREST = forest_classifier(0, trees=1, depth=1)
PLACE = "node 0 (ai.onnx.ml.TreeEnsembleClassifier) writing 'label'"
SVM_PLACE = "node 0 (ai.onnx.ml.SVMClassifier) writing 'label'"

REFUSED: dict[str, tuple[bytes, Refusal]] = {
    "a node below itself": (
        changed(FOREST, nodes_truenodeids=[0, 0, 0]), ("onnx-malformed", PLACE, "below itself"),
    ),
    "a child that does not exist": (
        changed(FOREST, nodes_truenodeids=[7, 0, 0]), ("onnx-malformed", PLACE, "children 7"),
    ),
    "a feature that does not exist": (
        changed(FOREST, nodes_featureids=[6, 0, 0]), ("onnx-malformed", PLACE, "feature 6 of 6"),
    ),
    "a threshold that is not a number": (
        changed(FOREST, nodes_values=[float("nan"), 0.0, 0.0]), ("onnx-malformed", PLACE, "not a number"),
    ),
    "a class that does not exist": (
        changed(FOREST, classlabels_int64s=[0, 1]), ("onnx-malformed", PLACE, "not among 2"),
    ),
    "a transform": (changed(FOREST, post_transform="PROBIT"), ("operator-variant-unsupported", PLACE, "PROBIT")),
    "doubles": (
        changed(FOREST, nodes_values=None,
                nodes_values_as_tensor=helper.make_tensor("t", TensorProto.DOUBLE, [3], [0.0, 0.0, 0.0])),
        ("type-unsupported", PLACE, "64 bits"),
    ),
    "vectors that do not fit": (
        changed(support_vectors(), vectors_per_class=[4, 4, 3]),
        ("onnx-malformed", SVM_PLACE, "coefficients do not fit"),
    ),
    "a category that must be known": (
        one("OneHotEncoder", INTEGERS, cats_int64s=[1], zeros=0).data,
        ("operator-variant-unsupported", "node 0 (ai.onnx.ml.OneHotEncoder) writing 'y'", "zeros = 0"),
    ),
    "a text as an input": (
        classical([ml("LabelEncoder", ["x"], ["y"], keys_strings=["a"], values_int64s=[1])], VALUE,
                  {"x": (TensorProto.STRING, (1, 1))}),
        ("type-unsupported", "input 'x'", "STRING"),
    ),
    "arithmetic on texts": (
        classical([*onnx.load_from_string(linear_pipeline()).graph.node, helper.make_node("Shape", ["label"], ["n"]),
                   helper.make_node("Concat", ["label", "label"], ["y"], axis=0)],
                  {"y": (TensorProto.STRING, (None,))}),
        ("operator-variant-unsupported", "node 4 (Concat) writing 'y'", "texts"),
    ),
}  # fmt: skip


@pytest.mark.parametrize(("data", "refusal"), REFUSED.values(), ids=REFUSED)
def test_refused(data: bytes, refusal: Refusal) -> None:
    assert_onnx_refused(data, *refusal)
