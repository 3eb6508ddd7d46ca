"""Generate archives with roughly valid metadata and member names."""

import json
from typing import Any

from hypothesis import strategies as st

from mlfbuild.archive import tar

JSON = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(), st.floats(allow_nan=False), st.text(max_size=8)),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=6,
)


def or_anything(expected: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.integers(0, 19).flatmap(lambda draw: JSON if draw == 0 else expected)


def listed(items: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return or_anything(st.lists(items, max_size=2))


SIZES = or_anything(st.sampled_from((0, 1, 8, 2**31, 2**63 - 1)))
TEXTS = or_anything(st.text(max_size=8))
WORKSPACE = listed(st.fixed_dictionaries({"device": SIZES, "workspace_size_bytes": SIZES}))
TENSORS = or_anything(
    st.dictionaries(st.text(max_size=4), st.fixed_dictionaries({"size": SIZES, "dtype": TEXTS}), max_size=2)
)
MAIN = st.fixed_dictionaries(
    {"device": SIZES, "workspace_size_bytes": SIZES, "constants_size_bytes": SIZES, "io_size_bytes": SIZES},
    optional={"inputs": TENSORS, "outputs": TENSORS},
)
OPERATOR_FUNCTION = st.fixed_dictionaries({"function_name": TEXTS, "workspace": WORKSPACE})
FUNCTIONS = st.fixed_dictionaries({"main": listed(MAIN), "operator_functions": listed(OPERATOR_FUNCTION)})
SIDS = listed(st.fixed_dictionaries({"storage_id": SIZES, "size_bytes": SIZES}, optional={"input_binding": TEXTS}))
BUFFER = st.fixed_dictionaries(
    {"size_bytes": SIZES, "shape": listed(SIZES), "dtype": TEXTS, "input_binding": st.none() | TEXTS}
)
MEMORY = or_anything(
    st.one_of(
        SIDS,
        st.fixed_dictionaries({"functions": FUNCTIONS}, optional={"sids": SIDS}),
        st.dictionaries(st.sampled_from(("add", "mul")), listed(BUFFER), max_size=2),
    )
)
EXECUTORS = or_anything(st.sampled_from((["aot"], ["graph"], [], ["vm"], ["aot", "graph"])))
NAMES = st.sampled_from(("a", "b", "A", "a.b", "-", "..", "x" * 100))
MODULE = {
    "model_name": or_anything(NAMES),
    "export_datetime": or_anything(st.sampled_from(("2024-01-01 00:00:00Z", "yesterday", ""))),
    "memory": MEMORY,
    "target": or_anything(st.sampled_from((["c"], {"1": "c"}, {"1": "c", "12": "x"}, []))),
}
OPTIONAL = {
    "executors": EXECUTORS,
    "runtimes": EXECUTORS,
    "style": or_anything(st.sampled_from(("full-model", "operator"))),
    "external_dependencies": listed(st.dictionaries(st.sampled_from(("short_name", "url", "url_type")), TEXTS)),
    "mlfbuild": JSON,
}
VERSIONS = or_anything(st.integers(0, 8))
MODULES = or_anything(st.dictionaries(NAMES, or_anything(st.fixed_dictionaries(MODULE, optional=OPTIONAL)), max_size=3))
METADATA = st.one_of(
    st.fixed_dictionaries({"version": VERSIONS, "modules": MODULES}),
    st.fixed_dictionaries({"version": VERSIONS, **MODULE}, optional=OPTIONAL),
)
PATHS = st.sampled_from(
    (
        "codegen/host/src/a_lib0.c", "codegen/host/src/lib0.c", "codegen/host/include/tvmgen_a.h",
        "codegen/x/lib/b_lib1.o", "parameters/a.params", "parameters/b.params", "parameters/a.json", "relay.txt",
        "src/relay.txt", "src/a.relay", "src/tir-1.txt", "runtime-config/graph/graph.json", "metadata-1.json",
        "executor-config/graph/graph.json", "executor-config/graph/a.graph", "runtime/include/x.h", "README.md",
    )
)  # fmt: skip
EMPTY_PARAMS = b"\xb7\x9c\x04\x05\x4f\x8d\xe5\xf7" + bytes(24)
RELAY = b"#[version]\ndef @main(%a: Tensor[(1, 2), int8]) {"
CONTENTS = st.sampled_from((b"", EMPTY_PARAMS, EMPTY_PARAMS, b"{}", b"int a;\n", RELAY)) | st.binary(max_size=64)


class MadeUp(bytes):
    """An archive whose repr shows its parts instead of 10 KB of tar."""

    def __repr__(self) -> str:
        return "an archive: read it back from the examples' database, or print(data.hex())"


@st.composite
def archives_made_up(draw: st.DrawFn) -> MadeUp:
    """Draw a tar with a roughly valid ``metadata.json``."""
    files = draw(st.dictionaries(PATHS, CONTENTS, max_size=8))
    files["metadata.json"] = json.dumps(draw(METADATA)).encode()
    return MadeUp(b"".join(tar.pack(files, 0)))
