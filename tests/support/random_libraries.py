"""Hypothesis strategies for libraries of every style, with all fields that the metadata of some version holds."""

import json
from pathlib import PurePosixPath
from typing import Any

import numpy as np
from hypothesis import strategies as st

from mlfbuild.library import (
    OPERATOR,
    ArchiveFile,
    CodegenFile,
    DeviceContext,
    ExternalDependency,
    Library,
    MainMemory,
    Module,
    ModuleTarget,
    Network,
    NetworkConstant,
    NetworkOperator,
    NetworkTensor,
    OperatorBuffer,
    OperatorFunction,
    StorageEntry,
    TensorInfo,
    TracedTensor,
    UnknownField,
)
from mlfbuild.library.numpy_types import _CODES, dtype_called
from support.old_archives import RELAY, graph, sources

WORDS = st.text(st.characters(exclude_categories=["Cs"]), max_size=6)
"""Names with any character that is valid in UTF-8."""
SIZES = st.integers(0, 2**63 - 1) | st.integers(0, 9)
DEVICES = st.sampled_from([1, 2, 12, 35, 0, 99])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(WORDS, inner, max_size=3),
    max_leaves=4,
)
JSON = VALUES.map(lambda value: json.dumps(value, sort_keys=True))
FOLDERS = [
    "", "/memory", "/memory/functions", "/memory/functions/main/0", "/memory/functions/main/1",
    "/memory/functions/main/0/inputs/x", "/memory/functions/main/0/outputs/y~1z", "/memory/sids/0",
    "/memory/functions/operator_functions/0", "/memory/functions/operator_functions/0/workspace/0", "/mlfbuild",
    "/memory/add/0", "/mlfbuild/contexts/0", "/target", "/memory/functions/main/00",
]  # fmt: skip
PLACES = [
    *(f"{folder}/{key}" for folder in FOLDERS for key in ("vendor", "", "a~1b", "size", "main", "inputs", "0")),
    "/mlfbuild", "/modules", "/version", "/style", "/runtimes", "/memory", "/contexts", "vendor", "",
    "/mlfbuild/state_size", "/mlfbuild/unknown", "/mlfbuild/archive", "/external_dependencies", "/model_name",
]  # fmt: skip
"""Objects that a version has or not, objects that no version has, and keys that a reader would take for its own."""


def unknown(places: list[str]) -> st.SearchStrategy[tuple[UnknownField, ...]]:
    """Return unknown fields at some of ``places``."""
    found = st.dictionaries(st.sampled_from(places), JSON, max_size=4)
    return found.map(lambda values: tuple(UnknownField(place, values[place]) for place in sorted(values)))


KEYS = ["/vendor", "/a~1b", "/", "/size"]
CONTEXTS = st.builds(DeviceContext, WORDS, SIZES, WORDS, st.just("") | JSON.filter(lambda text: text != "null"), WORDS)
DEPENDENCIES = st.builds(ExternalDependency, WORDS, WORDS, WORDS, WORDS, unknown(KEYS))
TENSORS = st.builds(
    TensorInfo, st.sampled_from(["x", "y/z", "a", "w-1"]) | WORDS, st.sampled_from(["int8", "float32", "custom[x]8"]),
    SIZES, st.none() | st.lists(st.integers(0, 9), max_size=3).map(tuple), st.none() | st.floats(0.001, 9),
    st.none() | st.integers(-128, 127), WORDS,
)  # fmt: skip
TRACED = st.builds(TracedTensor, st.just(TensorInfo("t", "int8", 4, (2, 2))), WORDS, WORDS)
TARGETS = st.lists(st.builds(ModuleTarget, WORDS, st.none() | DEVICES), max_size=3).map(tuple)
MAIN = st.lists(st.builds(MainMemory, SIZES, SIZES, SIZES, DEVICES), max_size=2).map(tuple)
FUNCTIONS = st.lists(
    st.builds(OperatorFunction, WORDS, st.lists(st.tuples(DEVICES, SIZES), max_size=2).map(tuple)), max_size=2
).map(tuple)
STORAGE = st.lists(st.builds(StorageEntry, SIZES, SIZES, st.none() | WORDS.filter(bool)), max_size=2).map(tuple)
FILES = st.dictionaries(
    st.sampled_from(["NOTICE", "README.md", "runtime/a.c", "templates/é", "parameters/other.params", "x/y z.bin"]),
    st.binary(max_size=4), max_size=2,
).map(lambda files: tuple(ArchiveFile(PurePosixPath(path), data) for path, data in files.items()))  # fmt: skip
NETWORK = Network(
    0,
    (NetworkTensor("t", "int8", (2, 2), 4, "input", 0, 0, 0),),
    (NetworkOperator("add", "ADD", "f", ("s",), 4, (0,), (0,)),),
    (NetworkConstant("s", "t", "model"),),
)
COMMON: dict[str, Any] = {
    "targets": TARGETS,
    "contexts": st.lists(CONTEXTS, max_size=2).map(tuple),
    "external_dependencies": st.lists(DEPENDENCIES, max_size=2).map(tuple),
    "export_datetime": st.just("2024-02-29 12:00:00Z") | WORDS.filter(bool),
    "export_utc": st.booleans(),
    "model_id": WORDS,
    "state_size": SIZES,
    "workspace_bound": st.none() | SIZES,
    "trace": st.lists(TRACED, max_size=1).map(tuple),
    "hook": st.booleans(),
    "tflm": st.sampled_from(["", "2026-10-13"]),
    "source_sha256": st.sampled_from(["", "ab" * 32]),
    "notes": st.lists(WORDS, max_size=2).map(tuple),
    "extensions": st.sampled_from([{}, {"board": "mps2", "count": -3, "share": 0.5, "secure": True}]),
    "unknown": unknown(PLACES),
}  # fmt: skip


