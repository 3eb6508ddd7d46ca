"""Models of ai.onnx.ml with random parameters, as skl2onnx writes them: forests, linear models, SVMs, features."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt
from onnx import NodeProto, TensorProto, helper, numpy_helper

Array = npt.NDArray[Any]

DOMAIN = "ai.onnx.ml"
MODES = ("BRANCH_LEQ", "BRANCH_LT", "BRANCH_GTE", "BRANCH_GT", "BRANCH_EQ", "BRANCH_NEQ")
WIDTH = 6
LABELS = ("setosa", "versicolor", "virginica")


def ml(operator: str, inputs: Sequence[str], outputs: Sequence[str], **attributes: Any) -> NodeProto:
    """Return a node of the domain."""
    return helper.make_node(operator, inputs, outputs, domain=DOMAIN, **attributes)


def classical(
    nodes: Sequence[NodeProto],
    outputs: Mapping[str, tuple[int, Sequence[int | None]]],
    inputs: Mapping[str, tuple[int, Sequence[int | None]]] | None = None,
    constants: Mapping[str, Array] | None = None,
    version: int = 3,
) -> bytes:
    """Return the file of a model; by default its input is ``x``, 3 rows of features."""
    ports = inputs or {"x": (TensorProto.FLOAT, (3, WIDTH))}
    graph = helper.make_graph(
        list(nodes),
        "graph",
        [helper.make_tensor_value_info(name, *port) for name, port in ports.items()],
        [helper.make_tensor_value_info(name, *port) for name, port in outputs.items()],
        [numpy_helper.from_array(value, name) for name, value in (constants or {}).items()],
    )
    imports = [helper.make_opsetid("", 18), helper.make_opsetid(DOMAIN, version)]
    return bytes(helper.make_model(graph, opset_imports=imports, ir_version=8).SerializeToString())


LABEL_AND_SCORES = {"label": (TensorProto.INT64, (None,)), "scores": (TensorProto.FLOAT, (None, None))}
VALUE = {"y": (TensorProto.FLOAT, (None, None))}


def special(random: np.random.Generator, count: int) -> Array:
    """Return thresholds and features that coincide often, with all kinds of floats."""
    kinds = np.array([0.0, -0.0, 1.5, -1.5, 1e-45, -1e-45, 3e38, -3e38, 1.0000001, 1.0, np.inf, -np.inf], np.float32)
    return random.choice(kinds, count)


@dataclass
class Trees:
    """The attributes of a random forest; a leaf has a vote for each of some ``targets``."""

    random: np.random.Generator
    targets: int
    single: bool = False
    """Whether every leaf votes once, for the target of its tree."""
    modes: Sequence[str] = MODES
    width: int = WIDTH
    nodes: list[tuple[int, int, str, int, float, int, int, int]] = field(default_factory=list)
    votes: list[tuple[int, int, int, float]] = field(default_factory=list)
    sizes: Counter[int] = field(default_factory=Counter)
    """The number of nodes of each tree."""

    def grow(self, tree: int, depth: int) -> int:
        """Add a subtree; return the number of its first node, which follows all others of the tree."""
        number = self.sizes[tree]
        self.sizes[tree] += 1
        row = (tree, number, "LEAF", 0, 0.0, 0, 0, 0)
        self.nodes.append(row)
        if depth == 0 or (depth < 3 and self.random.random() < 0.3):
            chosen = (
                [tree % self.targets]
                if self.single
                else self.random.permutation(self.targets)[: self.random.integers(1, 4)]
            )
            for target in chosen:
                self.votes.append((tree, number, int(target), float(np.float32(self.random.normal()))))
            return number
        at = len(self.nodes) - 1
        children = self.grow(tree, depth - 1), self.grow(tree, depth - 1)
        threshold = float(special(self.random, 1)[0])
        self.nodes[at] = (
            tree, number, str(self.random.choice(self.modes)), int(self.random.integers(self.width)), threshold,
            *children, int(self.random.integers(2)),
        )  # fmt: skip
        return number

    def attributes(self, prefix: str) -> dict[str, Any]:
        """Return the parallel lists; ``prefix`` is that of votes, such as ``class``."""
        names = ("treeids", "nodeids", "modes", "featureids", "values", "truenodeids", "falsenodeids",
                 "missing_value_tracks_true")  # fmt: skip
        columns = zip(names, zip(*self.nodes, strict=True), strict=True)
        votes = zip(("treeids", "nodeids", "ids", "weights"), zip(*self.votes, strict=True), strict=True)
        return {
            **{f"nodes_{name}": list(column) for name, column in columns},
            **{f"{prefix}_{name}": list(column) for name, column in votes},
        }


def forest(seed: int, targets: int, *, trees: int = 4, depth: int = 4, **options: Any) -> Trees:
    """Return a random forest."""
    made = Trees(np.random.default_rng(seed), targets, **options)
    for tree in range(trees):
        made.grow(tree, depth)
    return made


def forest_classifier(seed: int = 1, labels: Sequence[str] = (), transform: str = "NONE", **options: Any) -> bytes:
    """Return a TreeEnsembleClassifier of three classes."""
    names: dict[str, Any] = {"classlabels_strings": labels} if labels else {"classlabels_int64s": [0, 1, 2]}
    attributes = forest(seed, 3, **options).attributes("class")
    node = ml("TreeEnsembleClassifier", ["x"], ["label", "scores"], post_transform=transform, **attributes, **names)
    kind = TensorProto.STRING if labels else TensorProto.INT64
    return classical([node], {**LABEL_AND_SCORES, "label": (kind, (None,))})


def forest_regressor(seed: int = 1, targets: int = 2, aggregate: str = "SUM", **options: Any) -> bytes:
    """Return a TreeEnsembleRegressor with base values."""
    attributes = forest(seed, targets, **options).attributes("target")
    base = np.random.default_rng(seed).normal(size=targets).astype(np.float32).tolist()
    node = ml("TreeEnsembleRegressor", ["x"], ["y"], n_targets=targets, aggregate_function=aggregate, base_values=base,
              **attributes)  # fmt: skip
    return classical([node], VALUE)


def _tensor(values: Sequence[float], dtype: npt.DTypeLike = np.float32) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype))


def forest_of_version_5(aggregate: int = 1, transform: int = 0) -> bytes:
    """Return a TreeEnsemble with every mode, a set among them; nodes are in the order of the traversal."""
    node = ml(
        "TreeEnsemble", ["x"], ["y"], n_targets=2, aggregate_function=aggregate, post_transform=transform,
        tree_roots=[0, 4], nodes_featureids=[0, 1, 2, 3, 4, 5, 0], nodes_modes=_tensor([0, 6, 3, 2, 1, 4, 5], np.uint8),
        nodes_splits=_tensor([0.5, 0, -1.5, 1.5, 0.0, 1.5, 1.0]), nodes_truenodeids=[1, 0, 1, 2, 5, 4, 6],
        nodes_trueleafs=[0, 1, 1, 1, 0, 1, 1], nodes_falsenodeids=[2, 1, 3, 3, 6, 5, 7],
        nodes_falseleafs=[0, 1, 0, 1, 0, 1, 1], nodes_missing_value_tracks_true=[1, 0, 0, 1, 0, 1, 0],
        leaf_targetids=[0, 1, 0, 1, 0, 1, 1, 0], leaf_weights=_tensor([0.5, -1, 2, 4, 0.25, -3, 8, 1.5]),
        membership_values=_tensor([1.5, -1.5, 3e38, np.nan]),
    )  # fmt: skip
    return classical([node], VALUE, version=5)


def linear_pipeline(labels: Sequence[str] = LABELS) -> bytes:
    """Return a Scaler, a LinearClassifier, a Normalizer and a ZipMap, as of a pipeline with LogisticRegression."""
    random = np.random.default_rng(2)
    coefficients = random.normal(size=3 * WIDTH).astype(np.float32).tolist()
    nodes = [
        ml("Scaler", ["x"], ["s"], offset=random.normal(size=WIDTH).tolist(), scale=[2.0]),
        ml("LinearClassifier", ["s"], ["label", "raw"], coefficients=coefficients, intercepts=[0.1, -0.2, 0.3],
           classlabels_strings=labels, post_transform="LOGISTIC"),
        ml("Normalizer", ["raw"], ["scores"], norm="L1"),
    ]  # fmt: skip
    return classical(nodes, {**LABEL_AND_SCORES, "label": (TensorProto.STRING, (None,))})


def support_vectors(
    kernel: str = "RBF", classes: int = 3, *, probabilities: bool = False, transform: str = "NONE"
) -> bytes:
    """Return an SVMClassifier with four support vectors for each class."""
    random, pairs = np.random.default_rng(3), classes * (classes - 1) // 2
    vectors = random.normal(size=4 * classes * WIDTH).astype(np.float32)
    coefficients = random.normal(size=4 * classes * (classes - 1)).astype(np.float32)
    offsets = random.normal(size=pairs).tolist()
    extra = {"prob_a": [-1.5] * pairs, "prob_b": random.normal(size=pairs).tolist()} if probabilities else {}
    node = ml(
        "SVMClassifier", ["x"], ["label", "scores"], kernel_type=kernel, kernel_params=[0.25, 0.5, 3.0],
        support_vectors=vectors.tolist(), coefficients=coefficients.tolist(), vectors_per_class=[4] * classes,
        rho=offsets, classlabels_ints=list(range(classes)), post_transform=transform,
        **extra,
    )  # fmt: skip
    return classical([node], LABEL_AND_SCORES)


CLASSICAL: Mapping[str, Callable[[], bytes]] = {
    "forest": forest_classifier,
    "forest of version 5": forest_of_version_5,
    "linear pipeline": linear_pipeline,
    "regressor": forest_regressor,
    "support vectors": lambda: support_vectors(probabilities=True),
}
"""Sound files for tests that damage them."""