@st.composite
def params(draw: st.DrawFn) -> dict[str, np.ndarray[Any, Any]]:
    """Return parameters of any element type that numpy and ``ml_dtypes`` have."""
    found = {}
    for name in draw(st.lists(WORDS, max_size=2, unique=True)):
        shape = draw(st.lists(st.integers(0, 3), max_size=2))
        dtype = dtype_called(draw(st.sampled_from(sorted(_CODES))))
        found[name] = np.arange(int(np.prod(shape)), dtype=np.uint8).reshape(shape).astype(np.float32).astype(dtype)
    return found


@st.composite
def models(draw: st.DrawFn, name: str) -> Module:
    """Return a full model, with code whose interface the reader finds."""
    executor = draw(st.sampled_from(["aot", "graph"]))
    codegen = {
        path.replace("add_", f"{name}_"): text
        for path, text in sources(7, executor, "host/src").items()
        if draw(st.booleans())
    }
    codegen |= {f"{folder}/{name}_lib2.o": b"\x7f" for folder in ("host/lib", "npu/lib") if draw(st.booleans())}
    codegen |= {f"host/{path}": b"#pragma once\n" for path in ("include/npu.h", "src/k/k.h") if draw(st.booleans())}
    return Module(
        name=name,
        executor=executor,
        main=draw(MAIN),
        operator_functions=draw(FUNCTIONS),
        codegen=tuple(CodegenFile(PurePosixPath(path), text) for path, text in codegen.items()),
        inputs=draw(st.lists(TENSORS, max_size=3).map(tuple)),
        outputs=draw(st.lists(TENSORS, max_size=2).map(tuple)),
        params=draw(params()),
        graph_json=graph("f") if executor == "graph" else None,
        storage=draw(STORAGE),
        network=draw(st.sampled_from([None, NETWORK])) if executor == "graph" else None,
        source_text=draw(st.sampled_from([b"", RELAY, b"text"])),
        **{key: draw(values) for key, values in COMMON.items()},
    )


@st.composite
def operators(draw: st.DrawFn) -> Module:
    """Return a single operator of one or two functions."""
    names = draw(st.lists(st.just("add") | WORDS, max_size=2, unique=True))
    buffers = st.lists(
        st.tuples(SIZES, st.lists(SIZES, max_size=2).map(tuple), WORDS, st.none() | WORDS), max_size=2
    )  # fmt: skip
    return Module(
        name="add",
        executor="",
        main=(),
        operator_functions=tuple(OperatorFunction(name, ()) for name in names),
        codegen=(CodegenFile(PurePosixPath("host/src/lib0.c"), b";"),),
        style=OPERATOR,
        buffers=tuple(OperatorBuffer(name, *entry) for name in names for entry in draw(buffers)),
        tir=tuple((device, b"tir") for device in sorted(draw(st.sets(DEVICES, max_size=2)))),
        params=draw(params()),
        **{key: draw(values) for key, values in COMMON.items()},
    )


@st.composite
def libraries(draw: st.DrawFn) -> Library:
    """Return a library of one model, of several, or of an operator."""
    names = draw(st.lists(st.sampled_from(["add", "Net-2.x", "_", "9"]), max_size=2, unique=True))
    modules = tuple(draw(models(name)) for name in names) or (draw(operators()),)
    beside = draw(unknown([place for place in PLACES if place.count("/") == 1 and "external" not in place]))
    return Library(modules, other_files=draw(FILES), unknown=beside)
